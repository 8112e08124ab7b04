"""Which methods the exact solver takes, when it changes them, and how many passes that costs."""

import pickle
import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers.estimators import fit
from helpers.routes import CASES

from marginsvm import MaxMarginClassifier, MomentumMarginClassifier
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.portfolio import FIRST, NEXT
from marginsvm.algorithms.exact.stage import Stage
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.fit import Algorithm, Candidate, Stopping, play
from marginsvm.fit.confirm import confirm
from marginsvm.kernel_matrix import LinearAdapter, make_rows

PAGE = Path(__file__).parents[1] / "docs" / "exact_solver.md"

# How each of the problems ends: the status; the methods, each with its rounds; the passes. Made by
# ``python -m helpers.routes``. A change of the portfolio or of a method that moves a number beyond
# what rounding does (a fifth) changes the table, and says why. Steps that rounding ends are as many
# as it allows: "any".
ROUTES = {
    "signs": ("no_margin", "interior points 1", 5.0),
    "few rows": ("certified", "working set of rows 1", 2.0),
    "few rows, overlap": ("no_margin", "working set of rows 1", 2.0),
    "few rows, soft": ("certified", "interior points 1", 1.0),
    "few rows, soft, wide": ("certified", "working set of rows 1", 2.0),
    "few rows, four classes": ("certified", "working set of rows 1", 4.0),
    "hinge, classes": ("certified", "interior points 1", 70.0),
    "hinge, many classes": ("certified", "coordinate ascent 14", 140.0),
    "hinge, many classes, large C": (
        "certified",
        "coordinate ascent 2, interior points 2",
        133.0,
    ),
    "hinge, rbf": ("certified", "pairs 1", 0.4),
    "hinge, rbf, last digits": ("certified", "pairs 3, multipliers 2", 6.6),
    "hinge, rbf, not compiled": ("certified", "multipliers 19", 38.1),
    "hinge, wide": ("certified", "multipliers 1", 8.0),
    "hinge": ("certified", "interior points 1", 2.0),
    "hinge, long steps": ("certified", "multipliers 17", 42.8),
    "hinge, slow": ("certified", "multipliers 40, interior points 2", 143.0),
    "hinge, near copies": ("certified", "interior points any", None),
    "rbf, soft": ("certified", "pairs 1", 0.9),
    "rbf, hard": ("certified", "working set of rows 2", 0.3),
    "rbf, three classes": ("certified", "one example at a time 1", 0.9),
    "rbf, three classes, hinge": ("certified", "one example at a time 1", 0.6),
    "rbf, three classes, last digits": ("certified", "one example at a time 1", 0.9),
    "rbf, three classes, not compiled": ("certified", "working set of rows 6", 4.1),
    "rbf, outgrown": ("certified", "working set of rows 1, multipliers 5", 12.6),
    "rbf, hard, four classes": (
        "certified",
        "one example at a time 3, working set of rows 2",
        2.0,
    ),
    "rbf, hard, outgrown": ("certified", "multipliers 14, interior points 1", 50.1),
    "wide": ("certified", "working set of rows 1", 2.0),
    "wide, twelve classes": ("certified", "working set of rows 1", 2.0),
    "soft": ("certified", "Newton 2", 6.1),
    "soft, outgrown": ("certified", "working set of rows 2, multipliers 2", 12.1),
    "soft, sparse": ("certified", "Newton 4", 10.1),
    "soft, by passes": ("certified", "Newton 5", 14.5),
    "soft, three classes": ("certified", "Newton 3", 8.2),
    "soft, factors of classes": ("certified", "Newton 9", 111.8),
    "soft, large C": ("certified", "Newton 3, multipliers 13", 40.1),
    "soft, large C, dependent": (
        "certified",
        "Newton 6, multipliers 40, interior points 2",
        122.8,
    ),
    "soft, large C, ten classes": (
        "certified",
        "Newton 3, multipliers 15, working set of rows 2",
        49.0,
    ),
    "soft, large C, six classes": ("certified", "Newton 7, multipliers 9", 42.9),
    "soft, sparse, few and long": ("certified", "coordinate ascent 1", 2.0),
    "soft, sparse, classes": ("certified", "coordinate ascent 2, multipliers 4", 54.1),
    "soft, sparse, classes, large C": ("certified", "coordinate ascent 4, multipliers 10", 116.5),
    "hinge, sparse, classes": ("certified", "coordinate ascent 11", 110.0),
    "hard": ("certified", "working set of rows 1", 4.0),
    "hard, half of the rows": ("certified", "interior points 1", 2.0),
    "hard, half of the rows, thin": (
        "certified",
        "interior points any, working set of rows any",
        None,
    ),
    "hard, overlap": ("no_margin", "working set of rows 1", 4.0),
    "hard, three classes, overlap": ("no_margin", "working set of rows 1", 5.0),
    "hard, outgrown": ("no_margin", "working set of rows 1, multipliers 5", 24.4),
    "hard, sparse, short": ("certified", "working set of rows 1", 3.0),
    "hard, sparse, few and long": ("no_margin", "coordinate ascent 1, working set of rows 1", 4.0),
    "hard, sparse": ("certified", "multipliers 1, working set of rows 2", 10.0),
    "hard, sparse, classes": ("certified", "coordinate ascent 17", 170.0),
    "hard, there and back": (
        "certified",
        "multipliers 1, working set of rows 1, multipliers 11",
        35.2,
    ),
    "tube": ("certified", "interior points 1", 4.0),
    "tube, rbf": ("certified", "pairs of tubes 1", 1.9),
    "tube, rbf, share": ("certified", "pairs of tubes of some width 1", 0.7),
    "tube, polynomial": ("certified", "interior points 1", 1.9),
    "tube, rbf, large C": ("certified", "pairs of tubes 1, interior points 1", 6.0),
    "tube, wide": ("certified", "interior points 1", 4.0),
    "tube, long steps": ("certified", "multipliers 34", 182.2),
    "tube, share, long steps": ("certified", "multipliers 26", 167.8),
    "tube, squared, long steps": ("certified", "Newton 3", 17.1),
    "one class": ("certified", "interior points 1", 0.3),
    "one class, pairs": ("certified", "pairs 1", 0.0),
    "one class, linear": ("certified", "interior points 1", 12.0),
    "one class, linear, many numbers": ("certified", "multipliers 16", 59.5),
    "one class, hard": ("certified", "working set of rows 1", 0.3),
}


