"""separable_ against rationals: False only with a proof, and units that do not matter."""

import os
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.battery import each, slow, some_slow
from helpers.claiming import refused
from helpers.estimators import ESTIMATORS, MORE_DIGITS, certified, fit, make, parameters, separable
from helpers.hostile import hostile_problem, truthful
from helpers.pairwise import pairwise
from helpers.rational import is_separable
from helpers.separation_cases import proved
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from marginsvm import (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    PerceptronVonNeumann,
    check_certificate,
    check_separability,
)
from marginsvm.certificate.exact import refuting_weights


def iris(first, second, column=None):
    X, y = load_iris(return_X_y=True)
    some = (y == first) | (y == second)
    X, y = X[some], y[some]
    return (X if column is None else np.column_stack([X, column])), y


def identifiers(n=100, high=10**12, offset=0.0):
    return offset + np.random.default_rng(0).integers(0, high, n).astype(float)


COLUMNS = {
    "identifiers": identifiers(),
    "seconds since 1970": identifiers(high=10**8, offset=1.7e9),
    "nanoseconds since 1970": identifiers(high=10**16, offset=1.7e18),
}


@pairwise(cls=some_slow(ESTIMATORS), column=COLUMNS)
def test_a_column_in_large_units_is_no_proof(cls, column):
    X, y = iris(0, 1, column)
    clf = fit(make(cls, max_iter=200), X, y)
    assert clf.separable_ is not False
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
def test_a_column_in_large_units_is_solved(column, form):
    X, y = iris(0, 1, column)
    clf = fit(MaxMarginClassifier(), form(X), y)
    assert clf.separable_ is not False
    assert check_certificate(clf, X, y, exact=True)
    decided = column.max() < 1e17  # else the rounding of the weights, times the column, is a margin
    if decided:
        assert clf.separable_ is True
        assert clf.score(X, y) == 1.0
        assert clf.margin_ > 0.84  # without the column, the best margin is 0.818
        assert clf.status_ == "certified" or not MORE_DIGITS
    assert check_separability(form(X), y).separable is True
    X, y = iris(1, 2, column)  # which nearly overlap
    clf = fit(MaxMarginClassifier(), form(X), y)
    assert clf.separable_ is is_separable(X, y) or (clf.separable_ is None and not decided)
    assert check_certificate(clf, form(X), y, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [(0, 1), (1, 2)])
def test_separability_does_not_depend_on_units(classes, rng):
    X, y = iris(*classes)
    for _ in range(20):
        units = 2.0 ** rng.integers(-40, 41, X.shape[1])
        ends = "certified" if classes == (0, 1) else "no_margin"
        clf = certified(MaxMarginClassifier(), X * units, y, ends=(ends,), exact=True)
        # rounding may hide that no predictor separates: it never looks like one that does
        assert (clf.separable_ is True) == (classes == (0, 1)), units


@pairwise(cls=some_slow(ESTIMATORS), unit=[2.0**-40, 2.0**40])
def test_one_unit_for_all_columns_scales_the_certificate(cls, unit):
    X, y = iris(0, 1)
    params = {"fit_intercept": False, "max_iter": 30}
    once, scaled = (fit(make(cls, **params), Z, y) for Z in (X, X * unit))
    assert once.separable_ is scaled.separable_
    if "normalize" not in parameters(cls):
        np.testing.assert_allclose(scaled.margin_, once.margin_ * unit, rtol=1e-9)
        np.testing.assert_allclose(scaled.margin_bound_, once.margin_bound_ * unit, rtol=1e-9)
    np.testing.assert_allclose(
        scaled.certificate_.weights.toarray(), once.certificate_.weights.toarray(), atol=1e-9
    )


@pytest.mark.parametrize(("low", "lowest"), [(-40, -1060), (-300, -800), (-450, -640)])
def test_a_feature_that_is_next_to_a_sum_is_needed(low, lowest):
    """Times a power of two that makes it underflow, a feature would be the sum of others."""
    X = np.array([[2.0**low, 1.0, 1.0], [2.0**low, 1.0, -1.0], [0.0, 2.0**lowest, -1.0]])
    y = np.array([1, 0, 1])
    assert is_separable(X, y, fit_intercept=False)
    for columns in permutations(range(3)):
        clf = fit(MaxMarginClassifier(fit_intercept=False), X[:, columns], y)
        assert clf.separable_ is not False


@pytest.mark.parametrize(
    ("X", "y", "C"),
    [
        ([[1.0], [-1.0], [-2.0], [-2.0]], [0, 1, 2, 2], 1.0),
        ([[-1.0], [-2.0], [-1.0], [-2.0], [-1.0], [2.0], [3.0]], [0, 1, 2, 1, 0, 1, 2], np.inf),
    ],
)
def test_weights_that_were_rebalanced_still_sum_to_one(X, y, C):
    for max_iter in (1, 2, 3):
        clf = fit(MomentumMarginClassifier(C=C, tol=1e-12, max_iter=max_iter), X, y)
        assert check_certificate(clf, X, y, exact=True)


@pytest.mark.parametrize("seed", [3985, 26671, 42788, 45630, 61592])
def test_what_a_hundred_thousand_cases_found(seed):
    """Bounds of weights that, rebalanced, summed to 1 - 1e-14."""
    truthful(ESTIMATORS[seed % len(ESTIMATORS)], *hostile_problem(seed), max_iter=60)


