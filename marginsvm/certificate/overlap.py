"""Proofs of overlap and of infeasibility: an exact alpha, near the published one or on few rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from math import inf

import numpy as np
from scipy.optimize import nnls

from marginsvm._typing import Array
from marginsvm.certificate.bounded import dual, error_of_targets
from marginsvm.certificate.exact_algebra import refuting_weights
from marginsvm.certificate.publication import (
    FLOATS,
    Certified,
    Proof,
    published,
    published_weights,
    with_weights,
)
from marginsvm.problem.gram import distinct, keys_of
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.rows import OutputRows
from marginsvm.problem.vectors import Predictor

# Error of the predictor of a hard tube above which a proof of infeasibility is tried.
UNFIT = 1e-6
# |A'alpha| (in radii, sum of alpha 1) above which NNLS on few rows is tried before alpha itself. If
# NNLS finds no smaller |A'alpha|, alpha is not tried.
ROUGH = 1e-9
ROUGH_IN_KERNELS = 1e-5  # for kernels: norms are roots of squares, whose terms cancel
MOST_NUMBERS = 2**25  # largest size of the rows in exact arithmetic
SAME_LENGTH = 1e-12  # rounding of squared norms, relative to the largest
# For NNLS: largest size of the dense rows; features from which on it takes seconds; and the penalty
# on F'alpha.
WRITTEN_OUT = 2**22
MANY_FEATURES = 1000
STIFF = 1e4
# Its columns at a time, and products with these, for each equation; the residual (of weights of sum
# 1) that is rounding, and the share that remains of one where more columns do not help.
WORKING_SET = 10
NNLS_PRODUCTS = 4
SOLVED = 1e-10
SLOWLY = 0.99
ROUNDED = 1e-12  # entries of q that are rounding, relative to the largest
REFINEMENTS = 2
FREE = 2**22  # multiplications of a proof that may always be tried: a few milliseconds

# The w, f and alpha of a program.
PrimalDual = tuple[Array, Array, Array]


def refuted(
    qp: QuadraticProgram, alpha: Array, passes: float = inf, total: float = 1.0
) -> Array | None:
    """An alpha nearby, or on few rows, that proves that no predictor separates or fits.

    The proof is for the given examples, without slack, and begins at alpha as it is published, with
    this total: of examples that nearly depend on each other, last digits decide whether it is
    found. None: nothing is proved, or it would take longer than so many passes over all rows (and
    than a few milliseconds).
    """
    width = qp.width * qp.k
    most = max(FREE, passes * qp.examples.n * width)
    for candidate in _candidates(qp, alpha, most):
        q = published_weights(qp, candidate, total)
        r, S, gains = rows_with_weight(qp, q)
        i = qp.rows.example_of(r)
        weights = q.flat[r]
        if not 0 < len(i) * (qp.examples.d or 1) <= MOST_NUMBERS:
            continue
        if 2 * len(i) * min(len(i), width) ** 2 > most:  # two factorisations
            continue
        X, factor, intercept = qp.examples.given(i)
        if qp.examples.is_kernel and qp.examples.kernel is not None:
            X = distinct(X)
        signs = None if qp.signs is None else qp.signs[: X.shape[1]]
        found = refuting_weights(
            X,
            S,
            weights * factor,
            intercept=intercept or qp.intercept,
            signs=signs,
            gains=gains,
        )
        if found is not None:
            return q
    return None


def rows_with_weight(
    qp: QuadraticProgram, alpha: Array
) -> tuple[Array, Array, Array | None]:
    """Rows with alpha > 0, their score coefficients and (for intervals) targets."""
    rows = qp.rows
    r = rows.ids[np.flatnonzero(rows.flat(alpha))]
    r = r[np.argsort(rows.example_of(r), kind="stable")]
    # coefficients of several classes sum to 0: the last ones add no equation
    S = rows.of_scores(r)[:, : rows.n_intercepts]
    if qp.by_margins:
        return r, S, None
    return r, S, qp.target[r] - float(error_of_targets(qp, FLOATS))


def _candidates(qp: QuadraticProgram, alpha: Array, most: float) -> Iterator[Array]:
    # candidates with a large |A'alpha| come last, as published they would give weak bounds
    rough = float(dual(qp, alpha, FLOATS).length) > ROUGH * float(alpha.sum())
    if not rough:
        yield alpha
    if qp.hard:  # with nu, upper bounds exclude an alpha on few rows
        found = equal_examples(qp)
        if found is not None:
            yield found
        found = on_few_rows(qp, alpha, most)
        if found is not None:
            apart = ROUGH_IN_KERNELS if qp.examples.is_kernel else ROUGH
            if qp.by_margins and float(dual(qp, found, FLOATS).length) > apart * float(
                found.sum()
            ):
                return  # no alpha on these rows has a smaller A'alpha
            yield found
    if rough and np.count_nonzero(alpha) * (qp.examples.d or 1) <= WRITTEN_OUT:
        yield alpha


def equal_examples(qp: QuadraticProgram) -> Array | None:
    """Alpha of 1/2 on two equal examples of different classes; X must be in memory."""
    if not qp.by_margins or not getattr(qp.examples.X, "in_memory", True):
        return None
    codes = qp.rows.labels
    lengths = qp.examples.squared_norms
    order = np.argsort(lengths)
    near = np.diff(lengths[order]) <= SAME_LENGTH * np.abs(lengths).max()
    alike = np.sort(order[np.append(near, False) | np.append(False, near)])
    if not len(alike):
        return None
    X, factor, _ = qp.examples.given(alike)
    first: dict[tuple[Hashable, float], int] = {}
    for i, key, times in zip(alike, keys_of(X), factor, strict=True):
        other = first.setdefault((key, times), i)
        if codes[other] != codes[i]:
            q = np.zeros(qp.shape)
            q.flat[qp.rows.opposed(i, other)] = 0.5
            return q
    return None


def on_few_rows(qp: QuadraticProgram, alpha: Array, most: float = inf) -> Array | None:
    """A basic alpha, on at most as many rows as equations, with ``A'alpha = 0`` in floats.

    Nonnegative least squares on the rows with alpha > 0 or, for intervals, on all rows. None:
    there is none, or they are too many; where it takes more than ``most`` multiplications, alpha.
    """
    width = qp.width * qp.k
    if not qp.by_margins and width * alpha.size <= WRITTEN_OUT:
        alpha = np.ones(qp.shape)
    r, S, gains = rows_with_weight(qp, alpha)
    i = qp.rows.example_of(r)
    if (
        not len(i)
        or width > MANY_FEATURES
        or len(i) * width > WRITTEN_OUT
        or qp.signs is not None
    ):
        return None
    few, at = np.unique(i, return_inverse=True)
    if not qp.examples.is_kernel:
        Z = qp.design.written_out(few)
    elif qp.examples.kernel is not None:  # rounded values: only equality is exact
        Z = distinct(qp.examples.given(few)[0]).toarray()
    else:
        Z = qp.examples.gram(few, few)
    A = np.einsum("rk,rd->kdr", S, Z[at]).reshape(-1, len(i))
    if qp.intercept:
        A = np.vstack([A, STIFF * S.T])
    last = np.ones(len(i)) if gains is None else gains / (np.abs(gains).max() or 1.0)
    wanted = np.append(np.zeros(len(A)), 1.0)
    A = np.vstack([A, last])
    q = of_few_columns(A, wanted, alpha.flat[r], most)
    if q is None:
        return alpha
    for _ in range(REFINEMENTS):
        some = np.flatnonzero(q > ROUNDED * q.max())
        q[some] += np.linalg.lstsq(
            A[:, some], wanted - A[:, some] @ q[some], rcond=None
        )[0]
    q[np.abs(q) <= ROUNDED * q.max()] = 0.0
    if not q.any() or q.min() < 0.0:
        return None
    found = np.zeros(qp.shape)
    found.flat[r] = q
    return found


def of_few_columns(
    A: Array, wanted: Array, weight: Array, most: float = inf
) -> Array | None:
    """Nonnegative least squares ``min |A q - wanted|``, by a working set of columns.

    It starts with those of the largest weights. Others join by the gradient there, which
    takes a product with all columns, where nonnegative least squares on all of them takes
    several for each equation.

    Parameters
    ----------
    A : ndarray of shape (n_equations, n_columns)
    wanted : ndarray of shape (n_equations,)
    weight : ndarray of shape (n_columns,)
    most : float
        Multiplications after which it gives up.

    Returns
    -------
    ndarray of shape (n_columns,) or None
        Least squares, or larger ones where these fall slowly; None: it has given up.
    """
    m, n = A.shape
    last = inf
    some = np.argsort(-weight, kind="stable")[: WORKING_SET * m]
    while True:
        most -= NNLS_PRODUCTS * m * m * len(some) + m * n
        if most < 0.0:
            return None
        try:
            q = nnls(A[:, some], wanted)[0]
        except RuntimeError:  # least squares cycle
            return None
        rest = wanted - A[:, some] @ q
        length = float(np.linalg.norm(rest))
        gradient = rest @ A
        gradient[some] = 0.0
        if not (SOLVED < length < SLOWLY * last and gradient.max() > 0.0):
            break
        joining = np.argsort(-gradient, kind="stable")[: WORKING_SET * m]
        some = np.append(some[q > 0.0], joining[gradient[joining] > 0.0])
        last = length
    found = np.zeros(n)
    found[some] = q
    return found


def with_refutation(proof: Proof, passes: float = inf, total: float = 1.0) -> Proof:
    """The proof with an alpha that refutes, if one is found; see ``refuted``."""
    alpha = refuted(proof.qp, proof.alpha, passes, total)
    if alpha is None:
        return proof
    return replace(proof, alpha=alpha, dual=dual(proof.qp, alpha, FLOATS), refuted=True)


def prove_intervals(
    rows: OutputRows,
    programs: list[QuadraticProgram],
    points: Iterable[PrimalDual],
    model: Predictor,
) -> Certified:
    """Publish predictors and alpha, (w, f, alpha), for intervals, and bound both values."""
    k = len(programs)
    found = tuple(
        with_weights(qp, published(qp, w, b, width, origin), alpha, 1.0 / k)
        for qp, w, b, alpha, width, origin in of_outputs(rows, programs, points)
    )
    certified = Certified(model, found, scales_of(rows, programs))
    if programs[0].hard and certified.error(rows.farthest) > UNFIT:
        tried = tuple(with_refutation(proof, total=1.0 / k) for proof in found)
        certified = replace(certified, proofs=tried)
    return certified


def scales_of(rows: OutputRows, programs: list[QuadraticProgram]) -> Array:
    """Units of the outputs that programs stand for, relative to the largest."""
    known = rows.scales
    return np.ones(len(programs)) if known is None else np.atleast_1d(known)


def of_outputs(
    rows: OutputRows,
    programs: list[QuadraticProgram],
    points: Iterable[PrimalDual],
) -> Iterator[tuple[QuadraticProgram, Array, Array, Array, Array, Array]]:
    """Program, w, intercepts, alpha, width and origin of each output, from (w, f, alpha)."""
    k = len(programs)
    origin = np.broadcast_to(rows.origin if rows.balanced else 0.0, k * programs[0].k)
    middle = np.broadcast_to(rows.middle, k * programs[0].k)
    for o, (qp, (w, f, alpha)) in enumerate(zip(programs, points, strict=True)):
        some = slice(o, o + qp.k)
        b = f[: len(w)]
        width = f[len(w) :]
        if not rows.balanced:
            b = np.zeros(len(w))
            width = f
        if rows.farthest == 0.0:  # all targets are in the tube with w = 0
            w = 0.0 * w
            b = middle[some]
            width = 0.0 * width
        yield qp, w, b, alpha, width, origin[some]
