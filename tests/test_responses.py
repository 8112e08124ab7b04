"""Rows, responses, intercepts and the loop, each against something plain."""

from dataclasses import dataclass, replace
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.games import imbalance, margin_of
from helpers.oracle import explicit_rows
from helpers.pairwise import pairwise
from scipy.optimize import linprog, minimize
from scipy.special import expit

from marginsvm.extend import euclidean, logistic, softmax, worst_row
from marginsvm.fit import (
    Algorithm,
    Candidate,
    Progress,
    Stopping,
    certify,
    least_loss,
    looks,
    play,
)
from marginsvm.problem import intercepts
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.intercepts import (
    balancing_factors,
    balancing_offsets,
    cycle_offsets,
    differences,
    least_mean,
    min_cycle,
)
from marginsvm.problem.responses import balanced
from marginsvm.problem.rows import BinaryRows, MulticlassRows, make_rows
from marginsvm.problem.vectors import Vector

RESPONSES = [softmax, logistic, euclidean, worst_row]


def problem(rng, k, balanced, weighted=False):
    n = 30
    codes = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    weights = rng.uniform(0.5, 3.0, n) if weighted else None
    rows = make_rows(codes, k, balanced=balanced, weights=weights)
    return rows, rng.standard_normal(rows.score_shape)


@pairwise(
    k=[2, 5], weighted=[False, True], scale=[1.0, 30.0, 1000.0], response=RESPONSES
)
def test_responses_are_balanced(k, weighted, scale, response, rng):
    rows, F = problem(rng, k, True, weighted)
    F = scale * F
    best = response(rows, rows.margins(F), 1.0)
    assert np.all(best.q >= 0)
    np.testing.assert_allclose(best.q.sum(), best.mass, rtol=1e-12)
    assert best.mass >= 1.0 - 1e-12
    assert imbalance(rows, best.q) <= 1e-10 * best.mass
    # margins and sums over the rows are adjoint
    q = np.where(np.isfinite(rows.margins(F)), rng.uniform(size=rows.shape), 0.0)
    margins = np.where(q > 0, rows.margins(F), 0.0)
    np.testing.assert_allclose(np.sum(margins * q), np.sum(F * rows.adjoint(q)))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("balanced", [True, False])
