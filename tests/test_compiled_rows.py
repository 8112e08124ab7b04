"""Products over some rows of a CSR matrix: each against its formula in NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from marginsvm.data import compiled_rows as loops

N, D, K = 40, 25, 5
each_type = pytest.mark.parametrize(
    ("dtype", "index"), [(np.float64, np.int32), (np.float32, np.int64), (np.float64, np.int64)]
)


def csr(rng, dtype, index, n=N):
    """A matrix with empty rows and columns."""
    X = sp.random(n, D, 0.2, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    X = sp.diags_array((rng.random(n) > 0.2).astype(float)) @ X
    X = sp.csr_matrix(X, dtype=dtype)
    X.eliminate_zeros()
    assert (np.diff(X.indptr) == 0).any()
    return X, (X.indptr.astype(index), X.indices.astype(index), X.data)


class Pairs:
    """Some examples, some classes other than theirs, and the same as dense arrays."""

    def __init__(self, rng, n=N):
        self.examples = np.flatnonzero(rng.random(n) > 0.3)
        self.codes = rng.integers(K, size=len(self.examples))
        active = rng.random((len(self.examples), K)) < 0.4
        active[np.arange(len(self.codes)), self.codes] = False
        self.pointer = np.append(0, np.cumsum(active.sum(axis=1)))
        self.classes = np.nonzero(active)[1].astype(np.int32)
        self.weight = rng.random(len(self.classes))
        self.T = np.zeros(active.shape)
        self.T[active] = self.weight
        self.own = np.eye(K, dtype=bool)[self.codes]

    @property
    def arrays(self):
        return self.examples, self.pointer, self.classes, self.weight


@each_type
def test_curvature_of_rows(rng, dtype, index):
    X, arrays = csr(rng, dtype, index)
    examples = np.flatnonzero(rng.random(N) > 0.3)
    weight, v, out = rng.random(len(examples)), rng.standard_normal(D), rng.random(D)
    A = X[examples].toarray().astype(np.float64)
    g = weight * (A @ v + 0.7)
    expected = out + A.T @ g
    assert_allclose(
        loops.curvature_of_rows(*arrays, examples, weight, v, 0.7, out), g.sum(), rtol=1e-12
    )
    assert_allclose(out, expected, rtol=1e-12, atol=1e-14)
    squares = np.zeros(D)
    loops.squares_of_rows(*arrays, examples, weight, squares)
    assert_allclose(squares, weight @ A**2, rtol=1e-12)


@each_type
def test_curvature_of_pairs(rng, dtype, index):
    X, arrays = csr(rng, dtype, index)
    pairs = Pairs(rng)
    V, offset, out = rng.standard_normal((D, K)), rng.standard_normal(K), rng.random((D, K))
    A = X[pairs.examples].toarray().astype(np.float64)
    F = A @ V + offset
    G = -pairs.T * (F[pairs.own][:, None] - F)
    G[pairs.own] = -G.sum(axis=1)
    expected = out + A.T @ G
    total = loops.curvature_of_pairs(*arrays, *pairs.arrays, pairs.codes, V, offset, out)
    assert_allclose(total, G.sum(axis=0), rtol=1e-12, atol=1e-13)
    assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


@each_type
def test_sum_of_pairs(rng, dtype, index):
    X, arrays = csr(rng, dtype, index)
    pairs = Pairs(rng)
    out = rng.random((D, K))
    expected = out + X[pairs.examples].toarray().astype(np.float64).T @ pairs.T
    loops.sum_of_pairs(*arrays, *pairs.arrays, out)
    assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


def test_squares_are_the_diagonal_of_the_curvature(rng):
    _, arrays = csr(rng, np.float32, np.int32)
    pairs = Pairs(rng)
    squares, none = np.zeros((D, K)), np.zeros(K)
    loops.squares_of_pairs(*arrays, *pairs.arrays, pairs.codes, squares)
    for j, c in np.ndindex(D, K):
        unit, out = np.zeros((D, K)), np.zeros((D, K))
        unit[j, c] = 1.0
        loops.curvature_of_pairs(*arrays, *pairs.arrays, pairs.codes, unit, none, out)
        assert_allclose(squares[j, c], out[j, c], rtol=1e-12)


def test_float32_is_summed_in_float64():
    """In float32, a large number plus one would be the large number."""
    n = 1000
    X = sp.csr_matrix(np.ones((n, 1), np.float32))
    v, out = np.full(1, 2.0**24), np.zeros(1)
    arrays = X.indptr, X.indices, X.data
    loops.curvature_of_rows(*arrays, np.arange(n), np.ones(n), v, 1.0, out)
    assert out[0] == n * (2.0**24 + 1)


def test_nothing_is_active(rng):
    _, arrays = csr(rng, np.float64, np.int32)
    none, pointer, V = np.zeros(0, int), np.zeros(1, int), np.ones((D, K))
    out = np.zeros((D, K))
    assert loops.curvature_of_rows(*arrays, none, np.zeros(0), V[:, 0], 1.0, out[:, 0].copy()) == 0
    total = loops.curvature_of_pairs(
        *arrays, none, pointer, none, np.zeros(0), none, V, np.ones(K), out
    )
    assert not total.any()
    assert not out.any()
