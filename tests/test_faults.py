"""What may happen to a process while it fits: interrupts, threads, forks.

MARGINSVM_FAULTS multiplies the number of faults, for a long run.
"""

import os
import signal
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from helpers.battery import each
from helpers.estimators import ENDLESS, AtRound, bits, everything, fit, make, overlapping, quiet
from helpers.fresh import python

from marginsvm import DualLpRegressor, MomentumMarginClassifier, check_certificate

HERE = Path(__file__).parent
MANY = int(os.environ.get("MARGINSVM_FAULTS", "1"))


def run(script, *args):
    """The last word that one of the programs in ``helpers`` prints."""
    printed = python("-m", f"helpers.{script}", *args, cwd=HERE, timeout=300 * MANY)
    return int(printed.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("impatience", [0.0, 0.3][:MANY])  # twice: in long runs only
def test_interrupts(impatience, rng):
    number = 250 * MANY
    assert run("interrupting", number, rng.integers(1000), impatience) >= 0.25 * number


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_forks_while_other_threads_fit(rng):
    number = 16 * MANY
    assert run("forking", number, rng.integers(1000)) == number


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


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_a_handler_that_does_not_raise_is_called_and_the_fit_goes_on(rng):
    X, y = overlapping(rng)
    calls = []

    def handler(signum, frame):
        calls.append(signum)

    def kernel(A, B):
        interrupt()
        return A @ B.T

    estimator = make(MomentumMarginClassifier, C=1.0, kernel=kernel, max_iter=5, **ENDLESS)
    before = signal.signal(signal.SIGINT, handler)
    try:
        fit(estimator, X, y)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls
    assert (estimator.status_, estimator.n_iter_) == ("max_iter", 5)


def test_a_second_interrupt_does_not_wait(rng):
    calls = []

    def kernel(A, B):  # slow, with an impatient user
        calls.append(len(A))
        interrupt()
        interrupt()
        calls.append("this is not reached")
        raise AssertionError

    estimator = make(MomentumMarginClassifier, kernel=kernel)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(*overlapping(rng))
    assert len(calls) == 1
    assert not hasattr(estimator, "status_")


def stop(estimator, number, fit, *data):
    """Interrupt a fit in the round of a number."""
    estimator.set_callbacks(AtRound(number, interrupt))
    with pytest.raises(KeyboardInterrupt), quiet():
        fit(*data)
    assert (estimator.status_, estimator.n_iter_) == ("interrupted", number)
    estimator.set_callbacks().set_params(warm_start=True)


@pytest.mark.callbacks
def test_interrupts_of_a_fit_within_a_fit(rng):
    X, y = overlapping(rng)
    inner, outer = (make(MomentumMarginClassifier, C=1.0, **ENDLESS) for _ in range(2))
    inner.set_callbacks(AtRound(3, interrupt))
    outer.set_callbacks(AtRound(2, lambda: inner.fit(X, y)))
    with pytest.raises(KeyboardInterrupt):
        outer.fit(X, y)
    for estimator, n_iter in ((inner, 3), (outer, 2)):
        assert (estimator.status_, estimator.n_iter_) == ("interrupted", n_iter)
        assert check_certificate(estimator, X, y)


@pytest.mark.callbacks
def test_an_interrupted_regressor_goes_on(rng):
    X = rng.standard_normal((60, 20))
    y = X @ rng.standard_normal(20) + 0.1 * rng.standard_normal(60)
    whole, stopped = (DualLpRegressor(epsilon=0.3, random_state=0) for _ in range(2))
    stop(stopped, 5, stopped.fit, X, y)
    assert check_certificate(stopped, X, y)
    np.testing.assert_array_equal(stopped.fit(X, y).coef_, whole.fit(X, y).coef_)


@pytest.mark.callbacks
def test_an_interrupted_fit_to_blocks_goes_on(rng):
    X, y = overlapping(rng)
    blocks = [(X[:25], y[:25]), (X[25:], y[25:])]
    params = {"C": 1.0, "max_iter": 9, **ENDLESS}
    whole, stopped = (make(MomentumMarginClassifier, **params) for _ in range(2))
    stop(stopped, 5, stopped.fit_blocks, blocks)
    with quiet():
        stopped.fit_blocks(blocks)
        whole.fit_blocks(blocks)
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
