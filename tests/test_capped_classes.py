"""Caps on the weights of examples of many classes: the hinge loss and ``nu``."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.claiming import changed
from helpers.games import imbalance, worst_mean
from helpers.pairwise import pairwise
from scipy.optimize import minimize
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from marginsvm import (
    AcceleratedPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    check_certificate,
)
from marginsvm.extend import softmax
from marginsvm.problem.rows import make_rows, share_caps


def assert_tampering_is_refused(clf, X, y):
    """The certificate is confirmed; with a larger margin, a smaller bound or other weights, not."""
    true = clf.certificate_
    assert check_certificate(clf, X, y)
    q = true.weights.toarray()
    heavy = np.argsort(-q.sum(axis=1))[:3]
    q[heavy] *= 3.0  # above the cap of an example, though no row is above it alone
    for claim in (
        changed(true, margin=true.margin * 1.001),
        changed(true, margin_bound=true.margin_bound * 0.999),
        changed(true, weights=sp.csr_array(q / q.sum())),
    ):
        clf.certificate_ = claim
        assert not check_certificate(clf, X, y)


def data(seed, n=30, k=3, d=2, apart=1.5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.standard_normal((n, d)) + apart * rng.standard_normal((k, d))[y], y


def fit(clf, X, y, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(X, y, **keywords)


def worst_values(clf, X, y):
    """For each example, the least difference of its own decision value to another."""
    F = clf.decision_function(X)
    own = np.arange(len(y)), y
    others = F.copy()
    others[own] = -np.inf
    return F[own] - others.max(axis=1)


class Oracle:
    """The dual by SciPy's SLSQP, with rows written out: it shares no code."""

    def __init__(self, X, y, *, balanced=True):
        k = int(y.max()) + 1
        pairs = [(i, j) for i in range(len(y)) for j in range(k) if j != y[i]]
        A, B = np.zeros((len(pairs), k, X.shape[1])), np.zeros((len(pairs), k))
        self.of_example = np.zeros((len(y), len(pairs)))
        for r, (i, j) in enumerate(pairs):
            A[r, y[i]], A[r, j] = X[i], -X[i]
            B[r, y[i]], B[r, j] = 1.0, -1.0
            self.of_example[i, r] = 1.0
        self.A, self.B = A.reshape(len(pairs), -1), B[:, : k - 1] if balanced else B[:, :0]

    def _solve(self, objective, caps, conditions):
        n = self.of_example.shape[1]
        if self.B.size:
            conditions.append(
                {"type": "eq", "fun": lambda q: self.B.T @ q, "jac": lambda q: self.B.T}
            )
        below = {
            "type": "ineq",
            "fun": lambda q: caps - self.of_example @ q,
            "jac": lambda q: -self.of_example,
        }
        start = np.full(n, min(1.0, caps.min()) / n)
        options = {"ftol": 1e-15, "maxiter": 1000}
        return minimize(
            objective, start, jac=True, bounds=[(0.0, None)] * n,
            constraints=[below, *conditions], method="SLSQP", options=options,
        )  # fmt: skip

    def share(self, caps):
        """The least norm of ``A^T q``."""
        one = {"type": "eq", "fun": lambda q: q.sum() - 1.0, "jac": np.ones_like}

        def objective(q):
            v = self.A.T @ q
            return 0.5 * v @ v, self.A @ v

        return float(np.linalg.norm(self.A.T @ self._solve(objective, caps, [one]).x))

    def priced(self, caps):
        """The least ``|W|^2 / 2 + sum caps xi``."""

        def objective(u):
            v = self.A.T @ u
            return 0.5 * v @ v - u.sum(), self.A @ v - 1.0

        return -float(self._solve(objective, caps, []).fun)


# The response.


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
        one, other = (
            softmax.below(caps).respond(rows, margins, 0.2),
            softmax.respond(rows, margins, 0.2),
        )
        assert np.allclose(one.q, other.q, rtol=1e-9)
        for name in ("offsets", "log_risk", "gradient_mass"):
            assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)


