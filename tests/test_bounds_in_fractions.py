"""Bounds of vectors that need not be solutions hold for the numbers that are published.

Examples, predictors and weights are taken as the floats that they are, and all sums of them are
computed in fractions. The examples are such that rounding is as large as it can be beside what is
bounded: terms that cancel, means far from 0, margins of the size of rounding.
"""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
import scipy.sparse as sp

from marginsvm.certify.bounds import lower_bound, upper_bound
from marginsvm.certify.caps import ShareCaps
from marginsvm.data.normalized import normalized
from marginsvm.kernel_matrix import LinearAdapter, make_rows
from marginsvm.rows import Vector

SEEDS = range(12)


def exactly(X):
    return [[Fraction(x) for x in row] for row in np.atleast_2d(X).tolist()]


def values(X, codes, coef, intercept):
    """Values of a published predictor on the rows of two classes."""
    (w,), (b,) = exactly(coef), map(Fraction, np.ravel(intercept).tolist())
    scores = (sum(x * v for x, v in zip(row, w, strict=True)) + b for row in X)
    return [f if c == 1 else -f for f, c in zip(scores, codes.tolist(), strict=True)]


def squared(x):
    return sum(v * v for v in x)


def is_at_most(claim, top, under):
    """Whether ``claim <= top / sqrt(under)``; a claim of 0 or less says nothing."""
    return claim <= 0 or (top > 0 and claim**2 * under <= top**2)


def cancelling(rng, n=8, d=3, size=1e3, margin=1e-9):
    """Examples whose margins under (1, ..., 1) are of the given size, as terms cancel."""
    codes = np.arange(n) % 2
    big = rng.uniform(-size, size, (n, d))
    small = margin * rng.uniform(1.0, 2.0, (n, d)) * np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.hstack([big, small - big]), codes


def ones(problem):
    """The predictor (1, ..., 1) as a vector, with no slack."""
    w = problem.zeros()
    return Vector(np.ones_like(w.image), w.coef)


def held(problem, X, codes, predictor, norm=squared):
    """Whether a predictor has the margin that is claimed, and separates if that is claimed."""
    m = values(exactly(X), codes, predictor.coef, predictor.intercept)
    claim = Fraction(predictor.margin) * Fraction(problem.radius)
    assert not predictor.separates or min(m) > 0
    return is_at_most(claim, min(m), norm(exactly(predictor.coef)[0]))


