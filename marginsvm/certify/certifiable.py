"""What bounds and proofs ask of a problem: certificates know nothing else about it.

All lengths and margins are in units of the problem's radius, the norm of its longest row.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from marginsvm._typing import Array
from marginsvm.certify.overlap_answers import OverlapAnswers
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector


class Predictor(NamedTuple):
    """A predictor as it is published, and the margin that it reaches at least.

    Attributes
    ----------
    margin : float
        In units of the radius.
    offsets : ndarray
        Class offsets that became the intercept.
    coef, intercept : ndarray
        In the user's units.
    separates : bool
        Whether it separates the examples themselves, slack left out.
    """

    margin: float
    offsets: Array
    coef: Array
    intercept: Array
    separates: bool


class LowestMargins(NamedTuple):
    """The margins that a lower bound rests on, computed in float64.

    Attributes
    ----------
    vector : Vector
        The one that they belong to: that which was asked about or, of kernels, the same
        computed again from its coefficients.
    low : ndarray of shape (n_groups, n_groups)
        The smallest margin of each group of rows.
    margins : ndarray of shape rows.shape, or None
        The margins of all rows; None where these are on other machines.
    """

    vector: Vector
    low: Array
    margins: Array | None


class Distribution(Protocol):
    """The distribution q over the rows as which a vector's coefficients are published.

    Attributes
    ----------
    image : ndarray
        ``A^T q'`` for weights q' next to q.
    moved : float
        Sum of the absolute values of ``q - q'`` (dimensionless).
    mass : float
        Sum of q at least, at most 1: rounding may have left less (dimensionless).
    """

    @property
    def image(self) -> Array: ...

    @property
    def moved(self) -> float: ...

    @property
    def mass(self) -> float: ...

    def weights(self) -> Array:
        """Q itself, of shape rows.shape; where weights on the rows are lazy, passes compute it."""
        ...

    def imbalance(self) -> float:
        """How far q is from weights that are balanced, as a sum of absolute values."""
        ...


class ErrorModel(Protocol):
    """How far the computed lengths and margins of a problem may be off.

    Each geometry has its own: features, a kernel, features on other machines.

    Attributes
    ----------
    rounding_rtol : float
        Relative rounding error of a bound that need not be made smaller (dimensionless).
    resolution : float
        Margins up to this may be rounding that the model does not know of.
    vanishing : float
        Upper bounds from which down exact weights that prove a margin of 0 may be near.
    farthest : float
        Longest row, counted from the point from which images count.
    """

    @property
    def rounding_rtol(self) -> float: ...

    @property
    def resolution(self) -> float: ...

    @property
    def vanishing(self) -> float: ...

    @property
    def farthest(self) -> float: ...

    def predictor_norm(self, vector: Vector) -> float:
        """Norm of a vector as a predictor, slack coordinates left out, at most."""
        ...

    def proof_norm(self, proof: Distribution) -> float:
        """Norm of ``A^T q`` of a distribution, slack coordinates left out, at most."""
        ...

    def margin_error(self, vector: Vector, norm: float, wanted: float) -> float:
        """Most by which margins computed in float64 may be off, for a predictor of this norm.

        Where the quickest estimate is above ``wanted``, a closer one is tried.
        """
        ...

    def extended_margin_error(self, vector: Vector, norm: float, wanted: float) -> float:
        """The same for margins of the published numbers computed in extended precision."""
        ...


class Certifiable(Protocol):
    """A problem ``max_w min_r <a_r, w> / |w|`` that bounds can be computed for.

    Attributes
    ----------
    rows : Rows
    n_rows : int
    radius : float
        Norm of the longest row in the user's units.
    errors : ErrorModel
    width : float
        Numbers in a row that is written out; infinite where it cannot be.
    overlap_answers : OverlapAnswers
        What is known of whether the classes overlap.
    """

    rows: Rows
    n_rows: int
    radius: float
    errors: ErrorModel
    overlap_answers: OverlapAnswers

    @property
    def width(self) -> float: ...

    @property
    def slack(self) -> Array | None:
        """Squares of the rows' extra coordinates, as many as margins; None: a hard margin."""
        ...

    def combine(self, q: Array, *, precise: bool = False) -> Vector:
        """``A^T q``; ``precise``: computed in float64 throughout."""
        ...

    def weights(self, vector: Vector) -> Array:
        """Weights of a vector on the rows; where they are lazy, passes compute them."""
        ...

    def gram(self, row_ids: Array, others: Array) -> Array:
        """A block of ``A A^T``; rows are named by their flat indices."""
        ...

    def lowest_margins(self, vector: Vector) -> LowestMargins:
        """Compute the margins that a lower bound rests on: a pass."""
        ...

    def distribution(self, vector: Vector) -> Distribution:
        """The distribution over the rows that a vector is published as."""
        ...

    def predictor(self, vector: Vector, offsets: Array) -> tuple[Array, Array]:
        """Coefficients and intercept as the user applies them, in the user's units of x."""
        ...

    def extended_scores(self, examples: Array, coef: Array) -> Array:
        """Scores of some examples before the intercept is added, in extended precision."""
        ...

    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """Some of the examples as the user gave them; None where these are not to be had.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n, d)
            Features, exactly: whatever predictors can say is linear in them.
        factor : ndarray of shape (n,)
            Positive: what an example is multiplied with here, and its weights there.
        intercept : bool
            Whether predictors may have an intercept beside these features.
        """
        ...


@runtime_checkable
class WrittenOut(Protocol):
    """A problem whose rows can be written out, as those of features can and a kernel's cannot."""

    def spread(self) -> Array | None:
        """Largest distance of each feature from its mean (the first time: a pass).

        None: no feature is longer than its example.
        """
        ...

    def examples(self, index: Array) -> Array:
        """Examples written out in float64, about the mean."""
        ...

    def points(self, row_ids: Array) -> Array:
        """Rows written out one below the other, as images, slack coordinates left out."""
        ...


def written_out(problem: object) -> WrittenOut | None:
    """The problem as one whose rows can be written out, if they can."""
    return problem if isinstance(problem, WrittenOut) else None