def test_logistic_is_as_smooth_at_any_margin(k, balanced, rng):
    rows, F = problem(rng, k, balanced, weighted=True)
    margins = np.where(
        np.isfinite(rows.margins(F)), rng.uniform(0.0, 0.2, rows.shape), np.inf
    )
    near, far = (logistic(rows, level + margins, 1.0) for level in (36.7, 37.1))
    assert near.min_margin < 37.0 < far.min_margin
    assert (
        near.smoothness == far.smoothness == pytest.approx(rows.weights.sum() * (k - 1))
    )
    np.testing.assert_allclose(near.q, far.q, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_offsets_of_the_logistic_loss_are_the_best(k, rng):
    """Weights are balanced at them, before the last digits are."""
    rows, F = problem(rng, k, True, weighted=True)
    margins = rows.margins(3.0 * F)
    best = logistic(rows, margins, 0.5)
    xi = (margins + rows.expand(differences(best.offsets))) / -0.5
    assert imbalance(rows, rows.weighted(expit(xi))) <= 1e-12 * rows.total_weight


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(
    ("response", "mu"),
    [(softmax, 0.7), (euclidean, 1e-4), (euclidean, 0.1), (euclidean, 10.0)],
)
def test_responses_minimise_over_the_balanced_simplex(response, mu, k, balanced, rng):
    """No weights are better to first order; with the entropy, what is least is -mu log_risk."""
    rows, F = problem(rng, k, balanced, weighted=True)
    margins = rows.margins(F)
    inside, best = np.isfinite(margins), response(rows, margins, mu)
    q, ratio = (
        best.q[inside],
        best.q[inside] / np.broadcast_to(rows.prior, rows.shape)[inside],
    )
    slope = np.log(ratio) + 1.0 if response is softmax else ratio - 1.0
    gradient = np.full(rows.shape, np.inf)
    gradient[inside] = margins[inside] + mu * slope
    least = worst_row(rows, gradient).min_margin  # of a linear function
    assert least >= np.sum(gradient[inside] * q) - 1e-9
    if response is softmax:
        value = np.sum(q * (margins[inside] + mu * np.log(ratio)))
        np.testing.assert_allclose(value, -mu * best.log_risk, rtol=1e-10)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_worst_margin_is_the_linear_programs(k, rng):
    rows, F = problem(rng, k, True)
    margins = rows.margins(F)
    low = rows.group_min(margins)
    # maximise t subject to low[c, j] + b_c - b_j >= t
    pairs = list(permutations(range(k), 2))
    A = np.zeros((len(pairs), k + 1))
    for r, (c, j) in enumerate(pairs):
        A[r, [c, j, k]] = -1.0, 1.0, 1.0
    limits = [(0, 0), *[(None, None)] * k]
    found = linprog(np.r_[np.zeros(k), -1.0], A, [low[p] for p in pairs], bounds=limits)
    smallest = rows.min_margin(low)
    np.testing.assert_allclose(smallest, -found.fun, atol=1e-9)
    attained = (low + differences(rows.best_offsets(low))).min()
    np.testing.assert_allclose(attained, smallest, atol=1e-12)
    best = worst_row(rows, margins)
    own = best.q > 0
    np.testing.assert_allclose(np.sum(best.q[own] * margins[own]), smallest, atol=1e-12)


def test_matrix_balancing_survives_wild_tables(rng):
    for k in rng.integers(2, 7, 200):
        table = rng.uniform(-300, 300, (k, k))
        np.fill_diagonal(table, -np.inf)
        beta = balancing_offsets(table)
        shifted = table - beta[:, None] + beta
        weight = np.exp(shifted - shifted.max())
        off = np.abs(weight.sum(axis=0) - weight.sum(axis=1)).sum() / weight.sum()
        assert off <= 1e-12


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("spread", [0.3, 30.0, 3000.0])
@pytest.mark.parametrize("response", [softmax, logistic])
def test_a_search_finds_the_same_from_any_start(response, spread, k, rng):
    codes = np.arange(40) % k
    rows = make_rows(codes, k, balanced=True, weights=rng.random(40) + 0.1)
    margins = rows.margins(spread * rng.standard_normal(rows.score_shape))
    found = response.respond(rows, margins, 0.7)
    searched = k > 2 or response is logistic
    assert (found.start is not None) == searched
    if not searched:
        return
    np.testing.assert_array_equal(found.start, [found.offsets, 0.0 * found.offsets])
    for near, moved in (
        (found.offsets, 0.0),
        (rng.standard_normal(k), 0.1),
        (0.0, 1e4),
    ):
        start = np.array([near + np.zeros(k), moved * rng.standard_normal(k)])
        again = response.near(start).respond(rows, margins, 0.7)
        np.testing.assert_allclose(again.q, found.q, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(imbalance(rows, again.q), 0.0, atol=1e-10)
        np.testing.assert_array_equal(again.start[1], again.offsets - start[0])


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("C", [np.inf, 0.7])
@pytest.mark.parametrize("response", RESPONSES)
def test_two_classes_as_multiclass_are_binary(balanced, C, response, rng):
    X, codes = rng.standard_normal((40, 3)), np.arange(40) % 2
    binary = LinearAdapter(X, BinaryRows(codes, 2, balanced=balanced), C)
    multi = LinearAdapter(X, MulticlassRows(codes, 2, balanced=balanced), C)
    assert multi.radius == pytest.approx(np.sqrt(2) * binary.radius)
    w, u = binary.zeros(), multi.zeros()
    for _ in range(10):
        a, b = binary.respond(w, 1.0, response), multi.respond(u, 1.0, response)
        np.testing.assert_allclose(
            a.weights.min_margin, b.weights.min_margin, atol=1e-12
        )
        np.testing.assert_allclose(a.weights.mass, b.weights.mass)
        w, u = w + a.vector, u + b.vector
        np.testing.assert_allclose(binary.norm(w), multi.norm(u))
        np.testing.assert_allclose(
            margin_of(binary, w), margin_of(multi, u), atol=1e-12
        )
        np.testing.assert_allclose(w.mass, u.mass)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("C", [np.inf, 0.5])
def test_adapter_against_explicit_rows(k, C, rng):
    X, y = rng.standard_normal((12, 4)), np.arange(12) % k
    data = LinearAdapter(X, make_rows(y, k, balanced=False), C)
    A, _, _ = explicit_rows(X, y, C=C)
    A = A / np.sqrt((A**2).sum(axis=1)).max()
    index = np.flatnonzero(np.isfinite(data.margins(data.zeros()).ravel()))
    np.testing.assert_allclose(data.gram(index, index), A @ A.T, atol=1e-12)
    w, v = data.row(index[3]) + 2.0 * data.row(index[7]), A[3] + 2.0 * A[7]
    np.testing.assert_allclose(data.margins(w).ravel()[index], A @ v, atol=1e-12)
    np.testing.assert_allclose(data.norm(w), np.linalg.norm(v))


@pairwise(
    dtype=[np.float64, np.float32], balanced=[0, 1], weighted=[0, 1], C=[9, np.inf]
)
def test_many_examples_respond_as_few(dtype, balanced, weighted, C, rng):
    """Exponents, which rise along the examples, and sample weights range over many magnitudes."""
    n, unit = 90_001, 1e-9 if dtype is np.float64 else 1e-3
    size = np.tile(np.geomspace(1e-3, 1.0, n // 8 + 1), 8)[:n]
    X = (rng.standard_normal((n, 50)) * size[:, None]).astype(dtype)
    weights = size**-30.0 if weighted else None
    rows = BinaryRows(rng.integers(0, 2, n), 2, balanced=balanced, weights=weights)
    problem = LinearAdapter(X, rows, C)
    w = problem.combine(rng.random(n))
    w = w * (5.0 / problem.norm(w))
    best, plain = (
        problem.respond(w, 0.01),
        softmax.respond(rows, problem.margins(w), 0.01),
    )
    for name in ("q", "min_margin", "offsets", "log_risk"):
        np.testing.assert_allclose(
            getattr(best.weights, name), getattr(plain, name), unit, 1e-12
        )
    image = problem.combine(best.weights.q, precise=True).image
    np.testing.assert_allclose(
        best.vector.image, image, atol=unit * np.abs(image).max()
    )


@pytest.mark.parametrize("mu", [1e-12, 1.0])
def test_euclidean_weights_of_examples_of_all_magnitudes_are_balanced(mu, rng):
    weights = 10.0 ** (10.0 * (np.arange(12) % 5 - 2))
    rows = make_rows(np.arange(12) % 3, 3, balanced=True, weights=weights)
    q = euclidean(rows, rows.margins(mu * rng.normal(size=(12, 3))), mu).q
    assert q.sum() == pytest.approx(1.0)
    table = rows.group_sum(q)
    np.testing.assert_allclose(table.sum(axis=0), table.sum(axis=1), atol=1e-9)


def test_tables_that_offsets_balance_in_part_or_not_at_all():
    """Classes without weight; and one that is only held against others: factors stay finite."""
    table = np.array([[0, 0, 0, 0], [0, 0, 3, 1], [0, 1, 0, 2], [0, 5, 1, 0]], float)
    table = table * balancing_factors(table)
    np.testing.assert_allclose(table.sum(axis=0), table.sum(axis=1), rtol=1e-12)
    held = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    assert np.isfinite(balancing_factors(held)).all()
    for y in ([0, 0, 1], [0, 1, 2]):  # weights of one class
        rows = make_rows(np.array(y), max(y) + 1, balanced=True)
        q = np.zeros(rows.shape)
        q[0] = rows.weighted(np.ones(rows.shape))[0]
        np.testing.assert_array_equal(balanced(rows, q), q)


@pytest.mark.parametrize("k", [2, 3, 5, 30, 200])
def test_offsets_and_the_cheapest_cycle_prove_each_other(k, rng):
    """Cycles of length 0 are negative by rounding; walks around them must not add up."""
    for kind in range(60 if k < 200 else 6):
        spread = 10.0 ** rng.integers(-3, 4) * (kind % 3)
        some = rng.exponential(size=(k, k)) * (rng.random((k, k)) < 0.5)
        cost = [1.0 * rng.integers(-3, 4, (k, k)), rng.normal(size=(k, k)), 1.0 + some][
            kind // 2 % 3
        ]
        beta = rng.normal(size=k) * spread
        cost += beta[:, None] - beta
        np.fill_diagonal(cost, np.inf)
        (mean, edges), found = min_cycle(cost), cycle_offsets(cost)
        size = np.abs(cost[np.isfinite(cost)]).max()
        assert least_mean(cost) == pytest.approx(mean, abs=1e-13 * size)
        least = (cost + found[:, None] - found).min()  # no cycle has a smaller mean
        assert least - 1e-13 * size <= mean <= least + 1e-13 * size
        assert mean == pytest.approx(
            np.mean([cost[edge] for edge in edges]), abs=1e-13 * size
        )
        assert [b for _, b in edges] == [a for a, _ in [*edges[1:], edges[0]]]


def test_the_cheapest_cycle_of_many_classes_takes_few_rounds(rng, monkeypatch):
    rounds, of = [], intercepts._cheapest
    monkeypatch.setattr(
        intercepts, "_cheapest", lambda *args: rounds.append(1) or of(*args)
    )
    cost = rng.normal(size=(400, 400))
    np.fill_diagonal(cost, np.inf)
    min_cycle(cost)
    assert len(rounds) <= 20


def test_no_cycle_leads_through_a_class_without_examples():
    assert not any(
        np.isfinite(min_cycle(np.full((3, 3), v))[0]) for v in (np.inf, np.nan)
    )
    cost = np.array(
        [[np.inf, 1.0, -9.0], [3.0, np.inf, -9.0], [np.inf, np.inf, np.inf]]
    )
    assert min_cycle(cost) == (2.0, [(0, 1), (1, 0)])


# The loop, played on a script: vectors whose bounds are known are shown to it round by round.


def of_two_rows(C=np.inf):
    """Two rows at right angles: the best margin is the root of a half."""
    rows = make_rows(np.array([1, 0]), 2, balanced=False)
    return LinearAdapter(np.diag([1.0, -1.0]), rows, C)


def predictor(margin):
    """A predictor of norm 1 with this smallest margin, from -1 to the root of a half."""
    angle = np.arcsin(margin)
    return Vector(np.array([np.cos(angle), np.sin(angle)]), np.zeros(2))


def proof(data, bound):
    """Weights that prove this bound, from the root of a half to 1."""
    q = 0.5 + 0.5 * np.sqrt(2.0 * bound**2 - 1.0)
    return data.combine(np.array([q, 1.0 - q]))


@dataclass(frozen=True)
class Script(Algorithm):
    """Shows a predictor and a proof in each round; a round takes two passes."""

    margins: tuple[float, ...]
    bounds: tuple[float, ...]
    at_once: int = 1
    too_much: float = 0.0  # that the bounds of rounds promise

    def start(self, problem):
        return 0

    def n_rounds(self, n_iter):
        return self.at_once

    def step(self, problem, state):
        problem.work.passes += 2
        return state + 1 if state + 1 < len(self.margins) else state

    def candidates(self, problem, state):
        t = min(state, len(self.margins) - 1)
        w, q = predictor(self.margins[t]), proof(problem, self.bounds[t])
        promised = float(problem.margins(w).min()) + self.too_much
        yield Candidate(w, min_margin=promised, fallback=True)
        yield Candidate(q, q.mass)


SCRIPT = Script((0.0, 0.2, 0.5, 0.3, 0.6, 0.1), (1.0, 0.9, 0.95, 0.8, 0.99, 0.85))
ENDLESS = Stopping(tol=0.0, max_iter=5)


def test_the_best_of_all_rounds_is_kept():
    outcome = play(SCRIPT, data := of_two_rows(), ENDLESS)
    lines = [*outcome.progress.history]
    np.testing.assert_allclose(
        [line.lower for line in lines], [0.2, 0.5, 0.5, 0.6, 0.6]
    )
    np.testing.assert_allclose(
        [line.upper for line in lines], [0.9, 0.9, 0.8, 0.8, 0.8]
    )
    bounds = certify(SCRIPT, data, outcome.progress)
    np.testing.assert_allclose([bounds.lower, bounds.upper], [0.6, 0.8])
    last = predictor(0.1)  # the model, had nothing been found
    np.testing.assert_array_equal(outcome.progress.fallback.vector.image, last.image)


def test_a_fit_that_goes_on_ends_as_one_longer_fit():
    data = of_two_rows()
    whole = play(SCRIPT, data, ENDLESS).progress
    first = play(SCRIPT, data, replace(ENDLESS, max_iter=2)).progress
    before = first.copy()
    data.work.passes += 100  # those between two fits are of neither
    second = play(SCRIPT, data, ENDLESS, resume=first).progress
    assert first == before
    for ours, theirs in zip(second.history, whole.history, strict=True):
        assert ours[:2] + ours[3:] == theirs[:2] + theirs[3:]
    assert second.history[-1].n_passes < 100.0
    seconds = [line.seconds for line in second.history]
    assert seconds == sorted(seconds)
    assert second.seconds == seconds[-1] > first.seconds > 0.0


def grown(n):
    """Iterations with bounds: every one up to 64, then whenever they have grown by 1/32."""
    seen = [*range(1, 65)]
    while seen[-1] < n:
        seen.append(min(seen[-1] + seen[-1] // 32, n))
    return seen


@pytest.mark.parametrize("goal", ["gap", "separation"])
def test_bounds_come_whenever_iterations_have_grown_by_a_thirty_second(goal):
    """Theorems count the iterations to a separator, so that it is looked for in each."""
    script, seen = Script((-0.1,) * 2000, (0.9,) * 2000), []
    stopping, expected = Stopping(goal, 0.0, 1000), grown(1000)
    if goal == "separation":
        expected = [*range(1, 1001)]
    outcome = play(
        script, of_two_rows(), stopping, lambda progress: seen.append(progress.n_iter)
    )
    assert seen == expected
    assert seen[63:67] == [64, 65 + (goal == "gap"), *seen[65:67]]
    assert [line.n_iter for line in outcome.progress.history] == seen
    assert looks(script, stopping, 0) == len(seen)
    assert looks(script, stopping, 66) == len([n for n in seen if n > 66])


def test_a_fit_that_goes_on_has_its_bounds_where_one_longer_fit_has_them():
    """Also if it was cut short between two of them, or by a step of several iterations."""
    data = of_two_rows()
    margins = tuple(0.3 * np.sin(np.arange(2000.0)))
    for at_once in (1, 3, 7):
        script = Script(margins, (0.9,) * 2000, at_once)
        whole = play(script, data, replace(ENDLESS, max_iter=900)).progress
        for cut in (65, 97, 700):
            progress = play(script, data, replace(ENDLESS, max_iter=cut)).progress
            assert progress.n_iter == progress.history[-1].n_iter == cut
            resume = progress.begun or progress
            longer = play(script, data, replace(ENDLESS, max_iter=900), None, resume)
            for ours, theirs in zip(
                longer.progress.history, whole.history, strict=True
            ):
                assert ours[:2] + ours[3:] == theirs[:2] + theirs[3:]


def test_a_fixed_point_between_two_bounds_is_no_iteration():
    still = Script((0.5,) * 101, (0.8,) * 101)  # from the hundredth step on
    outcome = play(still, of_two_rows(), Stopping(max_iter=500))
    assert (outcome.status, outcome.progress.n_iter) == ("stalled", 101)
    assert [line.n_iter for line in outcome.progress.history][-3:] == [99, 100, 101]
    better = replace(still, margins=(*still.margins[:-1], 0.7))
    outcome = play(better, of_two_rows(), Stopping(max_iter=500, tol=0.2))
    assert (outcome.status, outcome.progress.n_iter) == ("certified", 100)


@pytest.mark.parametrize(
    ("steps", "said"),
    [(4, "in iteration 4:"), (100, "in iterations 100 to 102:")],
)
def test_a_fit_that_diverges_says_since_when(steps, said):
    class Diverging(Script):
        def candidates(self, problem, state):
            yield Candidate(predictor(0.1) * (np.inf if state >= steps else 1.0))

    script = Diverging((0.1,) * 2000, (0.9,) * 2000)
    with pytest.raises(ValueError, match=f"Diverging diverged {said}"):
        play(script, of_two_rows(), replace(ENDLESS, max_iter=500))


def test_bounds_are_confirmed_anew_in_each_round():
    """A fit that reached its goal goes on to a smaller gap, and publishes what it finds then."""
    data, first = of_two_rows(), None
    for tol, max_iter, ended, lower in (
        (0.5, 5, ("certified", 2), 0.5),
        (0.3, 5, ("certified", 4), 0.6),
        (0.01, 4, ("max_iter", 4), 0.6),
    ):
        found = play(SCRIPT, data, Stopping(tol=tol, max_iter=max_iter), resume=first)
        assert (found.status, found.progress.n_iter) == ended
        np.testing.assert_allclose(found.progress.certified.lower, lower)
        first = first or found.progress


class BoastsOnce(Script):
    """Promises too much in its first round, where digits are lost."""

    def candidates(self, problem, state):
        return Script.candidates(
            replace(self, too_much=0.3 * (state == 1)), problem, state
        )


def test_a_promise_that_failed_keeps_nothing_better_out():
    script = BoastsOnce((0.0, 0.45, 0.6), (1.0, 0.75, 0.75))
    outcome = play(script, of_two_rows(), Stopping(tol=0.25, max_iter=50))
    assert (outcome.status, outcome.progress.n_iter) == ("certified", 2)


def test_a_step_that_changes_nothing_ends_a_fit():
    still = Script((0.5, 0.5, 0.5), (0.8, 0.8, 0.8))
    outcome = play(still, of_two_rows(), Stopping(max_iter=50))
    assert (outcome.status, outcome.progress.n_iter) == ("stalled", 3)
    outcome = play(still, of_two_rows(), Stopping(max_iter=50, tol=0.4))
    assert (outcome.status, outcome.progress.n_iter) == ("certified", 1)


def confirmed(lower, upper, *, separates=True, refuted=False):
    return SimpleNamespace(
        lower=lower, upper=upper, separates=separates, refuted=refuted
    )


STATUSES = [
    # goal, C, lower, upper, what else is known, status; but for the first, tol is a tenth
    ("gap, tol 0", np.inf, 1.0, 1.0, {}, None),
    ("gap", np.inf, 0.9, 1.0, {}, "certified"),
    ("gap", np.inf, 0.8, 1.0, {}, None),
    ("gap", 1.0, 0.9, 1.0, {"separates": False}, "certified"),
    ("separation", np.inf, 0.1, 1.0, {}, "separated"),
    ("separation", 1.0, 0.1, 1.0, {}, "separated"),
    ("separation", 1.0, 0.1, 1.0, {"separates": False}, None),
    ("separation", 1.0, 0.9, 1.0, {"separates": False}, "certified"),
    ("separation", np.inf, 0.0, 1.0, {"separates": False}, None),
    ("gap", np.inf, 0.0, 1e-15, {"separates": False}, "no_margin"),
    ("gap", np.inf, 0.0, 1e-15, {"separates": False, "refuted": True}, "no_margin"),
    ("gap", np.inf, 0.0, 1e-3, {"separates": False}, None),
    ("gap", 1.0, 0.0, 1e-15, {"separates": False}, None),
    ("iterations", np.inf, 0.9, 0.9, {}, None),
]


@pytest.mark.parametrize(("goal", "C", "lower", "upper", "known", "status"), STATUSES)
def test_each_status_has_its_proof(goal, C, lower, upper, known, status):
    data = of_two_rows(C)
    found = confirmed(lower, upper, **known)
    goal, _, zero = goal.partition(", ")
    stopping = Stopping(goal, tol=0.0 if zero else 0.1 + 1e-9, negligible=1e-6)
    assert stopping.status_of(data, Progress(None, []), found) == status
    if known.get("separates", True):
        promised = Progress(None, [], lower=lower, upper=upper)
        assert stopping.promised(data, promised) == status


def test_a_small_bound_ends_a_fit_with_a_proof_or_at_its_end():
    """Where no bound is negligible."""
    data, stopping = of_two_rows(), Stopping(max_iter=50)
    found, proved = (
        confirmed(0.0, 1e-15, separates=False, refuted=r) for r in (False, True)
    )
    going = Progress(None, [], n_iter=9, upper=1e-15)
    assert stopping.status_of(data, going, found) is None
    assert stopping.status_of(data, going, proved) == "no_margin"
    for ended in (going._replace(settled=True), going._replace(n_iter=50)):
        assert stopping.status_of(data, ended, found) == "no_margin"


def test_a_best_predictor_that_does_not_separate_is_not_the_model():
    """The bounds of its round were wrong, as those of rounds in float32 may be."""
    data, q = of_two_rows(), proof(of_two_rows(), 0.8)
    best, last = predictor(-0.1), predictor(-0.3)
    progress = Progress(
        None,
        [],
        best=Candidate(best, min_margin=0.5),
        fallback=Candidate(last, fallback=True),
        proof=Candidate(q, q.mass),
    )
    found = certify(SCRIPT, data, progress)
    np.testing.assert_array_equal(found.model.image, last.image)
    assert not found.separates
    better = progress._replace(best=Candidate(predictor(0.1), min_margin=0.5))
    found = certify(SCRIPT, data, better)
    np.testing.assert_allclose([found.lower, found.upper], [0.1, 0.8])
    assert found.separates


@pytest.mark.parametrize("overlaps", [True, False])
def test_an_overlap_is_claimed_with_a_proof_only(overlaps):
    """Three points on a line, the middle one of the other class: or beside it, by 1e-12."""
    X = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    X[1, 1] += 0.0 if overlaps else 1e-12
    data = LinearAdapter(X, make_rows(np.array([0, 1, 0]), 2, balanced=True))
    q = data.combine(np.array([0.25, 0.5, 0.25]), precise=True)
    progress = Progress(
        None, [], fallback=Candidate(q, offsets=np.zeros(2)), proof=Candidate(q, 1.0)
    )
    found = certify(SCRIPT, data, progress)
    assert found.upper < 1e-11
    assert found.refuted == overlaps


@pytest.mark.parametrize("shift", [0.0, 3e-4])
def test_the_intercept_of_least_loss_is_sought_where_small_margins_count(shift):
    """One long example decides nothing: the others, a thousand times shorter, overlap."""
    rng = np.random.default_rng(0)
    codes = np.append(np.arange(40) % 2, 1)
    sign = np.where(codes == 1, 1.0, -1.0)
    scores = 1e-3 * sign + 1e-3 * rng.standard_normal(41) + shift
    scores[-1] = 1.0
    rows = make_rows(codes, 2, balanced=True)
    found = least_loss(rows, sign * scores)

    def risk(parameters):
        return np.exp(
            -sign * (np.exp(parameters[0]) * (scores + parameters[1] * 1e-3))
        ).sum()

    best = minimize(
        risk, [6.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10}
    )
    np.testing.assert_allclose(
        rows.score_offsets(found.offsets), 1e-3 * best.x[1], atol=2e-6
    )
