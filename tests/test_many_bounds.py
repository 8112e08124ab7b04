"""The bounds of fit_many hold in rational arithmetic, whatever weights they are computed from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginsvm import MaxMarginClassifier, check_certificate, fit_many, many
from marginsvm.certificate.check import RTOL as _FLOAT_RTOL
from marginsvm.solvers.interior_point import stacked
from marginsvm.solvers.pivoting import pivoted

LOSSES = {"hard": {}, "squared": {"C": 2.0}, "hinge": {"C": 0.5, "loss": "hinge"}}


def problems(seed, n=9, d=4, n_problems=8, offset=0.0, unit=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_problems, n, d))
    y = np.arange(n) % 2
    X[:, :, 0] += np.where(y == 1, 2.0, -2.0)
    X[:, 2] = X[:, 0]  # equal examples
    return unit * (X + offset), y


def off_by(solver, noise, seed):
    """The solver, with solutions that are off by a relative error."""
    rng = np.random.default_rng(seed)

    def solved(*args, **options):
        *found, done = solver(*args, **options)
        return *(x * (1.0 + noise * rng.standard_normal(x.shape)) for x in found), done

    return solved


def fitted(estimator, X, y, noise, seed, monkeypatch):
    with monkeypatch.context() as patch:
        for solver in (pivoted, stacked):
            patch.setattr(many, solver.__name__, off_by(solver, noise, seed))
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


def unbalanced(alpha, y, upper):
    return alpha * (1.0 + 0.01 * (y > 0.0))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["UNIT", "SURCHARGE", "TOO_GOOD"])
def test_bounds_without_their_allowances_are_caught(loss, name, monkeypatch):
    """Mutants: no rounding at all, weights off balance for nothing, a margin that is too good."""
    X, y = problems(0, n_problems=60)
    if name == "UNIT":
        monkeypatch.setattr(many, "GAMMA", lambda n: 0.0)
        monkeypatch.setattr(many, "FEW", 0.0)
    elif name == "SURCHARGE":
        monkeypatch.setattr(many, "ORIGINS", 0.0)
        monkeypatch.setattr(many, "balanced", unbalanced)
    else:
        monkeypatch.setattr(many, "FEW", -1e-13)
    fits = fitted(MaxMarginClassifier(**LOSSES[loss]), X, y, 1e-4, 0, monkeypatch)
    checks = [check_certificate(fits[i], X[i], y, exact=True) for i in range(60)]
    assert not all(checks)


def test_the_smallest_allowance_is_still_seen():
    """What is allowed for is far below what a check in floats would see."""
    X, y = problems(1)
    fits = fit_many(MaxMarginClassifier(C=1.0), X, y)
    assert fits.gap.max() < 1e-3 * _FLOAT_RTOL


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("loss", "d"), [("squared", 5), *((loss, 40) for loss in LOSSES)])
def test_methods_agree(loss, d, intercept):
    """Pivoting, by the features and by the rows, finds what interior points find."""
    X, y = problems(3, n=20, d=d)
    y = np.broadcast_to(2.0 * y - 1.0, X.shape[:2])
    price = {"hard": {}, "squared": {"ridge": 0.25}, "hinge": {"upper": 0.5}}[loss]
    price = {name: np.full(y.shape, value) for name, value in price.items()}
    w, f, alpha, solved = pivoted(X, y, **price, intercept=intercept)
    v, g, _, found = stacked(X, y, **price, intercept=intercept, tol=1e-12)
    assert solved.all()
    assert found.all()
    if loss == "hard":  # a game: the smallest margin is its level
        v, g = v / g[:, -1:], g / g[:, -1:]
    np.testing.assert_allclose(w, v, atol=1e-5)
    if intercept:
        np.testing.assert_allclose(f[:, 0], g[:, 0], atol=1e-5)
    # each is the other's proof, at full precision
    np.testing.assert_allclose(((y * alpha)[:, None] @ X)[:, 0], w, atol=1e-12)


def test_examples_that_all_share_are_solved_as_one_stack():
    X, y = problems(4, n=20, d=40)
    y = np.where(np.random.default_rng(0).permuted(np.tile(y, (5, 1)), axis=1) > 0, 1.0, -1.0)
    for price in ({}, {"ridge": np.full(y.shape, 0.25)}):
        one, each = pivoted(X[:1], y, **price), pivoted(np.repeat(X[:1], 5, axis=0), y, **price)
        np.testing.assert_allclose(one[0], each[0], atol=1e-12)


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
    monkeypatch.setattr(many, "balanced", unbalanced)
    fits = fitted(MaxMarginClassifier(), X, y, 0.0, 0, monkeypatch)
    assert not fits.single
    for i, fit in enumerate(fits):
        check = check_certificate(fit, X[i], y, exact=True)
        assert check, check.reason
