"""Columns far from zero, thin margins, small differences, and the steps of an answer: rationals."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import comparison_cases, separation_cases
from helpers.battery import slow
from helpers.separation import truth
from helpers.separation_cases import ALL, FAMILIES, OFFSETS, answer_of, proved, statuses

from marginsvm import check_separability, check_separability_proof
from marginsvm.separation import program
from marginsvm.separation import report as reports
from marginsvm.separation.families import as_printed
from marginsvm.separation.program import multiplied


@pytest.mark.parametrize("kind", [*ALL, *comparison_cases.ALL])
@pytest.mark.parametrize("block", [0, *map(slow, range(1, 5))])
def test_no_answer_is_wrong(kind, block):
    """``examples/benchmarks/separation.py`` does the same for as many as one likes."""
    cases = separation_cases if kind in ALL else comparison_cases
    answers = [cases.answer_of(seed, kind)[:2] for seed in range(100 * block, 100 * block + 100)]
    assert not [wrong for wrong, _ in answers if wrong not in ([], ["undecided"])]
    assert sum(wrong == ["undecided"] for wrong, _ in answers) <= 1
    assert {"complete", "quasi-complete", "overlap"} <= {said for _, said in answers}


@pytest.mark.parametrize("kind", [*FAMILIES, "ordinal", *comparison_cases.ALL])
def test_samples_say_what_all_rows_say(kind):
    """Small problems many times over, of which a few rows are taken at first."""
    cases = separation_cases if kind in ALL else comparison_cases
    assert not [wrong for seed in range(30) if (wrong := cases.answer_of(seed, kind, 40)[0])]


def test_weights_found_next_to_the_boundary_are_balanced():
    """Interior points that went nearly all the way to it left weights that did not sum to zero."""
    assert answer_of(510324, "multinomial")[:2] == ([], "overlap")


@pytest.mark.parametrize("kind", ["ordinal", "multinomial", *map(slow, ("binomial", "poisson"))])
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
    for given, power in ((x, 1.0), (x / 8, 8.0), (x + 2.0**45, 1.0), (x * 2.0**-900, 2.0**900)):
        X, unit, rounded = as_printed(given[:, None])
        assert (unit.tolist(), rounded.tolist()) == ([power], [False])
        np.testing.assert_array_equal(X[:, 0] / unit, given)
    for given in (x / 10, 0.1 * x, 19000 + x / 100, np.arange(0.1, 0.9, 0.1)):
        X, unit, rounded = as_printed(given[:, None])
        assert not rounded
        for whole, v in zip(X[:, 0], given, strict=True):
            assert Fraction(int(whole), int(unit[0])) == Fraction(f"{v:.13g}")
    for given in (x / 3, np.append(x / 10, 1 / 3), np.array([1e-20, 0.0, 0.5]), np.sqrt(x)):
        X, unit, rounded = as_printed(given[:, None])
        assert rounded
        assert [Fraction(v) / Fraction(unit[0]) for v in X[:, 0]] == [Fraction(v) for v in given]
        assert not np.any(X % 1)
    assert not as_printed(np.zeros((8, 2)))[0].any()
    assert as_printed(np.array([[1e-310], [1.0]])) is None


def test_products_in_twice_the_digits():
    A = np.array([[1e16, 1.0, -1e16], [1.0, 2.0**-60, -1.0]])
    np.testing.assert_array_equal(multiplied(A, np.ones((3, 1)))[0][:, 0], [1.0, 2.0**-60])


@pytest.mark.parametrize("unit", [1.0, 0.1, 2.54, 100.0])
def test_tables_say_the_same_in_other_units(unit):
    """Points on a line, of both classes: in decimals, most of them are beside it."""
    x = np.array([[a, b] for a in range(4) for b in range(4)], float)
    for y in (x.sum(axis=1) > 3, x.sum(axis=1) + (x[:, 0] == 1) > 3, x[:, 0] - 2 * x[:, 1] > 0.5):
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
        assert (report.kind, statuses(report)) == (kind, [*expected, "not identified"]), seed
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
    coefficients = first, second._replace(status="inf"), second._replace(name="x1", status="inf")
    direction = report.direction._replace(coef=w, intercept=np.array([-3.0]))
    false = replace(report, coefficients=coefficients, direction=direction)
    assert not check_separability_proof(false, X, y, exact=True)
    assert "not known to be independent" in check_separability_proof(false, X, y, exact=True).reason


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
