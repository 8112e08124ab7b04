"""Blocks of examples, wherever they are: the same rounds as in memory."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import over_with, slow
from helpers.claiming import claim
from helpers.estimators import ESTIMATORS, fit, make, quiet, separable
from helpers.pairwise import pairwise
from sklearn.datasets import load_iris, make_blobs

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    check_certificate,
)
from marginsvm.estimators import inputs
from marginsvm.problem import matrix as blocks_module

BY_PASSES = [cls for cls in ESTIMATORS if cls()._algorithm().requires.by_passes]


def cut(X, y, sizes, weight=None):
    """Blocks of these sizes, one after the other."""
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    if weight is None:
        return [(X[part], y[part]) for part in parts]
    return [(X[part], y[part], weight[part]) for part in parts]


CUTS = [[10, 0, 40, 70, 30], slow([150]), slow([1] * 150), slow([149, 1])]


def same_fit(a, b, rtol=1e-10):
    assert a.n_iter_ == b.n_iter_
    assert a.status_ == b.status_
    for name in ("margin_", "margin_bound_", "coef_", "intercept_"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.history_["margin"], b.history_["margin"], rtol=1e-8, atol=rtol)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pairwise(cls=BY_PASSES, classes=[2, 3], sizes=CUTS)
def test_blocks_equal_memory(cls, classes, sizes):
    X, y = make_blobs(150, 5, centers=classes, cluster_std=0.4, random_state=3)
    X += 5.0
    kwargs = {"max_iter": 30}
    whole = make(cls, **kwargs).fit(X, y)
    source = cut(X, y, sizes)
    blocks = make(cls, **kwargs).fit_blocks(source)
    same_fit(whole, blocks)
    by_blocks, at_once = check_certificate(blocks, source), check_certificate(blocks, X, y)
    assert by_blocks
    np.testing.assert_allclose(by_blocks.margin_bound, at_once.margin_bound, rtol=1e-12)


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("kind", ["csr", "float32", "integer", "weights", "fortran"])
@pytest.mark.parametrize("estimator", [MaxMarginClassifier, slow(MomentumMarginClassifier)])
def test_kinds_of_blocks(estimator, kind, C):
    X, y = load_iris(return_X_y=True)
    X, y, weight = X[:100], y[:100], None
    order = np.random.default_rng(0).permutation(100)
    X, y = X[order], y[order]
    if kind == "csr":
        X = sp.csr_array(X)
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "integer":
        X = np.rint(10 * X).astype(int)
    elif kind == "weights":
        weight = np.random.default_rng(1).integers(0, 4, 100).astype(float)
    elif kind == "fortran":
        X = np.asfortranarray(X)
    whole = estimator(C=C).fit(X, y, weight)
    source = cut(X, y, [33, 7, 60], weight)
    blocks = estimator(C=C).fit_blocks(source)
    assert check_certificate(blocks, source)
    assert check_certificate(blocks, source, exact=True)
    same_fit(whole, blocks, rtol=1e-4 if kind == "float32" else 1e-9)


@pairwise(
    outputs=[None, 2],
    params=[
        {},
        {"loss": "squared_epsilon_insensitive"},
        {"nu": 0.3},
        {"epsilon": 2.0, "C": np.inf},
    ],
    weighted=[False, True],
    sparse=[False, True],
)
def test_targets_in_blocks(outputs, params, weighted, sparse, rng):
    X = rng.standard_normal((150, 4)) + 5.0
    Y = X @ rng.standard_normal((4, outputs or 1)) + 0.3 * rng.standard_normal((150, outputs or 1))
    y = Y[:, 0] if outputs is None else Y
    weight = rng.integers(0, 3, 150).astype(float) if weighted else None
    X = sp.csr_array(X) if sparse else X
    source = cut(X, y, [10, 0, 60, 80], weight)
    whole = MaxMarginRegressor(**params).fit(X, y, weight)
    blocks = MaxMarginRegressor(**params).fit_blocks(source)
    assert blocks.status_ == whole.status_ == "certified"
    np.testing.assert_allclose(blocks.objective_, whole.objective_, rtol=2e-6)
    np.testing.assert_allclose(blocks.predict(X), whole.predict(X), atol=1e-2)
    for exact in (False, True):
        assert check_certificate(blocks, source, exact=exact)
    claim(blocks, objective_bound=1.01 * np.asarray(blocks.objective_))
    assert not check_certificate(blocks, source)


def test_targets_in_blocks_that_cannot_be_used(rng):
    X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    with pytest.raises(ValueError, match=r"block 1: its number of outputs is \(2,\)"):
        MaxMarginRegressor().fit_blocks([(X, y), (X, np.column_stack([y, y]))])
    with pytest.raises(ValueError, match=r"block 1: .*NaN"):
        MaxMarginRegressor().fit_blocks([(X, y), (X, np.where(y > 0, np.nan, y))])
    with pytest.raises(ValueError, match="blocks need kernel='linear'"):
        MaxMarginRegressor(kernel="rbf").fit_blocks([(X, y)])
    with pytest.raises(ValueError, match="all sample weights are 0"):
        MaxMarginRegressor().fit_blocks([(X, y, np.zeros(20)), (X, y, np.zeros(20))])


def test_rows_beyond_those_at_hand_cost_a_pass_and_nothing_else(rng, monkeypatch):
    X, y = make_blobs(400, 30, centers=2, cluster_std=3.0, random_state=0)
    whole = MaxMarginClassifier().fit(X, y)
    monkeypatch.setattr(blocks_module, "HELD_BYTES", 1)
    same_fit(whole, MaxMarginClassifier().fit_blocks(cut(X, y, [100] * 4)), rtol=1e-8)


class Once:
    def __init__(self, blocks):
        self.blocks = list(blocks)

    def __iter__(self):
        blocks, self.blocks = self.blocks, self.blocks[:-1]
        return iter(blocks)


def bad_sources():
    X, y = load_iris(return_X_y=True)
    good = cut(X, y, [50, 50, 50])
    nan = X[:50].copy()
    nan[3, 1] = np.nan
    text = np.array(["a"] * 50)
    return [
        (
            [*good[:2], (X[:, :2], y)],
            "block 2: its number of features is 2, but that of block 0 is 4",
        ),
        ([*(good * 6)[:17], (nan, y[:50])], "block 17: .*NaN"),
        ([*good, (np.full((50, 4), "x"), y[:50])], "block 3: "),
        ([*good, (X[:50], text)], "block 3: its type of labels is text"),
        ([*good, (sp.csr_array(X), y)], "block 3: its kind of matrix is sparse"),
        ([*good, (X, y[:20])], "block 3: .*inconsistent numbers of samples"),
        ([*good, (X, y, np.ones(150))], "block 3: its sample weight is given"),
        ([*good, X], "block 3: a block must be a tuple"),
        ([(X[:50], y[:50])], "at least 2 classes"),
        ([], "the source is empty"),
        (iter(good), "can be read only once"),
        ((block for block in good), "can be read only once"),
        (3, "must be iterable"),
        (Once(good), "the source changed between two passes: from block 1 on"),
    ]


@pytest.mark.parametrize(("source", "text"), bad_sources(), ids=lambda value: str(value)[:12])
def test_bad_sources(source, text):
    clf = MomentumMarginClassifier()
    with pytest.raises((ValueError, TypeError), match=text):
        clf.fit_blocks(source)
    assert [name for name in vars(clf) if name.endswith("_") and not name.startswith("_")] == []


@pytest.mark.parametrize(
    "cls", [cls for cls in ESTIMATORS if not cls()._algorithm().requires.by_passes]
)
def test_those_that_need_all_in_memory_say_so(cls):
    with pytest.raises(ValueError, match="use fit, or MaxMarginClassifier"):
        make(cls).fit_blocks([])


def test_kernels_need_all_in_memory():
    with pytest.raises(ValueError, match="blocks need kernel='linear'"):
        MomentumMarginClassifier(kernel="rbf").fit_blocks([])


class Counted(list):
    """A source that counts its passes."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