# Bounds.


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(("nu", "k"), [(0.6, 3), slow(1.0, 3), slow(1.0, 4)])
def test_fits_bracket_the_best_mean(nu, k, balanced):
    X, y = data(0, n=10 * k, k=k, apart=2.5)
    m = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    best = Oracle(X, y, balanced=balanced).share(m / (nu * m.sum()))
    for cls in (MomentumMarginClassifier, OptimisticPerceptron, AcceleratedPerceptron):
        clf = cls(nu=nu, tol=1e-2, max_iter=300, fit_intercept=balanced)
        fit(clf, X, y, sample_weight=m)
        assert clf.margin_ <= best * (1 + 1e-6)
        assert clf.margin_bound_ >= best * (1 - 1e-6)
        own = worst_mean(worst_values(clf, X, y), nu, m) / np.linalg.norm(clf.coef_)
        assert np.isclose(clf.margin_, own, rtol=1e-8)
        assert check_certificate(clf, X, y, sample_weight=m, exact=True)
        if cls is not OptimisticPerceptron:
            assert clf.status_ == "certified"


@pytest.mark.slow
def test_copies_blocks_and_given_kernels():
    X, y = data(3, n=60, apart=2.5)
    m = np.random.default_rng(0).integers(0, 4, len(y))
    clf = MomentumMarginClassifier(nu=0.4, tol=1e-2)
    of_copies = fit(
        MomentumMarginClassifier(nu=0.4, tol=1e-2), np.repeat(X, m, axis=0), np.repeat(y, m)
    )
    weighted = fit(clf, X, y, sample_weight=m.astype(float))
    assert np.isclose(of_copies.margin_, weighted.margin_, rtol=1e-8)
    assert np.allclose(of_copies.coef_, weighted.coef_, rtol=1e-6, atol=1e-9)
    whole = fit(MomentumMarginClassifier(nu=0.4, tol=1e-2), X, y)
    blocks = [(X[:25], y[:25]), (X[25:], y[25:])]
    others = {
        "blocks": fit_blocks(blocks),
        "sparse": fit(MomentumMarginClassifier(nu=0.4, tol=1e-2), sp.csr_matrix(X), y),
        "precomputed": fit(
            SmoothedKernelPerceptron(nu=0.4, tol=1e-2, kernel="precomputed"), X @ X.T, y
        ),
    }
    for name, other in others.items():
        assert other.status_ == "certified", name
        assert other.margin_ <= whole.margin_bound_ * (1 + 1e-6), name
        assert other.margin_bound_ >= whole.margin_ * (1 - 1e-6), name
    assert check_certificate(others["blocks"], blocks)
    assert check_certificate(others["precomputed"], X @ X.T, y)


def fit_blocks(blocks):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MomentumMarginClassifier(nu=0.4, tol=1e-2).fit_blocks(blocks)


def test_false_claims_are_refused():
    X, y = data(3, n=60, apart=2.5)
    clf = fit(MomentumMarginClassifier(nu=0.4, tol=1e-2), X, y)
    assert_tampering_is_refused(clf, X, y)


def test_a_share_that_a_large_class_leaves_no_room_for():
    y = np.r_[np.zeros(14, int), 1, 1, 1, 2, 2, 2]
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(
        ValueError, match=r"all but the largest are 0\.3 of all examples.*nu <= 0\.6,"
    ):
        MomentumMarginClassifier(nu=0.61).fit(X, y)
    clf = fit(MomentumMarginClassifier(nu=0.6, tol=1e-2, max_iter=20), X, y)
    assert check_certificate(clf, X, y, exact=True)


# The hinge loss of many classes: Crammer and Singer's problem.


