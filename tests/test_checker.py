"""What check_certificate reads and refuses: weights of classes, words and numbers that are none."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.claiming import claim
from sklearn.utils.class_weight import compute_class_weight

from marginsvm import (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    check_certificate,
    check_separability,
    check_separability_proof,
)
from marginsvm.certificate.reading import class_weights

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def overlapping(rng, k=2):
    return rng.standard_normal((60, 3)), np.arange(60) % k


def weighted(rng, k):
    X, y = overlapping(rng, k=k)
    return X, np.array(["a", "b", "c"])[y], rng.choice([0.0, 1.0, 0.3, 7.0], len(y))


WEIGHTS = [None, "balanced", {"a": 2.5}, {"a": 1e-3, "b": 2.0}, {"a": 0.0, "c": 3.0}]


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("class_weight", WEIGHTS, ids=str)
def test_weights_of_classes_multiply_those_of_examples(class_weight, kernel, rng):
    """A fit with the products as sample weights is confirmed with ``class_weight`` set."""
    X, y, weight = weighted(rng, k=3)
    given = X @ X.T if kernel == "precomputed" else X
    product = weight * class_weights(class_weight, y, weight)
    clf = MomentumMarginClassifier(C=0.7, max_iter=40, kernel=kernel).fit(given, y, product)
    clf.class_weight = class_weight
    check = check_certificate(clf, given, y, weight, exact=kernel != "rbf")
    assert check, check.reason
    if kernel == "linear":
        blocks = [(X[i : i + 20], y[i : i + 20], weight[i : i + 20]) for i in range(0, len(y), 20)]
        check = check_certificate(clf, blocks)
        assert check, check.reason


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 2.5}, {"a": 1e-3, "b": 2.0}], ids=str)
def test_other_weights_of_classes_are_noticed(class_weight, rng):
    X, y, weight = weighted(rng, k=2)
    clf = MaxMarginClassifier(C=0.7, tol=1e-9).fit(X, y, weight)
    assert check_certificate(clf, X, y, weight, exact=True)
    clf.class_weight = class_weight
    assert not check_certificate(clf, X, y, weight, exact=True)


def test_balanced_weights_are_scikit_learns(rng):
    _, y, weight = weighted(rng, k=3)
    some = weight > 0
    classes = np.unique(y)
    theirs = compute_class_weight(
        "balanced", classes=classes, y=y[some], sample_weight=weight[some]
    )
    ours = class_weights("balanced", y, weight)
    np.testing.assert_array_equal(ours, theirs[np.searchsorted(classes, y)])
    counts = np.ceil(weight).astype(int)
    copies = np.repeat(y, counts)
    of_copies = class_weights("balanced", copies, np.ones(len(copies)))
    for label in classes:  # a weight m counts like m copies
        ours = class_weights("balanced", y, counts.astype(float))[y == label][0]
        np.testing.assert_allclose(ours, of_copies[copies == label][0])


def test_balanced_weights_do_not_count_classes_that_are_left_out():
    y, weight = np.array([0, 0, 0, 1, 2]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(class_weights("balanced", y, weight)[:4], [2 / 3] * 3 + [2.0])


def test_labels_of_other_classes_are_refused(rng):
    X, y, _ = weighted(rng, k=2)
    clf = MomentumMarginClassifier(max_iter=10).fit(X, y)
    with pytest.raises(ValueError, match="was fitted to"):
        check_certificate(clf, X, np.where(y == "a", "b", "c"))


LIES = [
    {"status": "finished"},
    {"status": None},
    {"margin": np.nan},
    {"margin_bound": np.nan},
    {"margin": np.nan, "status": "certified"},
    {"margin_bound": np.nan, "status": "no_margin"},
    {"margin_bound": np.inf},
    {"separable": np.nan},
    {"separable": "no"},
    {"separable": np.True_},
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("lie", LIES, ids=str)
def test_words_and_numbers_that_are_none_are_refused(lie, exact, rng):
    X, y = overlapping(rng)
    clf = MomentumMarginClassifier(max_iter=10).fit(X, y)
    assert check_certificate(clf, X, y, exact=exact)
    claim(clf, **lie)
    check = check_certificate(clf, X, y, exact=exact)
    assert not check
    if {"margin", "margin_bound"} & set(lie):
        assert check.excess == np.inf
    else:
        assert next(iter(lie)) in check.reason


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("factor", [0.0, np.nan, np.inf, -1.0])
def test_weights_that_are_none_prove_nothing(factor, exact, rng):
    X, y = overlapping(rng)
    clf = MomentumMarginClassifier(max_iter=10).fit(X, y)
    honest = clf.certificate_.weights
    for weights in (honest * factor, honest[:10], sp.hstack([honest, honest], format="csr")):
        claim(clf, weights=weights)
        check = check_certificate(clf, X, y, exact=exact)
        assert not check
        assert check.excess == check.margin_bound == np.inf
        assert "no distribution" in check.reason


def claiming(clf, weights, bound):
    """The same estimator with other weights, and the bound that they are said to prove."""
    weights = sp.csr_array(np.asarray(weights, dtype=float).reshape(len(weights), -1))
    clf.__dict__.update({"gap_": max(0.0, bound - clf.margin_) / bound})
    claim(clf, weights=weights, margin_bound=bound, status="max_iter")
    return clf


@pytest.mark.parametrize("exact", [False, True])
def test_weights_against_the_own_class_are_none(exact, rng):
    """On two opposite examples, they would add to the mass, and nothing to the sum."""
    X, y = overlapping(rng, k=3)
    X[3] = -X[0]
    clf = MomentumMarginClassifier(max_iter=1, fit_intercept=False).fit(X, y)
    q, bound = clf.certificate_.weights.toarray(), clf.margin_bound_
    assert check_certificate(claiming(clf, q, bound), X, y, exact=exact)
    q *= 0.5
    q[[0, 3], y[0]] = 0.25
    assert not check_certificate(claiming(clf, q, 0.5 * bound), X, y, exact=exact)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("C", [np.inf, 100.0])
def test_weights_of_one_class_prove_nothing_with_an_intercept(C, exact):
    """Those on an example at the mean have a sum of length 0."""
    X, y = np.array([[-2.0], [0.0], [2.0]]), np.array([0, 0, 1])
    clf = MaxMarginClassifier(C=C).fit(X, y)
    assert check_certificate(claiming(clf, [0.0, 0.5, 0.5], 1.2), X, y, exact=exact)
    assert not check_certificate(claiming(clf, [0.0, 1.0, 0.0], 0.5), X, y, exact=exact)
    assert not check_certificate(claiming(clf, [0.5, 0.5, 0.0], 0.9), X, y, exact=exact)


@pytest.mark.parametrize("exact", [False, True])
def test_rows_on_the_boundary_are_not_separated(exact):
    X, y = np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    report = check_separability(X, y)
    assert (report.kind, report.separated.tolist()) == (
        "quasi-complete",
        [True, False, False, True],
    )
    lie = replace(
        report,
        kind="complete",
        separated_rows=np.ones_like(report.separated_rows),
        overlap_weights=None,
    )
    assert check_separability_proof(report, X, y, exact=exact)
    assert not check_separability_proof(lie, X, y, exact=exact)
