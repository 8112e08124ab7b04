"""Small problems that have ended in an error that was none of the user's."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.estimators import (
    ESTIMATORS,
    fit,
    make,
    needs_more_digits,
    overlapping,
    separable,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from marginsvm import (
    DualLpRegressor,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    audit,
    check_certificate,
    check_separability,
    check_separability_proof,
    fit_many,
)
from marginsvm.papers.momentum import Momentum
from marginsvm.problem.norms import LpNorm

each_form = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])


@pytest.mark.parametrize(
    "values", [[0.0, 0.0, 0.0], [1.0, 2.0, 0.0]], ids=["all", "one row"]
)
def test_rows_of_zeros_that_are_all_stored(values):
    """As a matrix has them whose entries were set to 0; without an intercept."""
    X, y = sp.csr_array((np.array(values), [0, 1, 0], [0, 1, 2, 3]), (3, 2)), [0, 1, 1]
    for cls in ESTIMATORS:
        model = fit(make(cls, fit_intercept=False, max_iter=20), X, y)
        check_certificate(model, X, y)
        assert model.separable_ is not True
    assert not check_separability(X, y, fit_intercept=False).separable


@each_form
def test_a_constant_column_in_huge_units(form):
    X, y = form(np.array([[1e24, -1e-45, 1e-14], [1e24, 3e-45, 3e-14]])), [0, 1]
    model = fit(MaxMarginClassifier(), X, y)
    check_certificate(model, X, y)
    assert model.margin_ == pytest.approx(1e-14)


@pytest.mark.parametrize("seed", [63, *range(8)])
def test_a_soft_margin_is_advised_that_a_fit_finds(seed):
    """Of one-hot rows of columns in units of 1e-81 and 1e-124, for which costs may overflow."""
    rng = np.random.default_rng(seed)
    X, y = (
        np.eye(3)[rng.integers(0, 3, 8)] * rng.choice([1e-81, 1e-124], 3),
        np.arange(8) % 2,
    )
    with pytest.warns(ConvergenceWarning, match="C < inf gives a soft margin"):
        MaxMarginClassifier(fit_intercept=False).fit(X, y)
    assert fit(MaxMarginClassifier(C=1e150, fit_intercept=False), X, y).margin_ > 0.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", [0, 8, 36])
def test_examples_on_a_line_in_wild_units(fit_intercept, seed):
    """Features that are left free one after the other give predictors too long for float64."""
    rng = np.random.default_rng(seed)
    X = np.outer(rng.normal(size=7), 10.0 ** rng.integers(-300, 131, 6).astype(float))
    y = np.array([0, 4, 1, 1, 3, 5, 2])
    report = check_separability(X, y, fit_intercept=fit_intercept)
    assert check_separability_proof(report, X, y)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_gamma_of_sparse_features_far_from_zero(kernel):
    """The mean of squares less the square of the mean, of numbers of 1e9, is only rounding."""
    far = np.full(7, 3.3e9)
    X, y = sp.csr_array(np.column_stack([far, far + np.arange(7)])), np.arange(7) % 3
    params = {"kernel": kernel, "C": 1.0, "max_iter": 20}
    model, dense = (fit(MaxMarginClassifier(**params), Z, y) for Z in (X, X.toarray()))
    assert check_certificate(model, X, y)
    assert model._gamma == pytest.approx(dense._gamma, rel=1e-6)


@each_form
@pytest.mark.parametrize("n", [3, 7, 10])
def test_features_that_are_all_equal_have_no_variance(n, form):
    X, y = form(np.full((n, 2), 0.1)), np.arange(n) % 3
    model = fit(MaxMarginClassifier(kernel="poly", C=1.0), X, y)
    assert model._gamma == 1.0
    assert check_certificate(model, X, y)


def test_weights_and_units_whose_product_overflows(rng):
    X, y = overlapping(rng, n=12)
    weight = np.where(np.arange(12) % 3, 1e10, 1.0)
    model = fit(MaxMarginClassifier(), X * 1e150, y, sample_weight=weight)
    assert model.status_ == "no_margin"
    search = fit(MaxMarginClassifierCV(Cs=3, cv=2), X * 1e150, y, sample_weight=weight)
    assert search.C_ > 0.0


def is_checked_or_refused(model, X, y, too_large, message):
    """Whether a fit is confirmed, or refused with the message where products are too large."""
    if too_large:
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    else:
        assert check_certificate(fit(model, X, y), X, y)


@pytest.mark.parametrize("unit", [1e-150, 1e-80, 1e80, 1e150])
@pytest.mark.parametrize("C", [1e-300, 1e-12, 1e12, 1e300])
def test_the_hinge_loss_in_all_units(unit, C, rng):
    X, y = overlapping(rng, n=20)
    message = r"C and sample weights times squared norms come to .*hinge"
    model = MaxMarginClassifier(C=C, loss="hinge")
    is_checked_or_refused(model, X * unit, y, C * unit**2 > 1e90, message)


@pytest.mark.parametrize(("unit", "C"), [(1e150, 1e12), (1e75, 1e12), (1e-150, 1e-300)])
def test_soft_intervals_in_all_units(unit, C, rng):
    X, y = rng.normal(size=(12, 2)) * unit, rng.integers(0, 3, 12)
    model = DualLpRegressor(C=C, max_iter=20, random_state=0, fit_intercept=False)
    message = r"soft intervals compute with .* at most: scale X"
    is_checked_or_refused(model, X, y, C * unit**2 > 1e152, message)


@each_form
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_numbers_that_float32_cannot_divide_by_are_refused(cls, form, rng):
    X, y = overlapping(rng, n=12)
    X, model = (
        form((X * 1e-40).astype(np.float32)),
        make(cls, max_iter=5, fit_intercept=False),
    )
    with pytest.raises(
        ValueError, match="float32 cannot be divided: scale X, or pass it as"
    ):
        model.fit(X, y)
    fit(model, X.astype(np.float64), y)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_squared_slack_that_is_nothing_beside_the_rows(C):
    """Weights of a soft margin sum to its inverse square, in radii: times rows, they overflow."""
    X = np.random.default_rng(0).integers(0, 2, (20, 4)) * [1e-71, 1e6, 1e14, 1e129]
    y = np.arange(20) % 4
    model = fit(MaxMarginClassifier(C=C, max_iter=20), X, y)
    assert 0.0 < model.margin_ <= model.margin_bound_ < np.inf
    assert check_certificate(model, X, y)


@pytest.mark.parametrize("p", [1.5, 1.1])
def test_vectors_whose_squares_vanish_have_no_curvature(p):
    assert all(
        np.isfinite(part).all() for part in LpNorm(p).curvature(np.full(3, 1e-200))
    )


LONG = 2**60 + np.arange(8)
FRAME, HALVES = (
    pd.DataFrame({"id": LONG, "x": LONG / 2.0**60}),
    np.longdouble(LONG)[:, None] + 0.5,
)


@pytest.mark.parametrize(
    "X",
    [
        LONG[:, None],
        LONG.astype(np.uint64)[:, None],
        LONG.astype(object)[:, None],
        sp.csr_array(LONG[:, None]),
        [[int(x)] for x in LONG],
        FRAME,
        pytest.param(HALVES, marks=needs_more_digits),
    ],
    ids=["int64", "uint64", "object", "csr", "list", "frame", "longdouble"],
)
def test_numbers_that_would_be_rounded_are_refused(X):
    y = np.arange(8) // 4
    with pytest.raises(
        ValueError, match=r"float64 does not hold, such as 1\.?15292150460"
    ):
        MaxMarginClassifier().fit(X, y)
    with pytest.raises(ValueError, match="X has numbers that float64 does not hold"):
        check_separability(X, y)


def test_other_data_that_would_be_rounded_is_refused():
    X, y = LONG[:, None], np.arange(8) // 4
    for refused in (
        lambda: MaxMarginRegressor().fit(np.eye(8), LONG),
        lambda: MaxMarginOutlierDetector().fit(X),
        lambda: MomentumMarginClassifier().fit_blocks([(X, y)]),
        lambda: fit_many(MaxMarginClassifier(), X, y[None]),
        lambda: audit(SVC().fit(X, y), X, y),
    ):
        with pytest.raises(ValueError, match="numbers that float64 does not hold"):
            refused()
    held = 2**60 + 2**40 * np.arange(8)[:, None]
    assert fit(MaxMarginClassifier(), held, y).separable_
    assert check_separability(held.astype(object), y).separable


@pytest.mark.parametrize("cls", [MaxMarginRegressor, DualLpRegressor])
@pytest.mark.parametrize("form", [list, lambda y: pd.Series(y, dtype=object)])
def test_targets_that_are_missing_are_refused(cls, form):
    with pytest.raises(ValueError, match="y contains NaN"):
        cls().fit(np.eye(4), form([1.0, None, 2.0, 3.0]))


def test_the_hinge_loss_is_not_said_to_be_squared(rng):
    with pytest.warns(
        ConvergenceWarning, match="soft margins of the squared hinge loss"
    ):
        MaxMarginClassifier(loss="hinge").fit(*overlapping(rng))


def test_an_algorithm_without_a_model_is_told_what_it_lacks(rng):
    class Modest(Momentum):
        def candidates(self, problem, state):
            for found in super().candidates(problem, state):
                yield replace(found, fallback=False)

    class Estimator(MomentumMarginClassifier):
        def _algorithm(self):
            return Modest()

    with pytest.raises(ValueError, match="no candidate of Modest has fallback=True"):
        Estimator(max_iter=3).fit(*overlapping(rng))


def test_a_libsvm_model_has_no_limit_of_iterations(rng):
    X, y = separable(rng)
    (judged,) = audit(SVC().fit(X, y), X, y).problems
    assert "iterations" not in {claim.name for claim in judged.claims}
    (judged,) = audit(SVC(max_iter=10**6).fit(X, y), X, y).problems
    assert "it ended before max_iter=1000000" in str(judged.lines())


@pytest.mark.parametrize("seed", range(3))
def test_a_hard_tube_that_none_fits_is_infeasible(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((200, 100)), rng.standard_normal(200)
    assert fit(MaxMarginRegressor(C=np.inf, epsilon=0.1), X, y).status_ == "infeasible"


@pytest.mark.parametrize(("seed", "unit"), [(0, 1e8), (1, 1e1)])
def test_a_certified_objective_is_none_below_its_bound(seed, unit):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((20, 30)), unit * rng.standard_normal(20)
    reg = fit(MaxMarginRegressor(C=np.inf, epsilon=0.0), X, y)
    assert reg.status_ != "certified" or reg.objective_ >= reg.objective_bound_


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_tube_that_just_holds_all_targets_needs_no_predictor(seed, C):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((80, 20)), rng.integers(0, 2, 80).astype(float)
    reg = fit(MaxMarginRegressor(C=C, epsilon=0.5), X, y)
    assert (reg.status_, reg.objective_) == ("certified", 0.0)


def test_targets_of_examples_in_tiny_units(rng):
    X = rng.standard_normal((20, 3))
    reg = fit(MaxMarginRegressor(), 1e-200 * X, X[:, 0])
    assert check_certificate(reg, 1e-200 * X, X[:, 0], exact=True)


@pytest.mark.parametrize("shape", [(12, 2), (12,)])
def test_a_tube_around_all_targets_leaves_a_kernel_no_working_set(shape, rng):
    X, y = rng.standard_normal((12, 3)), rng.uniform(-1.0, 1.0, shape)
    reg = fit(MaxMarginRegressor(kernel="precomputed", epsilon=30.0), X @ X.T, y)
    assert (reg.status_, np.max(reg.objective_)) == ("certified", 0.0)
