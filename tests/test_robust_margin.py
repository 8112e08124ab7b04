"""``nu``: the mean of the worst margins of a share of the examples, two classes."""

import pickle

import numpy as np
import pytest
from helpers.battery import over_seeds, slow
from helpers.claiming import refused
from helpers.estimators import certified, confirmed, fit
from helpers.games import worst_mean
from helpers.pairwise import pairwise
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import NuSVC

from marginsvm import (
    AcceleratedPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    check_certificate,
)
from marginsvm.extend import euclidean, logistic, softmax
from marginsvm.fit import Stopping, play
from marginsvm.papers.accelerated import AcceleratedPlay
from marginsvm.papers.momentum import Momentum
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows, share_caps

WITH_NU = [
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    AcceleratedPerceptron,
]
each = pytest.mark.parametrize("cls", WITH_NU)


def data(seed, n=60, d=3, shift=0.6, share=0.4):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < share * n, 1, -1)
    X = rng.standard_normal((n, d)) * 2.0 ** rng.integers(-1, 2, d)
    return X + shift * y[:, None], y


def robust_margin(clf, X, y, nu):
    return worst_mean(y * clf.decision_function(X), nu) / np.linalg.norm(clf.coef_)


def direction(clf):
    return clf.coef_ / np.linalg.norm(clf.coef_)


def rows_and_caps(y, nu, *, balanced=True, weights=None):
    rows = make_rows((y > 0).astype(int), 2, balanced=balanced, weights=weights)
    return rows, share_caps(rows, nu)


def most(y):
    return 2.0 * float(min(np.mean(y > 0), np.mean(y < 0)))


@pairwise(mu=[1e-12, 0.01, 0.3, 5.0, 1e6], balanced=[True, False], seed=range(4))
def test_the_response_is_the_best_one(seed, balanced, mu):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(30) < 11, 1, -1)
    weights = None if seed % 2 else rng.integers(1, 4, 30).astype(float)
    rows, caps = rows_and_caps(y, 0.5, balanced=balanced, weights=weights)
    m = rng.standard_normal(30)
    found = softmax.below(caps).respond(rows, m, mu)
    q, prior = found.q, np.broadcast_to(rows.prior, 30)
    assert np.all((q >= 0.0) & (q <= caps * (1 + 1e-14)))
    assert np.isclose(q.sum(), 1.0, rtol=1e-13)
    if balanced:
        assert abs(q @ y) < 1e-13
    # of the uncapped weights, the slope of the objective is that of their class, and of those at
    # their caps it is smaller: for a convex objective, that is enough
    slope = m + mu * np.log(np.maximum(q, 1e-300) / prior)
    for group in [y > 0, y < 0] if balanced else [y == y]:
        free = group & (q < caps * (1 - 1e-12)) & (q > 1e-250)
        if free.any():
            common = slope[free].max()
            assert common - slope[free].min() <= 1e-9 * max(mu, 1.0)
            assert np.all(
                slope[group & ~free & (q > 0.5 * caps)] <= common + 1e-9 * max(mu, 1.0)
            )
    value = m @ q / mu + xlogy(q, q / prior).sum()
    assert np.isclose(-found.log_risk, value, rtol=1e-9, atol=1e-9)


@given(
    st.lists(
        st.sampled_from([0.0, 1.0, -2.5, 1e-9, 1e9, 0.3]), min_size=4, max_size=12
    ),
    st.floats(0.01, 1.0),
    st.sampled_from([0.0, 1e-300, 1e-3, 1.0, 1e300]),
)
def test_the_response_stays_below_its_caps_whatever_the_margins(margins, nu, mu):
    m, y = np.array(margins), np.where(np.arange(len(margins)) % 2, 1, -1)
    rows, caps = rows_and_caps(y, min(nu, most(y)))
    found = softmax.below(caps).respond(rows, m, mu)
    assert np.all((found.q >= 0.0) & (found.q <= caps * (1 + 1e-14)))
    for group in (y > 0, y < 0):
        assert np.isclose(found.q[group].sum(), 0.5, rtol=1e-12)
    assert mu == 1e-300 or np.isfinite(found.log_risk)


