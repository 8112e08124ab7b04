"""The loops that move one coordinate of the dual at a time, compiled.

    ascend        one vector: Algorithm 1 of Raj and Bach, eq. (10), the lp perceptron
    accelerate    two vectors: Algorithm 2; where the dual is strongly convex, its generalisation,
                  Algorithm 1 of Lin, Lu and Xiao

Scores ``theta.a_r`` are to lie in intervals; margins of labels in ``[1, inf)``. The loops take a
sequence of coordinates (flat indices of rows, unchecked). Importing this module imports numba; the
machine code is compiled on the first call and cached on disk, once per type of the data.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from marginsvm._compiling import compiled, njit, parts
from marginsvm._typing import Array
from marginsvm.papers.layout import DENSE, SPARSE, layout_of
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.vectors import Vector

DUAL, DESCENT, PERCEPTRON = 0, 1, 2
_LEAST_EXCESS = 1e-3  # least coefficient c of s, else s is rescaled
_ZERO_CURVATURE = 1e-12  # of a zero row: its alpha grows, and proves inseparability

# _nrt=False: no reference counts. They cost 100 ns a row, as much as a row of text does;
# nothing here allocates, and numba refuses to compile what would (pinned by a test).
# error_model: the test for a division by zero would keep loops from using SIMD.
OPTIONS: dict[str, object] = {"error_model": "numpy", "_nrt": False}
REORDER = {
    "reassoc",
    "contract",
    "nsz",
}  # sums may be reordered; NaN and infinity stay
_inline = parts(forceinline=True, fastmath=REORDER, **OPTIONS)
# (x + magic) - magic is not x
_exact = parts(forceinline=True, fastmath={"contract"}, **OPTIONS)
_loop = compiled(fastmath=REORDER, **OPTIONS)
# 2^64 over the golden ratio: the step of the counter of pseudorandom numbers, which have 53 bits.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BITS = np.uint64(11)
_index = np.uint64  # unsigned: no test for an index that counts from the end


# One row.


@_inline
def _dot(rows, i, u, start, size, b):
    """``(x_i, constant) . (u + b u')`` within a block; u' lies ``size`` after u.

    The row is read once for both; one loop for all values of b compiles faster. With kernels u
    holds scores: a look-up.
    """
    d = _index(rows.n_columns)
    at = _index(start)
    t = 0.0
    after = _index(start + (size if b != 0.0 else 0))
    row = _index(i) * d
    if rows.form == DENSE:
        for j in range(d):
            t += rows.values[row + j] * (u[at + j] + b * u[after + j])
    elif rows.form == SPARSE:
        for m in range(_index(rows.indptr[i]), _index(rows.indptr[i + 1])):
            x = rows.values[m]
            j = _index(rows.indices[m])
            t += x * (u[at + j] + b * u[after + j])
    else:
        j = _index(i) * _index(rows.stride)
        return u[at + j] + b * u[after + j]
    if rows.constant != 0.0:
        t += rows.constant * (u[at + d] + b * u[after + d])
    return t


@_inline
def _axpy(rows, i, c, u, start):
    """``u += c (x_i, constant)`` within a block; kernels: c times a column is added to scores."""
    d = _index(rows.n_columns)
    at = _index(start)
    row = _index(i) * d
    if rows.form == DENSE:
        for j in range(d):
            u[at + j] += c * rows.values[row + j]
    elif rows.form == SPARSE:
        for m in range(_index(rows.indptr[i]), _index(rows.indptr[i + 1])):
            u[at + _index(rows.indices[m])] += c * rows.values[m]
    else:
        for j in range(d):
            u[at + j * _index(rows.stride)] += c * (
                rows.values[row + j] + rows.constant
            )
        return
    if rows.constant != 0.0:
        u[at + d] += c * rows.constant


@_inline
def _locate(rows, r):
    """Example, its two blocks (binary: no second one, -1) and the sign of row r."""
    k = rows.n_classes
    if rows.codes.shape[0] == 0:  # outputs
        return r // k, (r - r // k * k) * rows.block, -1, 1.0
    if k == 2:
        return r, 0, -1, 2.0 * rows.codes[r] - 1.0
    i = r // k
    return i, rows.codes[i] * rows.block, (r - i * k) * rows.block, 1.0


@_inline
def _margin(rows, r, u, size, b):
    """Margin of row r for u or, unless b is 0, for ``u + b u'``, u' being ``size`` after u."""
    i, own, other, sign = _locate(rows, r)
    total = 0.0
    for side in range(1 if other < 0 else 2):
        t = _dot(rows, i, u, other if side else own, size, b)
        total += -t if side else t
    return rows.read * sign * total


@_inline
def _push(rows, r, delta, shift, u, size):
    """``u += delta a_r`` and, unless shift is 0, ``u' += shift a_r`` for u' after it."""
    i, own, other, sign = _locate(rows, r)
    sides = 1 if other < 0 else 2
    factor = rows.push * sign
    for part in range(sides if shift == 0.0 else 2 * sides):
        side = part % sides
        after = part // sides
        c = factor * (shift if after else delta)
        _axpy(rows, i, -c if side else c, u, (other if side else own) + after * size)


# The mirror map.


@_exact
def exp2(y):
    """``2 ** y`` for y in [-1022, 1023], relative error 2e-16 + 1e-16 |y|.

    Straight-line code, so that loops over it use SIMD: libm's functions are called one number at a
    time and take 10 times as long. The magic number 1.5 * 2^52 moves integers between the bits of a
    float and its value.
    """
    magic = 6755399441055744.0
    k = y + magic  # 2^y = 2^k e^t, k the nearest integer, |t| <= ln(2) / 2
    t = (y - (k - magic)) * 0.6931471805599453
    f = 1 / 3628800 + t * (1 / 39916800 + t * (1 / 479001600 + t * (1 / 6227020800)))
    f = 1 / 5040 + t * (1 / 40320 + t * (1 / 362880 + t * f))
    f = 1 / 24 + t * (1 / 120 + t * (1 / 720 + t * f))
    f = 1.0 + t * (1.0 + t * (0.5 + t * (1 / 6 + t * f)))
    return np.int64(
        np.float64(f).view(np.int64) + (np.float64(k).view(np.int64) << 52)
    ).view(np.float64)


if njit is None:  # Python's own takes one call
    exp2 = partial(pow, 2.0)


@_exact
def _power(x, a):
    """``x ** a`` for 0 <= x <= 1 and a > 0, within 2e-13 relative; see ``exp2``.

    x = 2^e m with m in [sqrt(1/2), sqrt(2)).
    """
    shifted = np.float64(x).view(np.int64) - 0x3FE6A09E667F3BCD  # bits of sqrt(1/2)
    magic = 6755399441055744.0
    e = np.int64((shifted >> 52) + 0x4338000000000000).view(np.float64) - magic
    m = np.int64((shifted & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    log = 1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21))))
    log = 1 / 7 + z * (1 / 9 + z * (1 / 11 + z * log))
    log = 2.0 * s * (1.0 + z * (1 / 3 + z * (1 / 5 + z * log)))
    return exp2(max(a * (e + log * 1.4426950408889634), -1022.0))


@_inline
def _powers(u, top, q, phi):
    """``phi_j = sign(u_j) |u_j / top|^(q-1)``; small integers q take products."""
    if q == np.floor(q) and q <= 12.0:
        for j in range(u.shape[0]):
            phi[j] = u[j] / top
        for _ in range(int(q) - 2):
            for j in range(u.shape[0]):
                phi[j] *= abs(u[j]) / top
    else:
        for j in range(u.shape[0]):
            phi[j] = np.copysign(_power(abs(u[j]) / top, q - 1.0), u[j])


def _mirror(u, q, phi):
    """Fill ``phi`` and return the factor of theta(u) = factor * phi; q = 2: phi is u itself.

    One power for each coordinate, as ``|u_j|^q = |u_j| |phi_j|``. Entries are first divided by the
    largest one, so that nothing overflows.
    """
    top = 0.0
    total = 0.0
    if q == 2.0:
        return 1.0
    for j in range(u.shape[0]):
        top = max(top, abs(u[j]))
    if top == 0.0:
        for j in range(u.shape[0]):
            phi[j] = 0.0
        return 0.0
    _powers(u, top, q, phi)
    for j in range(u.shape[0]):
        total += u[j] / top * phi[j]
    return top * total ** ((2.0 - q) / q)


# A maximum uses SIMD only if it need not carry NaN; certificates, computed elsewhere, do.
_mirror = compiled(fastmath=REORDER | {"nnan"}, **OPTIONS)(_mirror)


# The loops.


@_inline
def _sum(u, size, b, out):
    """``out = u + b u'``, u' being after u."""
    for j in range(size):
        out[j] = u[j] + b * u[size + j]
    return out


@_inline
def _proximal(t, step, low, high):
    """The a that maximises ``low max(a, 0) + high min(a, 0) - (a - t)^2 / (2 step)``."""
    if t + step * low > 0.0:
        return t + step * low
    return min(t + step * high, 0.0)


@_loop
def _ascend(rows, order, rule, longest, alpha, u, phi, mean):
    """Theta is ``factor phi``; phi is u itself where q = 2."""
    factor = _mirror(u, rows.q, phi)
    for r in order:
        for j in range(mean.shape[0]):
            mean[j] += factor * phi[j]
        m = factor * _margin(rows, r, phi, len(phi), 0.0) + rows.ridge[r] * alpha[r]
        if rule == PERCEPTRON:
            delta = 1.0 if m <= 0.0 else 0.0
        elif rule == DESCENT:
            delta = (min(max(m, rows.low[r]), rows.high[r]) - m) / longest
        else:
            step = 1.0 / max(rows.curvature[r], _ZERO_CURVATURE)
            nearest = alpha[r] - step * m
            delta = _proximal(nearest, step, rows.low[r], rows.high[r]) - alpha[r]
        if delta != 0.0:
            alpha[r] += delta
            _push(rows, r, delta, 0.0, u, len(u))
            if rows.q != 2.0:
                factor = _mirror(u, rows.q, phi)


@_loop
def _accelerate(rows, order, n, nu, gamma, w, s, u, work):
    """Algorithm 2, in whose listing nu, the strong convexity over n^2, is 0.

        z = ((1 - gamma) v + (gamma - nu) alpha) / (1 - nu)
        alpha moves towards z by the share nu / gamma, and along r by a step at theta(z)
        v = z + n gamma times the step along r
        gamma solves gamma^2 = (1 - gamma) (the last gamma)^2 + nu gamma

    ``alpha = w + h s`` and ``v = alpha + c s``, so that w and s move in one coordinate a step.
    Their primal vectors lie one after the other in u. What is given and returned in the places of
    w and s is alpha and v.
    """
    z = work[0]
    phi = work[1]
    size = len(u) // 2
    h = 0.0
    c = 1.0
    for j in range(len(s)):
        s[j] -= w[j]
    for j in range(size):
        u[size + j] -= u[j]
    for r in order:
        e = h + (1.0 - gamma) / (1.0 - nu) * c  # z = w + e s
        share = nu / gamma
        c = (1.0 - share) * (e - h)
        h += share * (e - h)
        if rows.q == 2.0:
            m = _margin(rows, r, u, size, e)
        else:
            m = _mirror(_sum(u, size, e, z), rows.q, phi)
            m *= _margin(rows, r, phi, size, 0.0)
        m += rows.ridge[r] * (w[r] + e * s[r])
        alpha = w[r] + h * s[r]
        step = 1.0 / (n * gamma * max(rows.curvature[r], _ZERO_CURVATURE))
        delta = _proximal(alpha - step * m, step, rows.low[r], rows.high[r]) - alpha
        if delta != 0.0:
            shift = (n * gamma - 1.0) / c * delta
            rest = delta - h * shift
            w[r] += rest
            s[r] += shift
            _push(rows, r, rest, shift, u, size)
        d = gamma * gamma - nu
        gamma = 0.5 * (np.sqrt(d * d + 4.0 * gamma * gamma) - d)
        if c < _LEAST_EXCESS:  # s grows like 1 / c, and w + h s would cancel
            for j in range(len(s)):
                w[j] += h * s[j]
                s[j] *= c
            for j in range(size):
                u[j] += h * u[size + j]
                u[size + j] *= c
            h = 0.0
            c = 1.0
    for j in range(len(s)):
        w[j] += h * s[j]
        s[j] = w[j] + c * s[j]
    for j in range(size):
        u[j] += h * u[size + j]
        u[size + j] = u[j] + c * u[size + j]
    return gamma


@_loop
def _shuffle(rows, sweeps, seed, t):
    """Fill each row of ``sweeps`` with the rows in another order, by numbers of a counter.

    Steele, Lea and Flood's SplitMix64, with a sequence for each seed and t.
    """
    counter = _mixed(_mixed(np.uint64(seed)) + np.uint64(t))
    for order in sweeps:
        for i in range(len(order)):
            order[i] = rows[i]
        for i in range(len(order) - 1):
            counter += _GOLDEN
            share = np.float64(_mixed(counter) >> _BITS) * 2.0**-53
            j = i + int(share * (len(order) - i))
            order[i], order[j] = order[j], order[i]


@_inline
def _mixed(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


# The interface for algorithms, on vectors of the adapter.


def ascend(
    problem: KernelMatrixAdapter,
    order: Array,
    alpha: Vector,
    rule: int = DUAL,
    mean: Array | None = None,
) -> None:
    """Move a vector ``alpha`` in place along one row at a time; theta is its mirror image.

    DUAL        alpha_r maximises a lower bound on the dual, of curvature L_r (Lemma 1); for
                margins, alpha_r <- max(0, alpha_r + (1 - theta.a_r) / L_r)
    DESCENT     alpha_r <- alpha_r + (the nearest score in the interval - theta.a_r) / max L
    PERCEPTRON  alpha_r <- alpha_r + 1 where theta.a_r <= 0

    ``mean`` (of the size of u) gains theta before every step.
    """
    rows = layout_of(problem)
    u = alpha.image.reshape(-1)
    phi = u if rows.q == 2.0 else np.empty_like(u)
    longest = max(rows.curvature.max(), _ZERO_CURVATURE)
    mean = np.empty(0) if mean is None else mean
    _ascend(
        rows,
        order,
        rule,
        longest,
        alpha.coef.reshape(-1),
        u,
        phi,
        mean,
    )
    problem.work.passes += order.size / problem.n_rows


def accelerate(
    problem: KernelMatrixAdapter,
    order: Array,
    n: int,
    mu: float,
    alpha: Vector,
    v: Vector,
    gamma: float,
) -> tuple[Vector, Vector, float]:
    """Algorithm 2 along draws from n >= 2 coordinates; the first gamma is 1 / n.

    ``mu`` is the strong convexity of the dual relative to the curvatures of its coordinates.
    """
    rows = layout_of(problem)
    size = alpha.image.size
    m = alpha.coef.size
    u = np.concatenate([alpha.image.reshape(-1), v.image.reshape(-1)])
    coef = np.concatenate([alpha.coef.reshape(-1), v.coef.reshape(-1)])
    work = np.empty((2, 0 if rows.q == 2.0 else size))
    nu = mu / n**2
    gamma = _accelerate(rows, order, float(n), nu, gamma, coef[:m], coef[m:], u, work)
    problem.work.passes += order.size / problem.n_rows
    images = u.reshape(2, *alpha.image.shape)
    coefs = coef.reshape(2, *alpha.coef.shape)
    return Vector(images[0], coefs[0]), Vector(images[1], coefs[1]), float(gamma)


def shuffled(rows: Array, n: int, seed: int, t: int) -> Array:
    """N draws from some rows in sweeps over all of them; those of epoch t of a seed."""
    sweeps = np.empty((-(-n // rows.size), rows.size), rows.dtype)
    _shuffle(rows, sweeps, seed, t)
    return sweeps.reshape(-1)[:n]
