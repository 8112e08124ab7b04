"""Active-set method: hard margins, and squared hinge loss on few examples.

A hard margin has few support vectors. They are found by sifting: the program is solved on a working
set, all rows are checked in one pass, and violated rows are added. On the working set

    G u + ridge u + F f = target + z      u >= 0, z >= 0, u z = 0, F'u = g

is solved by block principal pivoting: all rows with negative u or z change sides at once, and each
exchange solves a linear system of the rows with u > 0, by their Gram matrix G, by the features or,
for many sparse rows, by conjugate gradients. If G is singular or the margin is small, the
minimum-norm point of the rows' convex hull is computed instead: nonnegative least squares finds its
support, and Wolfe's method the minimum-norm point of the affine hull to full precision. If the
classes overlap, A'alpha ends at rounding level.

References
----------
J. Judice, F. Pires. A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems. Computers and Operations Research, 1994.

P. Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976.

C. L. Lawson, R. J. Hanson. Solving least squares problems. Prentice-Hall, 1974.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg.lapack import dgeqrf, dormqr, dpstrf
from scipy.optimize import nnls

from marginsvm._typing import Array, Values
from marginsvm.certificate.bounded import caps_of
from marginsvm.problem.norms import BLOCK, least_squares
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.row_maps import ClassPairs
from marginsvm.solvers.solution import NOTHING, Solution
from marginsvm.solvers.systems import (
    Factor,
    RowWeights,
    conjugate_gradients,
    even_weights,
    side_of,
    written_rows,
)

EPS = float(np.finfo(np.float64).eps)
SMALLEST = 1e-300  # added to or instead of a divisor that may be 0

# The working set. Its first size, in total and per pair of classes, is also the number of rows that
# may always join in an iteration.
FIRST = 100
FIRST_OF_PAIR = 5
# Rows that all enter it: with hard margins or d <= n, and with slack and d > n.
FEW = 500
WIDE = 3000
ROOM = 4500  # its largest size: 160 MB
GROWTH = 0.2  # rows that may join in an iteration, relative to the support
NEAR = 0.02  # rows whose values are this near to their targets stay
FULL = 1.4  # all rows stay, unless it is this many times those that have to
# A row joins if its value misses the target by more than this part of the tolerance, and by more
# than a margin's relative rounding error.
MISSED = 0.5
LOST = 1e-12
SINGULAR = 2  # ratio of rows to features above which G counts as singular

# Scores, and the sums of the absolute values of their terms.
Bounded = tuple[Array, Array]
Solved = tuple[Array, Array, Array | None]  # u on a working set, f, and optionally w


def active_set(solution: Solution, start: Array | None) -> Iterator[None]:
    """Solve a program without upper bounds on alpha, by a working set of rows."""
    qp = solution.qp
    rows = qp.rows
    ridge = np.broadcast_to(qp.ridge, qp.shape).ravel()
    target = np.broadcast_to(qp.target, qp.shape).ravel()
    # The state: m rows of the working set, shape (m,); which of them have u > 0; and their inner
    # products, shape (m, m), or None if systems are solved in another way.
    work, least = first_rows(qp)
    if start is not None and np.any(start):
        solution.dual(start)
        work = np.flatnonzero(solution.alpha)
    passive = np.ones(len(work), bool)
    G = None
    width = np.inf if qp.examples.d is None else qp.k * qp.examples.d
    narrow = not qp.hard and width < len(work) == len(rows.ids)
    singular = qp.hard and SINGULAR * width <= len(work)
    if not (narrow or singular):
        G = qp.gram(work, work)
    while len(work) <= ROOM:
        F = qp.of_f(work)
        solved: Solved | None = None
        if narrow:
            solved = block_pivoting(by_features(qp), passive)
        elif G is not None:
            solve = by_rows(G, F, target[work], ridge[work], qp.g)
            solved = block_pivoting(solve, passive, qp.game)
        if solved is None and qp.hard and len(work) <= FOR_NEAREST:
            G = None
            solved = nearest_point(qp, work, F)
        if solved is None:
            break
        u, f, w = solved
        alpha = np.zeros(qp.shape)
        alpha.flat[work] = u
        solution.dual(alpha, w)
        if w is None:
            w = qp.rmatvec(alpha)
        S = qp.examples.scores(w)
        solution.primal(w, f, S)
        yield
        if solution.ended:
            break

        unit = abs(float(f[-1])) if qp.game else 1.0
        surplus = np.full(alpha.size, np.inf)  # values minus targets
        surplus[rows.ids] = rows.flat(qp.values(S, f) + qp.ridge * alpha - qp.target)
        of_work = surplus[work]
        surplus[work] = np.inf
        missed = max(MISSED * solution.tol, LOST) * unit
        new = np.flatnonzero(surplus < -missed)
        if not len(new):
            if G is None or not qp.hard:
                break
            G = None  # A'u has more digits from the nearest point
            continue
        most = max(least, int(GROWTH * np.count_nonzero(u)))
        if len(new) > most:
            new = new[np.argpartition(surplus[new], most)[:most]]
        stay = np.flatnonzero((u > 0.0) | (of_work < NEAR * unit))
        if len(work) <= FULL * len(stay) + len(new):
            stay = np.arange(len(work))
        work = np.concatenate([work[stay], new])
        passive = np.append(u[stay] > 0.0, np.ones(len(new), bool))
        if G is not None:
            strip = qp.gram(new, work)
            G = np.block([[G[np.ix_(stay, stay)], strip[:, : len(stay)].T], [strip]])


def first_rows(qp: QuadraticProgram) -> tuple[Array, int]:
    """First working set: the rows with the smallest margins for w = difference of class means.

    All rows if they are few. Also returns how many rows may always join in an iteration.
    """
    rows = qp.rows
    least = max(FIRST, FIRST_OF_PAIR * qp.k * (qp.k - 1))
    wide = not qp.hard and (qp.examples.d is None or qp.examples.d > qp.examples.n)
    few = WIDE if wide else max(FEW, least)
    if len(rows.ids) <= few:
        return rows.ids, least
    q = even_weights(qp)
    values = rows.flat(qp.matvec(qp.rmatvec(rows.shaped(q)), np.zeros(qp.n_free)))
    group = rows.groups
    order = np.lexsort((values, group))
    rank = np.empty(len(order), int)
    counts = np.bincount(group)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows.ids[rank < max(least // np.count_nonzero(counts), 2)], least


# Block principal pivoting.
TURNS = 3  # exchanges allowed without a decrease of the number of infeasible rows
NEGATIVE = 1e-10  # u or z is infeasible below minus this, relative to the largest
ROUNDED = 1e-14  # least tolerance of z, where margins are near 0

# u, f and z for given rows with u > 0.
Exchange = Callable[[Array], tuple[Array, Array, Array]]


class Sides:
    """The exchange rule of block pivoting: all rows on the wrong side change to the other.

    Attributes
    ----------
    passive : ndarray of bool
        Rows with u > 0; the others have margins of at least 1.
    left : int
        Exchanges until the number of wrong rows must have fallen again; negative: they fail.
    """

    def __init__(self, passive: Array, turns: int) -> None:
        self.passive = passive
        self.turns = turns
        self.fewest = len(passive) + 1
        self.left = turns

    def settled(self, wrong: Array) -> bool:
        """Exchange the wrong rows; True: there are none."""
        count = int(np.count_nonzero(wrong))
        self.left = self.turns if count < self.fewest else self.left - 1
        self.fewest = min(count, self.fewest)
        self.passive = self.passive ^ wrong
        return count == 0


def block_pivoting(
    solve: Exchange, passive: Array, game: bool = False
) -> Solved | None:
    """Solution u, f of the program on a few rows; None: the exchanges do not converge."""
    sides = Sides(passive, TURNS)
    while sides.left >= 0:
        passive = sides.passive
        try:
            u, f, z = solve(passive)
        except np.linalg.LinAlgError:
            return None
        unit = max(float(f[-1]), 0.0) if game else 1.0
        u_is_negative = u < -NEGATIVE * np.abs(u).max(initial=0.0)
        z_is_negative = z < -max(NEGATIVE * unit, ROUNDED)
        if sides.settled(np.where(passive, u_is_negative, z_is_negative)):
            return np.maximum(u, 0.0), f, None
    return None


def by_rows(G: Array, F: Array, target: Array, ridge: Array, g: Array) -> Exchange:
    """Systems by the Gram matrix of the rows.

    FF' is added to it, which is then positive definite on affinely independent rows. Since F'u = g,
    this only shifts f by g.
    """
    H = G + F @ F.T
    right = np.column_stack([target, F])
    np.einsum("ii->i", H)[...] += ridge

    def solve(passive: Array) -> tuple[Array, Array, Array]:
        face = np.flatnonzero(passive)
        u = np.zeros(len(H))
        solved = Factor(H[face[:, None], face]).columns(right[face])
        sums = F[face].T
        y = solved[:, 0]
        of_F = solved[:, 1:]
        f = least_squares(sums @ of_F, sums @ y - g)
        u[face] = y - of_F @ f
        return u, f + g, H @ u + F @ f - target

    return solve


def by_features(qp: QuadraticProgram) -> Exchange:
    """Systems by the features, for all rows of a program with a ridge."""
    side = side_of(qp)
    target = qp.rows.flat(qp.target)
    ridge = qp.rows.flat(qp.ridge)

    def solve(passive: Array) -> tuple[Array, Array, Array]:
        weights = RowWeights(np.where(passive, ridge, np.inf))
        x, u = side.factor(weights)(target, side.g)
        f = side.point(x, qp)[1]
        return u, f, side.values(x) - target

    return solve


FOR_NEAREST = 1500  # rows that nonnegative least squares takes less than a second for
STIFF = 1e3  # penalty on F'u in nonnegative least squares
WRITTEN = 200  # features that rows are written out with, whatever their number
THIN = 1e-6  # margin (in radii) below which A'u has too few digits
FALLING = 1e-14  # u falls to 0 if it is below minus this, relative to the largest


def nearest_point(qp: QuadraticProgram, work: Array, F: Array) -> Solved | None:
    """Solution u, f, w of a hard margin on a few rows; NNLS avoids squares of small numbers."""
    d = qp.examples.d
    if d is not None and qp.k * d <= max(2 * len(work), WRITTEN):
        A = written_rows(qp, work)
    else:
        # Coordinates whose inner products are those of the rows.
        factor, order, rank, _ = dpstrf(qp.gram(work, work), lower=1)
        A = np.zeros((len(work), max(rank, 1)))
        A[order - 1] = np.tril(factor)[:, : A.shape[1]]
    E = np.concatenate([A, STIFF * F[:, :-1], -F[:, -1:]], axis=1).T
    wanted = np.zeros(len(E))
    wanted[-1] = 1.0
    try:
        u = nnls(E, wanted)[0]
    except RuntimeError:  # too many iterations
        return None
    u, f, w = wolfe(A, F, qp.g, u / max(u.sum(), SMALLEST))
    if d is None or A.shape[1] != qp.k * d:
        return u, f, None
    return u, f, w.reshape(qp.k, d)


def wolfe(A: Array, F: Array, g: Array, u: Array) -> tuple[Array, Array, Array]:
    """The minimum-norm ``A'u`` with ``F'u = g`` and u >= 0, from a u nearby; u, f and ``A'u``.

    Each step goes to the minimum-norm point of the affine hull of the rows with u > 0, or until the
    first u reaches 0; then the most violated row is added.
    """
    some = u > 0.0  # rows of the affine hull
    f = 0.0 * g
    w = A.T @ u
    for _ in range(len(A)):
        # The minimum-norm point v of the hull: x are its coordinates in the basis Q of F'v = g.
        S = np.flatnonzero(some)
        A_S = A[S]
        c = min(len(S), len(g))
        Q, tau, *_ = dgeqrf(F[S])
        R = np.triu(Q[:c])
        lwork = BLOCK * A.shape[1]
        rotated = dormqr("L", "T", Q, tau, A_S, lwork)[0]
        x = np.zeros(len(S))
        x[:c] = least_squares(R.T, g)
        x[c:] = least_squares(rotated[c:].T, -(x[:c] @ rotated[:c]))
        v = dormqr("L", "N", Q, tau, x[:, None], lwork)[0][:, 0]
        falls = v < -FALLING * np.abs(v).max()
        if falls.any():
            t = np.min(u[S][falls] / (u[S][falls] - v[falls]))
            u[S] += t * (v - u[S])
            some[S[falls & (u[S] <= EPS * u.max())]] = False
            u[~some] = 0.0
            continue
        u[S] = np.maximum(v, 0.0)
        w = A.T @ u
        if NOTHING**2 < float(w @ w) < THIN**2:
            # A'u cancels: equal margins on all rows with u > 0 determine more of its digits
            Q = np.linalg.qr(F[S, :-1], mode="complete")[0][:, F.shape[1] - 1 :]
            v = least_squares(Q.T @ A_S, Q.sum(axis=0))
            w = v / max(float(v @ v), SMALLEST)
        f = least_squares(R, -(rotated[:c] @ w))
        z = A @ w + F @ f
        z[S] = np.inf
        worst = int(z.argmin())
        square = float(w @ w)
        if square <= NOTHING**2 or z[worst] >= -LOST * square:
            break
        some[worst] = True
    return u, f, w


ROUGH = 1e-2  # precision of systems while rows still change sides, with hard margins
PRECISE = 0.1  # their precision at the end, in times of the tolerance


def pivoting_by_products(solution: Solution, start: Array | None) -> Iterator[None]:
    """Block pivoting on all rows of two classes, from a start alpha.

    Systems are solved by conjugate gradients, with margin 1 also in a game; for hard margins only
    roughly as long as rows still change sides.
    """
    qp = solution.qp
    tol = solution.tol
    if start is None or not np.any(start):
        return
    s = qp.sign
    solution.dual(start)
    u = solution.alpha  # in units of margin 1, shape (n,)
    if qp.game:
        w = qp.rmatvec(u)
        u = u / max(qp.examples.inner(w, w), SMALLEST)
    passive = u > 0.0
    precisions = [PRECISE * tol]
    if not np.any(qp.ridge):
        precisions.insert(0, ROUGH)
    for precision in precisions:
        sides = Sides(passive, TURNS + 1)
        while sides.left >= 0:
            face = np.flatnonzero(sides.passive)
            x, b = _on_face(qp, face, np.maximum(u[face], 0.0), precision)
            if not np.isfinite(x).all():
                return
            u = np.zeros(len(s))
            u[face] = x
            w = qp.rmatvec(u)
            S = qp.examples.scores(w)
            alpha = np.maximum(u, 0.0)
            solution.dual(alpha / alpha.sum() if qp.game else alpha)
            solution.primal(w, np.full(qp.n_free, b), S)
            yield
            if solution.ended:
                return
            m = s * (S[:, 0] + b)
            wrong = np.where(sides.passive, u < 0.0, m < 1.0 - precision)
            if sides.settled(wrong):
                break
        passive = sides.passive


def _on_face(
    qp: QuadraticProgram, face: Array, x: Array, precision: float
) -> tuple[Array, float]:
    """Alpha on the face such that its rows have margin 1, by conjugate gradients; and b."""
    examples = qp.examples.take(face)
    y = qp.sign[face]
    ridge = qp.ridge[face]
    diagonal = ridge + examples.squared_norms + SMALLEST

    def product(v: Array) -> Array:
        return y * examples.scores(examples.combine((y * v)[:, None]))[:, 0] + ridge * v

    def balanced(r: Array) -> Array:
        if qp.intercept:
            r = r - y * (float(y @ (r / diagonal)) / float((1.0 / diagonal).sum()))
        return r / diagonal

    if qp.intercept:
        x = x - y * float(y @ x) / len(face)
    size = precision * float(np.sqrt(balanced(np.ones(len(face))).sum()))
    # There is no solution if the rows overlap: x grows until it is not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        x, r = conjugate_gradients(product, balanced, x, 1.0 - product(x), size)
    return x, float((y * r).mean()) if qp.intercept else 0.0


# Alpha at its bounds: what a solver leaves within rounding of them is published as them.
#
# A solver ends with alpha near its bounds, where the support vectors are those with alpha > 0, and
# the bounded ones those with ``alpha = C m``. An alpha within a small part of ``C m`` of a bound,
# and on that side by its margin, becomes the bound: by stationarity, the dual value then
# increases. The other ones restore ``F'alpha = g`` and, if they are few, give their rows the values
# that are optimal between the bounds, which ``w = A'alpha`` then has, too.

# The part of the upper bound (without one: of the largest alpha) that is near, if the value agrees.
NEAR_BOUND = 1e-2
TINY = 1e-6  # alpha, relative to the largest, that is rounding without upper bounds
# Entries between their bounds whose system takes less than a few milliseconds.
FEW_BETWEEN = 200
EXCHANGES = 3
WRONG = 1e-9  # value of a row beyond its target, relative to the largest target
BALANCED = 1e-12  # rounding of F'alpha - g, relative to the sum of alpha
SAME = 1e-15  # rounding of a sum of alpha at its upper bound


def at_bounds(qp: QuadraticProgram, alpha: Array, values: Array) -> tuple[Array, Array]:
    """Alpha, with entries at their bounds that are near and on that side; and which sums are full.

    Parameters
    ----------
    qp : QuadraticProgram
        With slack.
    alpha : ndarray of shape qp.shape
        Feasible up to rounding.
    values : ndarray of shape qp.shape
        ``A w + F f`` of a predictor nearby.
    """
    caps, _ = caps_of(qp, alpha)
    over = qp.rows.fill(values - qp.target, np.inf)
    size = float(qp.largest_target) or 1.0
    unit: Values = alpha.max(initial=0.0) if caps is None else caps
    if qp.cap is not None:
        unit = qp.cap[:, None]
    # nearer to the bound than the value is to the target
    near = np.minimum(NEAR_BOUND, over / size) * unit
    alpha = np.where((over > 0.0) & (alpha <= near), 0.0, alpha)
    if caps is None:
        return alpha, np.zeros(len(alpha), bool)
    _, sums = caps_of(qp, alpha)
    least = qp.rows.least(over)
    near = np.minimum(NEAR_BOUND, -least / size) * caps
    full = (least < 0.0) & (caps - sums <= near)
    if qp.cap is None:
        return np.where(full, caps, alpha), full
    alpha[full] *= (caps[full] / sums[full])[:, None]
    return alpha, full


def balanced(qp: QuadraticProgram, alpha: Array, full: Array) -> Array | None:
    """Alpha with ``F'alpha = g``, by entries between their bounds, in proportion to their room.

    None: they cannot.
    """
    caps, _ = caps_of(qp, alpha)
    if qp.n_free and isinstance(qp.rows, ClassPairs):
        alpha = qp.rows.balanced(alpha, True, 0.0, caps)
    elif qp.n_free:
        room = alpha
        if caps is not None:
            room = np.where(full, 0.0, np.minimum(alpha, caps - alpha))
        F = qp.of_f(qp.rows.ids)
        off = qp.balance(alpha) - qp.g
        x = least_squares(F.T @ (room[:, None] * F), -off)
        alpha = alpha + room * (F @ x)
    return alpha if _is_feasible(qp, alpha) else None


def _is_feasible(qp: QuadraticProgram, alpha: Array) -> bool:
    """Whether alpha is feasible up to rounding."""
    caps, sums = caps_of(qp, alpha)
    left = np.abs(qp.balance(alpha) - qp.g).max(initial=0.0)
    inside = caps is None or np.all(sums <= (1.0 + SAME) * caps)
    even = left <= BALANCED * float(alpha.sum())
    return bool(inside and even and alpha.any() and alpha.min() >= 0.0)


def met(
    qp: QuadraticProgram, alpha: Array, full: Array, w: Array, S: Array
) -> tuple[Array, Array, Array] | None:
    """w, f and alpha for which rows between their bounds have the values that are optimal there.

    Rows of two classes and of tubes that are then beyond a bound, or at the wrong one, change.
    None: many rows are between their bounds, or too many change sides. S are the scores of a w near
    ``A'alpha``: with a kernel, few columns lead from these to others nearby.
    """
    caps = np.broadcast_to(qp.upper, qp.shape)
    several = qp.several
    size = float(qp.largest_target) or 1.0
    free = alpha > 0.0 if several else (alpha > 0.0) & ~full
    for _ in range(1 if several else EXCHANGES):
        if not 0 < np.count_nonzero(free) <= FEW_BETWEEN:
            return None
        w, S = _moved(qp, alpha, w, S)
        alpha, f = _solved(qp, alpha, S, np.flatnonzero(free), full)
        beyond = (alpha < 0.0) | (alpha > caps)
        if beyond.any() and not several:
            alpha = np.clip(alpha, 0.0, caps)
            free &= ~beyond
            continue
        w, S = _moved(qp, alpha, w, S)
        if not several:
            over = (qp.values(S, f) - qp.target) / size
            wrong = ~free & np.where(alpha > 0.0, over > WRONG, over < -WRONG)
            if wrong.any():
                free |= wrong
                continue
        return (w, f, alpha) if _is_feasible(qp, alpha) else None
    return None


def _moved(
    qp: QuadraticProgram, alpha: Array, w: Array, S: Array
) -> tuple[Array, Array]:
    """``A'alpha`` and its scores, from the scores of another w."""
    moved = qp.rmatvec(alpha)
    change = moved - w
    return moved, S + qp.examples.scores(change) if change.any() else S


