"""Fits on a cluster: the same rounds, the same bounds, and clear errors."""

import gc
import os
import pickle
import signal
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import IN_MEMORY, AtRound, make, overlapping, same_fit
from helpers.fresh import python
from helpers.pairwise import pairwise
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from marginsvm import (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    NesterovSchedule,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    check_certificate,
)

pytest.importorskip("distributed")
import cloudpickle
import dask.array as da
import dask.dataframe as dd
import joblib
import pandas as pd
from distributed import Client, LocalCluster
from distributed.protocol import serialize

from marginsvm import dask as module
from marginsvm.dask import DaskBlocks, DaskMargin, _chunk
from marginsvm.estimators.fit_blocks import look
from marginsvm.problem.matrix import as_matrix

pytestmark = [
    pytest.mark.slow,  # the cluster starts for seconds
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.xdist_group("dask"),
]


TWO = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}


@pytest.fixture(scope="module")
def client():
    """Two workers in this process, on loopback."""
    with LocalCluster(processes=False, **TWO) as cluster, Client(cluster) as client:
        yield client


def blobs(k, n=150, cluster_std=0.4):
    return make_blobs(n, 5, centers=k, cluster_std=cluster_std, random_state=3)


NORMALIZED = {
    f"normalized, C={C}, {'with' if fit_intercept else 'without'} b": SmoothedKernelPerceptron(
        normalize=True, fit_intercept=fit_intercept, C=C, max_iter=12
    )
    for C in (np.inf, 1.0)
    for fit_intercept in (False, True)
}


@pairwise(
    estimator={
        "exact": MaxMarginClassifier(),
        "exact, soft": MaxMarginClassifier(C=1.0),
        "momentum": MomentumMarginClassifier(tol=1e-2),
        "momentum, soft, without b": MomentumMarginClassifier(
            max_iter=12, C=1.0, fit_intercept=False
        ),
        "logistic": MomentumMarginClassifier(max_iter=10, loss="logistic"),
        "a share": MomentumMarginClassifier(nu=0.3, tol=1e-2),
        "optimistic": OptimisticPerceptron(max_iter=12),
        "optimistic, soft": OptimisticPerceptron(C=1.0, max_iter=12),
        "smoothed": SmoothedKernelPerceptron(max_iter=12),
        "smoothed, soft": SmoothedKernelPerceptron(C=1.0, max_iter=12),
        "weights of classes": MomentumMarginClassifier(
            max_iter=12, C=0.7, class_weight={0: 0.2, 1: 3.0}
        ),
        "balanced": MaxMarginClassifier(C=0.7, class_weight="balanced"),
        **NORMALIZED,
    },
    kind=["dense", "csr", "weights", "integer", "classes apart", "overlap"],
    k=[2, 3],
    chunks={str(sizes): sizes for sizes in [(150,), (10, 40, 70, 30), (1, 0, 149)]},
)
def test_a_cluster_equals_memory(client, estimator, kind, k, chunks):
    X, y = blobs(k, cluster_std=3.0 if kind == "overlap" else 0.4)
    if kind == "classes apart":
        X, y = X[np.argsort(y)], np.sort(y)
    X, weight, given = (
        np.rint(10 * X).astype(int) if kind == "integer" else X,
        None,
        None,
    )
    dX, dy = da.from_array(X, chunks=(chunks, 2)), da.from_array(y, chunks=45)
    if kind == "csr":
        X, dX = sp.csr_array(X), dX.rechunk({1: 5}).map_blocks(sp.csr_array)
    if kind == "weights":
        weight = np.random.default_rng(1).integers(0, 4, 150).astype(float)
        given = da.from_array(weight, chunks=100)
    local = DaskMargin(estimator, client=client).fit(dX, dy, given).to_local()
    assert check_certificate(local, X, y, weight)
    memory = clone(estimator).fit(X, y, weight)
    if not isinstance(estimator, MaxMarginClassifier):
        same_fit(memory, local, 1e-8)
        return
    assert local.status_ == memory.status_
    np.testing.assert_allclose(local.margin_, memory.margin_, rtol=2e-6)


