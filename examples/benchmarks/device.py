"""Fits on a device, through torch, beside fits of the same examples by NumPy.

    SCIPY_ARRAY_API=1 python examples/benchmarks/device.py

With a GPU: a million rows of 1024 features in float32, two classes and a hundred. Without one,
torch computes on the CPU, on fewer and shorter rows, and the first line says so.

*Pass*: a product with a vector, the scores of all examples, and one from the other side, their sum
with weights. Its speed is in bytes of X that are read, beside that of a sum of all entries by
torch, which is what the memory gives. *Fit*: C = 1, to a certified gap of 1e-3. *Path*: ten values
of C. *L-BFGS*: torch's, of the same objective with the same intercept, until its value is as near
to the certified bound as a gap of 1e-3 is; it has no certificate of its own. *cuML*: its LinearSVC,
which penalises the intercept, where it is installed.
"""

import argparse
import time
import warnings

import numpy as np
import torch
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from marginsvm import MaxMarginClassifier, margin_path
from marginsvm.problem.matrix import Dense

warnings.simplefilter("ignore", ConvergenceWarning)
C, TOL, PATH = 1.0, 1e-3, 10
MOST_SECONDS = 120.0  # of L-BFGS


def clouds(n, d, k, seed=0):
    """Gaussian clouds that overlap, one for each class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += (rng.standard_normal((k, d)) * 2.0 / np.sqrt(d)).astype(np.float32)[y]
    return X, y


def seconds(work, repeat=1):
    """The least time of some calls, and the result of the last."""
    times, found = [], None
    for _ in range(repeat):
        synchronise()
        begin = time.perf_counter()
        found = work()
        synchronise()
        times.append(time.perf_counter() - begin)
    return min(times), found


def synchronise():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def passes(X):
    """Bytes per second of passes, and of a sum of all entries."""
    rows = Dense(X)
    n, d = X.shape
    rng, size = np.random.default_rng(0), X.element_size() * n * d
    w, v = (
        rng.standard_normal(d, dtype=np.float32),
        rng.standard_normal(n, dtype=np.float32),
    )
    memory = size / seconds(X.sum, 7)[0]
    print(f"memory, as a sum reads it: {memory / 1e9:8.1f} GB/s")
    for name, work in (
        ("scores", lambda: rows.times(w)),
        ("sums", lambda: rows.adjoint(v)),
    ):
        speed = size / seconds(work, 7)[0]
        print(
            f"a pass for {name:16s} {speed / 1e9:8.1f} GB/s, {speed / memory:.0%} of it"
        )
    speed = size / seconds(lambda: rows.times(w.astype(np.float64)), 3)[0]
    print(
        f"the same in float64:       {speed / 1e9:8.1f} GB/s, {speed / memory:.0%} of it"
    )


def objective(X, y, k):
    """Squared hinge of all classes together, as a function of one vector of parameters."""
    d = X.shape[1]
    if k == 2:
        sign = torch.where(y == 1, 1.0, -1.0).to(X.dtype)

        def two(p):
            slack = torch.relu(1.0 - sign * (X @ p[:d] + p[d]))
            return 0.5 * p[:d] @ p[:d] + C * (slack @ slack)

        return two, d + 1
    own = torch.nn.functional.one_hot(y, k).to(X.dtype)

    def many(p):
        W, b = p[: d * k].reshape(d, k), p[d * k :]
        F = X @ W + b
        slack = torch.relu(1.0 - ((F * own).sum(1, keepdim=True) - F)) * (1.0 - own)
        return 0.5 * (W * W).sum() + 0.5 * C * (slack * slack).sum()

    return many, d * k + k


def lbfgs(X, y, k, goal):
    """Value and seconds of L-BFGS until the goal is reached."""
    value_of, size = objective(X, y, k)
    p = torch.zeros(size, dtype=X.dtype, device=X.device, requires_grad=True)
    step = torch.optim.LBFGS(
        [p], max_iter=10, history_size=10, line_search_fn="strong_wolfe"
    )

    def closure():
        step.zero_grad()
        value = value_of(p)
        value.backward()
        return value

    begin, value = time.perf_counter(), np.inf
    while value > goal and time.perf_counter() - begin < MOST_SECONDS:
        step.step(closure)
        before, value = value, float(value_of(p.detach()))
        if value >= before:
            break
    synchronise()
    return value, time.perf_counter() - begin


def describe(name, spent, clf):
    print(
        f"{name:22s} {spent:8.2f} s  {clf.status_}, gap {clf.gap_:.1e}, {clf.n_iter_} rounds"
    )


def compare(n, d, k, there):
    """One problem on the host and on the device."""
    print(f"\n{n:,} x {d:,} float32, {k} classes")
    X_host, y_host = clouds(n, d, k)
    X, y = torch.asarray(X_host).to(there), torch.asarray(y_host).to(there)
    if k == 2:
        passes(X)
    spent, clf = seconds(lambda: MaxMarginClassifier(C=C, tol=TOL).fit(X_host, y_host))
    describe("fit, NumPy", spent, clf)
    with config_context(array_api_dispatch=True):
        spent, clf = seconds(lambda: MaxMarginClassifier(C=C, tol=TOL).fit(X, y))
        describe(f"fit, torch on {there}", spent, clf)
        if k == 2:
            Cs = np.geomspace(1e-3, C, PATH)
            spent, path = seconds(lambda: margin_path(X, y, Cs=Cs, tol=TOL))
            print(
                f"path of {PATH} values of C  {spent:8.2f} s  gaps up to {path.gaps.max():.1e}"
            )
    bound = 0.5 / clf.margin_bound_**2
    value, spent = lbfgs(X, y, k, bound / (1.0 - TOL) ** 2)
    print(
        f"L-BFGS, torch on {there:5s} {spent:8.2f} s  {value / bound - 1:.1e} above the bound"
    )
    peer(X, y)


def peer(X, y):
    """cuML's LinearSVC, where it is installed."""
    try:
        from cuml.svm import LinearSVC
    except ImportError:
        print("cuML is not installed here")
        return
    spent, _ = seconds(lambda: LinearSVC(C=C, loss="squared_hinge").fit(X, y))
    print(f"LinearSVC of cuML      {spent:8.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    gpu = torch.cuda.is_available()
    parser.add_argument("--rows", type=int, default=10**6 if gpu else 50_000)
    parser.add_argument("--features", type=int, default=1024 if gpu else 256)
    parser.add_argument(
        "--classes", type=int, nargs="*", default=[2, 100] if gpu else [2, 10]
    )
    given = parser.parse_args()
    there = "cuda" if gpu else "cpu"
    name = torch.cuda.get_device_name() if gpu else "none; torch computes on the CPU"
    print(
        f"GPU: {name}; torch {torch.__version__}, {torch.get_num_threads()} threads of the CPU"
    )
    for k in given.classes:
        compare(given.rows, given.features, k, there)


if __name__ == "__main__":
    main()
