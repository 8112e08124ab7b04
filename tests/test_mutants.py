"""Wrong algorithms of the papers: the test of the theorem that each of them breaks must fail.

A mutant is an algorithm with one wrong method (or a loop over coordinates with one wrong step). It
takes the place of the right one in all modules while the test is run, case by case, until a case
fails. A mutant that no case fails on lives, and is an error.
"""

import sys
from copy import copy
from dataclasses import replace
from importlib import import_module
from itertools import product

import numpy as np
import pytest
from conftest import SEED

from marginsvm.papers import coordinates, dual_lp
from marginsvm.papers.accelerated import AcceleratedPlay, MirrorProx, NesterovPlay
from marginsvm.papers.adaptive_sampling import Draws
from marginsvm.papers.momentum import Momentum
from marginsvm.papers.optimistic import OptimisticPlay
from marginsvm.papers.perceptrons import (
    FirstWorstRow,
    Mistakes,
    NextMistake,
    OnlineLp,
    Perceptron,
    VonNeumann,
)
from marginsvm.papers.smoothed import IteratedSmoothed
from marginsvm.problem.responses import worst_row
from marginsvm.problem.vectors import BestResponse

pytestmark = pytest.mark.slow


# Mutants that differ in a parameter, or in the state before or after a step.


def altered(name, right, **parameters):
    """The algorithm with other parameters: functions of those that it has."""

    def step(self, problem, state):
        other = {
            field: change(getattr(self, field)) for field, change in parameters.items()
        }
        return right.step(replace(self, **other), problem, state)

    return type(name, (right,), {"step": step})


def before(name, right, **fields):
    """The algorithm with another state before its step: functions of problem and state."""

    def step(self, problem, state):
        other = {field: change(problem, state) for field, change in fields.items()}
        return right.step(self, problem, replace(state, **other))

    return type(name, (right,), {"step": step})


def after(name, right, **fields):
    """With another state after its step: functions of the state before, and of this one."""

    def step(self, problem, state):
        new = right.step(self, problem, state)
        return replace(
            new, **{field: change(state, new) for field, change in fields.items()}
        )

    return type(name, (right,), {"step": step})


def scaled(by):
    """Of numbers, and of functions of t."""
    return lambda value: (lambda t: by * value(t)) if callable(value) else by * value


# Ji, Srebro and Telgarsky; Wang, Min and Wu.

NoMomentum = altered("NoMomentum", Momentum, beta=scaled(0.0))
NoRescaling = altered("NoRescaling", Momentum, norm=lambda norm: None)
HalfSteps = altered("HalfSteps", Momentum, theta=scaled(0.5))
QuarterSteps = altered("QuarterSteps", Momentum, theta=scaled(0.25))
LongSteps = altered("LongSteps", Momentum, theta=scaled(4.0))


class HeavyBall(Momentum):
    def step(self, problem, state):
        new, beta = super().step(problem, state), self.beta(state.t)
        p = self.pseudoexample(problem.respond(state.w, 1.0, self.loss))
        g = beta * state.g + p
        w = state.w + self.theta(state.t) * (g + p)
        return replace(new, w=w, g=g)


class AlwaysNormalized(Momentum):
    def pseudoexample(self, q):
        return q.vector / q.weights.mass


class NotSmooth(Momentum):
    def pseudoexample(self, q):
        return q.vector


class UniformDraws(Draws):
    """Of one draw a step: it is made at zero, and then added to w and g."""

    def play(self, w, g, offsets, t0, u, theta, beta):
        from_w, from_g = np.zeros_like(w), np.zeros_like(g)
        found = super().play(from_w, from_g, copy(offsets), t0, u, theta, beta)
        w += theta * beta * g + from_w
        g[:] = beta * g + from_g
        return found


# Hanashiro and Abernethy; Ramdas and Pena; Wang, Hanashiro, Guha and Abernethy.


def forgotten(problem, state):
    return problem.zeros() if state.t else state.last


