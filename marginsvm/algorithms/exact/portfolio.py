"""Which method solves a problem, and which one takes over: the tables of rules.

The thresholds are those of :class:`~marginsvm.algorithms.exact.thresholds.Portfolio`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from marginsvm.algorithms.exact.ascent import Ascent
from marginsvm.algorithms.exact.interior.interior_points import Interior
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.multipliers import Multipliers, target
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.newton_systems import (
    multipliers_by_products,
    multipliers_of,
    system_for,
)
from marginsvm.algorithms.exact.pair_rules import (
    OF_SHARES,
    PAIRS_OF_A_SHARE,
    PAIRS_OF_TUBES,
    TUBES,
)
from marginsvm.algorithms.exact.pairs import OneByOne, Pairs
from marginsvm.algorithms.exact.rules import Handover, Problem, Rule
from marginsvm.algorithms.exact.shape import Shape
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.starts import LongStart, ascended, short_start
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.algorithms.exact.tube_pairs import TubePairs
from marginsvm.algorithms.exact.working_set import WorkingSet
from marginsvm.rows import Predictor, Vector

# First states.


def _in_room(problem: Problem, p: Portfolio, work: WorkingSet) -> WorkingSet:
    return replace(work, room=Shape.of(problem).room(p))


def _rows(problem: Problem, p: Portfolio) -> WorkingSet:
    return _in_room(problem, p, WorkingSet.start(problem))


def _rows_near(problem: Problem, p: Portfolio, w: Predictor, proof: Vector) -> WorkingSet | None:
    work = _in_room(problem, p, WorkingSet.with_weights(proof.coef))
    return None if problem.slack is None or work.begun is Turn.MANY else work


def _rows_of_all(problem: Problem, p: Portfolio, state: Method) -> WorkingSet:
    assert state.weights is not None
    return _in_room(problem, p, WorkingSet.with_weights(state.weights, state.candidates))


def _rows_of(problem: Problem, p: Portfolio, state: Method) -> WorkingSet:
    work, room = _rows_of_all(problem, p, state), p.room_left
    if not Shape.of(problem).by_kernel:  # if as many more join, those that matter are not known yet
        room = min(room, max(p.few_rows, 2 * len(work.row_ids)))
    return replace(work, room=room)


def _newton(problem: Problem, p: Portfolio) -> Newton:
    return Newton.start(problem, target(problem), system_for(problem, p))


def _newton_near(problem: Problem, p: Portfolio, w: Predictor, proof: Vector) -> Newton | None:
    if problem.slack is None:
        return None
    return Newton.of(problem, Slack(problem.slack), system_for(problem, p), w)


def _multipliers_from(problem: Problem, p: Portfolio, state: Ascent) -> Multipliers:
    return Multipliers.start(problem, system_for(problem, p), state.candidates[1].vector.coef)


def _pairs_of(problem: Problem) -> type[Pairs]:
    return Pairs if problem.rows.n_classes == 2 else OneByOne


def _points(problem: Problem, p: Portfolio, before: Interior | None = None) -> Interior:
    return replace(Interior.start(problem, before), more=p.more)


def _multipliers(problem: Problem, p: Portfolio, state: Method | None = None) -> Multipliers:
    s = Shape.of(problem)
    u = ascended(problem) if s.soft and s.sparse and s.classes == 2 and not s.tube else None
    return Multipliers.start(problem, system_for(problem, p), u)


def _are_few(s: Shape, p: Portfolio, state: Method) -> bool:
    u = state.weights
    return u is not None and s.are_few(p, int(np.count_nonzero(u)))


# The tables.

_SETS, _SOFT_TABLES = "Hard margins (benchmarks.md)", "Soft margins (benchmarks.md)"
_TWO = "Many rows, many features (benchmarks.md)"
_CLASSES = "More than two classes (benchmarks.md)"
_KERNEL_TABLES, _HINGE = "Kernels (benchmarks.md)", "Choosing C (benchmarks.md)"
_STRESS, _POINTS = "A stress run (measurements.md)", "Interior points (measurements.md)"
_SIGNS = "Signs of coefficients (measurements.md)"

# In order: the first one that applies counts.
FIRST = (
    Rule("signs of coefficients", Interior, lambda s, p: s.signed, _points, _SIGNS),
    PAIRS_OF_A_SHARE,
    Rule(
        "share of the examples, features: a tube of many unknowns on both sides, or no more than "
        "two classes and more numbers in all rows than `in_cache`",
        Multipliers,
        Shape.is_large_share,
        _multipliers,
        f"{OF_SHARES}; {TUBES}",
    ),
    Rule(
        "share of the examples", Interior, lambda s, p: s.share and not s.tube, _points, OF_SHARES
    ),
    Rule(
        "tube, kernel of few dimensions, few examples, no more products in a step than `inside`",
        Interior,
        lambda s, p: s.tube and s.has_few_dimensions(p),
        _points,
        TUBES,
    ),
    *PAIRS_OF_TUBES,
    Rule(
        "tube of unknown width; kernel; few unknowns on one side, no more products in a step than "
        "`inside`, or wide",
        Interior,
        lambda s, p: s.tube and (s.share or s.by_kernel or s.is_inside(p) or s.is_wide_tube(p)),
        _points,
        TUBES,
    ),
    Rule("tube, squared slack", Newton, lambda s, p: s.tube and s.soft, _newton, TUBES),
    Rule("tube", Multipliers, lambda s, p: s.tube, _multipliers, TUBES),
    Rule(
        "kernel: hinge loss of two classes; not few rows, but for hard margins of two classes",
        Pairs,
        Shape.is_for_pairs,
        lambda problem, p: _pairs_of(problem).start(problem),
        _KERNEL_TABLES,
        lambda problem, p, w, proof: _pairs_of(problem).of(problem, proof),
    ),
    Rule(
        "several classes, more than `few_rows` rows: hinge loss, in memory, more products in a "
        "step than `inside`; others sparse, more than `direct` unknowns; of a hard margin, longer "
        "than a quarter of the examples",
        Ascent,
        Shape.is_for_ascent,
        lambda problem, p: Ascent(),
        _CLASSES,
        _newton_near,
    ),
    Rule(
        "hinge loss, several classes, few unknowns on one side",
        Interior,
        lambda s, p: s.hinge and s.classes > 2 and s.is_small(p),
        _points,
        _CLASSES,
    ),
    Rule(
        "hinge loss; kernel, or dense, two classes, up to `few_left` examples, more features",
        Multipliers,
        lambda s, p: s.hinge and (s.by_kernel or s.is_wide(p)),
        multipliers_by_products,
        _HINGE,
    ),
    Rule(
        "hinge loss, no more features than examples, no more products in a step than `inside`",
        Interior,
        lambda s, p: s.hinge and s.is_inside(p),
        _points,
        _POINTS,
    ),
    Rule("hinge loss", Multipliers, lambda s, p: s.hinge, _multipliers, f"{_HINGE}; {_CLASSES}"),
    Rule(
        "soft margin, no more features than examples, of which there are no more than `few_rows`, "
        "no more numbers in all rows than `in_cache`",
        Interior,
        lambda s, p: s.soft and s.is_inside(p) and s.is_short(p),
        _points,
        _POINTS,
    ),
    Rule(
        "hard margin, dense, two to four times as many examples as features, no more numbers in "
        "all rows than twice `in_cache`",
        Interior,
        Shape.is_between,
        _points,
        _POINTS,
    ),
    Rule(
        "no more rows than `few_rows`", WorkingSet, lambda s, p: s.rows <= p.few_rows, _rows, _SETS
    ),
    Rule("kernel", WorkingSet, lambda s, p: s.by_kernel, _rows, _KERNEL_TABLES, _rows_near),
    Rule(
        "dense, more features than examples, no more rows than `room`; of two classes, than "
        "`few_left`",
        WorkingSet,
        lambda s, p: s.is_wide(p),
        _rows,
        _SETS,
        _rows_near,
    ),
    Rule(
        "sparse, two classes, no more examples than `few_long`, longer than a quarter of their "
        "number",
        LongStart,
        Shape.is_long,
        lambda problem, p: LongStart(),
        f"{_SOFT_TABLES}; {_SETS}: rcv1, tng",
    ),
    Rule(
        "soft margin", Newton, lambda s, p: s.soft, _newton, f"{_SOFT_TABLES}; {_TWO}", _newton_near
    ),
    Rule(
        "hard margin, dense or several classes, no more rows for all pairs than `few_left`",
        WorkingSet,
        lambda s, p: s.first_rows <= p.few_left and (not s.sparse or s.classes > 2),
        _rows,
        _SETS,
    ),
    Rule(
        "hard margin, sparse, two classes, four times as many examples as features",
        WorkingSet,
        lambda s, p: s.sparse and s.classes == 2 and not s.has_long_rows,
        lambda problem, p: _in_room(problem, p, short_start(problem)),
        f"{_SETS}: mushrooms",
    ),
    Rule("hard margin", Multipliers, lambda s, p: True, _multipliers, _CLASSES),
)

_BY_PRODUCTS = Handover(
    "kernel",
    Multipliers,
    lambda s, p, state: s.by_kernel,
    multipliers_of,
    _KERNEL_TABLES,
)

_FEW_ON_ONE_SIDE = Handover(
    "few unknowns on one side",
    Interior,
    lambda s, p, state: s.is_small(p, p.side_last) and not isinstance(state, Interior),
    lambda problem, p, state: None if problem.flaw() else _points(problem, p),
    _POINTS,
)

# For each method and what it has found, in order: the first one that applies, and that the fit has
# not been through, takes over.
NEXT: dict[tuple[type[Method], Turn], tuple[Handover, ...]] = {
    (WorkingSet, Turn.MANY): (
        _BY_PRODUCTS,
        Handover(
            "features",
            Multipliers,
            lambda s, p, state: not s.by_kernel,
            _multipliers,
            f"{_TWO}; Two Gaussian clouds (measurements.md)",
        ),
    ),
    (LongStart, Turn.FEW): (
        Handover("always", WorkingSet, lambda s, p, state: True, _rows_of_all, _SOFT_TABLES),
    ),
    (Ascent, Turn.SHORT | Turn.STALLED): (
        replace(
            _FEW_ON_ONE_SIDE,
            name="hinge loss, few unknowns on one side",
            applies=lambda s, p, state: s.hinge and s.is_small(p),
            measured=_CLASSES,
        ),
        Handover("always", Multipliers, lambda s, p, state: True, _multipliers_from, _CLASSES),
    ),
    (TubePairs, Turn.STALLED): (
        replace(
            _FEW_ON_ONE_SIDE,
            name="no more examples than `few_long`",
            applies=lambda s, p, state: s.rows <= p.few_long,
        ),
    ),
    (Pairs, Turn.STALLED): (
        Handover(
            "no hinge loss, no more rows with weight than `few_left`",
            WorkingSet,
            lambda s, p, state: not s.hinge and _are_few(s, p, state),
            _rows_of,
            _KERNEL_TABLES,
        ),
        _BY_PRODUCTS,
    ),
    (Newton, Turn.SHORT): (
        Handover("a large C", Multipliers, lambda s, p, state: s.steep, _multipliers, _STRESS),
    ),
    (Multipliers, Turn.FEW): (
        Handover(
            "no more rows with weight than `few_left`, for a system of which `products` are not "
            "quicker; soft ones no more than features, or than `rows_a_number` of these and with "
            "the slack that digits need (`lost`)",
            WorkingSet,
            _are_few,
            _rows_of,
            f"{_CLASSES}; {_STRESS}",
            returns=True,
        ),
    ),
    (Interior, Turn.STALLED): (
        Handover(
            "hard margin for which it came first",
            WorkingSet,
            lambda s, p, state: s.is_between(p),
            lambda problem, p, state: _rows(problem, p),
            _POINTS,
        ),
        Handover(
            "it has ended; slack, or few enough numbers to write out, sparse or of no more "
            "features than examples, no signs of coefficients",
            Interior,
            lambda s, p, state: state.ended and (s.soft or s.hinge or s.has_other_axes),
            _points,
            _POINTS,
        ),
    ),
    (Method, Turn.STALLED): (_FEW_ON_ONE_SIDE,),
}