@pytest.mark.parametrize("n_features", [3, 60, slow(300)])
def test_weights_that_span_the_space_are_proved_in_floats(n_features, rng):
    """The labels are the signs of the one affine dependence of the examples (Radon)."""
    X = rng.standard_normal((n_features + 2, n_features))
    dependence = np.linalg.svd(np.column_stack([X, np.ones(len(X))]).T)[2][-1]
    S, q = np.sign(dependence)[:, None], np.abs(dependence)
    assert refuting_weights(X, S, q, intercept=True) is not None
    S[0] *= -1.0
    assert refuting_weights(X, S, q, intercept=True) is None


def test_a_false_that_is_not_proved_is_refuted():
    X, y = iris(0, 1, identifiers())
    clf = fit(MaxMarginClassifier(max_iter=1), X, y)
    for exact in (False, True):
        claims = {"separable": False, "status": "no_margin"}
        refused(clf, "separable is False", X, y, exact=exact, **claims)


# Against rationals; MARGINSVM_ATTACK sets their number.

CASES = int(os.environ.get("MARGINSVM_ATTACK", "0")) or 60


@pytest.mark.slow
@each
def test_what_is_said_of_separability_is_true(cls):
    @settings(
        max_examples=CASES,
        derandomize=CASES == 60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(seed=st.integers(0, 2**32 - 1))
    def attack(seed):
        truthful(cls, *hostile_problem(seed), max_iter=60)

    attack()


def inseparable(name):
    rng = np.random.default_rng(0)
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return X[50:], y[50:]
    if name == "mixed types":
        x, mark = rng.standard_normal(40), rng.integers(0, 2, 40).astype(bool)
        return pd.DataFrame({"a": x, "b": mark}), rng.integers(0, 2, 40)
    if name in ("dummies", "dummies, three classes"):
        X = np.column_stack([np.eye(8)[rng.integers(0, 8, 400)], rng.standard_normal((400, 3))])
        return X, rng.integers(0, 2 + (name != "dummies"), 400)
    if name == "noisy":
        X = rng.standard_normal((300, 5))
        return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1, -1)
    X = rng.standard_normal((200, 10))
    y = (X[:, 0] > 0).astype(int)
    X[1], y[0], y[1] = X[0], 0, 1
    return X, y if name == "duplicates" else y + (np.arange(200) % 7 == 6)


@pytest.mark.parametrize("name", ["mixed types", "dummies", "dummies, three classes"])
def test_tables_and_dummies_are_no_obstacle(name):
    """One-hot columns sum to the intercept's: the rows of a proof are never of full rank."""
    data = inseparable(name)
    clf = certified(MaxMarginClassifier(), *data, ends=("no_margin",), exact=True)
    assert clf.separable_ is False


KINDS = [(name, "linear") for name in ("iris", "noisy", "duplicates", "three classes")]


@pytest.mark.parametrize(("name", "kernel"), [*KINDS, ("duplicates", "poly")])
@pytest.mark.parametrize("fit_intercept", [True, slow(False)])
def test_not_separable_with_a_proof(name, fit_intercept, kernel):
    X, y = inseparable(name)
    clf = PerceptronVonNeumann(fit_intercept=fit_intercept, kernel=kernel)
    certified(clf, X, y, ends=("no_margin",))
    assert clf.separable_ is False
    assert clf.margin_bound_ <= 1e-6 * clf.certificate_.radius
    if kernel == "linear":
        answer = proved(X, y, fit_intercept=fit_intercept)
        assert answer.separable is False
        np.testing.assert_allclose(answer.overlap_weights.sum(), 1.0)
        assert repr(answer).startswith(("No separation", "Quasi-complete separation"))


def test_separable_with_a_separator(rng):
    X, y = separable(rng, k=3)
    answer = check_separability(X, y)
    assert answer.separable is True
    assert answer.overlap_weights is None
    assert repr(answer).startswith("Complete separation")
    F = X @ answer.direction.coef.T + answer.direction.intercept
    assert np.all(F.argmax(axis=1) == y)


def test_an_open_question_stays_open(rng):
    """Floats of a product of low rank are of full rank, but for this only their rounding counts."""
    X = rng.standard_normal((400, 2)) @ rng.standard_normal((2, 6))
    answer = check_separability(X, rng.integers(0, 2, 400))
    assert answer.separable is None
    assert not answer.exact
    assert answer.kind == "overlap"  # up to rounding, as the report says
    assert answer.estimate_exists is None
    assert repr(answer).startswith("Undecided")
    assert "exists, up to rounding" in repr(answer)
    y = np.arange(400) % 2
    partly = check_separability(np.column_stack([X, (y == 1) & (X[:, 0] > 0.0)]), y)
    assert (partly.kind, partly.separable) == ("quasi-complete", None)
    assert partly.estimate_exists is None
    assert partly.sentence == ""
    assert "does not exist, up to rounding" in repr(partly)
    counts = check_separability(X, rng.poisson(1.0, 400), family="poisson")
    assert (counts.kind, counts.separable) == ("overlap", False)  # counts above 0 are equalities
    assert counts.estimate_exists is None


@pytest.mark.parametrize("name", [pytest.param("tng_basehock", marks=pytest.mark.slow), "arcene"])
def test_separability_of_text_and_genes(name, shared_data):
    z = shared_data(name)
    if "data" in z:
        X = sp.csr_array((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
        y = z["y"]
    else:
        X, y = z["X_train"], z["y_train"]
    assert proved(X.astype(float), y, exact=[False]).separable is True
