"""Separated rows of a regression: one linear program, with its primal and dual solutions as proofs.

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

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.optimize import linprog
from scipy.sparse.linalg import lsmr

from marginsvm._rounding import UNIT, rounding_of
from marginsvm._typing import Array, Stored, Values
from marginsvm.certificate import exact_algebra as exact
from marginsvm.problem.matrix import dense
from marginsvm.separation.regression import MOST_INTEGERS, Regression

DoubleDouble = tuple[Array, Array]  # high and low parts of numbers

# Sizes below which numbers are taken to be 0 or not to be, relative to their terms.
TINY = 1e-9  # margins of unit vectors: 0 up to rounding
ZERO = 1e-8  # singular values, and entries of a null space: 0 up to rounding
CLEAR = 1e-6  # least dual variable of the squared hinge for unit rows at which a row overlaps
ROUGH = 1e-3  # the same, where Newton's steps are solved by lsmr
# Residuals of a column, relative to its length: of one that may be dependent, and of one that R
# leaves out.
DEPENDENT = 1e-7
CLOSE = 1e-11
NO_LENGTH = 1e-300  # instead of 0, as a divisor
# Rounding of a margin of a random direction, relative to its size; and of a residual on n columns,
# relative to sqrt(n) and their factors.
OF_MARGIN = 64 * UNIT
OF_RESIDUAL = 32 * UNIT

# Largest dense matrices of sparse rows: entries (128 MB), and multiplications of their QR.
DENSE = 2**24
MULTIPLICATIONS = 1e10
# multiplications with integers that decide which columns are independent
MOST_DECIDED = 2**25
VECTORS = 16  # largest dimension of a null space of large sparse matrices
PRECISE = {"atol": 1e-13, "btol": 1e-13, "conlim": 0.0}  # tolerances of lsmr
# Its iterations at most, for balancing and for a null vector.
BALANCING_STEPS = 1000
NULL_STEPS = 5000

# Rows of a sample, at least, and for each column. So many samples are all rows; and at most so many
# are solved.
FEW = 500
A_COLUMN = 5
SAMPLES = 4
ROUNDS = 50
# Columns that are nearly collinear: rows that are looked at first, besides two for each column; and
# a residual that is clearly larger than CLOSE, in times of it.
MORE_ROWS = 50
WELL_ABOVE = 1e3


@dataclass
class Split:
    """The partition of the rows into separated and overlapping ones, with its proofs.

    Attributes
    ----------
    sample : ndarray of int
        The rows that were solved.
    separated : ndarray of bool, shape (n_rows,)
        All rows.
    direction : tuple of two ndarray of shape (n_columns,)
        A direction that is positive on these and 0 on all others, as high and low parts.
    weights : ndarray of shape (len(sample),)
        Dual variables q with ``A'q = 0``, positive on rows that span the overlapping ones; of any
        sign for equalities.
    independent, dependent_by_rounding : ndarray of int
        Columns independent of those before them; and rounded columns that are dependent up to their
        rounding.
    face : ndarray of shape (n_columns, k)
        Directions that are 0 on all overlapping rows: a basis, if it is ``spanned``.
    basis : ndarray or csr_array of shape (n_columns, n_independent)
        Change of basis to well-conditioned coordinates.
    null_vector : ndarray of shape (n_columns,)
        A random null vector of the sample; zeros, if its columns are independent.
    """

    sample: Array
    separated: Array
    direction: DoubleDouble
    weights: Array
    independent: Array
    dependent_by_rounding: Array
    face: Array
    basis: Stored
    null_vector: Array
    spanned: bool = True

    @classmethod
    def of_nothing(cls, n: int, d: int) -> Split:
        """No row is separated, and no column identified."""
        none = np.zeros(0, int)
        empty = np.zeros((d, 0))
        w = (np.zeros(d), np.zeros(d))
        separated = np.zeros(n, bool)
        return cls(
            none, separated, w, np.zeros(0), none, none, empty, empty, np.zeros(d)
        )


def split(regression: Regression, everything: bool = False) -> Split:
    """Split the rows of a regression; ``everything``: without a sample.

    A sample grows by the worst of the rows that it misses, and half more of them each time.
    """
    n, d = regression.shape
    size = max(FEW, A_COLUMN * d)
    chosen = np.full(n, everything or n <= SAMPLES * size)  # the sample's mask
    chosen[np.random.default_rng(0).permutation(n)[:size]] = True
    q = np.zeros(n)  # dual variables that the samples have found
    for _ in range(ROUNDS):
        sample = np.flatnonzero(chosen)
        A = regression.rows(sample)
        if may_be_dense(A.shape[0], d):
            A = dense(A)
        found = _split(regression, sample, A, q[sample])
        if chosen.all():
            return found
        missing = _missing(regression, found, chosen)
        nothing_known = found.separated.any() and not found.direction[0].any()
        if nothing_known or not len(missing):
            return found
        chosen[missing[:size]] = True
        q[sample] = found.weights
        size += size // 2
    return found


def _missing(regression: Regression, found: Split, chosen: Array) -> Array:
    """Rows to add to the sample: those that violate its direction, its face or null vector.

    Nearly violating rows are included, the worst first. Also decides ``found.separated`` for the
    rows outside the sample: it holds if none of them is to be added.
    """
    random = np.random.default_rng(1).standard_normal
    # Two random directions of the face, and two of all: a row is moved by the first ones if it is
    # not 0 on the face, and by the others as far as it is long in well-conditioned coordinates.
    on_face = found.face @ random((found.face.shape[1], 2))
    anywhere = found.basis @ random((found.basis.shape[1], 2))
    W = np.column_stack([on_face, anywhere, found.direction[0], found.null_vector])
    m = regression.margins(W)
    size = np.abs(W * regression.reach[:, None]).max(axis=0, initial=0.0)
    lengths = np.abs(m[:, 2:4]).max(axis=1)
    least = np.maximum(OF_MARGIN * size[:2], TINY * lengths[:, None])
    moved = (np.abs(m[:, :2]) > least).any(axis=1)
    along = m[:, 4]
    not_null = np.abs(m[:, 5]) > TINY * size[5]
    free = ~regression.equality
    found.separated = np.where(chosen, found.separated, moved & free)
    violates = (moved & (~free | (along <= 0))) | not_null
    if not (~chosen & violates).any():
        return np.zeros(0, int)
    at = np.flatnonzero(~chosen & (moved | not_null))
    order = np.argsort(np.where(not_null, -np.inf, along)[at], kind="stable")
    return at[order]


def identified(regression: Regression, some: Array) -> Array:
    """Features that are linearly independent of columns before them, in some of the rows."""
    i = np.flatnonzero(some)
    if not len(i):
        return i
    rows = {
        name: getattr(regression, name)[i]
        for name in ("plus", "minus", "equality", "at")
    }
    columns = split(replace(regression, **rows)).independent
    # Intercepts and thresholds come first in each block of columns.
    width = regression.X.shape[1]
    d = regression.arguments.X.shape[1]
    feature = columns % width - (width - d)
    return np.unique(feature[feature >= 0])


# ---- a sample


def may_be_dense(n: int, d: int) -> bool:
    """Whether n sparse rows are few enough for dense decompositions."""
    return n * d <= DENSE and n * d * min(n, d) <= MULTIPLICATIONS


def _split(regression: Regression, sample: Array, A: Stored, q: Array) -> Split:
    """Split a sample with rows A. Some of its dual variables q may be known; others are 0."""
    n, d = regression.shape
    # Powers of two, by which columns (and, below, rows) have entries of about 1.
    unit = np.exp2(np.frexp(regression.reach)[1])
    S = A * (1.0 / unit)
    by_rounding = np.zeros(0, int)
    null_vector = np.zeros(d)
    if sp.issparse(A):
        independent, basis, null_vector = _columns_of_sparse(sp.csr_array(S))
        Z = sp.csr_array(S @ basis)
    else:
        independent, by_rounding = _independent_columns(regression, sample, S)
        side = np.exp2(np.frexp(np.abs(S).max(axis=1, initial=0.0))[1])[:, None]
        Z, C = coordinates((S / side)[:, independent])
        Z = Z * side
        basis = np.zeros((d, len(independent)))
        basis[independent] = C
        if len(sample) < n:
            null_vector = _random_dependence(S, independent)
    lengths = _lengths(Z)
    lengths[lengths == 0] = 1.0
    Z = _with_rows(Z, 1.0 / lengths)
    separated = np.zeros(n, bool)
    separated[sample], z, q, N, spanned = faces(
        Z, regression.equality[sample], q * lengths
    )
    if sp.issparse(basis):
        w = (basis @ z, 0.0 * unit)
    else:
        high, low = multiplied(basis, z[:, None])
        w = (high[:, 0], low[:, 0])
    face = basis @ N
    face[_lengths(face) <= ZERO * _lengths(basis)] = 0.0
    return Split(
        sample,
        separated,
        (w[0] / unit, w[1] / unit),
        q / lengths,
        independent,
        by_rounding,
        face / unit[:, None],
        _with_rows(basis, 1.0 / unit),
        null_vector / unit,
        spanned,
    )


def _lengths(T: Stored) -> Array:
    """Lengths of rows."""
    return np.asarray(np.sqrt((T * T).sum(axis=1)))


def _with_rows(T: Stored, factors: Array) -> Stored:
    """Rows times factors."""
    if sp.issparse(T):
        return sp.csr_array(sp.diags_array(factors) @ T)
    return T * factors[:, None]


def _random_dependence(S: Array, independent: Array) -> Array:
    """A random combination of the dependent columns, and what cancels it; zeros without any."""
    out = np.zeros(S.shape[1])
    dependent = np.setdiff1d(np.arange(len(out)), independent)
    if len(dependent):
        out[dependent] = np.random.default_rng(2).standard_normal(len(dependent))
        out[independent] = -np.linalg.lstsq(S[:, independent], S @ out, rcond=None)[0]
    return out


def _columns_of_sparse(S: sp.csr_array) -> tuple[Array, sp.csr_array, Array]:
    """Identified columns, a basis of what all columns span, and a random null vector.

    If the null space is too large to be known, the basis has all columns.
    """
    d = S.shape[1]
    used = np.unique(S.indices[S.data != 0])
    # VECTORS cannot span the null space of rows that wide; one tells which columns it moves.
    wide = len(used) > S.shape[0] + VECTORS
    V, known = null_vectors(S[:, used], 1 if wide else VECTORS)
    V[np.abs(V).max(axis=1, initial=0.0) <= ZERO] = 0.0
    dependent = np.flatnonzero(V.any(axis=1))
    if known:
        dependent = len(V) - 1 - first_independent(V[::-1].T)[0]
    independent = np.delete(used, dependent)
    null_vector = np.zeros(d)
    null_vector[used] = V @ np.random.default_rng(2).standard_normal(V.shape[1])
    columns = independent if known else used
    return independent, sp.eye_array(d, format="csr")[:, columns], null_vector


def first_independent(R: Array) -> tuple[Array, Array]:
    """Columns that are independent of those before them, by Gram and Schmidt.

    Also returns the residuals of nearly dependent ones relative to their lengths, else infinity.
    """
    independent = list[int]()
    Q = np.zeros((min(R.shape), R.shape[0]))  # orthonormal rows; the first ones are set
    residuals = np.full(R.shape[1], np.inf)
    for j, v in enumerate(R.T.copy()):
        rank = len(independent)
        if rank == len(Q):
            break
        length = np.sqrt(v @ v)
        for _ in range(2):  # once more, for what rounding has left
            v -= (Q[:rank] @ v) @ Q[:rank]
        rest = np.sqrt(v @ v)
        if rest > DEPENDENT * length:
            Q[rank] = v / rest
            independent.append(j)
        elif length > 0:
            residuals[j] = rest / length
    return np.array(independent, dtype=int), residuals


def _independent_columns(
    regression: Regression, sample: Array, S: Array
) -> tuple[Array, Array]:
    """Columns of scaled rows that are independent of those before them, and others by rounding.

    Few columns are decided in integers. Rounded columns that are dependent up to their rounding are
    no independent ones; they are returned as well.
    """
    R = _triangle(S)
    independent, residuals = first_independent(R)
    nearly_dependent = np.flatnonzero(residuals < np.inf)
    columns = np.union1d(independent, nearly_dependent)
    work = len(S) * len(columns) * len(independent)
    if not len(nearly_dependent) or work > MOST_DECIDED:
        return independent, independent[:0]
    rounded = regression.rounded
    whole = columns[~rounded[columns]]
    if len(whole):
        M = regression.integers(sample)[:, whole]
        whole = whole[exact.independent(M)[1]]
    columns = np.union1d(whole, columns[rounded[columns]])
    by_rounding = list[int]()
    for j in np.intersect1d(columns, nearly_dependent).tolist():
        before = np.setdiff1d(columns[columns < j], by_rounding)
        if _is_dependent_by_rounding(R, j, before, rounded, len(S)):
            by_rounding.append(j)
    columns = np.setdiff1d(columns, by_rounding)
    return columns, np.array(by_rounding, dtype=int)


def _is_dependent_by_rounding(
    R: Array, j: int, before: Array, rounded: Array, n: int
) -> bool:
    """Whether rounding n rows can have left the residual of column j on those before it."""
    factors = np.linalg.lstsq(R[:, before], R[:, j], rcond=None)[0]
    matter = np.abs(factors) > CLEAR * np.abs(factors).max(initial=0.0)
    if not rounded[j] and not (rounded[before] & matter).any():
        return False
    residual = np.linalg.norm(R[:, j] - R[:, before] @ factors)
    most = OF_RESIDUAL * np.sqrt(n) * (1 + np.abs(factors).sum())
    return bool(residual <= most)


def _triangle(S: Array) -> Array:
    """Fewer rows with the same products of columns."""
    return np.asarray(np.linalg.qr(S, mode="r")) if len(S) > S.shape[1] else S


def nearly_collinear(regression: Regression, independent: Array) -> Array:
    """Columns that R would leave out: with a residual below 1e-11 of their length.

    A residual in some rows is at most that in all of them, and is on the diagonal of a triangle.
    All rows are looked at (for large X, as many as are written out) only if some of them do not
    rule it out. Many sparse columns are not looked at.
    """
    n = regression.shape[0]
    k = len(independent)
    rng = np.random.default_rng(0)
    for size in (2 * k + MORE_ROWS, max(MOST_INTEGERS // max(k, 1), 2 * k)):
        at = rng.choice(n, size, replace=False) if size < n else np.arange(n)
        A = regression.rows(at)
        if sp.issparse(A) and not may_be_dense(*A.shape):
            return independent[:0]
        R = _triangle(dense(A)[:, independent] / regression.reach[independent])
        # No entry of a column is above 1, and so no column is longer than sqrt(n).
        far = np.abs(R.diagonal()) > WELL_ABOVE * CLOSE * np.sqrt(n)
        if len(at) >= k and far.all():
            return independent[:0]
    return independent[first_independent(R)[1] <= CLOSE]


WELL_CONDITIONED = 1e4  # condition number of R up to which the coordinates are taken
MOST_DECOMPOSITIONS = 3  # each takes out what the rounding of the last one has left
# of the diagonal, relative: columns may be dependent up to rounding
LEAST_PIVOT = 1e-16


def coordinates(S: Array) -> tuple[Array, Array]:
    """``Z = S T`` with nearly orthonormal columns, and T."""
    k = S.shape[1]
    T = np.eye(k)
    Z = S
    for _ in range(MOST_DECOMPOSITIONS):
        R = np.asarray(np.linalg.qr(Z, mode="r")) if len(Z) >= k else np.eye(k)
        least = LEAST_PIVOT * np.abs(R).max(initial=0.0)
        if least == 0.0:  # there is nothing but zeros
            least = 1.0
        R = R + np.diag(np.where(np.abs(R.diagonal()) < least, least, 0.0))
        inverse = solve_triangular(R, np.eye(k)) if k else R
        T = T @ inverse
        if np.linalg.norm(R) * np.linalg.norm(inverse) < WELL_CONDITIONED:
            return (Z @ inverse if Z is S else multiplied(S, T)[0]), T
        Z = multiplied(S, T)[0]
    return Z, T


def multiplied(A: Array, B: Array) -> DoubleDouble:
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
    Z: Stored, equality: Array, q: Values = 0.0
) -> tuple[Array, Array, Array, Array, bool]:
    """Separated rows, a direction, dual variables and a basis of the face, for unit rows.

    Of the dual variables q, those of overlapping rows may be known; else they are 0. Overlapping
    rows restrict all others to their null space; many sparse ones are equalities of the linear
    program. The last value tells whether the basis spans the face.
    """
    n, k = Z.shape
    sparse = sp.issparse(Z)
    q = np.zeros(n) + q
    rest = np.arange(n)  # rows that may be separated
    fixed = np.zeros(n, bool)  # the others: these are known to overlap
    overlap = equality | (q > 0)  # of the rest: which overlap
    # The face so far: its basis (k, dimension), the rest in its coordinates (len(rest), dimension),
    # and a direction in them. Sparse rows stay in the coordinates of Z.
    N = np.eye(0 if sparse else k)
    T = Z
    w = np.zeros(k)
    parts = list[Array]()  # dual variables that each face has added, shape (n,)
    for method in (_hinge, _hinge, program, None):
        fixed[rest[overlap]] = True
        if overlap.any() and not sparse:
            inside = null_space(T[overlap])
            N = N @ inside
            w = inside.T @ w
            T = T @ inside
        lengths = _lengths(T)
        on_face = ~overlap & (lengths > TINY)
        T = T[on_face]
        lengths = lengths[on_face]
        rest = rest[on_face]
        if method is None or not len(rest):
            break
        T = _with_rows(T, 1.0 / lengths)
        if w.any() and (T @ w > TINY * np.sqrt(w @ w)).all():
            break
        part = np.zeros(n)
        of_equalities = sparse and fixed.any()
        if of_equalities:
            w, weights = program(T, Z[fixed])
            weights, part[fixed] = np.split(weights, [len(rest)])
        else:
            w, weights = method(T)
            if sparse and weights.any():
                w = 0.0 * w  # some rows overlap, and w is not 0 on them
        if not w.any() and not weights.any():
            break  # the linear program ran out of time
        overlap = weights > (ROUGH if sparse and not of_equalities else CLEAR)
        part[rest] = np.where(overlap, weights, 0.0) / lengths
        parts.append(part)
    q = _combined(Z, equality, q, parts)
    separated = np.isin(np.arange(n), rest)
    if not len(rest):
        return separated, np.zeros(k), q, np.zeros((k, 0)), True
    if sparse:
        return separated, w, q, *null_vectors(Z[~separated])
    return separated, N @ w, q, N, True


def _combined(Z: Stored, equality: Array, q: Array, parts: list[Array]) -> Array:
    """Dual variables with ``Z'q = 0``, from those of each face in turn.

    ``Z'q = 0`` holds for them on their face. Outside, those before balance them: they change in
    proportion to their size, and stay positive if the later ones are small enough.
    """
    for part in parts:
        if not sp.issparse(Z):
            part = part + _balancing(Z, part, np.where(equality, 1.0, q))
        most = np.max(-part[q > 0] / q[q > 0], initial=0.0)
        q = q + part / max(1.0, 2 * most)
    balanced = q + _balancing(Z, q, np.where(equality, 1.0, q))
    return q if (balanced[~equality] < 0).any() else balanced


def null_space(T: Array) -> Array:
    """An orthonormal basis of the null space."""
    if not len(T):
        return np.eye(T.shape[1])
    s, V = np.linalg.svd(_triangle(T))[1:]
    rank = int((s > ZERO * s.max(initial=0.0)).sum())
    return np.asarray(V[rank:].T)


def _balancing(Z: Stored, q: Array, by: Array) -> Array:
    """The least changes of q, in units of ``by``, for which ``Z'q = 0``."""
    out = np.zeros(len(q))
    some = np.flatnonzero(by)
    if len(some):
        D = _with_rows(Z[some], by[some]).T
        solve = np.linalg.lstsq
        if sp.issparse(D):
            solve = partial(lsmr, maxiter=BALANCING_STEPS, **PRECISE)
        out[some] = solve(D, -(Z.T @ q))[0]
    return out * by


