"""What a pass computes is the plain formula, in any form of the examples and in any cut."""

from functools import partial, reduce

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.examples import CUTS, FORMS, cut, examples, plain, rtol_of
from helpers.pairwise import pairwise

from marginsvm.data import block as blocks_of
from marginsvm.data import measures, passes
from marginsvm.data.block import Centre
from marginsvm.data.csr import Csr, as_block
from marginsvm.data.memory import MemoryStore
from marginsvm.data.normalized import Normalized
from marginsvm.kernel_matrix.scale import measured
from marginsvm.rows import LpNorm, make_rows

NOT_DIVIDED = [form for form in FORMS if "normalized" not in form]
CENTRES = ["origin", "near", "far"]  # no mean; one that is subtracted late; one that is taken first
MEMORY = ["whole", "pieces"]
each_form = pytest.mark.parametrize("form", FORMS)
each_centre = pytest.mark.parametrize("where", CENTRES)
each_kind = pairwise(form=list(FORMS), where=CENTRES, memory=MEMORY, indirect=["memory"])


@pytest.fixture
def memory(request, monkeypatch):
    """With so little memory for what is written out, a block is taken apart once more."""
    if request.param == "pieces":
        monkeypatch.setattr(blocks_of, "_WIDENED_BYTES", 100)
        monkeypatch.setattr(blocks_of, "WRITTEN_OUT", 20)


def centre_of(where, width, rng):
    if where == "origin":
        return Centre()
    return Centre(rng.standard_normal(width), far=where == "far")


def about(X, centre, *, dense_only=True):
    """The plain examples, about the mean where the pass takes that first."""
    first = centre.far and (as_block(X).takes_a_mean or not dense_only)
    return plain(X) - (centre.mean if first else 0.0)


def a_pass(work, merge, X, *local, **params):
    """What all blocks together give, in every cut; and what the merged results of each give.

    Arrays with a value for each example are given whole: the blocks' slices index them.
    """
    rows = make_rows(np.arange(X.shape[0]) % 2, 2, balanced=True)
    whole = work(rows, cut(X, CUTS["one block"]), *local, **params)
    for blocks in (cut(X, sizes) for sizes in CUTS.values()):
        together = work(rows, iter(blocks), *local, **params)
        merged = reduce(merge, [work(rows, [block], *local, **params) for block in blocks])
        for result in (together, merged):
            np.testing.assert_allclose(result, whole, rtol=rtol_of(X), atol=10 * rtol_of(X))
    return whole


def one_behind_the_other(a, b):
    return np.concatenate([a, b])


def side_by_side(a, b):
    return np.concatenate([a, b], axis=1)


@each_kind
def test_squared_lengths(form, where, memory, rng):
    X = examples(rng, form)
    centre = centre_of(where, X.shape[1], rng)
    lengths = a_pass(
        measures.squared_lengths, one_behind_the_other, X, norm=LpNorm(), centre=centre
    )
    mean = 0.0 if centre.mean is None else centre.mean
    expected = ((plain(X) - mean) ** 2).sum(axis=1)
    np.testing.assert_allclose(lengths, expected, rtol=rtol_of(X), atol=rtol_of(X))
    assert lengths.dtype == np.float64


@pytest.mark.parametrize("form", NOT_DIVIDED)
@pytest.mark.parametrize("p", [1.2, 1.5])
def test_squared_lengths_in_the_dual_norm(form, p, rng):
    X = examples(rng, form)
    lengths = a_pass(
        measures.squared_lengths, one_behind_the_other, X, norm=LpNorm(p), centre=Centre()
    )
    expected = np.linalg.norm(plain(X), p / (p - 1.0), axis=1) ** 2
    np.testing.assert_allclose(lengths, expected, rtol=10 * rtol_of(X))


@pairwise(
    form=list(FORMS),
    where=CENTRES,
    shape={"vector": (), "table": (3,)},
    precise=[True, False],
    memory=MEMORY,
    indirect=["memory"],
)
def test_weighted_sum(form, where, shape, precise, memory, rng):
    X = examples(rng, form)
    centre, V = centre_of(where, X.shape[1], rng), rng.standard_normal((X.shape[0], *shape))
    dtype = np.float64 if precise else X.dtype
    image = a_pass(passes.weighted_sum, np.add, X, V, dtype=dtype, centre=centre)
    rtol = 1e-12 if precise else rtol_of(X)
    np.testing.assert_allclose(image, V.T @ about(X, centre), rtol=rtol, atol=100 * rtol)
    if where == "origin":
        assert image.dtype == dtype


