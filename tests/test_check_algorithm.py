"""The battery for algorithms of others: ours pass it, wrong ones fail where they are wrong."""

from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pytest
from helpers.battery import each_and_toy
from sklearn.datasets import make_blobs
from toy_algorithm import DualFista, Fista

from marginsvm import MomentumMarginClassifier, check_certificate, testing
from marginsvm.extend import Weights, softmax


@each_and_toy
def test_ours_pass(cls):
    assert len(testing.check_algorithm(cls)) == 6


class Writes(Fista):
    """Writes its predictor into the state before."""

    def step(self, problem, state):
        following = super().step(problem, state)
        state.total.image[:] = following.total.image
        return following


class Remembers(Fista):
    """Counts its rounds beside the state, and plays every other one differently."""

    rounds = count()

    def step(self, problem, state):
        return super().step(problem, replace(state, t=state.t + next(self.rounds) % 2))


class Idle(Fista):
    """Stays at the predictor 0."""

    def step(self, problem, state):
        following = super().step(problem, state)
        nothing = problem.zeros()
        measured = replace(following.measured, vector=nothing)
        return replace(
            following, q=state.q, y=nothing, total=nothing, measured=measured
        )


class InOrder(Fista):
    """Begins at the first example, whichever that is."""

    def start(self, problem):
        state = super().start(problem)
        return replace(state, y=problem.row(0))


class Boasts(DualFista):
    """Publishes a margin that is a little too large."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        found = self.certificate_
        self.certificate_ = replace(found, lower=found.lower * (1.0 + 1e-6))
        return self


class LosesItsHistory(DualFista):
    """Says that its first bound was the best."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.history_["margin"] = self.history_["margin"] + 2.0 * self.margin_bound_
        return self


class Fails(DualFista):
    def decision_function(self, X):
        raise RuntimeError("not today")


def playing(algorithm):
    """The toy estimator with another algorithm; its name is that of the module, for pickles."""
    return type("DualFista", (DualFista,), {"_algorithm": lambda self: algorithm()})


WRONG = {
    playing(Writes): "a step leaves its state unchanged: .*wrote into the state",
    playing(
        Remembers
    ): "a step leaves its state unchanged: .*repeated gives another state",
    playing(Idle): "classes that are far apart are separated: .*separable_ is None",
    playing(InOrder): "examples in another order give the same bounds: .*another order",
    Boasts: "bounds hold: .*margin is",
    LosesItsHistory: "bounds hold: .*above the best",
    Fails: "bounds hold: RuntimeError: not today",
}


@pytest.mark.parametrize(("cls", "said"), WRONG.items())
def test_wrong_estimators_fail(cls, said, monkeypatch):
    """An error is a line of the report. (Only the check that finds it is run.)"""
    name = said.partition(":")[0]
    monkeypatch.setattr(testing, "_CHECKS", {name: testing._CHECKS[name]})
    with pytest.raises(AssertionError, match=said):
        testing.check_algorithm(cls)


# A loss that the package does not have: one class here, and it is played wherever examples are.


@dataclass(frozen=True)
class SquaredHinge:
    """Weights ``max(0, level - margin / mu)``, for rows without an intercept."""

    level: float = 1.0
    mass: float = 1.0

    def respond(self, rows, margins, mu):
        gap = np.maximum(self.level - margins / mu, 0.0)
        hinge, squares = rows.weighted(gap), rows.weighted(gap**2).sum()
        log_risk = np.log(0.5 * squares / rows.total_weight)
        total = hinge.sum()
        q = hinge * (self.mass / total)
        gradient_mass = total / rows.total_weight
        return Weights(
            q, self.mass, margins.min(), np.zeros(1), log_risk, gradient_mass
        )


@dataclass(frozen=True)
class Tempered:
    """The softmax of another temperature, which balances its groups with an intercept, too."""

    temperature: float

    def respond(self, rows, margins, mu):
        return softmax.respond(rows, margins, self.temperature * mu)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("loss", [Tempered(0.5), SquaredHinge(50.0)])
def test_an_estimator_fits_with_it(loss, k):
    X, y = make_blobs(120, 5, centers=k, cluster_std=0.4, random_state=3)
    params = {
        "loss": loss,
        "max_iter": 12,
        "tol": 0.0,
        "fit_intercept": loss == Tempered(0.5),
    }
    alone = MomentumMarginClassifier(**params).fit(X, y)
    blocks = MomentumMarginClassifier(**params).fit_blocks(
        [(X[:35], y[:35]), (X[35:], y[35:])]
    )
    for name in ("margin_", "margin_bound_", "coef_", "intercept_"):
        one, other = getattr(alone, name), getattr(blocks, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert check_certificate(alone, X, y)
