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

*Many sparse columns.* The linear program is solved directly: presolve eliminates most rows.

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
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.optimize import linprog
from scipy.sparse.linalg import lsmr

from marginsvm._rounding import UNIT, rounding_of
from marginsvm._typing import Array
from marginsvm.certificate import exact
from marginsvm.separation.families import Design, dense

TINY = 1e-9  # of unit vectors: 0 up to rounding
CLEAR = 1e-6  # least dual variable of the squared hinge for unit rows at which a row overlaps
DENSE = 2**23  # entries of sparse rows converted to dense: 64 MB
FEW, A_COLUMN, ROUNDS = 500, 5, 50  # rows of a sample, at least, and for each column; samples
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
    kept, loose, close : ndarray of int
        Columns independent of those before them; columns dependent up to rounding; and those of the
        first that R would leave out.
    face : ndarray of shape (n_columns, k)
        Directions that are 0 on all overlapping rows: a basis, if it is ``spanned``.
    round : ndarray or csr_array of shape (n_columns, n_kept)
        Change of basis to well-conditioned coordinates.
    sums : ndarray of shape (n_columns, 0 or 1)
        A random null vector of the sample, if its columns are dependent.
    """

    at: Array
    separated: Array
    direction: tuple[Array, Array]
    weights: Array
    kept: Array
    loose: Array
    close: Array
    face: Array
    round: Any
    sums: Array
    spanned: bool = True

    @classmethod
    def of_nothing(cls, n: int, d: int) -> Split:
        """No row is separated, and no column identified."""
        none, empty = np.zeros(0, int), np.zeros((d, 0))
        zeros, w = np.zeros(n, bool), (np.zeros(d), np.zeros(d))
        return cls(none, zeros, w, np.zeros(0), none, none, none, empty, empty, empty)


class ProgramError(Exception):
    """The linear program was not solved."""


def split(design: Design, everything: bool = False) -> Split:
    """Split the rows of a design; ``everything``: without a sample."""
    n, d = design.shape
    size = max(FEW, A_COLUMN * d)
    chosen = np.zeros(n, bool)
    sampled = n > 4 * size and not everything
    chosen[np.random.default_rng(0).permutation(n)[:size] if sampled else slice(None)] = True
    for _ in range(ROUNDS):
        at = np.flatnonzero(chosen)
        A = design.rows(at)
        if sp.issparse(A) and A.shape[0] * d <= DENSE:
            A = A.toarray()
        found = (_split_sparse if sp.issparse(A) else _split_dense)(design, at, A)
        missing = np.zeros(0, int) if chosen.all() else _missing(design, found, chosen)
        if not len(missing):
            return found
        chosen[missing[:size]] = True
        size += size // 2
    raise ProgramError(f"{ROUNDS} samples of the rows did not decide the others")


def _missing(design: Design, found: Split, chosen: Array) -> Array:
    """Rows to add to the sample: those that violate its direction, its face or ``sums``.

    Nearly violating rows are included, the worst first. If there are none, the values of all rows
    in these directions tell which are separated.
    """
    random = np.random.default_rng(1).standard_normal
    face, all_ = (V @ random((V.shape[1], 2)) for V in (found.face, found.round))
    W = np.column_stack([face, all_, found.direction[0], found.sums])
    m, size = design.margins(W), np.abs(W * design.reach[:, None]).max(axis=0)
    lengths = np.abs(m[:, 2:4]).max(axis=1)  # in round coordinates, more or less
    moved = np.abs(m[:, :2]) > np.maximum(64 * UNIT * size[:2], TINY * lengths[:, None])
    on_face, free, m, size = moved.any(axis=1), ~design.equality, m[:, 4:], size[4:]
    other_sum = (np.abs(m[:, 1:]) > TINY * size[1:]).any(axis=1)
    found.separated = np.where(chosen, found.separated, on_face & free)
    if not (~chosen & (on_face & (~free | (m[:, 0] <= 0)) | other_sum)).any():
        return np.zeros(0, int)
    at = np.flatnonzero(~chosen & (on_face | other_sum))
    return at[np.argsort(np.where(other_sum, -np.inf, m[:, 0])[at], kind="stable")]


def identified(design: Design, some: Array) -> Array:
    """Features that are linearly independent of columns before them, in some of the rows."""
    i = np.flatnonzero(some)
    rows = {"select": [S[i] for S in design.select], "fixed": design.fixed[i], "at": design.at[i]}
    return design.features(split(replace(design, **rows, equality=some[i])).kept if len(i) else i)


# ---- few columns


def _split_dense(design: Design, at: Array, A: Array) -> Split:
    (n, d), equality = design.shape, design.equality[at]
    unit = np.exp2(np.frexp(design.reach)[1])
    S = A / unit
    kept, loose, close = _independent_columns(design, at, S)
    side = np.exp2(np.frexp(np.abs(S).max(axis=1, initial=0.0))[1])[:, None]
    Z, C = coordinates((S / side)[:, kept])
    T = np.zeros((d, len(kept)))
    T[kept] = C
    lengths = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    lengths[lengths == 0] = 1.0
    separated = np.zeros(n, bool)
    separated[at], z, q, N = faces(Z / lengths[:, None], equality)
    w = multiplied(T, z[:, None])
    face = T @ N
    face[np.abs(face).max(axis=1, initial=0) <= TINY * np.abs(T).max(axis=1, initial=0)] = 0.0
    out = np.setdiff1d(np.arange(d), kept)
    sums = np.zeros((d, int(len(out) > 0 and len(at) < n)))
    if sums.size:
        sums[out, 0] = np.random.default_rng(2).standard_normal(len(out))
        sums[kept, 0] = -np.linalg.lstsq(S[:, kept], S @ sums[:, 0], rcond=None)[0]
    direction = w[0][:, 0] / unit, w[1][:, 0] / unit
    q = q / lengths / side[:, 0]
    face, T, sums = (part / unit[:, None] for part in (face, T, sums))
    return Split(at, separated, direction, q, kept, loose, close, face, T, sums)


def _independent_columns(design: Design, at: Array, S: Array) -> tuple[Array, Array, Array]:
    """Columns of scaled rows that are independent of those before them: kept, loose, close.

    Few columns are decided in integers. Rounded columns that are dependent up to their rounding are
    left out as well, as ``loose``. ``close`` columns are kept, but R would leave them out: their
    residual is below 1e-11 of their length.
    """
    R = np.asarray(np.linalg.qr(S, mode="r")) if len(S) > S.shape[1] else S
    d, kept, Q = R.shape[1], list[int](), np.zeros((min(R.shape), R.shape[0]))
    left = np.full(d, np.inf)  # residuals of nearly dependent columns
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
    columns, near = np.array(kept, dtype=int), left < np.inf
    rounded, loose = design.rounded, list[int]()
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
            some = rounded[before] & (np.abs(factors) > CLEAR * np.abs(factors).max(initial=0.0))
            rest = np.linalg.norm(R[:, j] - R[:, before] @ factors)
            loose += [j] * bool((some.any() or rounded[j]) and rest <= most)
    columns = np.setdiff1d(columns, loose)
    return columns, np.array(loose, dtype=int), columns[left[columns] <= 1e-11]


def coordinates(S: Array) -> tuple[Array, Array]:
    """``Z = S T`` with nearly orthonormal columns, and T."""
    T, Z = np.eye(S.shape[1]), S
    for _ in range(3):
        R = np.asarray(np.linalg.qr(Z, mode="r")) if len(Z) >= Z.shape[1] else np.eye(Z.shape[1])
        least = 1e-16 * np.abs(R).max(initial=0.0) or 1.0  # of nothing but zeros
        R = R + np.diag(np.where(np.abs(R.diagonal()) < least, least, 0.0))
        inverse = solve_triangular(R, np.eye(len(R))) if len(R) else R
        T = T @ inverse
        if np.linalg.norm(R) * np.linalg.norm(inverse) < 1e4:
            return (Z @ inverse if Z is S else multiplied(S, T)[0]), T
        Z = multiplied(S, T)[0]
    return Z, T


def multiplied(A: Array, B: Array) -> tuple[Array, Array]:
    """``A B`` in double-double arithmetic, as high and low parts."""
    total, error = np.zeros((2, len(A), B.shape[1]))
    for a, b in zip(A.T[:, :, None], B, strict=True):
        p = a * b
        new = total + p
        back = new - total
        error += (total - (new - back)) + (p - back) + rounding_of(p, a, b)
        total = new
    out = total + error
    return out, (total - out) + error


def faces(Z: Array, equality: Array) -> tuple[Array, Array, Array, Array]:
    """Separated rows, a direction, dual variables and a basis of the face, for unit rows."""
    q, z, rest, parts = np.zeros(len(Z)), np.zeros(Z.shape[1]), ~equality, list[Array]()
    N = null_space(Z[equality])
    for method in (_hinge, _hinge, program):
        T = Z[rest] @ N
        lengths = np.sqrt(np.einsum("ij,ij->i", T, T))
        on = lengths > TINY
        T, lengths, rest[rest] = T[on] / lengths[on, None], lengths[on], on
        if not rest.any():
            z[:] = 0.0
            break
        w = N.T @ z
        if w.any() and (T @ w > TINY * np.sqrt(w @ w)).all():
            break
        w, weights = method(T)
        over, part = weights > CLEAR, np.zeros(len(Z))
        part[rest] = np.where(over, weights, 0.0) / lengths
        parts.append(part)
        if over.any():
            inside = null_space(T[over])
            N, w = N @ inside, inside.T @ w
        z, rest[rest] = N @ w, ~over
    for part in parts:  # A'q = 0 holds on the previous face: correct in proportion to these
        change = _balancing(Z, part, np.where(equality, 1.0, q))
        most = np.abs(change[q > 0] / q[q > 0]).max(initial=0.0)
        q = q + (part + change) / max(1.0, 2 * most)
    last = q + _balancing(Z, q, np.where(equality, 1.0, q))
    return rest, z, q if (last[~equality] < 0).any() else last, N


def null_space(T: Array) -> Array:
    """An orthonormal basis of the null space."""
    if not len(T):
        return np.eye(T.shape[1])
    s, V = np.linalg.svd(np.linalg.qr(T, mode="r") if len(T) > T.shape[1] else T)[1:]
    return np.asarray(V[int((s > 1e-8 * s.max(initial=0.0)).sum()) :].T)


def _balancing(Z: Array, q: Array, by: Array) -> Array:
    """The least changes of q, in units of ``by``, for which ``Z'q = 0``."""
    some, out = np.flatnonzero(by), np.zeros(len(q))
    D = Z[some] * by[some, None]
    out[some] = by[some] * np.linalg.lstsq(D.T, -(Z.T @ q), rcond=1e-11)[0]
    return out


