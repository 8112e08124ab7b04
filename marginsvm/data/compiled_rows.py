"""Products over some rows of a CSR matrix, compiled when first used.

A product ``X' diag(...) X v`` over active rows is two passes over X, or one in which each row
is spread while it is in cache. Everything is in the units of the matrix and about its origin:
a caller that works about the mean corrects by terms of rank one. Sums are in float64, whatever
the values are in. Indices are not checked.

With several classes, vectors are arrays of shape (d, k), so that what an entry of X meets
lies side by side. The pairs of an example and another class, of which few are active,
are in CSR form: those of ``examples[a]`` are at ``pointer[a] : pointer[a + 1]``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from marginsvm._compiling import compiled
from marginsvm._typing import Array

_index = np.uint64  # unsigned: no test for an index that counts from the end
# Sums may be taken in any order, so that several terms are in flight; NaN and infinity stay.
_REORDER = {"reassoc", "contract", "nsz"}
# Loops over one row are there once, inlined: a copy of their own could round differently, and
# which of them ran would depend on what is in the cache on disk.
inlined = njit(forceinline=True, error_model="numpy", fastmath=_REORDER)
loop = compiled(error_model="numpy", fastmath=_REORDER)


@inlined
def dot(indices: Array, values: Array, start: int, stop: int, v: Array) -> float:
    """Inner product of a row, whose entries are at ``start : stop``, with a vector."""
    total = 0.0
    for t in range(_index(start), _index(stop)):
        total += v[_index(indices[t])] * values[t]
    return total


@inlined
def spread(indices: Array, values: Array, start: int, stop: int, step: float, out: Array) -> None:
    """Add a multiple of a row to a vector."""
    for t in range(_index(start), _index(stop)):
        out[_index(indices[t])] += step * values[t]


@inlined
def dot_of_class(indices: Array, values: Array, start: int, stop: int, V: Array, c: int) -> float:
    """Inner product of a row with one column of an array."""
    total, column = 0.0, _index(c)
    for t in range(_index(start), _index(stop)):
        total += V[_index(indices[t]), column] * values[t]
    return total


@inlined
def spread_to_class(
    indices: Array, values: Array, start: int, stop: int, step: float, out: Array, c: int
) -> None:
    """Add a multiple of a row to one column of an array."""
    column = _index(c)
    for t in range(_index(start), _index(stop)):
        out[_index(indices[t]), column] += step * values[t]


@loop
def curvature_of_rows(
    indptr: Array,
    indices: Array,
    values: Array,
    examples: Array,
    weight: Array,
    v: Array,
    offset: float,
    out: Array,
) -> float:
    """Add ``sum g_i x_i``, where ``g_i = weight_i (x_i.v + offset)``, to out; give ``sum g_i``.

    Parameters
    ----------
    indptr, indices, values : ndarray
        The CSR matrix.
    examples : ndarray of int, shape (m,)
        Its rows that take part.
    weight : ndarray of shape (m,)
    v : ndarray of shape (d,)
    offset : float
    out : ndarray of float64, shape (d,)
    """
    total = 0.0
    for a in range(len(examples)):
        start, stop = indptr[examples[a]], indptr[examples[a] + 1]
        g = weight[a] * (dot(indices, values, start, stop, v) + offset)
        total += g
        spread(indices, values, start, stop, g, out)
    return total


@loop
def curvature_of_pairs(
    indptr: Array,
    indices: Array,
    values: Array,
    examples: Array,
    pointer: Array,
    classes: Array,
    weight: Array,
    codes: Array,
    V: Array,
    offset: Array,
    out: Array,
) -> Array:
    """The same for many classes: add ``sum outer(x_i, g_i)`` to out; give ``sum g_i``.

    With the scores ``f = x_i V + offset`` and the weights t of the pairs of example i, whose
    own class is y: ``g_i[j] = -t_ij (f[y] - f[j])``, and ``g_i[y]`` is minus the sum of these.
    Only the scores that this takes are computed.

    Parameters
    ----------
    indptr, indices, values : ndarray
        The CSR matrix.
    examples : ndarray of int, shape (m,)
        Its rows that take part.
    pointer : ndarray of int, shape (m + 1,)
    classes : ndarray of int, shape (n_pairs,)
        Other than the example's own.
    weight : ndarray of shape (n_pairs,)
    codes : ndarray of int, shape (m,)
        Own classes of these examples.
    V : ndarray of shape (d, k), in C order
    offset : ndarray of shape (k,)
    out : ndarray of float64, shape (d, k), in C order
    """
    total = np.zeros(V.shape[1])
    for a in range(len(examples)):
        start, stop = indptr[examples[a]], indptr[examples[a] + 1]
        own, sum_of_steps = codes[a], 0.0
        score = dot_of_class(indices, values, start, stop, V, own) + offset[own]
        for p in range(pointer[a], pointer[a + 1]):
            c = classes[p]
            other = dot_of_class(indices, values, start, stop, V, c) + offset[c]
            g = weight[p] * (score - other)
            spread_to_class(indices, values, start, stop, -g, out, c)
            total[c] -= g
            sum_of_steps += g
        spread_to_class(indices, values, start, stop, sum_of_steps, out, own)
        total[own] += sum_of_steps
    return total


@loop
def sum_of_pairs(
    indptr: Array,
    indices: Array,
    values: Array,
    examples: Array,
    pointer: Array,
    classes: Array,
    coefficient: Array,
    out: Array,
) -> None:
    """Add ``coefficient x_i`` to ``out[:, c]`` for each pair of an example i and a class c.

    The own class of an example counts as any other here. Parameters are those of
    ``curvature_of_pairs``.
    """
    for a in range(len(examples)):
        start, stop = indptr[examples[a]], indptr[examples[a] + 1]
        for p in range(pointer[a], pointer[a + 1]):
            spread_to_class(indices, values, start, stop, coefficient[p], out, classes[p])


@loop
def squares_of_rows(
    indptr: Array, indices: Array, values: Array, examples: Array, weight: Array, out: Array
) -> None:
    """Add the diagonal of what ``curvature_of_rows`` computes, ``sum weight_i x_i^2``, to out."""
    for a in range(len(examples)):
        for t in range(_index(indptr[examples[a]]), _index(indptr[examples[a] + 1])):
            out[_index(indices[t])] += weight[a] * values[t] * values[t]


@loop
def squares_of_pairs(
    indptr: Array,
    indices: Array,
    values: Array,
    examples: Array,
    pointer: Array,
    classes: Array,
    weight: Array,
    codes: Array,
    out: Array,
) -> None:
    """Add the diagonal of what ``curvature_of_pairs`` computes to out, of shape (d, k).

    ``x_i^2`` has the weight ``t_ij`` in the other class of a pair, and the sum of these in
    the example's own.
    """
    for a in range(len(examples)):
        total, own = 0.0, _index(codes[a])
        first, last = pointer[a], pointer[a + 1]
        for p in range(first, last):
            total += weight[p]
        for t in range(_index(indptr[examples[a]]), _index(indptr[examples[a] + 1])):
            column = _index(indices[t])
            square = np.float64(values[t]) * values[t]
            out[column, own] += total * square
            for p in range(first, last):
                out[column, _index(classes[p])] += weight[p] * square
