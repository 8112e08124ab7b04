"""Wrong algorithms of the papers: the test of the theorem that each of them breaks must fail.

A mutant is an algorithm with one wrong method (or a loop over coordinates with one wrong step). It
takes the place of the right one in all modules while the test is run, case by case, until a case
fails. A mutant that no case fails on lives, and is an error.
"""

import sys
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
from marginsvm.problem.adapter import BestResponse
from marginsvm.problem.responses import worst_row

pytestmark = pytest.mark.slow
MUTANTS = []


def fails(*tests):
    """The tests that must fail: of a class, on instances of it in place of its parent's."""

    def listed(mutant):
        right = mutant.__bases__[0] if isinstance(mutant, type) else mutant.right
        MUTANTS.extend(
            pytest.param(right, mutant, test, id=f"{mutant.__name__}-{test.split('.')[1]}")
            for test in tests
        )
        return mutant

    return listed


def of(right):
    """A function in place of another."""

    def named(mutant):
        mutant.right = right
        return mutant

    return named


@pytest.mark.parametrize(("right", "mutant", "test"), MUTANTS)
def test_a_wrong_algorithm_breaks_its_theorem(right, mutant, test, monkeypatch):
    module, _, name = test.partition(".")
    test = getattr(import_module(module), name)
    put_in_place(right, mutant, monkeypatch)
    for case in cases(test):
        if "monkeypatch" in test.__code__.co_varnames:
            case["monkeypatch"] = monkeypatch
        try:
            test(**case)
        except AssertionError:
            return
    pytest.fail(f"{test.__name__} passes on {mutant.__name__}: {mutant.__doc__}")


def put_in_place(right, mutant, monkeypatch):
    """Under all names that the right one has, and for instances that modules keep in a dict."""
    for module in [*sys.modules.values()]:
        if not getattr(module, "__name__", "").startswith(("marginsvm", "helpers", "test_")):
            continue
        for name, value in [*vars(module).items()]:
            if value is right and module is not sys.modules[__name__]:
                monkeypatch.setattr(module, name, mutant)
            elif isinstance(value, dict):
                for key in [key for key, kept in value.items() if type(kept) is right]:
                    monkeypatch.setitem(value, key, mutant(**vars(value[key])))


def cases(test):
    """Arguments of all cases of a test that are not slow."""
    columns = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args
            names = [names] if isinstance(names, str) else names
            given = [getattr(v, "values", v if len(names) > 1 else (v,)) for v in values]
            slow = [any(m.name == "slow" for m in getattr(v, "marks", ())) for v in values]
            columns.append(
                [
                    dict(zip(names, g, strict=True))
                    for g, s in zip(given, slow, strict=True)
                    if not s
                ]
            )
    for parts in product(*columns):
        rng = {"rng": np.random.default_rng(SEED)} if "rng" in test.__code__.co_varnames else {}
        yield {name: value for part in parts for name, value in part.items()} | rng


# Ji, Srebro and Telgarsky.


def in_turn(problem, w):
    """The rows one after the other, whatever their margins."""
    weights = problem.respond(w).weights
    return BestResponse(problem.row(int(w.mass) % problem.n_rows), weights)


@fails(
    "test_momentum.test_theorem_3_1_where_it_is_tight",
    "test_momentum.test_theorem_3_1_and_5_1",
    "test_momentum.test_a_quarter_of_the_best_margin",
)
class NoMomentum(Momentum):
    """Theorems 3.1 and 5.1, part 1."""

    def step(self, problem, state):
        return Momentum.step(replace(self, beta=lambda t: 0.0), problem, state)


@fails("test_momentum.test_lemma_3_4_for_other_steps")
class HeavyBall(Momentum):
    """Momentum that leaves out the newest gradient."""

    def step(self, problem, state):
        new, beta = super().step(problem, state), self.beta(state.t)
        p = self.pseudoexample(problem.respond(state.w, 1.0, self.loss))
        g = beta * state.g + p
        w = state.w + self.theta(state.t) * (g + p)
        return replace(new, w=w, g=g)


