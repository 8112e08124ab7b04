"""Which solver suits a program, and which ones follow where it stalls."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.interior_point import interior_point
from marginsvm.solvers.newton import newton
from marginsvm.solvers.solution import Monitor, Solution

Method = Callable[[QuadraticProgram, Array | None, float, int, Monitor], Solution]

# Products of numbers in a step of interior points, and unknowns on the smaller side, at most.
PRODUCTS, SIDE = 2**29, 1000
# C times the median squared norm, up to which few variables are free in dual coordinate descent.
SHORT = 5.0
FEW = 500  # rows that are solved by interior points in a few milliseconds


def solve(
    qp: QuadraticProgram, start: Array | None, tol: float, max_iter: int, monitor: Monitor
) -> Solution:
    """Solve a program by the methods that suit it, one after the other until one does not stall.

    Parameters are those of every method, see :mod:`marginsvm.solvers.solution`. Each method begins
    at the alpha of the last.
    """
    start = None if start is None else qp.feasible(start)
    best, done = None, 0
    for method in methods(qp):
        found = method(qp, start, tol, max_iter - done, monitor)
        done, start = done + found.n_iter, found.alpha
        if best is None or found.gap < best.gap:
            best = found
        if found.status in ("converged", "stopped") or done >= max_iter:
            break
    assert best is not None
    return best._replace(n_iter=done, status=found.status)


def methods(qp: QuadraticProgram) -> Iterator[Method]:
    """The methods for a program, in order."""
    # importing numba takes a third of a second
    from marginsvm.solvers.dual_cd import dual_cd
    from marginsvm.solvers.smo import smo

    examples, several, nu = qp.examples, qp.codes is not None, bool(qp.level) and not qp.hard
    n, d, rows = examples.n, examples.d, int(np.prod(qp.shape))
    if qp.signs is not None:  # only interior points know signs
        yield interior_point
        return
    if d is None:  # kernels: few columns decide
        yield smo
        yield newton
        if rows <= 4 * SIDE:
            yield interior_point
        return
    width = d if qp.k == 1 else d * np.sqrt(qp.k)
    small = (rows * width**2 <= PRODUCTS and qp.k * d <= SIDE) or rows <= 2 * SIDE
    hinge = qp.cap is not None or bool(np.isfinite(qp.upper).all())
    in_memory, wide = getattr(examples.X, "in_memory", True), d > n
    if in_memory and several and examples.sparse:
        yield dual_cd
    elif in_memory and not several and not nu:
        sizes = np.broadcast_to(qp.upper, rows), examples.squared_norms
        short = hinge and float(np.median(sizes[0]) * np.median(sizes[1])) <= SHORT
        if short or (examples.sparse and wide):
            yield dual_cd
    if small and (hinge or nu or rows <= FEW):
        yield interior_point
        yield newton
    else:
        yield newton
        if rows <= 4 * SIDE or qp.k * d <= 4 * SIDE:
            yield interior_point
