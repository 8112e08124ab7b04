"""Fits in child processes, so that one may be stopped and its memory be measured by itself.

A child holds a data set and fits estimators to it when it is told to. Its parent waits for the
answer, for so long and while the child holds so much memory, and ends it otherwise: first by an
interrupt, as Ctrl-C does, so that a fit that serves interrupts can say how far it came.
"""

import os

for _library in (
    "OMP",
    "OPENBLAS",
    "MKL",
    "NUMBA",
):  # children inherit it, before they import
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import ctypes
import multiprocessing
import signal
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import scipy.sparse as sp

MEGABYTE = 2**20  # bytes
# memory beyond X that a fit may take, or the size of X if that is more
RULE = 512 * MEGABYTE
# CPU seconds from an interrupt to the end of a process that does not serve it
GRACE = 5.0
PATIENCE = 10.0  # seconds by the clock per CPU second waited for, on a busy machine
LOOKS = 0.02  # seconds between two looks at the memory of a child


class ChildError(Exception):
    """The child did not answer; the reason is its only argument, in a word or a sentence."""


def save(folder, X, y, weight=None):
    """Save a data set for children, each array in a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"y": y} if weight is None else {"y": y, "weight": weight}
    if sp.issparse(X):
        parts |= {
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
            "shape": X.shape,
        }
    else:
        parts["X"] = X
    for old in folder.glob("*.npy"):
        old.unlink()
    for name, array in parts.items():
        np.save(folder / f"{name}.npy", array)


def saved(folder):
    """X, y and the weights (or None) of a folder that ``save`` wrote."""
    parts = {path.stem: np.load(path) for path in Path(folder).glob("*.npy")}
    if "X" in parts:
        X = parts["X"]
    else:
        arrays = parts["data"], parts["indices"], parts["indptr"]
        X = sp.csr_matrix(arrays, shape=tuple(parts["shape"]))
    return X, parts["y"], parts.get("weight")


def size_of(X):
    """Bytes of X as it is kept in memory."""
    return (
        X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        if sp.issparse(X)
        else X.nbytes
    )


def memory_of(pid="self"):
    """Memory of a process in bytes: now, and the most so far (since ``forget_peak``)."""
    text = Path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in text.splitlines())
    return tuple(1024 * int(lines[name].split()[0]) for name in ("VmRSS", "VmHWM"))


def cpu_of(pid):
    """CPU seconds that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def forget_peak():
    """Let the most memory so far begin from now.

    It is the peak of ``ru_maxrss``, but for one thing: that one of a process includes its
    parent's, from before the process began a program of its own.
    """
    # what was freed goes back to the system, as far as it can
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def measured(estimator, X, y, weight=None):
    """Fit, and say what it took; an interrupted fit counts if it left a model."""
    keywords = {} if weight is None else {"sample_weight": weight}
    forget_peak()
    before, begin, cpu = memory_of()[0], time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with suppress(KeyboardInterrupt):
            estimator.fit(X, y, **keywords)
    took = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu}
    peak = memory_of()[1]
    took |= {"peak": peak, "beyond": max(0, peak - before), "size": size_of(X)}
    took["warning"] = "; ".join(sorted({warning.category.__name__ for warning in said}))
    names = ("status_", "gap_", "margin_", "margin_bound_", "n_iter_", "separable_")
    took |= {name[:-1]: getattr(estimator, name, None) for name in names}
    if hasattr(estimator, "history_"):
        took["n_passes"] = float(
            np.append(estimator.history_["n_passes"], np.nan)[-2:][0]
        )
    return took


def check(estimator, X, y, weight=None):
    """The reason why the certificate is refused, or an empty string."""
    from marginsvm import check_certificate

    return check_certificate(estimator, X, y, weight).reason