def _hinge(T: Any) -> tuple[Array, Array]:
    """Minimise ``|max(0, 1 - T w)|^2`` by Newton's method: w, and the slack.

    At a minimum, ``T' slack = 0``. If all margins become positive before, the slack is 0.
    """
    (n, k), m = T.shape, np.zeros(T.shape[0])
    w = np.zeros(k)
    for _ in range(50):
        slack = np.maximum(1.0 - m, 0.0)
        if m.any() and (m > TINY * np.sqrt(w @ w)).all():
            return w, np.zeros(n)
        active = np.flatnonzero(slack)
        A, right = T[active], slack[active]
        g = A.T @ right
        if np.abs(g).max() <= UNIT * n:
            break
        if k > 2000:
            step = lsmr(A, right, atol=1e-10, btol=1e-10, conlim=0.0, maxiter=300)[0]
        else:
            H = dense(A.T @ A)
            step = np.linalg.solve(H + 1e-13 * np.trace(H) * np.eye(k), g)
        move, t = T @ step, 1.0
        while t > 1e-6 and np.maximum(1.0 - m - t * move, 0.0) @ move < 0:
            t *= 0.5  # beyond the minimum along this line
        w, m = w + t * step, m + t * move
    return w, slack


def program(T: Any, E: Any = None) -> tuple[Array, Array]:
    """A direction, and the dual variables of T and of the equalities."""
    (n, k), m = T.shape, 0 if E is None else E.shape[0]
    found = linprog(
        np.repeat([0.0, -1.0], [k, n]),
        A_ub=sp.hstack([sp.csr_array(-T), sp.eye_array(n)], format="csc"),
        b_ub=np.zeros(n),
        A_eq=sp.hstack([E, sp.csr_array((m, n))], format="csc") if m else None,
        b_eq=np.zeros(m) if m else None,
        bounds=np.repeat([[-np.inf, np.inf], [0.0, 1.0]], [k, n], axis=0),
        options={**TOLERANCES, "time_limit": 100.0},
    )
    if found.x is None:
        raise ProgramError("the linear program was not solved in time")
    prices = -found.ineqlin.marginals
    return found.x[:k], np.append(prices, found.eqlin.marginals) if m else prices


