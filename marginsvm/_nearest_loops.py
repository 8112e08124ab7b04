"""The inner loops of :mod:`marginsvm.nearest_point`, compiled when first used."""

from __future__ import annotations

import numpy as np
from numba import njit

from marginsvm._typing import Array


@njit(cache=True)
def _append(Q: Array, R: Array, s: int, e: Array) -> bool:
    """Add the row e to the factorization; False where it depends on those already there."""
    v = e.copy()
    R[:s, s] = 0.0
    for _ in range(2):
        r = Q[:s] @ v
        v -= r @ Q[:s]
        R[:s, s] += r
    rho = np.sqrt(v @ v)
    if rho <= 1e-13 * np.sqrt(e @ e):
        return False
    R[s, s] = rho
    Q[s] = v / rho
    return True


@njit(cache=True)
def _remove(Q: Array, R: Array, s: int, p: int) -> None:
    """Drop the p-th row: shift the columns of R and restore its triangle by rotations."""
    for j in range(p, s - 1):
        R[: j + 2, j] = R[: j + 2, j + 1]
        h = np.hypot(R[j, j], R[j + 1, j])
        c, t = R[j, j] / h, R[j + 1, j] / h
        R[j, j], R[j + 1, j] = h, 0.0
        for m in range(j + 2, s):
            a, b = R[j, m], R[j + 1, m]
            R[j, m], R[j + 1, m] = c * a + t * b, c * b - t * a
        for m in range(Q.shape[1]):
            a, b = Q[j, m], Q[j + 1, m]
            Q[j, m], Q[j + 1, m] = c * a + t * b, c * b - t * a


@njit(cache=True)
def _affine(Q: Array, R: Array, s: int, nc: int) -> tuple[Array, Array]:
    """Weights of the nearest point of the balanced affine hull, and the multipliers."""
    Qc = np.ascontiguousarray(Q[:s, Q.shape[1] - nc :])
    rhs = np.zeros(nc)
    rhs[nc - 1] = 1.0
    mu = np.linalg.lstsq(Qc.T @ Qc, rhs, 1e-13)[0]
    q = Qc @ mu
    for i in range(s - 1, -1, -1):
        q[i] = (q[i] - R[i, i + 1 : s] @ q[i + 1 :]) / R[i, i]
    return q, mu


@njit(cache=True)
def _descend(
    Q: Array, R: Array, corral: Array, q: Array, inside: Array, s: int, nc: int
) -> tuple[int, int, Array]:
    """Walk to the nearest point of the corral's affine hull, dropping the rows that block."""
    steps = 0
    while True:
        steps += 1
        x, mu = _affine(Q, R, s, nc)
        if x.min() > -1e-14:
            q[:s] = np.maximum(x, 0.0)
            return s, steps, mu
        t, p = 1.0, -1
        for i in range(s):
            if x[i] <= -1e-14:
                ratio = q[i] / max(q[i] - x[i], 1e-300)
                if ratio < t or p < 0:
                    t, p = ratio, i
        q[:s] += t * (x - q[:s])
        _remove(Q, R, s, p)
        inside[corral[p]] = False
        for i in range(p, s - 1):
            q[i], corral[i] = q[i + 1], corral[i + 1]
        s -= 1
        q[:s] = np.maximum(q[:s], 0.0)


@njit(cache=True)
def _separator(E: Array, Q: Array, corral: Array, q: Array, s: int, mu: Array) -> Array:
    """``(w, b, -margin)``, orthogonal to every row of the corral.

    The weights give it up to rounding of the rows' norm; projecting twice gives it up to
    rounding of its own, which is what a margin far below that norm needs.
    """
    nc = len(mu)
    d = E.shape[1] - nc
    v = np.zeros(E.shape[1])
    for i in range(s):
        v += q[i] * E[corral[i]]
    norm2 = v[:d] @ v[:d]
    v[d:-1] = -mu[: nc - 1]
    v[-1] = -norm2
    for _ in range(2):
        v -= (Q[:s] @ v) @ Q[:s]
    return v


@njit(cache=True)
def nearest_point(
    E: Array, nc: int, start: Array, max_steps: int, tol: float
) -> tuple[Array, Array, Array]:
    """Corral, its weights, and the separator; rows ``E = (z, B, 1)``, ``nc`` conditions."""
    n, D = E.shape
    cap = min(n, D) + 2
    Q, R = np.zeros((cap, D)), np.zeros((cap, cap))
    corral, q = np.empty(cap, np.int64), np.zeros(cap)
    inside, skip = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    s = 0
    for i in start:
        if s < cap - 1 and _append(Q, R, s, E[i]):
            corral[s], inside[i] = i, True
            s += 1
    q[:s] = 1.0 / s
    best, stalled, steps = np.inf, 0, 0
    v = np.zeros(D)
    while steps < max_steps:
        s, taken, mu = _descend(Q, R, corral, q, inside, s, nc)
        steps += taken
        v = _separator(E, Q, corral, q, s, mu)
        z = q[:s] @ E[corral[:s]][:, : D - nc]
        norm2 = z @ z
        scores = E @ v
        stalled += 1
        if norm2 < best * (1 - 1e-13):
            best, stalled = norm2, 0
            skip[:] = False
        if scores.min() >= tol * v[-1] or stalled > 50 or norm2 <= 1e-30:
            break
        added = False
        while not added and s < cap:
            i = np.argmin(np.where(skip | inside, np.inf, scores))
            if skip[i] or inside[i] or scores[i] >= tol * v[-1]:
                break
            added = _append(Q, R, s, E[i])
            skip[i] = True
            if added:
                corral[s], q[s], inside[i] = i, 0.0, True
                s += 1
        if not added:
            break
    return corral[:s].copy(), q[:s].copy(), v
