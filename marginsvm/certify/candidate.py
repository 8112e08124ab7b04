"""A vector of the game and what it may prove."""

from __future__ import annotations

from dataclasses import dataclass

from marginsvm._typing import Array
from marginsvm.rows.vector import Vector


@dataclass(frozen=True)
class Candidate:
    """A vector of the game and what it may prove.

    Attributes
    ----------
    vector : Vector
    mass : float
        Sum of its coefficients (dimensionless); positive: it carries an upper bound.
    min_margin : float or None
        Its smallest margin (units of the radius), if known: it carries a lower bound.
    fallback : bool
        Whether it is the model where nothing separates.
    offsets : ndarray of shape (n_classes,) or None
        Its intercept in that case; None: the one of the exponential loss, where its scale is
        the best.
    margins : ndarray or None
        Its margins on all rows, if known in float64: a bound to stop on then needs no
        further pass.
    precise : bool
        Whether the vector was computed in float64 from its coefficients: nor does this one.

    Examples
    --------
    A sum of two rows, whose norm over 2 bounds the margin from above:

    >>> import numpy as np
    >>> from marginsvm.fit import Candidate
    >>> from marginsvm.kernel_matrix import LinearAdapter, make_rows
    >>> problem = LinearAdapter(np.eye(2), make_rows(np.array([0, 1]), 2, balanced=False))
    >>> pair = Candidate(problem.row(0) + problem.row(1), mass=2.0)
    >>> round(problem.norm(pair.vector) / pair.mass, 6)
    0.707107
    """

    vector: Vector
    mass: float = 0.0
    min_margin: float | None = None
    fallback: bool = False
    offsets: Array | None = None
    margins: Array | None = None
    precise: bool = False
