"""No bound is ever wrong, every fit ends, and the check finds what is false."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each, each_and_toy, is_quick, slow, some_slow
from helpers.claiming import claim, refused
from helpers.estimators import (
    ESTIMATORS,
    confirmed,
    fit,
    make,
    overlapping,
    parameters,
    separable,
)
from helpers.pairwise import pairwise
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from marginsvm import (
    AcceleratedPerceptron,
    DualLpPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    VonNeumannClassifier,
    check_certificate,
)
from marginsvm.certificate.reading import class_weights

exactly_or_not = pytest.mark.parametrize("exact", [False, True])


IRIS, CANCER = (load(return_X_y=True) for load in (load_iris, load_breast_cancer))
OVERLAPS = {
    "two irises": (IRIS[0][50:], IRIS[1][50:]),
    "duplicates": (
        np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 4.0], [-3.0, 1.0]]),
        [0, 1, 0, 1],
    ),
}


@each_and_toy
@pytest.mark.parametrize("data", OVERLAPS)
def test_nothing_separates(cls, data):
    X, y = OVERLAPS[data]
    with pytest.warns(UserWarning, match="C < inf"):
        estimator = make(cls, tol=1e-3).fit(X, y)
    assert (estimator.separable_, estimator.status_) == (False, "no_margin")
    assert check_certificate(estimator, X, y)
    assert data == "duplicates" or estimator.score(X, y) > 0.9


@each
def test_separation_stops_early(cls, rng):
    X, y = separable(rng, n=200)
    estimator = fit(make(cls, stopping="separation", max_iter=100_000), X, y)
    assert (estimator.status_, estimator.separable_) == ("separated", True)
    assert estimator.score(X, y) == 1.0


@each
def test_soft_margin_is_linear_svcs(cls, rng):
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


@each
def test_thin_margins_are_not_denied(cls):
    """Raw breast cancer data is separable, by 1e-8 of its radius: that is not False."""
    estimator = fit(make(cls, max_iter=100), *CANCER)
    assert estimator.separable_ is not False
    assert estimator.margin_bound_ > 4e-05
    assert check_certificate(estimator, *CANCER)


def test_the_exact_solver_finds_thin_margins_with_all_digits():
    """Allowing for rounding must not cost what the fit has reached."""
    estimator = MaxMarginClassifier().fit(*CANCER)
    assert estimator.separable_ is True
    np.testing.assert_allclose(estimator.margin_, 4.13714e-05, rtol=1e-5)
    assert estimator.gap_ < 1e-6
    assert estimator.score(*CANCER) == 1.0
    assert check_certificate(estimator, *CANCER, exact=True)
    assert MaxMarginClassifier(tol=1e-12).fit(IRIS[0][:100], IRIS[1][:100]).gap_ < 1e-13


def test_a_certificate_is_read_as_margins_and_as_norms():
    clf = MaxMarginClassifier(C=1.0).fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    certificate = clf.certificate_
    assert (certificate.margin, certificate.margin_bound) == (
        clf.margin_,
        clf.margin_bound_,
    )
    norms = Fraction(certificate.norm_bound), Fraction(certificate.norm)
    assert (
        norms[0]
        <= 1 / Fraction(clf.margin_bound_)
        <= 1 / Fraction(clf.margin_)
        <= norms[1]
    )
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


@pairwise(
    cls=some_slow(ESTIMATORS),
    k=[2, slow(3)],
    fit_intercept=[True, False],
    kernel=["linear", "rbf"],
)
def test_the_check_confirms_honest_fits_and_finds_false_ones(
    cls, k, fit_intercept, kernel, rng
):
    X, y = separable(rng, k=k)
    for C in (np.inf, 1.0):
        params = {
            "max_iter": 80,
            "fit_intercept": fit_intercept,
            "kernel": kernel,
            "C": C,
        }
        estimator = fit(make(cls, **params), X, y)
        confirmed(estimator, X, y)
        true = estimator.certificate_
        for lie in (
            {"margin": true.margin_bound * 1.01},
            {"margin_bound": true.margin * 0.99},
            {"weights": true.weights * 1.01},
            {"weights": -true.weights},
        ):
            refused(estimator, " ", X, y, **lie)


def through_rbf(X, Y, width):
    return rbf_kernel(X, Y, 1.0 / width)


@pytest.mark.parametrize(
    ("form", "params"),
    [
        (np.asarray, {"kernel": "rbf"}),
        (sp.csr_array, {"kernel": "rbf", "gamma": "auto", "normalize": True}),
        (sp.csr_array, {"kernel": "laplacian", "kernel_params": {"gamma": 0.2}}),
        (np.float32, {"kernel": "poly", "gamma": 0.3, "degree": 2, "coef0": 1.0}),
        (np.float32, {"kernel": "cosine"}),
        (np.asarray, {"kernel": through_rbf, "kernel_params": {"width": 3.0}}),
    ],
)
def test_the_check_computes_kernels_itself(params, form, rng):
    X, y = overlapping(rng)
    X, weight = form(X), rng.integers(0, 3, len(y))
    clf = fit(
        SmoothedKernelPerceptron(C=1.0, **{"normalize": False, **params}), X, y, weight
    )

    def refuse(X, Y):
        raise AssertionError("the check called the fit's kernel")

    clf._kernel_matrix = refuse
    confirmed(clf, X, y, weight)
    clf.set_params(gamma=3.0, kernel_params=None)
    if params["kernel"] in ("rbf", "laplacian"):  # another kernel than was fitted
        assert not check_certificate(clf, X, y, weight)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize(
    "class_weight",
    ["balanced", {"a": 2.5}, {"a": 1e-3, "b": 2.0}, {"a": 0.0, "c": 3.0}],
    ids=str,
)
def test_weights_of_classes_multiply_those_of_examples(class_weight, kernel, rng):
    """A fit with the products as sample weights is that with ``class_weight``, and no other."""
    X, y = overlapping(rng, k=3)
    y, weight = np.array(["a", "b", "c"])[y], rng.choice([0.0, 1.0, 0.3, 7.0], len(y))
    given, exact = X @ X.T if kernel == "precomputed" else X, kernel != "rbf"
    product = weight * class_weights(class_weight, y, weight)
    clf = fit(MaxMarginClassifier(C=0.7, tol=1e-9, kernel=kernel), given, y, product)
    clf.class_weight = class_weight
    confirmed(clf, given, y, weight, exact=exact)
    if kernel == "linear":
        blocks = [
            (X[i : i + 20], y[i : i + 20], weight[i : i + 20])
            for i in range(0, len(y), 20)
        ]
        confirmed(clf, blocks)
    clf.class_weight = {"c": 7.0} | ({} if class_weight == "balanced" else class_weight)
    clf.class_weight |= {"b": 9.0}
    assert not check_certificate(clf, given, y, weight, exact=exact)


def test_balanced_weights_do_not_count_classes_that_are_left_out():
    y, weight = np.array([0, 0, 0, 1, 2]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(
        class_weights("balanced", y, weight)[:4], [2 / 3] * 3 + [2.0]
    )


def test_data_that_cannot_be_those_of_the_fit_are_refused(rng):
    X, y = separable(rng)
    clf = fit(MaxMarginClassifier(kernel="rbf"), X, y)
    with pytest.raises(ValueError, match="was fitted to"):
        check_certificate(clf, X, 1 + y)
    with pytest.raises(ValueError, match="precomputed"):  # its values are no rationals
        check_certificate(clf, X, y, exact=True)


WORDS = {
    "status": ["finished", None, ["certified"], "certified", "separated", "no_margin"],
    "separable": [True, False, np.True_, 1, np.nan, "no", np.array([True, False])],
}
NUMBERS = {
    "margin": [np.nan, np.inf, None, np.array([0.1])],
    "margin_bound": [np.nan, np.inf, "0.5", np.array([0.1, 2.0])],
}


@exactly_or_not
def test_other_words_and_numbers_are_refused(exact, rng):
    X, y = overlapping(rng)
    clf = fit(MomentumMarginClassifier(max_iter=1), X, y)
    assert clf.separable_ is None
    assert check_certificate(clf, X, y, exact=exact)
    true, q = clf.certificate_, clf.certificate_.weights
    for name, other in (
        (name, x) for name, some in (WORDS | NUMBERS).items() for x in some
    ):
        claim(clf, true, **{name: other})
        check = check_certificate(clf, X, y, exact=exact)
        assert not check, (name, other)
        assert check.reason if name in NUMBERS else name in check.reason
        assert not isinstance(other, float) or name in WORDS or check.excess == np.inf
    for none in (
        0.0 * q,
        np.nan * q,
        np.inf * q,
        -q,
        q[:10],
        sp.hstack([q, q], format="csr"),
    ):
        claim(clf, true, weights=none)
        check = check_certificate(clf, X, y, exact=exact)
        assert not check
        assert check.excess == check.margin_bound == np.inf
        assert "no distribution" in check.reason
    for none in (
        None,
        np.full((60, 1), 1 / 60),
        sp.coo_array(np.full((60, 1), 1 / 60)),
    ):
        claim(clf, true, weights=none)
        assert check_certificate(clf, X, y, exact=exact).reason


@exactly_or_not
def test_outcomes_are_checked(exact, rng):
    # a soft margin separates only if examples do
    soft = DualLpPerceptron(C=1.0, random_state=0)
    for model, (X, y), separates, lies in (
        (
            MaxMarginClassifier(),
            separable(rng),
            True,
            {"separable": False, "status": "no_margin"},
        ),
        (soft, overlapping(rng), None, {"separable": True}),
    ):
        assert fit(model, X, y).separable_ is separates
        for name, other in lies.items():
            refused(model, name, X, y, exact=exact, **{name: other})


def proves(clf, weights, bound, *data, **options):
    """Whether these weights are confirmed to prove this bound."""
    weights = sp.csr_array(np.asarray(weights, dtype=float).reshape(len(weights), -1))
    claim(clf, weights=weights, margin_bound=bound, status="max_iter")
    return bool(check_certificate(clf, *data, **options))


@exactly_or_not
def test_weights_against_the_own_class_are_none(exact, rng):
    """On two opposite examples, they would add to the mass, and nothing to the sum."""
    X, y = overlapping(rng, k=3)
    X[3] = -X[0]
    clf = fit(MomentumMarginClassifier(max_iter=1, fit_intercept=False), X, y)
    q, bound = clf.certificate_.weights.toarray(), clf.margin_bound_
    assert proves(clf, q, bound, X, y, exact=exact)
    q *= 0.5
    q[[0, 3], y[0]] = 0.25
    assert not proves(clf, q, 0.5 * bound, X, y, exact=exact)


@exactly_or_not
@pytest.mark.parametrize("C", [np.inf, 100.0])
def test_weights_of_one_class_prove_nothing_with_an_intercept(C, exact):
    """Those on an example at the mean have a sum of length 0."""
    X, y = np.array([[-2.0], [0.0], [2.0]]), np.array([0, 0, 1])
    clf = MaxMarginClassifier(C=C).fit(X, y)
    assert proves(clf, [0.0, 0.5, 0.5], 1.2, X, y, exact=exact)
    assert not proves(clf, [0.0, 1.0, 0.0], 0.5, X, y, exact=exact)
    assert not proves(clf, [0.5, 0.5, 0.0], 0.9, X, y, exact=exact)


@exactly_or_not
def test_weights_of_examples_that_were_left_out_prove_nothing(exact):
    X, y, m = np.array([[0.0], [1.0], [0.0], [1.0]]), [0, 1, 1, 0], [1.0, 1.0, 0.0, 0.0]
    clf = MaxMarginClassifier().fit(X, y, sample_weight=m)
    assert not proves(clf, np.full(4, 0.25), 0.0, X, y, m, exact=exact)


def cancelling(rng, size, margin, n=8, d=3):
    """Examples whose margins under (1, ..., 1) are of the given size, as terms cancel."""
    y = np.arange(n) % 2
    big = rng.uniform(-size, size, (n, d))
    small = (
        margin * rng.uniform(1.0, 2.0, (n, d)) * np.where(y == 1, 1.0, -1.0)[:, None]
    )
    return np.hstack([big, small - big]), y


@pytest.mark.parametrize("margin", [1e-10, 1e-14])
def test_the_sign_of_a_margin_that_is_rounding(margin):
    """Nothing is said to separate that does not in fractions; and something is said."""
    separated = 0
    for seed in range(30):
        X, y = cancelling(np.random.default_rng(seed), 1e3, margin, n=2)
        clf = fit(MomentumMarginClassifier(fit_intercept=False, max_iter=3), X, y)
        confirmed(clf, X, y, exact=True)
        separated += clf.separable_ is True
    assert separated > 20


WAYS = [
    {"p": 1.5},
    {"p": "sparse"},
    {"p": 1.01},
    {"normalize": True},
    {"normalize": True, "fit_intercept": False},
    {"kernel": "precomputed"},
    {"kernel": "precomputed", "C": 1.0},
]


@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (pytest.param if is_quick(cls) else slow)(cls, params)
        for cls in ESTIMATORS
        for params in WAYS
        if set(params) <= set(parameters(cls))
    ],
    ids=str,
)
def test_roots_powers_and_kernel_matrices_are_enclosed(cls, params, rng):
    X, y = separable(rng, n=20, k=3 if "C" in params else 2)
    if "kernel" in params:
        K = rbf_kernel(X, gamma=0.1)
        X = 0.5 * (K + K.T)
    estimator = fit(make(cls, max_iter=40, **params), X, y)
    plain, exact = (
        check_certificate(estimator, X, y, exact=exact) for exact in (False, True)
    )
    assert exact, exact.reason
    np.testing.assert_allclose(plain.margin, exact.margin, rtol=1e-10)
    np.testing.assert_allclose(plain.margin_bound, exact.margin_bound, rtol=1e-10)


def test_the_exact_bounds_are_exact():
    """Against fractions by hand: (3, 4) and its mirror image are 5 apart from the origin."""
    X, y = np.array([[3.0, 4.0], [-3.0, -4.0]]), np.array([1, 0])
    estimator = MaxMarginClassifier().fit(X, y)
    check = check_certificate(estimator, X, y, exact=True)
    (w,), b = estimator.coef_, Fraction(estimator.intercept_[0])
    score = 3 * Fraction(w[0]) + 4 * Fraction(w[1])
    least, norm2 = min(score + b, score - b), Fraction(w[0]) ** 2 + Fraction(w[1]) ** 2
    assert Fraction(check.margin) ** 2 * norm2 <= least**2
    assert Fraction(np.nextafter(check.margin, np.inf)) ** 2 * norm2 > least**2
    assert estimator.margin_ <= 5.0 <= estimator.margin_bound_


@pytest.mark.parametrize("better", [1e-12, 1e-3])
def test_an_excess_is_that_of_the_claim(better):
    X, y = IRIS[0][:100], IRIS[1][:100]
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


def test_the_smallest_imbalance_is_paid_for():
    """A weight of 1e-22, which extended precision lost, on a row of length 1e11."""
    X = np.array([[-1.0, 0.0], [-2.0, 1e11], [3.0, 1e11], [0.0, 1e11]])
    clf = fit(VonNeumannClassifier(C=1.0, max_iter=5), X, [0, 1, 1, 0])
    confirmed(clf, X, [0, 1, 1, 0], exact=True)


def test_one_long_row_does_not_cost_the_proof():
    """Its weight is about 1 over the square of its length, and balanced by no other weight."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d, k = rng.integers(4, 20), rng.integers(1, 4), rng.choice([2, 2, 3])
        X, y = (
            rng.integers(-3, 4, (n, d)) * 1.0,
            np.append(np.arange(k), rng.integers(0, k, n - k)),
        )
        X[:, 0] = 0.0
        X[rng.integers(n), 0] = 10.0 ** rng.integers(10, 13)
        cls = (VonNeumannClassifier, MaxMarginClassifier)[seed % 4 // 3]
        clf = fit(cls(C=1.0, max_iter=5), X, y)
        check = check_certificate(clf, X, y, exact=True)
        assert check, (seed, check.reason)
        lower, upper = max(check.margin, 0.0), check.margin_bound
        for lie in (
            {"margin": np.nextafter(lower, 9.0)},
            {"margin_bound": np.nextafter(upper, 0)},
        ):
            refused(clf, "", X, y, exact=True, **lie)
