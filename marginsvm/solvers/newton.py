"""Semismooth Newton on the primal, within an augmented Lagrangian if the loss has kinks.

    min over w, f      |w|^2/2 + g'f + sum_i cost_i(target_i - (A w + F f)_i)

with the losses of ``loss``. The squared hinge loss is smooth and needs no proximal term. Otherwise,
and for very large C, each proximal problem is solved about as precisely as its multipliers v are
known, and v becomes its best response; rho is decreased if that took few steps. With alpha the best
response and f the minimiser for given w (``F'alpha = g``), the gradient is ``w - A'alpha``. A step
solves ``(R + E'DE) (dw, df) = (A'alpha - w, 0)`` with D the derivative of the best response, by the
free rows, by the features, or by conjugate gradients, and is followed by an exact line search.

References
----------
S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large scale linear
SVMs. JMLR, 2005.

X. Li, D. Sun, K.-C. Toh. A highly efficient semismooth Newton augmented Lagrangian method for
solving Lasso problems. SIAM Journal on Optimization, 2018.

R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research, 1976.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.solvers.loss import Loss
from marginsvm.solvers.solution import Monitor, Progress, Solution
from marginsvm.solvers.systems import NewtonSystem

# Initial rho without another scale (radii squared): the ridge of the squared hinge loss at C = 10.
RHO = 0.05
KNOWN = 0.01  # factor of the initial rho of a warm start
# Rho is multiplied by SMALLER if the last proximal problem took at most FEW_STEPS steps.
SMALLER, FEW_STEPS, LEAST = 0.2, 2, 1e-13
ROUNDING = 1e-14  # relative decrease of the objective that counts as rounding
INWARD = 1e-11  # tightening of hard targets, relative to their size
PATIENCE = 30  # iterations without a decrease of the gap by a tenth


def newton(
    qp: QuadraticProgram, start: Array | None, tol: float, max_iter: int, monitor: Monitor
) -> Solution:
    """Solve a program of any size, without sign constraints on coefficients."""
    progress, examples, unit = Progress(qp, tol, max_iter, monitor), qp.examples, unit_of(qp)
    if qp.hard and not qp.game:  # hard targets are met only up to rounding
        qp = replace(qp, target=qp.target + INWARD * unit)
    system = NewtonSystem(qp)
    w, f, v = progress.w, progress.f, np.zeros(qp.shape)
    S, narrow = np.zeros((examples.n, qp.k)), 1.0
    if start is not None:
        progress.dual(start)
        v = progress.alpha
        w = qp.rmatvec(v)
        S = examples.scores(w)
        unit = max(examples.inner(w, w), 1e-20) if qp.game else unit
        # as large as the violations of the start, relative to unit
        loss = Loss(qp, rho_of(qp, KNOWN, unit), v)
        off = loss.raw(loss.settle(qp.values(S, f), f)[1]) - v
        off = np.maximum(np.where(v < qp.upper, off, 0.0), np.where(v > 0.0, -off, 0.0))
        narrow = min(1.0, max(KNOWN, float((off * loss.s).max()) / unit))
    rho = rho_of(qp, narrow, unit)
    loss = Loss(qp, rho, v)
    f, m = loss.settle(qp.values(S, f), f)
    taken, J, reach = 0, np.inf, np.inf
    while True:
        response = loss.best_response(m)
        alpha = qp.feasible(response)  # a change by rounding only
        image = qp.rmatvec(alpha)
        progress.dual(alpha, image)
        progress.primal(w, f, S, settled=not (qp.hard or qp.level))
        if not progress.goes_on() or progress.idle > PATIENCE:
            break
        r, before = image - w, J
        J = 0.5 * examples.inner(w, w) + float(qp.g @ f) + loss.value(m, response)
        still = before - J <= ROUNDING * abs(J)
        if np.any(rho):  # update v once its subproblem is solved to the accuracy of v
            inner, missed = 0.5 * examples.inner(r, r), 0.5 * float(np.sum(rho * (alpha - v) ** 2))
            if inner <= missed or still:
                if taken <= FEW_STEPS:
                    narrow *= SMALLER
                rho, v, taken, J = rho_of(qp, narrow, unit), alpha, 0, np.inf
                loss = Loss(qp, rho, v)
                f, m = loss.settle(m, f)
                response = loss.best_response(m)
                r = qp.rmatvec(response) - w
        dw, df = system.direction(*loss.derivative(m, response), loss.s, r)
        T = examples.scores(dw)
        move = qp.values(T, df)
        slope = examples.inner(w, dw) + float(qp.g @ df)
        t = loss.search(m, move, slope, max(examples.inner(dw, dw), 0.0))
        w, before_f, S, taken = w + t * dw, f + t * df, S + t * T, taken + 1
        f, m = loss.settle(qp.values(S, before_f), before_f, reach)
        reach = 4.0 * float(np.abs(f - before_f).max(initial=0.0))
    return progress.solution()


def unit_of(qp: QuadraticProgram) -> float:
    """The scale of the rows' values: the size of targets or, in a game, of margins."""
    if qp.game:
        rows = np.ones(qp.shape)
        if qp.codes is not None:
            rows[np.arange(len(rows)), qp.codes] = 0.0
        w = qp.rmatvec(qp.feasible(rows))
        return max(qp.examples.inner(w, w), 1e-20)
    if qp.by_margins:
        return 1.0
    S = np.zeros((qp.examples.n, qp.k))
    r = qp.target - qp.values(S, qp.best_f(S, np.zeros(qp.n_free)))
    return float(np.abs(r).mean()) or 1.0


def rho_of(qp: QuadraticProgram, narrow: float, unit: float) -> Array:
    """The proximal parameter rho; 0 if the ridge alone makes the loss smooth enough.

    With upper bounds, rho starts so large that rows whose values differ by one unit are free.
    """
    upper = qp.upper if qp.cap is None else qp.cap[:, None]
    if np.any(qp.ridge):
        base = RHO * qp.ridge / np.mean(qp.ridge)
    elif qp.codes is None or qp.cap is not None:
        base = np.maximum(unit / upper, RHO)
    else:
        base = np.full((1, 1), RHO)
    if np.all(SMALLER * narrow * base <= qp.ridge):
        return np.zeros(())
    return np.maximum(narrow * base - qp.ridge, LEAST)
