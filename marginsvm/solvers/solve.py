"""Selection of the solver for a program, and of fallbacks if it stalls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.active_set import active_set, pivoting_by_products
from marginsvm.solvers.interior_point import interior_point
from marginsvm.solvers.newton import newton
from marginsvm.solvers.solution import Solution

Method = Callable[[Solution, Array | None], Iterator[None]]

# What interior points solve fast: multiplications of an iteration and unknowns by the features, or
# rows; and unknowns of either side that they can solve, as the last resort.
PRODUCTS = 2**29
SIDE = 1000
ROWS = 2000
SIDE_OF_FALLBACK = 4000
ROWS_OF_PIVOTING = 3000  # nearly all of which are support vectors
# C times the median squared norm below which dual coordinate descent has few free variables.
SHORT = 5.0
# What takes less than a millisecond an iteration: rows with entries, or unknowns.
FEW = 500
SMALL = 2**16
FEWEST = 200
ROUNDING = 1e-14  # of a gap
# Dense features from which on an epoch takes a small part of a step of Newton's method, and entries
# of a copy of them (128 MB). For the squared hinge loss, in times of the features: rows with
# alpha > 0, or all rows, from which on Newton's method takes few steps.
WIDE = 100
COPIED = 2**24
MANY = 6
LONG = 100
# Where containers have the limit of their memory: cgroup 2 and 1.
CONTAINERS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def solve(
    solution: Solution, start: Array | None = None, chosen: list[Method] | None = None
) -> Iterator[None]:
    """Solve a program by the first of the chosen solvers that does not stall.

    It yields at the end of each iteration, see :mod:`marginsvm.solvers.solution`. Each solver
    starts at the best alpha so far; by default, they are those of ``methods``.
    """
    qp = solution.qp
    start = None if start is None else qp.feasible(start)
    for method in methods(qp) if chosen is None else chosen:
        solution.idle = 0
        try:
            for _ in method(solution, start):
                solution.n_iter += 1
                yield
        except np.linalg.LinAlgError:  # an indefinite matrix, possibly by rounding
            continue
        if solution.ended or solution.gap <= ROUNDING:  # no other solver gets below it
            break
        start = solution.alpha if solution.gap < 1.0 else None
    if qp.game and not np.isfinite(solution.P):
        # The classes overlap: w is the difference of their means.
        alpha = np.where(np.broadcast_to(qp.upper, qp.shape) > 0.0, 1.0, 0.0)
        solution.primal(qp.rmatvec(qp.feasible(alpha)), solution.f)


def solved(
    qp: QuadraticProgram, tol: float, max_iter: int, start: Array | None = None
) -> Solution:
    """The end of ``solve``."""
    solution = Solution(qp, tol, max_iter)
    for _ in solve(solution, start):
        pass
    return solution


def methods(qp: QuadraticProgram) -> list[Method]:
    """The solvers for a program, in order: the first choice, then fallbacks.

    Read as a table: the first row whose condition holds.
    """
    # importing numba takes a third of a second
    from marginsvm.solvers.dual_cd import dual_cd
    from marginsvm.solvers.smo import smo

    def ten_epochs(solution: Solution, start: Array | None) -> Iterator[None]:
        return islice(dual_cd(solution, start), 1)

    def while_few_rows_count(solution: Solution, start: Array | None) -> Iterator[None]:
        for _ in dual_cd(solution, start):
            yield
            if np.count_nonzero(solution.alpha) > MANY * qp.design.d:
                return

    def on_few_rows(solution: Solution, start: Array | None) -> Iterator[None]:
        if start is not None and np.count_nonzero(start) <= 2 * qp.design.d:
            yield from active_set(solution, start)

    examples = qp.examples
    n = examples.n
    d = examples.d
    rows = qp.rows.n_rows
    several = qp.several
    tube = not qp.by_margins
    hard = qp.hard
    hinge = qp.cap is not None or bool(np.isfinite(qp.upper).all())
    nu = bool(qp.level) and not hard
    # Unknowns of systems by the rows (the two rows of a tube share one), and of the smaller side.
    unknowns = rows if several else n
    side = unknowns if d is None else min(unknowns, qp.k * d)
    last: list[Method] = [newton]
    if side <= SIDE_OF_FALLBACK:
        last = [newton, interior_point]
    either: list[Method] = [interior_point, newton]
    definite = not examples.is_kernel or getattr(examples.kernel, "is_definite", False)
    few = unknowns <= FEWEST and definite
    few = few or bool(d and rows <= FEW and rows * d <= SMALL)

    # Interior points alone have sign constraints.
    if qp.signs is not None:
        return [interior_point]
    # On few rows, an iteration takes less than a millisecond.
    if few and not (hard and tube):
        if hinge or tube:
            return either
        return [active_set, *(last if hard else either)]
    # In a hard tube by a kernel, alpha may be unbounded.
    if examples.is_kernel and hard and tube:
        return last[::-1]
    # Few support vectors need few columns of a kernel.
    if examples.is_kernel and (hinge or tube):
        return [smo, *last]
    # The squared hinge loss and hard margins are then solved exactly.
    if examples.is_kernel:
        return [smo, active_set, *last]

    d = qp.design.d
    # Multiplications per step by the features: a row of several classes has two blocks, or all.
    blocks = 1 if not several else 2 if qp.cap is None else qp.k
    products = rows * float(d) ** 2 * blocks
    small = (products <= PRODUCTS and qp.k * d <= SIDE) or rows <= ROWS
    first = either if small else last
    in_memory = getattr(examples.X, "in_memory", True)
    # rho is just another unknown for interior points.
    if nu:
        return first
    # Passes over blocks are all that these need.
    if not in_memory and not small:
        return [active_set, newton] if hard and not tube else [newton]
    if not in_memory:
        return first
    # An epoch of coordinate descent costs the nonzeros of X.
    if examples.sparse and several:
        return [dual_cd, *(first if hinge else last)]
    # So do products, and most rows of wide X are identified early.
    if examples.sparse and not tube and d > n:
        return [dual_cd, *([] if hinge else [pivoting_by_products]), *last]
    # Ten epochs tell the active set where to begin.
    if examples.sparse and not tube and hard:
        return [ten_epochs, active_set, *first]
    # An epoch of coordinate descent takes as long as the nonzeros of X, or a small part of an
    # iteration of other methods; or few variables are free.
    foreign = getattr(examples.X, "foreign", False)
    wide = d > WIDE and n * d <= COPIED and not foreign
    quick = examples.sparse or (wide and not small)
    if hinge and not several and not tube and (quick or _is_short(qp)):
        return [dual_cd, *first]
    # A hard margin has few support vectors.
    if hard and not tube:
        return [active_set, *first]
    # Newton's method needs many steps for losses with kinks.
    if hinge or tube:
        return first
    # Nearly all rows of wide X are support vectors.
    if d > n and rows <= ROWS_OF_PIVOTING and not examples.sparse:
        return [active_set, *first]
    # The squared hinge loss is smooth.
    if several or n > LONG * d or not (examples.sparse or wide):
        return last
    return [while_few_rows_count, on_few_rows, *last]


def _is_short(qp: QuadraticProgram) -> bool:
    """Whether C is small for the examples' norms."""
    return bool(np.median(qp.upper) * np.median(qp.examples.squared_norms) <= SHORT)


