"""separable_ against rationals: False only with a proof, and units that do not matter."""

import os
import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import comparison_cases, separation_cases
from helpers.battery import each, slow, some_slow
from helpers.claiming import refused
from helpers.estimators import (
    ESTIMATORS,
    MORE_DIGITS,
    certified,
    fit,
    make,
    parameters,
    separable,
)
from helpers.hostile import hostile_problem, truthful
from helpers.pairwise import pairwise
from helpers.rational import is_separable
from helpers.separation import truth
from helpers.separation_cases import ALL, FAMILIES, OFFSETS, answer_of, proved, statuses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from marginsvm import (
    AcceleratedPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    PerceptronVonNeumann,
    check_certificate,
    check_separability,
    check_separability_proof,
)
from marginsvm.certificate.exact_algebra import refuting_weights
from marginsvm.separation import program, proof, regression
from marginsvm.separation import report as reports
from marginsvm.separation.program import multiplied
from marginsvm.separation.regression import as_printed


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
    # else the rounding of the weights, times the column, is a margin
    decided = column.max() < 1e17
    if decided:
        assert clf.separable_ is True
        assert clf.score(X, y) == 1.0
        assert clf.margin_ > 0.84  # without the column, the best margin is 0.818
        assert clf.status_ == "certified" or not MORE_DIGITS
    assert check_separability(form(X), y).separable is True
    X, y = iris(1, 2, column)  # which nearly overlap
    clf = fit(MaxMarginClassifier(), form(X), y)
    assert clf.separable_ is is_separable(X, y) or (
        clf.separable_ is None and not decided
    )
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
        np.testing.assert_allclose(
            scaled.margin_bound_, once.margin_bound_ * unit, rtol=1e-9
        )
    np.testing.assert_allclose(
        scaled.certificate_.weights.toarray(),
        once.certificate_.weights.toarray(),
        atol=1e-9,
    )


@pytest.mark.parametrize(("low", "lowest"), [(-40, -1060), (-300, -800), (-450, -640)])
def test_a_feature_that_is_next_to_a_sum_is_needed(low, lowest):
    """Times a power of two that makes it underflow, a feature would be the sum of others."""
    X = np.array(
        [[2.0**low, 1.0, 1.0], [2.0**low, 1.0, -1.0], [0.0, 2.0**lowest, -1.0]]
    )
    y = np.array([1, 0, 1])
    assert is_separable(X, y, fit_intercept=False)
    for columns in permutations(range(3)):
        clf = fit(MaxMarginClassifier(fit_intercept=False), X[:, columns], y)
        assert clf.separable_ is not False