@fails("test_momentum.test_section_1_gradient_descent_takes_exponentially_many_rounds")
class AlwaysNormalized(Momentum):
    """Plain gradients take exponentially many rounds, normalized ones do not."""

    def pseudoexample(self, q):
        return q.vector / q.weights.mass


@fails("test_momentum.test_lemmas_of_ji")
class NotSmooth(Momentum):
    """The logistic loss without the smoothness of psi in its steps."""

    def pseudoexample(self, q):
        return q.vector


@fails(
    "test_accelerated.test_progressive_rescaling_is_exponentially_fast_where_support_vectors_span"
)
class NoRescaling(Momentum):
    """The exponential rate of Wang, Min and Wu."""

    def step(self, problem, state):
        return Momentum.step(replace(self, norm=None), problem, state)


def scaled_steps(by, *tests):
    """The same method with steps of another length."""

    def step(self, problem, state):
        longer = replace(self, theta=lambda t: by * self.theta(t))
        return Momentum.step(longer, problem, state)

    doc = {"__doc__": f"Steps {by} times as long."}
    fails(*tests)(type(f"Steps{by}", (Momentum,), {"step": step, **doc}))


scaled_steps(
    0.5,
    "test_momentum.test_theorem_3_1_where_it_is_tight",
    "test_accelerated.test_nesterovs_margin_converges_without_a_logarithm",
)
scaled_steps(
    0.25,
    "test_momentum.test_section_3_2_the_rate_of_plain_mirror_descent",
    "test_momentum.test_upper_bound_of_theorem_3_1_on_overlapping_data",
)
scaled_steps(4.0, "test_momentum.test_section_3_1_where_nothing_separates")


@fails("test_adaptive_sampling.test_lemmas_d_1_and_d_2")
class UniformDraws(Draws):
    """Rows are drawn as if all margins were 0."""

    def respond(self, w, offsets):
        return super().respond(np.zeros_like(w), offsets)


# Hanashiro and Abernethy; Ramdas and Pena; Wang, Hanashiro, Guha and Abernethy.


@fails(
    "test_optimistic.test_regrets_of_hanashiro",
    "test_optimistic.test_rounds_on_the_data_of_section_3",
)
class NoOptimism(OptimisticPlay):
    """A learner that follows the leader."""

    def step(self, problem, state):
        late = replace(state, last=problem.zeros()) if state.t else state
        return super().step(problem, late)


@fails("test_optimistic.test_hanashiro_theorem_3_where_it_takes_rounds")
class LearnerThatStays(OptimisticPlay):
    """It never leaves the mean of the rows."""

    def step(self, problem, state):
        new = super().step(problem, state)
        return replace(new, last=state.last, total=state.total + state.last)


@fails("test_accelerated.test_theorem_7")
class ShortOptimisticSteps(OptimisticPlay):
    """Steps four times too short."""

    def step(self, problem, state):
        return OptimisticPlay.step(replace(self, r=2.0 * self.r), problem, state)


def smoothed(by, right, *tests):
    """A data player that is smoothed more or less."""

    def step(self, problem, state):
        return right.step(replace(self, smoothing=by * self.smoothing), problem, state)

    doc = {"__doc__": f"A data player that is smoothed {by} times as much."}
    fails(*tests)(type(f"{right.__name__}Smoothed{by}", (right,), {"step": step, **doc}))


smoothed(2.0, AcceleratedPlay, "test_accelerated.test_the_rate_where_the_best_weights_are_a_corner")
smoothed(4.0, AcceleratedPlay, "test_accelerated.test_the_p_norm_perceptron_has_the_rate")
smoothed(8.0, AcceleratedPlay, "test_smoothed.test_theorem_1_where_it_takes_rounds")
smoothed(0.125, AcceleratedPlay, "test_smoothed.test_lemma_5_and_theorem_1")
smoothed(4.0, NesterovPlay, "test_accelerated.test_theorem_6")


@fails(
    "test_smoothed.test_theorem_1_where_it_takes_rounds",
    "test_smoothed.test_a_proof_that_nothing_separates_after_so_many_rounds",
)
class WeightsThatStay(AcceleratedPlay):
    """The weights on the data never move."""

    def step(self, problem, state):
        new = super().step(problem, state)
        return replace(new, last=state.last, total=state.total + new.t * state.last)