@cache
def fitted(name):
    return CASES[name].fitted()


def near(value, known):
    """Whether a number is that of the table; numbers above three may be off by a fifth."""
    return value == pytest.approx(known, abs=0.1, rel=0.2 if known > 3 else 0.0)


@pytest.mark.parametrize("name", CASES)
def test_routes(name):
    clf = fitted(name)
    status, route, passes = ROUTES[name]
    known = [re.fullmatch(r"(.*) (\d+|any)", part).groups() for part in route.split(", ")]
    seen = clf.certificate_.route
    assert clf.status_ == status
    assert [method for method, _ in seen] == [method for method, _ in known], seen
    counts = zip(seen, known, strict=True)
    assert all(n == "any" or near(m, int(n)) for (_, m), (_, n) in counts), seen
    took = clf.history_["n_passes"][-1]
    assert passes is None or near(took, passes), took
    assert sum(rounds for _, rounds in seen) == clf.n_iter_


def test_every_rule_is_used():
    used = {case.first_rule().name for case in CASES.values()}
    assert used == {rule.name for rule in FIRST}


def test_every_handover_is_made():
    made = set()
    for name in CASES:
        state = fitted(name)._progress.state
        for one in state if isinstance(state, tuple) else (state,):
            made.update(getattr(one, "stage", one).done)
    assert made == {handover.key for handovers in NEXT.values() for handover in handovers}


def test_a_route_is_part_of_the_certificate(rng):
    """Of a copy, and of a fit that was continued, too."""
    case = CASES["soft, large C, ten classes"]
    whole = fitted("soft, large C, ten classes").certificate_
    assert pickle.loads(pickle.dumps(whole)).route == whole.route
    assert f"route={whole.route}" in repr(whole)
    part = case.classifier().set_params(max_iter=4)
    fit(part, *case.data)
    assert part.certificate_.route == (("Newton", 3), ("multipliers", 1))
    assert fit(part.set_params(max_iter=200), *case.data).certificate_.route == whole.route


def test_an_algorithm_of_one_phase_is_its_own_route(rng):
    clf = fit(MomentumMarginClassifier(max_iter=7), *CASES["few rows"].data)
    assert clf.certificate_.route == (("Momentum", clf.n_iter_),)


def test_another_cost_has_a_route_of_its_own():
    X, y = CASES["soft"].data
    clf = MaxMarginClassifier(C=1.0, warm_start=True).fit(X, y)
    clf.set_params(C=1.1).fit(X, y)
    assert clf.certificate_.route == (("Newton", clf.n_iter_),)


def tables():
    """The rules of the portfolio, as the documentation prints them."""
    yield from ("| problem | method to begin with | tables |", "|---|---|---|")
    yield from (f"| {rule.name} | {rule.method.name} | {rule.measured} |" for rule in FIRST)
    yield from ("", "| method | has found | on this condition | next | tables |")
    yield "|---|---|---|---|---|"
    for (method, turn), handovers in NEXT.items():
        for handover in handovers:
            found = " or ".join(sorted(one.name.lower() for one in turn))
            case = f"{getattr(method, 'name', 'any')} | {found} | {handover.name}"
            yield f"| {case} | {handover.method.name} | {handover.measured} |"


