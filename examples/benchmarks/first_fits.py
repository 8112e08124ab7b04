"""What a first fit costs on a fresh machine, where nothing has been compiled yet.

    python examples/benchmarks/first_fits.py [NAME ...]

Each fit is the first one of a new process, with an empty cache of compiled code. A table gives CPU
seconds of first fits, without the import of marginsvm, for each estimator (or those named) and
layout of X, of two classes with a hard margin and of three with C = 1; the larger one counts. The
second table has the same for second fits in the same processes. Fits end after ten rounds.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import scipy.sparse as sp

import marginsvm

N, D, ROUNDS = 900, 40, 10
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "CSR": sp.csr_matrix,
    "C float32": lambda X: X.astype(np.float32),
    "CSR float32": lambda X: sp.csr_matrix(X, dtype=np.float32),
    "kernel": np.ascontiguousarray,
}
TASKS = {2: np.inf, 3: 1.0}  # C of two classes, and of three


def estimators():
    """Names of all classifiers of the package."""
    public = ((name, getattr(marginsvm, name)) for name in marginsvm.__all__)
    return sorted(
        name for name, it in public if hasattr(it, "fit") and hasattr(it, "get_params")
    )


def problem(classes):
    """Non-negative examples, two thirds of whose entries are zeros, and labels at random."""
    rng = np.random.default_rng(0)
    X = rng.random((N, D)) * (rng.random((N, D)) < 1 / 3)
    return X, rng.permutation(np.arange(N) % classes)


def two_fits(name, layout, classes):
    """CPU seconds of two fits in this process, or None where there is no such estimator."""
    estimator = getattr(marginsvm, name)()
    wanted = {"max_iter": ROUNDS, "C": TASKS[classes], "random_state": 0}
    if layout == "kernel":
        wanted |= {"kernel": "rbf", "gamma": 1.0}
    known = estimator.get_params()
    if layout == "kernel" and "kernel" not in known:
        return None
    estimator.set_params(
        **{key: value for key, value in wanted.items() if key in known}
    )
    X, y = problem(classes)
    X, times = LAYOUTS[layout](X), []
    warnings.simplefilter("ignore")
    for _ in range(2):
        begin = time.process_time()
        estimator.fit(X, y)
        times.append(time.process_time() - begin)
    return times


def in_a_fresh_process(*task):
    """The same in a new process that finds no compiled code."""
    with tempfile.TemporaryDirectory() as cache:
        threads = {
            f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")
        }
        done = subprocess.run(
            [sys.executable, __file__, "--child", *map(str, task)],
            stdout=subprocess.PIPE,
            check=True,
            env=os.environ | threads | {"NUMBA_CACHE_DIR": cache},
        )
    return json.loads(done.stdout)


def table(title, measured, which):
    """A table of the larger of the times of two and of three classes."""
    print(f"\n| {title} | {' | '.join(LAYOUTS)} |\n|---|" + "--:|" * len(LAYOUTS))
    for name in dict.fromkeys(name for name, _ in measured):
        cells = [measured[name, layout] for layout in LAYOUTS]
        shown = [
            f"{max(times[which] for times in cell):.2f}" if cell else ""
            for cell in cells
        ]
        print(f"| {name} | {' | '.join(shown)} |")


def main():
    measured = {}
    once = "import time; b = time.process_time(); import marginsvm; print(time.process_time() - b)"
    imports = [
        float(subprocess.check_output([sys.executable, "-c", once])) for _ in range(3)
    ]
    print(f"import marginsvm: {min(imports):.2f} s (not in the tables)")
    for name in sys.argv[1:] or estimators():
        for layout in LAYOUTS:
            tasks = [in_a_fresh_process(name, layout, classes) for classes in TASKS]
            measured[name, layout] = [times for times in tasks if times]
    table("first fit, CPU s", measured, 0)
    table("second fit, CPU s", measured, 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _, _, name, layout, classes = sys.argv
        print(json.dumps(two_fits(name, layout, int(classes))))
    else:
        main()
