"""Columns far from zero, thin margins, small differences: no answer differs from rationals."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.separation import truth
from helpers.separation_cases import OFFSETS, answer_of

from marginsvm import check_separability, check_separability_proof
from marginsvm.certify.checker.coordinates import identified_columns
from marginsvm.certify.checker.face import face_of, vanish
from marginsvm.certify.checker.modular import are_exact, independent_columns
from marginsvm.certify.checker.precise import product
from marginsvm.certify.checker.simplex import combination, has_positive_weights


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))]
)
def test_no_answer_is_wrong(block):
    """``examples/benchmarks/separation_oracle.py`` does the same for as many as one likes."""
    answers = [answer_of(seed)[0] for seed in range(100 * block, 100 * block + 100)]
    assert not [wrong for wrong in answers if wrong not in ([], ["undecided"])]
    assert sum(wrong == ["undecided"] for wrong in answers) <= 1


def statuses(report):
    return [c.status for c in report.coefficients]


@pytest.mark.parametrize("offset", OFFSETS)
def test_offsets_change_nothing_but_the_intercept(offset):
    X, y = np.array([[1.0, 1], [0, 1], [0, 1], [0, 0]]) + offset, [0, 1, 1, 1]
    report = check_separability(X, y)
    assert (report.kind, report.reason) == ("complete", "")
    assert statuses(report)[1:] == ["-inf", "inf"]
    assert statuses(report)[0] == truth(X.tolist(), y)[2][0]
    assert check_separability_proof(report, X, y, exact=True)


def test_without_an_intercept_far_from_zero():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = 1e6 + rng.integers(-2, 3, (7, 2))
        y = rng.integers(0, 2, 7) * (rng.random(7) < 0.5)
        options = {"family": "poisson", "fit_intercept": False}
        report = check_separability(X, y, **options)
        kind, _, expected = truth(X.tolist(), y.tolist(), **options)
        assert (report.kind, statuses(report)) == (kind, expected)


def test_counts_far_from_zero_are_separated():
    X, y = 2.0**40 + np.array([[0.0], [1], [3], [4]]), [[5, 0], [2, 0], [0, 2], [0, 5]]
    report = check_separability(X, y)
    assert (report.kind, report.separable) == ("complete", True)
    assert check_separability_proof(report, X, y, exact=True)


@pytest.mark.parametrize(
    ("status", "lie"),
    [("+inf", "inf"), ("+inf", "-inf"), ("inf", "+inf"), ("finite", "not identified")],
)
def test_lies_about_coefficients_are_refuted(status, lie):
    """A mark that only one class has, and two numbers that only two examples of it have."""
    rng = np.random.default_rng(1)
    X, y = np.zeros((40, 4)), np.arange(40) % 2
    X[:, 0] = rng.integers(-2, 3, 40)
    X[1:12:2, 1] = 1.0
    X[13, 2:], X[15, 2:] = (1.0, 2.0), (2.0, 1.0)
    report = check_separability(X, y)
    assert statuses(report) == ["finite", "finite", "+inf", "inf", "inf"]
    j = statuses(report).index(status)
    assert check_separability_proof(report, X, y, exact=True)
    told = [c._replace(status=lie) if i == j else c for i, c in enumerate(report.coefficients)]
    check = check_separability_proof(replace(report, coefficients=tuple(told)), X, y, exact=True)
    assert not check
    assert check.reason


def test_a_rounded_sum_is_not_identified_and_the_reason_says_so():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    X = np.column_stack([X, X @ [0.1, 0.7, -0.3]])
    report = check_separability(X, y)
    assert statuses(report)[-1] == "not identified"
    assert "column 4 is not identified only up to rounding" in report.reason
    assert not check_separability_proof(report, X, y, exact=True)
    assert check_separability_proof(report, X, y)


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
    assert report.estimator.separable_ is False


# The tools.


def test_ranks_modulo_a_prime():
    rng = np.random.default_rng(3)
    A = rng.integers(-3, 4, (30, 4)) * 2.0 ** rng.integers(-300, 300, 4)
    A = A[:, [0, 1, 2, 0, 3]]
    assert independent_columns(A).tolist() == [0, 1, 2, 4]
    assert independent_columns(np.array([[512.0 - 2.0**-22]])).tolist() == [0]
    assert independent_columns(np.zeros((3, 2))).tolist() == []
    assert identified_columns(np.column_stack([A, A[:, 1] * 0.1])).tolist() == [0, 1, 2, 4]


def test_numbers_that_may_have_been_rounded():
    x = np.arange(1.0, 9.0)
    X = np.column_stack([x, x / 10, x + 2.0**45, x * 2.0**-1000, 0 * x])
    assert are_exact(X).tolist() == [True, False, True, True, True]


def test_products_in_twice_the_digits():
    A = np.array([[1e16, 1.0, -1e16], [1.0, 2.0**-60, -1.0]])
    np.testing.assert_array_equal(product(A, np.ones((3, 1)))[:, 0], [1.0, 2.0**-60])


def test_null_spaces_in_integers():
    A = np.array([[1.0, 0.5, 0.0, 0.0], [0.0, 0.0, 3.0, 1.0], [1.0, 0.5, 3.0, 1.0]])
    face = face_of(A)
    assert len(face.free) == 2
    assert vanish(A, face.vectors)
    assert not vanish(A + np.eye(3, 4), face.vectors)
    np.testing.assert_array_equal(A @ face.table, np.zeros((3, 2)))
    thin = np.array([[1.0, 2.0**-40, 7.0], [1.0, 0.0, 7.0]])
    assert face_of(thin).vectors == [[-7, 0, 1]]


def test_combinations_in_integers():
    A = np.array([[1.0, 0.0], [1.0, 2.0**-60], [-1.0, 5.0]])
    inside = combination(A, np.array([1.0, 2.0**-61]))
    assert inside.weights is not None
    outside = combination(A, np.array([1.0, -(2.0**-61)]))
    v = outside.direction
    assert all(int(2**60 * a) * v[0] + int(2**60 * b) * v[1] >= 0 for a, b in A)
    assert 2**61 * v[0] - v[1] < 0
    assert has_positive_weights(np.array([[1.0, 0.0], [-1.0, 3.0], [0.0, -0.1]]))
    assert not has_positive_weights(np.array([[1.0, 0.0], [-1.0, 3.0], [0.0, 0.1]]))


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
    X, options = form(np.zeros((4, 1))), {"family": "poisson", "fit_intercept": False}
    report = check_separability(X, [0, 0, 0, 1], **options)
    assert (report.kind, statuses(report)) == ("overlap", ["not identified"])
    assert check_separability_proof(report, X, [0, 0, 0, 1], exact=True)


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
