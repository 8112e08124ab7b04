"""The bounds of fit_many hold in rational arithmetic, whatever weights they are computed from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginsvm import MaxMarginClassifier, check_certificate, fit_many
from marginsvm.certificate.check import RTOL as _FLOAT_RTOL
from marginsvm.many import stacked_bounds, stacked_solving
from marginsvm.many.interior import inside
from marginsvm.many.stack import Stack
from marginsvm.many.stacked_bounds import proved
from marginsvm.many.stacked_pivoting import directly, proximal

LOSSES = {"hard": {}, "squared": {"C": 2.0}, "hinge": {"C": 0.5, "loss": "hinge"}}


def problems(seed, n=9, d=4, n_problems=8, offset=0.0, unit=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_problems, n, d))
    y = np.arange(n) % 2
    X[:, :, 0] += np.where(y == 1, 2.0, -2.0)
    X[:, 2] = X[:, 0]  # equal examples
    return unit * (X + offset), y


def off_by(noise, seed):
    """The solver, with solutions that are off by a relative error."""
    rng, real = np.random.default_rng(seed), stacked_solving._solved

    def solved(statement, loss, *, singular):
        found = real(statement, loss, singular=singular)
        found.v *= 1.0 + noise * rng.standard_normal(found.v.shape)
        found.b *= 1.0 + noise * rng.standard_normal(found.b.shape)
        return found

    return solved


def fitted(estimator, X, y, noise, seed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(stacked_solving, "_solved", off_by(noise, seed))
        return fit_many(estimator.set_params(tol=0.999), X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**16),
    noise=st.sampled_from([0.0, 1e-12, 1e-3]),
    offset=st.sampled_from([0.0, 3.0, 1e3]),
    unit=st.sampled_from([1e-20, 1.0, 1e20]),
    intercept=st.booleans(),
)
def test_bounds_hold_in_rationals(loss, seed, noise, offset, unit, intercept):
    X, y = problems(seed, offset=offset, unit=unit)
    C = {} if loss == "hard" else {"C": LOSSES[loss]["C"] / unit**2}
    options = LOSSES[loss] | C | {"fit_intercept": intercept}
    with pytest.MonkeyPatch.context() as patch:
        fits = fitted(MaxMarginClassifier(**options), X, y, noise, seed, patch)
    for i in set(range(len(fits))) - set(fits.single):
        check = check_certificate(fits[i], X[i], y, exact=True)
        assert check, check.reason
        assert 0.0 < fits.margin[i] <= check.margin
        assert check.margin_bound <= fits.margin_bound[i]
    assert len(fits.single) < len(fits) or offset > 0.0 or noise > 0.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["UNIT", "SURCHARGE", "TOO_GOOD"])
def test_bounds_without_their_allowances_are_caught(loss, name, monkeypatch):
    """Mutants: no rounding at all, weights off balance for nothing, and a margin of the middle."""
    X, y = problems(0, n_problems=60)
    if name == "UNIT":
        for constant in ("UNIT", "FEW", "PAIRWISE"):
            monkeypatch.setattr(stacked_bounds, constant, 0.0)
    elif name == "SURCHARGE":
        monkeypatch.setattr(stacked_bounds, "IMBALANCE_SURCHARGE", 0.0)
        monkeypatch.setattr(stacked_bounds, "_evened", lambda u, y: u * (1.0 + 0.01 * (y > 0.0)))
    else:
        monkeypatch.setattr(
            stacked_bounds, "_lower", lambda loss, norm, margins: margins.mean(1) / norm
        )
    fits = fitted(MaxMarginClassifier(**LOSSES[loss]), X, y, 1e-4, 0, monkeypatch)
    checks = [check_certificate(fits[i], X[i], y, exact=True) for i in range(60)]
    assert not all(checks)


def test_the_smallest_allowance_is_still_seen():
    """What is allowed for is far below what a check in floats would see."""
    X, y = problems(1)
    fits = fit_many(MaxMarginClassifier(C=1.0), X, y)
    assert fits.gap.max() < 1e-3 * _FLOAT_RTOL


@pytest.mark.parametrize("method", [proximal, inside])
@pytest.mark.parametrize("loss", LOSSES)
def test_methods_agree(method, loss):
    """Each finds the solutions that the others find, to nine digits."""
    X, y = problems(3, n=20, d=40)
    stack = Stack.of(X, balanced=True)
    signs = np.broadcast_to(2.0 * y - 1.0, X.shape[:2])
    options = LOSSES[loss]
    costs = np.full(signs.shape, options.get("C", np.inf))
    price = stacked_bounds.Loss("loss" in options, costs)
    statement = price.statement(stack.K, signs, balanced=True)
    one, other = directly(statement), method(statement)
    assert one.done.all()
    assert other.done.all()
    g, h = (np.einsum("bij,bj->bi", stack.K, found.v) for found in (one, other))
    np.testing.assert_allclose(g, h, atol=1e-9)  # the weights of equal examples may differ
    fits = proved(stack, statement, price, other.v, other.b)
    assert fits.gap.max() < 1e-9


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_classes_that_overlap_are_fitted_together(C):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 60, 5)), np.arange(60) % 2
    for loss in ("hinge", "squared_hinge"):
        fits = fit_many(MaxMarginClassifier(C=C, loss=loss), X, y)
        assert not fits.single
        assert fits.gap.max() < 1e-6


def test_weights_off_balance_are_charged_for(monkeypatch):
    """The bound of weights that do not balance is larger by what an intercept could add."""
    X, y = problems(0)
    monkeypatch.setattr(stacked_bounds, "_evened", lambda u, y: u * (1.0 + 0.01 * (y > 0.0)))
    fits = fitted(MaxMarginClassifier(), X, y, 0.0, 0, monkeypatch)
    assert not fits.single
    for i, fit in enumerate(fits):
        check = check_certificate(fit, X[i], y, exact=True)
        assert check, check.reason
