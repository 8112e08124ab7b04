"""No bound is ever wrong, and every fit ends."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each, each_and_toy, slow, some_slow
from helpers.claiming import claim
from helpers.estimators import ESTIMATORS, fit, make, overlapping, parameters, separable
from helpers.oracle import best_margin, best_margin_of
from helpers.pairwise import pairwise
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics.pairwise import rbf_kernel

from marginsvm import (
    AcceleratedPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    check_certificate,
)


@st.composite
def problems(draw):
    """Small data with duplicates, zeros, huge and tiny scales, contradictory labels."""
    n = draw(st.integers(2, 14))
    d = draw(st.integers(1, 4))
    k = draw(st.integers(2, min(3, n)))
    values = st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, 1e-3, -3.0])
    X = np.array(draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n)))
    y = np.array(
        [*range(k), *draw(st.lists(st.integers(0, k - 1), min_size=n - k, max_size=n - k))]
    )
    return X * draw(st.sampled_from([1.0, 1e-8, 1e8, 1e-100, 1e100])), y


@each_and_toy
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    problem=problems(),
    fit_intercept=st.booleans(),
    normalize=st.booleans(),
    C=st.sampled_from([np.inf, 1.0]),
)
def test_bounds_bracket_the_optimum(cls, problem, fit_intercept, normalize, C):
    X, y = problem
    unit = normalize and "normalize" in parameters(cls)
    C = C if np.isinf(C) or unit else C / (np.abs(X).max() or 1.0) ** 2
    params = {"fit_intercept": fit_intercept, "normalize": normalize, "C": C}
    estimator = fit(make(cls, max_iter=60, **params), X, y)
    best = best_margin_of(estimator, X, y)
    note(f"{estimator.margin_} <= {best} <= {estimator.margin_bound_}")
    radius = estimator.certificate_.radius
    history = estimator.history_
    assert estimator.margin_ <= best + 1e-6 * radius
    assert best <= estimator.margin_bound_ + 1e-6 * radius
    assert np.all(history["margin"] <= best + 1e-6 * radius)
    assert np.all(best <= history["margin_bound"] + 1e-6 * radius)
    assert check_certificate(estimator, X, y)
    assert np.isfinite(estimator.decision_function(X)).all()
    if estimator.separable_ is not None and np.isinf(estimator.C) and best > 2e-3 * radius:
        assert estimator.separable_


@pairwise(
    cls=some_slow(ESTIMATORS),
    k=[2, slow(3)],
    fit_intercept=[True, False],
    kernel=["linear", "rbf"],
)
def test_the_check_confirms_honest_fits_and_finds_false_ones(cls, k, fit_intercept, kernel, rng):
    X, y = separable(rng, k=k)
    for C in (np.inf, 1.0):
        params = {"max_iter": 80, "fit_intercept": fit_intercept, "kernel": kernel, "C": C}
        estimator = fit(make(cls, **params), X, y)
        check = check_certificate(estimator, X, y)
        assert check, check.reason
        true = estimator.certificate_
        for lie in (
            {"margin": true.margin_bound * 1.01},
            {"margin_bound": true.margin * 0.99},
            {"weights": true.weights * 1.01},
            {"weights": -true.weights},
            {"weights": true.weights * np.nan},
            {"margin": np.inf},
            {"margin": np.nan},
            {"margin_bound": np.nan},
        ):
            claim(estimator, true, **lie)
            found = check_certificate(estimator, X, y)
            assert not found
            assert found.reason


def through_rbf(X, Y, width):
    return rbf_kernel(X, Y, 1.0 / width)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, slow(np.float32)])
@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": "auto", "normalize": True},
        {"kernel": "laplacian", "kernel_params": {"gamma": 0.2}},
        {"kernel": "poly", "gamma": 0.3, "degree": 2, "coef0": 1.0},
        {"kernel": "cosine"},
        {"kernel": through_rbf, "kernel_params": {"width": 3.0}},
    ],
)
def test_the_check_computes_kernels_itself(params, form, rng):
    X, y = overlapping(rng)
    X, weight = form(X), rng.integers(0, 3, len(y))
    clf = fit(SmoothedKernelPerceptron(C=1.0, **{"normalize": False, **params}), X, y, weight)

    def refuse(X, Y):
        raise AssertionError("the check called the fit's kernel")

    clf._kernel_matrix = refuse
    check = check_certificate(clf, X, y, weight)
    assert check, check.reason
    clf.set_params(gamma=3.0, kernel_params=None)
    if params["kernel"] in ("rbf", "laplacian"):  # another kernel than was fitted
        assert not check_certificate(clf, X, y, weight)


@each_and_toy
def test_nothing_separates(cls):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    with pytest.warns(UserWarning, match="C < inf"):
        estimator = make(cls, tol=1e-3).fit(X, y)
    assert estimator.separable_ is False
    assert estimator.status_ == "no_margin"
    assert check_certificate(estimator, X, y)
    assert estimator.score(X, y) > 0.9


@each_and_toy
def test_contradictory_duplicates(cls):
    X = np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 4.0], [-3.0, 1.0]])
    estimator = fit(make(cls), X, [0, 1, 0, 1])
    assert estimator.separable_ is False
    assert check_certificate(estimator, X, [0, 1, 0, 1])


@each
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_degenerate_data_ends(cls, fit_intercept):
    cases = [
        (np.zeros((4, 2)), [0, 1, 0, 1]),
        (np.ones((4, 1)), [0, 1, 2, 1]),
        (np.array([[1.0], [2.0]]), [1, 0]),
        (np.eye(5) * 1e-150, [0, 1, 1, 1, 1]),
        (np.eye(5) * 1e150, [0, 1, 2, 3, 4]),
        (sp.csr_array((6, 3)), [0, 1, 0, 1, 0, 1]),
    ]
    for X, y in cases:
        estimator = fit(make(cls, max_iter=200, fit_intercept=fit_intercept), X, y)
        assert np.isfinite(estimator.decision_function(X)).all()
        assert estimator.margin_ <= estimator.margin_bound_
        assert np.isfinite([estimator.margin_, estimator.margin_bound_]).all()


@each
def test_separation_stops_early(cls, rng):
    X, y = separable(rng, n=200)
    estimator = fit(make(cls, stopping="separation", max_iter=100_000), X, y)
    assert estimator.status_ == "separated"
    assert estimator.separable_ is True
    assert estimator.score(X, y) == 1.0


@each
def test_soft_margin_is_linear_svcs(cls, rng):
    from sklearn.svm import LinearSVC

    if not {"C", "stopping"} <= set(parameters(cls)):
        pytest.skip("has no soft margin, or does not maximise it")
    X, y = overlapping(rng)
    params = {"C": 0.5, "fit_intercept": False, "normalize": False, "stopping": "gap"}
    ours = fit(make(cls, max_iter=3000, tol=1e-3, **params), X, y)
    peer = LinearSVC(C=0.5, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y)
    w = peer.coef_.ravel()
    slack = np.maximum(0, 1 - np.where(y == 1, 1, -1) * (X @ w))
    best = 1 / np.sqrt(w @ w + 2 * 0.5 * slack @ slack)
    assert ours.margin_ <= best * (1 + 1e-9)
    assert best <= ours.margin_bound_ * (1 + 1e-9)
    assert ours.gap_ < 0.02
    # objective is strongly convex: a relative gap bounds the distance of the predictors
    distance = np.linalg.norm(ours.coef_ - peer.coef_)
    assert distance <= np.sqrt(4 * ours.gap_ + 1e-9) / ours.margin_


def test_iris_setosa_is_svcs():
    from sklearn.svm import SVC

    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    peer = SVC(kernel="linear", C=np.inf, tol=1e-10).fit(X, y)
    best = 1 / np.linalg.norm(peer.coef_)
    ours = MomentumMarginClassifier(tol=1e-5, max_iter=50_000).fit(X, y)
    assert ours.margin_ <= best * (1 + 1e-8)
    assert best <= ours.margin_bound_ * (1 + 1e-8)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=5e-3)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=5e-3)
    np.testing.assert_allclose(best, best_margin(X, y), rtol=1e-5)


@each
def test_thin_margins_are_not_denied(cls):
    """Raw breast cancer data is separable, by 1e-8 of its radius: that is not False."""
    X, y = load_breast_cancer(return_X_y=True)
    estimator = fit(make(cls, max_iter=500), X, y)
    assert estimator.separable_ is not False
    assert estimator.margin_bound_ > 4e-05
    assert check_certificate(estimator, X, y)


def test_the_exact_solver_finds_the_thin_margin():
    X, y = load_breast_cancer(return_X_y=True)
    estimator = MaxMarginClassifier().fit(X, y)
    assert estimator.separable_ is True
    np.testing.assert_allclose(estimator.margin_, 4.13714e-05, rtol=1e-5)
    assert estimator.score(X, y) == 1.0


def test_a_certificate_is_read_as_margins_and_as_norms():
    clf = MaxMarginClassifier(C=1.0).fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    certificate = clf.certificate_
    assert (certificate.margin, certificate.margin_bound) == (clf.margin_, clf.margin_bound_)
    norms = Fraction(certificate.norm_bound), Fraction(certificate.norm)
    assert norms[0] <= 1 / Fraction(clf.margin_bound_) <= 1 / Fraction(clf.margin_) <= norms[1]
    assert norms[1] <= norms[0] * (1 + Fraction(clf.gap_)) * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize("apart", [1e-8, 3e-9, 1e-10])
def test_kernel_values_that_round_to_one_prove_no_smaller_bound(apart):
    """Two examples whose images differ by less than the values of the kernel can tell."""
    clf = fit(MaxMarginClassifier(kernel="rbf", gamma=1.0), [[0.0], [apart]], [0, 1])
    less = -np.expm1(-(apart**2))  # 1 minus the kernel's value, which is 1 in float64
    assert clf.margin_bound_ >= np.sqrt(0.5 * less)
    assert clf.separable_ is None


@pytest.mark.parametrize("unit", [1.0, 1e150])
@pytest.mark.parametrize(
    "cls", [AcceleratedPerceptron, MomentumMarginClassifier, OptimisticPerceptron]
)
def test_lower_bounds_have_the_best_intercept(cls, unit):
    """That of a response is the model's where nothing separates: with it, rounds take hundreds."""
    clf = fit(cls(C=1.0), unit * np.array([[3.0], [0.0]]), [0, 1], sample_weight=[1, 2])
    assert clf.status_ == "certified"
    assert clf.n_iter_ <= 5
