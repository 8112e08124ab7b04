"""The exact solver where exactness is hard, against oracles that share no code."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.estimators import MORE_DIGITS, fit, needs_more_digits, overlapping, separable
from helpers.oracle import best_margin, explicit_rows
from helpers.pairwise import pairwise
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    check_certificate,
)
from marginsvm._rounding import UNIT, Extended

KINDS = ["plain", "duplicates", "zeros", "contradictory", "scaled", "integer", "low_rank"]
KINDS += ["one_feature", "many_features"]


def problem(kind, seed, k=2):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(max(4, 2 * k), 60), rng.integers(1, 12)
    d = {"one_feature": 1, "many_features": 80}.get(kind, d)
    X = rng.standard_normal((n, d))
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X += rng.choice([0.0, 1.0, 4.0]) * rng.standard_normal((k, d))[y]
    if kind == "duplicates":
        pick = rng.integers(0, n, n)
        pick[:k] = np.arange(k)
        X, y = X[pick], y[pick]
    if kind == "zeros":
        X[rng.integers(0, n, 3)] = 0
    if kind == "contradictory":
        X[-1], y[-1] = X[0], (y[0] + 1) % k
    if kind == "scaled":
        X *= 10.0 ** rng.integers(-3, 4, d)
    if kind == "integer":
        X = np.round(X)
    if kind == "low_rank":
        X = X[:, :1] @ rng.standard_normal((1, d)) + X[:, -1:] @ rng.standard_normal((1, d))
    return X, y


def is_separable(X, y, fit_intercept):
    """Linear program: the largest t with A w + T b >= t, entries of w and b within 1."""
    A, T, _ = explicit_rows(X - X.mean(axis=0) if fit_intercept else X, y)
    M = np.hstack([A / (np.abs(A).max() or 1.0), T]) if fit_intercept else A / np.abs(A).max()
    n, d = M.shape
    found = linprog(
        np.append(np.zeros(d), -1.0),
        np.hstack([-M, np.ones((n, 1))]),
        np.zeros(n),
        bounds=[(-1, 1)] * d + [(None, 1)],
    )
    return -found.fun > 1e-9


@pairwise(kind=KINDS, fit_intercept=[True, slow(False)], k=[2, slow(3)])
def test_certified_or_proved_not_separable(kind, fit_intercept, k):
    for seed in range(8):
        X, y = problem(kind, seed, k)
        clf = fit(MaxMarginClassifier(fit_intercept=fit_intercept, max_iter=50), X, y)
        truth = is_separable(X, y, fit_intercept)
        assert check_certificate(clf, X, y)
        assert clf.status_ == ("certified" if truth else "no_margin")
        # the floats of a product are of low rank up to rounding only, which no proof can leave out
        unknown = kind == "low_rank" and not truth and clf.separable_ is None
        assert clf.separable_ is truth or unknown
        rank = min(X.shape) * (1 if k == 2 else k)
        if truth:
            assert clf.gap_ <= 1e-6
            if kind != "scaled":
                best = best_margin(X, y, fit_intercept=fit_intercept)
                np.testing.assert_allclose(clf.margin_, best, rtol=1e-5)
        elif kind != "low_rank":
            assert clf.certificate_.weights.nnz <= rank + k


def test_agrees_with_svc(rng):
    for _ in range(5):
        X, y = separable(rng, n=300, d=20, margin=0.1)
        peer = SVC(kernel="linear", C=np.inf, tol=1e-10).fit(X, y)
        clf = MaxMarginClassifier().fit(X, y)
        np.testing.assert_allclose(clf.margin_, 1.0 / np.linalg.norm(peer.coef_), rtol=1e-7)
        np.testing.assert_allclose(clf.coef_, peer.coef_, atol=1e-6 * np.abs(peer.coef_).max())
        np.testing.assert_allclose(clf.intercept_, peer.intercept_, atol=1e-6)
        assert set(clf.support_) == set(peer.support_)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("k", [2, 3])
def test_support_is_where_the_weights_are(kernel, k, rng):
    X, y = separable(rng, k=k)
    X = X @ X.T if kernel == "precomputed" else X
    clf = MaxMarginClassifier(kernel=kernel).fit(X, y)
    weights = np.asarray(clf.certificate_.weights.sum(axis=1)).ravel()
    np.testing.assert_array_equal(clf.support_, np.flatnonzero(weights > 0))
    assert 2 <= len(clf.support_) < len(y)


@pytest.mark.parametrize("margin", [1e-5, 1e-7, pytest.param(1e-9, marks=needs_more_digits)])
def test_tiny_margins_are_certified(margin):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X /= np.linalg.norm(X, axis=1).max()
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y, 1, -1) * margin - X[:, 0] * 0.999999999 * (np.abs(X[:, 0]) < 1e-1)
    clf = MaxMarginClassifier().fit(X, y)
    assert clf.status_ == "certified"
    assert clf.separable_ is True
    assert clf.gap_ <= 1e-6
    assert check_certificate(clf, X, y)


def test_badly_scaled_features(rng):
    X = rng.standard_normal((100, 4)) * [1e-8, 1.0, 1e4, 1e8]
    y = (rng.random(100) < 0.5).astype(int)
    X[:, 3] += 6e8 * y
    assert MaxMarginClassifier().fit(X, y).status_ == "certified"


def test_two_examples():
    clf = MaxMarginClassifier().fit([[1.0], [4.0]], [0, 1])
    assert clf.margin_ == pytest.approx(1.5)
    np.testing.assert_allclose(clf.decision_function([[1.0], [4.0]]), [-1.0, 1.0])
    with pytest.warns(UserWarning, match="C < inf"):
        clf.fit([[1.0], [1.0]], [0, 1])
    assert clf.separable_ is False


def test_one_feature(rng):
    """Any w > 0 has the largest margin; the support still is that of the exact weights."""
    X = rng.standard_normal((2000, 1))
    clf = MaxMarginClassifier().fit(X, X[:, 0] > 0.3)
    inner, outer = X[X < 0.3].max(), X[X > 0.3].min()
    assert clf.margin_ == pytest.approx(0.5 * (outer - inner))
    assert set(X[clf.support_, 0]) == {inner, outer}


def test_one_example_of_a_class_among_many(rng):
    X = rng.standard_normal((3000, 4))
    X[17] = [9.0, 9.0, 0.0, 0.0]
    clf = MaxMarginClassifier().fit(X, np.arange(3000) == 17)
    assert clf.status_ == "certified"
    assert 17 in clf.support_
    np.testing.assert_allclose(clf.margin_, best_margin(X, np.arange(3000) == 17), rtol=1e-5)


@pytest.mark.parametrize("form", [pytest.param(np.asarray, marks=pytest.mark.slow), sp.csr_array])
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater")  # scikit-learn's
def test_as_many_classes_as_examples(form, rng):
    """Systems of the rows with weight would cost more than to go on without them."""
    X, y = form(rng.standard_normal((70, 9))), np.arange(70)
    clf = MaxMarginClassifier().fit(X, y)
    assert clf.status_ == "certified"
    assert clf.certificate_.weights.nnz > 250  # each class has an example
    assert clf.score(X, y) == 1.0
    assert check_certificate(clf, X, y)


def test_every_feature_has_a_support_vector():
    """Each row is there twice, from either class: the two share a weight of 1 / 300."""
    X = np.vstack([np.eye(300), -np.eye(300)])
    y = np.repeat([0, 1], 300)
    clf = MaxMarginClassifier(fit_intercept=False).fit(X, y)
    assert clf.status_ == "certified"
    weights = clf.certificate_.weights.toarray().reshape(2, 300).sum(axis=0)
    np.testing.assert_allclose(weights, 1 / 300, atol=np.sqrt(2e-6 / 300))  # as tol = 1e-6 allows
    assert set(clf.support_ % 300) == set(range(300))
    np.testing.assert_allclose(clf.margin_, 1 / np.sqrt(300), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.float32])
def test_what_is_not_finite_is_refused(bad, form, rng):
    """It is found by the pass that measures X, in an example of any place."""
    X, y = separable(rng, n=700)
    X[rng.integers(0, 700), 1] = bad
    wanted = "NaN" if np.isnan(bad) else "infinity|overflow|too large"
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=wanted) as error:
        MaxMarginClassifier().fit(form(X), y)
    if np.isnan(bad):  # with scikit-learn's advice on missing values
        assert "HistGradientBoosting" in str(error.value)


@pytest.mark.parametrize("pair", [(50, 150), (0, 150)])
def test_iris_is_not_separable(pair):
    X, y = load_iris(return_X_y=True)
    X, y = X[slice(*pair)], y[slice(*pair)]
    clf = fit(MaxMarginClassifier(), X, y)
    assert clf.separable_ is False
    assert clf.margin_bound_ <= 1e-12
    assert check_certificate(clf, X, y)


def test_newton_takes_cheap_steps_with_many_features(rng):
    X, y = make_classification(900, 260, n_informative=30, random_state=0)
    X = X.astype(np.float32)
    clf = MaxMarginClassifier(C=1.0).fit(X, y)
    assert clf.status_ == "certified"
    peer = LinearSVC(C=1.0, fit_intercept=False, tol=1e-10, max_iter=20000).fit(X - X.mean(0), y)
    assert clf.score(X, y) >= peer.score(X - X.mean(0), y) - 0.01


@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("seed", [0, 1])
def test_newton_hands_over_where_its_steps_are_short(C, seed):
    rng = np.random.default_rng(seed)  # nearly as many features as examples: nearly separable
    X, y = sp.random_array((600, 500), density=0.02, rng=rng), rng.integers(0, 2, 600)
    clf = MaxMarginClassifier(C=C, max_iter=60).fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)


MANY = {  # more than 500 rows, from which other methods than a working set may begin
    "gauss": lambda rng, X, w: X,
    "sparse": lambda rng, X, w: X * (rng.random(X.shape) < 0.05),
    "duplicates": lambda rng, X, w: X[rng.integers(0, len(X) // 3, len(X))],
    "zeros": lambda rng, X, w: X * (rng.random((len(X), 1)) < 0.5),
    "integers": lambda rng, X, w: np.round(X),
    "separable": lambda rng, X, w: X + np.outer(np.sign(X @ w), w) / np.sqrt(w @ w),
    "thin": lambda rng, X, w: X + 1e-4 * np.outer(np.sign(X @ w), w),
}


@pairwise(
    kind=list(MANY),
    form=[np.asarray, slow(sp.csr_matrix), slow(np.float32)],
    C=[np.inf, slow(1.0), slow(100.0)],
)
def test_many_rows_of_all_kinds(kind, form, C, rng):
    for d, k, shift in [(1, 2, 0.0), (5, 3, 1000.0), (60, 2, 5.0), (700, 2, 0.0)]:
        X, w = rng.standard_normal((510, d)), rng.standard_normal(d)
        y = X @ w > 0 if kind in ("separable", "thin") else rng.integers(0, k, len(X))
        X = form(MANY[kind](rng, X, w) + shift)
        clf = fit(MaxMarginClassifier(C=C), X, y)
        assert clf.status_ in (["certified", "no_margin"] if np.isinf(C) else ["certified"])
        assert check_certificate(clf, X, y)


@pairwise(k=[2, 3], form=[np.asarray, sp.csr_matrix], shift=[0.0, 1000.0])
def test_more_rows_alike_than_a_corral_has_room_for(k, form, shift, rng):
    X = rng.standard_normal((567, 5)) * (rng.random((567, 5)) < 0.05) + shift
    y = rng.integers(0, k, 567)
    clf = fit(MaxMarginClassifier(), form(X), y)
    assert clf.status_ == "no_margin"
    assert check_certificate(clf, form(X), y)


@pairwise(C=[np.inf, 1.0, 1e4], fit_intercept=[True, False], nnz_per_row=[0, 0.5, 5])
def test_zero_rows_of_long_sparse_data(C, fit_intercept, nnz_per_row, rng):
    X = sp.random_array((600, 500), density=nnz_per_row / 500, format="csr", rng=rng)
    X.data[:] = 1.0  # and rows that are alike, with opposite labels
    y = rng.integers(0, 2, 600)
    clf = fit(MaxMarginClassifier(C=C, fit_intercept=fit_intercept), X, y)
    assert clf.status_ == ("no_margin" if np.isinf(C) else "certified")
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("d", [40, 2000])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_rows_are_dense_rows(C, d, fit_intercept, rng):
    X = sp.random_array((700, d), density=5.0 / d + 0.005, format="csr", rng=rng)
    w = rng.standard_normal(d)
    scores = X @ w
    X, scores = X[np.abs(scores) > 0.3], scores[np.abs(scores) > 0.3]
    y = scores > 0
    assert len(y) > 500
    a = fit(MaxMarginClassifier(C=C, fit_intercept=fit_intercept), X, y)
    b = fit(MaxMarginClassifier(C=C, fit_intercept=fit_intercept), X.toarray(), y)
    assert a.status_ == b.status_ == "certified"
    np.testing.assert_allclose(a.margin_, b.margin_, rtol=2e-6)
    assert check_certificate(a, X, y)


@pairwise(C=[100.0, 1e4, 1e6, 1e8], tol=[1e-2, 1e-4, 1e-6], fit_intercept=[True, False])
def test_the_start_for_long_rows_needs_little_slack(C, tol, fit_intercept, rng):
    """Slack of the size of the gap would cost more than the predictor: a longer one needs none."""
    X = sp.random_array((600, 3000), density=0.01, format="csr", rng=rng)
    y = np.arange(600) % 2
    clf = MaxMarginClassifier(C=C, tol=tol, fit_intercept=fit_intercept).fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)


def test_history_has_a_line_a_round(rng):
    X, y = separable(rng, n=3000, d=300, margin=0.02)
    clf = MaxMarginClassifier().fit(X, y)
    assert clf.n_iter_ > 1
    np.testing.assert_array_equal(clf.history_["n_iter"], np.arange(1, clf.n_iter_ + 1))
    assert np.all(np.diff(clf.history_["margin_bound"]) <= 0)
    cut = fit(MaxMarginClassifier(max_iter=1), X, y)
    assert cut.status_ == "max_iter"
    assert cut.margin_ <= clf.margin_ <= clf.margin_bound_ <= cut.margin_bound_ * (1 + 1e-12)


def test_weights_are_copies_under_a_kernel_that_is_scaled(rng):
    X, y = overlapping(rng)
    X[:20] *= 3.0
    weight = np.r_[np.full(20, 4), np.ones(len(y) - 20, int)]
    clf = MaxMarginClassifier(C=1.0, kernel="rbf", gamma="scale")
    margin = clone(clf).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).margin_
    assert clf.fit(X, y, sample_weight=weight).margin_ == pytest.approx(margin, rel=1e-5)


def test_kernels_ask_for_few_columns(rng):
    X, y = separable(rng, n=2000, d=3, margin=0.05)
    asked = 0

    def kernel(A, B):
        nonlocal asked
        asked += len(A) * len(B)
        return np.exp(-((A[:, None] - B) ** 2).sum(axis=2))

    clf = MaxMarginClassifier(kernel=kernel).fit(X, y)
    assert clf.status_ == "certified"
    assert asked < 0.7 * 2000**2


def test_the_column_cache_may_be_full(rng):
    X, y = separable(rng, n=300, d=3)
    whole = MaxMarginClassifier(kernel="rbf", tol=1e-9).fit(X, y)
    strips = MaxMarginClassifier(kernel="rbf", tol=1e-9, cache_size=300 * 8 * 10 / 2**20).fit(X, y)
    np.testing.assert_allclose(strips.margin_, whole.margin_, rtol=1e-9)


def test_momentum_proves_to_rounding(rng):
    X, y = overlapping(rng, n=200)
    clf = fit(MomentumMarginClassifier(), X, y)
    assert clf.status_ == "no_margin"
    assert clf.separable_ is False
    assert clf.margin_bound_ <= 1e-12
    X, y = separable(rng, n=200, margin=1e-5)
    X[:, 0] *= 1e-4
    X[:, 1] *= 1e-4
    clf = fit(MomentumMarginClassifier(max_iter=2000), X, y)
    assert clf.separable_ is not False


REAL = ["golub_leukemia", "colon_alon", "arcene", "musk1", "sonar", "mushrooms", "tng_basehock"]
REAL += ["rcv1_ccat_small", "usps 0 1", "usps 3 5", "mnist 0 1"]
DELICATE = {"musk1", "sonar", "mushrooms"}  # libsvm stops short of their margin, or late


def real_set(shared_data, name, standardised):
    name, *pair = name.split()
    z = shared_data(name)
    y = z["y"] if "y" in z else z["y_train"]
    if "indptr" in z:
        X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    else:
        X = z["X"] if "X" in z else z["X_train"]
    if pair:
        keep = np.isin(y, [int(c) for c in pair])
        X, y = X[keep], y[keep]
    X = X.astype(float)
    return (StandardScaler(with_mean=not sp.issparse(X)).fit_transform(X) if standardised else X), y


@pytest.mark.slow
@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_real_sets_agree_with_svc_or_the_oracle(name, standardised, shared_data):
    X, y = real_set(shared_data, name, standardised)
    clf = MaxMarginClassifier().fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)
    if name in DELICATE:
        best = best_margin(X.toarray() if sp.issparse(X) else X, y)
    else:
        peer = SVC(kernel="linear", C=np.inf, tol=1e-10, cache_size=500).fit(X, y)
        coef = peer.coef_.toarray() if sp.issparse(X) else peer.coef_
        best = 1.0 / np.linalg.norm(coef)
    np.testing.assert_allclose(clf.margin_, best, rtol=2e-6)


@pytest.mark.parametrize(
    ("k", "params"),
    [(2, {}), (3, {}), (2, {"kernel": "rbf", "gamma": 0.2}), (3, {"kernel": "rbf", "gamma": 0.2})],
)
def test_another_cost_continues_from_the_last_solution(k, params, rng):
    """Of many rows; the result is certified on its own."""
    X, y = overlapping(rng, n=600, k=k)
    warm = MaxMarginClassifier(C=1.0, warm_start=True, **params).fit(X, y)
    for C in (1.5, 0.5):
        cold = MaxMarginClassifier(C=C, **params).fit(X, y)
        warm.set_params(C=C).fit(X, y)
        assert warm.status_ == "certified"
        assert check_certificate(warm, X, y)
        assert len(warm.history_["margin"]) == warm.n_iter_
        assert abs(warm.margin_ / cold.margin_ - 1.0) < 1e-6


@pairwise(C=[np.inf, 1.0], fit_intercept=[True, False], n=[80, slow(900)], k=[2, 3])
def test_what_a_linear_predictor_is_made_of(k, n, fit_intercept, C, rng):
    X, y = separable(rng, n=n, k=k)
    clf = MaxMarginClassifier(C=C, fit_intercept=fit_intercept).fit(X, y)
    # The objective is 1 / (2 margin^2). Half the squared distance is what its gap leaves, where
    # both are at their best scales; where they are not, at most as much again.
    left = (2.0 * np.sqrt(clf.gap_) + 1e-6) / clf.margin_
    assert np.linalg.norm(clf.dual_coef_ @ X[clf.support_] - clf.coef_) <= left
    np.testing.assert_array_equal(clf.n_support_, np.bincount(y[clf.support_], minlength=k))
    same = MaxMarginClassifier(C=C, fit_intercept=fit_intercept, kernel=lambda A, B: A @ B.T)
    same.fit(X, y)
    np.testing.assert_array_equal(same.n_support_, np.bincount(y[same.support_], minlength=k))
    left += (2.0 * np.sqrt(same.gap_) + 1e-6) / same.margin_
    assert np.linalg.norm(same.dual_coef_ @ same.support_vectors_ - clf.coef_) <= 2.0 * left


def test_intercepts_of_many_classes_take_no_singular_values(rng, monkeypatch):
    """They cost the cube of the number of classes as well, but some hundred times as much."""

    def refused(*args, **kwargs):
        raise AssertionError("a singular value decomposition")

    X, y = separable(rng, n=60, d=30, k=30)
    monkeypatch.setattr(np.linalg, "pinv", refused)
    model = MaxMarginClassifier().fit(X, y)
    assert model.status_ == "certified"


@pytest.mark.parametrize("kernel", ["poly", "rbf", "laplacian"])
@pytest.mark.parametrize("seed", range(3))
def test_certificates_of_kernels_of_examples_in_float32_hold(kernel, seed):
    """Values in float32 of so many features differ from one computation to the next by 1e-6."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((10, 300)).astype(np.float32), np.arange(10) % 2
    for estimator in (MaxMarginClassifier(kernel=kernel), MaxMarginRegressor(kernel=kernel)):
        check = check_certificate(fit(estimator, X, y), X, y)
        assert check, check.reason
    detector = fit(MaxMarginOutlierDetector(kernel=kernel), X)
    assert check_certificate(detector, X)


