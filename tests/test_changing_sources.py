"""Sources that change or fail between passes: none is certified by it, and no fit is lost."""

import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.estimators import quiet
from helpers.pairwise import pairwise
from sklearn.base import clone
from sklearn.datasets import make_blobs

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    check_certificate,
)
from marginsvm.problem import checksums, source
from marginsvm.problem.checksums import of_words

PASS = 60  # in which something happens
FITS = {
    "exact": MaxMarginClassifier(loss="hinge", C=1.0, warm_start=True),
    "momentum": MomentumMarginClassifier(C=1.0, warm_start=True, max_iter=100, tol=0),
}


def sign(X):
    return -X


def one_number(X):
    X = X.copy()
    X.flat[X.size // 2] += 1e-3
    return X


def order(X):
    return X[::-1]


def nan(X):
    X = X.copy()
    X[: len(X) // 2] = np.nan
    return X


def a_column_less(X):
    return X[:, 1:]


CHANGES = [sign, one_number, order, nan, a_column_less]
ERRORS = [ValueError, EOFError, MemoryError, OSError, KeyboardInterrupt]


class Hooked:
    """A source that does something to its second block, in a pass of a number or from it on."""

    def __init__(self, blocks, fault, *, once=False, at=PASS):
        self.blocks, self.fault, self.once, self.at = blocks, fault, once, at
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        due = self.passes == self.at if self.once else self.passes >= self.at
        for number, (X, y) in enumerate(self.blocks):
            if number == 1 and due and isinstance(self.fault, type):
                raise self.fault("the disk is gone")
            yield (self.fault(X) if number == 1 and due else X), y


@pytest.fixture(scope="module")
def blocks():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 200))
    scores = X @ rng.standard_normal(200) + 15.0 * rng.standard_normal(1500)
    y = (scores > 0.0).astype(int)
    return [(X[i : i + 500], y[i : i + 500]) for i in range(0, 1500, 500)]


@pytest.fixture(scope="module")
def wholes(blocks):
    """The fits without a fault."""
    found = {}
    for name, estimator in FITS.items():
        source = Hooked(blocks, None, at=np.inf)
        with quiet():
            found[name] = clone(estimator).fit_blocks(source)
        assert source.passes > PASS, source.passes
    return found


def kept(estimator, blocks):
    """Whether the fit so far was kept, with bounds of the data of the first pass."""
    assert estimator.status_ == "interrupted"
    assert estimator.n_iter_ >= 1
    assert np.isfinite(estimator.coef_).all()
    assert check_certificate(estimator, blocks)


def goes_on(estimator, whole, blocks):
    """It continues to the results of the fit that was left in peace."""
    if whole.status_ == "max_iter":
        with quiet():
            estimator.fit_blocks(blocks)
        np.testing.assert_array_equal(estimator.coef_, whole.coef_)
        assert estimator.margin_bound_ == whole.margin_bound_
        assert estimator.n_iter_ == whole.n_iter_
    else:
        assert estimator.fit_blocks(blocks).status_ == "certified"
        np.testing.assert_allclose(estimator.margin_, whole.margin_, rtol=1e-8)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", FITS)
def test_changed_data_are_noticed(name, change, blocks, wholes):
    estimator = clone(FITS[name])
    source = Hooked(blocks, change)
    with pytest.raises(ValueError, match=f"block 1 of pass {PASS} ") as caught:
        estimator.fit_blocks(source)
    assert "the source changed between two passes" in str(caught.value)
    kept(estimator, blocks)
    goes_on(estimator, wholes[name], blocks)


@pytest.mark.parametrize("once", [False, slow(True)])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
@pytest.mark.parametrize("name", FITS)
def test_whatever_ends_a_fit_keeps_it(name, error, once, blocks, wholes):
    estimator = clone(FITS[name])
    source = Hooked(blocks, error, once=once)
    with pytest.raises(error, match="the disk is gone"):
        estimator.fit_blocks(source)
    assert source.passes == PASS  # what is published needs no other
    kept(estimator, blocks)
    goes_on(estimator, wholes[name], blocks)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("at", [4, slow(30)])
def test_what_is_certified_is_true_of_the_first_pass(name, change, at, blocks):
    """Also where a change lasts for one pass."""
    estimator = clone(FITS[name]).set_params(max_iter=70, tol=1e-2)
    said = "the source changed between two passes"
    with pytest.raises(ValueError, match=said), quiet():
        estimator.fit_blocks(Hooked(blocks, change, once=True, at=at))
    if hasattr(estimator, "status_"):
        assert check_certificate(estimator, blocks)


