"""No bound is ever wrong, and every fit ends."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each, each_and_toy, is_quick, slow, some_slow
from helpers.claiming import claim
from helpers.estimators import ESTIMATORS, fit, make, overlapping, parameters, separable
from helpers.oracle import best_margin, best_margin_of
from helpers.pairwise import pairwise
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.class_weight import compute_class_weight

from marginsvm import (
    AcceleratedPerceptron,
    DualLpPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    VonNeumannClassifier,
    check_certificate,
    check_separability,
    check_separability_proof,
)
from marginsvm.certificate.bounded import Floats, Rationals
from marginsvm.certificate.reading import Data, Reading, class_weights


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
    if (
        estimator.separable_ is not None
        and np.isinf(getattr(estimator, "C", np.inf))
        and best > 2e-3 * radius
    ):
        assert estimator.separable_


@pairwise(
    cls=some_slow(ESTIMATORS), k=[2, slow(3)], fit_intercept=[True, False], kernel=["linear", "rbf"]
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
    estimator = fit(make(cls, max_iter=100), X, y)
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


# What check_certificate reads and refuses: weights of classes, words and numbers that are none.


unwarned = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def overlapping_checker(rng, k=2):
    return rng.standard_normal((60, 3)), np.arange(60) % k


def weighted(rng, k):
    X, y = overlapping_checker(rng, k=k)
    return X, np.array(["a", "b", "c"])[y], rng.choice([0.0, 1.0, 0.3, 7.0], len(y))


WEIGHTS = [None, "balanced", {"a": 2.5}, {"a": 1e-3, "b": 2.0}, {"a": 0.0, "c": 3.0}]


@unwarned
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("class_weight", WEIGHTS, ids=str)
def test_weights_of_classes_multiply_those_of_examples(class_weight, kernel, rng):
    """A fit with the products as sample weights is confirmed with ``class_weight`` set."""
    X, y, weight = weighted(rng, k=3)
    given = X @ X.T if kernel == "precomputed" else X
    product = weight * class_weights(class_weight, y, weight)
    clf = MomentumMarginClassifier(C=0.7, max_iter=40, kernel=kernel).fit(given, y, product)
    clf.class_weight = class_weight
    check = check_certificate(clf, given, y, weight, exact=kernel != "rbf")
    assert check, check.reason
    if kernel == "linear":
        blocks = [(X[i : i + 20], y[i : i + 20], weight[i : i + 20]) for i in range(0, len(y), 20)]
        check = check_certificate(clf, blocks)
        assert check, check.reason


@unwarned
@pytest.mark.parametrize("class_weight", ["balanced", {"a": 2.5}, {"a": 1e-3, "b": 2.0}], ids=str)
def test_other_weights_of_classes_are_noticed(class_weight, rng):
    X, y, weight = weighted(rng, k=2)
    clf = MaxMarginClassifier(C=0.7, tol=1e-9).fit(X, y, weight)
    assert check_certificate(clf, X, y, weight, exact=True)
    clf.class_weight = class_weight
    assert not check_certificate(clf, X, y, weight, exact=True)


@unwarned
def test_balanced_weights_are_scikit_learns(rng):
    _, y, weight = weighted(rng, k=3)
    some = weight > 0
    classes = np.unique(y)
    theirs = compute_class_weight(
        "balanced", classes=classes, y=y[some], sample_weight=weight[some]
    )
    ours = class_weights("balanced", y, weight)
    np.testing.assert_array_equal(ours, theirs[np.searchsorted(classes, y)])
    counts = np.ceil(weight).astype(int)
    copies = np.repeat(y, counts)
    of_copies = class_weights("balanced", copies, np.ones(len(copies)))
    for label in classes:  # a weight m counts like m copies
        ours = class_weights("balanced", y, counts.astype(float))[y == label][0]
        np.testing.assert_allclose(ours, of_copies[copies == label][0])


@unwarned
def test_balanced_weights_do_not_count_classes_that_are_left_out():
    y, weight = np.array([0, 0, 0, 1, 2]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(class_weights("balanced", y, weight)[:4], [2 / 3] * 3 + [2.0])


@unwarned
def test_labels_of_other_classes_are_refused(rng):
    X, y, _ = weighted(rng, k=2)
    clf = MomentumMarginClassifier(max_iter=10).fit(X, y)
    with pytest.raises(ValueError, match="was fitted to"):
        check_certificate(clf, X, np.where(y == "a", "b", "c"))


LIES = [
    {"status": "finished"},
    {"status": None},
    {"margin": np.nan},
    {"margin_bound": np.nan},
    {"margin": np.nan, "status": "certified"},
    {"margin_bound": np.nan, "status": "no_margin"},
    {"margin_bound": np.inf},
    {"separable": np.nan},
    {"separable": "no"},
    {"separable": np.True_},
    {"margin": None},
    {"margin_bound": "0.5"},
    {"margin": np.array([0.1])},
    {"margin_bound": np.array([0.1, 2.0])},
    {"status": ["certified"]},
    {"status": None},
    {"separable": np.array([True, False])},
    {"separable": 1},
    {"weights": None},
    {"weights": np.full((60, 1), 1 / 60)},
    {"weights": sp.coo_array(np.full((60, 1), 1 / 60))},
]


@unwarned
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("lie", LIES, ids=str)
def test_words_and_numbers_that_are_none_are_refused(lie, exact, rng):
    X, y = overlapping_checker(rng)
    clf = MomentumMarginClassifier(max_iter=10).fit(X, y)
    assert check_certificate(clf, X, y, exact=exact)
    claim(clf, **lie)
    check = check_certificate(clf, X, y, exact=exact)
    assert not check
    assert check.reason
    name, value = next(iter(lie.items()))
    if name in ("margin", "margin_bound") and isinstance(value, float):
        assert check.excess == np.inf
    elif name in ("status", "separable"):
        assert name in check.reason


@unwarned
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("factor", [0.0, np.nan, np.inf, -1.0])
def test_weights_that_are_none_prove_nothing(factor, exact, rng):
    X, y = overlapping_checker(rng)
    clf = MomentumMarginClassifier(max_iter=10).fit(X, y)
    honest = clf.certificate_.weights
    for weights in (honest * factor, honest[:10], sp.hstack([honest, honest], format="csr")):
        claim(clf, weights=weights)
        check = check_certificate(clf, X, y, exact=exact)
        assert not check
        assert check.excess == check.margin_bound == np.inf
        assert "no distribution" in check.reason


def claiming(clf, weights, bound):
    """The same estimator with other weights, and the bound that they are said to prove."""
    weights = sp.csr_array(np.asarray(weights, dtype=float).reshape(len(weights), -1))
    clf.__dict__.update({"gap_": max(0.0, bound - clf.margin_) / bound})
    claim(clf, weights=weights, margin_bound=bound, status="max_iter")
    return clf


@unwarned
@pytest.mark.parametrize("exact", [False, True])
def test_weights_against_the_own_class_are_none(exact, rng):
    """On two opposite examples, they would add to the mass, and nothing to the sum."""
    X, y = overlapping_checker(rng, k=3)
    X[3] = -X[0]
    clf = MomentumMarginClassifier(max_iter=1, fit_intercept=False).fit(X, y)
    q, bound = clf.certificate_.weights.toarray(), clf.margin_bound_
    assert check_certificate(claiming(clf, q, bound), X, y, exact=exact)
    q *= 0.5
    q[[0, 3], y[0]] = 0.25
    assert not check_certificate(claiming(clf, q, 0.5 * bound), X, y, exact=exact)


@unwarned
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("C", [np.inf, 100.0])
def test_weights_of_one_class_prove_nothing_with_an_intercept(C, exact):
    """Those on an example at the mean have a sum of length 0."""
    X, y = np.array([[-2.0], [0.0], [2.0]]), np.array([0, 0, 1])
    clf = MaxMarginClassifier(C=C).fit(X, y)
    assert check_certificate(claiming(clf, [0.0, 0.5, 0.5], 1.2), X, y, exact=exact)
    assert not check_certificate(claiming(clf, [0.0, 1.0, 0.0], 0.5), X, y, exact=exact)
    assert not check_certificate(claiming(clf, [0.5, 0.5, 0.0], 0.9), X, y, exact=exact)


@unwarned
@pytest.mark.parametrize("exact", [False, True])
def test_rows_on_the_boundary_are_not_separated(exact):
    X, y = np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    report = check_separability(X, y)
    assert (report.kind, report.separated.tolist()) == (
        "quasi-complete",
        [True, False, False, True],
    )
    lie = replace(
        report,
        kind="complete",
        separated_rows=np.ones_like(report.separated_rows),
        overlap_weights=None,
    )
    assert check_separability_proof(report, X, y, exact=exact)
    assert not check_separability_proof(lie, X, y, exact=exact)


# A certificate may be pessimistic, never wrong: rational arithmetic with no tolerance at all.


def data_sets(rng):
    """Well behaved ones, and ones that cost digits."""
    X, y = separable(rng, n=40)
    yield "separable", X, y
    yield "three classes", *separable(rng, n=30, k=3)
    yield "overlapping", *overlapping(rng, n=40, k=2)
    yield "overlapping classes", *overlapping(rng, n=30, k=4)
    yield "far from the origin", X + 1e6, y
    yield "tiny", X * 1e-150, y
    yield "huge", X * 1e150, y
    yield "float32", X.astype(np.float32), y
    yield "float32, huge", (X * 1e30).astype(np.float32), y
    yield "sparse", sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X)), y
    yield "features of all scales", X * np.logspace(-12, 3, X.shape[1]), y
    yield "all the same", np.full((6, 2), 1 / 3), np.arange(6) % 2
    yield "thin", X + np.eye(1, X.shape[1]) * 1e4, y


@pairwise(cls=some_slow(ESTIMATORS), C=[np.inf, slow(1.0)], fit_intercept=[True, slow(False)])
def test_no_certificate_claims_too_much(cls, C, fit_intercept, rng):
    if np.isfinite(C) and "C" not in parameters(cls):
        pytest.skip("has no soft margin")
    weight = rng.choice([0.0, 1.0, 0.3, 7.0], 60)
    weight[:4] = 1.0
    for name, X, y in data_sets(rng):
        w = weight[: len(y)] if name == "overlapping" else None
        scale = abs(X).max() if np.isfinite(C) else 1.0
        params = {"max_iter": 40, "fit_intercept": fit_intercept, "C": C / float(scale) ** 2}
        estimator = fit(make(cls, **params), X, y, sample_weight=w)
        check = check_certificate(estimator, X, y, w, exact=True)
        assert check, f"{name}: {check.reason}"
        assert check.excess <= 0.0
        assert check.margin_bound <= estimator.margin_bound_


ROOTS = [
    {"p": 1.5},
    {"p": "sparse"},
    {"p": 1.01},
    {"normalize": True},
    {"normalize": True, "fit_intercept": False},
]


@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (slow if not is_quick(cls) else pytest.param)(cls, params)
        for cls in ESTIMATORS
        for params in ROOTS
        if set(params) <= set(parameters(cls))
    ],
    ids=str,
)
def test_roots_and_powers_are_enclosed(cls, params, rng):
    X, y = separable(rng, n=30)
    estimator = fit(make(cls, max_iter=40, **params), X, y)
    plain, exact = (
        check_certificate(estimator, X, y),
        check_certificate(estimator, X, y, exact=True),
    )
    assert exact, exact.reason
    np.testing.assert_allclose(plain.margin, exact.margin, rtol=1e-10)
    np.testing.assert_allclose(plain.margin_bound, exact.margin_bound, rtol=1e-10)


@pairwise(
    cls=some_slow([cls for cls in ESTIMATORS if "kernel" in parameters(cls)]),
    k=[2, 3],
    C=[np.inf, 1.0],
)
def test_a_kernel_matrix_is_taken_as_exact(cls, k, C, rng):
    X, y = separable(rng, n=30, k=k)
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    K = 0.5 * (K + K.T)
    estimator = fit(make(cls, kernel="precomputed", max_iter=40, C=C), K, y)
    check = check_certificate(estimator, K, y, exact=True)
    assert check, check.reason


def test_values_of_a_named_kernel_are_not(rng):
    X, y = separable(rng)
    estimator = fit(MaxMarginClassifier(kernel="rbf"), X, y)
    with pytest.raises(ValueError, match="precomputed"):
        check_certificate(estimator, X, y, exact=True)


def test_the_exact_bounds_are_exact():
    """Against fractions by hand: (3, 4) and its mirror image are 5 apart from the origin."""
    X, y = np.array([[3.0, 4.0], [-3.0, -4.0]]), np.array([1, 0])
    estimator = MaxMarginClassifier().fit(X, y)
    check = check_certificate(estimator, X, y, exact=True)
    w = [Fraction(value) for value in estimator.coef_[0]]
    b = Fraction(estimator.intercept_[0])
    least = min(3 * w[0] + 4 * w[1] + b, 3 * w[0] + 4 * w[1] - b)
    norm2 = w[0] ** 2 + w[1] ** 2
    assert Fraction(check.margin) ** 2 * norm2 <= least**2
    assert Fraction(np.nextafter(check.margin, np.inf)) ** 2 * norm2 > least**2
    assert estimator.margin_ <= 5.0 <= estimator.margin_bound_


@pytest.mark.parametrize("better", [1e-12, 1e-10, 1e-3])
def test_the_smallest_lies_are_found(better):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    estimator = MaxMarginClassifier(tol=1e-13).fit(X, y)
    true = estimator.certificate_
    for lie in (
        {"margin": true.margin * (1 + better)},
        {"margin_bound": true.margin_bound * (1 - better)},
    ):
        claim(estimator, true, **lie)
        check = check_certificate(estimator, X, y, exact=True)
        assert not check
        assert 0.0 < check.excess <= 1.01 * better


def test_weights_of_examples_that_were_left_out_prove_nothing():
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    y = np.array([0, 1, 1, 0])
    weight = np.array([1.0, 1.0, 0.0, 0.0])
    estimator = MaxMarginClassifier().fit(X, y, sample_weight=weight)
    claim(estimator, weights=sp.csr_array(np.full((4, 1), 0.25)), margin_bound=0.0)
    assert not check_certificate(estimator, X, y, weight)


@pytest.mark.parametrize("exact", [False, True])
def test_outcomes_are_checked(exact, rng):
    X, y = separable(rng, n=40)
    apart = MaxMarginClassifier().fit(X, y)
    Z, z = overlapping(rng)
    mixed = fit(MomentumMarginClassifier(max_iter=1), Z, z)
    assert mixed.separable_ is None
    assert check_certificate(apart, X, y, exact=exact)
    assert check_certificate(mixed, Z, z, exact=exact)
    for estimator, A, b, lie in (
        (apart, X, y, {"separable": False}),
        (mixed, Z, z, {"separable": True}),
        (mixed, Z, z, {"separable": False}),
        (apart, X, y, {"status": "no_margin"}),
        (mixed, Z, z, {"status": "certified"}),
        (mixed, Z, z, {"status": "separated"}),
    ):
        honest = estimator.certificate_
        claim(estimator, **lie)
        check = check_certificate(estimator, A, b, exact=exact)
        assert not check
        assert next(iter(lie)) in check.reason
        claim(estimator, honest)


def test_a_soft_margin_separates_only_if_the_examples_are_separated(rng):
    X, y = overlapping(rng)
    estimator = fit(DualLpPerceptron(C=1.0, random_state=0), X, y)
    assert estimator.separable_ is None
    claim(estimator, separable=True)
    assert "separable" in check_certificate(estimator, X, y).reason


def test_thin_margins_keep_their_digits():
    """Allowing for rounding must not cost what the fit has reached."""
    X, y = load_breast_cancer(return_X_y=True)  # margin: 1e-8 of the radius
    estimator = MaxMarginClassifier().fit(X, y)
    assert estimator.gap_ < 1e-6
    assert check_certificate(estimator, X, y, exact=True)
    X, y = load_iris(return_X_y=True)
    assert MaxMarginClassifier(tol=1e-12).fit(X[:100], y[:100]).gap_ < 1e-13


def test_the_smallest_imbalance_is_paid_for():
    """A weight of 1e-22, which extended precision lost, on a row of length 1e11."""
    X = np.array([[-1.0, 0.0], [-2.0, 1e11], [3.0, 1e11], [0.0, 1e11]])
    clf = fit(VonNeumannClassifier(C=1.0, max_iter=5), X, [0, 1, 1, 0])
    check = check_certificate(clf, X, [0, 1, 1, 0], exact=True)
    assert check, check.reason


def test_one_long_row_does_not_cost_the_proof():
    """Its weight is about 1 over the square of its length, and balanced by no other weight."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d, k = rng.integers(4, 20), rng.integers(1, 4), rng.choice([2, 2, 3])
        X, y = rng.integers(-3, 4, (n, d)) * 1.0, np.append(np.arange(k), rng.integers(0, k, n - k))
        X[:, 0] = 0.0
        X[rng.integers(n), 0] = 10.0 ** rng.integers(10, 13)
        cls = (VonNeumannClassifier, MaxMarginClassifier)[seed % 4 // 3]
        clf = fit(cls(C=1.0, max_iter=5), X, y)
        check = check_certificate(clf, X, y, exact=True)
        assert check, (seed, check.reason)
        true = clf.certificate_
        lower, upper = max(check.margin, 0.0), check.margin_bound
        for lie in ({"margin": np.nextafter(lower, 9.0)}, {"margin_bound": np.nextafter(upper, 0)}):
            claim(clf, true, **lie)
            assert not check_certificate(clf, X, y, exact=True)


# A margin is one over a norm: the one proof of any predictor and weights, in rationals.


def read(estimator, X, y, weight=None, bounds=None):
    """The programs of an estimator and its data, in rationals."""
    return Reading(estimator, Data.of(estimator, X, y, weight, bounds), Rationals())


def proved(reading, q):
    """What the predictor and weights prove, of all programs."""
    numbers = reading.numbers
    duals = [part.dual(np.asarray(q, float), numbers) for part in reading.parts]
    return [part.primal(numbers) for part in reading.parts], duals


def fitted(kind, **attributes):
    """What the check reads of a fitted estimator."""
    estimator = type("Fitted", (kind, BaseEstimator), {})()
    vars(estimator).update(attributes)
    return estimator


def dyadic(rng, shape):
    """Numbers with few digits, of which many are equal, 0 or of another size."""
    x = rng.integers(-6, 7, shape) / 2.0 ** rng.integers(0, 3, shape)
    return x * np.where(rng.random(shape) < 0.1, 1024.0, 1.0)


def linear(rng, d, k, **others):
    intercept = bool(rng.integers(2))
    return {
        "coef_": dyadic(rng, (k, d)),
        "intercept_": dyadic(rng, k) * intercept,
        "C": float(rng.choice([np.inf, 0.25, 3.0])),
        "p": float(rng.choice([2.0, 2.0, 1.5])),
        "fit_intercept": intercept,
        "intercept_scaling": None if rng.integers(2) else 0.5,
        "normalize": False,
        **others,
    }


def of_classes(rng):
    """A problem of classes with some predictor, and weights, in rationals."""
    n, d, k = int(rng.integers(4, 8)), int(rng.integers(1, 4)), int(rng.choice([2, 2, 3]))
    X, y = dyadic(rng, (n, d)), np.append(np.arange(k), rng.integers(0, k, n - k))
    params = linear(rng, d, 1 if k == 2 else k, nu=None)
    params["loss"] = str(rng.choice(["squared_hinge", "hinge"]))
    if rng.integers(3) == 0:
        params.update(C=np.inf, nu=0.25)
    if params["intercept_scaling"] is None:
        params["p"] = 2.0  # only then is an intercept free
    clf = fitted(ClassifierMixin, **params, classes_=np.arange(k), class_weight=None)
    q = np.maximum(dyadic(rng, (n, 1 if k == 2 else k)), 0.0)
    if k > 2:
        q[np.arange(n), y] = 0.0
    return read(clf, X, y, rng.choice([1.0, 0.5, 3.0], n)), q


@given(st.integers(0, 2**32 - 1))
def test_no_margin_is_above_what_weights_prove(seed):
    reading, q = of_classes(np.random.default_rng(seed))
    (primal,), (dual,) = proved(reading, q)
    assert max(primal.margin, 0) <= reading.margin_bound(dual)


@given(st.integers(0, 2**32 - 1))
def test_no_norm_is_below_what_weights_prove(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(1, 8)), int(rng.integers(1, 4)), int(rng.choice([1, 1, 3]))
    X, y = dyadic(rng, (n, d)), dyadic(rng, (n, k))
    params = linear(rng, d, k, epsilon=0.125)
    if params["intercept_scaling"] is None:
        params["p"] = 2.0
    if np.isfinite(params["C"]):
        params["loss"] = str(rng.choice(["epsilon_insensitive", "squared"]))
    reg, bounds = fitted(RegressorMixin, **params), None
    if rng.integers(2):
        bounds = np.stack([y - 1.0, np.where(y > 1.0, np.inf, y + 0.5)], axis=-1)
    reading = read(reg, X, y, rng.choice([1.0, 0.5, 3.0], n), bounds)
    primals, duals = proved(reading, dyadic(rng, (n, k)))
    delta = max(primal.violation for primal in primals) if np.isinf(reg.C) else 0
    for primal, dual in zip(primals, duals, strict=True):
        assert dual.objective(delta) <= primal.objective


@given(st.integers(0, 2**32 - 1))
def test_a_margin_is_one_over_a_norm(seed):
    """Two classes as a tube without an upper end: by rows of either kind."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    X, y = dyadic(rng, (n, d)), np.append([0, 1], rng.integers(0, 2, n - 2))
    sign, weight = 2.0 * y - 1.0, rng.choice([1.0, 0.5, 3.0], n)
    params = linear(rng, d, 1, fit_intercept=False, intercept_=np.zeros(1), epsilon=0.0)
    clf = fitted(ClassifierMixin, **params, classes_=np.arange(2), class_weight=None)
    bounds = np.stack([np.ones(n), np.full(n, np.inf)], axis=-1)
    classes = read(clf, X, y, weight)
    tube = read(fitted(RegressorMixin, **params), sign[:, None] * X, y, weight, bounds)
    q = np.maximum(dyadic(rng, (n, 1)), 0.0)
    ((margin,), (of_margin,)), ((norm,), (of_norm,)) = proved(classes, q), proved(tube, q)
    assert of_norm.length == of_margin.length
    assert (norm.violation > 0) == (margin.separation < 1)
    if np.isfinite(clf.C):
        assert of_norm.gain == of_margin.gain
        assert norm.objective == margin.objective
        assert of_norm.objective() == of_margin.objective()
    elif q.any() and of_norm.length > 0:
        off = 2 * of_norm.objective() * of_margin.margin_bound**2 - 1
        assert abs(off) < Fraction(1, 10**50)


LINE = {"fit_intercept": False, "intercept_scaling": None, "normalize": False, "p": 2.0}


def test_weights_above_the_price_of_slack_prove_nothing():
    """Of two opposite examples, with C = 1 / 4, the best w is 1 / 2, and its objective 3 / 8."""
    params = {**LINE, "coef_": [[0.5]], "intercept_": [0.0], "C": 0.25, "loss": "hinge"}
    clf = fitted(ClassifierMixin, **params, classes_=np.arange(2), class_weight=None)
    clf.coef_ = np.array(clf.coef_)
    reading = read(clf, np.array([[1.0], [-1.0]]), [1, 0])
    (primal,), (dual,) = proved(reading, np.full((2, 1), 0.5))
    assert abs(primal.objective - Fraction(3, 8)) < Fraction(1, 10**50)
    assert abs(dual.objective() - Fraction(3, 8)) < Fraction(1, 10**50)


def test_wider_intervals_allow_shorter_predictors():
    """A score of 1 where 2 +- 1 / 8 is asked for: 7 / 8 too low, and as short as that allows."""
    params = {**LINE, "coef_": np.ones(1), "intercept_": 0.0, "C": np.inf, "epsilon": 0.125}
    reading = read(fitted(RegressorMixin, **params), np.ones((1, 1)), [2.0])
    (primal,), (dual,) = proved(reading, np.ones((1, 1)))
    assert primal.violation == Fraction(7, 8)
    for bound, best in ((primal.objective, 1), (dual.objective(), Fraction(15, 8) ** 2)):
        assert abs(2 * bound - best) < Fraction(1, 10**50)
    assert abs(2 * dual.objective(primal.violation) - 1) < Fraction(1, 10**50)


def test_one_weight_proves_nothing_where_the_intercept_is_free():
    """The constant 2 fits, and has norm 0; weights that are not balanced must pay for it."""
    params = {**LINE, "coef_": np.zeros(1), "intercept_": 2.0, "C": np.inf, "epsilon": 0.125}
    reg = fitted(RegressorMixin, **{**params, "fit_intercept": True})
    reading = read(reg, np.ones((1, 1)), [2.0])
    (primal,), (dual,) = proved(reading, np.ones((1, 1)))
    assert (primal.norm, primal.violation) == (0, 0)
    assert dual.objective() == 0


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("k", [2, slow(3)])
def test_weights_that_are_not_balanced_pay_for_it(k, C, kernel, rng):
    """Their bound holds in fractions, and the one in floats is no better, about another mean."""
    for _ in range(20):
        X, y = separable(rng, n=30, d=3, k=k)
        X += rng.standard_normal(3) * 10.0 ** rng.uniform(0, 4)
        best = best_margin(X, y, C=C)
        given = X if kernel == "linear" else X @ X.T
        clf = fit(MomentumMarginClassifier(C=C, kernel=kernel, max_iter=20), given, y)
        q = clf.certificate_.weights.toarray()
        q = np.where(q > 0, q * rng.uniform(1.0 - 10.0 ** rng.uniform(-4, 0), 1.0, q.shape), 0.0)
        found = []
        for numbers in (Floats(), Rationals()):
            reading = Reading(clf, Data.of(clf, given, y, None, None), numbers)
            found.append(reading.margin_bound(reading.parts[0].dual(q / q.sum(), numbers)))
        assert best * (1 - 1e-5) <= found[1] <= found[0]