def objective(clf, X, y, C, weight=1.0):
    slack = np.maximum(0.0, 1.0 - worst_values(clf, X, y))
    return 0.5 * np.sum(clf.coef_**2) + C * np.sum(weight * slack)


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("k", [3, 5])
def test_it_is_the_problem_of_crammer_and_singer(k, C):
    X, y = data(k, n=12 * k, k=k, d=3)
    clf = fit(MaxMarginClassifier(loss="hinge", C=C, fit_intercept=False), X, y)
    assert clf.status_ == "certified"
    own = objective(clf, X, y, C)
    assert np.isclose(clf.margin_, 1.0 / np.sqrt(2.0 * own), rtol=1e-7)
    peer = LinearSVC(
        C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-10, max_iter=10**6
    )
    if C <= 10.0:  # beyond, it does not come near
        best = objective(fit(peer, X, y), X, y, C)
        assert own <= best * (1 + 1e-6)
        assert clf.margin_bound_ >= (1 - 1e-9) / np.sqrt(2.0 * best)
    assert check_certificate(clf, X, y, exact=True)


@pytest.mark.parametrize("C", [1e-2, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_with_an_intercept_and_weights_it_is_the_dual_s(seed, C):
    X, y = data(seed, n=24, k=3 + seed % 2)
    m = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    clf = fit(MaxMarginClassifier(loss="hinge", C=C), X, y, sample_weight=m)
    assert clf.status_ == "certified"
    best = Oracle(X, y).priced(C * m)
    assert np.isclose(objective(clf, X, y, C, m), best, rtol=1e-5)
    assert check_certificate(clf, X, y, sample_weight=m, exact=True)
    copies = fit(
        MaxMarginClassifier(loss="hinge", C=C),
        *(np.repeat(a, m.astype(int), axis=0) for a in (X, y)),
    )
    assert np.isclose(copies.margin_, clf.margin_, rtol=2e-6)


def test_it_goes_on_from_two_classes():
    """Two classes are k = 2 with C / 2: a third class, which is out of reach, costs nothing."""
    X, y = data(0, n=40, k=2)
    C = 0.7
    two = fit(MaxMarginClassifier(loss="hinge", C=2.0 * C), X, y)
    far = np.column_stack([np.r_[X, [[0.0, 0.0]]], 1e5 * (np.arange(41) == 40)]), np.r_[y, 2]
    three = fit(MaxMarginClassifier(loss="hinge", C=C), *far)
    # w_0 - w_1 is the predictor of two classes; its squared length is twice that of both
    assert np.isclose(objective(three, *far, C), 0.5 * 0.5 / two.margin_**2, rtol=1e-3)


def test_kernels_and_forms_of_the_same_data():
    X, y = data(2, n=45)
    clf = MaxMarginClassifier(loss="hinge", C=0.5)
    dense = fit(clf, X, y)
    others = {
        "sparse": fit(MaxMarginClassifier(loss="hinge", C=0.5), sp.csr_matrix(X), y),
        "float32": fit(MaxMarginClassifier(loss="hinge", C=0.5), X.astype(np.float32), y),
        "precomputed": fit(
            MaxMarginClassifier(loss="hinge", C=0.5, kernel="precomputed"), X @ X.T, y
        ),
    }
    for name, other in others.items():
        assert other.status_ == "certified", name
        assert np.isclose(other.margin_, dense.margin_, rtol=3e-6), name
    of_examples = dense.certificate_.weights.toarray().sum(axis=1)
    assert np.isclose(dense.nu_, 1.0 / (len(y) * of_examples.max()), rtol=1e-9)
    rbf = fit(MaxMarginClassifier(loss="hinge", C=0.5, kernel="rbf", gamma=0.5), X, y)
    assert rbf.status_ == "certified"
    assert check_certificate(rbf, X, y)
    assert dense.dual_coef_.shape == (3, len(dense.support_))
    assert np.allclose(dense.dual_coef_ @ X[dense.support_], dense.coef_, atol=2e-3)


def test_the_hinge_loss_of_a_kernel_with_a_large_cost():
    """Where classes overlap."""
    X, y = data(0, n=300, d=3, apart=1.0)
    clf = MaxMarginClassifier(C=1e4, loss="hinge", kernel="rbf")
    clf.fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)
    assert np.isin(np.flatnonzero(clf.certificate_.weights.sum(axis=1)), clf.support_).all()


def test_false_claims_of_the_hinge_loss_are_refused():
    X, y = data(3, n=60)
    clf = fit(MaxMarginClassifier(loss="hinge", C=1.0), X, y)
    assert_tampering_is_refused(clf, X, y)
