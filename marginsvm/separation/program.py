"""Separated rows of a design: one linear program, with its primal and dual solutions as proofs.

    max sum t   subject to   A w >= t,  E w = 0,  0 <= t <= 1

As a cone scales, at the optimum t = 1 on the separated rows, those that some w of the cone makes
positive, and t = 0 on the others (strict complementarity, Goldman and Tucker). The dual variables q
of the others are at least 1, with ``A'q + E'v = 0``. So w proves one part and q the other:

    separated = rows with A w > 0,   face = null space of all other rows,

and a coefficient is finite exactly if it is 0 on the face.

*Few columns.* A change of basis makes columns orthonormal, so that units and correlations do not
matter. First, Newton's method minimises the sum of squared hinge losses. Either all margins become
positive, or the dual variables ``q = max(0, 1 - A w)`` satisfy ``A'q = 0``, and rows with q > 0
overlap. The linear program decides the remaining rows on the face of these.

*Many sparse columns.* Overlapping rows are equalities of the linear program: presolve eliminates
most rows.

*Many rows.* A sample is solved, and grows by the rows that violate its direction or its face.

References
----------
A. J. Goldman, A. W. Tucker. Theory of linear programming. In: Linear inequalities and related
systems, 1956.

K. Konis. Linear programming algorithms for detecting separated data in binary logistic regression
models. Oxford, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.optimize import linprog
from scipy.sparse.linalg import lsmr

from marginsvm._rounding import UNIT, rounding_of
from marginsvm._typing import Array
from marginsvm.certificate import exact_algebra as exact
from marginsvm.separation.families import EXACT, Design, dense

Parts = tuple[Array, Array]  # numbers in double-double arithmetic: high and low parts
TINY = 1e-9  # of unit vectors: 0 up to rounding
CLEAR = 1e-6  # least dual variable of the squared hinge for unit rows at which a row overlaps
CLOSE = 1e-11  # residual of a column, relative to its length, at which R leaves it out
# Largest dense matrices of sparse rows: entries (128 MB), and multiplications of their QR.
DENSE = 2**24
MULTIPLICATIONS = 1e10
FEW, A_COLUMN, ROUNDS = (
    500,
    5,
    50,
)  # rows of a sample, at least, and for each column; samples
VECTORS = 16  # largest dimension of a null space of large sparse matrices
PRECISE = {"atol": 1e-13, "btol": 1e-13, "conlim": 0.0}  # of least squares
TOLERANCES = {f"{side}_feasibility_tolerance": 1e-9 for side in ("primal", "dual")}


@dataclass
class Split:
    """The partition of the rows into separated and overlapping ones, with its proofs.

    Attributes
    ----------
    at : ndarray of int
        The sample of rows that was solved.
    separated : ndarray of bool, shape (n_rows,)
        All rows.
    direction : tuple of two ndarray of shape (n_columns,)
        A direction that is positive on these and 0 on all others, as high and low parts.
    weights : ndarray of shape (len(at),)
        Dual variables q with ``A'q = 0``, positive on rows that span the overlapping ones; of any
        sign for equalities.
    kept, loose : ndarray of int
        Columns independent of those before them; and columns dependent up to rounding.
    face : ndarray of shape (n_columns, k)
        Directions that are 0 on all overlapping rows: a basis, if it is ``spanned``.
    round : ndarray or csr_array of shape (n_columns, n_kept)
        Change of basis to well-conditioned coordinates.
    sums : ndarray of shape (n_columns, 0 or 1)
        A random null vector of the sample, if its columns are dependent.
    """

    at: Array
    separated: Array
    direction: Parts
    weights: Array
    kept: Array
    loose: Array
    face: Array
    round: Any
    sums: Array
    spanned: bool = True

    @classmethod
    def of_nothing(cls, n: int, d: int) -> Split:
        """No row is separated, and no column identified."""
        none = np.zeros(0, int)
        empty = np.zeros((d, 0))
        zeros = np.zeros(n, bool)
        w = (np.zeros(d), np.zeros(d))
        return cls(none, zeros, w, np.zeros(0), none, none, empty, empty, empty)


def split(design: Design, everything: bool = False) -> Split:
    """Split the rows of a design; ``everything``: without a sample."""
    n, d = design.shape
    size = max(FEW, A_COLUMN * d)
    chosen = np.full(n, everything or n <= 4 * size)
    q = np.zeros(n)
    chosen[np.random.default_rng(0).permutation(n)[:size]] = True
    for _ in range(ROUNDS):
        at = np.flatnonzero(chosen)
        A = design.rows(at)
        if sp.issparse(A) and may_be_dense(A.shape[0], d):
            A = A.toarray()
        found = _split(design, at, A, q[at])
        missing = np.zeros(0, int) if chosen.all() else _missing(design, found, chosen)
        unknown = found.separated.any() and not found.direction[0].any()
        if unknown or not len(missing):
            return found
        chosen[missing[:size]] = True
        q[at] = found.weights
        size += size // 2
    return found


def _missing(design: Design, found: Split, chosen: Array) -> Array:
    """Rows to add to the sample: those that violate its direction, its face or ``sums``.

    Nearly violating rows are included, the worst first. If there are none, the values of all rows
    in these directions tell which are separated.
    """
    random = np.random.default_rng(1).standard_normal
    face, all_ = (V @ random((V.shape[1], 2)) for V in (found.face, found.round))
    W = np.column_stack([face, all_, found.direction[0], found.sums])
    m = design.margins(W)
    size = np.abs(W * design.reach[:, None]).max(axis=0)
    lengths = np.abs(m[:, 2:4]).max(axis=1)  # in round coordinates, more or less
    moved = np.abs(m[:, :2]) > np.maximum(64 * UNIT * size[:2], TINY * lengths[:, None])
    on_face = moved.any(axis=1)
    free = ~design.equality
    m = m[:, 4:]
    size = size[4:]
    other_sum = (np.abs(m[:, 1:]) > TINY * size[1:]).any(axis=1)
    found.separated = np.where(chosen, found.separated, on_face & free)
    if not (~chosen & (on_face & (~free | (m[:, 0] <= 0)) | other_sum)).any():
        return np.zeros(0, int)
    at = np.flatnonzero(~chosen & (on_face | other_sum))
    return at[np.argsort(np.where(other_sum, -np.inf, m[:, 0])[at], kind="stable")]


def identified(design: Design, some: Array) -> Array:
    """Features that are linearly independent of columns before them, in some of the rows."""
    i = np.flatnonzero(some)
    rows = {
        name: getattr(design, name)[i] for name in ("plus", "minus", "equality", "at")
    }
    columns = split(replace(design, **rows)).kept if len(i) else i
    width = design.X.shape[1]
    d = design.data.X.shape[1]
    feature = columns % width - (width - d)  # intercepts and thresholds come first
    return np.unique(feature[feature >= 0])


# ---- a sample


def may_be_dense(n: int, d: int) -> bool:
    """Whether n sparse rows are few enough for dense decompositions."""
    return n * d <= DENSE and n * d * min(n, d) <= MULTIPLICATIONS


def _split(design: Design, at: Array, A: Any, q: Array) -> Split:
    n, d = design.shape
    equality = design.equality[at]
    unit = np.exp2(np.frexp(design.reach)[1])
    S = A * (1.0 / unit)
    separated = np.zeros(n, bool)
    sums = np.zeros((d, 1))
    if sp.issparse(A):
        kept, T, sums[:, 0] = _columns_of_sparse(sp.csr_array(S))
        loose = kept[:0]
        Z = sp.csr_array(S @ T)
    else:
        kept, loose = _independent_columns(design, at, S)
        side = np.exp2(np.frexp(np.abs(S).max(axis=1, initial=0.0))[1])[:, None]
        Z, C = coordinates((S / side)[:, kept])
        Z = Z * side
        T = np.zeros((d, len(kept)))
        out = np.setdiff1d(np.arange(d), kept)
        T[kept] = C
        if len(out) and len(at) < n:
            sums[out, 0] = np.random.default_rng(2).standard_normal(len(out))
            sums[kept, 0] = -np.linalg.lstsq(S[:, kept], S @ sums[:, 0], rcond=None)[0]
    lengths = _lengths(Z)
    lengths[lengths == 0] = 1.0
    Z = _with_rows(Z, 1.0 / lengths)
    separated[at], z, q, N, spanned = faces(Z, equality, q * lengths)
    w = (T @ z, 0.0 * unit) if sp.issparse(T) else multiplied(T, z[:, None])
    face = T @ N
    face[_lengths(face) <= 1e-8 * _lengths(T)] = 0.0
    direction = w[0].ravel() / unit, w[1].ravel() / unit
    face = face / unit[:, None]
    sums = sums / unit[:, None]
    T = _with_rows(T, 1.0 / unit)
    return Split(
        at,
        separated,
        direction,
        q / lengths,
        kept,
        loose,
        face,
        T,
        sums,
        spanned,
    )


def _lengths(T: Any) -> Array:
    return np.asarray(np.sqrt((T * T).sum(axis=1)))


def _with_rows(T: Any, factors: Array) -> Any:
    """Rows times factors."""
    return (
        sp.csr_array(sp.diags_array(factors) @ T)
        if sp.issparse(T)
        else T * factors[:, None]
    )


def _columns_of_sparse(S: Any) -> tuple[Array, Any, Array]:
    """Identified columns, a basis of what all columns span, and a random null vector.

    If the null space is too large to be known, the basis has all columns.
    """
    d = S.shape[1]
    used = np.unique(S.indices[S.data != 0])
    # VECTORS cannot span the null space of rows that wide; one tells which columns it moves.
    wide = len(used) > S.shape[0] + VECTORS
    V, known = null_vectors(S[:, used], 1 if wide else VECTORS)
    V[np.abs(V).max(axis=1, initial=0.0) <= 1e-8] = 0.0
    out = np.flatnonzero(V.any(axis=1))
    sums = np.zeros(d)
    if known:
        out = len(V) - 1 - first_independent(V[::-1].T)[0]
    kept = np.delete(used, out)
    sums[used] = V @ np.random.default_rng(2).standard_normal(V.shape[1])
    return kept, sp.eye_array(d, format="csr")[:, kept if known else used], sums


def first_independent(R: Array) -> tuple[Array, Array]:
    """Columns that are independent of those before them, by Gram and Schmidt.

    Also returns the residuals of nearly dependent ones relative to their lengths, else infinity.
    """
    kept = list[int]()
    Q = np.zeros((min(R.shape), R.shape[0]))
    left = np.full(R.shape[1], np.inf)
    for j, v in enumerate(R.T.copy()):
        if len(kept) == len(Q):
            break
        length = np.sqrt(v @ v)
        for _ in range(2):
            v -= (Q[: len(kept)] @ v) @ Q[: len(kept)]
        rest = np.sqrt(v @ v)
        if rest > 1e-7 * length:
            Q[len(kept)] = v / rest
            kept.append(j)
        elif length > 0:
            left[j] = rest / length
    return np.array(kept, dtype=int), left


def _independent_columns(design: Design, at: Array, S: Array) -> tuple[Array, Array]:
    """Columns of scaled rows that are independent of those before them: kept, loose.

    Few columns are decided in integers. Rounded columns that are dependent up to their rounding are
    left out as well, as ``loose``.
    """
    R = _triangle(S)
    kept, left = first_independent(R)
    columns = kept
    near = left < np.inf
    rounded = design.rounded
    loose = list[int]()
    if near.any() and len(S) * (len(kept) + near.sum()) * len(kept) <= 2**25:
        columns = np.union1d(kept, np.flatnonzero(near))
        whole = columns[~rounded[columns]]
        if len(whole):
            whole = whole[exact.independent(design.integers(at)[:, whole])[1]]
        columns = np.union1d(whole, columns[rounded[columns]])
        for j in columns[near[columns] & rounded.any()].tolist():
            before = np.setdiff1d(columns[columns < j], loose)
            factors = np.linalg.lstsq(R[:, before], R[:, j], rcond=None)[0]
            most = 32 * UNIT * np.sqrt(len(S)) * (1 + np.abs(factors).sum())
            some = rounded[before] & (
                np.abs(factors) > CLEAR * np.abs(factors).max(initial=0.0)
            )
            rest = np.linalg.norm(R[:, j] - R[:, before] @ factors)
            loose += [j] * bool((some.any() or rounded[j]) and rest <= most)
    columns = np.setdiff1d(columns, loose)
    return columns, np.array(loose, dtype=int)


def _triangle(S: Array) -> Array:
    """Fewer rows with the same products of columns."""
    return np.asarray(np.linalg.qr(S, mode="r")) if len(S) > S.shape[1] else S


def nearly_collinear(design: Design, kept: Array) -> Array:
    """Columns that R would leave out: with a residual below 1e-11 of their length.

    A residual in some rows is at most that in all of them, and is on the diagonal of a triangle.
    All rows are looked at (for large designs, as many as are written out) only if some of them do
    not rule it out. Many sparse columns are not looked at.
    """
    n, _ = design.shape
    k = len(kept)
    rng = np.random.default_rng(0)
    for size in (2 * k + 50, max(EXACT // max(k, 1), 2 * k)):
        at = rng.choice(n, size, replace=False) if size < n else np.arange(n)
        A = design.rows(at)
        if sp.issparse(A) and not may_be_dense(*A.shape):
            return kept[:0]
        R = _triangle(dense(A)[:, kept] / design.reach[kept])
        if len(at) >= k and (np.abs(R.diagonal()) > 1e3 * CLOSE * np.sqrt(n)).all():
            return kept[:0]
    return kept[first_independent(R)[1] <= CLOSE]


def coordinates(S: Array) -> tuple[Array, Array]:
    """``Z = S T`` with nearly orthonormal columns, and T."""
    T = np.eye(S.shape[1])
    Z = S
    for _ in range(3):
        R = (
            np.asarray(np.linalg.qr(Z, mode="r"))
            if len(Z) >= Z.shape[1]
            else np.eye(Z.shape[1])
        )
        least = 1e-16 * np.abs(R).max(initial=0.0) or 1.0  # of nothing but zeros
        R = R + np.diag(np.where(np.abs(R.diagonal()) < least, least, 0.0))
        inverse = solve_triangular(R, np.eye(len(R))) if len(R) else R
        T = T @ inverse
        if np.linalg.norm(R) * np.linalg.norm(inverse) < 1e4:
            return (Z @ inverse if Z is S else multiplied(S, T)[0]), T
        Z = multiplied(S, T)[0]
    return Z, T


def multiplied(A: Array, B: Array) -> Parts:
    """``A B`` in double-double arithmetic, as high and low parts."""
    high, low = np.zeros((2, len(A), B.shape[1]))
    some = np.flatnonzero(A.any(axis=1))
    total = high[some]
    error = low[some]
    for a, b in zip(A[some].T[:, :, None], B, strict=True):
        p = a * b
        new = total + p
        back = new - total
        error += (total - (new - back)) + (p - back) + rounding_of(p, a, b)
        total = new
    high[some] = total + error
    low[some] = (total - high[some]) + error
    return high, low


def faces(
    Z: Any, equality: Array, q: Any = 0.0
) -> tuple[Array, Array, Array, Array, bool]:
    """Separated rows, a direction, dual variables and a basis of the face, for unit rows.

    Of the dual variables q, those of overlapping rows may be known; else they are 0. Overlapping
    rows restrict all others to their null space; many sparse ones are equalities of the linear
    program. The last value tells whether the basis spans the face.
    """
    n, k = Z.shape
    sparse = sp.issparse(Z)
    parts = list[Array]()
    q = np.zeros(n) + q
    w = np.zeros(k)
    fixed = np.zeros(n, bool)
    rest = np.arange(n)
    T = Z
    N = np.eye(0 if sparse else k)
    over = equality | (q > 0)
    for method in (_hinge, _hinge, program, None):
        fixed[rest[over]] = True
        if over.any() and not sparse:
            inside = null_space(T[over])
            N = N @ inside
            w = inside.T @ w
            T = T @ inside
        lengths = _lengths(T)
        on = ~over & (lengths > TINY)
        T = T[on]
        lengths = lengths[on]
        rest = rest[on]
        if method is None or not len(rest):
            break
        T = _with_rows(T, 1.0 / lengths)
        if w.any() and (T @ w > TINY * np.sqrt(w @ w)).all():
            break
        part = np.zeros(n)
        if sparse and fixed.any():
            w, weights = program(T, Z[fixed])
            weights, part[fixed] = np.split(weights, [len(rest)])
        else:
            w, weights = method(T)
            w = w * (
                not sparse or not weights.any()
            )  # else it is not 0 on overlapping rows
        if not w.any() and not weights.any():
            break  # nothing is known
        over = weights > (
            1e-3 if sparse and not fixed.any() else CLEAR
        )  # of steps by lsmr
        part[rest] = np.where(over, weights, 0.0) / lengths
        parts.append(part)
    separated = np.isin(np.arange(n), rest)
    for (
        part
    ) in parts:  # A'q = 0 holds on the previous face: correct in proportion to these
        if not sparse:
            part = part + _balancing(Z, part, np.where(equality, 1.0, q))
        most = np.max(-part[q > 0] / q[q > 0], initial=0.0)
        q = q + part / max(1.0, 2 * most)
    last = q + _balancing(Z, q, np.where(equality, 1.0, q))
    q = q if (last[~equality] < 0).any() else last
    if not len(rest):
        return separated, np.zeros(k), q, np.zeros((k, 0)), True
    if sparse:
        return separated, w, q, *null_vectors(Z[~separated])
    return separated, N @ w, q, N, True


def null_space(T: Array) -> Array:
    """An orthonormal basis of the null space."""
    if not len(T):
        return np.eye(T.shape[1])
    s, V = np.linalg.svd(np.linalg.qr(T, mode="r") if len(T) > T.shape[1] else T)[1:]
    return np.asarray(V[int((s > 1e-8 * s.max(initial=0.0)).sum()) :].T)


def _balancing(Z: Array, q: Array, by: Array) -> Array:
    """The least changes of q, in units of ``by``, for which ``Z'q = 0``."""
    some = np.flatnonzero(by)
    out = np.zeros(len(q))
    D = _with_rows(Z[some], by[some]).T
    right = -(Z.T @ q)
    if len(some):
        solve = (
            partial(lsmr, maxiter=1000, **PRECISE)
            if sp.issparse(D)
            else np.linalg.lstsq
        )
        out[some] = solve(D, right)[0]
    return out * by


