"""One pass over the examples for a softmax of two classes, compiled when first used.

A few rows at a time are read twice while they are in cache: for their scores, and for what their
weights make of them. Exponentials are counted from the largest exponent of each group so far, so
that sums are rescaled when a larger one comes. A few products are summed in the precision of the
examples, and such sums are added up in float64. Indices are not checked.

Groups are numbered by the class of their rows; without an intercept there is one group, number 0.
The loops are plain, and take arrays of few types, so that they are compiled within a second.

All loops take the same arguments after the examples and the predictor w:

first, stop : int
    The examples that they pass over.
codes : ndarray of int, shape (n,)
    Class of each example, 0 or 1.
factors : ndarray of shape (3, n)
    What each example is multiplied by, its sample weight, and what is added to its margin.
numbers : ndarray of shape (3,)
    What is added to products, what is subtracted from scores, and 1 / mu.
sums : ndarray of shape (3, n_groups)
    The largest exponent, the sum of the weights, and that of the coefficients. Added to.
image : ndarray of shape (n_groups, d)
    ``V^T X`` of the coefficients V. Added to.
margins : ndarray of shape (n,)
    Set for these examples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._compiling import compiled
from marginsvm._typing import Array

# Bytes of the rows that are read twice: half of a core's own cache. Rows at a time at most.
_TILE, _ROWS_AT_ONCE = 2**19, 64
# Bytes of each column at a time: half a page of memory, which is fetched ahead.
_PIECE = 2**11
_index = np.uint64  # unsigned: no test for an index that counts from the end
# Sums may be taken in any order, so that several terms are in flight; NaN and infinity stay.
loop = compiled(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@loop
def weigh(
    F: Array,
    first: int,
    last: int,
    codes: Array,
    factors: Array,
    numbers: Array,
    sums: Array,
    image: Array,
    margins: Array,
    C: Array,
) -> None:
    """Weights of some examples, whose products with w are in F.

    ``C[group]`` is set to their coefficients, 0 for the examples of another group.
    """
    end = len(image) - 1  # the group of class 1, and of all rows if there is one group
    low, high = sums[0, 0], sums[0, end]
    for r in range(first, last):
        score = (F[r - first] + numbers[0]) * factors[0, r] - numbers[1]
        margins[r] = (2.0 * codes[r] - 1.0) * score + factors[2, r]
        z = -margins[r] * numbers[2]
        high = max(high, z if end * codes[r] == end else -np.inf)
        low = max(low, z if codes[r] == 0 else -np.inf)
    for g in range(len(image)):
        largest = high if g == end else low
        if largest > sums[0, g]:
            shrunk = np.exp(sums[0, g] - largest)
            sums[0, g] = largest
            sums[1, g] *= shrunk
            sums[2, g] *= shrunk
            for j in range(image.shape[1]):
                image[g, j] *= shrunk
    for r in range(first, last):
        g = end * codes[r]
        e = np.exp(-margins[r] * numbers[2] - sums[0, g]) * factors[1, r]
        C[end - g, r - first] = 0.0
        C[g, r - first] = (2.0 * codes[r] - 1.0) * e * factors[0, r]
        sums[1, g] += e
        sums[2, g] += C[g, r - first]


@loop
def over_rows(
    X: Array,
    w: Array,
    first: int,
    stop: int,
    codes: Array,
    factors: Array,
    numbers: Array,
    sums: Array,
    image: Array,
    margins: Array,
) -> None:
    """A pass over an array in C order; four rows are added to an image at once."""
    d, most = X.shape[1], min(_ROWS_AT_ONCE, max(4, _TILE // (w.itemsize * X.shape[1])))
    F, C = np.empty(most, X.dtype), np.empty((len(image), most))
    few, c = np.empty(most + 3, np.int64), np.empty(most + 3, X.dtype)
    while first < stop:
        last = min(first + most, stop)
        for r in range(first, last):
            total = X.dtype.type(0)
            for j in range(d):
                total += X[r, j] * w[j]
            F[r - first] = total
        weigh(F, first, last, codes, factors, numbers, sums, image, margins, C)
        for g in range(len(image)):
            m = 0
            for i in range(last - first):
                if C[g, i] != 0.0:
                    few[m], c[m] = first + i, C[g, i]
                    m += 1
            few[m : m + 3], c[m : m + 3] = first, 0.0
            for i in range(0, m, 4):
                p, q, r, s = few[i], few[i + 1], few[i + 2], few[i + 3]
                for j in range(d):
                    two = c[i] * X[p, j] + c[i + 1] * X[q, j]
                    image[g, j] += two + (c[i + 2] * X[r, j] + c[i + 3] * X[s, j])
        first = last


@loop
def over_columns(
    X: Array,
    w: Array,
    first: int,
    stop: int,
    codes: Array,
    factors: Array,
    numbers: Array,
    sums: Array,
    image: Array,
    margins: Array,
) -> None:
    """A pass over the transpose of an array in Fortran's order: pieces of its columns."""
    d, most, end = len(X), _PIECE // w.itemsize, len(image) - 1
    F, C = np.empty(most, X.dtype), np.empty((len(image), most))
    V = np.empty(C.shape, X.dtype)
    while first < stop:
        last = min(first + most, stop)
        m = last - first
        F[:] = 0.0
        for j in range(0, d - 3, 4):
            a, b, c, e = X[j], X[j + 1], X[j + 2], X[j + 3]
            a, b, c, e = a[first:last], b[first:last], c[first:last], e[first:last]
            s, t, u, v = w[j], w[j + 1], w[j + 2], w[j + 3]
            for i in range(m):
                F[i] += (s * a[i] + t * b[i]) + (u * c[i] + v * e[i])
        for j in range(d - d % 4, d):
            for i in range(m):
                F[i] += w[j] * X[j, first + i]
        weigh(F, first, last, codes, factors, numbers, sums, image, margins, C)
        V[:, :m] = C[:, :m]
        one, other, none = V[0], V[end], X.dtype.type(0)
        for j in range(d):
            x, s, t = X[j, first:last], none, none
            for i in range(m):
                s += one[i] * x[i]
                t += other[i] * x[i]
            image[end, j] += t
            if end:
                image[0, j] += s
        first = last


