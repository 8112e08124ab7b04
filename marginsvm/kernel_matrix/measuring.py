"""Centre and radius of examples with features: the first passes over them."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils import assert_all_finite

from marginsvm._typing import Array
from marginsvm.data import passes
from marginsvm.data.memory import Store
from marginsvm.data.passes import Centre
from marginsvm.data.threads import single_threaded_blas
from marginsvm.kernel_matrix.scale import Scale
from marginsvm.rows import LpNorm, Rows

# A mean this many radii away from the origin would cost digits if it were subtracted from the
# sums over examples; it then is subtracted from the examples themselves.
_FAR = 8.0


@single_threaded_blas()
def measured(
    store: Store, rows: Rows, C: float, norm: LpNorm, constant: float, n_central: int
) -> tuple[Scale, Centre]:
    """Scale of the problem, and the centre that is subtracted from its examples.

    A shift of all x does not change balanced weights and margins. So, with balanced rows, the
    centre is the mean of about ``n_central`` examples; otherwise it is zero.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        centre = Centre()
        if rows.balanced:
            centre = Centre(_mean(store, rows, n_central), far=norm.p != 2.0)
        squared, (mean, far) = _squared_lengths(store, rows, norm, centre), centre
        if not np.isfinite(squared.max()):
            assert_all_finite(store.whole, input_name="X")
            raise ValueError("the squared norms of the examples overflow float64: scale X")
        if mean is not None and not far and squared.max() * _FAR**2 < mean @ mean:
            centre = Centre(mean, far=True)
            squared = _squared_lengths(store, rows, norm, centre)
        unit = 0.0 if mean is None else float(np.sqrt(mean @ mean))
        lengths = norm.longer(np.maximum(squared, 0.0), constant)
        return Scale.of(lengths, rows, C, partial(_tallest, store, rows), unit), centre


def _tallest(store: Store, rows: Rows) -> float:
    return 1.0 if store.normalized else max(store.map(passes.tallest, rows))


def _mean(store: Store, rows: Rows, size: int) -> Array:
    """Mean of all examples, or of some that are evenly spread."""
    n = rows.n_examples
    v = np.ones(n) if rows.weights is None else rows.weights
    with np.errstate(all="ignore"):  # what is not finite is named later
        if 4 * size >= n:
            work = partial(passes.weighted_sum, dtype=np.dtype(np.float64), centre=Centre())
            return store.fold(work, np.add, rows, v / v.sum()).astype(np.float64, copy=False)
        some = np.arange(size) * n // size
        v = v[some]
        return np.asarray((v / v.sum()) @ store.take(some), dtype=np.float64)


def _squared_lengths(store: Store, rows: Rows, norm: LpNorm, centre: Centre) -> Array:
    work = partial(passes.squared_lengths, norm=norm, centre=centre)
    return np.concatenate(list(store.map(work, rows)))
