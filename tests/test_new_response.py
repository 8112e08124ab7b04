"""A loss that the package does not have: one class here, and it is played wherever examples are."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers.vectors import flat
from sklearn.base import clone
from sklearn.datasets import make_blobs

from marginsvm import MomentumMarginClassifier, check_certificate
from marginsvm.extend import Response, Weights, softmax
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.blocks import Blocks
from marginsvm.problem.rows import make_rows


@dataclass(frozen=True)
class SquaredHinge:
    """Weights ``max(0, level - margin / mu)``, for rows without an intercept.

    Their mass is not 1: nothing may rely on that.
    """

    level: float = 1.0
    mass: float = 1.0

    def respond(self, rows, margins, mu):
        gap = np.maximum(self.level - margins / mu, 0.0)
        hinge, squares = rows.weighted(gap), rows.weighted(gap**2).sum()
        log_risk = np.log(0.5 * squares / rows.total_weight)
        total = hinge.sum()
        q = hinge * (self.mass / total)
        gradient_mass = total / rows.total_weight
        return Weights(q, self.mass, margins.min(), np.zeros(1), log_risk, gradient_mass)


@dataclass(frozen=True)
class Tempered:
    """The softmax of another temperature, which balances its groups with an intercept, too."""

    temperature: float

    def respond(self, rows, margins, mu):
        return softmax.respond(rows, margins, self.temperature * mu)


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
    return responses


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("response", "k", "balanced"), CASES, ids=str)
def test_blocks_equal_one_block(response, k, balanced, weighted):
    X, codes, weights = examples(k, weighted)
    rows = make_rows(codes, k, balanced=balanced, weights=weights)
    parts = Blocks(lambda: iter([X[:10], X[10:11], X[11:]]), X.shape, X.dtype, False)
    whole, blocks = LinearAdapter(X, rows), LinearAdapter(parts, rows)
    assert isinstance(response, Response)
    for a, b in zip(play(whole, response), play(blocks, response), strict=True):
        np.testing.assert_allclose(flat(a.vector), flat(b.vector), atol=1e-12)
        for name in ("mass", "min_margin", "offsets", "log_risk", "gradient_mass"):
            mine, theirs = getattr(a.weights, name), getattr(b.weights, name)
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_an_estimator_fits_with_it(fit_intercept, k):
    X, y, _ = examples(k, weighted=False)
    loss = Tempered(0.5) if fit_intercept else SquaredHinge(50.0)
    estimator = MomentumMarginClassifier(
        loss=loss, max_iter=12, tol=0.0, fit_intercept=fit_intercept
    )
    alone = clone(estimator).fit(X, y)
    blocks = clone(estimator).fit_blocks([(X[:35], y[:35]), (X[35:], y[35:])])
    for name in ("margin_", "margin_bound_", "coef_", "intercept_"):
        np.testing.assert_allclose(
            getattr(alone, name), getattr(blocks, name), rtol=1e-9, atol=1e-9
        )
    assert check_certificate(alone, X, y)