@pytest.mark.parametrize(("C", "most", "spread"), [(np.inf, 80, 4.5), (1.0, 40, 5.5)])
def test_passes_are_few(C, most, spread):
    X, y = make_blobs(4000, 20, centers=2, cluster_std=spread, random_state=0)
    source = Counted(cut(X, y, [1500, 500, 2000]))
    blocks = MaxMarginClassifier(C=C).fit_blocks(source)
    assert blocks.status_ == "certified"
    assert blocks.margin_ == pytest.approx(MaxMarginClassifier(C=C).fit(X, y).margin_, rel=2e-6)
    assert source.passes <= most


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("cls", [MomentumMarginClassifier, OptimisticPerceptron])
def test_a_round_is_one_pass(cls, k):
    X, y = make_blobs(300, 5, centers=k, cluster_std=0.5, random_state=0)
    passes = []
    for max_iter in (5, 25):
        source = Counted(cut(X, y, [100, 200]))
        with quiet():
            cls(max_iter=max_iter, tol=0).fit_blocks(source)
        passes.append(source.passes)
    assert passes[1] - passes[0] == 20


@over_with(ESTIMATORS, kind=[np.uint8, slow(np.int32), np.float16])
def test_memory_maps_of_other_numbers_are_not_copied_whole(cls, kind, rng, tmp_path, monkeypatch):
    """They are converted a few rows at a time, where the algorithm can read blocks."""
    monkeypatch.setattr(inputs, "CONVERTED_BYTES", 8 * 5 * 7)  # seven rows
    X, y = separable(rng)
    X = np.round(20.0 * (X - X.min()))
    np.save(tmp_path / "X.npy", X.astype(kind))
    X_mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    weight = rng.integers(0, 3, len(y))
    model, expected = (
        fit(make(cls, max_iter=30), data, y, sample_weight=weight) for data in (X_mapped, X)
    )
    same_fit(model, expected)
    np.testing.assert_allclose(
        model.decision_function(X_mapped), expected.decision_function(X), rtol=1e-9, atol=1e-9
    )
    assert check_certificate(model, X_mapped, y, sample_weight=weight)


