"""Candidates: the vectors of a round from which bounds are computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.adapter import Predictor, Vector


@dataclass(frozen=True)
class Candidate:
    """A vector of a round, and what is known of it for its bounds.

    Attributes
    ----------
    vector : Predictor
        A Vector, where it is used for an upper bound.
    mass : float
        Sum of its coefficients (dimensionless). If it is positive, the norm over the mass is an
        upper bound; 0: the vector is not used for one.
    min_margin : float or None
        Its smallest margin (units of the radius). If it is known, the margin over the norm is a
        lower bound; None: the vector is not used for one.
    fallback : bool
        Whether it may be the model of a fit that finds no separator.
    offsets : ndarray of shape (n_classes,) or None
        Its intercept, as class offsets: of a fallback, as that model; of others, where its bound
        holds. None: the one with the largest smallest margin or, as that model, the one that
        minimises the exponential loss, at the scale of the predictor where that loss is least.
    margins : ndarray or None
        Its margins on all rows in float64, if they are known: confirming its lower bound then
        needs no pass.
    precise : bool
        Whether the vector was computed in float64 from its coefficients: confirming its upper
        bound then needs no pass.
    words : str
        What it is as the model of a fit that finds no separator, for a sentence; may be empty.
    norm : float or None
        Its norm as a predictor of this scale, the price of its slack included (one over the unit of
        margins, which are one over norms). None: it is not used for that.
    norm_bound : float or None
        Least norm of a predictor, slack included, that it proves as weights (same units). None: it
        is not used for that.
    violation : float
        Largest distance of its scores from their intervals (units of the targets).
    error : float or None
        Where scores are to lie in intervals: the relative gap of the predictor and the weights that
        its algorithm has chosen. It takes the place of the best one so far, whatever its norm.

    Examples
    --------
    A sum of two rows, whose norm over 2 bounds the margin from above:

    >>> import numpy as np
    >>> from marginsvm.fit import Candidate
    >>> from marginsvm.problem.adapter import LinearAdapter
    >>> from marginsvm.problem.rows import make_rows
    >>> problem = LinearAdapter(np.eye(2), make_rows(np.array([0, 1]), 2, balanced=False))
    >>> pair = Candidate(problem.row(0) + problem.row(1), mass=2.0)
    >>> round(problem.norm(pair.vector) / pair.mass, 6)
    0.707107
    """

    vector: Predictor
    mass: float = 0.0
    min_margin: float | None = None
    fallback: bool = False
    offsets: Array | None = None
    margins: Array | None = None
    precise: bool = False
    words: str = ""
    norm: float | None = None
    norm_bound: float | None = None
    violation: float = 0.0
    error: float | None = None

    @property
    def combination(self) -> Vector:
        """Its vector, where it is used for an upper bound: only combinations of rows give one."""
        assert isinstance(self.vector, Vector)
        return self.vector

    def lower(self, norm: float) -> float | None:
        """The lower bound that it gives, up to rounding; None: it gives none.

        Parameters
        ----------
        norm : float
            The norm of its vector (units of the radius).

        Returns
        -------
        float or None
            In units of the radius.
        """
        if self.norm is not None:
            return 1.0 / self.norm if self.norm > 0.0 else np.inf
        return None if self.min_margin is None or not norm > 0.0 else self.min_margin / norm

    def upper(self, norm: float) -> float:
        """The upper bound that it gives, up to rounding; infinite if it gives none.

        Parameters
        ----------
        norm : float
            The norm of its vector (units of the radius).

        Returns
        -------
        float
            In units of the radius.
        """
        if self.norm_bound is not None:
            return 1.0 / self.norm_bound if self.norm_bound > 0.0 else np.inf
        return norm / self.mass if self.mass > 0.0 else np.inf
