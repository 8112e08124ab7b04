"""The battery for algorithms of others: ours pass it, wrong ones fail where they are wrong."""

from dataclasses import replace
from itertools import count

import pytest
from helpers.battery import each_and_toy, slow
from toy_algorithm import DualFista, Fista

from marginsvm.testing import check_algorithm


@each_and_toy
def test_ours_pass(cls):
    assert len(check_algorithm(cls)) == 6


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
        return replace(following, q=state.q, y=nothing, total=nothing, measured=measured)


class InOrder(Fista):
    """Begins at the first example, whichever that is."""

    def start(self, problem):
        state = super().start(problem)
        return replace(state, y=problem.row(0))


WRONG = {
    Writes: "wrote into the state",
    Remembers: "repeated gives another state",
    Idle: "separable_ is None",
    InOrder: "another order",
}


class Wrong(DualFista):
    """Plays one of them."""

    algorithm = Fista

    def _algorithm(self):
        return self.algorithm()


@pytest.mark.parametrize("algorithm", [Writes, slow(Remembers), Idle, slow(InOrder)])
def test_wrong_algorithms_fail(algorithm, monkeypatch):
    monkeypatch.setattr(Wrong, "algorithm", algorithm)
    with pytest.raises(AssertionError, match=WRONG[algorithm]):
        check_algorithm(Wrong)


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


@pytest.mark.parametrize(
    ("cls", "said"), [(Boasts, "bounds hold: .*margin is"), (LosesItsHistory, "above the best")]
)
def test_wrong_claims_fail(cls, said):
    with pytest.raises(AssertionError, match=said):
        check_algorithm(cls)


def test_an_error_is_a_line_of_the_report():
    class Fails(DualFista):
        def decision_function(self, X):
            raise RuntimeError("not today")

    with pytest.raises(AssertionError, match="bounds hold: RuntimeError: not today"):
        check_algorithm(Fails)