@fails(
    "test_accelerated.test_the_margin_converges_without_a_logarithm",
    "test_accelerated.test_theorems_2_and_3_and_4",
)
class NoWeights(AcceleratedPlay):
    """Later rounds count no more than earlier ones."""

    def step(self, problem, state):
        new = super().step(problem, state)
        return replace(new, total=state.total + new.last)


@fails("test_accelerated.test_theorems_2_and_3_and_4")
class NoGuess(AcceleratedPlay):
    """A learner that follows the leader."""

    def step(self, problem, state):
        late = replace(state, last=problem.zeros()) if state.t else state
        return super().step(problem, late)


@fails("test_accelerated.test_theorem_6")
class UnweightedGradients(NesterovPlay):
    """Later gradients count no more than earlier ones."""

    def step(self, problem, state):
        new = super().step(problem, state)
        total = state.total + new.last
        return replace(new, total=total, W=state.W + (2.0 / new.t) * total)


@fails(
    "test_accelerated.test_proposition_3_and_theorems_5_and_9",
    "test_accelerated.test_theorem_9_where_nothing_separates",
)
class OneLook(MirrorProx):
    """The learner does not move again after it has seen the data player's move."""

    def step(self, problem, state):
        return replace(super().step(problem, state), w_hat=state.w_hat)


@fails(
    "test_smoothed.test_theorem_4_where_the_classes_are_separable",
    "test_smoothed.test_lemma_8_where_a_separator_exists",
)
class InnerRoundsThatStay(IteratedSmoothed):
    """They count, and do not move."""

    def step(self, problem, state):
        new = super().step(problem, state)
        inner = replace(state.inner, t=new.inner.t) if new.t == state.t else new.inner
        return replace(new, inner=inner)


@fails("test_smoothed.test_lemmas_7_and_9_and_theorem_4_with_the_margin")
class InnerRoundsThatBeginAnew(IteratedSmoothed):
    """About uniform weights in place of the last ones."""

    def step(self, problem, state):
        q = replace(state.q, coef=np.full_like(state.q.coef, 1.0 / problem.n_rows))
        return replace(super().step(problem, replace(state, q=q)), q=state.q)


@fails("test_smoothed.test_theorem_4_where_they_are_not")
class ShortOuterRounds(IteratedSmoothed):
    """They shrink q by a tenth only."""

    def _inner(self, problem, q):
        return 0.9 * problem.norm(q), super()._inner(problem, q)[1]


# Perceptrons.


@fails("test_smoothed.test_mistakes_and_rounds_of_perceptrons")
class RowsInTurn(Perceptron):
    """Whatever their margins."""

    def respond(self, problem, w, last):
        return in_turn(problem, w)


@fails(
    "test_smoothed.test_mistakes_and_rounds_of_perceptrons",
    "test_smoothed.test_the_normalized_perceptron_converges_to_the_largest_margin",
)
class NormalizedRowsInTurn(FirstWorstRow):
    """Whatever their margins."""

    def respond(self, problem, w, last):
        return in_turn(problem, w)


@fails("test_smoothed.test_mistakes_and_rounds_of_perceptrons")
class AllRowsAreMistakes(Mistakes):
    """Rosenblatt's perceptron adds rows that are right."""

    def respond(self, problem, w, last):
        visited = -1 if last is None else last.weights.visited
        return problem.respond(w, response=NextMistake(visited + 1, np.inf))


@fails("test_smoothed.test_mistakes_of_the_lp_perceptron")
class AllRowsAreAdded(OnlineLp):
    """The lp perceptron adds rows that are right."""

    def _epoch(self, problem, order, u, total):
        for r in order:
            row = problem.row(r)
            u.image[...] += row.image
            u.coef[...] += row.coef
        return u


@fails("test_smoothed.test_mistakes_and_rounds_of_perceptrons")
class TowardsTheFirstRow(VonNeumann):
    """Whatever the margins."""

    def step(self, problem, state):
        first = replace(state.worst, vector=problem.row(0))
        return super().step(problem, replace(state, worst=first))


