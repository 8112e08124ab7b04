"""What may happen to a process while it fits: interrupts, death, full disks, threads, forks.

MARGINSVM_FAULTS multiplies the number of faults, for a long run.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from estimators import ENDLESS, ESTIMATORS, fit, make, overlapping

HERE = Path(__file__).parent
MANY = int(os.environ.get("MARGINSVM_FAULTS", "1"))
each = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)


def run(script, *args):
    """What a Python process prints that runs one of the scripts beside this file."""
    command = [sys.executable, HERE / script, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300 * MANY, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("impatience", [0.0, 0.3])
def test_interrupts(impatience, rng):
    number = 250 * MANY
    out = run("interrupting.py", number, rng.integers(1000), impatience)
    assert int(out.split()[-1]) >= 0.25 * number


class Unmoved:
    """A handler of SIGINT that raises nothing."""

    calls = 0

    def __call__(self, signum, frame):
        self.calls += 1


def test_a_handler_that_does_not_raise_is_called_and_the_fit_goes_on(rng):
    X, y = overlapping(rng)
    before, handler = signal.getsignal(signal.SIGINT), Unmoved()

    def kernel(A, B):
        signal.raise_signal(signal.SIGINT)
        return A @ B.T

    try:
        signal.signal(signal.SIGINT, handler)
        estimator = fit(make(ESTIMATORS[1], C=1.0, kernel=kernel, max_iter=5, **ENDLESS), X, y)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert handler.calls >= 1
    assert (estimator.status_, estimator.n_iter_) == ("max_iter", 5)


@each
def test_a_fit_that_fails_leaves_the_model_as_it_was(cls, rng):
    X, y = overlapping(rng)
    estimator = fit(make(cls, C=1.0, max_iter=5), X, y)
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match="class"):
        estimator.fit(np.hstack([X, X]), np.zeros(len(y)))
    assert vars(estimator) == before


def test_nothing_is_left_of_an_earlier_fit(rng):
    X, y = overlapping(rng)
    estimator = fit(make(ESTIMATORS[1], C=1.0, max_iter=5), X, y)
    fit(estimator.set_params(kernel="rbf"), X, y)
    assert not hasattr(estimator, "coef_")


def test_models_of_zeros_predict(rng):
    X, y = np.zeros((4, 2)), [0, 1, 0, 1]
    estimator = fit(make(ESTIMATORS[1], kernel="rbf"), X, y)
    assert estimator.decision_function(X).tolist() == [0.0] * 4
