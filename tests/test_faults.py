"""What may happen to a process while it fits: interrupts, threads, forks.

MARGINSVM_FAULTS multiplies the number of faults, for a long run.
"""

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from helpers.battery import each
from helpers.estimators import ENDLESS, AtRound, bits, everything, fit, make, overlapping, quiet
from sklearn.base import clone

from marginsvm import DualLpRegressor, MomentumMarginClassifier, check_certificate

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None

HERE = Path(__file__).parent
MANY = int(os.environ.get("MARGINSVM_FAULTS", "1"))


def run(script, *args):
    """What a Python process prints that runs one of the programs in ``helpers``."""
    command = [sys.executable, "-m", f"helpers.{script}", *map(str, args)]
    # Dask and joblib limit the threads of all that this process starts from then on
    env = {name: v for name, v in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300 * MANY, check=False, env=env, cwd=HERE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("impatience", [0.0, 0.3][:MANY])  # twice: in long runs only
def test_interrupts(impatience, rng):
    number = 250 * MANY
    out = run("interrupting", number, rng.integers(1000), impatience)
    assert int(out.split()[-1]) >= 0.25 * number


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_forks_while_other_threads_fit(rng):
    number = 16 * MANY
    assert run("forking", number, rng.integers(1000)).split()[-1] == str(number)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_the_same_bits_beside_other_fits(backend, rng):
    cases = list(everything(rng))
    jobs = [joblib.delayed(bits)(*case) for case in cases]
    with quiet():
        warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # of forks
        alone = [bits(*case) for case in cases]
        together = joblib.Parallel(n_jobs=2, backend=backend)(jobs)
    for case, expected, found in zip(cases, alone, together, strict=True):
        assert found == expected, case[:2]


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
        estimator = fit(
            make(MomentumMarginClassifier, C=1.0, kernel=kernel, max_iter=5, **ENDLESS), X, y
        )
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert handler.calls >= 1
    assert (estimator.status_, estimator.n_iter_) == ("max_iter", 5)


@pytest.mark.callbacks
def test_interrupts_of_a_fit_within_a_fit(rng):
    X, y = overlapping(rng)
    inner, outer = (make(MomentumMarginClassifier, C=1.0, **ENDLESS) for _ in range(2))
    inner.set_callbacks(AtRound(3, lambda: signal.raise_signal(signal.SIGINT)))
    outer.set_callbacks(AtRound(2, lambda: inner.fit(X, y)))
    with pytest.raises(KeyboardInterrupt):
        outer.fit(X, y)
    for estimator, n_iter in ((inner, 3), (outer, 2)):
        assert (estimator.status_, estimator.n_iter_) == ("interrupted", n_iter)
        assert check_certificate(estimator, X, y)


def test_a_second_interrupt_does_not_wait(rng):
    X, y = overlapping(rng)
    calls = []

    def kernel(A, B):  # slow, with an impatient user
        calls.append(len(A))
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        calls.append("this is not reached")
        raise AssertionError

    estimator = make(MomentumMarginClassifier, kernel=kernel)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, y)
    assert len(calls) == 1
    assert not hasattr(estimator, "status_")


@pytest.mark.callbacks
def test_interrupts_of_a_regressor(rng):
    X = rng.standard_normal((60, 20))
    y = X @ rng.standard_normal(20) + 0.1 * rng.standard_normal(60)
    whole = DualLpRegressor(epsilon=0.3, random_state=0).fit(X, y)
    stopped = clone(whole).set_callbacks(AtRound(5, lambda: signal.raise_signal(signal.SIGINT)))
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y)
    assert (stopped.status_, stopped.n_iter_) == ("interrupted", 5)
    assert check_certificate(stopped, X, y)
    stopped.set_callbacks().set_params(warm_start=True).fit(X, y)
    np.testing.assert_array_equal(stopped.coef_, whole.coef_)


@pytest.mark.callbacks
def test_interrupts_of_fits_to_blocks(rng):
    X, y = overlapping(rng)
    blocks = [(X[:25], y[:25]), (X[25:], y[25:])]
    with quiet():
        whole = make(MomentumMarginClassifier, C=1.0, max_iter=9, **ENDLESS).fit_blocks(blocks)
        stopped = make(MomentumMarginClassifier, C=1.0, max_iter=9, **ENDLESS)
        stopped.set_callbacks(AtRound(5, lambda: signal.raise_signal(signal.SIGINT)))
        with pytest.raises(KeyboardInterrupt):
            stopped.fit_blocks(blocks)
        assert (stopped.status_, stopped.n_iter_) == ("interrupted", 5)
        stopped.set_callbacks().set_params(warm_start=True).fit_blocks(blocks)
    assert stopped.margin_ == whole.margin_
    np.testing.assert_array_equal(stopped.coef_, whole.coef_)


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
    estimator = fit(make(MomentumMarginClassifier, C=1.0, max_iter=5), X, y)
    fit(estimator.set_params(kernel="rbf"), X, y)
    assert not hasattr(estimator, "coef_")


def test_models_of_zeros_predict(rng):
    X, y = np.zeros((4, 2)), [0, 1, 0, 1]
    estimator = fit(make(MomentumMarginClassifier, kernel="rbf"), X, y)
    assert estimator.decision_function(X).tolist() == [0.0] * 4
