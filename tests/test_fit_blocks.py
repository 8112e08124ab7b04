"""Where and how examples are kept, in memory or in blocks, on how many threads, changes no fit."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow, some_slow
from helpers.claiming import claim
from helpers.estimators import (
    BY_PASSES,
    ESTIMATORS,
    IN_MEMORY,
    fit,
    make,
    same_fit,
    separable,
)
from helpers.pairwise import pairwise
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from threadpoolctl import threadpool_limits

from marginsvm import (
    AcceleratedPerceptron,
    MaxMarginClassifier,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    check_certificate,
)
from marginsvm.estimators import inputs
from marginsvm.problem import matrix as blocks_module
from marginsvm.problem.design import Design
from marginsvm.problem.programs import classification, regression
from marginsvm.problem.source import Source
from marginsvm.solvers.systems import Features, RowWeights

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def cut(X, y, sizes, weight=None):
    """Blocks of these sizes, one after the other."""
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return [tuple(a[part] for a in (X, y, weight) if a is not None) for part in parts]


def examples(rng, k, where, n=60):
    """Some zeros, a column of zeros and ones, and a mean that may be far from the origin."""
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    X = rng.standard_normal((n, 5)) + 3.0 * np.eye(k, 5)[y]
    X[np.abs(X) < 0.3] = 0.0
    X[:, 4] = rng.integers(0, 2, n)
    return X + {"near": 0.0, "off": 5.0, "far": 1e4}[where] * (X != 0.0), y


FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "integer": lambda X: np.rint(10.0 * X).astype(int),
    "float32": lambda X: X.astype(np.float32),
    "CSR": sp.csr_array,
    "CSR, float32": lambda X: sp.csr_array(X.astype(np.float32)),
}
CUTS = {"one": [60], "an example each": slow([1] * 60), "uneven": [7, 0, 1, 30, 22]}
VARIANTS = {
    "logistic": MomentumMarginClassifier(loss="logistic", C=1.0),
    "a share": MomentumMarginClassifier(nu=0.4),
    "soft": OptimisticPerceptron(C=1.0),
    "p-norm": AcceleratedPerceptron(p=1.5),
    "normalized": SmoothedKernelPerceptron(normalize=True),
    "exact, soft": MaxMarginClassifier(C=1.0),
}


@pairwise(
    estimator={**VARIANTS, **{cls.__name__: cls() for cls in BY_PASSES}},
    form=FORMS,
    sizes=CUTS,
    k=[2, 3],
    where=["near", "off", "far"],
    fit_intercept=[True, False],
    weighted=[False, True],
)
def test_blocks_give_the_fit_of_memory(
    estimator, form, sizes, k, where, fit_intercept, weighted
):
    rng = np.random.default_rng(0)
    X, y = examples(rng, k, where)
    X, weight = form(X), rng.integers(0, 4, 60).astype(float) if weighted else None
    if weighted:
        weight[:k] = 1.0
    exact = isinstance(estimator, MaxMarginClassifier)
    params = {"fit_intercept": fit_intercept, **({} if exact else {"max_iter": 25})}
    estimator = clone(estimator).set_params(**params)
    memory = clone(estimator).fit(X, y, sample_weight=weight)
    source = cut(X, y, sizes, weight)
    blocks = estimator.fit_blocks(source)
    by_blocks, at_once = (
        check_certificate(blocks, source),
        check_certificate(blocks, X, y, weight),
    )
    assert by_blocks
    assert check_certificate(blocks, source, exact=True)
    rounded = 1e-12 * memory.certificate_.radius  # where nothing separates
    both = by_blocks.margin_bound, at_once.margin_bound
    assert_allclose(*both, rtol=1e-12, atol=rounded)
    rtol = {"near": 1e-9, "off": 1e-9, "far": 1e-6}[where]
    rtol = 1e-3 if X.dtype == np.float32 else 2e-6 if exact else rtol
    size = abs(memory.margin_bound_)
    assert_allclose(blocks.margin_, memory.margin_, rtol=rtol, atol=rtol * size)
    assert_allclose(blocks.margin_bound_, memory.margin_bound_, rtol=rtol, atol=rounded)
    if not exact and X.dtype == np.float64:
        assert (blocks.n_iter_, blocks.status_) == (memory.n_iter_, memory.status_)
        margins = (fitted.history_["margin"] for fitted in (blocks, memory))
        assert_allclose(*margins, rtol=1e2 * rtol, atol=rtol * size)
        scale = np.abs(memory.coef_).max()
        assert_allclose(blocks.coef_, memory.coef_, rtol=0, atol=1e2 * rtol * scale)


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
    Y = X @ rng.standard_normal((4, outputs or 1)) + 0.3 * rng.standard_normal(
        (150, outputs or 1)
    )
    y = Y[:, 0] if outputs is None else Y
    weight = rng.integers(0, 3, 150).astype(float) if weighted else None
    X = sp.csr_array(X) if sparse else X
    source = cut(X, y, [10, 0, 60, 80], weight)
    whole = MaxMarginRegressor(**params).fit(X, y, weight)
    blocks = MaxMarginRegressor(**params).fit_blocks(source)
    assert blocks.status_ == whole.status_ == "certified"
    assert_allclose(blocks.objective_, whole.objective_, rtol=2e-6)
    assert_allclose(blocks.predict(X), whole.predict(X), atol=1e-2)
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
    for cls in (MaxMarginRegressor, MomentumMarginClassifier):
        with pytest.raises(ValueError, match="blocks need kernel='linear'"):
            cls(kernel="rbf").fit_blocks([(X, y)])
    with pytest.raises(ValueError, match="all sample weights are 0"):
        MaxMarginRegressor().fit_blocks([(X, y, np.zeros(20)), (X, y, np.zeros(20))])


class Made:
    """Blocks that are made anew when they are asked for: 20 of 2500 x 35, 14 MB together."""

    def __iter__(self):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((2500, 35))
            yield X, (X[:, 0] + 0.1 * X[:, 1] ** 2 > 0.0).astype(int)


def peak_of(call, *arguments, **more):
    """What a call returns, and the largest memory that it took."""
    tracemalloc.start()
    try:
        return call(*arguments, **more), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_checks_take_little_more_memory_than_fits():
    clf = MaxMarginClassifier(C=1.0)
    _, of_fit = peak_of(clf.fit_blocks, Made())
    check, of_check = peak_of(check_certificate, clf, Made())
    assert check
    assert of_check <= of_fit + 3e6
    assert of_check <= 14e6
    few = MaxMarginClassifier(C=1.0).fit_blocks(Few())
    check, of_exact = peak_of(check_certificate, few, Few(), exact=True)
    assert check
    assert of_exact <= 30e6  # fractions take a hundred bytes a number


class Few(Made):
    def __iter__(self):
        return ((X[:100], y[:100]) for X, y in super().__iter__())


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
        (
            Once(good),
            "the source changed .*: block 2 of pass 2 is not .*: it is missing",
        ),
    ]


@pytest.mark.parametrize(
    ("source", "text"), bad_sources(), ids=lambda value: str(value)[:12]
)
def test_bad_sources(source, text):
    clf = MomentumMarginClassifier()
    with pytest.raises((ValueError, TypeError), match=text):
        clf.fit_blocks(source)
    assert [
        name for name in vars(clf) if name.endswith("_") and not name.startswith("_")
    ] == []


@pytest.mark.parametrize("cls", IN_MEMORY)
def test_those_that_need_all_in_memory_say_so(cls):
    with pytest.raises(ValueError, match="use fit, or MaxMarginClassifier"):
        make(cls).fit_blocks([])


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
    assert blocks.margin_ == pytest.approx(
        MaxMarginClassifier(C=C).fit(X, y).margin_, rel=2e-6
    )
    assert source.passes <= most


@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(C=1.0),
        slow(MaxMarginClassifier(C=1.0, loss="hinge")),
        MomentumMarginClassifier(C=1.0),
    ],
)
def test_memory_of_a_fit_beyond_the_examples(model, in_blocks, rng):
    """As docs/scaling.rst says: less than 200 bytes an example, and no copy of X but the support.

    A copy of X would be 480 bytes an example; some blocks are 8 MiB.
    """
    n = 100_000
    X = rng.standard_normal((n, 60))
    y = (X[:, 0] + 0.1 * rng.standard_normal(n) > 0.0).astype(int)  # little support
    blocks = cut(X, y, [10_000] * 10)
    model = clone(model).set_params(max_iter=10)
    fits = {True: lambda: model.fit_blocks(blocks), False: lambda: model.fit(X, y)}
    fits[in_blocks]()  # modules and compiled code are there
    tracemalloc.start()
    fits[in_blocks]()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    support = 0 if in_blocks else getattr(model, "support_vectors_", X[:0]).nbytes
    assert peak - support < 200 * n + 2**23


def test_passes_of_an_interior_point_iteration(rng):
    X = rng.standard_normal((15_000, 20))
    y = (X[:, 0] + rng.standard_normal(len(X)) > 0.0).astype(int)
    passes = []
    for max_iter in (3, 5):
        source = Counted(cut(X, y, [5000, 10_000]))
        MaxMarginClassifier(C=1.0, max_iter=max_iter).fit_blocks(source)
        passes.append(source.passes)
    assert passes[1] - passes[0] == 2 * 4


@pytest.mark.parametrize("how", ["hinge", "nu", "interval"])
def test_the_first_direction_of_an_interior_point_by_one_pass(how, rng):
    """It is that by products with the examples in memory, and its pass gives all values."""
    X = rng.standard_normal((300, 4)) + 2.0
    y = X[:, 0] + rng.standard_normal(300)
    source = Counted(cut(X, y, [100, 200]))
    of, _, _ = Source(source).read()
    found = []
    for matrix in (X, of(np.arange(300))):
        design = Design.of(matrix, X.mean(axis=0), radius=3.0)
        if how == "interval":
            qp = regression(design, y - 0.1, y + 0.1, C=2.0)
        else:
            nu = 0.5 if how == "nu" else None
            codes = (y > 2.0).astype(int)
            qp = classification(design, codes, 2, C=2.0, loss="hinge", nu=nu)
        system = Features(qp)
        n = len(qp.rows.ids)
        x = np.linspace(-1.0, 1.0, len(system.R))
        u, h, goal = np.linspace(0.5, 2.0, 3 * n).reshape(3, n)
        source.passes = 0
        values, fall, _, first = system.begun(x, u, RowWeights(h), goal)
        found.append(np.concatenate([values, fall, *first]))
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)
    assert source.passes == (3 if how == "nu" else 2)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("cls", [MomentumMarginClassifier, OptimisticPerceptron])
def test_a_round_is_one_pass(cls, k):
    X, y = make_blobs(300, 5, centers=k, cluster_std=0.5, random_state=0)
    passes = []
    for max_iter in (5, 25):
        source = Counted(cut(X, y, [100, 200]))
        cls(max_iter=max_iter, tol=0).fit_blocks(source)
        passes.append(source.passes)
    assert passes[1] - passes[0] == 20


@pairwise(cls=some_slow(ESTIMATORS), kind=[np.uint8, slow(np.int32), np.float16])
def test_memory_maps_of_other_numbers_are_not_copied_whole(
    cls, kind, rng, tmp_path, monkeypatch
):
    """They are converted a few rows at a time, where the algorithm can read blocks."""
    monkeypatch.setattr(inputs, "CONVERTED_BYTES", 8 * 5 * 7)  # seven rows
    X, y = separable(rng)
    X = np.round(20.0 * (X - X.min()))
    np.save(tmp_path / "X.npy", X.astype(kind))
    X_mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    weight = rng.integers(0, 3, len(y))
    model, expected = (fit(make(cls, max_iter=30), Z, y, weight) for Z in (X_mapped, X))
    same_fit(model, expected)
    scores = model.decision_function(X_mapped), expected.decision_function(X)
    assert_allclose(*scores, rtol=1e-9, atol=1e-9)
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
    X, weight = (
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        2.0 if form == "one weight" else None,
    )
    y = {"list": y.tolist(), "column": y[:, None], "text": np.where(y, "a", "b")}.get(
        form, y
    )
    mapped_fit, whole = (
        MaxMarginClassifier().fit(A, y, weight) for A in (X, np.array(X))
    )
    assert_allclose(mapped_fit.margin_, whole.margin_, rtol=1e-6)
    assert_array_equal(mapped_fit.classes_, whole.classes_)
    for wrong in (y[:10], None):
        with pytest.raises(
            ValueError, match=r"inconsistent numbers|requires y to be passed"
        ):
            MaxMarginClassifier().fit(X, wrong)


def many(rng):
    """More examples than fit into a processor's cache, 34 MB: compiled loops may pass over them."""
    X, y = rng.standard_normal((17_000, 250)), np.arange(17_000) % 2
    X[np.arange(17_000), y] += 3.0
    return X, y


