"""The certified reference: its bounds are exact, and meet at what other solvers find."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit, overlapping, separable
from helpers.hard import lopsided, thin
from helpers.oracle import best_margin
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_iris

from marginsvm import AcceleratedPerceptron, reference_margin

NORMS = [1.0, 1.5, 2.0, np.inf]


def exactly(X):
    return [[Fraction(float(value)) for value in row] for row in X]


def exact_norm(x, p):
    """For p = 1 and infinity; of the square for p = 2."""
    if p == np.inf:
        return max(map(abs, x))
    return sum(map(abs, x)) if p == 1 else sum(value * value for value in x)


def check_exactly(best, X, y):
    """Both bounds from the published numbers, by hand, for p = 1, 2 and infinity."""
    rows, sign, p = exactly(X), np.where(y == np.max(y), 1, -1), best.norm
    (w,), b, (q,) = exactly([best.coef]), Fraction(best.intercept), exactly([best.weights])
    margins = [
        int(s) * (sum(v * x for v, x in zip(w, row, strict=True)) + b)
        for s, row in zip(sign, rows, strict=True)
    ]
    sums = {s: sum(v for v, own in zip(q, sign, strict=True) if own == s) for s in (-1, 1)}
    apart = [
        sum(int(s) * v / sums[s] * row[j] for v, s, row in zip(q, sign, rows, strict=True)) / 2
        for j in range(X.shape[1])
    ]
    margin, bound, dual = Fraction(best.margin), Fraction(best.margin_bound), {1: np.inf, 2: 2}
    power = 2 if p == 2 else 1
    assert best.margin == 0 or margin**power * exact_norm(w, p) <= min(margins) ** power
    assert bound**power >= exact_norm(apart, dual.get(p, 1))
    assert min(q) >= 0


def by_the_dual(X, y, p):
    """Least dual norm of a balanced difference of means, as another linear program."""
    A, n = np.where(y == np.max(y), 1.0, -1.0)[:, None] * X, len(X)
    dual = A.T
    balance = np.vstack([(y == c).astype(float) for c in np.unique(y)])
    if p == 1:  # the largest entry
        ones = -np.ones((X.shape[1], 1))
        rows, cost = np.block([[dual, ones], [-dual, ones]]), np.r_[np.zeros(n), 1.0]
    else:  # the sum of the entries
        eye = -np.eye(X.shape[1])
        rows, cost = np.block([[dual, eye], [-dual, eye]]), np.r_[np.zeros(n), np.ones(len(eye))]
    balance = np.hstack([balance, np.zeros((2, len(cost) - n))])
    found = linprog(cost, rows, np.zeros(len(rows)), balance, [0.5, 0.5])
    return found.fun


@pytest.mark.parametrize("kind", [separable, lopsided, thin, overlapping])
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_bounds_are_exact_and_meet(p, kind, rng):
    X, y = kind(rng, n=30)
    best = reference_margin(X, y, norm=p)
    check_exactly(best, X, y)
    other = best_margin(X, y) if p == 2 else by_the_dual(X, y, p)
    np.testing.assert_allclose(best.margin_bound, other, rtol=1e-6, atol=1e-9)
    assert best.gap <= 1e-8 or kind is overlapping
    if kind is overlapping:
        assert best.margin == 0.0
        assert best.margin_bound < 1e-12
        assert not best.coef.any()


@pytest.mark.parametrize("p", [1.5, slow(1.1), slow(1.9)])
@pytest.mark.parametrize("kind", [separable, slow(lopsided)])
def test_other_norms_against_a_general_solver(kind, p, rng):
    X, y = kind(rng, n=20)
    sign = np.where(y == 1, 1.0, -1.0)
    best = reference_margin(X, y, norm=p)
    assert best.gap <= 1e-8
    lines = {"type": "ineq", "fun": lambda v: sign * (X @ v[:-1] + v[-1]) - 1.0}
    begin = np.r_[best.coef, best.intercept] / best.margin * 1.1
    found = minimize(lambda v: np.sum(np.abs(v[:-1]) ** p), begin, constraints=lines)
    np.testing.assert_allclose(found.fun ** (-1 / p), best.margin, rtol=1e-4)
    rough = fit(AcceleratedPerceptron(p=p, tol=0.05), X, y)
    assert rough.margin_ <= best.margin_bound
    assert best.margin <= rough.margin_bound_


def test_margins_grow_with_the_norm(rng):
    """|w|_p falls in p."""
    X, y = load_iris(return_X_y=True)
    margins = [reference_margin(X[:100], y[:100], norm=p).margin for p in NORMS]
    assert margins == sorted(margins)
    np.testing.assert_allclose(margins[::2], [0.55, 0.8175557693], rtol=1e-8)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_other_units_and_places(p, rng):
    X, y = separable(rng, n=30)
    best = reference_margin(X, y, norm=p)
    moved = reference_margin(1000.0 * (X + 10.0), np.where(y == 1, "b", "a"), norm=p)
    np.testing.assert_allclose(moved.margin, 1000.0 * best.margin, rtol=1e-8)
    np.testing.assert_allclose(moved.coef, best.coef, atol=1e-6)
    twice = reference_margin(np.vstack([X, X]), np.r_[y, y], norm=p)
    np.testing.assert_allclose(twice.margin, best.margin, rtol=1e-8)


@pytest.mark.parametrize(("p", "unit"), [(1.0, 1e6), slow(1.5, 1e3), (2.0, 1e6), (np.inf, 1e6)])
def test_features_in_units_far_apart(p, unit, rng):
    """What separates is in units of 1e-6, beside units of 1e6: more than linear programs resolve.

    The exact solver's predictor and weights are then the answer. Norms differ by sqrt(d) at most.
    """
    X, y = separable(rng, n=40, d=10, margin=0.1)
    X, y = X - X.mean(axis=0), (X[:, 0] > np.median(X[:, 0])).astype(int)
    X[:, 0] += np.where(y == 1, 0.5, -0.5)
    X = X * np.geomspace(1 / unit, unit, 10)
    best = reference_margin(X, y, norm=p)
    assert 0.0 < best.margin_bound <= np.sqrt(10) * (1 + 1e-6) * best.margin
    if p != 1.5:
        check_exactly(best, X, y)


def test_what_is_refused(rng):
    X, y = separable(rng, n=9, k=3)
    with pytest.raises(ValueError, match="two classes, but y has 3"):
        reference_margin(X, y)
    for p in (0.5, 3.0, -1.0):
        with pytest.raises(ValueError, match="from 1 to 2, or infinity"):
            reference_margin(X, y > 0, norm=p)


def test_two_points():
    """Their distance in the dual norm, halved."""
    X, y = np.array([[0.0, 0.0], [3.0, 4.0]]), [0, 1]
    margins = [reference_margin(X, y, norm=p).margin for p in (1, 2, np.inf)]
    np.testing.assert_allclose(margins, [2.0, 2.5, 3.5], rtol=1e-9)
