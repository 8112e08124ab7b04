"""Proofs of overlap and of infeasibility: an exact alpha, near the published one or on few rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import nnls

from marginsvm._typing import Array
from marginsvm.certificate.bounded import dual, error_of_targets
from marginsvm.certificate.exact_algebra import refuting_weights
from marginsvm.certificate.publication import FLOATS, Proof, published_weights
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.gram import distinct, keys_of
from marginsvm.problem.quadratic_program import QuadraticProgram

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
FREE = 2**22  # multiplications of a proof that may always be tried: a few milliseconds
# Upper bound on margins (in radii) below which a proof of overlap is tried; and, for features and
# for kernels, below which A'alpha may be exactly 0.
WORTH_A_PROOF = 1e-2
VANISHING = 1e-9
KERNEL_VANISHING = 1e-6


def refuted(
    qp: QuadraticProgram, alpha: Array, passes: float = inf, total: float = 1.0
) -> Array | None:
    """An alpha nearby, or on few rows, that proves that no predictor separates or fits.

    The proof is for the given examples, without slack, and begins at alpha as it is published, with
    this total: of examples that nearly depend on each other, last digits decide whether it is
    found. None: nothing is proved, or it would take longer than so many passes over all rows (and
    than a few milliseconds).
    """
    width = qp.examples.width * qp.k
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
        of: Any = {
            "intercept": intercept or qp.intercept,
            "signs": signs,
            "gains": gains,
        }
        if refuting_weights(X, S, weights * factor, **of) is not None:
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
    first: dict[Any, int] = {}
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
    width = qp.examples.width * qp.k
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
    for _ in range(2):  # iterative refinement
        some = np.flatnonzero(q > 1e-12 * q.max())  # smaller entries are rounding
        q[some] += np.linalg.lstsq(
            A[:, some], wanted - A[:, some] @ q[some], rcond=None
        )[0]
    q[np.abs(q) <= 1e-12 * q.max()] = 0.0
    if not q.any() or q.min() < 0.0:
        return None
    found = np.zeros(qp.shape)
    found.flat[r] = q
    return found


def of_few_columns(
    A: Array, wanted: Array, weight: Array, most: float = inf
) -> Array | None:
    """Nonnegative least squares ``min |A q - wanted|``, by a working set of columns.

    It starts with those of the largest weights. Others join by their price, the gradient there,
    which takes a product with all columns, where nonnegative least squares on all of them takes
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
        except RuntimeError:  # it cycles
            return None
        rest = wanted - A[:, some] @ q
        length = float(np.linalg.norm(rest))
        price = rest @ A
        price[some] = 0.0
        if not (SOLVED < length < SLOWLY * last and price.max() > 0.0):
            break
        joining = np.argsort(-price, kind="stable")[: WORKING_SET * m]
        some = np.append(some[q > 0.0], joining[price[joining] > 0.0])
        last = length
    found = np.zeros(n)
    found[some] = q
    return found


def prove_overlap(proof: Proof, passes: float = inf) -> Proof:
    """The proof, with ``refuted`` set if an exact alpha nearby proves overlap, see ``refuted``."""
    qp = proof.qp
    small = WORTH_A_PROOF if qp.hard else vanishing(qp.examples)
    hopeful = qp.game and proof.margin <= 0.0 and proof.margin_bound <= small
    return with_refutation(proof, passes) if hopeful else proof


def vanishing(examples: FloatExamples) -> float:
    """Upper bound on margins (in radii) below which ``A'alpha = 0`` may be proved exactly."""
    return KERNEL_VANISHING if examples.is_kernel else VANISHING


def with_refutation(proof: Proof, passes: float = inf, total: float = 1.0) -> Proof:
    """The proof with an alpha that refutes, if one is found; see ``refuted``."""
    alpha = refuted(proof.qp, proof.alpha, passes, total)
    if alpha is None:
        return proof
    return replace(proof, alpha=alpha, dual=dual(proof.qp, alpha, FLOATS), refuted=True)
