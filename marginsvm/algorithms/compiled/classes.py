"""Sequential minimal optimisation for many classes, compiled: all weights of an example at a time.

The weights of an example against each other class are solved for exactly, the scores kept. Those
that change little are passed over, and after a pass over all, others follow over those that were
off: most examples have no weight, or theirs are right. Balance among the classes has multipliers,
the intercepts, and a price on its square (an augmented Lagrangian), as a constant in the kernel
has: each step sees how it moves the intercepts, which oscillate otherwise. What the kernel itself
has of a constant would be such a price, and a high one makes all steps short: so examples are taken
about their mean, which changes nothing for weights that are balanced.

References
----------
K. Crammer, Y. Singer. On the algorithmic implementation of multiclass kernel-based vector machines.
JMLR, 2001 (the problem of one example).

S. Keerthi, S. Sundararajan, K. Chang, C. Hsieh, C. Lin. A sequential dual method for large scale
multi-class linear SVMs. KDD, 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._compiling import compiled, parts

_ROOT = np.sqrt(0.5)  # a row is an example in its own class, and minus it in another, times this
# Examples are passed over whose margins are off by less than this share of the most; those that are
# off by this share of that, or more, are looked at again until the most has come down by it.
_NEXT = 0.3
# An excess moves an intercept for good by this at most, half the width of margins: more than the
# examples have followed, and all of them change classes back and forth.
_MOST_MOVED = 0.5
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"nnan", "nsz", "reassoc", "contract", "arcp"},
}


@parts(**_OPTIONS)
def _best(c, own, half, q, cap, u, order):
    """Maximise ``c'u - half (sum u)^2 / 2 - q |u|^2 / 2`` over weights that sum to ``cap`` at most.

    Those of the classes with the largest c are ``(c_j - level) / q``.
    """
    n, total, level, mass = 0, 0.0, 0.0, 0.0
    for j in range(len(c)):
        u[j] = 0.0
        if j != own and c[j] > 0.0:
            p = n
            while p > 0 and c[order[p - 1]] < c[j]:
                order[p] = order[p - 1]
                p -= 1
            order[p] = j
            n += 1
    for r in range(n):
        total += c[order[r]]
        mass = total / (q + (r + 1) * half)
        level = half * mass if mass <= cap else (total - q * cap) / (r + 1)
        if r + 1 == n or c[order[r + 1]] <= level:
            break
    mass = 0.0
    for r in range(n):
        j = order[r]
        if c[j] > level:
            u[j] = (c[j] - level) / q
            mass += u[j]
    return mass


@parts(**_OPTIONS)
def _change(i, k_ii, own, cap, slack, mean, u, f, b, excess, c, new, order):
    """The best weights of an example; by how much its margins then change, and their sum."""
    half, mass, off = 0.5 * k_ii, u.sum(), 0.0
    q = max(half + slack, 1e-300)
    for j in range(len(u)):
        c[j] = f[j, i] + b[j] - mean * excess[j]
    score = c[own]
    for j in range(len(u)):
        c[j] = 1.0 - _ROOT * (score - c[j]) + half * (mass + u[j])
    found = _best(c, own, half, q, cap, new, order)
    for j in range(len(u)):
        if j != own:
            off = max(off, abs(half * (found - mass) + q * (new[j] - u[j])))
    return off, found


@parts(**_OPTIONS)
def _take(row, own, mass, new, u, f, moves_b, b, excess):
    """Give an example other weights, and move the scores."""
    before = u.sum()
    for j in range(len(u)):
        t = _ROOT * (mass - before) if j == own else -_ROOT * (new[j] - u[j])
        if t != 0.0:
            u[j] = new[j]
            excess[j] += t
            b[j] += moves_b * t
            scores = f[j]
            for r in range(len(row)):
                scores[r] += t * row[r]


@compiled(**_OPTIONS)
def ascend_classes(K, mean, codes, caps, slack, price, precision, most, u, f, b, excess):
    """Maximise ``sum u - |sum_ij u_ij a_ij|^2 / 2 - sum_ij s_i u_ij^2 / 2``, balanced.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Inner products of the examples, of which ``a_ij = x_i (e_own - e_j) / sqrt(2)``.
    mean : ndarray of shape (m,)
        Mean of each column of K, to take examples about their mean; zeros without intercepts.
    codes, caps, slack : ndarray of shape (m,)
        Classes, largest sums of weights, and s.
    price : float
        Price of half the squared excess of a class; 0: there are no intercepts.
    precision : float
        By how much margins, which are about 1, may miss their order.
    most : int
        Changes of the weights of an example at most, before the last pass.
    u : ndarray of shape (m, k)
        Weights; changed in place, as is all that follows.
    f : ndarray of shape (k, m)
        Scores, without intercepts.
    b, excess : ndarray of shape (k,)
        Intercepts, and by how much weights are out of balance.

    Returns
    -------
    steps, off : int, float
        Changes of the weights of an example, and by how much margins or intercepts are off.
    """
    m, k = u.shape
    c, new, order, some = np.empty(k), np.empty(k), np.empty(k, np.int64), np.arange(m)
    steps, n, skip, left, most_off, grand = 0, m, precision, np.inf, 0.0, mean.mean()
    b += price * excess
    while steps < most:
        worst, kept, steps = 0.0, 0, steps + 1  # a pass takes as long as some changes, at most
        for a in range(n):
            i = some[a]
            from_mean = price + grand - mean[i]
            k_ii, own, cap, s = K[i, i] - mean[i] + from_mean, codes[i], caps[i], slack[i]
            off, mass = _change(i, k_ii, own, cap, s, mean[i], u[i], f, b, excess, c, new, order)
            worst = max(worst, off)
            if off > skip:
                steps += 1
                _take(K[i], own, mass, new, u[i], f, from_mean, b, excess)
            if off > _NEXT * skip:
                some[a], some[kept] = some[kept], i
                kept += 1
        unbalanced = price * np.abs(excess).max()
        if n == m:
            left, most_off = max(worst, unbalanced), worst
            if left <= precision:
                break
            if worst <= unbalanced:  # what the excess has moved the intercepts by becomes theirs
                b += price * min(1.0, _MOST_MOVED / unbalanced) * excess
        n = m if worst <= max(_NEXT * most_off, unbalanced, precision) else kept
        skip = _NEXT * max(worst, precision)
    b -= price * excess
    return steps, left
