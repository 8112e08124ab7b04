"""The units of a problem: everything in it is divided by the norm of its longest row.

Of examples with features, the first passes measure the centre and the radius.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.tolerances import LARGEST_FLOAT32, LARGEST_NORM
from marginsvm.data import measures, passes
from marginsvm.data.block import Centre
from marginsvm.data.memory import Store
from marginsvm.data.threads import single_threaded_blas
from marginsvm.rows import LpNorm, Rows

# A mean this many radii away from the origin would cost digits if it were subtracted from the
# sums over examples; it then is subtracted from the examples themselves.
_FAR_MEAN = 8.0


class NotFinite(ValueError):  # noqa: N818 - of examples
    """Examples that hold NaN or infinity, or that are too long for float64."""


@dataclass(frozen=True)
class Scale:
    """The radius of a problem, and what was measured together with it.

    Attributes
    ----------
    C : float
        Soft margin (dimensionless): each row has its own extra coordinate ``1 / sqrt(2 C)``.
    radius : float
        Norm of the longest row in the user's units, its extra coordinate included.
    lengths : ndarray of shape (n_examples,)
        Squared norms of the examples, in units of the radius squared.
    slack : ndarray or None
        Squares of the rows' extra coordinates, in units of the radius squared; it broadcasts
        against the rows. None: a hard margin.
    """

    C: float
    radius: float
    lengths: Array
    slack: Array | None

    @classmethod
    def of(
        cls,
        squared_norms: Array,
        rows: Rows,
        C: float,
        largest_entry: Callable[[], float],
        unit: float = 0.0,
    ) -> Scale:
        """Measure by the longest row.

        A weight m stands for m equal rows, each with a slack coordinate of its own. Together they
        act like one row whose slack coordinate is smaller by ``sqrt(m)``, but the radius is the
        norm of a single one.

        Parameters
        ----------
        squared_norms : ndarray of shape (n_examples,)
            Of the examples, in the user's units.
        rows : Rows
        C : float
            Soft margin: each row has its own extra coordinate ``1 / sqrt(2 C)``.
        largest_entry : callable
            Gives the largest absolute value of a feature; called where squared norms may be zero
            by underflow.
        unit : float
            The radius where all rows are zero.
        """
        weights = _weights(rows)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            longest = float((squared_norms + 0.5 / (C * np.minimum(weights, 1.0))).max())
        short = longest < LARGEST_NORM**-2 and 0.0 < largest_entry() < 1.0 / LARGEST_NORM
        if short or not longest < LARGEST_NORM**2:
            raise ValueError(
                f"the squared norms of the examples (and 1 / 2C) come to {longest:.3g}, with which "
                f"float64 cannot compute: scale X to entries between {1 / LARGEST_NORM:g} and "
                f"{LARGEST_NORM:g}, and C with the inverse of their squares"
            )
        radius = float(np.sqrt(longest)) or unit or 1.0
        hard = cls(np.inf, radius, squared_norms / radius**2, None)
        return hard.softened(C, rows) if np.isfinite(C) else hard

    def with_C(self, C: float, rows: Rows) -> Scale:  # noqa: N802 - the parameter's name
        """The scale of the same examples with another C."""
        squared = self.lengths * self.radius**2
        return Scale.of(squared, rows, C, lambda: 1.0, self.radius)

    def softened(self, C: float, rows: Rows) -> Scale:
        """The same radius, and slack coordinates for a soft margin."""
        slack = 0.5 / C / self.radius / (_weights(rows) * self.radius)
        return replace(self, C=C, slack=rows.per_example(slack))

    def restrict(self, examples: Array) -> Scale:
        """The same for some of the examples, which already are in units of the radius."""
        slack = self.slack
        if slack is not None and len(slack) > 1:
            slack = slack[examples]
        return Scale(self.C, 1.0, self.lengths[examples], slack)


def _weights(rows: Rows) -> Array:
    return np.ones(1) if rows.weights is None else rows.weights


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
        squared, mean = _squared_lengths(store, rows, norm, centre), centre.mean
        if not np.isfinite(squared.max()):
            raise NotFinite(
                "examples hold NaN or infinity, or their squared norms overflow float64: scale X"
            )
        if mean is not None and not centre.far and squared.max() * _FAR_MEAN**2 < mean @ mean:
            centre = _far_centre(store, rows, mean, float(squared.max()))
            squared = _squared_lengths(store, rows, norm, centre)
        unit = 0.0 if mean is None else float(np.sqrt(mean @ mean))
        lengths = norm.squared_with_entry(np.maximum(squared, 0.0), constant)
        scale = Scale.of(lengths, rows, C, partial(_largest_entry, store, rows), unit)
        small = store.dtype == np.float32 and scale.radius * LARGEST_FLOAT32 < 1.0
        if small and not store.normalized:
            raise ValueError(
                f"the longest example has the norm {scale.radius:.3g}, by which numbers of float32 "
                "cannot be divided: scale X, or pass it as float64"
            )
        return scale, centre


def _largest_entry(store: Store, rows: Rows) -> float:
    return max(store.map(measures.largest_entry, rows))


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
        return store.take(some).adjoint(v / v.sum()).astype(np.float64, copy=False)


def _far_centre(store: Store, rows: Rows, mean: Array, longest: float) -> Centre:
    """The mean; of sparse examples, that of features which all of them store, where that will do.

    It can be subtracted from each example. It will do if the mean of the other features is shorter
    than the longest example about the mean, whose squared length is given.
    """
    if not store.sparse or store.normalized:
        return Centre(mean, far=True)
    everywhere = store.fold(measures.stored, np.add, rows) == rows.n_examples
    rest = np.where(everywhere, 0.0, mean)
    if rest @ rest > longest:
        return Centre(mean, far=True)
    return Centre(mean - rest, far=True, stored=True)


def _squared_lengths(store: Store, rows: Rows, norm: LpNorm, centre: Centre) -> Array:
    work = partial(measures.squared_lengths, norm=norm, centre=centre)
    return np.concatenate(list(store.map(work, rows)))