def test_a_large_memory_map_of_bytes_is_read_in_blocks(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "CONVERTED_BYTES", 2**20)
    X, y = separable(rng, n=20_000, d=100)
    np.save(tmp_path / "X.npy", np.round(50.0 * (X + 1.0)).astype(np.uint8))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    tracemalloc.start()
    try:
        fit(MomentumMarginClassifier(max_iter=3), X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * X.size * np.dtype(float).itemsize  # of what it takes in float64


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("form", ["list", "column", "text", "one weight"])
def test_labels_and_weights_of_memory_maps_may_be_as_elsewhere(form, rng, tmp_path):
    X, y = separable(rng)
    np.save(tmp_path / "X.npy", np.round(20.0 * (X - X.min())).astype(np.uint8))
    X, weight = np.load(tmp_path / "X.npy", mmap_mode="r"), 2.0 if form == "one weight" else None
    y = {"list": y.tolist(), "column": y[:, None], "text": np.where(y, "a", "b")}.get(form, y)
    mapped_fit, whole = (MaxMarginClassifier().fit(A, y, weight) for A in (X, np.array(X)))
    np.testing.assert_allclose(mapped_fit.margin_, whole.margin_, rtol=1e-6)
    np.testing.assert_array_equal(mapped_fit.classes_, whole.classes_)
    for wrong in (y[:10], None):
        with pytest.raises(ValueError, match=r"inconsistent numbers|requires y to be passed"):
            MaxMarginClassifier().fit(X, wrong)