@pytest.mark.parametrize("k", [2, slow(3)])
def test_many_examples_far_from_the_origin_are_certified(k):
    """Sums over examples about their mean lose no digits to it, however many they are."""
    rng = np.random.default_rng(k)
    X = 1e9 + 1e6 * rng.standard_normal((1000, 100))
    y = rng.integers(0, k, 1000)
    C = 50.0 if np.finfo(Extended).eps < UNIT else 1.0  # where the platform has no more digits
    clf = MaxMarginClassifier(C=C).fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y).valid
    exact = check_certificate(clf, X, y, exact=True)
    assert clf.margin_ <= exact.upper <= clf.margin_bound_


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("n", "k"), [(20, 2), (40, 5), (1500, 2), (1500, 3)])
def test_times_beside_dummies_are_certified_in_sparse_form_too(n, k, loss):
    """Every example stores its time, which is so far from 0 that sums of it lose their digits."""
    rng = np.random.default_rng(n + k)
    dummies = [rng.integers(0, 20, n)[:, None] == np.arange(20) for _ in range(3)]
    X = np.column_stack([*dummies, 1.7e9 + rng.integers(0, 3e7, n), 1.7e12 + rng.random(n) * 1e9])
    y = (X @ rng.standard_normal((62, k)) / X.std(axis=0).clip(0.1)[-1]).argmax(axis=1)
    y = np.where(rng.random(n) < 0.7, y, rng.integers(0, k, n))
    y[:k] = np.arange(k)
    for C, tol in ((1e-9, 1e-6), (0.01, 1e-6), (100.0, 1e-3)):  # without long doubles, to 1e-4
        fits = [
            fit(MaxMarginClassifier(C=C, loss=loss, tol=tol), form(X), y)
            for form in (np.asarray, sp.csr_array)
        ]
        hard = n < 100 and C > 1e-9  # C R^2 = 1e15
        assert {clf.status_ for clf in fits} <= {"certified", *["stalled"] * hard}
        lower, upper = max(clf.margin_ for clf in fits), min(clf.margin_bound_ for clf in fits)
        assert lower <= upper
        assert check_certificate(fits[1], sp.csr_array(X), y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_means_far_from_0_leave_a_certificate_its_digits(k, loss):
    """Intercepts of 1e9 lose 7 of 16 digits, but what the published numbers prove has them all."""
    for n, d, far in ((60, 100, 1e8), (80, 120, 3e7)):
        rng = np.random.default_rng(k)
        X = rng.standard_normal((n, d)) + far * rng.standard_normal(d)
        y = np.arange(n) % k
        clf = fit(MaxMarginClassifier(C=10.0, loss=loss), X, y)
        assert clf.status_ == "certified" or (clf.status_ == "stalled" and k > 2)
        exact = check_certificate(clf, X, y, exact=True)
        assert exact.valid
        assert exact.lower <= exact.upper


@pytest.mark.parametrize("k", [2, 3])
def test_sums_of_many_weights_that_cancel_are_certified_in_large_units(k, rng):
    """In units of 1e9, weights make up a predictor that is nothing beside their last digits."""
    X = rng.standard_normal((6000, 80))
    y = (X @ rng.standard_normal((80, k)) + 9.0 * rng.standard_normal((6000, k))).argmax(axis=1)
    C = 10.0 if np.finfo(Extended).eps < UNIT else 1e-6  # where the platform has no more digits
    clf = MaxMarginClassifier(C=C, tol=1e-3, fit_intercept=False).fit(1e9 * X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, 1e9 * X, y).valid


def test_a_linear_problem_is_never_called_indefinite():
    """Neither are a predictor and weights that have not come near each other yet."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        dummies = [np.eye(most)[rng.integers(0, most, 20)] for most in (20, 70)]
        X = np.column_stack([*dummies, 1.7e12 + rng.integers(0, 10**9, (20, 5))])
        clf = fit(MaxMarginClassifier(C=7e3, loss="hinge"), X, np.arange(20) % 2)
        assert clf.status_ in ("certified", "stalled")  # C R^2 = 1e21
        assert check_certificate(clf, X, np.arange(20) % 2)


@pytest.mark.parametrize("n", [20, 40])
def test_few_sparse_examples_whose_inner_products_have_lost_their_digits(n):
    """Interior points with inner products then contradict themselves."""
    for seed in range(110, 122):
        rng = np.random.default_rng(seed)
        dummies = [np.eye(20)[rng.integers(0, 20, n)] for _ in range(3)]
        places, time = 48.0 + 0.05 * rng.standard_normal((n, 2)), 1.7e9 + rng.integers(0, 3e7, n)
        X = sp.csr_array(np.column_stack([*dummies, places, time]))
        for C in (1e-5, 3.0):
            clf = fit(MaxMarginClassifier(C=C), X, np.arange(n) % 2)
            assert clf.status_ == "certified" or (clf.status_ in ("stalled", "max_iter") and C > 1)
            assert check_certificate(clf, X, np.arange(n) % 2)


def test_many_dummies_beside_a_time_are_certified():
    """Second moments of sparse examples cost their few products, not those of all features."""
    rng, n = np.random.default_rng(0), 20_000
    dummies = [
        sp.csr_array((np.ones(n), (np.arange(n), rng.integers(0, most, n))), shape=(n, most))
        for most in (400, 700)
    ]
    X = sp.hstack([*dummies, sp.csr_array(1.7e9 + rng.integers(0, 3e7, (n, 1)))], format="csr")
    score = X @ np.append(0.5 * rng.standard_normal(1100), 1e-7)
    y = score - score.mean() + rng.logistic(size=n) > 0.0
    assert MaxMarginClassifier(C=1e-3, loss="hinge").fit(X, y).status_ == "certified"


# Interior points: the method that always ends, by itself, against oracles that share no code.


def fitted(X, y, C=np.inf, weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MaxMarginClassifier(C=C, **parameters).fit(X, y, sample_weight=weight)


def classes(seed, n=40, d=3, k=2, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    return np.round(rng.standard_normal((n, d)) + shift * rng.standard_normal((k, d))[y], 2), y


def near_copies(n=80, unit=3e7, seed=1):
    """Columns in large units that differ by 1, as seconds of beginnings and ends, and others."""
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((n, 6)), rng.standard_normal(n)
    y = np.where(X[:, 1] + X[:, -1] + noise > 0.0, 1, 0)
    X[:, :3] += unit * rng.standard_normal((n, 1))
    return X, y


def with_kind(kind, X, y):
    """The same examples, some of them twice; or with columns that depend on each other."""
    rng, weight = np.random.default_rng(0), None
    if kind == "duplicates":
        some = rng.integers(0, len(X), len(X))
        X, y = np.vstack([X, X[some]]), np.append(y, y[some])
    if kind == "one-hot":
        X = np.column_stack([X, np.eye(3)[rng.integers(0, 3, len(X))], X[:, 0] - 2.0 * X[:, 1]])
    if kind == "weights":
        weight = rng.integers(1, 5, len(X)).astype(float)
    return X, y, weight


@pairwise(
    C=[0.05, 20.0, 1e5],
    k=[2, 4],
    fit_intercept=[True, False],
    kind=["plain", "duplicates", "one-hot", "weights"],
)
def test_squared_slack(C, k, fit_intercept, kind):
    X, y, weight = with_kind(kind, *classes(k, k=k))
    clf = fitted(X, y, C, weight, fit_intercept=fit_intercept, tol=1e-8)
    best = best_margin(X, y, fit_intercept=fit_intercept, C=C, sample_weight=weight)
    assert clf.status_ == "certified"
    assert clf.margin_ <= best * (1 + 1e-9)
    assert clf.margin_bound_ >= best * (1 - 1e-9)
    assert check_certificate(clf, X, y, sample_weight=weight).valid


@pytest.mark.parametrize("kind", ["plain", "duplicates", "one-hot", "weights"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_the_hinge_is_that_of_svc(C, kind):
    X, y, weight = with_kind(kind, *classes(1, shift=0.5))
    clf = fitted(X, y, C, weight, loss="hinge", tol=1e-7)
    svc = SVC(kernel="linear", C=C, tol=1e-11).fit(X, y, sample_weight=weight)
    w, b = svc.coef_[0], svc.intercept_[0]
    cost = C * (np.ones(len(X)) if weight is None else weight)
    best = 0.5 * w @ w + cost @ np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w + b))
    assert clf.status_ == "certified"
    assert clf.margin_ >= (1.0 - 2e-7) / np.sqrt(2.0 * best)
    assert clf.margin_bound_ >= (1.0 - 1e-9) / np.sqrt(2.0 * best)
    assert check_certificate(clf, X, y, sample_weight=weight).valid


@pytest.mark.parametrize("unit", [1e-8, 1e12])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_units(unit, loss):
    X, y = classes(4, shift=0.5)
    one, other = fitted(X, y, 2.0, loss=loss), fitted(unit * X, y, 2.0 / unit**2, loss=loss)
    assert other.status_ == "certified"
    assert np.isclose(other.margin_, unit * one.margin_, rtol=2e-6)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_raw_units_for_all_costs(loss, C):
    X, y = load_breast_cancer(return_X_y=True)
    clf = fitted(X, y, C, loss=loss)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y).valid


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_quasi_separated_classes_end(fit_intercept):
    """Some examples are on the boundary of every separator."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0], [2.0, 3.0], [-3.0, 1.0]])
    clf = fitted(X, [0, 1, 1, 0, 1, 0], fit_intercept=fit_intercept)
    assert clf.status_ in {"no_margin", "stalled"}
    assert clf.n_iter_ <= 110


def with_a_date(n, d, seed=0):
    """A feature in seconds beside others of length 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 0] = 1.5e9 + rng.integers(0, 10**8, n)
    return X, rng.integers(0, 2, n)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4])
def test_large_units_beside_small_ones_with_few_examples(C, loss):
    """Inner products of examples have few digits for the features in small units."""
    X, y = with_a_date(46, 79)
    clf = fitted(X, y, C, loss=loss)
    assert clf.status_ == "certified" or (clf.status_ == "stalled" and C > 1e-6)
    assert check_certificate(clf, X, y).valid


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shape", [(40, 60), (120, 20)])
@pytest.mark.parametrize("k", [2, 3])
def test_examples_far_from_the_origin_without_an_intercept(k, shape, loss):
    X, y = classes(6, *shape, k=k)
    X = X + 10.0 ** np.random.default_rng(1).uniform(0, 6, shape[1])
    clf = fitted(X, y, 1e3, loss=loss, fit_intercept=False)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y).valid


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-5, 1.0, 1e3])
def test_columns_that_nearly_are_copies(make, loss, C):
    """Their squares have no digits left for what tells them apart."""
    for seed in range(3):
        X, y = near_copies(unit=1e7, seed=seed)
        clf = fitted(make(X), y, C, loss=loss, tol=1e-5)
        assert clf.status_ == "certified" or (clf.status_ == "stalled" and C > 1e-5)
        assert check_certificate(clf, make(X), y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.05, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_support_is_that_of_the_solution(seed, C, loss):
    """Weights of a point inside are all positive; the fit names those that the solution needs."""
    X, y = classes(seed, n=80)
    support = fitted(X, y, C, loss=loss).support_
    if loss == "hinge":
        known = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y).support_
    else:
        K = X @ X.T + np.eye(len(X)) / (2.0 * C)
        known = SVC(kernel="precomputed", C=np.inf, tol=1e-9).fit(K, y).support_
    assert len(np.setxor1d(support, known)) <= 2  # examples with next to no weight
    assert len(support) < len(y)


def test_stored_fits_do_not_hold_the_data(rng):
    X = rng.normal(size=(2000, 30))
    y = (X[:, 0] + rng.normal(size=2000) > 0).astype(int)
    model = fitted(X, y, C=1.0, loss="hinge", warm_start=True, max_iter=1)
    assert len(pickle.dumps(model)) < X.nbytes


@pytest.mark.parametrize("k", [2, 4])
def test_weights_that_are_huge_in_large_units_keep_a_small_gap(k):
    """Norms of predictors are nothing beside the last digits of the weights."""
    X, y = classes(3, n=400, d=6, k=k, shift=0.3)
    model = fitted(1e12 * X, y, C=1e-3, loss="hinge")
    assert model.gap_ < 1e-3 or not MORE_DIGITS
    assert check_certificate(model, 1e12 * X, y)


@pytest.mark.parametrize(("n", "d", "share"), [slow(50_000, 1, 0.99), (20_000, 5, 0.5)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
def test_thin_margins_of_many_examples(C, n, d, share):
    """A predictor that grows from near 0 passes thousands of rows; one from far out does not."""
    X = np.random.default_rng(0).uniform(0.0, 1e5, (n, d)).round(2)
    clf = fitted(X, X[:, 0] > 1e5 * share, C, loss="hinge", class_weight="balanced")
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, X[:, 0] > 1e5 * share)


# The exact solver by passes: its operators against formulas, its methods against each other.


forms = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
classes_by_passes = pytest.mark.parametrize("k", [2, 4])
either = pytest.mark.parametrize("balanced", [True, False])


def text_like(rng, k, n=300, d=40):
    X = sp.random_array((n, d), density=0.2, rng=rng, format="csr")
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    return sp.csr_array(X + sp.csr_array((np.ones(n), (np.arange(n), y)), shape=(n, d))), y


@pytest.mark.parametrize("C", [0.3, 30.0, np.inf])
@forms
@classes_by_passes
def test_blocks_give_what_memory_gives(k, form, C, rng):
    X, y = text_like(rng, k)
    X = X.toarray() if form is np.asarray else X
    known = fit(MaxMarginClassifier(C=C), X, y)
    clf = MaxMarginClassifier(C=C, tol=1e-5)
    clf.fit_blocks([(X[:110], y[:110]), (X[110:], y[110:])])
    assert clf.status_ == known.status_ == "certified"
    assert_allclose(clf.margin_, known.margin_, rtol=2e-5)
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("C", [1.0, np.inf])
@forms
@classes_by_passes
def test_float32_reaches_the_default_tolerance(k, form, C, rng):
    X, y = text_like(rng, k)
    X = (X.toarray() if form is np.asarray else X).astype(np.float32)
    clf = fit(MaxMarginClassifier(C=C), X, y)
    assert clf.status_ == "certified"
    assert clf.gap_ <= 1e-6
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("k", [2, 5])
def test_what_cannot_fit_says_so_before_it_starts(k, rng, monkeypatch):
    X, y = rng.standard_normal((60, 7)), np.arange(60) % k
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: 1000)
    with pytest.raises(MemoryError, match="60 examples, 7 features") as error:
        MaxMarginClassifier(C=1.0).fit(X, y)
    assert ("OneVsRestClassifier" in str(error.value)) == (k > 2)
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: None)
    assert MaxMarginClassifier(C=1.0).fit(X, y).status_ == "certified"


@pytest.mark.parametrize("C", [100.0, 1000.0])
def test_clouds_that_a_large_c_separates_take_few_rounds(C, rng):
    """The first step leaves no row with slack, and none of the next may creep back."""
    means, y = 2.0 * rng.standard_normal((20, 40)), np.arange(1200) % 20
    X = means[y] + rng.standard_normal((1200, 40))
    clf = fit(MaxMarginClassifier(C=C), X, y)
    assert clf.status_ == "certified"
    assert clf.n_iter_ < 60
    assert check_certificate(clf, X, y)
