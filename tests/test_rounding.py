"""Bounds on rounding errors hold: the sums that they are of, against fractions."""

from fractions import Fraction

import numpy as np
import pytest

from marginsvm._rounding import (
    FEW,
    LONG,
    PAIRWISE,
    Extended,
    chained,
    exact_inner,
    extended,
    inner,
    product,
    summed,
    times,
)

LENGTHS = [1, 7, 255, 256, 257, 1000, 2**14 + 3, 2**20]


def of(x):
    """A number of any precision as a fraction."""
    return Fraction(*map(int, x.as_integer_ratio()))


def alike(n):
    """Equal terms, whose roundings add up, in fractions and as numbers."""
    for c in (0.1, 1 / 3, 0.7, 1e-3 * np.pi):
        yield np.full(n, c), np.ones(n), n * Fraction(c)


def crumbs(n, unit=2.0**-53):
    """A 1 and, for each lane of the processor, terms that it swallows one after the other."""
    for lanes in (1, 4, 16, 64):
        x = np.full(n, 0.99 * unit)
        x[:lanes] = 1.0
        ones = min(lanes, n)
        yield x, np.ones(n), ones + (n - ones) * Fraction(0.99 * unit)


def mixed(n):
    """Terms of all sizes and either sign, of which the absolute values count."""
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n)) * 2.0 ** rng.integers(-8, 8, (2, n))
    few = min(n, 2000)  # fractions of more would take seconds
    a[few:] = 0.0
    yield a, b, sum(Fraction(x) * Fraction(y) for x, y in zip(a[:few], b[:few], strict=True))


def error(found, a, b, exact):
    """Relative to the sum of the absolute values of the terms."""
    return abs(of(found) - exact) / (of(np.abs(a) @ np.abs(b)) * (1 - Fraction(1, 10**6)))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("terms", [alike, crumbs, mixed])
def test_products_in_chains_are_as_precise_as_is_said(terms, n):
    for a, b, exact in terms(n):
        assert error(product(a[None], b[:, None])[0, 0], a, b, exact) <= chained(n)
        long = product(a[None], b[:, None], LONG)[0, 0]
        assert error(long, a, b, exact) <= chained(n, LONG)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("terms", [alike, crumbs, mixed])
def test_sums_in_extended_precision_are_as_precise_as_is_said(terms, n):
    unit = {"unit": 0.5 * float(np.finfo(Extended).eps)} if terms is crumbs else {}
    for a, b, exact in terms(n, **unit):
        found = a.astype(Extended) @ b.astype(Extended)
        assert error(found, a, b, exact) <= extended(n)


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_contiguous_numbers_are_added_in_pairs(n):
    """``PAIRWISE`` allows for them, and for the few operations of a square root of squares."""
    for terms in (alike, mixed):
        for a, b, exact in terms(n):
            assert error(np.sum(a * b), a, b, exact) <= PAIRWISE
    for a, _, _ in alike(n):
        squares = n * Fraction(a[0]) ** 2
        length = of(np.sqrt(np.sum(a * a)))
        assert abs(length**2 - squares) <= 2 * Fraction(PAIRWISE) * squares


def test_a_few_operations_are_few():
    x, y = np.random.default_rng(0).uniform(0.5, 2.0, (2, 1000))
    for a, b in zip(x, y, strict=True):
        exact = Fraction(a) * Fraction(b) / 3 - Fraction(a)
        size = Fraction(a) * Fraction(b) / 3 + Fraction(a)
        assert abs(of(a * b / 3.0 - a) - exact) <= Fraction(FEW) * size


def test_products_are_products():
    rng = np.random.default_rng(0)
    A, B = rng.integers(-9, 10, (3, 700)) * 1.0, rng.integers(-9, 10, (700, 2)) * 1.0
    np.testing.assert_array_equal(product(A, B), A @ B)  # integers: nothing is rounded
    np.testing.assert_array_equal(times(A, B), A @ B)
    np.testing.assert_array_equal(summed([A, A, -A]), A)
    for C in (A, np.asfortranarray(A), A.T):
        assert inner(C, C) == (A * A).sum()


def test_an_exact_inner_product_is_rounded_once(rng):
    """Terms of 1e16 cancel, of which each product loses what is left."""
    a, b = rng.standard_normal((2, 300)) * 1e8
    added = -float(a @ b)
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)) + Fraction(added)
    assert exact_inner(a, b, added) == float(exact)
