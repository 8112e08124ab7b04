"""Weights of classes: the same fits as with these weights as sample weights, everywhere."""

import pickle

import numpy as np
import pytest
from helpers.battery import each, slow, some_slow
from helpers.estimators import (
    BY_PASSES,
    ESTIMATORS,
    fit,
    make,
    overlapping,
    parameters,
    separable,
)
from helpers.pairwise import pairwise
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight

from marginsvm import MaxMarginClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
DICT = {"a": 3.0, "c": 0.25}  # b, which it does not name, has the weight 1


def uneven(rng, k=3):
    """Classes of different sizes with text for labels, and weights of which some are 0."""
    X, y = overlapping(rng, n=90, k=k)
    kept = rng.random(90) < np.array([0.9, 0.5, 0.3])[y]
    X, y = X[kept], np.array(["a", "b", "c"])[y[kept]]
    return X, y, rng.integers(0, 4, len(y)).astype(float)


def weights_of(class_weight, y, weight=None):
    """The final weights by their definition; balanced: as scikit-learn counts them."""
    weight = np.ones(len(y)) if weight is None else weight
    if class_weight == "balanced":
        some = weight > 0
        labels, given = (
            np.unique(y[some]),
            {"y": y[some], "sample_weight": weight[some]},
        )
        factors = compute_class_weight("balanced", classes=labels, **given)
        class_weight = dict(zip(labels.tolist(), factors, strict=True))
    return weight * np.array([class_weight.get(label, 1.0) for label in y.tolist()])


def blocks(X, y, weight=None):
    """Four of them, one below the other."""
    parts = np.array_split(np.arange(len(y)), 4)
    return [tuple(a[p] for a in (X, y, weight) if a is not None) for p in parts]


def sorted_by_class(X, y, weight):
    order = np.argsort(y, kind="stable")
    return X[order], y[order], weight[order]


def same(a, b, X):
    assert a.status_ == b.status_
    assert a.n_iter_ == b.n_iter_
    for name in ("margin_", "margin_bound_", "gap_"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=1e-10, atol=1e-10
        )
    scores = a.decision_function(X), b.decision_function(X)
    np.testing.assert_allclose(*scores, rtol=1e-10, atol=1e-10)


@pairwise(
    cls=some_slow(ESTIMATORS),
    class_weight={str(weights): weights for weights in (DICT, {"b": 0}, "balanced")},
    weighted={"alone": False, "with sample weights": True},
    C=[np.inf, 0.7],
    kernel=["linear", slow("rbf")],
)
def test_class_weights_are_sample_weights(cls, class_weight, weighted, C, kernel, rng):
    """Of blocks, none has the classes in the proportions of the whole, and some lack a class."""
    if not {"C", "kernel"} <= set(parameters(cls)) and (
        kernel != "linear" or np.inf > C
    ):
        C, kernel = np.inf, "linear"
    X, y, weight = sorted_by_class(*uneven(rng))
    given = weight if weighted else None
    of_examples = make(cls, C=C, kernel=kernel, max_iter=20)
    of_classes = clone(of_examples).set_params(class_weight=class_weight)
    final = weights_of(class_weight, y, given)
    same(fit(of_classes, X, y, given), fit(of_examples, X, y, final), X)
    if cls in BY_PASSES and kernel == "linear":
        of_classes = clone(of_classes).fit_blocks(blocks(X, y, given))
        same(of_classes, clone(of_examples).fit_blocks(blocks(X, y, final)), X)


@each
def test_no_weights_move_a_hard_margin(cls, rng):
    """Where C = inf, weights are a prior: what is certified is the best margin, with any."""
    X, y = separable(rng, n=33, d=3)
    plain = fit(make(cls, tol=1e-2, stopping="gap", max_iter=1000), X, y)
    for class_weight in ({0: 5.0}, {0: 0.2, 1: 3.0}, "balanced"):
        clf = fit(clone(plain).set_params(class_weight=class_weight), X, y)
        assert clf.status_ == plain.status_
        assert clf.separable_ is True
        assert clf.margin_ <= plain.margin_bound_
        assert plain.margin_ <= clf.margin_bound_
        if clf.status_ == "certified":
            np.testing.assert_allclose(clf.margin_, plain.margin_, rtol=1e-2)


@each
def test_where_nothing_separates_the_heavy_class_is_right(cls, rng):
    X, y = overlapping(rng, n=120)
    for heavy in (0, 1):
        clf = make(cls, class_weight={heavy: 1e3, 1 - heavy: 1e-3}, max_iter=200)
        predicted = fit(clf, X, y).predict(X)
        assert np.mean(predicted[y == heavy] == heavy) > 0.9
        assert clf.separable_ is not True


@each
def test_a_class_of_weight_0_is_left_out(cls, rng):
    X, y, _ = uneven(rng)
    X[y == "b", 0] = 1e6  # would be felt
    clf = fit(make(cls, class_weight={"b": 0}, max_iter=20), X, y)
    assert clf.classes_.tolist() == ["a", "c"]
    rest = y != "b"
    same(clf, fit(make(cls, max_iter=20), X[rest], y[rest]), X)
    with pytest.raises(ValueError, match="at least 2 classes"):
        make(cls, class_weight={"a": 0.0, "b": 0.0}).fit(X, y)


def test_what_weights_cannot_mend_is_refused(rng):
    """NaN in a class that is left out, and products of weights that overflow."""
    X, y, weight = uneven(rng)
    with pytest.raises(ValueError, match="NaN"):
        MaxMarginClassifier(class_weight={"b": 0}).fit(
            np.where(y[:, None] == "b", np.nan, X), y
        )
    with pytest.raises(
        ValueError, match="sample_weight times class_weight is too large"
    ):
        MaxMarginClassifier(class_weight={"a": 1e300}).fit(X, y, 1e300 * weight)


@pytest.mark.parametrize(
    ("class_weight", "text"),
    [
        (
            {"d": 1.0, "a": 2.0},
            r"class_weight .* \['d'\], .*classes in y are \['a', 'b', 'c'\]",
        ),
        ({0: 1.0}, r"\[0\], .*\['a', 'b', 'c'\]"),
        ({"a": -1.0}, "not negative, but that of 'a' is -1.0"),
        ({"a": np.nan}, "finite and not negative, but that of 'a' is nan"),
        ({"a": np.inf}, "finite and not negative, but that of 'a' is inf"),
        ({"a": "2"}, "finite and not negative, but that of 'a' is '2'"),
        ("balance", "'class_weight' parameter"),
        ([1.0, 2.0], "'class_weight' parameter"),
    ],
    ids=str,
)
def test_errors(class_weight, text, rng):
    X, y, weight = uneven(rng)
    clf = MaxMarginClassifier(class_weight=class_weight)
    before = vars(clf).copy()
    with pytest.raises(ValueError, match=text):
        clf.fit(X, y)
    with pytest.raises(ValueError, match=text):
        clf.fit_blocks([(X[:20], y[:20], weight[:20]), (X[20:], y[20:], weight[20:])])
    assert vars(clf) == before


def test_searches_over_weights(rng):
    X, y, _ = uneven(rng, k=2)
    grid = {"class_weight": [None, "balanced", {"a": 2.0}, {"b": 2.0}]}
    search = GridSearchCV(
        MaxMarginClassifier(C=1.0), grid, cv=2, scoring="balanced_accuracy"
    )
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()
    again = pickle.loads(pickle.dumps(search)).best_estimator_
    assert again.class_weight == search.best_params_["class_weight"]
    assert again.score(X, y) == np.mean(again.predict(X) == y)  # which is not weighted