@cache
def installed() -> int | None:
    """Memory of the machine, or the limit of its container, in bytes; None if unknown."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in CONTAINERS:
        with suppress(ValueError, OSError):  # "max": there is none
            limits.append(int(Path(path).read_text()))
    return min(limits, default=None)


def refuse_what_cannot_fit(qp: QuadraticProgram) -> None:
    """Raise an error if a fit needs more than the machine's memory.

    Raises
    ------
    MemoryError
        With the sizes and advice.
    """
    there = installed()
    d = qp.examples.d or 0
    k = qp.k
    rows = qp.size
    side = min(rows, k * d) if qp.level and not qp.hard else 0
    dense = rows * (k * d + 2) if qp.signs is not None else 0
    # a step of Newton's method: arrays over the rows, predictors; matrices of interior points
    needed = 8 * (8 * rows + 10 * k * d + 3 * (side * side + dense))
    if there is None or needed <= there:
        return
    sizes = f"{qp.examples.n} examples"
    advice = "use fewer examples or features"
    if d:
        sizes += f", {d} features"
    if qp.several:
        sizes += f" and {k} classes"
        advice = (
            "sklearn.multiclass.OneVsRestClassifier(MaxMarginClassifier(...)) solves one class at "
            f"a time with {k} times less memory, and gives a certificate for each class"
        )
    raise MemoryError(
        f"a joint fit of {sizes} takes {needed / 1e9:.0f} GB besides X, and this machine has "
        f"{there / 1e9:.0f} GB: {advice}"
    )
