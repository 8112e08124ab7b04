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
of_rows : ndarray of shape (2, n)
    Sample weights, and what is added to the margins.
numbers : ndarray of shape (2,)
    What is subtracted from scores, and 1 / mu.
sums : ndarray of shape (2, n_groups)
    The largest exponent, and the sum of the weights. Added to.
image : ndarray of shape (n_groups, d)
    ``V^T X`` of the coefficients V. Added to.
margins : ndarray of shape (n,)
    Set for these examples.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from marginsvm._compiling import compiled
from marginsvm._typing import Array
from marginsvm.problem.matrix import MAX_PARTS, Matrix
from marginsvm.problem.responses import SoftmaxSums
from marginsvm.problem.rows import Rows
from marginsvm.problem.threads import ordered_map

# Entries for each feature in a part, at least, as each part has sums over all features.
PER_FEATURE = 32
# Bytes of the rows that are read twice: half of a core's own cache. Rows at a time at most.
TILE, ROWS_AT_ONCE = 2**19, 64
PIECE = 2**11  # bytes of each column at a time: half a page of memory, which is fetched ahead
_index = np.uint64  # unsigned: no test for an index that counts from the end
# Sums may be taken in any order, so that several terms are in flight; NaN and infinity stay.
loop = compiled(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


def fused_pass(
    X: Matrix, rows: Rows, slack: Array | None, w: Array, shift: float, mu: float
) -> list[tuple[Array, SoftmaxSums]]:
    """Margins of the rows, and their sums, for ``Softmax.of_blocks``.

    Parameters are those of ``Softmax.sums_of_block``; some threads share the examples.
    """
    n, d = X.shape
    of_rows = np.zeros((2, n))
    of_rows[0] = 1.0 if rows.weights is None else rows.weights
    of_rows[1] = 0.0 if slack is None else slack
    # their number depends on the shape alone, so that sums do not depend on that of threads
    n_parts = min(MAX_PARTS, max(1, X.size // (PER_FEATURE * d)), n)
    ends = [n * i // n_parts for i in range(n_parts + 1)]
    n_groups, margins, numbers = 1 + rows.balanced, np.empty(n), np.array([shift, 1.0 / mu])

    def work(part: tuple[int, int]) -> tuple[Array, SoftmaxSums]:
        sums, image = np.zeros((2, n_groups)), np.zeros((n_groups, d))
        sums[0] = -np.inf
        pass_over(X, w, *part, rows.codes, of_rows, numbers, sums, image, margins)
        tables = sums[:, None, :] if n_groups == 1 else np.full((2, 2, 2), [[[-np.inf]], [[0.0]]])
        if n_groups == 2:  # products are of weights without their signs
            tables[:, [0, 1], [1, 0]], image[0] = sums, -image[0]
        products = image if n_groups == 2 else image[0]
        return margins[slice(*part)], SoftmaxSums(tables[0], tables[1], products)

    return ordered_map(work, list(pairwise(ends)))


def pass_over(X: Matrix, w: Array, first: int, stop: int, *task: Array) -> None:
    """A pass over a CSR matrix, or an array in C or Fortran's order."""
    A: Any = X.array
    if X.sparse:
        over_entries(A.indptr, A.indices, A.data, w, first, stop, *task)
    elif A.flags.c_contiguous:
        over_rows(np.asarray(A), w, first, stop, *task)
    else:
        over_columns(np.asarray(A).T, w, first, stop, *task)


@loop
def weigh(
    F: Array,
    first: int,
    last: int,
    codes: Array,
    of_rows: Array,
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
        margins[r] = (2.0 * codes[r] - 1.0) * (F[r - first] - numbers[0]) + of_rows[1, r]
        z = -margins[r] * numbers[1]
        high = max(high, z if end * codes[r] == end else -np.inf)
        low = max(low, z if codes[r] == 0 else -np.inf)
    for g in range(len(image)):
        largest = high if g == end else low
        if largest > sums[0, g]:
            shrunk = np.exp(sums[0, g] - largest)
            sums[0, g] = largest
            sums[1, g] *= shrunk
            for j in range(image.shape[1]):
                image[g, j] *= shrunk
    for r in range(first, last):
        g = end * codes[r]
        e = np.exp(-margins[r] * numbers[1] - sums[0, g]) * of_rows[0, r]
        C[end - g, r - first] = 0.0
        C[g, r - first] = (2.0 * codes[r] - 1.0) * e
        sums[1, g] += e


@loop
def over_rows(
    X: Array,
    w: Array,
    first: int,
    stop: int,
    codes: Array,
    of_rows: Array,
    numbers: Array,
    sums: Array,
    image: Array,
    margins: Array,
) -> None:
    """A pass over an array in C order; four rows are added to an image at once."""
    d, most = X.shape[1], min(ROWS_AT_ONCE, max(4, TILE // (w.itemsize * X.shape[1])))
    F, C = np.empty(most, X.dtype), np.empty((len(image), most))
    few, c = np.empty(most + 3, np.int64), np.empty(most + 3, X.dtype)
    while first < stop:
        last = min(first + most, stop)
        for r in range(first, last):
            total = X.dtype.type(0)
            for j in range(d):
                total += X[r, j] * w[j]
            F[r - first] = total
        weigh(F, first, last, codes, of_rows, numbers, sums, image, margins, C)
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
    of_rows: Array,
    numbers: Array,
    sums: Array,
    image: Array,
    margins: Array,
) -> None:
    """A pass over the transpose of an array in Fortran's order: pieces of its columns."""
    d, most, end = len(X), PIECE // w.itemsize, len(image) - 1
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
        weigh(F, first, last, codes, of_rows, numbers, sums, image, margins, C)
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
    of_rows: Array,
    numbers: Array,
    sums: Array,
    image: Array,
    margins: Array,
) -> None:
    """A pass over a CSR matrix."""
    F, C = np.empty(ROWS_AT_ONCE, values.dtype), np.empty((len(image), ROWS_AT_ONCE))
    while first < stop:
        last = min(first + ROWS_AT_ONCE, stop)
        for r in range(first, last):
            total = 0.0
            for t in range(_index(indptr[r]), _index(indptr[r + 1])):
                total += w[_index(indices[t])] * values[t]
            F[r - first] = total
        weigh(F, first, last, codes, of_rows, numbers, sums, image, margins, C)
        for r in range(first, last):
            for g in range(len(image)):
                c, out = C[g, r - first], image[g]
                if c != 0.0:
                    for t in range(_index(indptr[r]), _index(indptr[r + 1])):
                        out[_index(indices[t])] += c * values[t]
        first = last