# Newton's method on the squared hinge loss.
STEPS = 200  # at most; then the linear program decides
LINE = 0.01  # relative length of the interval that holds the minimum along a line
# ridge relative to the gradient, where fewer rows are active than columns
SINGULAR = 1e-3
ROUNDED = 1e-13  # ridge relative to the Hessian's trace: more than its rounding
MANY_COLUMNS = 2000  # above these, lsmr takes the place of a factorised Hessian
LSMR = 300  # its iterations for a step, and its tolerances
OF_STEP = 1e-10


def _hinge(T: Stored) -> tuple[Array, Array]:
    """Minimise ``|max(0, 1 - T w)|^2`` by Newton's method: w, and the slack.

    At a minimum, ``T' slack = 0``. If all margins become positive before, the slack is 0. If
    neither is reached, the linear program is solved.
    """
    n, k = T.shape
    w = np.zeros(k)
    m = np.zeros(n)  # margins T w
    for _ in range(STEPS):
        if m.any() and (m > TINY * np.sqrt(w @ w)).all():
            return w, np.zeros(n)
        slack = np.maximum(1.0 - m, 0.0)
        active = np.flatnonzero(slack)
        A = T[active]
        right = slack[active]
        g = A.T @ right
        ridge = SINGULAR * np.sqrt(g @ g) * (len(active) < k)
        if k > MANY_COLUMNS:
            step = lsmr(A, right, np.sqrt(ridge), OF_STEP, OF_STEP, 0.0, LSMR)[0]
        else:
            H = dense(A.T @ A)
            ridge = ROUNDED * np.trace(H) + ridge
            step = np.linalg.solve(H + ridge * np.eye(k), g)
        move = T @ step
        t = _length_of_step(m, move)
        w = w + t * step
        m = m + t * move
        if g @ step <= UNIT:
            break
    slack = np.maximum(1.0 - m, 0.0)
    converged = np.linalg.norm(T.T @ slack) <= TINY * np.sqrt(n)
    return (w, slack) if converged else program(T)