@loop
def over_entries(
    indptr: Array,
    indices: Array,
    values: Array,
    w: Array,
    first: int,
    stop: int,
    codes: Array,
    factors: Array,
    numbers: Array,
    sums: Array,
    image: Array,
    margins: Array,
) -> None:
    """A pass over a CSR matrix."""
    F, C = np.empty(_ROWS_AT_ONCE, values.dtype), np.empty((len(image), _ROWS_AT_ONCE))
    while first < stop:
        last = min(first + _ROWS_AT_ONCE, stop)
        for r in range(first, last):
            total = 0.0
            for t in range(_index(indptr[r]), _index(indptr[r + 1])):
                total += w[_index(indices[t])] * values[t]
            F[r - first] = total
        weigh(F, first, last, codes, factors, numbers, sums, image, margins, C)
        for r in range(first, last):
            for g in range(len(image)):
                c, out = C[g, r - first], image[g]
                if c != 0.0:
                    for t in range(_index(indptr[r]), _index(indptr[r + 1])):
                        out[_index(indices[t])] += c * values[t]
        first = last


def pass_over(X: Any, w: Array, first: int, stop: int, *task: Array) -> None:
    """A pass over a CSR matrix, or an array in C or Fortran's order."""
    if sp.issparse(X):
        over_entries(X.indptr, X.indices, X.data, w, first, stop, *task)
    elif X.flags.c_contiguous:
        over_rows(np.asarray(X), w, first, stop, *task)
    else:
        over_columns(np.asarray(X).T, w, first, stop, *task)
