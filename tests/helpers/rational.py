"""Separability in rationals, by code that shares nothing with the package."""

from fractions import Fraction
from itertools import product
from math import lcm

import numpy as np


def is_separable(X, y, *, fit_intercept=True):
    """Whether some linear predictor separates the classes of these very floats."""
    rows = [row for row, *_ in scores(X, y, fit_intercept=fit_intercept)]
    equations = [list(column) for column in zip(*rows, strict=True)]
    equations.append([Fraction(1)] * len(rows))
    return not has_solution(
        equations, [Fraction(0)] * (len(equations) - 1) + [Fraction(1)]
    )


def scores(X, y, *, fit_intercept=True):
    """Rows ``(x, 1) (e_c - e_j)^T`` of every example of a class c and every other class j.

    With the example and j; the first class has no coefficients.
    """
    labels, rows = np.asarray(y).tolist(), []
    classes = sorted(set(labels))
    for i, (x, label) in enumerate(
        zip(np.asarray(X, float).tolist(), labels, strict=True)
    ):
        x = [Fraction(1)] * fit_intercept + [Fraction(value) for value in x]
        for j, other in enumerate(classes):
            if other != label:
                signs = [(c == label) - (c == other) for c in classes[1:]]
                rows.append(([sign * v for sign, v in product(signs, x)], False, i, j))
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
                table[i] = [
                    (p * a - f * c) // last for a, c in zip(row, pivot, strict=True)
                ]
        last = p
    return True


def _in_integers(row):
    """An equation times the number that makes it one of integers, its last one not negative."""
    factor = lcm(*(value.denominator for value in row)) * (-1 if row[-1] < 0 else 1)
    return [int(value * factor) for value in row]