def _length_of_step(m: Array, move: Array) -> float:
    """The t in [0, 1] that minimises ``|max(0, 1 - m - t move)|^2``: 1 first, then bisection."""
    low = 0.0
    high = 1.0
    t = 1.0
    while high - low > LINE * high:
        descends = np.maximum(1.0 - m - t * move, 0.0) @ move > 0
        if descends:
            low = t
        else:
            high = t
        t = 0.5 * (low + high)
    return t


TOLERANCES = {f"{side}_feasibility_tolerance": 1e-9 for side in ("primal", "dual")}
SECONDS = 10.0  # time limit of a linear program


def program(T: Stored, E: Stored | None = None) -> tuple[Array, Array]:
    """A direction, and the dual variables of T and of the equalities; zeros if time is short."""
    n, k = T.shape
    if E is None:
        E = sp.csr_array((0, k))
    n_equalities = E.shape[0]
    found = linprog(
        np.repeat([0.0, -1.0], [k, n]),
        A_ub=sp.hstack([sp.csr_array(-T), sp.eye_array(n)], format="csc"),
        b_ub=np.zeros(n),
        A_eq=sp.hstack([E, sp.csr_array((n_equalities, n))], format="csc"),
        b_eq=np.zeros(n_equalities),
        bounds=np.repeat([[-np.inf, np.inf], [0.0, 1.0]], [k, n], axis=0),
        options={**TOLERANCES, "time_limit": SECONDS},
    )
    if found.x is None:
        return np.zeros(k), np.zeros(n + n_equalities)
    return found.x[:k], np.append(-found.ineqlin.marginals, found.eqlin.marginals)


def null_vectors(S: Stored, most: int = VECTORS) -> tuple[Array, bool]:
    """Orthonormal vectors of the null space of rows, and whether they span it.

    For large matrices, only some random ones, at most that many.
    """
    n, d = S.shape
    if may_be_dense(max(n, d), d):
        return null_space(dense(S)), True
    rng = np.random.default_rng(0)
    found = np.zeros((d, 0))
    while found.shape[1] < most:
        g = rng.standard_normal(d)
        length = np.sqrt(g @ g)
        if n:
            g -= S.T @ lsmr(S.T, g, **PRECISE, maxiter=NULL_STEPS)[0]
        for _ in range(2):  # once more, for what rounding has left
            g -= found @ (found.T @ g)
        if np.sqrt(g @ g) <= ZERO * length:
            return found, True
        found = np.column_stack([found, g / np.sqrt(g @ g)])
    return found, False
