"""Proofs that exact weights exist, in floats and in integers, against fractions.

True is a proof: so each True is held against the solution in fractions, on equations made so that
the weights which are to be positive are next to zero, or just below.
"""

from fractions import Fraction

import numpy as np
import pytest
from helpers.battery import over_seeds
from helpers.rational import has_solution, is_separable

from marginsvm.certify.certifiable import OverlapChecks
from marginsvm.certify.exactly import elimination
from marginsvm.certify.exactly.elimination import Effort, positive_solution
from marginsvm.certify.exactly.krawczyk import positive_solution_is_near
from marginsvm.certify.exactly.overlap import nothing_separates


def exactly(A):
    return [[Fraction(x) for x in row] for row in A.tolist()]


def solved(B, right):
    """``B x = right`` by elimination; None where B is singular."""
    rows, n = [[*row, r] for row, r in zip(B, right, strict=True)], len(B)
    for j in range(n):
        pivot = next((i for i in range(j, n) if rows[i][j]), None)
        if pivot is None:
            return None
        rows[j], rows[pivot] = rows[pivot], rows[j]
        for i in range(n):
            if i != j and rows[i][j]:
                f = rows[i][j] / rows[j][j]
                rows[i] = [a - f * b for a, b in zip(rows[i], rows[j], strict=True)]
    return [rows[j][n] / rows[j][j] for j in range(n)]


def first_weights(A, q):
    """The first weights of an exact solution, as many as equations; the others are kept."""
    A, kept = exactly(A), [Fraction(x) for x in q[len(A) :].tolist()]
    right = [-sum(a * x for a, x in zip(row[len(A) :], kept, strict=True)) for row in A]
    return solved([row[: len(A)] for row in A], right)


def equations(rng, m, digits, least):
    """Equations, and weights one of which is in truth ``least`` times a random number of any sign.

    The last two columns make it so, to twice the digits of a float. The first ones are dependent
    up to the given digits.
    """
    B = rng.uniform(0.5, 1.0, (m, m))
    B[:, -1] = B[:, : m - 1].sum(axis=1) if m > 1 else B[:, -1]
    B[:, -1] += 10.0**-digits * rng.uniform(0.5, 1.0, m)
    kept, q = rng.uniform(-1.0, 1.0, (m, 3)), rng.uniform(0.5, 1.0, m + 5)
    q[-2:], wanted = 1.0, [Fraction(x) for x in q[:m].tolist()]
    wanted[0] = Fraction(least * rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 2.0))
    exact = exactly(np.hstack([B, kept]))
    weights = [*wanted, *(Fraction(x) for x in q[m : m + 3].tolist())]
    rest = [-sum(a * x for a, x in zip(row, weights, strict=True)) for row in exact]
    high = np.array([float(r) for r in rest])
    low = np.array([float(r - Fraction(h)) for r, h in zip(rest, high.tolist(), strict=True)])
    q[0] = abs(float(wanted[0])) * 10.0 ** rng.uniform(-1.0, 3.0)
    return np.column_stack([B, kept, high, low]), q


@pytest.mark.parametrize("digits", [0.0, 8.0, 14.0])
@pytest.mark.parametrize("least", [1e-3, 1e-12, 1e-19, 1e-20])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_weights_that_are_proved_in_floats_are_positive(m, least, digits):
    proofs = 0
    for seed in range(100):
        A, q = equations(np.random.default_rng(seed), m, digits, least)
        if positive_solution_is_near(A, q):
            x = first_weights(A, q)
            assert x is not None
            assert min(x) > 0
            proofs += 1
    if least == 1e-3 and digits == 0.0:  # what is well separated from zero is proved
        assert proofs > 10


def has_positive_weights(A):
    """Whether any positive weights solve ``A q = 0``: those above 1 do, at another scale."""
    A = exactly(A)
    return has_solution(A, [-sum(row) for row in A])


