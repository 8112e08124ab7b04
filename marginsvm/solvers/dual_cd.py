"""Dual coordinate descent, for many, sparse or low-dimensional examples.

    max over alpha   target'alpha - |A'alpha|^2/2 - sum_i ridge_i alpha_i^2/2
    subject to       0 <= alpha <= upper, F'alpha = 0     (several classes: sum_j alpha_ij <= cap_i)

Each epoch minimises over one variable at a time, in random order, and maintains ``w = A'alpha``
(Hsieh et al.); for several classes, over all variables of an example by one projection (Keerthi et
al.). Shrinking: variables at a bound whose gradient exceeds the largest violation of the last
epoch are skipped until the next check of all rows.

The free intercept is the multiplier of ``s = F'alpha = 0`` in an augmented Lagrangian,
``b = lambda + sigma s``: like a feature of value ``sqrt(sigma)`` with an offset. After some epochs
lambda is set to b, all rows are checked, and both values are computed: P at the best intercept and
the best scaling of w, D at an alpha with ``F'alpha = 0``. A large sigma shortens the steps, a small
one needs many updates of lambda. A check costs several epochs of the few rows that remain active,
so it comes after a number of steps, not of epochs.

Hard margins are solved with the target 1 and without a constraint on the sum of alpha; the values
are those of the game.

References
----------
C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan. A dual coordinate descent
method for large-scale linear SVM. ICML, 2008.

S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin. A sequential dual method for large
scale multi-class linear SVMs. KDD, 2008.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from marginsvm._compiling import compiled, parts
from marginsvm._typing import Array, Stored
from marginsvm.problem.matrix import as_matrix
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.quadratic_program import QuadraticProgram, multiple_of_hinge
from marginsvm.solvers.solution import Solution

# Without ninf, as infinities are used.
FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}
OPTIONS: dict[str, object] = {"error_model": "numpy", "fastmath": FAST}
NOTHING = 1e-300  # instead of 0, as a divisor
part = parts(**OPTIONS)
loop = compiled(**OPTIONS)
EQUAL = 1e-12  # difference of the products of equal examples, which are rounded
index = np.uint64  # unsigned: numba needs no test for negative indices


class Entries(NamedTuple):
    """Examples as compiled loops read them: CSR, or dense data, None and None."""

    data: Array
    indices: Array | None
    indptr: Array | None


class RowData(NamedTuple):
    """The rows of two classes or of tubes: arrays of shape (m,); ``of`` is a row's example."""

    of: Array
    sign: Array
    target: Array
    ridge: Array
    upper: Array


@part
def _dot(data, indices, indptr, i, w):
    """Inner product of example i with w.

    Dense examples have None for indices: numba then compiles one of both loops only, as a branch
    between them at run time takes as long as a short row.
    """
    total = 0.0
    if indices is not None:
        for t in range(index(indptr[i]), index(indptr[i + 1])):
            total += data[t] * w[index(indices[t])]
    else:
        x = data[i * len(w) : (i + 1) * len(w)]
        for t in range(len(w)):
            total += x[t] * w[t]
    return total


@part
def _add(data, indices, indptr, i, step, w):
    """Add a multiple of example i to w."""
    if indices is not None:
        for t in range(index(indptr[i]), index(indptr[i + 1])):
            w[index(indices[t])] += step * data[t]
    else:
        x = data[i * len(w) : (i + 1) * len(w)]
        for t in range(len(w)):
            w[t] += step * x[t]


# Consecutive examples of an epoch, of many: memory is read in the order of their entries.
BLOCK = 8
MANY = 1024