def test_the_documentation_prints_the_rules():
    lines = "\n".join(tables())
    assert lines in PAGE.read_text(), f"docs/exact_solver.md must contain:\n{lines}"


def test_the_documentation_names_every_threshold():
    page = PAGE.read_text()
    for name, value in vars(Portfolio()).items():
        number = value if value is True else f"{value:,}"
        assert f"`{name}` = {number}" in page, f"docs/exact_solver.md must contain {name}, {value}"


@dataclass(frozen=True)
class Boaster(Algorithm):
    """Claims a margin that it does not have."""

    def start(self, problem):
        return problem.combine(np.full(problem.rows.shape, 1.0 / problem.n_rows))

    def step(self, problem, w):
        return 1.0 * w

    def candidates(self, problem, w):
        yield Candidate(w, w.mass, min_margin=problem.norm(w) ** 2, fallback=True)


def test_bounds_that_are_not_confirmed_are_tried_again_seldom(monkeypatch, rng):
    """After a tenth more rounds: confirming takes passes."""
    confirmed = []

    def counted(algorithm, problem, progress):
        confirmed.append(progress.n_iter)
        return confirm(algorithm, problem, progress)

    monkeypatch.setattr(sys.modules["marginsvm.fit.play"], "confirm", counted)
    y = np.arange(20) % 2
    problem = LinearAdapter(rng.standard_normal((20, 3)), make_rows(y, 2, balanced=False))
    assert play(Boaster(), problem, Stopping(max_iter=100)).status == "max_iter"
    expected = [1]
    while (after := expected[-1] + 1 + expected[-1] // 10) < 100:
        expected.append(after)
    assert confirmed == [*expected, 100]


@dataclass(frozen=True)
class Stuck(Method):
    """A method whose progress has stopped."""

    name = "stuck"
    candidates = ()
    rounds: int = 0

    def advance(self, problem, tol):
        return replace(self, rounds=self.rounds + 1), Turn.STALLED


def test_a_fit_goes_on_while_another_method_may_take_over(rng):
    """The patience of a fit may end with that of its method, and another one has played nothing."""
    rows = make_rows(np.arange(20) % 2, 2, balanced=True)
    problem, portfolio = LinearAdapter(rng.standard_normal((20, 3)), rows, 1.0), Portfolio()
    stage = Stage.of(Stuck()).advance(problem, 1e-6, portfolio)
    assert stage.nearer
    done = tuple(handover.key for handover in NEXT[Method, Turn.STALLED])
    assert not replace(stage, done=done).advance(problem, 1e-6, portfolio).nearer


@dataclass(frozen=True)
class Jumpy(Method):
    """Bounds halve their gap in some rounds, and are far off in the others."""

    name = "jumpy"
    jumps: frozenset
    gap: float = 1.0
    rounds: int = 0
    candidates: tuple[Candidate, ...] = ()

    def advance(self, problem, tol):
        near, vector = self.rounds in self.jumps, problem.zeros()
        gap = 0.5 * self.gap if near else self.gap
        bounds = (1.0 - gap, 1.0 + gap) if near else (0.1, 10.0)
        low, high = (1.0 / bound for bound in bounds)
        seen = Candidate(vector, norm=low), Candidate(vector, norm_bound=high)
        return replace(self, gap=gap, rounds=self.rounds + 1, candidates=seen), Turn.NEARER


def rounds_until_stalled(jumps, rng):
    rows = make_rows(np.arange(20) % 2, 2, balanced=True)
    problem = LinearAdapter(rng.standard_normal((20, 3)), rows, 1.0)
    stage = Stage.of(Jumpy(frozenset(jumps)))
    while Turn.STALLED not in stage.turn and stage.rounds < 100:
        stage = stage.advance(problem, 1e-6, Portfolio())
    return stage.rounds


def test_bounds_of_all_rounds_count(rng):
    """Upper bounds of multipliers are seldom near but in the round in which they are updated."""
    assert rounds_until_stalled(range(1, 41, 5), rng) > 2 * Portfolio().long_patience


def test_a_method_that_has_come_far_is_left_more_time(rng):
    early, last = range(1, 40, 5), 36  # the round before the 37th
    patience = Portfolio().patience
    assert rounds_until_stalled(early, rng) == last + 1 + 2 * patience - 1
    assert rounds_until_stalled([*early, last + 8], rng) > last + 8 + patience
    assert rounds_until_stalled([1, 6, 11], rng) == 11 + 1 + patience