def test_without_smoothing_the_worst_rows_have_their_caps():
    y = np.repeat([1, -1], 4)
    rows, caps = rows_and_caps(y, 0.375)  # three rows: one and a half of each class
    found = softmax.below(caps).respond(rows, np.array([0.0, 1, 2, 3, 5, 5, 9, 5]), 0.0)
    assert np.allclose(found.q, [1 / 3, 1 / 6, 0, 0, 1 / 6, 1 / 6, 0, 1 / 6])
    assert np.isclose(found.min_margin, 1 / 6 + 2.5)
    # class 0 is -1: from 5 to 3, class 1 from 1
    assert np.allclose(found.offsets, [-1.0, 1.0])


def test_a_response_without_caps_is_refused():
    rows, _ = rows_and_caps(np.array([1, -1]), 0.5)
    problem = LinearAdapter(np.eye(2), rows).with_share(0.5)
    with pytest.raises(ValueError, match="nu caps the weights"):
        problem.respond(problem.zeros(), 1.0, logistic)


@each
@pytest.mark.parametrize("nu", [slow(0.1), 0.6])
@over_seeds(2)
def test_it_is_the_problem_of_nusvc(cls, seed, nu):
    X, y = data(seed, shift=1.2)
    clf = fit(cls(nu=nu, tol=1e-3, max_iter=3000), X, y)
    peer = NuSVC(kernel="linear", nu=nu, tol=1e-10).fit(X, y)
    best = robust_margin(peer, X, y, nu)
    assert clf.margin_ <= best * (1 + 1e-8)
    assert clf.margin_bound_ >= best * (1 - 1e-8)
    assert np.isclose(clf.margin_, robust_margin(clf, X, y, nu), rtol=1e-9)
    if clf.status_ == "certified":
        assert np.linalg.norm(direction(clf) - direction(peer)) <= 0.05
        # as in NuSVC, examples at the edge of the share get the values +-1
        assert np.allclose(clf.coef_, peer.coef_, atol=0.1 * np.abs(peer.coef_).max())
    for exact in (False, True):
        assert check_certificate(clf, X, y, exact=exact)


def test_with_all_of_a_class_or_of_both_in_the_share():
    X, y = data(3, n=50, share=0.3)
    clf = certified(MomentumMarginClassifier(nu=0.6, tol=1e-3), X, y, exact=True)
    peer = NuSVC(kernel="linear", nu=0.6 - 1e-9, tol=1e-10).fit(X, y)
    assert np.isclose(clf.margin_, robust_margin(peer, X, y, 0.6), rtol=1e-3)
    assert np.allclose(clf.certificate_.weights.toarray()[y > 0], 0.5 / 15)
    X, y = data(5, share=0.5)
    clf = MomentumMarginClassifier(nu=1.0).fit(X, y)
    w = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    assert np.isclose(clf.margin_, 0.5 * np.linalg.norm(w), rtol=1e-9)
    assert np.allclose(direction(clf)[0], w / np.linalg.norm(w))


@pytest.mark.parametrize("nu", [slow(0.2), 0.5])
def test_kernels(nu):
    X, y = data(8, n=100, shift=0.3)
    clf = certified(
        MomentumMarginClassifier(nu=nu, kernel="rbf", gamma=0.5, tol=1e-3), X, y
    )
    peer = NuSVC(kernel="rbf", gamma=0.5, nu=nu, tol=1e-10).fit(X, y)
    a, S = peer.dual_coef_[0], X[peer.support_]
    norm = np.sqrt(a @ np.exp(-0.5 * ((S[:, None] - S) ** 2).sum(-1)) @ a)
    best = worst_mean(y * peer.decision_function(X), nu) / norm
    assert clf.margin_ <= best * (1 + 1e-7)
    assert clf.margin_bound_ >= best * (1 - 1e-7)
    assert np.allclose(clf.decision_function(X), peer.decision_function(X), atol=0.1)


