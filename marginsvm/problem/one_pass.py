"""The softmax response by one pass: each block of examples is read once, for scores and products.

Sums are rescaled to the largest exponent of all blocks; balancing only multiplies each group by a
factor.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from marginsvm._typing import Array, Values
from marginsvm.problem.design import Design
from marginsvm.problem.matrix import Dense, Matrix
from marginsvm.problem.responses import Softmax, Weights, finite
from marginsvm.problem.rows import Rows

# Entries in memory (32 MiB) for which a compiled pass is worth the import of numba; and the largest
# size of the group products that such a pass, or one over files, keeps for each block (1 MiB).
LARGE = 2**22
LARGEST_SUMS = 2**17
WORTH_COMPILING = 2**17  # entries of a block
Sums = tuple[list[Array], Array, Array, Array]  # the first: of each block


def to_read_once(design: Design, rows: Rows) -> Matrix | None:
    """The examples, if their blocks are read once for scores and products."""
    near = design.near
    side = rows.n_classes if rows.balanced else 1  # of a table of groups
    if side**2 * design.d > LARGEST_SUMS:
        return None
    if isinstance(near, Dense) and near.size >= LARGE and is_compiled(near, rows):
        return near.in_parts()
    return None if design.X.in_memory else near


def respond_in_one_pass(
    response: Softmax,
    near: Matrix,
    rows: Rows,
    slack: Array | None,
    coef: Array,
    shift: Values,
    mu: float,
) -> tuple[Weights, Array]:
    """Weights for a predictor in the user's units, and their ``V' X``."""
    found = near.each(
        lambda X, some, slack: of_block(response, X, some, slack, coef, shift, mu),
        rows,
        slack,
        join=lambda found: [joined(found)],
    )
    parts, largest, mass, products = joined(found)
    E = parts[0] if len(parts) == 1 else np.concatenate(parts)
    moved, weights_of = response.finished(rows, largest, mass, mu)
    E -= rows.expand(moved)
    q = rows.weighted(np.exp(E, out=E))
    return weights_of(q), rows.sum_of_groups(products, np.exp(largest - moved))


def of_block(
    response: Softmax,
    X: Matrix,
    rows: Rows,
    slack: Array | None,
    coef: Array,
    shift: Values,
    mu: float,
) -> Sums:
    """Exponents of a block's rows; and for each group the largest of them, the sum of the
    exponentials relative to it, and their product with X.
    """
    if is_compiled(X, rows):
        from marginsvm.problem.online_softmax import of_two_classes

        E, largest, mass, products = of_two_classes(
            X.array, rows, slack, coef, shift, mu
        )
        return [E], largest, mass, products
    M = rows.margins(np.subtract(X.times(coef), shift, dtype=np.float64))
    M = M if slack is None else M + slack
    E = M / -mu
    largest = rows.group_min(M) / -mu
    mass, e = response.exponentials(rows, E, largest)
    return [E], largest, mass, rows.group_products(e, X)


def joined(found: list[Sums]) -> Sums:
    """The results of several blocks as that of one."""
    if len(found) == 1:
        return found[0]
    parts, *sums = zip(*found, strict=True)
    largest, mass, products = map(np.stack, sums)
    top = largest.max(axis=0)
    scale = np.exp(largest - finite(top))
    products = np.einsum("bcj,bcj...->cj...", scale, products)
    return [*chain(*parts)], top, (scale * mass).sum(axis=0), products


def is_compiled(X: Matrix, rows: Rows) -> bool:
    """Whether there is a compiled pass for such examples; few are not worth an import of numba."""
    if X.size < WORTH_COMPILING or len(rows.shape) > 1 or not isinstance(X, Dense):
        return False
    from marginsvm._compiling import njit

    return njit is not None and not X.foreign and bool(X.array.flags.c_contiguous)
