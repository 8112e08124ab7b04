"""The loop, played on a script: vectors whose bounds are known are shown to it round by round."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from marginsvm.fit import Algorithm, Candidate, Progress, Stopping, confirm, least_loss, play
from marginsvm.problem.adapter import LinearAdapter, Vector
from marginsvm.problem.rows import make_rows


def problem(C=np.inf):
    """Two rows at right angles: the best margin is the root of a half."""
    rows = make_rows(np.array([1, 0]), 2, balanced=False)
    return LinearAdapter(np.array([[1.0, 0.0], [0.0, -1.0]]), rows, C)


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
    outcome = play(SCRIPT, data := problem(), ENDLESS)
    lines = [*outcome.progress.history]
    np.testing.assert_allclose([line.lower for line in lines], [0.2, 0.5, 0.5, 0.6, 0.6])
    np.testing.assert_allclose([line.upper for line in lines], [0.9, 0.9, 0.8, 0.8, 0.8])
    bounds = confirm(SCRIPT, data, outcome.progress)
    np.testing.assert_allclose([bounds.lower, bounds.upper], [0.6, 0.8])
    last = predictor(0.1)  # the model, had nothing been found
    np.testing.assert_array_equal(outcome.progress.fallback.vector.image, last.image)


def test_a_fit_that_goes_on_ends_as_one_longer_fit():
    data = problem()
    whole = play(SCRIPT, data, ENDLESS).progress
    first = play(SCRIPT, data, replace(ENDLESS, max_iter=2)).progress
    before = first.copy()
    data.work.passes += 100  # those between two fits are of neither
    second = play(SCRIPT, data, ENDLESS, resume=first).progress
    assert vars(first) == vars(before)
    for ours, theirs in zip(second.history, whole.history, strict=True):
        assert ours[:2] + ours[3:] == theirs[:2] + theirs[3:]
    assert second.history[-1].n_passes < 100.0
    seconds = [line.seconds for line in second.history]
    assert seconds == sorted(seconds)
    assert second.seconds == seconds[-1] > first.seconds > 0.0


def test_bounds_are_confirmed_anew_in_each_round():
    """A fit that reached its goal goes on to a smaller gap, and publishes what it finds then."""
    data, first = problem(), None
    for tol, max_iter, ended, lower in (
        (0.5, 5, ("certified", 2), 0.5),
        (0.3, 5, ("certified", 4), 0.6),
        (0.01, 4, ("max_iter", 4), 0.6),
    ):
        found = play(SCRIPT, data, Stopping(tol=tol, max_iter=max_iter), resume=first)
        assert (found.status, found.progress.n_iter) == ended
        np.testing.assert_allclose(found.progress.confirmed.lower, lower)
        first = first or found.progress


class BoastsOnce(Script):
    """Promises too much in its first round, where digits are lost."""

    def candidates(self, problem, state):
        return Script.candidates(replace(self, too_much=0.3 * (state == 1)), problem, state)


def test_a_promise_that_failed_keeps_nothing_better_out():
    script = BoastsOnce((0.0, 0.45, 0.6), (1.0, 0.75, 0.75))
    outcome = play(script, problem(), Stopping(tol=0.25, max_iter=50))
    assert (outcome.status, outcome.progress.n_iter) == ("certified", 2)


def test_a_step_that_changes_nothing_ends_a_fit():
    still = Script((0.5, 0.5, 0.5), (0.8, 0.8, 0.8))
    outcome = play(still, problem(), Stopping(max_iter=50))
    assert (outcome.status, outcome.progress.n_iter) == ("stalled", 3)
    outcome = play(still, problem(), Stopping(max_iter=50, tol=0.4))
    assert (outcome.status, outcome.progress.n_iter) == ("certified", 1)


def confirmed(lower, upper, *, separates=True, refuted=False):
    return SimpleNamespace(lower=lower, upper=upper, separates=separates, refuted=refuted)


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
    ("rounds", np.inf, 0.9, 0.9, {}, None),
]


@pytest.mark.parametrize(("goal", "C", "lower", "upper", "known", "status"), STATUSES)
def test_each_status_has_its_proof(goal, C, lower, upper, known, status):
    data = problem(C)
    found = confirmed(lower, upper, **known)
    goal, _, zero = goal.partition(", ")
    stopping = Stopping(goal, tol=0.0 if zero else 0.1 + 1e-9, negligible=1e-6)
    assert stopping.confirmed(data, Progress(None), found) == status
    if known.get("separates", True):
        promised = Progress(None, lower=lower, upper=upper)
        assert stopping.promised(data, promised) == status


def test_a_small_bound_ends_a_fit_with_a_proof_or_at_its_end():
    """Where no bound is negligible."""
    data, stopping = problem(), Stopping(max_iter=50)
    found = confirmed(0.0, 1e-15, separates=False)
    proved = confirmed(0.0, 1e-15, separates=False, refuted=True)
    going = Progress(None, n_iter=9, upper=1e-15)
    assert stopping.confirmed(data, going, found) is None
    assert stopping.confirmed(data, going, proved) == "no_margin"
    for ended in (replace(going, settled=True), replace(going, n_iter=50)):
        assert stopping.confirmed(data, ended, found) == "no_margin"


def test_a_best_predictor_that_does_not_separate_is_not_the_model():
    """The bounds of its round were wrong, as those of rounds in float32 may be."""
    data, q = problem(), proof(problem(), 0.8)
    best, last = predictor(-0.1), predictor(-0.3)
    progress = Progress(
        None,
        best=Candidate(best, min_margin=0.5),
        fallback=Candidate(last, fallback=True),
        proof=Candidate(q, q.mass),
    )
    found = confirm(SCRIPT, data, progress)
    np.testing.assert_array_equal(found.model.image, last.image)
    assert not found.separates
    better = replace(progress, best=Candidate(predictor(0.1), min_margin=0.5))
    found = confirm(SCRIPT, data, better)
    np.testing.assert_allclose([found.lower, found.upper], [0.1, 0.8])
    assert found.separates


@pytest.mark.parametrize("overlaps", [True, False])
def test_an_overlap_is_claimed_with_a_proof_only(overlaps):
    """Three points on a line, the middle one of the other class: or beside it, by 1e-12."""
    X = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    X[1, 1] += 0.0 if overlaps else 1e-12
    data = LinearAdapter(X, make_rows(np.array([0, 1, 0]), 2, balanced=True))
    q = data.combine(np.array([0.25, 0.5, 0.25]), precise=True)
    progress = Progress(None, fallback=Candidate(q, offsets=np.zeros(2)), proof=Candidate(q, 1.0))
    found = confirm(SCRIPT, data, progress)
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
        return np.exp(-sign * (np.exp(parameters[0]) * (scores + parameters[1] * 1e-3))).sum()

    best = minimize(risk, [6.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10})
    b = rows.score_offsets(found.offsets)
    np.testing.assert_allclose(b, 1e-3 * best.x[1], atol=2e-6)