@part
def _shuffle(order, n, seed):
    """Shuffle the first n entries in blocks, by a generator whose state is updated."""
    state = seed[0]
    size = min(BLOCK, 1 + n // MANY)
    blocks = n // size
    for i in range(blocks):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        # 31 random bits times the blocks left, over 2^31: a remainder takes as long as a short row
        left = np.uint64(blocks - i)
        j = i + int(((state >> np.uint64(33)) * left) >> np.uint64(31))
        for t in range(size):
            p = i * size + t
            q = j * size + t
            order[p], order[q] = order[q], order[p]
    seed[0] = state


@loop
def descend_rows(
    X, rows, scale, curvature, b, sigma, alpha, w, active, seed, most, tol
):
    """Epochs over the active rows, with shrinking.

    Parameters
    ----------
    X : Entries
    rows : RowData
    scale : float
        Of steps of w, for examples that are not in the program's units: these units' inverse
        square, where w is divided by the units.
    curvature : ndarray of shape (m,)
        Squared norm of the row, plus ridge and sigma.
    b, sigma : float
        Intercept, and its derivative in ``sum sign alpha``.
    alpha, w : ndarray
        Changed in place, as are active (an order) and seed.
    most : int
        Number of steps after which no further epoch begins.
    tol : float
        Largest violation for termination.

    Returns
    -------
    b, n_steps : float, int
        The intercept, and the number of coordinate steps.
    """
    of, sign, target, ridge, upper = rows
    m = len(active)  # the first so many rows of active are not shrunk
    steps = 0
    # The largest and the least violation of the last epoch.
    high = np.inf
    low = -np.inf
    while steps < most:
        steps += m
        _shuffle(active, m, seed)
        next_high = 0.0
        next_low = 0.0
        worst = 0.0
        k = 0
        while k < m:
            r = active[k]
            i = of[r]
            value = sign[r] * (b + _dot(X.data, X.indices, X.indptr, i, w))
            g = value - target[r] + ridge[r] * alpha[r]
            at_zero = alpha[r] <= 0.0
            at_upper = alpha[r] >= upper[r]
            if (at_zero and g > high) or (at_upper and g < low):
                m -= 1
                active[k] = active[m]
                active[m] = r
                continue
            violation = min(g, 0.0) if at_zero else max(g, 0.0) if at_upper else g
            next_high = max(next_high, violation)
            next_low = min(next_low, violation)
            worst = max(worst, abs(violation))
            if violation != 0.0 and curvature[r] > 0.0:
                new = min(max(alpha[r] - g / curvature[r], 0.0), upper[r])
                step = sign[r] * (new - alpha[r])
                alpha[r] = new
                b += sigma * step
                _add(X.data, X.indices, X.indptr, i, scale * step, w)
            k += 1
        high = next_high if next_high > 0.0 else np.inf
        low = next_low if next_low < 0.0 else -np.inf
        if worst <= tol:
            break
    return b, steps


@part
def projected(c, own, q, diagonal, cap, alpha, order):
    """Maximise ``c'a - q (sum a)^2/2 - diagonal |a|^2/2`` over ``a >= 0, sum a <= cap``.

    The solution is ``max(c_j - level, 0) / diagonal``; classes are sorted until the level is found.
    """
    # Classes with c > 0, in the order of c.
    n = 0
    for j in range(len(c)):
        alpha[j] = 0.0
        if j != own and c[j] > 0.0:
            p = n
            while p > 0 and c[order[p - 1]] < c[j]:
                order[p] = order[p - 1]
                p -= 1
            order[p] = j
            n += 1
    # The level at which the first r + 1 of them are positive, until the others are below it.
    total = 0.0
    level = 0.0
    mass = 0.0
    for r in range(n):
        total += c[order[r]]
        mass = total / (diagonal + (r + 1) * q)
        level = q * mass if mass <= cap else (total - diagonal * cap) / (r + 1)
        if r + 1 == n or c[order[r + 1]] <= level:
            break
    mass = 0.0
    for r in range(n):
        j = order[r]
        if c[j] > level:
            alpha[j] = (c[j] - level) / diagonal
            mass += alpha[j]
    return mass


@part
def _class_scores(data, indices, indptr, i, W, scores):
    """Add the inner products of example i with all columns of W."""
    if indices is not None:
        for t in range(index(indptr[i]), index(indptr[i + 1])):
            x = data[t]
            row = W[index(indices[t])]
            for c in range(len(scores)):
                scores[c] += x * row[c]
    else:
        for t in range(len(W)):
            x = data[i * len(W) + t]
            row = W[t]
            for c in range(len(scores)):
                scores[c] += x * row[c]


@part
def _add_to_class(data, indices, indptr, i, step, W, c):
    """Add a multiple of example i to a column of W."""
    if indices is not None:
        for t in range(index(indptr[i]), index(indptr[i + 1])):
            W[index(indices[t]), c] += step * data[t]
    else:
        for t in range(len(W)):
            W[t, c] += step * data[i * len(W) + t]


@part
def _dot_of_class(data, indices, indptr, i, W, c):
    """Inner product of example i with a column of W."""
    total = 0.0
    if indices is not None:
        for t in range(index(indptr[i]), index(indptr[i + 1])):
            total += data[t] * W[index(indices[t]), c]
    else:
        for t in range(len(W)):
            total += data[i * len(W) + t] * W[t, c]
    return total


LEFT_OUT = -1e100  # score of a class that is not updated
EPOCHS = 8  # of several classes, between two checks


@loop
def descend_examples(
    X,
    codes,
    scale,
    square,
    ridge,
    cap,
    sigma,
    alpha,
    W,
    b,
    excess,
    order,
    seed,
    first,
    last,
):
    """Epochs over the examples; each step updates all variables of one example.

    In epochs 1, 2, 4, 8, 16, 24, ... all classes are updated, otherwise only those with alpha > 0,
    which are few if there are many classes.

    Parameters
    ----------
    X : Entries
    codes, square, ridge, cap : ndarray
        Per example.
    scale : float
        Of steps of W, as of ``descend_rows``.
    sigma : float
    alpha, W, b, excess : ndarray of shape (n, k), (d, k), (k,) and (k,)
        Changed in place, as are order and seed. b includes ``sigma excess``.
    first, last : int
        Range of the epochs.
    """
    n, k = alpha.shape
    scores = np.empty(k)
    new = np.empty(k)
    places = np.empty(k, np.int64)
    for epoch in range(first, last):
        every = epoch % EPOCHS == 0 or epoch & (epoch - 1) == 0
        _shuffle(order, n, seed)
        for i in order:
            own = codes[i]
            q = square[i] + sigma
            mass = 0.0
            diagonal = q + ridge[i]
            for c in range(k):
                mass += alpha[i, c]
            if diagonal <= 0.0 or (mass == 0.0 and not every):
                continue
            if every:
                for c in range(k):
                    scores[c] = b[c]
                _class_scores(X.data, X.indices, X.indptr, i, W, scores)
            else:
                for c in range(k):
                    scores[c] = LEFT_OUT
                    if alpha[i, c] > 0.0 or c == own:
                        dot = _dot_of_class(X.data, X.indices, X.indptr, i, W, c)
                        scores[c] = b[c] + dot
            score = scores[own]
            for c in range(k):
                scores[c] += 1.0 - score + q * (mass + alpha[i, c])
            moved = projected(scores, own, q, diagonal, cap[i], new, places) - mass
            new[own] = 0.0
            for c in range(k):
                step = moved if c == own else alpha[i, c] - new[c]
                if step != 0.0:
                    alpha[i, c] = new[c]
                    _add_to_class(X.data, X.indices, X.indptr, i, scale * step, W, c)
                    excess[c] += step
                    b[c] += sigma * step
        for c in range(k):
            b[c] += sigma * excess[c]


def dual_cd(solution: Solution, start: Array | None) -> Iterator[None]:
    """Solve a program of examples with features; each iteration ends with a check of all rows."""
    qp = solution.qp
    X, unit = qp.design.all_rows()
    sparse = sp.issparse(X)
    if isinstance(X, np.ndarray):
        entries = Entries(X.ravel(), None, None)
    else:
        entries = Entries(X.data, X.indices, X.indptr)
    if sparse and qp.design.mean is not None:  # not about the mean
        square = as_matrix(X).squared_norms(LpNorm(), None) / unit**2
    else:
        square = qp.examples.squared_norms
    alpha = np.zeros(qp.shape) if start is None else start.copy()
    if start is not None and qp.game:  # scaled to margin 1
        alpha /= max(-2.0 * qp.dual(start), NOTHING)
    by = _by_examples if qp.several else _by_rows
    yield from by(solution, X, unit, entries, square, alpha)


# sigma: in times of the median squared norm at first, and then as much as free variables are few,
# but not below LEAST_SIGMA; more by a part of the ridge, and so that an excess of 6 % of the sum of
# upper bounds moves the intercept by the width of the margin.
FIRST_SIGMA = 0.1
FREE = 30.0
LEAST_SIGMA = 0.05
OF_RIDGE = 0.05
EXCESS = 0.06
# Epochs before the next check: at least, and for each pass so far. They end at a violation of this
# part of the last one.
EPOCHS_OF_ROWS = 10.0
MORE_EPOCHS = 0.3
PRECISION = 0.03
# The method stops if twice as many passes, from the first mark on, leave more of the gap than this.
FIRST_MARK = 50.0
LEFT = 0.3
# And after MOST passes over LONG times as many examples as features: solvers by the features take
# no longer to the end.
LONG = 10
MOST = 80.0


def _by_rows(
    solution: Solution,
    X: Stored,
    unit: float,
    entries: Entries,
    square: Array,
    alpha: Array,
) -> Iterator[None]:
    """Two classes, and regression."""
    qp = solution.qp
    m = qp.size
    of = qp.rows.at
    sign = qp.sign
    target, ridge, upper = (
        np.ascontiguousarray(np.broadcast_to(a, m))
        for a in (1.0 if qp.game else qp.target, qp.ridge, qp.upper)
    )
    rows = RowData(of, sign, target, ridge, upper)
    size = 1.0
    if qp.intercept and square.any():
        size = float(np.median(square[square > 0.0]))
    # w is divided by the unit, as X and the mean are multiplied by it.
    scale = unit**-2
    mean = unit * mean_of(qp, X)
    w = np.zeros(X.shape[1])
    if alpha.any():
        w = scale * np.asarray(X.T @ qp.rows.coefficients(alpha)[:, 0])
    # The intercept can change by the width of the margin within the bounds of alpha.
    least = OF_RIDGE * float(ridge.mean()) + 1.0 / (EXCESS * upper.sum())
    # The state, beside alpha and w: the intercept, its derivative sigma, the rows that are not
    # shrunk, the largest violation (slope), passes over all rows so far, and epochs that follow.
    b = 0.0
    sigma = (FIRST_SIGMA * size + least) * qp.intercept
    active = np.arange(m)
    slope = 1.0
    passes = 0.0
    epochs = EPOCHS_OF_ROWS
    seed = np.ones(1, np.uint64)
    # The gap is compared with that at half as many passes.
    mark = FIRST_MARK
    gap = 1.0
    most = MOST if len(square) > LONG * X.shape[1] else np.inf
    # Equal examples of both classes are sought once, after the first check.
    seek_equal = bool(np.isfinite(upper).all())
    if alpha.any():  # a start is checked first, at its best intercept
        epochs = 0.0
        shift = w @ mean
        if qp.intercept:
            S = (X @ w - shift)[:, None]
            b = float(qp.best_f(S, np.zeros(qp.n_free))[0] - shift)
    # w does not depend on the alpha of an empty example, which belongs at a bound at once.
    still = (square[of] + ridge + sigma <= 0.0) & np.isfinite(upper)
    alpha[still] = np.where(target > 0.0, upper, 0.0)[still]
    while True:
        b, steps = descend_rows(
            entries,
            rows,
            scale,
            square[of] + ridge + sigma,
            b,
            sigma,
            alpha,
            w,
            active,
            seed,
            int(epochs * m),
            PRECISION * slope,
        )
        passes += steps / m + 2  # and the two products of the check
        mass = float(alpha.sum()) + NOTHING if qp.game else 1.0
        z = X @ w
        S = (z - w @ mean)[:, None]
        image = (unit / mass) * w[None]
        point = _at_best_length(qp, image, S / mass)
        solution.primal(*point, settled=True)
        # without constraints on alpha, it is feasible, and w is A'alpha
        solution.dual(alpha / mass, None if qp.n_free else image)
        yield
        if solution.ended:
            return
        if seek_equal:
            more = _of_equal_examples(X, of, sign, target, upper - alpha)
            if more.any():
                alpha += more
                w = scale * np.asarray(X.T @ qp.rows.coefficients(alpha)[:, 0])
                z = X @ w
            seek_equal = False
        if passes >= most:
            return
        if passes >= mark:
            if solution.gap > LEFT * gap:
                return
            mark = 2.0 * passes
            gap = solution.gap

        epochs = EPOCHS_OF_ROWS + MORE_EPOCHS * passes
        free = max(1, int(np.count_nonzero((alpha > 0.0) & (alpha < upper))))
        share = min(1.0, max(LEAST_SIGMA, FREE / free))
        sigma = (size * share + least) * qp.intercept
        b += sigma * float(sign @ alpha)
        g = sign * (z[of] + b) - target + ridge * alpha
        wrong = np.where(alpha <= 0.0, np.minimum(g, 0.0), g)
        wrong = np.where(alpha >= upper, np.maximum(wrong, 0.0), wrong)
        slope = float(np.abs(wrong).max())
        away = ((alpha <= 0.0) & (g > slope)) | ((alpha >= upper) & (g < -slope))
        active = np.flatnonzero(~away)


def _of_equal_examples(
    X: Stored, of: Array, sign: Array, target: Array, room: Array
) -> Array:
    """What alpha may gain, up to its bounds, where w stays: on two equal examples of both classes.

    One of the two is at its bound in the end, and an epoch takes it only a step nearer.
    """
    key = (X @ np.random.default_rng(0).random(X.shape[1]))[of]
    order = np.argsort(key)
    one = order[:-1]
    other = order[1:]
    equal = np.abs(key[one] - key[other]) <= EQUAL * np.abs(key[one])
    equal &= (sign[one] != sign[other]) & (target[one] + target[other] > 0.0)
    equal[1:] &= ~equal[:-1]  # an example belongs to one pair
    one = one[equal]
    other = other[equal]
    found = np.zeros(len(room))
    found[one] = found[other] = np.minimum(room[one], room[other])
    return found


def mean_of(qp: QuadraticProgram, X: Stored) -> Array:
    """The mean that centring subtracts from sparse examples; 0 for dense ones, already centred."""
    mean = qp.design.mean if qp.examples.sparse else None
    return np.zeros(X.shape[1]) if mean is None else np.asarray(mean)


def _at_best_length(
    qp: QuadraticProgram, w: Array, S: Array
) -> tuple[Array, Array, Array]:
    """The best f and, for targets 1, the scaling of w with the least hinge loss objective."""
    f = qp.best_f(S, np.zeros(qp.n_free))
    square = qp.examples.inner(w, w)
    if qp.game or not qp.by_margins or np.any(qp.ridge) or square <= 0.0:
        return w, f, S
    t = multiple_of_hinge(square, qp.values(S, f), qp.upper)
    return (t * w, t * f, t * S) if t > 0.0 else (w, f, S)


# sigma, in times of the mean square and of the mean ridge; more so that an excess of 6 % of the sum
# of caps moves an intercept by the width of the margin.
OF_SQUARES = 0.004
OF_RIDGES = 0.025
PARTS = 4  # momentum steps between two checks, where the loss is smooth
SLOW = 0.5  # momentum grows where a check leaves more of the gap than this
# The method stops if twice as many epochs, from the first mark on, leave more of the gap than this.
FIRST_MARK_OF_CLASSES = 200
LEFT_OF_CLASSES = 0.1


def _by_examples(
    solution: Solution,
    X: Stored,
    unit: float,
    entries: Entries,
    square: Array,
    alpha: Array,
) -> Iterator[None]:
    """Several classes, with Nesterov's momentum if epochs converge slowly.

    The momentum is restarted when the dual value decreases (O'Donoghue, Candes 2015).
    """
    qp = solution.qp
    n = len(square)
    k = qp.k
    cap = np.full(n, np.inf) if qp.cap is None else np.ascontiguousarray(qp.cap)
    ridge = np.ascontiguousarray(np.broadcast_to(qp.ridge[:, 0], n))
    squared = bool(np.any(qp.ridge))
    sigma = OF_SQUARES * float(square.mean()) + OF_RIDGES * float(ridge.mean())
    sigma = (sigma + 1.0 / (EXCESS * cap.sum())) * qp.intercept
    # w does not depend on the alpha of an empty example: one other class gets all its weight.
    still = np.flatnonzero((square + ridge + sigma <= 0.0) & np.isfinite(cap))
    alpha[still] = 0.0
    alpha[still, (qp.rows.labels[still] + 1) % k] = cap[still]
    scale = unit**-2  # as in ``_by_rows``
    mean = unit * mean_of(qp, X)
    V = qp.rows.coefficients(alpha)
    W = scale * np.asarray(X.T @ V)
    excess = V.sum(axis=0)
    b = np.zeros(k)
    order = np.arange(n)
    seed = np.ones(1, np.uint64)
    epochs = 1
    # Momentum grows with the pace from where alpha and b were before; the pace grows where the gap
    # falls slowly, from dual values that do not decrease.
    pace = 1
    before = (alpha, b)
    proved = -np.inf
    gap = 1.0
    # The gap is compared with that at half as many epochs.
    mark = FIRST_MARK_OF_CLASSES
    gap_at_mark = 1.0
    while True:
        parts = PARTS if squared and pace > 2 else 1
        for _ in range(parts):
            now = (alpha.copy(), b - sigma * excess)
            if pace > 1:
                t = (pace - 1.0) / (pace + 2.0)
                alpha, b = (x + t * (x - y) for x, y in zip(now, before, strict=True))
                np.maximum(alpha, 0.0, out=alpha)
                V = qp.rows.coefficients(alpha)
                W = scale * np.asarray(X.T @ V)
                excess = V.sum(axis=0)
                b += sigma * excess
            before = now
            last = epochs + EPOCHS // parts
            descend_examples(
                entries, qp.rows.labels, scale, square, ridge, cap, sigma, alpha, W, b, excess,
                order, seed, epochs, last,
            )  # fmt: skip
            epochs = last
            pace += parts > 1
        mass = float(alpha.sum()) + NOTHING if qp.game else 1.0
        c = (b + mean @ W) / mass
        f = (c[:-1] - c[-1])[: qp.n_intercepts]
        if qp.level:
            f = np.append(f, 0.0)
        solution.primal((unit / mass) * W.T, f, (X @ W - mean @ W) / mass)
        less = proved
        proved = solution.dual(alpha / mass)
        yield
        if solution.ended:
            return
        if epochs >= mark:
            if solution.gap > LEFT_OF_CLASSES * gap_at_mark:
                return
            mark = 2 * epochs
            gap_at_mark = solution.gap

        slow = solution.gap > SLOW * gap
        pace = 1 if proved < less else pace + slow
        gap = solution.gap
