"""What a split of the rows of a design consists of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._typing import Array


@dataclass(frozen=True)
class Split:
    """The two kinds of rows of a design, and what shows that they are these.

    Attributes
    ----------
    separated : ndarray of bool, shape (n_rows,)
        S; equalities are in O.
    direction : ndarray of shape (n_columns,)
        Strictly positive on S and 0 on all other rows, up to rounding; 0 where S is empty, and
        for columns that are not identified.
    weights : ndarray of shape (n_rows,)
        Weights with ``A^T weights = 0``: positive on overlapping rows that span all of them,
        together with the equalities, whose weights have any sign.
    identified : ndarray of int
        Columns that are not combinations of those before them.
    face : ndarray of shape (n_columns, k)
        Basis of the directions that are 0 on all overlapping rows and on columns that are not
        identified; lines of finite coefficients are 0.
    doubt : str
        What rounding leaves open, or an empty string.
    rays : ndarray of shape (n_separated, k) or None
        Products of the separated rows with this basis, up to their lengths, where it is random.
    is_spanned : bool
        Whether ``face`` spans all of those directions; else it holds some random ones alone.
    """

    separated: Array
    direction: Array
    weights: Array
    identified: Array
    face: Array
    doubt: str
    rays: Array | None = None
    is_spanned: bool = True

    @property
    def finite(self) -> Array:
        """Coefficients that all directions leave alone: a mask."""
        return np.asarray(~self.face.any(axis=1))