def test_weights_count_like_copies():
    X, y = data(2)
    m = np.random.default_rng(0).integers(0, 4, len(y))
    copies = fit(
        MomentumMarginClassifier(nu=0.4), np.repeat(X, m, axis=0), np.repeat(y, m)
    )
    weighted = certified(
        MomentumMarginClassifier(nu=0.4), X, y, m.astype(float), exact=True
    )
    assert np.isclose(copies.margin_, weighted.margin_, rtol=1e-8)
    assert np.allclose(copies.coef_, weighted.coef_, rtol=1e-6)
    certified(MomentumMarginClassifier(nu=1.0, class_weight="balanced"), X, y)


def test_other_norms_and_divided_examples():
    X, y = data(9, d=6)
    sparse = certified(AcceleratedPerceptron(nu=0.5, p=1.3, tol=1e-2), X, y, exact=True)
    own = worst_mean(y * sparse.decision_function(X), 0.5)
    assert np.isclose(
        sparse.margin_, own / np.linalg.norm(sparse.coef_[0], ord=1.3), rtol=1e-8
    )
    divided = SmoothedKernelPerceptron(nu=0.5, normalize=True, tol=1e-2)
    certified(divided, X, y, exact=True)
    assert "mean of the worst 50 % of margins on (x, " in str(divided.certificate_)


@pytest.mark.parametrize("nu", [0.1, 0.6, 0.8])
def test_rates_are_those_of_the_share(nu):
    """The share takes the place of a single row: ln(1 / nu) that of ln n."""
    X, y = data(1, n=200, shift=1.2)
    rows, _ = rows_and_caps(y, nu)
    problem = LinearAdapter(X, rows).with_share(nu)
    peer = NuSVC(kernel="linear", nu=nu - 1e-9, tol=1e-10).fit(X, y)
    best, far = robust_margin(peer, X, y, nu) / problem.radius, np.log(1.0 / nu)
    for t in (1, 2, 5, 20, 200):
        # the margin of w_t is measured in the next round
        found = play(
            Momentum(), problem, Stopping("iterations", max_iter=t + 1)
        ).progress
        bound = 4 * (1 + far) * (1 + 2 * np.log(t + 1)) / (best * (t + 1) ** 2)
        assert found.lower >= best - bound
        assert found.upper**2 - 8 * far / (t + 1) ** 2 <= best**2 * (1 + 1e-6)
        found = play(
            AcceleratedPlay(), problem, Stopping("iterations", max_iter=t)
        ).progress
        regret = 8 * far / (t * (t + 1))
        assert max(found.lower, 0.0) ** 2 >= best**2 * (1 - 1e-6) - regret
        assert found.upper**2 <= best**2 * (1 + 1e-6) + regret


@pytest.mark.parametrize(("gradient", "reached"), [("theory", 0.98), ("plain", 0.8)])
def test_other_gradients(gradient, reached):
    """On the loss itself, the margin grows with the logarithm of the rounds only."""
    X, y = data(2)
    clf = fit(
        MomentumMarginClassifier(nu=0.5, gradient=gradient, tol=1e-2, max_iter=1000),
        X,
        y,
    )
    assert clf.margin_ > reached * clf.margin_bound_
    assert check_certificate(clf, X, y)


entries = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 100.0, -3.0])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(entries, entries), min_size=4, max_size=10), st.floats(0.05, 1.0)
)
@example(
    [
        (100, -1),
        (-3, 0),
        (0, 0),
        (-1, -3),
        (0, 1),
        (-3, 1),
        (0, 0),
        (0, 0),
        (-3, 1),
        (0, 0),
    ],
    1.0,
)
def test_bounds_hold_on_arbitrary_data(points, nu):
    X = np.array(points)
    y = np.where(np.arange(len(X)) % 3 == 0, 1, -1)
    nu = min(nu, most(y))
    for cls in WITH_NU:
        confirmed(fit(cls(nu=nu, max_iter=30), X, y), X, y, exact=True)