@over_seeds(40)
def test_weights_that_are_proved_in_integers_are_positive(seed):
    """Small integers, where weights of zero and equations that depend on others are frequent."""
    rng = np.random.default_rng(seed)
    proofs = 0
    for _ in range(20):
        m = int(rng.integers(1, 4))
        A = rng.integers(-2, 3, (m, m + int(rng.integers(1, 3)))) * 1.0
        q = np.abs(np.linalg.svd(A)[2][-1]) + rng.choice([0.0, 1e-3])
        rank = np.linalg.matrix_rank(A[:, : min(A.shape)])
        first = range(m) if rank else ()  # older versions of NumPy have no rank of no columns
        rows = [i for i in first if np.linalg.matrix_rank(A[: i + 1, :rank]) > i][:rank]
        if len(rows) < rank or not q.min() > 0.0:
            continue
        if positive_solution(A, q, rows):
            assert has_positive_weights(A)
            proofs += 1
    assert proofs or seed


def test_a_difference_that_is_rounded_is_no_proof():
    """Counted from the first value, the three points would be on a line, but they are not.

    4 (v - low) is the float next to high - low, which is none.
    """
    low, high = 1.0 + 2.0**-52, 3.0 + 3 * 2.0**-51
    v = low + (high - low) / 4.0
    assert Fraction(high) - Fraction(low) != 4 * (Fraction(v) - Fraction(low))
    X, codes = np.array([[0.0, low], [1.0, v], [4.0, high]]), np.array([0, 1, 0])
    q = np.array([3.0, 4.0, 1.0])
    assert is_separable(X, codes)
    assert not nothing_separates(X, codes, 2, q, intercept=True)
    X[:, 1] = 1.0, 1.25, 2.0  # now they are
    assert nothing_separates(X, codes, 2, q, intercept=True)


@pytest.mark.parametrize("intercept", [False, True])
def test_dummies_in_odd_units_are_proved_without_integers(intercept, rng):
    """Three categories, whose indicators add up exactly, but no more when standardised."""
    n, levels = 300, 4
    one_hot = np.hstack([np.eye(levels)[rng.integers(0, levels, n)] for _ in range(3)])
    codes = rng.integers(0, 2, n)
    M = (np.column_stack([one_hot, np.ones(n)]) * (2.0 * codes - 1.0)[:, None]).T
    q = 1.0 - np.linalg.pinv(M) @ M.sum(axis=1)  # the nearest to ones that solve M q = 0
    X = one_hot * rng.uniform(0.5, 2.0, one_hot.shape[1])
    if intercept:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    effort = Effort()
    assert nothing_separates(X, codes, 2, q, intercept=intercept, effort=effort)
    assert effort.products == 0.0


@over_seeds(20)
def test_features_of_two_values_keep_what_they_mean(seed):
    """Where 0 is neither of the two, a predictor without an intercept tells them from 0 and 1."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        n, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        values = rng.choice([0.0, 0.1, 0.3, 1.1, -0.7], (2, d))
        X = np.where(rng.random((n, d)) < 0.5, *values)
        codes, q = np.append([0, 1], rng.integers(0, 2, n - 2)), rng.integers(0, 3, n) * 1.0
        for intercept in (False, True):
            if q.any() and nothing_separates(X, codes, 2, q, intercept=intercept):
                assert not is_separable(X, codes, fit_intercept=intercept)


@pytest.mark.parametrize(("m", "n"), [(30, 30), (470, 480)])
def test_no_elimination_is_begun_in_vain(m, n, rng, monkeypatch):
    """Of independent columns, which only 0 solves, or of so many that it would be given up."""

    def begun(row):
        raise AssertionError("integers were written out")

    monkeypatch.setattr(elimination, "as_integers", begun)
    A = rng.standard_normal((m, n))
    assert positive_solution(A, np.ones(n), list(range(m))) is None


def test_an_elimination_says_what_it_takes(rng):
    """So that searches for a proof end: longer integers take more."""
    taken = []
    for bits in (1, 50):
        A = rng.integers(-(2**bits), 2**bits + 1, (30, 32)) * 1.0
        effort = Effort()
        assert positive_solution(A, np.ones(32), list(range(30)), effort) is None
        taken.append(effort.products)
    assert 0.0 < 4.0 * taken[0] < taken[1]
    checks = OverlapChecks()
    assert checks.may_continue
    checks.effort.products += 1e10
    assert not checks.may_continue
