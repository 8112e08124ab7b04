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

# Limits for interior points: multiplications per iteration, and unknowns of the smaller side.
PRODUCTS = 2**29
SIDE = 1000
# C times the median squared norm below which dual coordinate descent has few free variables.
SHORT = 5.0
# Rows, entries of all rows, and examples that interior points solve in some milliseconds.
FEW = 500
SMALL = 2**16
FEWEST = 200
ROUNDING = 1e-14  # of a gap
# Limits of memory that containers have: of cgroup 2 and 1.
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
                solution.count()
                yield
        except np.linalg.LinAlgError:  # an indefinite matrix, possibly by rounding
            continue
        if solution.ended or solution.gap <= ROUNDING:  # no other solver gets below it
            break
        start = solution.alpha if solution.gap < 1.0 else None
    if qp.game and not np.isfinite(
        solution.P
    ):  # overlap: difference of the class means
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
    """The solvers for a program, in order: the first choice, then fallbacks."""
    # importing numba takes a third of a second
    from marginsvm.solvers.dual_cd import dual_cd
    from marginsvm.solvers.smo import smo

    def ten_epochs(solution: Solution, start: Array | None) -> Iterator[None]:
        return islice(dual_cd(solution, start), 1)

    examples = qp.examples
    several = qp.several
    tube = not qp.by_margins
    n = examples.n
    d = examples.d
    rows = len(qp.rows.ids)
    hinge = qp.cap is not None or bool(np.isfinite(qp.upper).all())
    hard = qp.hard
    nu = bool(qp.level) and not qp.hard
    unknowns = (
        rows if several else n
    )  # of systems by the rows: the two rows of a tube share one
    side = unknowns if d is None else min(unknowns, qp.k * d)
    last: list[Method] = [newton, interior_point] if side <= 4 * SIDE else [newton]
    if qp.signs is not None:  # the only solver with sign constraints
        return [interior_point]
    definite = not examples.is_kernel or getattr(examples.kernel, "is_definite", False)
    few = (unknowns <= FEWEST and definite) or (d and rows <= FEW and rows * d <= SMALL)
    if few and not (hard and tube):  # an iteration takes less than a millisecond
        either: list[Method] = [interior_point, newton]
        return (
            [active_set, *last]
            if hard
            else either
            if hinge or tube
            else [active_set, *either]
        )
    if examples.is_kernel and hard and tube:  # alpha may be unbounded
        return last[::-1]
    # few support vectors need few columns; the squared hinge loss is solved exactly
    if examples.is_kernel:
        return [smo, *([] if hinge or tube else [active_set]), *last]
    # multiplications per step by the features; a row of several classes has two blocks
    products = (
        rows * float(d) ** 2 * (1 if not several else qp.k if qp.cap is not None else 2)
    )
    small = (products <= PRODUCTS and qp.k * d <= SIDE) or rows <= 2 * SIDE
    first: list[Method] = [interior_point, newton] if small else last
    if nu:  # rho is just another unknown for interior points
        return first
    if not getattr(examples.X, "in_memory", True):  # needs passes only
        return (
            first if small else [active_set, newton] if hard and not tube else [newton]
        )
    if examples.sparse and several:  # an epoch costs the nonzeros of X
        return [dual_cd, *(first if hinge else last)]
    if (
        examples.sparse and not tube and d > n
    ):  # so do products, and most rows are identified early
        return [dual_cd, *([] if hinge else [pivoting_by_products]), *last]
    if examples.sparse and not tube and hard:
        return [ten_epochs, active_set, *first]
    if hinge and not several and not tube:
        upper, square = map(_middle, (qp.upper, examples.squared_norms))
        if upper * square <= SHORT:  # few variables are free
            return [dual_cd, *first]
    if hard and not tube:  # few support vectors
        return [active_set, *first]
    if hinge or tube:  # Newton's method needs many steps for losses with kinks
        return first
    if (
        d > n and rows <= 3 * SIDE and not examples.sparse
    ):  # nearly all rows are support vectors
        return [active_set, *first]
    return last  # the squared hinge loss is smooth


def _middle(values: Array) -> float:
    """The median, without the checks of NumPy's."""
    half = len(values) // 2
    return float(np.partition(values, half)[half])


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
