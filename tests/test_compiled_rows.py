"""Products over some rows of a CSR matrix: each against its formula in NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from marginsvm._compiling import compiles
from marginsvm.data import compiled_rows as loops
from marginsvm.data import csr as data_csr
from marginsvm.data.block import Centre

N, D = 40, 25
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


@each_type
def test_moments(rng, dtype, index):
    _, (indptr, indices, values) = csr(rng, dtype, index)
    longest = indptr[np.argmax(np.diff(indptr))]
    indices[longest] = indices[longest + 1]  # twice in a row: its entries count together
    weight, A = rng.standard_normal(N) * (rng.random(N) > 0.3), np.zeros((N, D + 1))
    np.add.at(A, (np.repeat(np.arange(N), np.diff(indptr)), indices), values)
    A[:, D] = 1.0
    out = np.zeros((D + 1, D + 1))
    loops.lower_moments(indptr, indices, values, weight, out)
    expected = A.T @ (weight[:, None] * A)
    out[:D, :D] += out[:D, :D].T.copy()
    assert_allclose(out[:D, :D], expected[:D, :D], rtol=1e-12, atol=1e-13)
    assert_allclose(out[D, :D], expected[D, :D], rtol=1e-12, atol=1e-13)


@each_type
def test_moments_are_those_of_scipy_and_compiled_when_there_were_many(
    rng, monkeypatch, dtype, index
):
    X, _ = csr(rng, dtype, index, n=20 * N)
    X = X[:, rng.permutation(D)]  # indices of a row in any order
    wide = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(20 * N, 20 * D))
    weight, ran = rng.standard_normal(len(wide.indptr) - 1), []
    of = loops.lower_moments
    monkeypatch.setattr(loops, "lower_moments", lambda *args: ran.append(1) or of(*args))
    products = float(np.square(np.diff(X.indptr)).sum())
    monkeypatch.setattr(data_csr._Products, "_number", 0.0)
    monkeypatch.setattr(data_csr, "_PRODUCTS_BY_SCIPY", 1.5 * products)
    mean = rng.standard_normal(20 * D)
    for centre in (Centre(), Centre(mean)):
        data_csr._Products._number = 0.0
        first, second = (data_csr.Csr(wide).second_moments(weight, centre) for _ in range(2))
        assert_allclose(first, second, rtol=1e-13, atol=1e-13)
        A = np.hstack(
            [wide.toarray() - (0.0 if centre.mean is None else mean), np.ones((20 * N, 1))]
        )
        expected = A.T @ (weight[:, None] * A)
        assert_allclose(np.tril(first), np.tril(expected), rtol=1e-5, atol=1e-4)
    assert len(ran) == 2 * compiles()