def objective(estimator, X, y):
    """The squared hinge's, ``|w|^2 / 2 + C sum of squared slack``, with the best intercept.

    For two classes. The margin of ``MaxMarginClassifier(C=C)`` is ``1 / sqrt(2 objective)``.
    """
    from scipy.optimize import brentq

    w = np.ravel(estimator.coef_)
    sign = np.where(y == estimator.classes_[1], 1.0, -1.0)
    scores = X @ w

    def slack(b):
        return np.maximum(0.0, 1.0 - sign * (scores + b))

    far = np.abs(scores).max() + 1.0  # there, all slack is that of one class
    b = brentq(lambda b: -(sign @ slack(b)), -far, far, xtol=1e-14 * far, rtol=1e-14)
    return 0.5 * (w @ w) + estimator.C * np.sum(slack(b) ** 2)


def warm_up(estimator, X, y, weight=None):
    """Fit small sets of several kinds, so that imports and compiling are not in what follows."""
    from sklearn.base import clone

    rng, small = np.random.default_rng(0), clone(estimator)
    if hasattr(small, "max_iter"):
        small.set_params(max_iter=3)
    for rows, classes in ((300, 2), (900, 2), (300, 3)):
        for form in (np.asarray, sp.csr_matrix):
            few = np.abs(rng.standard_normal((rows, 20))) * (
                rng.random((rows, 20)) < 0.2
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                small.fit(form(few), rng.permutation(np.arange(rows) % classes))


def _serve(connection, load, arguments):
    """Load the data, then call the functions that the parent names with an estimator and them."""
    data = load(*arguments)
    connection.send(("done", None, None))
    estimator = None
    while True:
        try:
            function, given = connection.recv()
            estimator = estimator if given is None else given
            answer = ("done", function(estimator, *data), None)
        except (EOFError, OSError):
            return
        except KeyboardInterrupt:
            answer = ("failed", None, "interrupted, without a model")
        except Exception as error:  # a refusal is an answer, too
            answer = ("failed", None, f"{type(error).__name__}: {error}")
        with suppress(KeyboardInterrupt):
            connection.send(answer)


class Child:
    """A process with a data set, which works on it when it is told to.

    Parameters
    ----------
    load : callable
        ``load(*arguments)`` gives X, y and the weights (or None), such as ``saved`` of a folder.
    memory : int
        Most memory of the process, in bytes; it is ended above.
    """

    def __init__(self, load, *arguments, memory=8 << 30):
        context = multiprocessing.get_context("spawn")
        self.memory, self.peak, self.seconds = memory, 0, 0.0
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, load, arguments), daemon=True
        )
        self._process.start()
        theirs.close()
        self._wait(120.0)

    def ask(self, function, estimator=None, seconds=120.0):
        """Value of ``function(estimator, X, y, weight)``; None: the estimator of the last call.

        ``seconds`` are of CPU time, as the machine may have other work to do.
        """
        try:
            self._connection.send((function, estimator))
        except OSError:
            raise ChildError("its process has ended") from None
        return self._wait(seconds)

    def _wait(self, seconds):
        begin, interrupted, cpu, past = time.monotonic(), False, 0.0, 0.0
        with suppress(OSError):
            past = cpu_of(self._process.pid)
        while not self._connection.poll(LOOKS):
            self.seconds = time.monotonic() - begin
            with suppress(OSError, KeyError):
                self.peak = max(self.peak, memory_of(self._process.pid)[1])
                cpu = cpu_of(self._process.pid) - past
            if not self._process.is_alive():
                raise ChildError(f"died with exit code {self._process.exitcode}")
            if self.peak > self.memory:
                self.end()
                raise ChildError(f"ended, as it took {self.peak / MEGABYTE:.0f} MB")
            if max(cpu, self.seconds / PATIENCE) > seconds + GRACE * interrupted:
                if interrupted:
                    self.end()
                    raise ChildError(
                        f"ended after {seconds + GRACE:.0f} s, deaf to an interrupt"
                    )
                os.kill(self._process.pid, signal.SIGINT)
                interrupted = True
        try:
            kind, value, reason = self._connection.recv()
        except (EOFError, OSError):
            self.end()
            raise ChildError(f"died with exit code {self._process.exitcode}") from None
        if kind == "failed":
            raise ChildError(reason)
        return value

    def end(self):
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()