@pytest.mark.parametrize(
    ("X", "y", "C"),
    [
        ([[1.0], [-1.0], [-2.0], [-2.0]], [0, 1, 2, 2], 1.0),
        (
            [[-1.0], [-2.0], [-1.0], [-2.0], [-1.0], [2.0], [3.0]],
            [0, 1, 2, 1, 0, 1, 2],
            np.inf,
        ),
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


@pytest.mark.parametrize("cls", [MomentumMarginClassifier, AcceleratedPerceptron])
def test_a_false_of_examples_on_a_line_is_proved_by_what_is_published(cls):
    """But for rounding they are on one: last digits of weights decide what is proved nearby."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = (
            np.outer(rng.standard_normal(8), rng.standard_normal(3)),
            np.arange(8) % 2,
        )
        clf = fit(make(cls, max_iter=31), X, y)
        found += clf.separable_ is False
        assert check_certificate(clf, X, y), seed
    assert found


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
        X = np.column_stack(
            [np.eye(8)[rng.integers(0, 8, 400)], rng.standard_normal((400, 3))]
        )
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
    # counts above 0 are equalities
    assert (counts.kind, counts.separable) == ("overlap", False)
    assert counts.estimate_exists is None


@pytest.mark.parametrize(
    "name", [pytest.param("tng_basehock", marks=pytest.mark.slow), "arcene"]
)
def test_separability_of_text_and_genes(name, shared_data):
    z = shared_data(name)
    if "data" in z:
        X = sp.csr_array(
            (z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])
        )
        y = z["y"]
    else:
        X, y = z["X_train"], z["y_train"]
    assert proved(X.astype(float), y, exact=[False]).separable is True


# Columns far from zero, thin margins, small differences, and the steps of an answer.


@pytest.mark.parametrize("kind", [*ALL, *comparison_cases.ALL])
@pytest.mark.parametrize("block", [0, *map(slow, range(1, 5))])
def test_no_answer_is_wrong(kind, block):
    """``examples/benchmarks/separation.py`` does the same for as many as one likes."""
    cases = separation_cases if kind in ALL else comparison_cases
    answers = [
        cases.answer_of(seed, kind)[:2]
        for seed in range(100 * block, 100 * block + 100)
    ]
    assert not [wrong for wrong, _ in answers if wrong not in ([], ["undecided"])]
    assert sum(wrong == ["undecided"] for wrong, _ in answers) <= 1
    assert {"complete", "quasi-complete", "overlap"} <= {said for _, said in answers}


@pytest.mark.parametrize("kind", [*FAMILIES, "ordinal", *comparison_cases.ALL])
def test_samples_say_what_all_rows_say(kind):
    """Small problems many times over, of which a few rows are taken at first."""
    cases = separation_cases if kind in ALL else comparison_cases
    assert not [
        wrong for seed in range(30) if (wrong := cases.answer_of(seed, kind, 40)[0])
    ]


def test_weights_found_next_to_the_boundary_are_balanced():
    """Interior points that went nearly all the way to it left weights that did not sum to zero."""
    assert answer_of(510324, "multinomial")[:2] == ([], "overlap")


@pytest.mark.parametrize(
    "kind", ["ordinal", "multinomial", *map(slow, ("binomial", "poisson"))]
)
@pytest.mark.parametrize("block", [0, slow(1)])
@pytest.mark.parametrize("units", [False, True])
def test_large_sparse_designs_are_split_alike(units, kind, block, monkeypatch):
    """In hostile units, a sign that takes more than one example may be open there."""
    monkeypatch.setattr(program, "DENSE", -1)
    seeds = range(40 * block, 40 * block + 40)
    answers = [answer_of(seed, kind, units=units) for seed in seeds]
    assert not [wrong for wrong, *_ in answers if wrong not in ([], ["undecided"])]
    assert sum(wrong == ["undecided"] for wrong, *_ in answers) <= (8 if units else 0)


@pytest.mark.parametrize("offset", OFFSETS)
def test_offsets_change_nothing_but_the_intercept(offset):
    X, y = np.array([[1.0, 1], [0, 1], [0, 1], [0, 0]]) + offset, [0, 1, 1, 1]
    report = proved(X, y)
    assert (report.kind, report.reason) == ("complete", "")
    assert statuses(report) == [truth(X.tolist(), y)[2][0], "-inf", "inf"]


def test_a_rounded_sum_is_not_identified_and_the_reason_says_so():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    X = np.column_stack([X, X @ [0.1, 0.7, -0.3]])
    report = proved(X, y, exact=[False])
    assert statuses(report)[-1] == "not identified"
    assert "column 4 is not identified only up to rounding" in report.reason
    assert not check_separability_proof(report, X, y, exact=True)


def test_a_mark_of_few_among_many_is_separated():
    """So many that the exact solver is asked first: its weights span less than the space."""
    rng = np.random.default_rng(4)
    X, y = rng.integers(-3, 4, (6000, 25)).astype(float), rng.integers(0, 2, 6000)
    mark = (np.arange(6000) < 40) & (y == 1)
    X[:, 0] = mark + X[:, 1]
    report = check_separability(X, y)
    assert report.kind == "quasi-complete"
    np.testing.assert_array_equal(report.separated, mark)
    assert statuses(report) == ["finite", "+inf", "-inf", *["finite"] * 23]


def test_numbers_are_read_as_they_are_printed():
    x = np.arange(1.0, 9.0)
    for read, power in (
        (x, 1.0),
        (x / 8, 8.0),
        (x + 2.0**45, 1.0),
        (x * 2.0**-900, 2.0**900),
    ):
        X, unit, rounded = as_printed(read[:, None])
        assert (unit.tolist(), rounded.tolist()) == ([power], [False])
        np.testing.assert_array_equal(X[:, 0] / unit, read)
    for read in (x / 10, 0.1 * x, 19000 + x / 100, np.arange(0.1, 0.9, 0.1)):
        X, unit, rounded = as_printed(read[:, None])
        assert not rounded
        for whole, v in zip(X[:, 0], read, strict=True):
            assert Fraction(int(whole), int(unit[0])) == Fraction(f"{v:.13g}")
    for read in (
        x / 3,
        np.append(x / 10, 1 / 3),
        np.array([1e-20, 0.0, 0.5]),
        np.sqrt(x),
    ):
        X, unit, rounded = as_printed(read[:, None])
        assert rounded
        assert [Fraction(v) / Fraction(unit[0]) for v in X[:, 0]] == [
            Fraction(v) for v in read
        ]
        assert not np.any(X % 1)
    assert not as_printed(np.zeros((8, 2)))[0].any()
    assert as_printed(np.array([[1e-310], [1.0]])) is None


def test_products_in_twice_the_digits():
    A = np.array([[1e16, 1.0, -1e16], [1.0, 2.0**-60, -1.0]])
    np.testing.assert_array_equal(
        multiplied(A, np.ones((3, 1)))[0][:, 0], [1.0, 2.0**-60]
    )


@pytest.mark.parametrize("unit", [1.0, 0.1, 2.54, 100.0])
def test_tables_say_the_same_in_other_units(unit):
    """Points on a line, of both classes: in decimals, most of them are beside it."""
    x = np.array([[a, b] for a in range(4) for b in range(4)], float)
    for y in (
        x.sum(axis=1) > 3,
        x.sum(axis=1) + (x[:, 0] == 1) > 3,
        x[:, 0] - 2 * x[:, 1] > 0.5,
    ):
        expected = check_separability(x, y)
        report = check_separability(x * unit + 19.7, y)
        assert (report.exact, report.kind) == (True, expected.kind)
        np.testing.assert_array_equal(report.separated, expected.separated)
        assert statuses(report)[1:] == statuses(expected)[1:]


def with_a_sum(seed):
    """Decimals and numbers far from zero, beside the sum of two of them, which is rounded."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (10, 2)) * rng.choice([0.1, 0.01, 1 / 3], 2)
    X += rng.choice([0.0, 1e6, 19000.0, 1.7e9], 2)
    y = rng.integers(0, 2, 10) if seed % 4 else np.arange(10) // 5
    family = ("binomial", "poisson", "ordinal")[seed % 3]
    return np.column_stack([X, X.sum(axis=1)]), y, family


@pytest.mark.parametrize("block", [0, slow(1), slow(2)])
def test_sums_up_to_rounding_leave_the_rest_exact(block):
    """Signs and rows are those without the sum; ``separable`` is about the numbers as they are."""
    loose = 0
    for seed in range(60 * block, 60 * block + 60):
        X, y, family = with_a_sum(seed)
        report = check_separability(X, y, family=family)
        if not report.reason.endswith("is not identified only up to rounding."):
            continue
        loose += 1
        kind, _, expected = truth(X[:, :2].tolist(), y.tolist(), family=family)
        assert (report.kind, statuses(report)) == (
            kind,
            [*expected, "not identified"],
        ), seed
        whole = truth(X.tolist(), y.tolist(), family=family)[0]
        assert report.separable in (None, whole == "complete"), seed
    assert loose > 10


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_column_of_zeros_alone(form):
    X = form(np.zeros((4, 1)))
    report = proved(X, [0, 0, 0, 1], family="poisson", fit_intercept=False)
    assert (report.kind, statuses(report)) == ("overlap", ["not identified"])


def test_a_copy_that_is_called_identified_is_refused():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), [0, 0, 1, 1]
    report = check_separability(X, y)
    assert statuses(report)[2] == "not identified"
    w = np.array([[1.0, 1.0]])
    first, second, _ = report.coefficients
    coefficients = (
        first,
        second._replace(status="inf"),
        second._replace(name="x1", status="inf"),
    )
    direction = report.direction._replace(coef=w, intercept=np.array([-3.0]))
    false = replace(report, coefficients=coefficients, direction=direction)
    assert not check_separability_proof(false, X, y, exact=True)
    assert (
        "not known to be independent"
        in check_separability_proof(false, X, y, exact=True).reason
    )


@pytest.fixture
def separated(rng):
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2
    X[:, 2] = np.where(y == 1, X[:, 2] > 1.0, 0.0)
    return X, y


def unit_rows(kind, rng, n=80, k=5):
    T = rng.standard_normal((n, k))
    if kind != "overlap":
        T[:, 0] = np.abs(T[:, 0]) + (kind == "separated")
    if kind == "mixed":
        T[20:, 0] = 0.0
    return T / np.sqrt(np.square(T).sum(axis=1, keepdims=True))


def test_hinges_end_with_margins_or_with_weights(rng):
    T = unit_rows("separated", rng)
    w, slack = program._hinge(T)
    assert (T @ w).min() > 0
    assert not slack.any()
    T = unit_rows("overlap", rng)
    w, slack = program._hinge(T)
    assert abs(T.T @ slack).max() < 1e-12
    assert slack.max() > 0.1


@pytest.mark.parametrize("condition", [10.0, 1e8, 1e14])
def test_coordinates_are_round(condition, rng):
    S = rng.standard_normal((50, 6))
    S[:, 5] = S[:, 4] + S[:, 5] / condition
    Z, T = program.coordinates(S)
    assert np.linalg.cond(Z) < 1e4
    exact = S.astype(np.longdouble) @ T.astype(np.longdouble)
    assert abs(exact - Z).max() < 1e-3


@pytest.mark.parametrize("size", [0, 10**6])
def test_null_vectors_are_those_of_the_rows(size, monkeypatch, rng):
    monkeypatch.setattr(program, "DENSE", size)
    S = rng.standard_normal((200, 30)) * (rng.random((200, 30)) < 0.3)
    S[:, 7] = S[:, 3] + S[:, 4]
    S[:, 9] = 0.0
    V, known = program.null_vectors(sp.csr_array(S))
    assert known
    assert V.shape == (30, 2)
    assert abs(S @ V).max() < 1e-8
    kept, T, sums = program._columns_of_sparse(sp.csr_array(S))
    np.testing.assert_array_equal(kept, np.delete(np.arange(30), [7, 9]))
    np.testing.assert_array_equal(T.toarray(), np.eye(30)[:, kept])
    assert abs(S @ sums).max() < 1e-8 < abs(sums).max()


def test_no_rows_leave_some_vectors_of_many_columns():
    """Not all of them: 18 GB for the words of rcv1."""
    V, known = program.null_vectors(sp.csr_array((0, 50_000)))
    assert (V.shape, known) == ((50_000, program.VECTORS), False)
    np.testing.assert_allclose(V.T @ V, np.eye(program.VECTORS), atol=1e-12)


def test_columns_of_wide_rows_take_one_least_squares(rng, monkeypatch):
    solved = []
    lsmr = program.lsmr
    monkeypatch.setattr(program, "DENSE", 0)
    monkeypatch.setattr(
        program, "lsmr", lambda *args, **kw: solved.append(1) or lsmr(*args, **kw)
    )
    S = sp.random_array((40, 300), density=0.1, rng=rng, format="csr")
    kept, _, sums = program._columns_of_sparse(S)
    assert len(solved) == 1
    assert abs(S @ sums).max() < 1e-8 < abs(sums).max()
    used = np.unique(S.indices)
    np.testing.assert_array_equal(kept, used[sums[used] == 0.0])


def test_signs_are_looked_for_when_they_are_read(separated, monkeypatch):
    made, work = [], reports.statuses
    monkeypatch.setattr(reports, "statuses", lambda *a: made.append(a) or work(*a))
    X, y = separated
    report = check_separability(X, y)
    assert report.kind == "quasi-complete"
    assert report.separated.sum() == X[:, 2].sum()
    assert report.direction.coef[0, 2] > 0.0
    assert not made
    assert report.coefficients[3].status == "+inf"
    assert report.reason == ""
    assert len(made) == 1


@pytest.mark.parametrize("copied", [lambda r: pickle.loads(pickle.dumps(r)), replace])
def test_copies_of_a_report_have_all_of_it(copied, separated):
    X, y = separated
    report = check_separability(X, y)
    copy = copied(report)
    assert copy.coefficients == report.coefficients
    assert repr(copy) == repr(report)
    assert check_separability_proof(copy, X, y, exact=True)
    np.testing.assert_array_equal(copy.remainder(X).rows, report.remainder(X).rows)


@pytest.mark.parametrize(
    ("unit", "small", "known"),
    [
        (2.0**-20, 1e-6, None),
        (2.0**-20, 2e-5, None),
        (2.0**-20, 1e-4, True),
        (0.0, 1e-15, None),  # printed numbers are not the floats
        (0.0, 1e-14, None),
        (0.0, 1e-13, True),
    ],
)
def test_signs_by_floats_allow_for_all_sums(unit, small, known, monkeypatch):
    """In floats of 20 bits, products of 17 additions prove no smaller ones."""
    for module in (regression, proof):
        monkeypatch.setattr(module, "MOST_INTEGERS", 0)  # no sum is in integers
    monkeypatch.setattr(proof, "UNIT", unit)
    X, y = np.array([[-1.0], [-small], [small], [1.0]]), [0, 0, 1, 1]
    assert check_separability(X, y, fit_intercept=False).separable is known


def test_signs_in_floats_need_a_sum_of_rows(monkeypatch):
    """A row that is nearly a unit vector proves no sign, and no float proves one exactly."""
    for module in (regression, proof):
        monkeypatch.setattr(module, "MOST_INTEGERS", 0)  # no sum is in integers
    rest, y = [[0.0, 1.0], [0.0, 2.0], [0.0, -1.0]], [1, 1, 1, 0]
    for small, status in [(1e-6, "inf"), (0.0, "+inf")]:
        X = np.array([[1.0, small], *rest])
        report = check_separability(X, y, fit_intercept=False)
        assert [c.status for c in report.coefficients] == [status, "+inf"]
        assert check_separability_proof(report, X, y)
        assert not check_separability_proof(report, X, y, exact=True)


@pytest.mark.parametrize("row", [(0.1, 0.7), (0.1, 2.1)])
def test_an_overlap_of_floats_alone_is_refused(row, monkeypatch):
    """Printed, two rows are opposite; as floats they are not quite, and overlap with a third.

    Errors of the numbers do not count so in ``is_regular``: columns that float64 calls independent
    have pivots of 1e-11 of the largest one, beside which errors of 2^-49 are nothing.
    """
    X = np.array([row, [float(f"{7 * x:.6g}") for x in row], [0.0, 1.0]])
    (a, b), (c, d), _ = (map(Fraction, row) for row in X)
    least = d - b * c / a  # of the weight of the third row
    X[2, 1] = np.sign(float(least))
    y, rounded = [1, 0, 1], float(abs(least))
    assert 0 < rounded < 1e-14
    near = X * [[1.0, 1.0], [1.0, 1.0 + 1e-3 * X[2, 1]], [1.0, 1.0]]
    report = check_separability(near, y, fit_intercept=False)
    assert check_separability_proof(report, near, y, exact=True)
    assert (report.kind, report.overlap_weights.nnz) == ("overlap", 3)
    weights = report.overlap_weights.copy()
    weights.data[:] = float(c / a), 1.0, rounded
    forged = replace(report, overlap_weights=weights)
    assert not check_separability_proof(forged, X, y, exact=True)
    for module in (regression, proof):
        monkeypatch.setattr(module, "MOST_INTEGERS", 0)  # no sum is in integers
    assert not check_separability_proof(forged, X, y, exact=True)