# ---- many sparse columns

VECTORS = 16  # largest dimension of a null space


def _split_sparse(design: Design, at: Array, A: Any) -> Split:
    (n, d), equality = design.shape, design.equality[at]
    used = np.flatnonzero(np.bincount(A.indices[A.data != 0], minlength=d))
    unit = design.reach[used]
    S = sp.csr_array(A[:, used] @ sp.diags_array(1.0 / unit))
    norms = np.sqrt(np.asarray(S.multiply(S).sum(axis=1)).ravel())
    norms[norms == 0] = 1.0
    S = sp.csr_array(sp.diags_array(1.0 / norms) @ S)
    w, q, over = np.zeros(len(used)), np.zeros(len(at)), equality
    if not equality.any():
        w, q = _hinge(S)
        if np.linalg.norm(S.T @ q) > TINY * np.sqrt(len(at)):  # not converged
            w, q = 0.0 * w, 0.0 * q
        over = q > 1e-3  # far above the residual q of separated rows
    if not over.all() and (over.any() or not w.any()):
        w, prices = program(S[~over], S[over])
        more = np.zeros(len(at))
        more[~over], more[over] = np.split(prices, [(~over).sum()])
        below = over & ~equality
        q = more + (1 + np.max(-more[below] / q[below], initial=0.0)) * np.where(over, q, 0.0)
        over = over | (more > CLEAR)
    over = over | (np.diff(S.indptr) == 0)
    q = np.where(over, q, 0.0)
    by = sp.diags_array(np.where(equality, 1.0, q))
    q += by @ lsmr((by @ S).T, -(S.T @ q), atol=1e-13, btol=1e-13, conlim=0.0, maxiter=1000)[0]
    separated = np.zeros(n, bool)
    separated[at] = ~over
    V, known = null_vectors(S)
    out = _last_independent(V) if known else np.flatnonzero(np.abs(V).max(axis=1) > 1e-8)
    face, spanned = (V[:, :0], True) if over.all() else null_vectors(S[over], V)
    both = np.column_stack([face, 0.0 * w if over.all() else w])
    if known and len(out):
        both = both - V @ np.linalg.solve(V[out], both[out])
    both[np.abs(both[:, :-1]).max(axis=1, initial=0.0) <= 1e-8] = 0.0
    mixed = V @ np.random.default_rng(2).standard_normal((V.shape[1], 1))
    every = np.zeros((d, both.shape[1] + 1))
    every[used] = np.column_stack([both, mixed]) / unit[:, None]
    T = sp.csr_array((1 / unit, (used, np.arange(len(used)))), shape=(d, len(used)))
    direction, q = (every[:, -2], 0.0 * every[:, -2]), q / norms
    kept, face, sums = np.delete(used, out), every[:, :-2], every[:, -1:]
    return Split(at, separated, direction, q, kept, out[:0], out[:0], face, T, sums, spanned)


