"""The units of a problem: everything in it is divided by the norm of its longest row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.tolerances import LARGEST_NORM
from marginsvm.rows import Rows


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
        tallest: Callable[[], float],
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
        tallest : callable
            Gives the largest absolute value of a feature; called where squared norms may be zero
            by underflow.
        unit : float
            The radius where all rows are zero.
        """
        weights = np.ones(1) if rows.weights is None else rows.weights
        with np.errstate(over="ignore", invalid="ignore"):
            longest = float((squared_norms + 0.5 / (C * np.minimum(weights, 1.0))).max())
        short = longest < LARGEST_NORM**-2 and 0.0 < tallest() < 1.0 / LARGEST_NORM
        if short or not longest < LARGEST_NORM**2:
            raise ValueError(
                f"the squared norms of the examples (and 1 / 2C) come to {longest:.3g}, with which "
                f"float64 cannot compute: scale X to entries between {1 / LARGEST_NORM:g} and "
                f"{LARGEST_NORM:g}, and C with the inverse of their squares"
            )
        radius = float(np.sqrt(longest)) or unit or 1.0
        soft = np.isfinite(C)
        slack = rows.per_example(0.5 / C / (weights * radius**2)) if soft else None
        return cls(C, radius, squared_norms / radius**2, slack)

    def restrict(self, examples: Array) -> Scale:
        """The same for some of the examples, which already are in units of the radius."""
        slack = self.slack
        if slack is not None and len(slack) > 1:
            slack = slack[examples]
        return Scale(self.C, 1.0, self.lengths[examples], slack)