NoOptimism = before("NoOptimism", OptimisticPlay, last=forgotten)
NoGuess = before("NoGuess", AcceleratedPlay, last=forgotten)
LearnerThatStays = after(
    "LearnerThatStays",
    OptimisticPlay,
    last=lambda state, new: state.last,
    total=lambda state, new: state.total + state.last,
)
WeightsThatStay = after(
    "WeightsThatStay",
    AcceleratedPlay,
    last=lambda state, new: state.last,
    total=lambda state, new: state.total + new.t * state.last,
)
NoWeights = after(
    "NoWeights", AcceleratedPlay, total=lambda state, new: state.total + new.last
)
UnweightedGradients = after(
    "UnweightedGradients",
    NesterovPlay,
    total=lambda state, new: state.total + new.last,
    W=lambda state, new: state.W + (2.0 / new.t) * (state.total + new.last),
)
OneLook = after("OneLook", MirrorProx, w_hat=lambda state, new: state.w_hat)
InnerRoundsThatStay = after(
    "InnerRoundsThatStay",
    IteratedSmoothed,
    inner=lambda state, new: (
        new.inner if new.t > state.t else replace(state.inner, t=new.inner.t)
    ),
)
ShortOptimisticSteps = altered("ShortOptimisticSteps", OptimisticPlay, r=scaled(2.0))
Smoothed2 = altered("Smoothed2", AcceleratedPlay, smoothing=scaled(2.0))
Smoothed4 = altered("Smoothed4", AcceleratedPlay, smoothing=scaled(4.0))
Smoothed8 = altered("Smoothed8", AcceleratedPlay, smoothing=scaled(8.0))
SmoothedAnEighth = altered("SmoothedAnEighth", AcceleratedPlay, smoothing=scaled(0.125))
NesterovSmoothed4 = altered("NesterovSmoothed4", NesterovPlay, smoothing=scaled(4.0))


class InnerRoundsThatBeginAnew(IteratedSmoothed):
    def step(self, problem, state):
        q = replace(state.q, coef=np.full_like(state.q.coef, 1.0 / problem.n_rows))
        return replace(super().step(problem, replace(state, q=q)), q=state.q)


class ShortOuterRounds(IteratedSmoothed):
    def _inner(self, problem, q):
        return 0.9 * problem.norm(q), super()._inner(problem, q)[1]


def in_turn(self, problem, w, last):
    weights = problem.respond(w).weights
    return BestResponse(problem.row(int(w.mass) % problem.n_rows), weights)


RowsInTurn = type("RowsInTurn", (Perceptron,), {"respond": in_turn})
NormalizedRowsInTurn = type(
    "NormalizedRowsInTurn", (FirstWorstRow,), {"respond": in_turn}
)
TowardsTheFirstRow = before(
    "TowardsTheFirstRow",
    VonNeumann,
    worst=lambda problem, state: replace(state.worst, vector=problem.row(0)),
)


class AllRowsAreMistakes(Mistakes):
    def respond(self, problem, w, last):
        visited = -1 if last is None else last.weights.visited
        return problem.respond(w, response=NextMistake(visited + 1, np.inf))


class AllRowsAreAdded(OnlineLp):
    def _epoch(self, problem, order, u, total):
        for r in order:
            row = problem.row(r)
            u.image[...] += row.image
            u.coef[...] += row.coef
        return u


class HalfTheWay(VonNeumann):
    def step(self, problem, state):
        p = 0.5 * (state.p + super().step(problem, state).p)
        return replace(state, p=p, worst=problem.respond(p, response=worst_row))


class StepsThatDoNotFall(Perceptron):
    def step(self, problem, state):
        return super().step(problem, replace(state, t=0) if self.projected else state)


class NoBall(Perceptron):
    def step(self, problem, state):
        new = super().step(problem, state)
        step = 1.0 / np.sqrt(new.t) if self.projected else 1.0
        w = state.w + step * state.p.vector
        return replace(new, w=w, average=state.average + (w - state.average) / new.t)