def in_memory_and_in_halves(X, y, **params):
    clf = MomentumMarginClassifier(tol=0.0, **params)
    return clone(clf).fit(X, y), clf.fit_blocks(cut(X, y, [8500, 8500]))


def test_fits_do_not_depend_on_the_number_of_threads(rng):
    X, y = many(rng)
    memory, blocks = in_memory_and_in_halves(X, y, C=1.0, max_iter=3)
    assert_allclose(blocks.coef_, memory.coef_, rtol=1e-8, atol=1e-12)
    assert_allclose(blocks.margin_bound_, memory.margin_bound_, rtol=1e-9)
    for n_threads in (2, 4):
        with threadpool_limits(n_threads):
            clf = MomentumMarginClassifier(C=1.0, max_iter=3, tol=0.0).fit(X, y)
        for name in ("coef_", "margin_", "margin_bound_"):
            assert_array_equal(getattr(clf, name), getattr(memory, name))


def test_exponents_may_rise_by_thousands(rng):
    """From one part of a pass to the next and within one; sums so far then count for nothing."""
    X, y = many(rng)
    order = np.argsort(-X[:, 0] - X[:, 1])
    params = {"step": 1e4, "momentum": None, "max_iter": 2}
    memory, blocks = in_memory_and_in_halves(X[order], y[order], **params)
    assert np.isfinite(memory.coef_).all()
    scale = np.abs(memory.coef_).max()
    assert_allclose(blocks.coef_, memory.coef_, rtol=0, atol=1e-7 * scale)