def _hinge(T: Any) -> tuple[Array, Array]:
    """Minimise ``|max(0, 1 - T w)|^2`` by Newton's method: w, and the slack.

    At a minimum, ``T' slack = 0``. If all margins become positive before, the slack is 0. If
    neither is reached, the linear program is solved.
    """
    n, k = T.shape
    m = np.zeros(T.shape[0])
    w = np.zeros(k)
    for _ in range(200):
        slack = np.maximum(1.0 - m, 0.0)
        if m.any() and (m > TINY * np.sqrt(w @ w)).all():
            return w, np.zeros(n)
        active = np.flatnonzero(slack)
        A = T[active]
        right = slack[active]
        g = A.T @ right
        ridge = (
            1e-3 * np.sqrt(g @ g) * (len(active) < k)
        )  # where the Hessian is singular
        if k > 2000:
            step = lsmr(A, right, np.sqrt(ridge), 1e-10, 1e-10, 0.0, 300)[0]
        else:
            H = dense(A.T @ A)
            step = np.linalg.solve(H + (1e-13 * np.trace(H) + ridge) * np.eye(k), g)
        move = T @ step
        low = 0.0
        high = 1.0
        t = 1.0
        while high - low > 0.01 * high:  # until the minimum along this line
            before = np.maximum(1.0 - m - t * move, 0.0) @ move > 0
            low, high = (t, high) if before else (low, t)
            t = 0.5 * (low + high)
        w = w + t * step
        m = m + t * move
        if g @ step <= UNIT:
            break
    slack = np.maximum(1.0 - m, 0.0)
    converged = np.linalg.norm(T.T @ slack) <= TINY * np.sqrt(n)
    return (w, slack) if converged else program(T)