@pytest.mark.parametrize("form", NOT_DIVIDED)
def test_largest_values_and_norms(form, rng):
    X = examples(rng, form)
    assert a_pass(measures.largest_entry, max, X) == np.abs(plain(X)).max()
    longest = a_pass(measures.largest_norm, max, X)
    np.testing.assert_allclose(longest, np.linalg.norm(plain(X), axis=1).max(), rtol=1e-14)


@pytest.mark.parametrize("form", NOT_DIVIDED)
@each_centre
def test_spread(form, where, rng):
    X = examples(rng, form)
    centre = centre_of(where, X.shape[1], rng)
    mean = np.zeros(X.shape[1]) if centre.mean is None else centre.mean
    spread = a_pass(measures.spread, np.maximum, X, centre=centre)
    from_mean = np.abs(plain(X) - mean).max(axis=0)
    np.testing.assert_allclose(spread, from_mean, rtol=1e-14)


@pytest.mark.parametrize("parts", [1, 2])
def test_spread_of_features_that_every_example_stores_and_of_entries_in_parts(parts, rng):
    D = 5.0 + rng.random((9, 4))
    D[::2, 1] = D[:, 2] = 0.0
    X = sp.csr_array(D)
    entries = np.repeat(X.data / parts, parts), np.repeat(X.indices, parts), parts * X.indptr
    mean = np.array([5.5, 1.0, 2.0, -3.0])
    spread = Csr(sp.csr_array(entries, shape=D.shape)).spread(mean)
    np.testing.assert_array_equal(spread, np.abs(D - mean).max(axis=0))


@pairwise(
    of={f"{form}-{where}": (form, where) for form in FORMS for where in CENTRES},
    shape={"two classes": (), "three classes": (3,)},
    precise=[True, False],
    memory=MEMORY,
    indirect=["memory"],
)
def test_scores(of, shape, precise, memory, rng):
    """Three meet: a mean that is far, of dense examples, whose digits matter, is taken first."""
    form, where = of
    X = examples(rng, form)
    centre = centre_of(where, X.shape[1], rng)
    W, shift = rng.standard_normal((*shape, X.shape[1])), rng.standard_normal(shape)
    W = W if precise else W.astype(X.dtype)
    F = a_pass(
        passes.scores,
        one_behind_the_other,
        X,
        W=W,
        shift=shift,
        centre=centre,
        precise=precise,
        on_block=None,
    )
    late = not (precise and centre.before_products(as_block(X)) is not None)
    expected = (plain(X) if late else plain(X) - centre.mean) @ W.T - shift * late
    rtol = 1e-12 if precise else rtol_of(X)
    np.testing.assert_allclose(F, expected, rtol=rtol, atol=100 * rtol)
    assert F.dtype == np.float64


@each_form
@pytest.mark.parametrize("k", [2, 3])
def test_scores_are_shown_with_their_blocks(form, k, rng):
    X = examples(rng, form)
    rows = make_rows(np.arange(X.shape[0]) % k, k, balanced=True)
    W = rng.standard_normal((*rows.score_shape[1:], X.shape[1])).astype(X.dtype)
    work = partial(passes.scores, W=W, shift=0.5, centre=Centre(), precise=False)
    for blocks in (cut(X, sizes) for sizes in CUTS.values()):
        seen = []
        F = work(rows, blocks, on_block=lambda *what, seen=seen: seen.append(what))
        assert [block for block, _, _ in seen] == [block for block, _ in blocks]
        assert all(given is X for (_, given, _), (_, X) in zip(seen, blocks, strict=True))
        margins = np.concatenate([margins for _, _, margins in seen])
        np.testing.assert_allclose(margins, rows.margins(F), rtol=1e-6, atol=1e-6)


@each_kind
def test_columns(form, where, memory, rng):
    X = examples(rng, form)
    centre, right = centre_of(where, X.shape[1], rng), rng.standard_normal((3, X.shape[1]))
    K = a_pass(passes.columns, side_by_side, X, right=right, centre=centre)
    assert K.shape == (3, X.shape[0])
    np.testing.assert_allclose(K, right @ about(X, centre).T, rtol=1e-12, atol=1e-12)


