"""Data on which theorems on rounds, mistakes and margins can fail: one look is not enough.

On most sets the mean of the rows has a good margin, and then a statement about what happens after
so many rounds holds of every algorithm that begins with the mean. Here it misjudges some rows.
"""

import numpy as np
import pytest

from helpers.games import section_3
from helpers.oracle import explicit_rows


def lopsided(rng, n=48, k=2, few=1, gamma=0.1, noise=0.02):
    """Unit examples whose long direction points the other way for ``few`` of each class."""
    y = np.arange(n) % k
    sign = np.where(np.arange(n) < few * k, -1.0, 1.0)
    X = noise * rng.standard_normal((n, 2 * k))
    X[np.arange(n), y] += gamma
    X[np.arange(n), k + y] += sign * np.sqrt(1.0 - gamma**2)
    return hard(X / np.linalg.norm(X, axis=1)[:, None], y)


def thin(rng, n=60, d=6, gamma=0.03):
    """Unit examples, random but for a first coordinate of ``gamma`` times the label, or more."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d))
    first = gamma * (1.0 + rng.exponential(size=n))
    X[:, 0] = 0.0
    X *= np.sqrt(1.0 - first**2)[:, None] / np.linalg.norm(X, axis=1)[:, None]
    X[:, 0] = np.where(y == 1, first, -first)
    return hard(X, y)


def chain(rng, n=5):
    """Hanashiro's section 3: every example takes back what those before it have taught."""
    X, y = section_3(n)
    return hard(X, (np.array(y) + 1) // 2)


def corner(n=9, gamma=0.3):
    """All optimal weight is on one short row, as far from uniform weights as weights can be."""
    A = np.column_stack(
        [np.full(n, 1.5 * gamma), np.where(np.arange(n) % 2, 1.0, -1.0)]
    )
    A[0] = gamma, 0.0
    y = np.arange(n) % 2
    return np.where(y == 1, 1.0, -1.0)[:, None] * A, y


def contradicted(n=40, short=0.01, side=3.0):
    """Nothing separates: a short row points against all others, and needs nearly all weight."""
    A = np.column_stack([np.ones(n), np.where(np.arange(n) % 2, side, -side)])
    A /= np.linalg.norm(A, axis=1)[:, None]
    A[0] = -short, 0.0
    y = np.arange(n) % 2
    return np.where(y == 1, 1.0, -1.0)[:, None] * A, y


def hard(X, y):
    """The data; of its rows, the mean must misjudge some."""
    A = explicit_rows(X, y)[0]
    assert (A @ A.mean(axis=0)).min() <= 0.0
    return X, y


each_hard = pytest.mark.parametrize("kind", [lopsided, thin, chain])

SMALL = {lopsided: {"n": 24}, thin: {"n": 30, "gamma": 0.1}, chain: {"n": 4}}


def small(kind, rng):
    """The same with few rows, for methods that visit them one by one, and on average only."""
    return kind(rng, **SMALL[kind])


def within(value, bound, what):
    """Assert a bound, and say how much of it is used: ``pytest -s`` shows it."""
    print(f"{what}: {value:.4g}, the bound is {bound:.4g} ({value / bound:.0%})")
    assert value <= bound, what
