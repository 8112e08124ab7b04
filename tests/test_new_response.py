"""A loss that the package does not have: one class here, and it is played wherever examples are."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
from helpers.cluster import FakeClient
from helpers.pairwise import pairwise
from helpers.vectors import flat
from sklearn.base import clone
from sklearn.datasets import make_blobs

from marginsvm import MomentumMarginClassifier, check_certificate
from marginsvm.certify.bounds import upper_bound
from marginsvm.data import memory
from marginsvm.data.cluster import Chunk, RemoteStore
from marginsvm.kernel_matrix import LazyWeightsAdapter, LinearAdapter, make_rows
from marginsvm.responses import OnePassAnswer, OnePassResponse, Response, Weights, softmax


class HingeSums(NamedTuple):
    low: float
    hinge: float
    squares: float
    image: np.ndarray | None


@dataclass(frozen=True)
class SquaredHinge:
    """Weights ``max(0, level - margin / mu)``, for rows without an intercept.

    Their mass is not 1: nothing may rely on that.
    """

    level: float = 1.0
    mass: float = 1.0

    def _hinge(self, rows, block, margins, mu):
        gap = np.maximum(self.level - margins / mu, 0.0)
        return rows.weighted(gap, block), rows.weighted(gap**2, block)

    def respond(self, rows, margins, mu):
        whole = slice(None)
        best = self.finish(rows, self.block_sums(rows, whole, None, margins, mu), mu)
        q = self.block_weights(rows, whole, margins, mu, best.parameters)
        return replace(best.weights, q=q)

    def block_sums(self, rows, block, X, margins, mu):
        hinge, squares = self._hinge(rows, block, margins, mu)
        image = None if X is None else rows.group_products(hinge, X, block)
        return HingeSums(margins.min(), hinge.sum(), squares.sum(), image)

    def merge(self, one, other):
        image = None if one.image is None else one.image + other.image
        low, hinge = min(one.low, other.low), one.hinge + other.hinge
        return HingeSums(low, hinge, one.squares + other.squares, image)

    def finish(self, rows, sums, mu):
        factor = self.mass / sums.hinge
        image = sums.image
        if image is not None:
            image = rows.sum_of_groups(image, np.array([[factor]]))
        log_risk = np.log(0.5 * sums.squares / rows.total_weight)
        gradient_mass = sums.hinge / rows.total_weight
        weights = Weights(np.empty(0), self.mass, sums.low, np.zeros(1), log_risk, gradient_mass)
        return OnePassAnswer(image, weights, factor)

    def block_weights(self, rows, block, margins, mu, parameters):
        return parameters * self._hinge(rows, block, margins, mu)[0]


@dataclass(frozen=True)
class Tempered:
    """The softmax of another temperature, which balances its groups with an intercept, too."""

    temperature: float

    def respond(self, rows, margins, mu):
        return softmax.respond(rows, margins, self.temperature * mu)

    def block_sums(self, rows, block, X, margins, mu):
        return softmax.block_sums(rows, block, X, margins, self.temperature * mu)

    def merge(self, one, other):
        return softmax.merge(one, other)

    def finish(self, rows, sums, mu):
        return softmax.finish(rows, sums, self.temperature * mu)

    def block_weights(self, rows, block, margins, mu, parameters):
        return softmax.block_weights(rows, block, margins, self.temperature * mu, parameters)


class AllMargins:
    """The same, but it has to see all margins at once."""

    def respond(self, rows, margins, mu):
        return softmax.respond(rows, margins, 0.2 * mu)


def remote(X, codes, k, balanced, weights):
    """The examples in chunks of several sizes, on two workers."""
    client, held, sizes = FakeClient({"ann": 2, "bob": 1}), [], np.array([10, 1, 40, 69])
    for i, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
        part = slice(end - size, end)
        own = None if weights is None else weights[part]
        rows = make_rows(codes[part], k, balanced=balanced, weights=own)
        held.append(client.scatter(Chunk(X[part], rows), "ann" if i % 2 else "bob"))
    return RemoteStore(client, held, sizes, X.shape[1], X.dtype, sparse=False)


CASES = [
    (SquaredHinge(3.0), 2, False),
    (SquaredHinge(3.0, mass=2.5), 3, False),
    (Tempered(0.2), 2, False),
    (Tempered(0.2), 2, True),
    (Tempered(0.2), 4, True),
]


def examples(k, weighted):
    X, codes = make_blobs(120, 5, centers=k, cluster_std=0.4, random_state=3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 120) if weighted else None
    return X, codes, weights


def play(data, response, rounds=6):
    """A few steps towards the best responses."""
    w, responses = data.zeros(), []
    for _ in range(rounds):
        responses.append(data.respond(w, 0.5, response))
        w = w + responses[-1].vector
    return w, responses


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("response", "k", "balanced"), CASES, ids=str)
def test_blocks_equal_one_block(response, k, balanced, weighted, monkeypatch):
    X, codes, weights = examples(k, weighted)
    rows = make_rows(codes, k, balanced=balanced, weights=weights)
    whole = LinearAdapter(X, rows)
    monkeypatch.setattr(memory, "_BLOCK_BYTES", 500)
    blocks = LinearAdapter(X, rows)
    assert blocks._store.one_pass
    assert not whole._store.one_pass
    assert isinstance(response, OnePassResponse)
    for a, b in zip(play(whole, response)[1], play(blocks, response)[1], strict=True):
        np.testing.assert_allclose(flat(a.vector), flat(b.vector), atol=1e-12)
        for name in ("mass", "min_margin", "offsets", "log_risk", "gradient_mass"):
            mine, theirs = getattr(a.weights, name), getattr(b.weights, name)
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


@pairwise(
    of={str(i): case for i, case in enumerate(CASES)},
    weighted=[False, True],
    few_groups=[True, False],
)
def test_a_cluster_equals_memory(of, weighted, few_groups, monkeypatch):
    """Also where the images of all groups would be too large to be sent."""
    response, k, balanced = of
    X, codes, weights = examples(k, weighted)
    rows = make_rows(codes, k, balanced=balanced, weights=weights)
    store = remote(X, codes, k, balanced, weights)
    memory_ = LinearAdapter(X, rows)
    far = LazyWeightsAdapter(store, rows, capacity=8)
    monkeypatch.setattr(far._rounds, "reads_once", few_groups)
    (w, responses), (u, others) = play(memory_, response), play(far, response)
    for a, b in zip(responses, others, strict=True):
        assert b.weights.q.size == 0
        assert a.weights.mass == b.weights.mass == b.vector.mass
        np.testing.assert_allclose(a.vector.image, b.vector.image, atol=1e-10)
        np.testing.assert_allclose(a.weights.log_risk, b.weights.log_risk, atol=1e-10)
    np.testing.assert_allclose(w.coef, far.weights(u), atol=1e-10)
    np.testing.assert_allclose(upper_bound(memory_, w), upper_bound(far, u), atol=1e-10)


def test_a_response_to_all_margins_is_played_on_a_cluster_too():
    X, codes, _ = examples(3, weighted=False)
    rows = make_rows(codes, 3, balanced=True)
    far = LazyWeightsAdapter(remote(X, codes, 3, True, None), rows, capacity=8)
    assert isinstance(AllMargins(), Response)
    assert not isinstance(AllMargins(), OnePassResponse)
    w, _ = play(LinearAdapter(X, rows), AllMargins())
    u, _ = play(far, AllMargins())
    np.testing.assert_allclose(w.coef, far.weights(u), atol=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.xdist_group("dask")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_an_estimator_fits_with_it_on_a_cluster(fit_intercept, k, monkeypatch):
    distributed = pytest.importorskip("distributed")
    import dask.array as da

    from marginsvm.dask import DaskMargin

    played = []
    respond = LazyWeightsAdapter.respond
    monkeypatch.setattr(
        LazyWeightsAdapter,
        "respond",
        lambda self, w, mu, response: played.append(response) or respond(self, w, mu, response),
    )
    X, y, _ = examples(k, weighted=False)
    loss = Tempered(0.5) if fit_intercept else SquaredHinge(50.0)
    estimator = MomentumMarginClassifier(
        loss=loss, max_iter=12, tol=0.0, fit_intercept=fit_intercept
    )
    alone = clone(estimator).fit(X, y)
    dX, dy = da.from_array(X, chunks=(35, 5)), da.from_array(y, chunks=35)
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as client:
        local = DaskMargin(estimator, client=client).fit(dX, dy).to_local()
    assert played == [loss] * 12
    for name in ("margin_", "margin_bound_", "coef_", "intercept_"):
        np.testing.assert_allclose(getattr(alone, name), getattr(local, name), rtol=1e-9, atol=1e-9)
    assert check_certificate(local, X, y)
