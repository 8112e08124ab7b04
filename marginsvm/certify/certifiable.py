"""What bounds and proofs need of a problem, as protocols; they use nothing else of it.

All lengths and margins are in units of the problem's radius, the norm of its longest row.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from marginsvm._typing import Array
from marginsvm.certify.caps import Caps
from marginsvm.certify.exactly.elimination import Effort
from marginsvm.certify.tolerances import MAX_OVERLAP_EFFORT
from marginsvm.rows import Predictor, Rows, Vector


class PublishedPredictor(NamedTuple):
    """A predictor as it is published, and a lower bound on its margin.

    Attributes
    ----------
    margin : float
        Lower bound on its margin (units of the radius).
    offsets : ndarray
        Class offsets, from which the intercept was computed.
    coef, intercept : ndarray
        Its coefficients and intercept in the user's units.
    separates : bool
        Whether it separates the examples themselves, without slack.
    scale : float
        Divisor of the vector, in the user's units, that gave these coefficients.
    """

    margin: float
    offsets: Array
    coef: Array
    intercept: Array
    separates: bool
    scale: float


class LowestMargins(NamedTuple):
    """The margins that a lower bound rests on, computed in float64.

    Attributes
    ----------
    vector : Predictor
        The predictor that has these margins: the given one or, with kernels, the given one computed
        again from its coefficients.
    low : ndarray of shape (n_offsets, n_offsets)
        The smallest margin of each group of rows.
    margins : ndarray of shape rows.shape, or None
        The margins of all rows; None where the examples are on other machines.
    """

    vector: Predictor
    low: Array
    margins: Array | None


class Distribution(Protocol):
    """The distribution q over the rows that is published for a vector.

    It is the vector's coefficients, divided by their sum and corrected so that they balance.

    Attributes
    ----------
    image : ndarray
        ``A^T q'`` for weights q' that differ from q by rounding only.
    moved : float
        Sum of the absolute values of ``q - q'`` (dimensionless).
    mass : float
        Lower bound on the sum of q, which is 1 up to rounding (dimensionless).
    """

    @property
    def image(self) -> Array: ...

    @property
    def moved(self) -> float: ...

    @property
    def mass(self) -> float: ...

    def weights(self) -> Array:
        """The weights q, of shape rows.shape; computing them may take passes over the examples."""
        ...

    def imbalance(self) -> float:
        """How far q is from weights that are balanced, as a sum of absolute values."""
        ...


class ErrorModel(Protocol):
    """How far the computed lengths and margins of a problem may be off.

    There is one for features, one for a kernel, and one for features on other machines. All
    lengths and margins are in units of the radius.

    Attributes
    ----------
    rounding_rtol : float
        Relative rounding error of a bound that is small enough (dimensionless).
    resolution : float
        Margins up to this may be due to rounding errors that the model does not include.
    vanishing : float
        Upper bounds below this may be due to rounding, so that it is worth looking for weights
        with ``A^T q = 0`` exactly.
    farthest : float
        Largest norm of an image of an example, from the origin of the images.
    """

    @property
    def rounding_rtol(self) -> float: ...

    @property
    def resolution(self) -> float: ...

    @property
    def vanishing(self) -> float: ...

    @property
    def farthest(self) -> float: ...

    def predictor_norm(self, vector: Predictor) -> float:
        """Upper bound on the norm of a vector as a predictor, without slack coordinates."""
        ...

    def published_norm(self, vector: Predictor) -> float:
        """The same for its published numbers, closer where rounding costs much and time allows."""
        ...

    def proof_norm(self, proof: Distribution, slack: float = 0.0) -> float:
        """Upper bound on the norm of ``A^T q`` of a distribution, without slack coordinates.

        Their length, if it is given, is what an error is small beside.
        """
        ...

    def margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        """Bound on the error of margins computed in float64, for a predictor of this norm.

        Where the quickest estimate is above ``wanted``, a closer one is computed.
        """
        ...

    def extended_margin_error(self, vector: Predictor, norm: float, wanted: float) -> float:
        """The same for margins of the published numbers computed in extended precision."""
        ...

    def published_margin_error(self, vector: Predictor, norm: float) -> float:
        """The same for margins from ``published_scores``."""
        ...


class OverlapChecks(dict[bytes, bool]):
    """For the weights that were checked so far, as bytes: whether they prove an overlap.

    Attributes
    ----------
    effort : Effort
        What the checks have taken.
    """

    def __init__(self) -> None:
        super().__init__()
        self.effort = Effort()

    @property
    def may_continue(self) -> bool:
        """Whether checks have not yet taken too long."""
        return self.effort.products < MAX_OVERLAP_EFFORT


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
        Numbers in a row that is written out as features; infinite where it cannot be.
    caps : Caps or None
        Largest weights of the rows, where no example may count for too much. None: no caps.
    overlap_checks : OverlapChecks
        Results of earlier checks of whether weights prove that the classes overlap.
    """

    rows: Rows
    n_rows: int
    radius: float
    errors: ErrorModel
    caps: Caps | None
    overlap_checks: OverlapChecks

    @property
    def width(self) -> float: ...

    @property
    def signs(self) -> Array | None:
        """Signs that the coefficients of the features must have: -1, 0 or 1; None: any."""
        ...

    @property
    def slack(self) -> Array | None:
        """Squares of the slack coordinates, of the shape of margins; None: a hard margin."""
        ...

    def combine(self, q: Array, *, precise: bool = False) -> Vector:
        """``A^T q``; ``precise``: computed in float64 throughout."""
        ...

    def weights(self, vector: Predictor) -> Array:
        """Weights of a vector on the rows; computing them may take passes over the examples."""
        ...

    def gram(self, row_ids: Array, others: Array) -> Array:
        """A block of ``A A^T``; rows are named by their flat indices."""
        ...

    def lowest_margins(self, vector: Predictor) -> LowestMargins:
        """Compute the margins for a lower bound, in float64, by a pass over the examples."""
        ...

    def distribution(self, vector: Vector) -> Distribution:
        """The distribution over the rows that is published for a vector."""
        ...

    def predictor(self, vector: Predictor, offsets: Array) -> tuple[Array, Array]:
        """Coefficients and intercept for x in the user's units."""
        ...

    def published_scores(self, coef: Array, intercept: Array, few: Array | None) -> Array | None:
        """Scores of published numbers, with fewer errors than those of their vector.

        Of few examples they are summed in extended precision. Those of all (``few`` is None) have
        neither the error of a mean that is far nor that of long sums of kernel values; the result
        is None where such scores would be no closer, or would take too long.
        """
        ...

    def fingerprints(self) -> Array | None:
        """A number for each example, by a pass; None: no two are equal, or not in memory.

        Equal examples have the same number up to rounding, and opposite ones opposite numbers;
        others hardly ever do.
        """
        ...

    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """Some of the examples as the user gave them; None where they are not available.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n, d)
            Features, without rounding; the scores of predictors are linear in them.
        factor : ndarray of shape (n,)
            Positive factors: a weight on an example of this problem, multiplied by the factor of
            the example, is the weight on the example that the user gave.
        intercept : bool
            Whether predictors have an intercept in addition to these features.
        """
        ...


class Regression(Certifiable, Protocol):
    """A problem whose scores are to lie in intervals."""

    def scores(self, w: Predictor) -> Array:
        """Scores of all examples, in float64."""
        ...

    def of_output(self, image: Array, j: int) -> Array:
        """An image with 0 in place of what does not belong to one output."""
        ...


@runtime_checkable
class WrittenOut(Protocol):
    """A problem whose rows can be written out, as those of features can and a kernel's cannot."""

    def spread(self) -> Array | None:
        """Largest distance of each feature from its mean; the first call takes a pass.

        None: it is not needed, as no feature is longer than its example.
        """
        ...

    def written(self, index: Array) -> Array:
        """Examples written out in float64, with the mean subtracted."""
        ...

    def points(self, row_ids: Array) -> Array:
        """Images of rows as a matrix, without slack coordinates."""
        ...


def written_out(problem: object) -> WrittenOut | None:
    """The problem, if its rows can be written out; else None."""
    return problem if isinstance(problem, WrittenOut) else None
