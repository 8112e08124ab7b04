"""Caps on the weights of examples of many classes: the hinge loss and ``nu``."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.claiming import refused
from helpers.estimators import certified, confirmed, fit
from helpers.games import imbalance, worst_mean
from helpers.oracle import explicit_rows
from helpers.pairwise import pairwise
from scipy.optimize import minimize
from scipy.special import xlogy
from sklearn.svm import LinearSVC

from marginsvm import (
    AcceleratedPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
)
from marginsvm.extend import softmax
from marginsvm.problem.rows import make_rows, share_caps


def data(seed, n=30, k=3, d=2, apart=1.5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.standard_normal((n, d)) + apart * rng.standard_normal((k, d))[y], y


def worst_values(clf, X, y):
    """For each example, the least difference of its own decision value to another."""
    F = clf.decision_function(X)
    own = np.arange(len(y)), y
    others = F.copy()
    others[own] = -np.inf
    return F[own] - others.max(axis=1)


def best_mean(X, y, caps, balanced):
    """The least norm of weighted rows, no example above its cap, by SLSQP: it shares no code."""
    A, B, unit = explicit_rows(X, y)
    ones = np.column_stack([np.ones(len(B)), B[:, :-1] if balanced else B[:, :0]])
    of_example = np.repeat(np.eye(len(y)), y.max(), axis=0)
    conditions = [
        {"type": "eq", "fun": lambda q: q @ ones - np.eye(1, ones.shape[1])[0]},
        {"type": "ineq", "fun": lambda q: caps - q @ of_example},
    ]
    for condition, jacobian in zip(conditions, (ones.T, -of_example.T), strict=True):
        condition["jac"] = lambda q, jacobian=jacobian: jacobian

    def objective(q):
        return 0.5 * np.sum((q @ A) ** 2), A @ (q @ A)

    start, options = np.full(len(A), 1.0 / len(A)), {"ftol": 1e-15, "maxiter": 1000}
    bounds = [(0.0, None)] * len(A)
    found = minimize(
        objective, start, (), "SLSQP", True, bounds=bounds, constraints=conditions, options=options
    )
    return float(np.linalg.norm(found.x @ A)) * unit


@pairwise(
    of={f"{k}-{seed}": (seed, k) for seed, k in [(0, 3), (1, 3), (2, 5), (3, 5)]},
    balanced=[True, False],
    mu=[0.003, 0.3, 5.0, 1e6],
)
def test_the_response_is_the_best_one(of, balanced, mu):
    seed, k = of
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(k), rng.integers(0, k, 50)]
    weights = None if seed % 2 else rng.integers(1, 4, len(codes)).astype(float)
    rows = make_rows(codes, k, balanced=balanced, weights=weights)
    caps = share_caps(rows, 0.5)
    margins = rows.margins(rng.standard_normal((len(codes), k)))
    found = softmax.below(caps).respond(rows, margins, mu)
    q, own = found.q, np.isinf(margins)
    of_example, prior = q.sum(axis=1), np.broadcast_to(rows.prior, q.shape)
    assert np.all(q >= 0.0)
    assert np.all(of_example <= caps * (1 + 1e-12))
    assert np.isclose(q.sum(), 1.0, rtol=1e-12)
    assert imbalance(rows, q) <= 1e-11
    # a convex objective is least where its slopes are equal on all rows of an example and on all
    # examples below their caps, and no larger on those at their caps
    shift = found.offsets[codes][:, None] - found.offsets if balanced else 0.0
    slope = np.where(own | (q < 1e-200), np.nan, margins + shift + mu * np.log(q / prior + 1e-300))
    seen = ~np.isnan(slope).all(axis=1)
    slope, far = slope[seen], 1e-9 * max(mu, 1.0)
    assert np.all(np.nanmax(slope, axis=1) - np.nanmin(slope, axis=1) <= far)
    of_rows, free = np.nanmax(slope, axis=1), (of_example < caps * (1 - 1e-12))[seen]
    if free.any():
        assert np.ptp(of_rows[free]) <= far
        assert np.all(of_rows <= of_rows[free].max() + far)
    value = np.where(own, 0.0, q * np.where(own, 0.0, margins)).sum() / mu
    value += xlogy(q, q / prior).sum()
    assert np.isclose(-found.log_risk, value, rtol=1e-9, atol=1e-9)


def test_with_a_small_share_it_is_the_softmax():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 60)
    for balanced in (True, False):
        rows = make_rows(codes, 4, balanced=balanced)
        margins = rows.margins(rng.standard_normal((60, 4)))
        caps = share_caps(rows, 1e-9)
        one, other = (s.respond(rows, margins, 0.2) for s in (softmax.below(caps), softmax))
        assert np.allclose(one.q, other.q, rtol=1e-9)
        for name in ("offsets", "log_risk", "gradient_mass"):
            assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(("nu", "k"), [(0.6, 3), slow(1.0, 3), slow(1.0, 4)])
def test_fits_bracket_the_best_mean(nu, k, balanced):
    X, y = data(0, n=10 * k, k=k, apart=2.5)
    m = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    best = best_mean(X, y, m / (nu * m.sum()), balanced)
    for cls in (MomentumMarginClassifier, OptimisticPerceptron, AcceleratedPerceptron):
        clf = cls(nu=nu, tol=1e-2, max_iter=300, fit_intercept=balanced)
        ends = ("certified", *["max_iter"] * (cls is OptimisticPerceptron))
        certified(clf, X, y, m, ends=ends, exact=True)
        assert clf.margin_ <= best * (1 + 1e-6)
        assert clf.margin_bound_ >= best * (1 - 1e-6)
        own = worst_mean(worst_values(clf, X, y), nu, m) / np.linalg.norm(clf.coef_)
        assert np.isclose(clf.margin_, own, rtol=1e-8)


def test_false_claims_are_refused():
    X, y = data(3, n=60, apart=2.5)
    clf = certified(MomentumMarginClassifier(nu=0.4, tol=1e-2), X, y)
    refused(clf, "predictor's margin", X, y, margin=clf.margin_ * 1.001)
    refused(clf, "the weights prove", X, y, margin_bound=clf.margin_bound_ * 0.999)
    q = clf.certificate_.weights.toarray()
    q[np.argsort(-q.sum(axis=1))[:3]] *= 3.0  # above the cap of an example, though no row alone is
    refused(clf, "the weights prove", X, y, weights=sp.csr_array(q / q.sum()))


def test_a_share_that_a_large_class_leaves_no_room_for():
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.repeat([0, 1, 2], [14, 3, 3])
    message = r"all but the largest are 0\.3 of all examples.*nu <= 0\.6,"
    with pytest.raises(ValueError, match=message):
        MomentumMarginClassifier(nu=0.61).fit(X, y)
    clf = MomentumMarginClassifier(nu=0.6, tol=1e-2, max_iter=20)
    confirmed(fit(clf, X, y), X, y, exact=True)


def hinge(C, **params):
    return MaxMarginClassifier(loss="hinge", C=C, **params)


def objective(clf, X, y, C, weight=1.0):
    slack = np.maximum(0.0, 1.0 - worst_values(clf, X, y))
    return 0.5 * np.sum(clf.coef_**2) + C * np.sum(weight * slack)


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("intercept", [False, True])
def test_it_is_the_problem_of_crammer_and_singer(k, C, intercept, rng):
    """With weights and an intercept, the best value is that of test_solvers.py."""
    X, y = data(k, n=12 * k, k=k, d=3)
    weight = rng.integers(1, 4, len(y)).astype(float) if intercept else np.ones(len(y))
    clf = certified(hinge(C, fit_intercept=intercept), X, y, weight, exact=True)
    own = objective(clf, X, y, C, weight)
    assert np.isclose(clf.margin_, 1.0 / np.sqrt(2.0 * own), rtol=1e-7)
    if C <= 10.0 and not intercept:  # beyond, LinearSVC does not come near
        params = {"multi_class": "crammer_singer", "fit_intercept": False}
        peer = fit(LinearSVC(C=C, tol=1e-10, max_iter=10**6, **params), X, y)
        best = objective(peer, X, y, C)
        assert own <= best * (1 + 1e-6)
        assert clf.margin_bound_ >= (1 - 1e-9) / np.sqrt(2.0 * best)


def test_it_goes_on_from_two_classes():
    """Two classes are k = 2 with C / 2: a third class, which is out of reach, costs nothing."""
    (X, y), C = data(0, n=40, k=2), 0.7
    two = hinge(2.0 * C).fit(X, y)
    far = np.column_stack([np.r_[X, [[0.0, 0.0]]], 1e5 * (np.arange(41) == 40)]), np.r_[y, 2]
    three = fit(hinge(C), *far)
    # w_0 - w_1 is the predictor of two classes; its squared length is twice that of both
    assert np.isclose(objective(three, *far, C), 0.5 * 0.5 / two.margin_**2, rtol=1e-3)


def test_attributes():
    X, y = data(2, n=45)
    clf = hinge(0.5).fit(X, y)
    of_examples = clf.certificate_.weights.toarray().sum(axis=1)
    assert np.isclose(clf.nu_, 1.0 / (len(y) * of_examples.max()), rtol=1e-9)
    assert clf.dual_coef_.shape == (3, len(clf.support_))
    assert np.allclose(clf.dual_coef_ @ X[clf.support_], clf.coef_, atol=2e-3)


@pytest.mark.parametrize(("n", "d", "C", "gamma"), [(45, 2, 0.5, 0.5), (300, 3, 1e4, "scale")])
def test_kernels_of_classes_that_overlap(n, d, C, gamma):
    X, y = data(0, n=n, d=d, apart=1.0)
    clf = certified(hinge(C, kernel="rbf", gamma=gamma), X, y)
    assert np.isin(np.flatnonzero(clf.certificate_.weights.sum(axis=1)), clf.support_).all()