# Raj and Bach: of their loops over coordinates, some are called one coordinate at a time.


def of(right):
    def named(mutant):
        mutant.right = right
        return mutant

    return named


@of(coordinates.ascend)
def longer_steps(problem, order, alpha, rule=coordinates.DUAL, mean=None):
    old = alpha.copy()
    longer_steps.right(problem, order, alpha, rule, mean)
    alpha.image[...] += 1.5 * (alpha.image - old.image)
    alpha.coef[...] += 1.5 * (alpha.coef - old.coef)


@of(coordinates.ascend)
def rows_whatever_their_margins(
    problem, order, alpha, rule=coordinates.DUAL, mean=None
):
    for r in order:
        if mean is not None:
            mean += problem.mirrored(alpha.image).image
        row = 0.01 * problem.row(r)
        alpha.image[...] += row.image
        alpha.coef[...] += row.coef


@of(coordinates.accelerate)
def constant_weights(problem, order, n, mu, alpha, v, gamma):
    for r in order:
        alpha, v, _ = constant_weights.right(
            problem, np.array([r]), n, mu, alpha, v, gamma
        )
    return alpha, v, gamma


@of(coordinates.accelerate)
def one_sequence(problem, order, n, mu, alpha, v, gamma):
    """V is alpha: gradients at the proximal sequence."""
    for r in order:
        alpha, _, gamma = one_sequence.right(
            problem, np.array([r]), n, mu, alpha, alpha, gamma
        )
    return alpha, alpha, gamma


@of(coordinates.accelerate)
def not_strongly_convex(problem, order, n, mu, alpha, v, gamma):
    """The dual of a soft margin taken as that of a hard one."""
    return not_strongly_convex.right(problem, order, n, 0.0, alpha, v, gamma)


@of(dual_lp.draw)
def uniform(seed, t, active, n, sampling, curvature=None):
    same = None if curvature is None else np.ones_like(curvature)
    return uniform.right(seed, t, active, n, sampling, same)


# Whom each theorem's test must find.

