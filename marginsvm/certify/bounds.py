"""What vectors prove: bounds that allow for rounding, so that none is ever wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.checker.overlap import nothing_separates
from marginsvm.certify.rounding import FEW, PAIRWISE, SMALL
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector

_MAX_EFFORT = 2e7  # cubes of rows, on questions in vain whether exact weights exist: seconds
_TINY = 1e-200  # margin per unit of length below which a predictor cannot be scaled to margin 1
SURCHARGE = 3.0  # longest rows for each unit of imbalance: see ``Bounds.upper_bound``


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


class Bounds(ABC):
    """The bounds of a :class:`KernelMatrixAdapter`, in units of the radius.

    Each geometry says how far its norms and scores may be off. Sums of few terms, which
    are all that a certificate of high accuracy rests on, are done in extended precision.
    """

    rows: Rows
    n_rows: int
    radius: float
    resolution = 0.0  # margins up to this (in radii) may be rounding that bounds do not allow for
    enough = 0.0  # relative error of a bound that needs no more digits
    vanishing = 1e-9  # upper bounds (in radii) at which exact weights that prove 0 may be near
    precision = np.dtype(np.float64)  # of what rounds compute with
    _image_shape: tuple[int, ...]
    _slack: Array | None
    _asked: dict[bytes, tuple[int, bool]]  # whether exact weights are near some, and the effort

    @abstractmethod
    def _scores(self, image: Array, precise: bool) -> Array:
        """Scores of all examples; float64 throughout where ``precise``."""

    @abstractmethod
    def predictor(self, w: Vector, offsets: Array) -> tuple[Array, Array]:
        """``w`` as the user applies it: coefficients and intercept, user's units of x."""

    @abstractmethod
    def combine(self, q: Array, *, precise: bool = False) -> Vector:
        """``A^T q``."""

    @abstractmethod
    def _length(self, w: Vector) -> float:
        """Norm of the predictor w without slack coordinates, at most."""

    @abstractmethod
    def _dual_length(self, image: Array, q: Array, moved: float) -> float:
        """Norm of ``A^T q``, slack coordinates left out, at most.

        ``image`` is that of weights of which q differs by ``moved``, a sum of absolute values.
        """

    @abstractmethod
    def _doubt(self, w: Vector, length: float, *, sharp: bool, enough: float) -> float:
        """Rounding error of the margins at most, as computed or as the predictor gives them.

        Where the quickest estimate is above ``enough``, a closer one may be worth its price.
        """

    @abstractmethod
    def _extended_scores(self, examples: Array, coef: Array) -> Array:
        """Scores of some examples before the intercept is added, in extended precision."""

    def weights(self, w: Vector) -> Array:
        """Weights of a vector on the rows; where they are lazy, computed by passes."""
        return w.coef

    @property
    def spread(self) -> Array | None:
        """Largest distance of each feature from its mean (in radii), where there are features."""
        return None

    @property
    def _farthest(self) -> float:
        """Longest row, slack included, from the point from which images count (radii)."""
        return 1.0

    @property
    def width(self) -> float:
        """Length of a row that is written out, slack left out; infinite: it cannot be."""
        return np.inf

    def margins(self, w: Vector, *, precise: bool = False) -> Array:
        """Margins ``<a_r, w>`` of all rows."""
        margins = self.rows.margins(self._scores(w.image, precise))
        return margins if self._slack is None else margins + self._slack * self.weights(w)

    def rounding_error(self, w: Vector) -> float:
        """Most that float64 may have changed a margin of w by (units of the radius).

        The quick estimate leaves room for what many rounds have added up.
        """
        return self._doubt(w, self._length(w), sharp=False, enough=np.inf)

    def lower_bound(
        self, w: Vector, offsets: Array | None = None, margins: Array | None = None
    ) -> Predictor:
        """Predictor of ``w`` with these class offsets, or else with the best ones.

        It is scaled so that the closest examples get 1 (no separator: to unit norm). Its
        margin is that of the published numbers, less what rounding may have added. Those of
        all rows are not computed again where they are known in float64.
        """
        length = self._length(w)
        slack = None if self._slack is None else self._slack * self.weights(w)
        if slack is not None:
            length = _longer(length, np.sum(slack * self.weights(w)))
        low, margins = (
            self._lowest(w) if margins is None else (self.rows.group_min(margins), margins)
        )
        offsets = self.rows.best_offsets(low) if offsets is None else offsets
        worst = own = self.rows.min_margin_at(low, offsets)
        doubt = self._doubt(w, length, sharp=False, enough=self.enough * worst)
        doubt += FEW * float(np.abs(offsets).max())
        reached = worst if slack is None else worst - doubt
        if slack is not None and margins is not None:
            own = self.rows.min_margin_at(self.rows.group_min(margins - slack), offsets)
            own -= doubt + FEW * float(np.abs(slack).max())
        positive = reached > max(self.resolution, _TINY) * length
        scale = reached * self.rows.unit if positive else length / self.radius
        coef, intercept = (np.atleast_1d(x) / (scale or 1.0) for x in self.predictor(w, offsets))
        predictor = Predictor(0.0, offsets, np.atleast_2d(coef), intercept, own > 0.0)
        if length == 0.0:
            return predictor
        least = worst - doubt
        if slack is None and margins is not None and doubt > self.enough * worst:
            sharp = self._sharp(predictor, margins, worst, doubt) * scale
            sharp -= self._doubt(w, length, sharp=True, enough=self.enough * worst)
            least = max(least, min(sharp, worst + doubt))
        if worst <= doubt or (slack is not None and not positive):
            least = min(least, 0.0)  # that the digits as published separate would be luck
        return predictor._replace(margin=least / length)

    def _lowest(self, w: Vector) -> tuple[Array, Array | None]:
        """Smallest margin of each group, and those of all rows, if they are at hand."""
        margins = self.margins(w, precise=True)
        return self.rows.group_min(margins), margins

    def _sharp(self, predictor: Predictor, margins: Array, worst: float, doubt: float) -> float:
        """Smallest margin of a predictor, the rows that may have it in extended precision."""
        offsets = predictor.offsets
        margins = margins + self.rows.expand(offsets[:, None] - offsets)
        near = np.flatnonzero(margins.ravel() <= worst + 2.0 * doubt)
        if near.size * min(self.width, self.n_rows) > SMALL:
            return -np.inf
        examples, signs = self.rows.locate(near)
        F = self._extended_scores(examples, predictor.coef) + predictor.intercept
        return float((signs * F).sum(axis=1).min())

    def upper_bound(self, vector: Vector) -> float:
        """Bound proved by ``distribution(vector)``, with all that may be rounding.

        Weights that are balanced only up to rounding pay for it. Let all examples lie within
        r of the point from which images count. A unit predictor with a positive margin then
        has ``|b| < r`` (two classes: both signs of ``w x + b`` occur), or class offsets that
        differ by less than ``sqrt(2) r``; so its margin is below ``|A^T q| + r imbalance``. A check
        that counts from the mean finds a longer ``A^T q``, by up to ``r imbalance``, and examples
        up to 2 r away. What is claimed here is no less than what it finds: 3 r.
        """
        if self.weights(vector).min() < 0.0:  # rounding that will not be published
            vector = self.combine(np.maximum(self.weights(vector), 0.0), precise=True)
        q = self.distribution(vector)
        moved = float(np.abs(q - self.weights(vector) / vector.mass).sum())
        length = self._dual_length(vector.image / vector.mass, q, moved)
        if self._slack is not None:
            length = _longer(length, np.sum(self._slack * q * q))
        bound = length + SURCHARGE * self._farthest * self.rows.imbalance(q)
        # weights that were changed in their last digits do not quite sum to 1
        return bound / min(1.0, fsum(q[q > 0])) if moved else bound

    @abstractmethod
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

    def overlap_is_proved_by(self, vector: Vector) -> bool:
        """Whether weights near those of a vector make the classes meet exactly."""
        q = self.distribution(vector)
        few = np.flatnonzero(q.reshape(len(q), -1).any(axis=1))
        key = few.tobytes() + q[few].tobytes()
        if key not in self._asked:
            tried = sum(effort for effort, proved in self._asked.values() if not proved)
            proved = tried < _MAX_EFFORT and self._overlap(few, q[few])
            self._asked[key] = len(few) ** 3, proved
        return self._asked[key][1]

    def _overlap(self, few: Array, q: Array) -> bool:
        given = self.given(few)
        if given is None:
            return False
        X, factor, intercept = given
        q = q * self.rows.per_example(factor)
        codes, n_classes = self.rows.codes[few], self.rows.n_classes
        return nothing_separates(X, codes, n_classes, q, intercept=intercept)

    def distribution(self, vector: Vector) -> Array:
        """Weights on the rows in proportion to the coefficients, as they are published."""
        q = np.maximum(self.weights(vector), 0.0)
        return self.rows.rebalanced(q / q.sum())


def _longer(length: float, squared: float) -> float:
    """Length with some more coordinates, at most."""
    return float(np.hypot(length, np.sqrt(squared))) * (1.0 + PAIRWISE)
