"""A certificate may be pessimistic, never wrong: rational arithmetic with no tolerance at all."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import is_quick, slow, some_slow
from helpers.claiming import claim
from helpers.estimators import ESTIMATORS, fit, make, overlapping, parameters, separable
from helpers.oracle import best_margin
from helpers.pairwise import pairwise
from sklearn.datasets import load_breast_cancer, load_iris

from marginsvm import (
    DualLpPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    VonNeumannClassifier,
    check_certificate,
)
from marginsvm.certificate.numbers import Floats, Rationals
from marginsvm.certificate.reading import Data, Reading


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


def test_weights_against_the_own_class_prove_nothing():
    X, y = load_iris(return_X_y=True)
    estimator = fit(MomentumMarginClassifier(max_iter=20), X, y)
    weights = np.zeros((150, 3))
    weights[np.arange(150), y] = 1 / 150  # they would bring all classes together
    claim(estimator, margin_bound=1e-15, weights=sp.csr_array(weights))
    for exact in (False, True):
        assert not check_certificate(estimator, X, y, exact=exact)


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
