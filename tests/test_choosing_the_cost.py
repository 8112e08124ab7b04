"""MaxMarginClassifierCV, margin_path and their picture."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from helpers.battery import slow
from helpers.estimators import confirmed, separable
from helpers.pairwise import pairwise
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    CostCurveDisplay,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    margin_path,
)
from marginsvm._rounding import UNIT, Extended
from marginsvm.problem.kernel_functions import Kernel

KINDS = {
    "linear": {},
    "through 0": {"fit_intercept": False},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "balanced": {"class_weight": "balanced"},
    "hinge": {"loss": "hinge"},
}
each_kind = pytest.mark.parametrize("params", KINDS.values(), ids=KINDS)


def uneven(rng, n=90, d=3, k=2):
    """Overlapping classes that depend on X, of different sizes."""
    X = rng.standard_normal((n, d)) @ np.diag(1.0 + np.arange(d))
    y = np.digitize(X[:, 0] + 0.7 * rng.standard_normal(n), [-0.5, 0.9][: k - 1])
    return X, y


def changed(clf, X, y, cv, scoring=None, **params):
    """By how many examples the scores of the first folds are off those of single fits."""
    single = [MaxMarginClassifier(C=C, **params) for C in clf.Cs_]
    found = [cross_val_score(alone, X, y, cv=cv, scoring=scoring) for alone in single]
    return np.abs(clf.scores_ - np.transpose(found)) * len(cv[0][1])


def folds(X, y, n_splits=3):
    return [*StratifiedKFold(n_splits).split(X, y)]


def is_a_single_fit(clf, X, y, **params):
    alone = MaxMarginClassifier(C=clf.C_, **params).fit(X, y)
    assert (clf.margin_, clf.margin_bound_) == (alone.margin_, alone.margin_bound_)
    np.testing.assert_array_equal(clf.decision_function(X), alone.decision_function(X))
    confirmed(clf, X, y)


@each_kind
@pytest.mark.parametrize("k", [2, 3])
def test_scores_and_the_model_are_those_of_single_fits(params, k, rng):
    """Up to the examples that an error of 1e-3 may move: at most one in a fold, and few in all."""
    X, y = uneven(rng, k=k)
    cv = folds(X, y)
    clf = MaxMarginClassifierCV(Cs=6, cv=cv, **params).fit(X, y)
    wrong = changed(clf, X, y, cv, **params)
    assert wrong.max() < 1.5
    assert wrong.sum() < 3.5
    assert clf.fold_gaps_.shape == clf.scores_.shape == (3, 6)
    assert np.median(clf.fold_gaps_) <= 1e-3
    assert clf.best_score_ == clf.scores_.mean(axis=0).max()
    assert clf.Cs_[clf.scores_.mean(axis=0).argmax()] == clf.C_
    is_a_single_fit(clf, X, y, **params)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))


@each_kind
@pytest.mark.parametrize("k", [2, 3])
def test_walks_of_many_rows(params, k, rng):
    """Beyond the rows for which a working set is used, and in the span of examples, too."""
    X, y = uneven(rng, n=900, k=k)
    cv, Cs = folds(X, y)[:1], [1e-3, 1e-2, 0.1, 1.0]
    clf = MaxMarginClassifierCV(Cs=Cs, cv=cv, refit=False, **params).fit(X, y)
    assert clf.fold_gaps_.max() <= 1e-3
    assert changed(clf, X, y, cv, tol=1e-4, **params).max() < 3.5


def test_the_units_of_the_data_do_not_matter(rng):
    X, y = uneven(rng)
    one, other = (MaxMarginClassifierCV(Cs=5).fit(c * X + c, y) for c in (1.0, 1e3))
    np.testing.assert_allclose(one.Cs_, 1e6 * other.Cs_)
    np.testing.assert_array_equal(one.scores_, other.scores_)


def test_wide_and_sparse_examples(rng):
    X, y = uneven(rng, n=60, k=3)
    wide = np.hstack([X, rng.standard_normal((60, 80))])
    for Z in (X, wide):
        dense = MaxMarginClassifierCV(Cs=4, cv=3).fit(Z, y)
        sparse = clone(dense).fit(sp.csr_array(Z), y)
        np.testing.assert_array_equal(dense.scores_, sparse.scores_)
    K = wide @ wide.T
    given = MaxMarginClassifierCV(Cs=dense.Cs_, cv=3, kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(given.scores_, dense.scores_)


def test_the_smallest_cost_of_text_is_fitted_too(rng):
    """Where only the directions in which all spread most count, a gap of 1e-3 is not rounding."""
    X = sp.random_array((400, 1000), density=0.02, format="csr", rng=rng)
    score = X @ rng.standard_normal(1000)
    y = score > np.quantile(score, 0.4)
    cv, Cs = folds(X, y, 4), MaxMarginClassifierCV(refit=False).fit(X, y).Cs_
    clf = MaxMarginClassifierCV(Cs=Cs[:3], cv=cv, refit=False).fit(X, y)
    wrong = changed(clf, X, y, cv)
    assert wrong.max() < 2.5
    assert wrong.sum(axis=0).max() < 3.5


def test_kernels_too_large_for_memory_are_fitted_one_by_one(rng, monkeypatch):
    X, y = uneven(rng, k=3)
    whole = MaxMarginClassifierCV(Cs=5, cv=3, kernel="rbf").fit(X, y)
    monkeypatch.setattr("marginsvm.estimators.cv.MAX_EXAMPLES", 10)
    parts = MaxMarginClassifierCV(Cs=5, cv=3, kernel="rbf").fit(X, y)
    assert np.abs(whole.scores_ - parts.scores_).max() * 30 < 1.5
    assert parts.C_ == whole.C_


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_copies(kernel, rng):
    X, y = uneven(rng, n=40)
    m = rng.integers(0, 3, 40)
    groups = np.arange(40) % 4
    copies = np.repeat(np.arange(40), m)
    splits = list(GroupKFold(4).split(X, y, groups))
    there = [
        tuple(np.flatnonzero(np.isin(copies, part)) for part in split)
        for split in splits
    ]
    params = {"kernel": kernel, "gamma": 0.3}
    weighted = MaxMarginClassifierCV(cv=splits, **params).fit(X, y, sample_weight=m)
    copied = MaxMarginClassifierCV(cv=there, **params).fit(X[copies], y[copies])
    np.testing.assert_allclose(weighted.Cs_, copied.Cs_)
    # fits of folds are near each other only: an example next to the boundary may change sides
    assert np.abs(weighted.scores_ - copied.scores_).max() <= 0.2
    assert np.mean(weighted.scores_ == copied.scores_) >= 0.9
    np.testing.assert_allclose(weighted.margin_, copied.margin_, rtol=1e-5)


@pairwise(
    loss=["hinge", "squared_hinge"],
    kernel=["rbf", "poly", "precomputed", "callable"],
    fit_intercept=[True, False],
    weights=["none", "some 0", "balanced"],
    n=[90, slow(900)],
    k=[2, 3],
)
def test_folds_on_shared_kernel_values_have_the_scores_of_single_fits(
    loss, kernel, fit_intercept, weights, n, k, rng, monkeypatch
):
    X, y = uneven(rng, n=n, k=k)
    params = {"loss": loss, "fit_intercept": fit_intercept, "gamma": 0.3, "degree": 2}
    params["kernel"] = rbf_kernel if kernel == "callable" else kernel
    params["class_weight"] = "balanced" if weights == "balanced" else None
    m = rng.integers(0, 3, n) if weights == "some 0" else None
    data = rbf_kernel(X) if kernel == "precomputed" else X
    # the gap of folds leaves examples next to a boundary to the rounding of a processor
    monkeypatch.setattr("marginsvm.estimators.cv.FOLD_GAP", 1e-6)
    Cs = np.array([0.1, 1.0, 10.0])
    if np.finfo(Extended).eps >= UNIT:  # where the platform has no more digits
        Cs = 0.1 * Cs
    clf = MaxMarginClassifierCV(Cs=Cs, tol=1e-6, cv=3, refit=False, **params)
    clf.fit(data, y, sample_weight=m)
    assert clf.fold_gaps_.max() <= 1e-6
    for i, (train, test) in enumerate(folds(X, y)):
        given = kernel == "precomputed"
        A, B = (
            data[np.ix_(part, train)] if given else X[part] for part in (train, test)
        )
        weight = None if m is None else m[train]
        for C, score in zip(Cs, clf.scores_[i], strict=True):
            alone = MaxMarginClassifier(C=C, tol=1e-6, **params).fit(
                A, y[train], weight
            )
            other = alone.score(B, y[test], None if m is None else m[test])
            # a single example next to a boundary may change sides; its weight is at most 2
            assert abs(score - other) * n / 3 < (1.5 if m is None else 2.5)


def test_gamma_is_chosen_together_with_the_cost(rng, monkeypatch):
    X, y = uneven(rng, n=300)
    computed, original = [], Kernel.__call__

    def counted(kernel, A, B):
        values = original(kernel, A, B)
        computed.append(values.size)
        return values

    monkeypatch.setattr(Kernel, "__call__", counted)
    params = {"kernel": "rbf", "Cs": [0.1, 1.0, 10.0], "cv": 3}
    clf = MaxMarginClassifierCV(gammas=[1.0, 0.01, 0.1], **params)
    clf.set_params(refit=False).fit(X, y)
    assert sum(computed) <= 3 * len(y) ** 2  # for each gamma, one matrix
    clf.set_params(refit=True).fit(X, y)
    each = [
        MaxMarginClassifierCV(gamma=g, **params).fit(X, y) for g in (0.01, 0.1, 1.0)
    ]
    np.testing.assert_array_equal(
        clf.scores_, np.swapaxes([one.scores_ for one in each], 0, 1)
    )
    assert clf.fold_gaps_.shape == (3, 3, 3)
    best = [one.best_score_ for one in each]
    assert clf.best_score_ == max(best)
    assert clf.gamma_ == clf.gammas_[np.argmax(best)]
    is_a_single_fit(clf, X, y, kernel="rbf", gamma=clf.gamma_)
    curve = CostCurveDisplay.from_estimator(clf)
    best = clf.scores_[:, list(clf.gammas_).index(clf.gamma_)]
    np.testing.assert_allclose(curve.line_.get_ydata(), best.mean(axis=0))


def test_costs_are_placed_anew_for_each_gamma(rng):
    """As in the limit of wide kernels, where a hundredth of gamma makes up for C times 100."""
    X, y = uneven(rng, k=3)
    params = {"kernel": "rbf", "Cs": 2, "cv": 3, "refit": False}
    clf = MaxMarginClassifierCV(gammas=[1e-5, 1e-3], **params).fit(X, y)
    np.testing.assert_allclose(clf.Cs_[0], 100.0 * clf.Cs_[1], rtol=0.05)
    assert clf.scores_.shape == (3, 2, 2)
    np.testing.assert_array_equal(clf.scores_[:, 0, 0], clf.scores_[:, 1, 0])


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"kernel": "linear", "gammas": [1.0]}, "named kernel"),
        ({"kernel": rbf_kernel, "gammas": [1.0]}, "named kernel"),
        ({"kernel_params": {"gamma": 1.0}, "gammas": [1.0]}, "leaves no room"),
        *(
            ({"gammas": bad}, "finite positive|0 sample")
            for bad in ([0.0, 1.0], [[1.0]], [])
        ),
        *(
            ({"Cs": bad}, "Cs|0 sample")
            for bad in ([0.0], [np.inf], [np.nan], [[1.0]], [])
        ),
    ],
)
def test_values_that_cannot_be_are_refused(params, words, rng):
    with pytest.raises(ValueError, match=words):
        MaxMarginClassifierCV(**{"kernel": "rbf", **params}).fit(*uneven(rng))


@pytest.mark.parametrize("scoring", ["roc_auc", "f1"])
def test_scorers_see_decision_values(scoring, rng):
    X, y = uneven(rng)
    cv = folds(X, y, 5)
    clf = MaxMarginClassifierCV(Cs=3, cv=cv, scoring=scoring).fit(X, y)
    assert changed(clf, X, y, cv, scoring).mean(axis=0).max() < 0.02 * len(cv[0][1])
    alone = MaxMarginClassifier(C=clf.C_).fit(X, y)
    assert clf.score(X, y) == sklearn.metrics.get_scorer(scoring)(alone, X, y)


def test_metadata_reach_the_splitter_and_the_scorer(rng):
    X, y = uneven(rng)
    groups, seen = np.arange(90) % 3, []

    def share(y_true, y_pred, weight=None):
        seen.append(weight)
        return np.average(y_true == y_pred, weights=weight)

    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(share).set_score_request(weight=True)
        clf = MaxMarginClassifierCV(Cs=2, cv=GroupKFold(3), scoring=scorer)
        clf.fit(X, y, groups=groups, weight=1.0 + np.arange(90))
        clf.score(X, y, weight=np.ones(90))
    assert len(seen) == 7
    assert {len(w) for w in seen} == {30, 90}
    with pytest.raises(ValueError, match="groups"):
        MaxMarginClassifierCV().fit(X, y, groups=groups)


@pytest.mark.parametrize("backend", ["threading", slow("loky")])
def test_folds_in_parallel(backend, rng):
    X, y = uneven(rng, n=300)
    with parallel_config(backend):
        one, two = (
            MaxMarginClassifierCV(Cs=3, cv=2, n_jobs=n).fit(X, y) for n in (1, 2)
        )
    np.testing.assert_array_equal(one.scores_, two.scores_)


def test_a_fold_may_lack_a_class(rng):
    """The classes that it has are told apart, also where weights are given for all."""
    X, y = uneven(rng, n=60, k=3)
    two = np.flatnonzero(y < 2)
    splits = [(two, np.arange(60)), (np.arange(60) % 2 == 0, np.arange(60) % 2 == 1)]
    for class_weight in ({2: 3.0}, "balanced"):
        clf = MaxMarginClassifierCV(Cs=3, cv=splits, class_weight=class_weight).fit(
            X, y
        )
        assert clf.scores_[0].max() <= len(two) / 60
        assert len(clf.classes_) == 3


def test_without_a_refit_there_are_scores_and_no_model(rng):
    X, y = uneven(rng)
    clf = MaxMarginClassifierCV(Cs=3, refit=False).fit(X, y)
    assert clf.scores_.shape == (5, 3)
    assert not hasattr(clf, "coef_")
    clf.set_params(refit=True).fit(X, y)
    clf.set_params(refit=False).fit(X, y)
    assert not hasattr(clf, "margin_"), "attributes of an earlier fit stay"


@pytest.mark.slow
def test_warnings_are_about_the_model_only(rng):
    MaxMarginClassifierCV().fit(*uneven(rng, n=60, k=3))
    precise = MaxMarginClassifierCV(Cs=3, kernel="rbf", max_iter=1, tol=1e-10)
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        precise.fit(*uneven(rng, n=270, k=3))
    assert len(caught) == 1


@each_kind
@pytest.mark.parametrize("k", [2, 3])
def test_a_path_is_made_of_certified_fits(params, k, rng):
    X, y = uneven(rng, k=k)
    weight = rng.integers(0, 3, len(y))
    path = margin_path(X, y, Cs=[10.0, 0.01, 1.0], sample_weight=weight, **params)
    assert path.Cs.tolist() == [0.01, 1.0, 10.0]
    for i, C in enumerate(path.Cs):
        alone = MaxMarginClassifier(C=C, **params).fit(X, y, weight)
        assert path.gaps[i] <= 1e-6
        assert path.margins[i] <= alone.margin_bound_
        assert path.margin_bounds[i] >= alone.margin_
        K = X if "kernel" not in params else alone._kernel_matrix(X, X)
        F = K @ path.coefs[i].T + path.intercepts[i]
        mine = F[:, 0] if k == 2 else F
        np.testing.assert_allclose(mine, alone.decision_function(X), atol=1e-2)
        assert 0 < path.n_support[i] <= np.count_nonzero(weight)
        assert "kernel" not in params or not path.coefs[i][:, weight == 0].any()


def test_a_path_says_what_it_could_not_reach(rng):
    X, y = uneven(rng, n=200, k=3)
    with pytest.warns(ConvergenceWarning, match="for C in"):
        margin_path(X, y, Cs=3, kernel="rbf", max_iter=1)
    with pytest.raises(ValueError, match="in place of C"):
        margin_path(X, y, C=1.0)


def test_pictures(rng):
    import matplotlib.pyplot as plt

    X, y = separable(rng)
    clf = make_pipeline(StandardScaler(), MaxMarginClassifierCV(Cs=3)).fit(X, y)
    curve = CostCurveDisplay.from_estimator(clf)
    assert len(curve.line_.get_xdata()) == 3
    path = CostCurveDisplay.from_path(margin_path(X, y, Cs=3), color="C1")
    assert path.line_.get_color() == "C1"
    plt.close("all")
    with pytest.raises(TypeError, match="scores_"):
        CostCurveDisplay.from_estimator(MaxMarginClassifier().fit(X, y))


@pytest.mark.parametrize(
    ("y", "cv", "weight", "says"),
    [
        (
            [0, 0, 0, 0, 0, 1],
            None,
            None,
            r"fold 1 of 5 leaves examples of 1 class \[0\].* has 1 ",
        ),
        (
            [0, 0, 0, 1, 1, 1],
            3,
            [1, 1, 1, 1, 0, 0],
            r"fold 1 of 3 .* has 1 of positive weight",
        ),
        (
            [0, 0, 0, 1, 1, 1],
            [([0, 3], [2]), ([3, 4], [0])],
            None,
            r"fold 2 of 2 .* has 3",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The least populated class")  # scikit-learn's
def test_a_fold_of_one_class_is_named(y, cv, weight, says):
    search = MaxMarginClassifierCV(cv=cv)
    with pytest.raises(ValueError, match=f"{says}.*: pass folds as cv"):
        search.fit(np.arange(6.0)[:, None], y, sample_weight=weight)