@pytest.mark.parametrize("rounding_rtol", [0.0, np.inf], ids=["sharpened", "quick"])
@pytest.mark.parametrize("balanced", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("margin", [1e-10, 1e-12, 1e-13, 1e-14])
def test_margins_of_terms_that_cancel(margin, balanced, rounding_rtol):
    separated = 0
    for seed in SEEDS:
        X, codes = cancelling(np.random.default_rng(seed), margin=margin)
        rows = make_rows(codes, 2, balanced=balanced)
        problem = LinearAdapter(X, rows, rounding_rtol=rounding_rtol)
        predictor = lower_bound(problem, ones(problem))
        assert held(problem, X, codes, predictor)
        separated += predictor.separates
    if margin == 1e-10 and not balanced:  # what is claimed is not nothing
        assert separated == len(SEEDS)


@pytest.mark.parametrize("rounding_rtol", [0.0, np.inf], ids=["sharpened", "quick"])
@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_the_sign_of_a_margin_that_is_rounding(C, rounding_rtol):
    """Where it is the other way round in fractions, nothing is separated."""
    hidden = 0
    for seed in range(100):
        X, codes = cancelling(np.random.default_rng(seed), n=2, margin=1e-14)
        problem = LinearAdapter(
            X, make_rows(codes, 2, balanced=False), C, rounding_rtol=rounding_rtol
        )
        w = ones(problem)
        predictor = lower_bound(problem, w)
        least = min(values(exactly(X), codes, predictor.coef, predictor.intercept))
        assert not predictor.separates or least > 0
        hidden += problem.margins(w).min() > 0.0 >= least
    assert hidden  # it is on these that the test is decided


@pytest.mark.parametrize("rounding_rtol", [0.0, np.inf], ids=["sharpened", "quick"])
def test_rows_within_rounding_of_the_lowest(rounding_rtol):
    """All margins are 1e-9 up to the last digits of the sums that they are."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X, codes = cancelling(rng, n=40, d=30, margin=0.0)
        X[:, -1] += np.where(codes == 1, 1e-9, -1e-9) * rng.uniform(1.0, 1.002, 40)
        problem = LinearAdapter(X, make_rows(codes, 2, balanced=False), rounding_rtol=rounding_rtol)
        predictor = lower_bound(problem, ones(problem))
        assert predictor.separates
        assert held(problem, X, codes, predictor)


@pytest.mark.parametrize("rounding_rtol", [0.0, np.inf], ids=["sharpened", "quick"])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_examples_far_from_zero(form, far, rounding_rtol):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        codes = np.arange(8) % 2
        X = rng.standard_normal((8, 4)) + 3.0 * codes[:, None] + far * rng.uniform(1.0, 2.0, 4)
        X[:, 1] = rng.integers(0, 2, 8)  # which CSR matrices do not store everywhere
        rows = make_rows(codes, 2, balanced=True)
        problem = LinearAdapter(form(X), rows, rounding_rtol=rounding_rtol)
        assert held(problem, X, codes, lower_bound(problem, ones(problem)))


def soft_norm(problem, m, C, w):
    """Square of the norm with the slack that lifts all values to 1."""
    missing = [max(1 - value, Fraction(0)) for value in m]
    slack = sum(missing) if problem.caps is not None else squared(missing)
    return squared(w) + 2 * Fraction(C) * slack


@pytest.mark.parametrize("loss", ["squared hinge", "hinge"])
@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_soft_margins_of_terms_that_cancel(size, loss):
    """Slack is the difference of 1 and values that rounding changes by far more than FEW."""
    for seed in SEEDS:
        for margin in (1.0, 1e-3, 1e-16 * size):
            X, codes = cancelling(np.random.default_rng(seed), size=size, margin=margin)
            C = 1.0 / (margin * len(X))
            problem = LinearAdapter(X, make_rows(codes, 2, balanced=False), C, rounding_rtol=np.inf)
            problem = problem.with_hinge_loss() if loss == "hinge" else problem
            predictor = lower_bound(problem, ones(problem))
            m = values(exactly(X), codes, predictor.coef, predictor.intercept)
            assert not predictor.separates or min(m) > 0
            claim = Fraction(predictor.margin) * Fraction(problem.radius)
            w = exactly(predictor.coef)[0]
            assert is_at_most(claim, 1, soft_norm(problem, m, C, w))


@pytest.mark.parametrize("nu", [0.3, 0.7])
@pytest.mark.parametrize("size", [1e3, 1e6])
def test_means_of_the_worst_margins_of_terms_that_cancel(size, nu):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X, codes = cancelling(rng, n=10, size=size, margin=1e-15 * size)
        weight = rng.integers(1, 4, 10) * 1.0
        rows = make_rows(codes, 2, balanced=False, weights=weight)
        problem = LinearAdapter(X, rows, rounding_rtol=np.inf).below(ShareCaps.of(rows, nu))
        predictor = lower_bound(problem, ones(problem))
        m = values(exactly(X), codes, predictor.coef, predictor.intercept)
        left, mean = Fraction(1), Fraction(0)
        share = Fraction(nu) * sum(map(Fraction, weight))
        for value, part in sorted(zip(m, map(Fraction, weight), strict=True)):
            taken = min(left, part / share)
            left, mean = left - taken, mean + taken * value
        claim = Fraction(predictor.margin) * Fraction(problem.radius)
        assert is_at_most(claim, mean, squared(exactly(predictor.coef)[0]))


def combination(X, codes, q):
    """``A^T q`` in fractions."""
    v = [Fraction(a) if c == 1 else -Fraction(a) for a, c in zip(q.tolist(), codes, strict=True)]
    return [sum(a * x for a, x in zip(v, column, strict=True)) for column in zip(*X, strict=True)]


def proved(problem, X, codes, vector):
    """Whether the published weights of a vector are a distribution that proves its bound."""
    q = problem.distribution(vector).weights()
    assert q.min() >= 0.0
    mass = sum(map(Fraction, q.tolist()))
    assert abs(mass - 1) < 1e-11
    if problem.rows.balanced:
        assert sum(combination([[Fraction(1)]] * len(q), codes, q)) == 0
    bound = Fraction(upper_bound(problem, vector)) * Fraction(problem.radius)
    return (bound * mass) ** 2 >= squared(combination(X, codes, q))


@pytest.mark.parametrize("rounding_rtol", [0.0, np.inf], ids=["sharpened", "quick"])
@pytest.mark.parametrize("off", [0.0, 1e-15, 9e-13])
def test_weights_that_are_corrected_until_they_balance(off, rounding_rtol):
    """One class has more weight by rounding; the smallest of its weights pays for it."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        codes = np.arange(8) % 2
        for heavy in (0, 1):
            X = rng.standard_normal((8, 2))
            q = rng.uniform(0.5, 1.0, 8)
            few = np.flatnonzero(codes == heavy)[0]
            q[few], X[few] = 1e-3, X[few] - 30.0 * (2 * heavy - 1) * (X[codes == 1].mean(axis=0))
            for c in (0, 1):
                q[codes == c] *= (1.0 + off * (c == heavy)) / fsum(q[codes == c])
            rows = make_rows(codes, 2, balanced=True)
            problem = LinearAdapter(X, rows, rounding_rtol=rounding_rtol)
            assert proved(problem, exactly(X), codes, problem.combine(q, precise=True))


def test_weights_below_zero_are_left_out():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X, codes = rng.standard_normal((9, 3)), np.arange(9) % 2
        for balanced in (True, False):
            problem = LinearAdapter(X, make_rows(codes, 2, balanced=balanced))
            q = rng.uniform(-0.3, 1.0, 9)
            if balanced:
                for c in (0, 1):
                    q[codes == c] /= np.maximum(q, 0.0)[codes == c].sum()
            vector = problem.combine(q, precise=True)
            assert proved(problem, exactly(X), codes, vector)


def pythagorean(rng, n):
    """Examples near (1, 1) whose lengths are integers, divided by these in fractions."""
    k = rng.integers(10_000, 100_000, n)
    m = np.round(k * (1.0 + np.sqrt(2.0))).astype(int)
    X = np.column_stack([m * m - k * k, 2 * m * k]).astype(float)
    lengths = map(Fraction, (m * m + k * k).tolist())
    return X, [[x / r for x in row] for row, r in zip(exactly(X), lengths, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_are_divided_by_their_lengths(seed):
    """Rounding makes them a little longer or shorter; weights may leave hardly more than that."""
    X, exact = pythagorean(np.random.default_rng(seed), 3)
    order = np.argsort(X[:, 0] / X[:, 1])
    X, exact, codes = X[order], [exact[i] for i in order], np.array([0, 1, 0])
    first, middle, last = (row[0] / row[1] for row in exact)
    part = float((last - middle) / (last - first))
    problem = LinearAdapter(normalized(X), make_rows(codes, 2, balanced=False))
    vector = problem.combine(np.array([0.5 * part, 0.5, 0.5 - 0.5 * part]), precise=True)
    assert upper_bound(problem, vector) < 1e-8
    assert proved(problem, exact, codes, vector)