def test_false_claims_are_refused():
    X, y = data(3)
    clf = certified(MomentumMarginClassifier(nu=0.4, tol=1e-2), X, y)
    for lie in ({"separable": True}, {"nu": None}):
        refused(clf, "", X, y, **lie)
    clf.nu = 0.39
    assert "the margins are those with nu=0.39" in check_certificate(clf, X, y).reason


def test_a_positive_mean_does_not_separate():
    X, y = data(1, shift=0.5)
    clf = MomentumMarginClassifier(nu=0.6, tol=1e-2).fit(X, y)
    assert clf.margin_ > 0
    assert np.any(y * clf.decision_function(X) <= 0)
    assert clf.separable_ is None
    apart, y = data(1, shift=6.0)
    clf = MomentumMarginClassifier(nu=0.1, stopping="separation")
    assert certified(clf, apart, y, ends=("separated",), exact=True).separable_ is True


def test_classes_whose_means_agree():
    X, y = np.array([[0.0, 1], [1, 0], [0, -1], [-1, 0]] * 2), np.repeat([1, -1], 4)
    clf = certified(
        MomentumMarginClassifier(nu=1.0), X, y, ends=("no_margin",), exact=True
    )
    assert clf.separable_ is False
    with pytest.warns(ConvergenceWarning, match="A larger nu gives a larger mean"):
        MomentumMarginClassifier(nu=0.5).fit(X, y)


def test_a_small_mean_is_not_called_none():
    """Whatever tol is, which the mean is below."""
    X, y = data(4, shift=0.6)
    for tol in (0.3, 1e-2):
        clf = certified(MomentumMarginClassifier(nu=0.15, tol=tol), X, y)
        assert clf.margin_bound_ < 0.3 * clf.certificate_.radius


@each
def test_none_is_the_smallest_margin(cls):
    X, y = data(1, shift=6.0)
    hard, few = (cls(nu=nu, tol=1e-2).fit(X, y) for nu in (None, 1e-6))
    assert np.isclose(hard.margin_, few.margin_, rtol=1e-2)
    assert (hard.certificate_.nu, few.certificate_.nu) == (None, 1e-6)


def test_errors_say_what_to_do():
    X, y = data(0, n=50, share=0.3)
    for params, text in (
        ({"nu": 0.0}, "'nu'"),
        ({"nu": 1.1}, "'nu'"),
        ({"nu": 0.5, "C": 1.0}, "leave C=inf, or set nu=None"),
        ({"nu": 0.61}, "infeasible, as in NuSVC.*0.3 of all.*nu <= 0.6,"),
        ({"nu": 0.5, "loss": "logistic"}, "Logistic gives weights without caps"),
        ({"nu": 0.5, "loss": euclidean}, "Euclidean gives weights without caps"),
    ):
        with pytest.raises(ValueError, match=text):
            MomentumMarginClassifier(**params).fit(X, y)
    fit(MomentumMarginClassifier(nu=0.61, fit_intercept=False, max_iter=3), X, y)
    with pytest.raises(TypeError, match="'nu'"):
        MaxMarginClassifier(nu=0.1)


def test_a_warm_start_knows_the_share():
    X, y = data(6)
    parts = MomentumMarginClassifier(nu=0.3, tol=1e-2, warm_start=True, max_iter=20)
    with pytest.warns(ConvergenceWarning, match="max_iter=20.*a larger nu"):
        parts.fit(X, y)
    parts = pickle.loads(pickle.dumps(parts)).set_params(max_iter=10_000).fit(X, y)
    for nu in (0.3, 0.5):  # the second is another problem: it begins anew
        whole = MomentumMarginClassifier(nu=nu, tol=1e-2).fit(X, y)
        parts.set_params(nu=nu).fit(X, y)
        assert np.array_equal(parts.coef_, whole.coef_)
        assert parts.n_iter_ == whole.n_iter_
        assert check_certificate(pickle.loads(pickle.dumps(parts)), X, y)
