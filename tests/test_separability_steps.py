"""The steps of an answer about separation, each by itself; and what is made when it is read."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import comparison_cases, separation_cases
from helpers.comparison_cases import ALL
from helpers.separation_cases import FAMILIES

from marginsvm import check_separability, check_separability_proof
from marginsvm.separation import program
from marginsvm.separation import report as reports


@pytest.fixture
def separated(rng):
    """Examples of which a feature separates some."""
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 2
    X[:, 2] = np.where(y == 1, X[:, 2] > 1.0, 0.0)
    return X, y


def unit_rows(kind, rng, n=80, k=5):
    T = rng.standard_normal((n, k))
    if kind != "overlap":
        T[:, 0] = np.abs(T[:, 0]) + (kind == "separated")
    if kind == "mixed":
        T[20:, 0] = 0.0
    return T / np.sqrt(np.square(T).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", ["overlap", "separated", "mixed"])
@pytest.mark.parametrize("shape", [(80, 5), (24, 20)])
def test_the_program_is_strictly_complementary(kind, shape, rng):
    """On the side of the features, and on that of the margins."""
    T = unit_rows(kind, rng, *shape)
    w, q = program.program(T)
    m = T @ w
    assert np.all((m > 0.99) | (q > 0.99))
    assert np.all(np.minimum(np.abs(m), np.abs(q)) < 1e-7)
    assert m.min() > -1e-7
    assert abs(T.T @ q).max() < 1e-7 * max(q.max(), 1.0)
    if shape[0] > 2 * shape[1]:
        assert (q > 0.5).sum() == {"overlap": 80, "separated": 0, "mixed": 60}[kind]


@pytest.mark.parametrize("kind", ["overlap", "separated", "mixed"])
def test_faces_are_found(kind, rng):
    Z = unit_rows(kind, rng)
    equality = np.arange(80) % 7 == 0
    equality &= kind != "separated"
    rest, z, q, N, _ = program.faces(Z, equality)
    expected = np.arange(80) < {"overlap": 0, "separated": 80, "mixed": 20}[kind]
    if kind == "mixed":
        expected &= not equality[:20].any()
    np.testing.assert_array_equal(rest, expected)
    assert np.all(Z[rest] @ z > 1e-9)
    assert abs(Z[~rest] @ N).max(initial=0.0) < 1e-9
    assert abs(Z.T @ q).max() < 1e-12 * max(abs(q).max(), 1.0)
    assert np.all(q[~equality] >= 0.0)
    assert np.linalg.matrix_rank(Z[(q > 0) | equality]) == 5 - N.shape[1]


def test_hinges_end_with_margins_or_with_weights(rng):
    T = unit_rows("separated", rng)
    w, slack = program._hinge(T)
    assert (T @ w).min() > 0
    assert not slack.any()
    T = unit_rows("overlap", rng)
    w, slack = program._hinge(T)
    assert abs(T.T @ slack).max() < 1e-12
    assert slack.max() > 0.1


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_program_of_equalities_says_the_same(form, rng):
    T = unit_rows("mixed", rng)
    w, q = program.program(form(T[:79]), form(T[79:]))
    m = T @ w
    np.testing.assert_array_equal(m > 0.5, np.arange(80) < 20)
    assert abs(T.T @ q).max() < 1e-8
    assert np.all(q[20:79] > 0.99)


@pytest.mark.parametrize("condition", [10.0, 1e8, 1e14])
def test_coordinates_are_round(condition, rng):
    S = rng.standard_normal((50, 6))
    S[:, 5] = S[:, 4] + S[:, 5] / condition
    Z, T = program.coordinates(S)
    assert np.linalg.cond(Z) < 1e4
    exact = S.astype(np.longdouble) @ T.astype(np.longdouble)
    assert abs(exact - Z).max() < 1e-3


@pytest.mark.parametrize("size", [0, 10**6])
def test_null_vectors_are_those_of_the_rows(size, monkeypatch, rng):
    monkeypatch.setattr(program, "DENSE", size)
    S = rng.standard_normal((200, 30)) * (rng.random((200, 30)) < 0.3)
    S[:, 7] = S[:, 3] + S[:, 4]
    S[:, 9] = 0.0
    V, known = program.null_vectors(sp.csr_array(S))
    assert known
    assert V.shape == (30, 2)
    assert abs(S @ V).max() < 1e-8
    kept, T, sums = program._columns_of_sparse(sp.csr_array(S))
    np.testing.assert_array_equal(kept, np.delete(np.arange(30), [7, 9]))
    np.testing.assert_array_equal(T.toarray(), np.eye(30)[:, kept])
    assert abs(S @ sums).max() < 1e-8 < abs(sums).max()


def test_no_rows_leave_some_vectors_of_many_columns():
    """Not all of them: 18 GB for the words of rcv1."""
    V, known = program.null_vectors(sp.csr_array((0, 50_000)))
    assert (V.shape, known) == ((50_000, program.VECTORS), False)
    np.testing.assert_allclose(V.T @ V, np.eye(program.VECTORS), atol=1e-12)


def test_signs_are_looked_for_when_they_are_read(separated, monkeypatch):
    made, work = [], reports.statuses
    monkeypatch.setattr(reports, "statuses", lambda *a: made.append(a) or work(*a))
    X, y = separated
    report = check_separability(X, y)
    assert report.kind == "quasi-complete"
    assert report.separated.sum() == X[:, 2].sum()
    assert report.direction.coef[0, 2] > 0.0
    assert not made
    assert report.coefficients[3].status == "+inf"
    assert report.reason == ""
    assert len(made) == 1


@pytest.mark.parametrize("copied", [lambda r: pickle.loads(pickle.dumps(r)), replace])
def test_copies_of_a_report_have_all_of_it(copied, separated):
    X, y = separated
    report = check_separability(X, y)
    copy = copied(report)
    assert copy.coefficients == report.coefficients
    assert repr(copy) == repr(report)
    assert check_separability_proof(copy, X, y, exact=True)
    np.testing.assert_array_equal(copy.remainder(X).rows, report.remainder(X).rows)


@pytest.mark.parametrize("kind", [*FAMILIES, "ordinal", *ALL])
def test_samples_say_what_all_rows_say(kind):
    """Small problems many times over, of which a few rows are taken at first."""
    answer_of = comparison_cases.answer_of if kind in ALL else separation_cases.answer_of
    assert not [wrong for seed in range(30) if (wrong := answer_of(seed, kind, 40)[0])]