def _solved(
    qp: QuadraticProgram, alpha: Array, S: Array, free: Array, full: Array
) -> tuple[Array, Array]:
    """Alpha and f with optimal values of some rows, given by their flat indices."""
    ridge = np.broadcast_to(qp.ridge, qp.shape)
    missing = qp.target - qp.rows.values(S) - ridge * alpha
    B = qp.of_f(free)
    off = qp.g - qp.balance(alpha)
    if qp.cap is not None:  # the slack of an example at its upper bound is free
        of = qp.rows.example_of(free)
        slack = (of[:, None] == np.flatnonzero(full)).astype(float)
        B = np.column_stack([B, slack])
        off = np.append(off, np.zeros(slack.shape[1]))
    solve = by_rows(qp.gram(free, free), B, missing.flat[free], ridge.flat[free], off)
    move, f, _ = solve(np.ones(len(free), bool))
    found = alpha.copy()
    found.flat[free] += move
    return found, f[: qp.n_free]


def candidates(
    qp: QuadraticProgram, w: Array, f: Array, alpha: Array
) -> Iterator[tuple[Array, Array, Array, Bounded]]:
    """Predictors with feasible alpha at its bounds, the best first, from those of a solver.

    w, f, alpha, and the bounded scores of w, which is ``A'alpha`` where its optimal values are
    known, and with a kernel; else the solver's.
    """
    if caps_of(qp, alpha)[0] is None and not _is_rounded(qp, w, alpha):
        return
    examples = qp.examples
    w = qp.project(w)
    known = examples.bounded_scores(w)
    values = qp.values(known[0], f)
    if not (np.isfinite(values).all() and np.isfinite(alpha).all()):
        return
    rounded = at_bounds(qp, alpha, values)
    found = met(qp, *rounded, w, known[0])
    if found is not None:
        other = qp.project(found[0])
        yield other, *found[1:], examples.bounded_scores(other)
    near = balanced(qp, *rounded)
    if near is not None:
        if examples.is_kernel:
            w = qp.rmatvec(near)
            known = examples.bounded_scores(w)
        yield w, f, near, known


def _is_rounded(qp: QuadraticProgram, w: Array, alpha: Array) -> bool:
    """Whether alpha without upper bounds, or the coefficients w of a kernel, are nearly 0."""
    if np.any((alpha > 0.0) & (alpha <= TINY * alpha.max())):
        return True
    used = qp.rows.coefficients(alpha).any(axis=1)
    return bool(qp.examples.is_kernel and np.any(w[:, ~used]))