def program(T: Any, E: Any = None) -> tuple[Array, Array]:
    """A direction, and the dual variables of T and of the equalities; zeros if time is short."""
    n, k = T.shape
    E = sp.csr_array((0, T.shape[1])) if E is None else E
    found = linprog(
        np.repeat([0.0, -1.0], [k, n]),
        A_ub=sp.hstack([sp.csr_array(-T), sp.eye_array(n)], format="csc"),
        b_ub=np.zeros(n),
        A_eq=sp.hstack([E, sp.csr_array((E.shape[0], n))], format="csc"),
        b_eq=np.zeros(E.shape[0]),
        bounds=np.repeat([[-np.inf, np.inf], [0.0, 1.0]], [k, n], axis=0),
        options={**TOLERANCES, "time_limit": 10.0},
    )
    if found.x is None:
        return np.zeros(k), np.zeros(n + E.shape[0])
    return found.x[:k], np.append(-found.ineqlin.marginals, found.eqlin.marginals)


def null_vectors(S: Any, most: int = VECTORS) -> tuple[Array, bool]:
    """Orthonormal vectors of the null space of rows, and whether they span it.

    For large matrices, only some random ones, at most that many.
    """
    n, d = S.shape
    rng = np.random.default_rng(0)
    if may_be_dense(max(n, d), d):
        return null_space(dense(S)), True
    found = np.zeros((d, 0))
    while found.shape[1] < most:
        g = rng.standard_normal(d)
        length = np.sqrt(g @ g)
        if n:
            g -= S.T @ lsmr(S.T, g, **PRECISE, maxiter=5000)[0]
        for _ in range(2):
            g -= found @ (found.T @ g)
        if np.sqrt(g @ g) <= 1e-8 * length:
            return found, True
        found = np.column_stack([found, g / np.sqrt(g @ g)])
    return found, False
