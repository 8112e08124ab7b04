"""How long examples and features are: the passes that measure a problem before its first round.

They are functions of blocks, as those in :mod:`marginsvm.data.passes` are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from marginsvm._rounding import summed
from marginsvm._typing import Array
from marginsvm.data.block import Centre, joined
from marginsvm.data.passes import Located
from marginsvm.rows import LpNorm, Rows


def squared_lengths(rows: Rows, blocks: Iterable[Located], norm: LpNorm, centre: Centre) -> Array:
    """Squared lengths of the examples, about the mean, in the dual of a norm."""
    lengths: list[Array] = []
    with np.errstate(all="ignore"):  # X may hold anything: this is the first look at it
        for _, X in blocks:
            mean = centre.before_products(X)
            late = centre.mean if mean is None else None  # of CSR matrices, and of near means
            for _, part in X.about(mean):
                lengths.append(
                    part.squared_lengths(norm)
                    if late is None
                    else part.squared_distances(norm, late)
                )
    return joined(lengths)


def largest_entry(rows: Rows, blocks: Iterable[Located]) -> float:
    """Upper bound on the absolute values of the features."""
    return max(X.largest() for _, X in blocks)


def stored(rows: Rows, blocks: Iterable[Located]) -> Array:
    """Number of the examples that store each feature."""
    return summed(X.stored() for _, X in blocks)


def spread(rows: Rows, blocks: Iterable[Located], centre: Centre) -> Array:
    """Upper bound on the largest distance of each feature from the mean."""
    mean = 0.0 if centre.mean is None else centre.mean
    return reduce(np.maximum, (X.spread(mean) for _, X in blocks))


def largest_norm(rows: Rows, blocks: Iterable[Located]) -> float:
    """Largest norm of an example before examples are divided by their norms."""
    return max(float(X.norms().max()) for _, X in blocks)
