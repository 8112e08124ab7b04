"""The faces of a large sparse design, by products with its rows alone.

Null spaces are not written out. Rows that are known to overlap stay in the problem as equalities,
whose squares are added to the hinges: at a minimum, its weights balance all the same, and where no
other row has weight, all equalities hold. What a null space is needed for, the status of the
coefficients, is read off random vectors of it: a coordinate in which these are 0 is 0 in all of
them, with probability 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr
from scipy.special import expit

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.certify.checker.triangular import triangular_factor
from marginsvm.separability.hinge import FEW_COLUMNS, least_squared_hinge, newton_step
from marginsvm.separability.split import Split

_LOW_WEIGHT = 1e-6  # a row with more weight overlaps; the largest possible is about 1
_NO_WEIGHT = 1e-10  # weights up to this are rounding of 0
_TIGHT = 1e-13  # relative precision of projections
_MAX_PROJECTION_STEPS = 100  # Newton steps; ten are usual
_SLOW_STEPS = 5  # steps in a row that do not halve the gradient
_SHORTEST_PROJECTION_STEP = 1e-6  # of a Newton step
_PRODUCTS_OF_PROJECTION = 5000  # in a projection at most
_ZERO_COORDINATE = 1e-8  # coordinates of projections that are 0, in columns of unit length
_RANDOM_VECTORS = 16  # random vectors of a null space
_MAX_STAGES = 200
_THIN_MARGIN = 1e-7  # margins of unit rows that float64 and products may have left to chance


def split_sparse(A: Any, equality: Array) -> Split:
    """Split the rows of a sparse design; see :func:`marginsvm.separability.faces.split`."""
    lengths, norms, Z = _equilibrated(A)
    fixed, z, doubt = equality.copy(), np.zeros(Z.shape[1]), ""
    for _ in range(_MAX_STAGES):
        if fixed.all():
            z = 0.0 * z
            break
        z, u = least_squared_hinge(Z, fixed)
        top = u[~fixed].max()
        if top <= _NO_WEIGHT + 1e3 * UNIT * float(np.abs(z).max()):
            doubt = "a margin is as thin as rounding" * bool(np.sqrt(z @ z) * _THIN_MARGIN > 1.0)
            break
        fixed |= u > min(_LOW_WEIGHT, 0.1 * top)
    weights = np.zeros(len(fixed))
    weights[fixed] = _logistic_weights(Z[fixed], equality[fixed]) / norms[fixed]
    weights /= np.abs(weights).max(initial=0.0) or 1.0
    return _with_faces(Z, lengths, ~fixed, z / lengths, weights, doubt)


def _logistic_weights(Z: Any, equality: Array) -> Array:
    """Weights with ``Z^T q = 0`` that are positive on all rows but equalities.

    They are the derivatives of a sum of logistic losses of these rows, and squares of the
    equalities, at its minimum, which exists as the rows overlap.
    """
    z, m = np.zeros(Z.shape[1]), np.zeros(Z.shape[0])
    best, least, stalled = _derivatives(m, equality), np.inf, 0
    for _ in range(_MAX_PROJECTION_STEPS):
        q = _derivatives(m, equality)
        descent = Z.T @ q
        slope = float(np.abs(descent).max(initial=0.0))
        stalled = 0 if slope < 0.5 * least else stalled + 1
        if slope < least:
            best, least = q, slope
        if slope <= UNIT or stalled > _SLOW_STEPS:
            break
        step = newton_step(Z, descent, np.where(equality, 1.0, q * (1.0 - q)))
        moves, t = Z @ step, 1.0
        while t > _SHORTEST_PROJECTION_STEP and _derivatives(m + t * moves, equality) @ moves < 0.0:
            t *= 0.5  # beyond the minimum on this line
        z = z + t * step
        m = Z @ z
    return best


def _derivatives(m: Array, equality: Array) -> Array:
    return np.where(equality, -m, expit(-m))


def sparse_split_of_separator(A: Any, w: Array) -> Split:
    """The split of rows that are all positive in a direction w."""
    lengths, _, Z = _equilibrated(A)
    return _with_faces(Z, lengths, np.ones(Z.shape[0], bool), w, np.zeros(Z.shape[0]), "")


def identified_of_sparse(A: Any) -> Array:
    """Indices of the columns that are not combinations of those before them."""
    lengths, _, Z = _equilibrated(A)
    nothing = np.zeros(Z.shape[0])
    return _with_faces(Z, lengths, nothing > 0.0, 0.0 * lengths, nothing, "").identified


def _equilibrated(A: Any) -> tuple[Array, Array, Any]:
    """Lengths of the columns, of the rows, and the rows with these made 1; 1 for zeros."""
    A = sp.csr_array(A)
    top = np.asarray(abs(A).max(axis=0).toarray()).ravel()
    Z = A @ sp.diags_array(1.0 / np.where(top > 0.0, top, 1.0))
    norms = _lengths(Z.multiply(Z).sum(axis=1))
    Z = sp.diags_array(1.0 / norms) @ Z
    columns = _lengths(Z.multiply(Z).sum(axis=0))
    Z = sp.csr_array(Z @ sp.diags_array(1.0 / columns))
    Z.eliminate_zeros()
    return np.where(top > 0.0, top, 1.0) * columns, norms, Z


def _lengths(squares: Array) -> Array:
    lengths = np.sqrt(np.asarray(squares).ravel())
    return np.where(lengths > 0.0, lengths, 1.0)


def _with_faces(
    Z: Any, lengths: Array, separated: Array, direction: Array, weights: Array, doubt: str
) -> Split:
    """Find out which coefficients are identified, and which are infinite.

    If more columns than there are random vectors would have to be left out, those are not
    identified that are not determined, whatever is left out.
    """
    rng = np.random.default_rng(0)
    used = np.bincount(Z.indices, minlength=Z.shape[1]) > 0  # the others are columns of zeros
    V, all_of_it = _null_vectors(Z, rng, used)
    left_out = _last_independent(V) if all_of_it else np.flatnonzero(_norms(V) > _ZERO_COORDINATE)
    identified = np.setdiff1d(np.flatnonzero(used), left_out)
    face = np.zeros((len(lengths), 0))
    is_spanned = True
    if separated.any():
        face, is_spanned = _null_vectors(Z[~separated], rng, used, beyond=V)
        direction = direction * lengths
        if all_of_it and len(left_out):
            table = np.linalg.solve(V[left_out], np.column_stack([face, direction])[left_out])
            face, direction = face - V @ table[:, :-1], direction - V @ table[:, -1]
        finite = _norms(face) <= _ZERO_COORDINATE
        face[finite] = 0.0
        direction = np.where(finite, 0.0, direction) / lengths
    rays = Z[separated] @ face
    face = face / lengths[:, None]
    return Split(separated, direction, weights, identified, face, doubt, rays, is_spanned)


def _null_vectors(
    Z: Any, rng: np.random.Generator, used: Array, beyond: Array | None = None
) -> tuple[Array, bool]:
    """Orthonormal random vectors of the null space of the used columns, and whether they span it.

    With ``beyond``, what is orthogonal to these vectors of it.
    """
    n_columns = Z.shape[1]
    if n_columns < min(FEW_COLUMNS, Z.shape[0]):
        Z = triangular_factor(Z)  # which has the same null space
    fixed = np.zeros((n_columns, 0)) if beyond is None else beyond
    found = np.zeros((n_columns, 0))
    while found.shape[1] < _RANDOM_VECTORS:
        g = rng.standard_normal(n_columns) * used
        length = float(np.sqrt(g @ g))
        if Z.shape[0]:
            y = lsmr(Z.T, g, atol=_TIGHT, btol=_TIGHT, conlim=0.0, maxiter=_PRODUCTS_OF_PROJECTION)[
                0
            ]
            g = g - Z.T @ y
        for _ in range(2):
            g = g - fixed @ (fixed.T @ g)
            g = g - found @ (found.T @ g)
        rest = float(np.sqrt(g @ g))
        if rest <= _ZERO_COORDINATE * length:
            return found, True
        found = np.column_stack([found, g / rest])
    return found, False


def _last_independent(V: Array) -> Array:
    """As many coordinates as there are vectors, the last ones in which these are independent."""
    Q, chosen = np.zeros((V.shape[1], V.shape[1])), list[int]()
    for j in range(len(V))[::-1]:
        if len(chosen) == V.shape[1]:
            break
        v = V[j] - (Q[: len(chosen)] @ V[j]) @ Q[: len(chosen)]
        rest = float(np.sqrt(v @ v))
        if rest > _ZERO_COORDINATE:
            Q[len(chosen)] = v / rest
            chosen.append(j)
    return np.array(sorted(chosen), dtype=int)


def _norms(A: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", A, A)))
