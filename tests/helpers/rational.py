"""Separability in rationals, by code that shares nothing with the package."""

from fractions import Fraction
from itertools import product

import numpy as np


def is_separable(X, y, *, fit_intercept=True):
    """Whether some linear predictor separates the classes of these very floats.

    By Gordan's theorem, none does exactly if weights ``q >= 0`` that sum to 1 have
    ``A^T q = 0``.
    """
    rows = exact_rows(X, y, fit_intercept=fit_intercept)
    equations = [list(column) for column in zip(*rows, strict=True)]
    equations.append([Fraction(1)] * len(rows))
    return not has_solution(equations, [Fraction(0)] * (len(equations) - 1) + [Fraction(1)])


def exact_rows(X, y, *, fit_intercept=True):
    """Rows ``(x, 1) (e_c - e_j)^T`` for every example of a class c and every other class j."""
    classes = sorted(set(np.asarray(y).tolist()))
    rows = []
    for x, label in zip(np.asarray(X, dtype=float).tolist(), np.asarray(y).tolist(), strict=True):
        x = [Fraction(value) for value in x] + [Fraction(1)] * fit_intercept
        c = classes.index(label)
        for j in set(range(len(classes))) - {c}:
            signs = [(i == c) - (i == j) for i in range(len(classes) - 1)]  # the last one follows
            rows.append([sign * value for sign, value in product(signs, x)])
    return rows


def has_solution(A, b):
    """Whether some q >= 0 has A q = b: the simplex method's first phase with Bland's rule."""
    m, n = len(A), len(A[0])
    signs = [-1 if value < 0 else 1 for value in b]
    unit = [[Fraction(int(i == j)) for j in range(m)] for i in range(m)]
    table = [
        [s * value for value in row] + unit[i] + [s * rhs]
        for i, (row, rhs, s) in enumerate(zip(A, b, signs, strict=True))
    ]
    basis = list(range(n, n + m))
    cost = [-sum(row[j] for row in table) for j in range(n)] + [Fraction(0)] * m
    cost.append(-sum(row[-1] for row in table))
    while cost[-1] != 0:
        entering = next((j for j in range(n) if cost[j] < 0), None)
        if entering is None:
            return False
        ratios = [
            (row[-1] / row[entering], basis[i], i)
            for i, row in enumerate(table)
            if row[entering] > 0
        ]
        _, _, leaving = min(ratios)
        pivot = [value / table[leaving][entering] for value in table[leaving]]
        table[leaving], basis[leaving] = pivot, entering
        for i, row in enumerate(table):
            if i != leaving and row[entering]:
                factor = row[entering]
                table[i] = [a - factor * p for a, p in zip(row, pivot, strict=True)]
        factor = cost[entering]
        cost = [a - factor * p for a, p in zip(cost, pivot, strict=True)]
    return True