MUTANTS = {
    "test_momentum": {
        "test_theorem_3_1_and_5_1": [NoMomentum, HalfSteps],
        "test_a_quarter_of_the_best_margin": [NoMomentum],
        "test_lemma_3_4_for_other_steps": [HeavyBall],
        "test_lemmas_of_ji": [NotSmooth],
        "test_section_1_gradient_descent_takes_exponentially_many_rounds": [
            AlwaysNormalized
        ],
        "test_section_3_1_where_nothing_separates": [LongSteps],
        "test_section_3_2_the_rate_of_plain_mirror_descent": [QuarterSteps],
        "test_nesterovs_margin_converges_without_a_logarithm": [HalfSteps],
        "test_progressive_rescaling_is_exponentially_fast_where_support_vectors_span": [
            NoRescaling
        ],
    },
    "test_adaptive_sampling": {"test_lemmas_d_1_and_d_2": [UniformDraws]},
    "test_accelerated": {
        "test_the_margin_converges_without_a_logarithm": [NoWeights],
        "test_the_rate_where_the_best_weights_are_a_corner": [Smoothed2],
        "test_the_p_norm_perceptron_has_the_rate": [Smoothed4],
        "test_theorems_2_and_3_and_4": [NoWeights, NoGuess],
        "test_theorem_6": [UnweightedGradients, NesterovSmoothed4],
        "test_theorem_7": [ShortOptimisticSteps],
        "test_proposition_3_and_theorems_5_and_9": [OneLook],
        "test_theorem_9_where_nothing_separates": [OneLook],
    },
    "test_perceptrons": {
        "test_regrets_of_hanashiro": [NoOptimism],
        "test_rounds_on_the_data_of_section_3": [NoOptimism],
        "test_hanashiro_theorem_3": [LearnerThatStays],
        "test_lemmas_4_and_5_and_theorem_1": [
            SmoothedAnEighth,
            Smoothed8,
            WeightsThatStay,
        ],
        "test_theorem_4_where_the_classes_are_separable": [InnerRoundsThatStay],
        "test_theorem_4_where_they_are_not": [ShortOuterRounds],
        "test_lemmas_7_and_9_and_theorem_4_with_the_margin": [InnerRoundsThatBeginAnew],
        "test_lemma_8_where_a_separator_exists": [InnerRoundsThatStay],
        "test_mistakes_and_rounds_of_perceptrons": [
            RowsInTurn,
            NormalizedRowsInTurn,
            AllRowsAreMistakes,
            TowardsTheFirstRow,
        ],
        "test_the_normalized_perceptron_converges_to_the_largest_margin": [
            NormalizedRowsInTurn
        ],
        "test_mistakes_of_the_lp_perceptron": [AllRowsAreAdded],
        "test_von_neumann_where_nothing_separates": [HalfTheWay],
        "test_the_margin_of_cotters_average": [StepsThatDoNotFall],
        "test_batch_perceptrons_add_the_worst_row": [NoBall],
    },
    "test_dual_lp": {
        "test_eq_5_of_raj": [longer_steps],
        "test_corollary_2_of_raj": [longer_steps],
        "test_theorem_1_for_the_average": [rows_whatever_their_margins],
        "test_eq_13_and_lemma_3_of_raj": [constant_weights],
        "test_proposition_1_and_the_rate_of_eq_8": [one_sequence],
        "test_the_linear_rates_of_appendix_c": [one_sequence, not_strongly_convex],
        "test_draws_by_curvature_are_the_estimators": [uniform],
    },
}
CASES = [
    pytest.param(module, test, mutant, id=f"{test}-{mutant.__name__}")
    for module, tests in MUTANTS.items()
    for test, mutants in tests.items()
    for mutant in mutants
]


@pytest.mark.parametrize(("module", "test", "mutant"), CASES)
def test_a_wrong_algorithm_breaks_its_theorem(module, test, mutant, monkeypatch):
    test = getattr(import_module(module), test)
    right = mutant.__bases__[0] if isinstance(mutant, type) else mutant.right
    put_in_place(right, mutant, monkeypatch)
    for case in cases(test):
        if "monkeypatch" in test.__code__.co_varnames:
            case["monkeypatch"] = monkeypatch
        try:
            test(**case)
        except (AssertionError, RuntimeWarning):  # the last where numbers overflow
            return
    pytest.fail(f"{test.__name__} passes on {mutant.__name__}")


def put_in_place(right, mutant, monkeypatch):
    """Under all names that the right one has, and for instances that modules keep in a dict."""
    for module in [*sys.modules.values()]:
        if not getattr(module, "__name__", "").startswith(
            ("marginsvm", "helpers", "test_")
        ):
            continue
        for name, value in [*vars(module).items()]:
            if value is right and module is not sys.modules[__name__]:
                monkeypatch.setattr(module, name, mutant)
            elif isinstance(value, dict):
                for key in [key for key, kept in value.items() if type(kept) is right]:
                    monkeypatch.setitem(value, key, mutant(**vars(value[key])))


def cases(test):
    columns = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args
            names = [names] if isinstance(names, str) else names
            given = [
                getattr(v, "values", v if len(names) > 1 else (v,)) for v in values
            ]
            slow = [
                any(m.name == "slow" for m in getattr(v, "marks", ())) for v in values
            ]
            quick = [g for g, s in zip(given, slow, strict=True) if not s]
            columns.append([dict(zip(names, g, strict=True)) for g in quick])
    for parts in product(*columns):
        rng = (
            {"rng": np.random.default_rng(SEED)}
            if "rng" in test.__code__.co_varnames
            else {}
        )
        yield {name: value for part in parts for name, value in part.items()} | rng