@each_kind
def test_second_moments(form, where, memory, rng):
    """Weights of either sign; those of 0 take no part. It is symmetric: the lower half is made."""
    X = examples(rng, form)
    centre, weight = centre_of(where, X.shape[1], rng), rng.standard_normal(X.shape[0])
    weight[::3] = 0.0
    H = a_pass(passes.second_moments, np.add, X, weight, centre=centre)
    mean = 0.0 if centre.mean is None else centre.mean
    A = np.column_stack([plain(X) - mean, np.ones(X.shape[0])])
    expected = (A * weight[:, None]).T @ A
    np.testing.assert_allclose(np.tril(H), np.tril(expected), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_second_moments_of_short_sparse_rows(dtype, rng):
    """Products of sparse matrices are those of what is written out, whatever the signs."""
    X = sp.random_array((60, 80), density=0.02, rng=rng, format="csr", dtype=dtype)
    weight = rng.standard_normal(60) * (rng.random(60) > 0.3)
    for mean in (None, X.toarray().mean(axis=0, dtype=np.float64)):
        H = a_pass(passes.second_moments, np.add, X, weight, centre=Centre(mean))
        dense = X.toarray().astype(np.float64)
        expected = a_pass(passes.second_moments, np.add, dense, weight, centre=Centre(mean))
        np.testing.assert_allclose(H, expected, atol=1e-12)


@pytest.mark.parametrize("memory", MEMORY, indirect=True)
def test_second_moments_of_short_sparse_rows_about_a_far_mean(memory, rng):
    """It is 0 where entries are not stored, and subtracted where all are."""
    X = np.column_stack([np.eye(60)[rng.permutation(60)], 1e12 + rng.standard_normal(60)])
    mean, weight = np.append(np.zeros(60), X[:, -1].mean()), rng.standard_normal(60)
    given, centre = sp.csr_array(X), Centre(mean, far=True, stored=True)
    H = a_pass(passes.second_moments, np.add, given, weight, centre=centre)
    x = np.column_stack([X - mean, np.ones(60)])
    expected = (weight * x.T) @ x
    expected[:, -1] = np.append(np.zeros(61), weight.sum())
    np.testing.assert_allclose(H, expected, rtol=1e-12, atol=1e-12)


def test_second_moments_of_weights_that_are_all_zero(rng):
    X = examples(rng, "dense")
    H = a_pass(passes.second_moments, np.add, X, np.zeros(60), centre=Centre())
    np.testing.assert_array_equal(H, np.zeros((6, 6)))


@each_form
@each_centre
def test_written_out(form, where, rng):
    X = examples(rng, form)
    centre = centre_of(where, X.shape[1], rng)
    given = X[:20]
    expected = plain(given) - (0.0 if centre.mean is None else centre.mean)
    taken = given.copy() if isinstance(given, np.ndarray) else given  # it may be written into
    written = as_block(taken).written_out(centre.mean)
    assert type(written) is np.ndarray
    assert written.dtype == np.float64
    np.testing.assert_allclose(written, expected, rtol=1e-15)


@pytest.mark.parametrize("memory", MEMORY, indirect=True)
def test_the_mean_of_far_examples_costs_no_digits(memory, rng):
    """Taken first, as it is, from a block in float64: late, it would leave 1e-4 of the sums."""
    X = 1e12 + rng.standard_normal((60, 3))
    X[:, 1] = np.arange(60) % 2  # which CSR matrices do not store everywhere
    mean, V = np.where([True, False, True], X.mean(axis=0), 0.0), rng.standard_normal(60)
    exact = V.astype(np.longdouble) @ (X.astype(np.longdouble) - mean)
    for given in (X, sp.csr_array(X)):
        centre = Centre(mean, far=True, stored=True)
        image = a_pass(passes.weighted_sum, np.add, given, V, np.float64, centre)
        np.testing.assert_allclose(image, exact.astype(float), rtol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_no_pass_changes_the_examples(form, rng):
    X = examples(rng, form)
    before, rows = plain(X).copy(), make_rows(np.arange(60) % 2, 2, balanced=True)
    blocks, centre = cut(X, CUTS["uneven"]), Centre(np.ones(X.shape[1]), far=True)
    measures.squared_lengths(rows, blocks, LpNorm(), centre)
    passes.weighted_sum(rows, blocks, np.ones(60), np.float64, centre)
    passes.columns(rows, blocks, np.ones((2, X.shape[1])), centre)
    passes.second_moments(rows, blocks, np.ones(60), centre)
    passes.scores(rows, blocks, np.ones(X.shape[1]), 0.0, centre, True, None)
    if not isinstance(X, Normalized):
        measures.spread(rows, blocks, centre)
    np.testing.assert_array_equal(plain(X), before)


def test_means_of_features_that_all_sparse_examples_store_are_subtracted_first(rng):
    X = sp.csr_array(np.column_stack([np.eye(60), 1e12 + rng.standard_normal(60)]))
    rows = make_rows(np.arange(60) % 2, 2, balanced=True)
    _, centre = measured(MemoryStore(as_block(X)), rows, np.inf, LpNorm(), 0.0, 60)
    assert centre.stored
    np.testing.assert_array_equal(np.flatnonzero(centre.mean), [60])
