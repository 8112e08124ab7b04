"""The hinge loss: SVC's problem, solved with a certificate."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import over_seeds, slow
from helpers.claiming import changed, claim
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifier, check_certificate


def data(seed, n=40, d=3, shift=0.7):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1, -1)
    y[:2] = 1, -1
    X = np.round(rng.standard_normal((n, d)) * 2.0 ** rng.integers(-2, 3, d), 2)
    return X + shift * y[:, None], y


def objective(w, b, X, y, C, weight=1.0):
    return 0.5 * w @ w + C * np.sum(weight * np.maximum(0.0, 1.0 - y * (X @ w + b)))


def best_objective(X, y, C, weight=None):
    """By libsvm, which shares no code, with the best intercept: its own costs 5e-4 at C = 1e4."""
    w = SVC(kernel="linear", C=C, tol=1e-11).fit(X, y, sample_weight=weight).coef_[0]
    weight = 1.0 if weight is None else weight
    return min(objective(w, b, X, y, C, weight) for b in y - X @ w)


def fitted(X, y, C, **parameters):
    weight = parameters.pop("sample_weight", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MaxMarginClassifier(loss="hinge", C=C, **parameters).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
@over_seeds(6)
def test_it_is_the_problem_of_svc(seed, C):
    X, y = data(seed)
    clf, best = fitted(X, y, C, tol=5e-7), best_objective(X, y, C)
    assert clf.status_ == "certified"
    own = objective(clf.coef_[0], clf.intercept_[0], X, y, C)
    assert own <= best * (1 + 1e-6)
    assert np.isclose(clf.margin_, 1.0 / np.sqrt(2.0 * own), rtol=1e-9)
    assert clf.margin_bound_ >= (1.0 - 1e-9) / np.sqrt(2.0 * best)
    assert 0.0 < np.abs(clf.dual_coef_).max() <= C * (1 + 1e-5)  # up to the gap
    assert np.allclose(clf.dual_coef_ @ X[clf.support_], clf.coef_, rtol=0, atol=2e-3)


@over_seeds(8)
def test_bounds_hold_in_all_rounds(seed):
    X, y = data(seed, shift=[0.0, 2.0][seed % 2])
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    C = 10.0 ** (seed - 3)
    best = 1.0 / np.sqrt(2.0 * best_objective(X, y, C, weight))
    for rounds in (1, 2, 4, 8):
        clf = fitted(X, y, C, max_iter=rounds, sample_weight=weight)
        own = objective(clf.coef_[0], clf.intercept_[0], X, y, C, weight)
        assert clf.margin_ <= (1 + 1e-9) / np.sqrt(2.0 * own)
        assert clf.margin_bound_ >= best * (1 - 1e-9)  # which libsvm may miss, but not exceed
        assert check_certificate(clf, X, y, sample_weight=weight)
        assert check_certificate(clf, X, y, sample_weight=weight, exact=True)


@over_seeds(4)
def test_without_an_intercept(seed):
    X, y = data(seed)
    clf = fitted(X, y, 0.3, fit_intercept=False)
    peer = LinearSVC(loss="hinge", C=0.3, fit_intercept=False, tol=1e-9, max_iter=10**5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(X, y)
    best = objective(peer.coef_[0], 0.0, X, y, 0.3)
    assert objective(clf.coef_[0], 0.0, X, y, 0.3) <= best * (1 + 1e-6)
    assert clf.margin_bound_ >= (1 - 1e-9) / np.sqrt(2.0 * best)
    assert clf.intercept_[0] == 0.0
    assert check_certificate(clf, X, y, exact=True)


def test_false_claims_are_refused():
    X, y = data(3)
    clf = fitted(X, y, 1.0)
    true = clf.certificate_
    assert check_certificate(clf, X, y)
    for false in (
        changed(true, margin=true.margin * 1.001),
        changed(true, margin_bound=true.margin_bound * 0.999),
    ):
        claim(clf, false)
        assert not check_certificate(clf, X, y)
    claim(clf, true)
    clf.C = 1.001
    assert not check_certificate(clf, X, y)


def test_weights_above_the_caps_prove_less():
    X, y = data(5)
    clf = fitted(X, y, 1.0)
    q = clf.certificate_.weights.toarray().ravel()
    largest = {label: np.flatnonzero(y == label)[np.argmax(q[y == label])] for label in (1, -1)}
    for i in largest.values():  # stays balanced, but two rows weigh more
        q[i] += 0.05
    claim(clf, weights=sp.csr_array((q / q.sum())[:, None]))
    assert check_certificate(clf, X, y).margin_bound > 1.01 * clf.margin_bound_


def test_nu_is_that_of_svc():
    X, y = data(1, n=60, shift=0.3)
    clf = fitted(X, y, 0.5, tol=1e-10)
    assert np.isclose(clf.nu_, np.abs(clf.dual_coef_).sum() / (0.5 * len(y)), rtol=1e-5)
    slack = 1.0 - y * clf.decision_function(X)
    assert np.mean(slack > 1e-4) <= clf.nu_ <= np.mean(slack > -1e-4)


def test_weights_count_like_copies():
    X, y = data(2)
    m = np.random.default_rng(0).integers(0, 4, len(y))
    m[:2] = 1
    copies = fitted(np.repeat(X, m, axis=0), np.repeat(y, m), 0.2)
    weighted = fitted(X, y, 0.2, sample_weight=m.astype(float))
    assert np.isclose(copies.margin_, weighted.margin_, rtol=2e-6)
    assert np.allclose(copies.coef_, weighted.coef_, atol=2e-3)
    classes = fitted(X, y, 0.2, class_weight={1: 3.0})
    same = fitted(X, y, 0.2, sample_weight=np.where(y == 1, 3.0, 1.0))
    assert np.isclose(classes.margin_, same.margin_, rtol=2e-6)
    assert check_certificate(classes, X, y)


def test_forms_of_the_same_data():
    X, y = data(7, n=600, d=5, shift=0.4)
    dense = fitted(X, y, 0.1)
    others = {
        "sparse": fitted(sp.csr_matrix(X), y, 0.1),
        "float32": fitted(X.astype(np.float32), y, 0.1),
        "blocks": clone(dense).fit_blocks([(X[:250], y[:250]), (X[250:], y[250:])]),
        "precomputed": fitted(X @ X.T, y, 0.1, kernel="precomputed"),
        "function": fitted(X, y, 0.1, kernel=lambda A, B: A @ B.T),
    }
    for name, other in others.items():
        assert other.status_ == "certified", name
        assert np.isclose(other.margin_, dense.margin_, rtol=3e-6), name
        assert np.isclose(other.nu_, dense.nu_, rtol=1e-2), name


def test_predictors_may_be_zero():
    X, y = np.array([[1.0, 1], [-1, -1], [1, -1], [-1, 1]]), np.array([1, 1, -1, -1])
    clf = fitted(X, y, 1.0)
    assert clf.status_ == "certified"
    assert np.allclose(clf.coef_, 0.0)
    assert np.isclose(clf.margin_, np.sqrt(1 / 8))
    assert check_certificate(clf, X, y, exact=True)


def test_without_slack_both_losses_are_one():
    X, y = data(0, shift=8.0)
    hinge, squared = fitted(X, y, np.inf), MaxMarginClassifier().fit(X, y)
    assert np.array_equal(hinge.coef_, squared.coef_)
    assert hinge.margin_ == squared.margin_
    large = fitted(X, y, 1e3)
    assert large.separable_ is True
    assert np.isclose(large.margin_, squared.margin_, rtol=3e-6)


@pytest.mark.parametrize(("n", "d", "n_classes"), [(24, 27, 2), slow(150, 55, 12)])
@over_seeds(3)
def test_a_cost_beyond_what_matters_leaves_the_hard_margin(seed, n, d, n_classes):
    rng = np.random.default_rng(seed)
    X, y = 1e6 * rng.standard_normal((n, d)), np.arange(n) % n_classes
    hard = MaxMarginClassifier(tol=1e-7).fit(X, y)
    for C in (1e3, 1e6, 1e12):
        clf = fitted(X, y, C)
        assert clf.status_ == "certified"
        assert np.isclose(clf.margin_, hard.margin_, rtol=1e-5)
        assert check_certificate(clf, X, y)


def test_separation_ends_a_fit():
    X, y = data(0, shift=8.0)
    clf = fitted(X, y, 1.0, stopping="separation")
    assert clf.status_ == "separated"
    assert np.all(y * clf.decision_function(X) > 0)
    assert check_certificate(clf, X, y)


@pytest.mark.slow
def test_more_classes_than_interior_points_can_hold():
    X = np.random.default_rng(0).standard_normal((700, 600))
    y = np.arange(700) % 5
    clf = fitted(X, y, 1e-3)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)


def test_warm_start():
    X, y = data(6, n=200)
    whole = fitted(X, y, 100.0)
    parts = MaxMarginClassifier(loss="hinge", C=100.0, warm_start=True, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        parts.fit(X, y)
    parts.set_params(max_iter=200).fit(X, y)
    assert parts.margin_ == pytest.approx(whole.margin_, rel=2e-6)
    parts.set_params(loss="squared_hinge").fit(X, y)
    anew = MaxMarginClassifier(C=100.0).fit(X, y)
    assert parts.margin_ == pytest.approx(anew.margin_, rel=2e-6)
    assert check_certificate(parts, X, y)


@pytest.mark.parametrize("C", [0.02, 20.0])
def test_few_long_examples(C):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((90, 400)), np.where(rng.random(90) < 0.3, 1, -1)
    clf = fitted(X, y, C, tol=5e-7)
    best = best_objective(X, y, C)
    assert clf.status_ == "certified"
    assert objective(clf.coef_[0], clf.intercept_[0], X, y, C) <= best * (1 + 1e-6)
    assert clf.margin_bound_ >= (1.0 - 1e-7) / np.sqrt(2.0 * best)
    sparse = fitted(sp.csr_matrix(X), y, C)
    assert np.isclose(sparse.margin_, clf.margin_, rtol=2e-6)
    assert check_certificate(sparse, X, y)


def test_working_sets_of_a_kernel():
    """More examples than a first working set holds, of which many have slack."""
    X, y = data(9, n=900, shift=0.4)
    m = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    for intercept in (True, False):
        clf = fitted(X, y, 0.5, kernel="rbf", sample_weight=m, fit_intercept=intercept)
        assert clf.status_ == "certified"
        assert len(clf.support_) > 400
        assert check_certificate(clf, X, y, sample_weight=m)
        assert np.abs(clf.dual_coef_[0] / m[clf.support_]).max() <= 0.5 * (1 + 1e-5)
    clf = fitted(X, y, 0.5, kernel="rbf", gamma=0.2, tol=1e-8, sample_weight=m)
    peer = SVC(C=0.5, gamma=0.2, tol=1e-9).fit(X, y, sample_weight=m)
    assert np.allclose(clf.decision_function(X), peer.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_kernels(C):
    X, y = data(8, n=150, shift=0.3)
    clf = fitted(X, y, C, kernel="rbf")
    peer = SVC(C=C, tol=1e-10).fit(X, y)
    assert clf.status_ == "certified"
    assert np.allclose(clf.decision_function(X), peer.decision_function(X), atol=5e-3)
    assert np.abs(clf.dual_coef_).max() <= C * (1 + 1e-5)
    a = peer.dual_coef_[0]
    K = np.exp(-peer._gamma * ((X[peer.support_, None] - X[peer.support_]) ** 2).sum(-1))
    slack = np.maximum(0.0, 1.0 - y * peer.decision_function(X))
    best = 0.5 * a @ K @ a + C * slack.sum()
    assert clf.margin_ >= (1 - 1e-6) / np.sqrt(2 * best)
    assert clf.margin_bound_ >= (1 - 1e-9) / np.sqrt(2 * best)
    assert check_certificate(clf, X, y)


@over_seeds(5)
def test_few_examples_far_from_their_mean(seed):
    """The best intercept of a predictor depends on its scale, and few weights are free."""
    rng = np.random.default_rng(seed)
    X, y = (
        np.round(1000.0 * rng.standard_normal((7, 1)), 3) + 100.0,
        np.array([1, -1, 1, 1, 1, 1, 1]),
    )
    weight = 3.0 * rng.random(7)
    clf = fitted(X, y, 0.01, sample_weight=weight)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y, sample_weight=weight, exact=True)


@pytest.mark.parametrize("C", [0.02, 0.1, 1.0, 10.0])
def test_weights_make_up_the_predictor_that_is_found_before_them(C):
    """By symmetry, the difference of the means is the best direction from the first round on."""
    X = np.array([[-2.0, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]])
    clf = fitted(X, [1, 1, 1, 2, 2, 2], C)
    assert np.allclose(clf.dual_coef_ @ X[clf.support_], clf.coef_, rtol=2e-3)
    assert np.abs(clf.dual_coef_).max() <= C
    svc = SVC(kernel="linear", C=C, tol=1e-9).fit(X, [1, 1, 1, 2, 2, 2])
    assert np.allclose(clf.coef_, svc.coef_, rtol=1e-3)


def test_a_working_set_that_other_examples_would_balance():
    """With a C of next to nothing, the larger class has slack or not by the intercept alone."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((111, 119)), np.where(np.arange(111) < 56, -1, 1)
    C = 1e-10
    clf = fitted(X, y, C)
    assert clf.status_ == "certified"
    P = 0.5 / clf.margin_**2  # all weights of the smaller class are at their caps
    np.testing.assert_allclose(P, 2.0 * C * 55, rtol=1e-6)


@pytest.mark.parametrize("C", [1e2, 1e4])
def test_kernels_at_a_large_cost(C):
    """Weights range over many orders: what steps by pairs leave is solved by Newton's method."""
    X, y = data(3, n=400, d=5, shift=0.3)
    clf = fitted(X, y, C, kernel="rbf", gamma=0.05)
    assert clf.status_ == "certified"
    assert clf.n_iter_ <= 60
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize(
    ("n", "d", "C", "parameters"),
    [(60, 80, 1.0, {}), (300, 4, 1e3, {"kernel": "rbf", "gamma": 0.02})],
)
def test_weights_count_like_copies_in_working_sets(n, d, C, parameters):
    """Few examples of many features, by pairs; a kernel at a large cost, by Newton too."""
    X, y = data(2, n=n, d=d, shift=0.1)
    weight = np.arange(n) % 4
    weighted = fitted(X, y, C, sample_weight=weight, **parameters)
    copies = fitted(np.repeat(X, weight, axis=0), np.repeat(y, weight), C, **parameters)
    assert weighted.status_ == copies.status_ == "certified"
    np.testing.assert_allclose(weighted.margin_, copies.margin_, rtol=2e-6)
    assert check_certificate(weighted, X, y, sample_weight=weight)
