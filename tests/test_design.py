"""Examples with features or a kernel: products are those of plain arrays in float64."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from marginsvm.problem import csr_loops
from marginsvm.problem.csr_loops import _by_products
from marginsvm.problem.design import Design, mean_of
from marginsvm.problem.gram import Gram
from marginsvm.problem.kernel_functions import COARSE, Kernel
from marginsvm.problem.matrix import as_matrix
from marginsvm.problem.source import Source

array_api_strict = pytest.importorskip(
    "array_api_strict", reason="pip install marginsvm[test-all]"
)

FORMS = {
    "float64": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csr float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "array API": array_api_strict.asarray,
}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def plain(X, mean, constant, radius):
    """The design written out."""
    A = np.asarray(X, np.float64) - (0.0 if mean is None else mean)
    return (
        np.column_stack([A, np.full((len(A), int(constant != 0)), constant)]) / radius
    )


@each_form
@pytest.mark.parametrize("offset", [0.0, 2.0, 1e3])
@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_products_are_those_of_the_design_written_out(form, offset, constant, rng):
    X = rng.standard_normal((60, 7))
    X[np.abs(X) < 0.7] = 0.0
    X[:, :2] = rng.standard_normal((60, 2)) + offset
    X = X.astype(np.float32).astype(np.float64)
    mean = X.mean(axis=0) if offset else None
    design = Design.of(form(X), mean=mean, constant=constant, radius=2.5)
    A = plain(X, mean, constant, 2.5)
    assert (design.n, design.d) == A.shape
    tol = {"rtol": 1e-9, "atol": 1e-9}
    w, V = rng.standard_normal((3, design.d)), rng.standard_normal((60, 3))
    V[::2] = 0.0
    np.testing.assert_allclose(design.scores(w), A @ w.T, **tol)
    np.testing.assert_allclose(design.combine(V), V.T @ A, **tol)
    single = design.X.dtype == np.float32
    rough = {name: 1e-5 if single else value for name, value in tol.items()}
    rough["atol"] *= 1.0 + offset
    V[0] = 1e-320  # negligible, and slow
    np.testing.assert_allclose(design.scores(w, precise=False), A @ w.T, **rough)
    np.testing.assert_allclose(design.combine(V, precise=False), V.T @ A, **rough)
    np.testing.assert_allclose(design.scores(w[0], precise=False), A @ w[0], **rough)
    again = design.in_units(5.0).combine(V[:, 0], precise=False)
    np.testing.assert_allclose(again, 0.5 * V[:, 0] @ A, **rough)
    few = np.zeros((60, 1))
    few[7] = 2.0
    np.testing.assert_allclose(design.combine(few), few.T @ A, **tol)
    np.testing.assert_allclose(design.squared_norms, (A * A).sum(axis=1), **tol)
    i, j = np.array([5, 3, 3, 59]), np.array([0, 5])
    np.testing.assert_allclose(design.gram(i, j), A[i] @ A[j].T, **tol)
    np.testing.assert_allclose(design.columns(i), A[i] @ A.T, **tol)
    rows = design.rows(i)
    assert sp.issparse(rows) == design.sparse
    if design.sparse:
        rows = rows.toarray() - (0.0 if design.mean is None else design.mean)
    np.testing.assert_allclose(rows, A[i], **tol)
    every, unit = design.all_rows()
    every = every / unit
    if design.sparse:
        every = every.toarray() - (0.0 if design.mean is None else design.mean)
    np.testing.assert_allclose(every, A, **tol)
    some = design.take(i)
    np.testing.assert_allclose(some.scores(w), A[i] @ w.T, **tol)
    A1, signed = np.column_stack([A, np.ones(60)]), rng.standard_normal(60)
    for v in (signed, np.where(np.arange(60) < 20, np.abs(signed), 0.0)):
        np.testing.assert_allclose(design.second_moments(v), (A1.T * v) @ A1, **tol)
    assert design.inner(w, 2.0 * w) == pytest.approx(2.0 * np.sum(w * w))


def test_inner_products_of_sparse_examples(rng):
    """Of so few entries that their product is one of sparse matrices."""
    X = sp.random_array((70, 400), density=0.02, format="csr", rng=rng)
    for mean, constant in ((None, 0.0), (np.asarray(X.mean(axis=0)), 0.0), (None, 3.0)):
        A = plain(X.toarray(), mean, constant, 2.5)
        design = Design.of(X, mean=mean, constant=constant, radius=2.5)
        i, j = np.arange(40), np.arange(20, 70)
        for right in (i, j):
            found = design.gram(i, right)
            np.testing.assert_allclose(found, A[i] @ A[right].T, atol=1e-12)


@each_form
def test_a_far_mean_costs_no_digits(form, rng):
    X = rng.standard_normal((50, 3))
    X[:, 2] *= rng.random(50) < 0.5
    X = X.astype(np.float32) * np.float32(2.0**-10) + np.array(
        [2.0**10, 0, 0], np.float32
    )
    exact = X.astype(np.float64)
    design = Design.of(form(exact), mean=mean_of(form(exact)))
    A = exact - design.centre
    np.testing.assert_allclose(design.scores(np.eye(3)), A, rtol=1e-12, atol=1e-15)
    every = np.arange(50)
    np.testing.assert_allclose(
        design.gram(every, every), A @ A.T, rtol=1e-9, atol=1e-18
    )
    np.testing.assert_allclose(design.squared_norms, (A * A).sum(axis=1), rtol=1e-12)


@each_form
def test_few_examples_are_kept_in_their_units(form, rng):
    X = rng.standard_normal((60, 7))
    for design in (Design.of(form(X)), Design.of(form(X), mean=X.mean(axis=0))):
        kept = design.table
        assert (kept is None) == design.X.foreign
        assert kept is None or kept.rows.dtype == design.near.dtype
        assert kept is None or design.take(np.arange(5)).table.rows.shape == (5, 7)
    wide = sp.csr_array((2000, 10**6)) if design.sparse else np.zeros((2000, 1000))
    assert Design.of(wide).table is None or design.sparse


def test_blocks_in_threads_give_the_sums_of_the_whole(rng):
    X, y = rng.standard_normal((9000, 200)), rng.standard_normal((9000, 2))
    design = Design.of(X, mean=X.mean(axis=0))
    A = X - X.mean(axis=0)
    found = as_matrix(X).each(lambda block, y: len(block) == len(y), y)
    assert len(found) > 1
    assert all(found)
    np.testing.assert_allclose(design.scores(A[:2]), A @ A[:2].T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(design.combine(y), y.T @ A, rtol=1e-9, atol=1e-9)
    H = design.second_moments(y[:, 0])
    np.testing.assert_allclose(H[:-1, :-1], (A.T * y[:, 0]) @ A, atol=1e-9)


@pytest.mark.parametrize("loop", [None, _by_products])
@pytest.mark.parametrize("with_mean", [False, True])
def test_second_moments_of_few_entries(with_mean, loop, rng, monkeypatch):
    """Stored in any order, and one of them in two parts."""
    if loop is not None:
        monkeypatch.setattr(csr_loops, "add_moments", loop)
    A = rng.standard_normal((50, 30)) * (rng.uniform(size=(50, 30)) < 0.1)
    A[0, 7] = 3.0
    row, column = np.nonzero(A)
    value = A[row, column]
    order = rng.permutation(len(row))
    order = order[np.argsort(row[order], kind="stable")]
    row, column, value = row[order], column[order], value[order]
    at = int(np.flatnonzero((row == 0) & (column == 7))[0])
    value[at] = 1.0
    parts = np.insert(value, 0, 2.0), np.insert(column, 0, 7)
    ends = np.concatenate([[0], 1 + np.cumsum(np.bincount(row, minlength=50))])
    X = sp.csr_array((*parts, ends), shape=A.shape)
    mean = A.mean(axis=0) if with_mean else None
    v = rng.standard_normal(50)
    v[20:] = 0.0
    H = Design.of(X, mean=mean).second_moments(v)
    A1 = np.column_stack([A if mean is None else A - mean, np.ones(50)])
    np.testing.assert_allclose(H, (A1.T * v) @ A1, rtol=1e-12, atol=1e-12)


@each_form
def test_examples_divided_by_their_norms(form, rng):
    X = rng.standard_normal((20, 4)).astype(np.float32).astype(np.float64)
    X[3] = 0.0
    for constant in (0.0, 2.0):
        divided = as_matrix(form(X)).divided(constant)
        Z = plain(X, None, constant, 1.0)
        norms = np.linalg.norm(Z, axis=1)
        Z /= np.where(norms > 0, norms, 1.0)[:, None]
        np.testing.assert_allclose(divided.written_out(), Z, rtol=1e-5, atol=1e-6)
    huge = as_matrix(form(X * 1e30))
    np.testing.assert_allclose(
        huge.norms(), 1e30 * np.linalg.norm(X, axis=1), rtol=1e-6
    )


def rbf(X, gamma):
    X = X.astype(np.longdouble)
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2)).astype(np.float64)


@each_form
@pytest.mark.parametrize("metric", ["rbf", "poly", "laplacian", "given", "callable"])
def test_a_gram_matrix_is_that_of_its_kernel(form, metric, rng):
    X = rng.standard_normal((40, 5)).astype(np.float32).astype(np.float64)
    K = rbf(X, 0.3) if metric in ("rbf", "given", "callable") else None
    if metric == "poly":
        K = (0.3 * X @ X.T + 1.0) ** 3
    elif metric == "laplacian":
        K = np.exp(-0.3 * np.abs(X[:, None] - X).sum(axis=2))
    kernel = Kernel(metric, gamma=0.3, degree=3, coef0=1.0)
    if metric == "given":
        gram = Gram(None, K, constant=2.0, radius=3.0)
    elif metric == "callable":
        gram = Gram(rbf_of, X, constant=2.0, radius=3.0)
    else:
        gram = Gram(kernel, form(X), constant=2.0, radius=3.0, dtype=np.float64)
    tol = (
        {"rtol": 1e-5, "atol": 1e-5}
        if "float32" in str(gram.diagonal.dtype)
        else {"atol": 1e-9}
    )
    tol = {"atol": 1e-5} if metric == "laplacian" else tol
    K = (K + 4.0) / 9.0
    w, V = rng.standard_normal((2, 40)), rng.standard_normal((40, 2))
    few = np.where(np.arange(40) == 7, w, 0.0)
    for v in (w, few):
        np.testing.assert_allclose(gram.scores(v), K @ v.T, **tol)
    assert gram.inner(w, w) == pytest.approx(float(np.trace(w @ K @ w.T)), rel=1e-4)
    np.testing.assert_array_equal(gram.combine(V), V.T)
    i, j = np.array([5, 3, 39]), np.array([0, 5])
    np.testing.assert_allclose(gram.gram(i, j), K[np.ix_(i, j)], **tol)
    np.testing.assert_allclose(gram.columns(i), K[i], **tol)
    np.testing.assert_allclose(gram.squared_norms, np.diagonal(K), **tol)
    few = np.arange(3)
    np.testing.assert_allclose(gram.take(i).gram(few, few), K[np.ix_(i, i)], **tol)
    np.testing.assert_allclose(gram.values(i) + 4.0, 9.0 * K[i], rtol=1e-4, atol=1e-4)
    gram.keep_columns(size=40 * 8 * 6 / 2**20, batch=2)
    cache = gram.kept
    for wanted in ([1, 2, 3], [4, 5, 6], [1, 6, 39]):
        cache.fetch(np.array(wanted))
        np.testing.assert_allclose(
            cache.columns[cache.slot[wanted]] + 4, 9 * K[wanted], **tol
        )


def rbf_of(A, B):
    return np.exp(-0.3 * ((A[:, None] - B) ** 2).sum(axis=2))


@pytest.mark.parametrize("spread", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_distances_have_no_more_than_their_error(spread, offset, form, rng):
    X = rng.standard_normal((40, 10))
    X[:, 0] = X[:, 0] * spread + offset
    # so that some distances are small
    X[1::2] = X[::2] + 1e-3 * rng.standard_normal((20, 10))
    for gamma in (1e-3, 1.0, 30.0):
        gram, every, true = (
            Gram(Kernel("rbf", gamma), form(X)),
            np.arange(40),
            rbf(X, gamma),
        )
        for found in (gram.gram(every, every), gram.kernel(form(X), form(X))):
            assert np.abs(found - true).max() <= gram.error <= 2 * COARSE
        values = gram.kernel(form(X[:5]), form(X))
        np.testing.assert_allclose(values, true[:5], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.5), Kernel("poly", 0.5, 3, 1.0)])
def test_values_in_float32_have_the_error_that_is_allowed_for(kernel, rng):
    X, every = rng.standard_normal((200, 5)).astype(np.float32), np.arange(200)
    gram, Z = Gram(kernel, X), X.astype(np.float64)
    true = (0.5 * (Z @ Z.T) + 1.0) ** 3 if kernel.metric == "poly" else rbf(X, 0.5)
    size = np.sqrt(np.multiply.outer(np.diagonal(true), np.diagonal(true)))
    off = (np.abs(gram.values(every) - true) / size).max()
    assert gram.values(every).dtype == np.float32
    assert gram.error < off <= gram.rounding  # what is kept is rounded


@pytest.mark.parametrize("in_blocks", [False, True])
def test_second_moments_take_the_memory_of_a_few(in_blocks, rng):
    """Not that of one matrix for each block: they would take as much as X."""
    n, d = 24_000, 500
    X = rng.standard_normal((n, d))
    v = rng.random(n)
    blocks = [(X[i : i + 300], np.arange(300) % 2) for i in range(0, n, 300)]
    of, _, _ = Source(blocks).read()
    design = Design.of(of(np.arange(n)) if in_blocks else X)
    tracemalloc.start()
    H = design.second_moments(v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(
        H[:-1, :-1], X.T @ (v[:, None] * X), rtol=1e-9, atol=1e-9
    )
    assert peak < 0.5 * X.nbytes
