"""Interior points: the method that always ends, by itself, against oracles that share no code."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.estimators import MORE_DIGITS
from helpers.oracle import best_margin
from helpers.pairwise import pairwise
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifier, check_certificate


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


@pytest.mark.parametrize("kind", ["plain", "duplicates", "one-hot"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_hard_margins(k, fit_intercept, kind):
    X, y, _ = with_kind(kind, *classes(k, d=8, k=k, shift=9.0))
    clf = fitted(X, y, fit_intercept=fit_intercept)
    best = best_margin(X, y, fit_intercept=fit_intercept)
    assert clf.status_ == "certified"
    assert clf.margin_ <= best * (1 + 1e-9)
    assert clf.margin_bound_ >= best * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["plain", "duplicates"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_overlap_is_proved(k, fit_intercept, kind):
    X, y, _ = with_kind(kind, *classes(k, n=60, k=k, shift=0.0))
    clf = fitted(X, y, fit_intercept=fit_intercept)
    assert (clf.status_, clf.separable_) == ("no_margin", False)


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


def test_the_hinge_without_an_intercept():
    X, y = classes(2, shift=0.5)
    clf = fitted(X, y, 3.0, loss="hinge", fit_intercept=False, tol=1e-7)
    peer = LinearSVC(loss="hinge", C=3.0, fit_intercept=False, tol=1e-10, max_iter=10**6)
    assert clf.status_ == "certified"
    assert np.allclose(clf.coef_, peer.fit(X, y).coef_, rtol=0, atol=1e-4)


@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_kernels(loss, C):
    X, y = classes(3, n=80)
    clf = fitted(X, y, C, loss=loss, kernel="rbf", gamma=3.0)
    given = fitted(rbf_kernel(X, gamma=3.0), y, C, loss=loss, kernel="precomputed")
    assert clf.status_ == given.status_ == "certified"
    assert np.isclose(clf.margin_, given.margin_, rtol=2e-6)
    if loss == "hinge" and C == 1.0:
        svc = SVC(C=C, gamma=3.0, tol=1e-10).fit(X, y)
        assert np.allclose(clf.decision_function(X), svc.decision_function(X), atol=1e-3)


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


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_forms_of_the_same_data(loss):
    X, y = classes(5, n=60, shift=0.5)
    one = fitted(X, y, 2.0, loss=loss)
    for form in (sp.csr_array, np.asfortranarray, np.float32):
        other = fitted(form(X), y, 2.0, loss=loss)
        assert other.status_ == "certified"
        assert np.isclose(other.margin_, one.margin_, rtol=2e-6)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 200)), np.arange(30) % 3
    for C in (1.0, 1e6, np.inf):
        assert fitted(X, y, C).status_ == "certified"


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