def null_vectors(S: Any, beyond: Array | None = None) -> tuple[Array, bool]:
    """Orthonormal vectors of the null space of rows, and whether they span it.

    For large matrices, only some random ones. With ``beyond``, those orthogonal to it.
    """
    d, rng = S.shape[1], np.random.default_rng(0)
    if max(S.shape) * d <= DENSE:
        N = null_space(dense(S))
        return (N if beyond is None else N @ null_space(beyond.T @ N)), True
    found = np.zeros((d, 0)) if beyond is None else beyond
    first = found.shape[1]
    while found.shape[1] < first + VECTORS:
        g = rng.standard_normal(d)
        length = np.sqrt(g @ g)
        if S.shape[0]:
            g -= S.T @ lsmr(S.T, g, atol=1e-13, btol=1e-13, conlim=0.0, maxiter=5000)[0]
        for _ in range(2):
            g -= found @ (found.T @ g)
        if np.sqrt(g @ g) <= 1e-8 * length:
            return found[:, first:], True
        found = np.column_stack([found, g / np.sqrt(g @ g)])
    return found[:, first:], False


def _last_independent(V: Array) -> Array:
    """The last k coordinates in which k vectors are linearly independent."""
    Q, chosen = np.zeros((0, V.shape[1])), list[int]()
    for j in range(len(V))[::-1]:
        v = V[j] - Q.T @ (Q @ V[j])
        if len(chosen) < V.shape[1] and np.sqrt(v @ v) > 1e-8:
            Q = np.vstack([Q, v / np.sqrt(v @ v)])
            chosen.append(j)
    return np.array(sorted(chosen), dtype=int)
