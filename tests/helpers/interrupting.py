"""A process that interrupts its own fits: python -m helpers.interrupting NUMBER SEED IMPATIENCE.

Every fit is interrupted (SIGINT) at a random moment, looked at, gone on with, and at the
end compared bit for bit with one that was left in peace. IMPATIENCE is the share of fits
that are interrupted twice: the second time at once, wherever that is.
"""

import itertools
import signal
import sys
import threading
import time

import numpy as np

from helpers.estimators import ENDLESS, ESTIMATORS, fit, make, overlapping, parameters
from marginsvm import MaxMarginClassifier, check_certificate
from marginsvm import _threads as threads
from marginsvm.problem import matrix

RESULTS = ("margin_", "margin_bound_", "n_iter_", "coef_", "dual_coef_", "intercept_")


def problems(rng):
    """Estimators with their data, and how long they take."""
    for cls, kernel, k in itertools.product(ESTIMATORS, ("linear", "rbf"), (2, 3)):
        if kernel != "linear" and "kernel" not in parameters(cls):
            continue
        X, y = overlapping(rng, n=120, k=k)
        params = {
            "max_iter": 30,
            "C": 1.0,
            "kernel": kernel,
            "warm_start": True,
            **ENDLESS,
        }
        reference = fit(make(cls, **params), X, y)  # compiles what is compiled
        start = time.perf_counter()
        fit(make(cls, **params), X, y)
        yield make(cls, **params), X, y, reference, time.perf_counter() - start


class CtrlC:
    """Presses Ctrl-C while a fit runs: after ``first`` seconds, and ``again`` seconds later."""

    def __init__(self):
        self.fitting, self.presses = False, 0
        signal.signal(signal.SIGALRM, self.press)

    def press(self, signum, frame):
        if self.presses == 2 or not self.fitting:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        else:
            self.presses += 1
            signal.raise_signal(signal.SIGINT)

    def during(self, estimator, X, y, first, again):
        self.presses, caught = 0, False
        # numba's dispatcher may make a SystemError of the second one
        expected = (
            (KeyboardInterrupt, SystemError) if again > 0.0 else (KeyboardInterrupt,)
        )
        self.fitting = True
        try:
            signal.setitimer(signal.ITIMER_REAL, first, again)
            fit(estimator, X, y)
            self.fitting = False
        except expected:
            self.fitting = False
            caught = True
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        assert caught == (self.presses > 0), "an interrupt was lost"
        return self.presses


def look(estimator, X, y, impatient):
    """Whatever is published is a whole model with its proof; or there is nothing at all."""
    fitted = [name for name in vars(estimator) if name.endswith("_")]
    if fitted:
        statuses = ("interrupted", "max_iter", "no_margin", "stalled")
        assert estimator.status_ in statuses, estimator.status_
        assert estimator.predict(X).shape == y.shape
        assert check_certificate(estimator, X, y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not impatient:
        pool = threading.enumerate()[1:]  # one pool for all fits, and nothing else
        assert all(thread.name.startswith("marginsvm") for thread in pool), pool
        assert len(pool) < max(1, threads.n_threads()) ** 2, pool
        assert threads._inside == 0
    return bool(fitted)


def same(estimator, reference):
    """Bit for bit, where that is promised."""
    promised = not isinstance(estimator, MaxMarginClassifier)
    for name in RESULTS:
        if hasattr(reference, name) and (promised or name != "n_iter_"):
            result, expected = getattr(estimator, name), getattr(reference, name)
            rtol = 0.0 if promised else 1e-6
            atol = rtol * np.abs(expected).max()
            np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)
    if promised:
        for name in ("n_iter", "n_passes", "margin", "margin_bound"):
            np.testing.assert_array_equal(
                estimator.history_[name], reference.history_[name]
            )


def main(number, seed, impatience):
    matrix.BLOCK_BYTES = 2**11  # small data, too, are worked on by several threads
    rng = np.random.default_rng(seed)
    n_threads, usable, ctrl_c = threads.n_threads(), 0, CtrlC()
    known = list(problems(rng))
    for i in range(number):
        model, X, y, reference, seconds = known[i % len(known)]
        if getattr(model, "status_", "interrupted") != "interrupted":
            model.__dict__ = dict(model.get_params())  # anew
        again = (
            1e-4 + rng.exponential(0.1 * seconds) if rng.random() < impatience else 0.0
        )
        ctrl_c.during(model, X, y, rng.uniform(1e-6, 1.1 * seconds), again)
        usable += look(model, X, y, impatience > 0.0)
        if rng.random() < 0.5:
            same(fit(model, X, y), reference)
    assert impatience > 0.0 or threads.n_threads() == n_threads
    print("usable", usable)


if __name__ == "__main__":
    number, seed, impatience = sys.argv[1:]
    main(int(number), int(seed), float(impatience))