@pairwise(C=[np.inf, 1.0], loss=["hinge", "squared_hinge"], k=[2, 3])
def test_a_model_without_bounds_claims_nothing(k, loss, C):
    X, y = make_blobs(300, 5, centers=k, cluster_std=3.0, random_state=1)
    blocks = [(X[:100], y[:100]), (X[100:], y[100:])]
    clf = MaxMarginClassifier(C=C, loss=loss, warm_start=True)
    passes = Hooked(blocks, None, at=np.inf)
    whole = clone(clf).fit_blocks(passes)
    some = 0
    for at in np.linspace(4, passes.passes, 4).astype(int):
        model = clone(clf)
        with pytest.raises(OSError, match="the disk is gone"):
            model.fit_blocks(Hooked(blocks, OSError, at=at))
        if hasattr(model, "status_"):
            kept(model, blocks)
            assert model.margin_ <= whole.margin_bound_ * (1 + 1e-12)
            assert model.margin_bound_ >= whole.margin_ * (1 - 1e-12)
            some += 1
            goes_on(model, whole, blocks)
    assert some or k == 2  # of two classes, an error may come before the first model


@pytest.mark.parametrize("params", [{}, {"nu": 0.3}, {"C": np.inf, "epsilon": 2.0}])
def test_regressors_are_kept(params, rng):
    X = rng.standard_normal((300, 4)) + 3.0
    Y = X @ rng.standard_normal((4, 2)) + 0.3 * rng.standard_normal((300, 2))
    blocks = [(X[:100], Y[:100]), (X[100:], Y[100:])]
    reg = MaxMarginRegressor(warm_start=True, **params)
    passes = Hooked(blocks, None, at=np.inf)
    whole = clone(reg).fit_blocks(passes)
    some = 0
    for at in np.linspace(4, passes.passes, 4).astype(int):
        model = clone(reg)
        with pytest.raises(OSError, match="the disk is gone"):
            model.fit_blocks(Hooked(blocks, OSError, at=at))
        if hasattr(model, "status_"):
            some += 1
            kept(model, blocks)
            model.fit_blocks(blocks)
            np.testing.assert_allclose(model.objective_, whole.objective_, rtol=1e-5)
    assert some


@pytest.mark.parametrize("shape", [(4096, 8), (1000, 7), (3, 1)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("how", [of_words, zlib.crc32])
def test_a_checksum_sees_values_signs_and_order(how, kind, dtype, shape, monkeypatch):
    monkeypatch.setattr(checksums, "of_words", how)
    X = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    others = [X, -X, X * 0.5, X[::-1], np.roll(X, 1, axis=0)]
    some = [*range(0, X.size, max(1, X.size // 20)), X.size - 1]
    for i in some:
        others += [X.copy(), X.copy()]
        others[-1].flat[i] *= -1.0
        others[-2].flat[i] = np.nextafter(X.flat[i], dtype(9.0))
    for i, j in [(0, 1), (0, len(X) // 2), (0, len(X) // 4)]:
        swapped, flipped = X.copy(), X.copy()
        swapped[[i, j]] = X[[j, i]]
        flipped[[i, j]] *= -1.0
        others += [swapped, flipped] if i != j else []
    sums = [source.checksum(kind(other)) for other in others]
    different = {other.tobytes() for other in others}
    assert len(set(sums)) == len(different)
    assert sums == [source.checksum(kind(other.copy())) for other in others]


def test_sparse_blocks(blocks):
    rows = [(sp.csr_array(np.where(abs(X) > 1, X, 0.0)), y) for X, y in blocks]

    def other_column(X):
        X = X.copy()
        X.indices[X.nnz // 2] = -7
        return X

    estimator = clone(FITS["momentum"])
    with pytest.raises(ValueError, match=r"block 1 of pass 60 .* no valid CSR matrix"):
        estimator.fit_blocks(Hooked(rows, other_column))
    kept(estimator, rows)


def test_memory_that_runs_out_in_memory(rng, monkeypatch):
    """The model is kept, whether its bounds can still be proved or not."""
    X, y = make_blobs(200, 5, centers=2, cluster_std=3.0, random_state=0)
    for lasting in (False, True):
        clf, calls = MomentumMarginClassifier(C=1.0, tol=0), []
        step = type(clf._algorithm()).step

        def failing(self, problem, state, step=step, calls=calls, lasting=lasting):
            calls.append(1)
            if len(calls) < 20:
                return step(self, problem, state)
            if lasting:
                monkeypatch.setattr(type(problem), "_scores", out_of_memory)
            raise MemoryError("no memory is left")

        with monkeypatch.context() as patch:
            patch.setattr(type(clf._algorithm()), "step", failing)
            with pytest.raises(MemoryError):
                clf.fit(X, y)
        monkeypatch.undo()
        assert (clf.status_, clf.n_iter_) == ("interrupted", 19)
        assert check_certificate(clf, X, y)


def out_of_memory(self, *arguments, **more):
    raise MemoryError("no memory is left")
