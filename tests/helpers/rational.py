"""Separability in rationals, by code that shares nothing with the package."""

from fractions import Fraction
from itertools import product
from math import lcm

import numpy as np


def is_separable(X, y, *, fit_intercept=True):
    """Whether some linear predictor separates the classes of these very floats."""
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
    table = [_in_integers([*row, value]) for row, value in zip(A, b, strict=True)]
    n, last = len(A[0]), 1
    basis = list(range(n, n + len(table)))
    table.append([-sum(column) for column in zip(*table, strict=True)])  # the cost
    while table[-1][-1] != 0:
        entering = next((j for j in range(n) if table[-1][j] < 0), None)
        if entering is None:
            return False
        _, _, leaving = min(
            (Fraction(row[-1], row[entering]), basis[i], i)
            for i, row in enumerate(table[:-1])
            if row[entering] > 0
        )
        pivot = table[leaving]
        p, basis[leaving] = pivot[entering], entering
        for i, row in enumerate(table):
            if i != leaving:
                f = row[entering]
                table[i] = [(p * a - f * c) // last for a, c in zip(row, pivot, strict=True)]
        last = p
    return True


def _in_integers(row):
    """An equation times the number that makes it one of integers, its last one not negative."""
    factor = lcm(*(value.denominator for value in row)) * (-1 if row[-1] < 0 else 1)
    return [int(value * factor) for value in row]