@fails("test_smoothed.test_von_neumann_where_nothing_separates")
class HalfTheWay(VonNeumann):
    """Steps half as long as the best ones."""

    def step(self, problem, state):
        p = 0.5 * (state.p + super().step(problem, state).p)
        return replace(state, p=p, worst=problem.respond(p, response=worst_row))


@fails("test_baselines.test_the_margin_of_cotters_average")
class StepsThatDoNotFall(Perceptron):
    """The margin of Cotter's average."""

    def step(self, problem, state):
        return super().step(problem, replace(state, t=0) if self.projected else state)


@fails("test_baselines.test_cotters_batch_perceptron_is_projected_and_averaged")
class NoBall(Perceptron):
    """A predictor that is not projected."""

    def step(self, problem, state):
        new = super().step(problem, state)
        step = 1.0 / np.sqrt(new.t) if self.projected else 1.0
        w = state.w + step * state.p.vector
        return replace(new, w=w, average=state.average + (w - state.average) / new.t)


# Raj and Bach: of their loops over coordinates, some are called one coordinate at a time.


@fails("test_dual_lp.test_eq_5_of_raj", "test_dual_lp.test_corollary_2_of_raj")
@of(coordinates.ascend)
def longer_steps(problem, order, alpha, rule=coordinates.DUAL, mean=None):
    """Epochs that move 2.5 times as far."""
    before = alpha.copy()
    longer_steps.right(problem, order, alpha, rule, mean)
    alpha.image[...] += 1.5 * (alpha.image - before.image)
    alpha.coef[...] += 1.5 * (alpha.coef - before.coef)


@fails("test_dual_lp.test_theorem_1_for_the_average")
@of(coordinates.ascend)
def rows_whatever_their_margins(problem, order, alpha, rule=coordinates.DUAL, mean=None):
    """A hundredth of each row is added."""
    for r in order:
        if mean is not None:
            mean += problem.mirrored(alpha.image).image
        row = 0.01 * problem.row(r)
        alpha.image[...] += row.image
        alpha.coef[...] += row.coef


@fails("test_dual_lp.test_eq_13_and_lemma_3_of_raj")
@of(coordinates.accelerate)
def constant_weights(problem, order, n, mu, alpha, v, gamma):
    """Acceleration whose weights stay as they are."""
    for r in order:
        right = constant_weights.right
        alpha, v, _ = right(problem, np.array([r]), n, mu, alpha, v, gamma)
    return alpha, v, gamma


@fails("test_dual_lp.test_proposition_1_and_the_rate_of_eq_8")
@of(coordinates.accelerate)
def sequences_that_do_not_part(problem, order, n, mu, alpha, v, gamma):
    """V is alpha."""
    for r in order:
        right = sequences_that_do_not_part.right
        alpha, _, gamma = right(problem, np.array([r]), n, mu, alpha, alpha, gamma)
    return alpha, alpha, gamma


@fails("test_dual_lp_regressor.test_the_linear_rates_of_appendix_c")
@of(coordinates.accelerate)
def no_extrapolation(problem, order, n, mu, alpha, v, gamma):
    """Gradients at the proximal sequence."""
    for r in order:
        right = no_extrapolation.right
        alpha, _, gamma = right(problem, np.array([r]), n, mu, alpha, alpha, gamma)
    return alpha, alpha, gamma


@fails("test_dual_lp.test_soft_margins_have_the_linear_rate_of_lin_lu_and_xiao")
@of(coordinates.accelerate)
def not_strongly_convex(problem, order, n, mu, alpha, v, gamma):
    """The dual of a soft margin taken as that of a hard one."""
    return not_strongly_convex.right(problem, order, n, 0.0, alpha, v, gamma)


@fails("test_dual_lp.test_draws_by_curvature_are_the_estimators")
@of(dual_lp.draw)
def uniform(seed, t, active, n, sampling, curvature=None):
    """Draws that do not look at the curvatures."""
    same = None if curvature is None else np.ones_like(curvature)
    return uniform.right(seed, t, active, n, sampling, same)