def test_dataframes_and_lazy_predictions(client):
    X, y = load_iris(return_X_y=True, as_frame=True)
    y = y.map(dict(enumerate("abc")))
    dX, dy = dd.from_pandas(X, npartitions=4), dd.from_pandas(y, npartitions=4)
    clf = DaskMargin(MaxMarginClassifier(C=1.0), client=client).fit(dX, dy)
    local = MaxMarginClassifier(C=1.0).fit(X, y)
    same_fit(local, clf.to_local(), 1e-8)
    assert list(clf.to_local().feature_names_in_) == list(X)
    lazy = clf.predict(dX)
    assert isinstance(lazy, dd.Series)
    pd.testing.assert_series_equal(
        lazy.compute(),
        pd.Series(local.predict(X), X.index),
        check_dtype=False,
        check_names=False,
    )
    F = clf.decision_function(dX)
    assert list(F.columns) == ["a", "b", "c"]
    np.testing.assert_allclose(F.compute(), local.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(clf.predict(X), local.predict(X))


def test_arrays_predict_lazily(client):
    X, y = blobs(3)
    dX = da.from_array(X, chunks=(40, 5))
    clf = DaskMargin(MaxMarginClassifier(), client=client).fit(
        dX, da.from_array(y, chunks=40)
    )
    assert isinstance(clf.predict(dX), da.Array)
    np.testing.assert_array_equal(clf.predict(dX).compute(), clf.to_local().predict(X))
    F = clf.decision_function(dX)
    assert F.shape == (150, 3)
    np.testing.assert_array_equal(F.compute(), clf.to_local().decision_function(X))
    again = pickle.loads(pickle.dumps(clf.to_local()))
    np.testing.assert_array_equal(again.predict(X), clf.to_local().predict(X))


def test_what_a_round_sends_is_a_number_for_each_example(client, monkeypatch):
    """Beside O(k d) numbers to and from the driver."""
    sent, each = [], module._Chunks.each

    def counted(self, work, *local, **join):
        arrays = [a for a in local if isinstance(a, np.ndarray)]
        result = each(self, work, *local, **join)
        sent.append(len(cloudpickle.dumps((work, arrays, result))))
        return result

    monkeypatch.setattr(module._Chunks, "each", counted)
    most = []
    for n in (200, 20_000):
        X, y = blobs(2, n)
        dX, dy = da.from_array(X, chunks=(n // 4, 5)), da.from_array(y, chunks=n // 4)
        estimator = MomentumMarginClassifier(max_iter=10, tol=0)
        sent.clear()
        DaskMargin(estimator, client=client).fit(dX, dy)
        most.append(sent[5])
    assert most[1] - most[0] <= 8 * (20_000 - 200) + 1000
    assert most[0] < 10_000


def bad():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    nan = X.copy()
    nan[35, 2] = np.nan

    def arrays(X, y, rows=10):
        return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(
            y, chunks=rows
        )

    unknown = arrays(X, y)[0]
    kinds = arrays(X, y)[0].map_blocks(
        lambda block, block_id: sp.csr_array(block) if block_id[0] >= 5 else block,
        meta=X[:0],
    )
    return [
        (*arrays(nan, y), "block 3: .*NaN"),
        (
            unknown[unknown[:, 0] > 5.0],
            arrays(X, y)[1],
            "unknown sizes: call X.compute_chunk",
        ),
        (
            arrays(X, y)[0],
            arrays(X, y[:80])[1],
            "X has 100 rows, but y or sample_weight 80",
        ),
        (kinds, arrays(X, y)[1], "block 5: its kind of matrix is sparse"),
        (*arrays(X, np.zeros(100)), "at least 2 classes"),
        (X, y, "must be dask collections"),
    ]


@pytest.mark.parametrize(("X", "y", "text"), bad(), ids=lambda value: str(value)[:20])
def test_bad_input(client, X, y, text):
    clf = DaskMargin(MomentumMarginClassifier(), client=client)
    with pytest.raises((ValueError, TypeError), match=text):
        clf.fit(X, y)
    assert not hasattr(clf, "estimator_")


@pytest.mark.parametrize("cls", IN_MEMORY)
def test_those_that_go_row_by_row_say_so(client, cls):
    with pytest.raises(ValueError, match="needs them in memory"):
        DaskMargin(make(cls), client=client).fit(None, None)


def test_the_certificate_checks_with_the_chunks_as_source(client):
    X, y = blobs(2)
    dX, dy = da.from_array(X, chunks=(40, 5)), da.from_array(y, chunks=40)
    local = DaskMargin(MaxMarginClassifier(), client=client).fit(dX, dy).to_local()
    assert check_certificate(local, DaskBlocks(dX, dy))
    same_fit(MaxMarginClassifier().fit_blocks(DaskBlocks(dX, dy)), local)


def test_a_grid_search_on_the_cluster(client):
    """Needs nothing of ours."""
    X, y = blobs(2)
    grid = {"momentum": [None, "nesterov", NesterovSchedule()], "step": [0.5, 1.0]}
    search = GridSearchCV(MomentumMarginClassifier(max_iter=50), grid, cv=3)
    with joblib.parallel_config("dask", client=client):
        search.fit(X, y)
    alone = GridSearchCV(MomentumMarginClassifier(max_iter=50), grid, cv=3).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )


def test_no_client(monkeypatch):
    import distributed

    def nowhere():
        raise ValueError("no client")

    monkeypatch.setattr(distributed, "get_client", nowhere)
    X, y = blobs(2)
    dX, dy = da.from_array(X, chunks=(40, 5)), da.from_array(y, chunks=40)
    with pytest.raises(ValueError, match="there is no Dask client: start one"):
        DaskMargin(MaxMarginClassifier()).fit(dX, dy)


@pytest.mark.callbacks
def test_callbacks_are_torn_down(client):
    X, y = blobs(2)
    callback = AtRound(9)
    estimator = MomentumMarginClassifier(max_iter=3, tol=0).set_callbacks(callback)
    dX, dy = da.from_array(X, chunks=(50, 5)), da.from_array(y, chunks=50)
    DaskMargin(estimator, client=client).fit(dX, dy)
    assert callback.found
    assert callback.torn_down == 1


def kill_at_once(pid, monkeypatch):
    """Between two rounds."""
    os.kill(pid, signal.SIGKILL)


def dying(work, pid, *block):
    """Work in whose middle one of the workers dies."""
    if os.getpid() == pid:
        os.kill(pid, signal.SIGKILL)
    return work(*block)


def kill_at_work(pid, monkeypatch):
    """In the middle of the next round."""
    each = module._Chunks.each

    def deadly(self, work, *local, **join):
        return each(self, partial(dying, work, pid), *local, **join)

    monkeypatch.setattr(module._Chunks, "each", deadly)


@pytest.mark.callbacks
@pytest.mark.parametrize("kill", [kill_at_once, kill_at_work])
def test_a_killed_worker_changes_nothing(kill, monkeypatch):
    X, y = make_blobs(2000, 20, centers=2, cluster_std=4.0, random_state=1)
    estimator = MomentumMarginClassifier(max_iter=60, tol=0)
    dX, dy = da.from_array(X, chunks=(500, 20)), da.from_array(y, chunks=500)
    cluster = LocalCluster(processes=True, host="127.0.0.1", **TWO)
    with cluster, Client(cluster) as client:
        alive = DaskMargin(estimator, client=client).fit(dX, dy).to_local()
        pids = list(client.run(os.getpid).values())
        fatal = AtRound(20, lambda: kill(pids[0], monkeypatch))
        mortal = clone(estimator).set_callbacks(fatal)
        local = DaskMargin(mortal, client=client).fit(dX, dy).to_local()
        assert pids[0] not in client.run(os.getpid).values()
    same_fit(estimator.fit(X, y), local)
    for name in ("margin_", "margin_bound_", "coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(local, name), getattr(alive, name))


@pytest.mark.callbacks
def test_an_interrupted_fit_leaves_nothing_on_the_workers(client):
    X, y = blobs(2)
    dX, dy = (
        da.from_array(X, chunks=(40, 5)).persist(),
        da.from_array(y, chunks=40).persist(),
    )
    estimator = MomentumMarginClassifier(max_iter=30, tol=0)
    before = DaskMargin(estimator, client=client).fit(dX, dy).to_local()
    gc.collect()
    futures = set(client.futures)
    stopped = clone(estimator).set_callbacks(
        AtRound(3, lambda: signal.raise_signal(signal.SIGINT))
    )
    with pytest.raises(KeyboardInterrupt):
        DaskMargin(stopped, client=client).fit(dX, dy)
    gc.collect()
    assert set(client.futures) == futures
    after = DaskMargin(estimator, client=client).fit(dX, dy).to_local()
    np.testing.assert_array_equal(after.coef_, before.coef_)


def interrupt(monkeypatch, number):
    signal.raise_signal(signal.SIGINT)


def fail(monkeypatch, number):
    raise RuntimeError("a callback fails")


def failing(work, number, X, *local):
    """Work that fails on its worker, for the chunk that begins with a number."""
    if X.array[0, 0] == number:
        raise RuntimeError("a chunk cannot be computed")
    return work(X, *local)


def fail_at_work(monkeypatch, number):
    each = module._Chunks.each

    def one_fails(self, work, *local, **join):
        monkeypatch.setattr(module._Chunks, "each", each)
        return each(self, partial(failing, work, number), *local, **join)

    monkeypatch.setattr(module._Chunks, "each", one_fails)


@pytest.mark.callbacks
@pytest.mark.parametrize("happens", [interrupt, fail, fail_at_work])
@pytest.mark.parametrize("cls", [MomentumMarginClassifier, MaxMarginClassifier])
def test_a_fit_that_ends_early_is_kept_and_goes_on(happens, cls, client, monkeypatch):
    X, y = overlapping(np.random.default_rng(0), n=600, d=5)
    dX, dy = da.from_array(X, chunks=(200, 5)), da.from_array(y, chunks=200)
    estimator = cls(C=1.0, tol=1e-9, max_iter=60, warm_start=True)
    model = DaskMargin(clone(estimator), client=client)
    at_round = AtRound(2, partial(happens, monkeypatch, X[200, 0]))
    model.estimator.set_callbacks(at_round)
    with pytest.raises((KeyboardInterrupt, RuntimeError)):
        model.fit(dX, dy)
    half = model.to_local()
    assert half.status_ == "interrupted"
    assert 2 <= half.n_iter_ <= 2 + (happens is fail_at_work)  # it may end its round
    assert check_certificate(half, X, y)
    assert model.predict(X).shape == y.shape
    whole = model.set_params(estimator=estimator).fit(dX, dy).to_local()
    assert check_certificate(whole, X, y)
    assert whole.history_["n_iter"].tolist()[:2] == [1, 2]
    assert whole.n_iter_ > 2
    fresh = DaskMargin(estimator, client=client).fit(dX, dy).to_local()
    if cls is MomentumMarginClassifier:
        np.testing.assert_array_equal(whole.coef_, fresh.coef_)
    assert whole.status_ == fresh.status_
    other = cls(C=2.0, warm_start=True)
    assert model.set_params(estimator=other).fit(dX, dy).estimator_.C == 2.0


@pytest.mark.callbacks
def test_a_fit_that_fails_before_its_first_round_leaves_the_last_one(client):
    X, y = blobs(2)
    dX, dy = da.from_array(X, chunks=(40, 5)), da.from_array(y, chunks=40)
    model = DaskMargin(MaxMarginClassifier(warm_start=True), client=client).fit(dX, dy)
    last = model.estimator_
    with pytest.raises(ValueError, match="other classes"):
        model.fit(dX, dy + 1)
    assert model.estimator_ is last
    model.set_params(estimator=MomentumMarginClassifier(warm_start=True)).fit(dX, dy)
    assert check_certificate(model.to_local(), X, y)


def test_warnings_name_the_users_line(client):
    X, y = blobs(2, cluster_std=2.0)
    dX, dy = da.from_array(X, chunks=(40, 5)), da.from_array(y, chunks=40)
    model = DaskMargin(MomentumMarginClassifier(C=1.0, max_iter=3), client=client)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(dX, dy)
    assert {warning.filename for warning in caught} == {__file__}


def test_an_asynchronous_client_is_refused(client):
    X, y = blobs(2)
    dX, dy = da.from_array(X, chunks=(40, 5)), da.from_array(y, chunks=40)

    async def fit_on_the_loop():
        DaskMargin(MomentumMarginClassifier(), client=client).fit(dX, dy)

    with pytest.raises(
        ValueError, match="this client is asynchronous where it is called"
    ):
        client.sync(fit_on_the_loop)


def test_without_dask_the_package_works_and_says_what_is_missing():
    code = (
        "import sys; sys.modules['dask'] = None; import marginsvm\n"
        "try:\n    import marginsvm.dask\n"
        "except ImportError as error:\n    print(error)"
    )
    assert "pip install 'marginsvm[dask]'" in python("-c", code)


def test_chunks_that_are_computed_again_must_be_the_same():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    checked, other = (look("MaxMarginClassifier", 3, (a, y)) for a in (X, -X))
    digest = checked[1].digest
    np.testing.assert_array_equal(_chunk(checked, digest, None, X.dtype).array, X)
    with pytest.raises(ValueError, match="block 3 is not what it was"):
        _chunk(other, digest, None, X.dtype)


def test_a_round_is_one_message_for_a_task(rng):
    """Dask's cost of a message grows with the number of its arrays."""
    chunks = [as_matrix(rng.standard_normal((3, 2))) for _ in range(50)]
    V = rng.standard_normal((150, 1))
    found = module._each(lambda X, V, none: X.adjoint(V), list, chunks, V, None)
    assert len(serialize(found)[1]) == 1
    for i, (one,) in enumerate(pickle.loads(found)):
        some = slice(3 * i, 3 * i + 3)
        np.testing.assert_array_equal(one, chunks[i].adjoint(V[some]))
