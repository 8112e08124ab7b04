"""The steps of an answer about separation, each by itself; and what is made when it is read."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from marginsvm import check_separability, check_separability_proof
from marginsvm.certify.checker.partition import partition
from marginsvm.certify.checker.triangular import triangular_factor
from marginsvm.certify.exactly.krawczyk import independent_first, is_regular
from marginsvm.separability import answering, hinge, solving, split_of_samples
from marginsvm.separability.reading import codes_of


@pytest.fixture
def separated(rng):
    """Examples of which a feature separates some."""
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2
    X[:, 2] = np.where(y == 1, X[:, 2] > 1.0, 0.0)
    return X, y


@pytest.mark.parametrize("kind", ["overlap", "separated", "mixed"])
def test_a_pair_is_strictly_complementary(kind, rng):
    """Also where it is seen after a few steps that all rows are of one kind."""
    T = rng.standard_normal((80, 5))
    if kind != "overlap":
        T[:, 0] = np.abs(T[:, 0]) + (kind == "separated")
    if kind == "mixed":
        T[20:, 0] = 0.0
    T /= np.sqrt(np.square(T).sum(axis=1, keepdims=True))
    w, z, q = partition(T)
    assert np.array_equal(z > q, np.arange(80) < {"overlap": 0, "separated": 80, "mixed": 20}[kind])
    assert np.all(np.maximum(z, q) > 1e-4)
    assert abs(T.T @ q).max() < 1e-8
    assert abs(T @ w - z).max() < 1e-8


@pytest.mark.parametrize("condition", [10.0, 1e6, 1e12])
@pytest.mark.parametrize("n", [12, 300])
def test_a_triangular_factor_has_the_digits_of_the_columns(n, condition, rng):
    A = rng.standard_normal((n, 6))
    A[:, 5] = A[:, 4] + A[:, 5] / condition
    R, expected = triangular_factor(A), np.linalg.qr(A, mode="r")
    rtol = max(1e-9, 1e-14 * condition)
    assert np.allclose(abs(R), abs(expected), rtol, atol=1e-14)
    assert np.allclose(np.linalg.svd(R)[1], np.linalg.svd(A)[1], rtol)
    assert np.allclose(abs(triangular_factor(sp.csr_array(A))), abs(R), rtol, atol=1e-14)


@pytest.mark.parametrize("n", [20, 200])
def test_a_step_is_the_same_by_a_factor_and_by_products(n, monkeypatch, rng):
    """Also where the rows do not span the space, and a column is not used."""
    T = sp.csr_array(rng.standard_normal((n, 30)) * (rng.random((n, 30)) < 0.2))
    T = sp.csr_array(T * (np.arange(30) != 7))
    curvature = rng.random(n)
    descent = T.T @ rng.standard_normal(n)
    step = hinge.newton_step(T, descent, curvature)
    H = T.toarray().T @ (curvature[:, None] * T.toarray())
    assert abs(H @ step - descent).max() < 1e-3 * abs(descent).max()
    monkeypatch.setattr(hinge, "FEW_COLUMNS", 0)
    assert (
        abs(T @ (step - hinge.newton_step(T, descent, curvature))).max()
        < 0.05 * abs(T @ step).max()
    )


@pytest.mark.parametrize("shape", [(4, 60), (60, 4), (5, 7)])
def test_independent_columns_come_first(shape, rng):
    A = rng.standard_normal(shape)
    A[:, : shape[1] // 2] *= 1e3
    A[-1] = A[0]
    order, rank = independent_first(A)
    assert rank == np.linalg.matrix_rank(A) == np.linalg.matrix_rank(A[:, order[:rank]])
    assert np.array_equal(np.sort(order), np.arange(shape[1]))


def test_a_singular_matrix_is_not_called_regular(rng):
    for _ in range(200):
        B = rng.integers(-9, 10, (6, 6)).astype(float)
        B[:, 5] = B[:, :5] @ rng.integers(-2, 3, 5)
        assert not is_regular(B)
        assert is_regular(B + 30.0 * np.eye(6))
    assert not is_regular(np.full((2, 2), np.inf))


def test_signs_and_the_central_direction_are_made_when_they_are_read(separated, monkeypatch):
    made = []
    for name in ("statuses", "centred"):
        work = getattr(answering, name)
        monkeypatch.setattr(
            answering, name, lambda *a, work=work, name=name: made.append(name) or work(*a)
        )
    X, y = separated
    report = check_separability(X, y)
    assert report.kind == "quasi-complete"
    assert report.separated.sum() == X[:, 2].sum()
    assert not made
    assert report.coefficients[3].status == "+inf"
    assert report.reason == ""
    assert made == ["statuses"]
    assert report.direction.coef[0, 2] > 0.0
    assert made == ["statuses", "centred"]


@pytest.mark.parametrize("copied", [lambda r: pickle.loads(pickle.dumps(r)), replace])
def test_copies_of_a_report_have_all_of_it(copied, separated):
    X, y = separated
    report = check_separability(X, y)
    kept = X.copy()
    X[:] = 0.0  # what was given is not needed any more
    copy = copied(report)
    assert copy.coefficients == report.coefficients
    assert repr(copy) == repr(report)
    assert check_separability_proof(copy, kept, y, exact=True)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("all_occur", [True, False])
def test_items_are_numbered_in_their_order(kind, all_occur, rng):
    """Whatever the type of integers, and however near they are to its ends."""
    ends = np.iinfo(kind)
    low = int(ends.max) - 127 if kind == "uint64" else int(ends.min)
    offsets = np.arange(128 if all_occur else 127)[:: 1 if all_occur else 2]
    items = np.array([low + int(k) for k in rng.permutation(np.tile(offsets, 3))], dtype=kind)
    found, codes = codes_of(items)
    assert found == [low + int(k) for k in offsets]
    assert [found[k] for k in codes] == items.tolist()


@pytest.mark.parametrize("marked", [False, True])
def test_some_sparse_rows_are_enough_where_all_overlap(marked, monkeypatch, rng):
    X, y = rng.integers(-2, 3, (500, 2)).astype(float), np.arange(500) % 12
    X[:, 1] = np.where(marked, (y == 3) & (X[:, 1] > 0), X[:, 1])
    expected = check_separability(X, y)
    for module, name in ((solving, "_NULL_SPACE_NUMBERS"), (split_of_samples, "_ROWS")):
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(solving, "_DIRECT", np.inf)
    report = check_separability(X, y)
    assert report.kind == expected.kind == ("quasi-complete" if marked else "overlap")
    assert report.coefficients == expected.coefficients
    assert np.array_equal(report.separated_rows, expected.separated_rows)
    few = split_of_samples._ROWS_PER_COLUMN * len(report.coefficients)
    assert (report.overlap_weights.nnz <= few) == (not marked)
    assert check_separability_proof(report, X, y)
