"""Problems with what bounds and the methods of the exact solver ask of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._rounding import LONG, UNIT
from marginsvm._typing import Array
from marginsvm.certify.caps import Caps
from marginsvm.certify.certifiable import WrittenOut
from marginsvm.certify.overlapping import meeting_rows
from marginsvm.certify.prices import HingeCaps, hinge_caps
from marginsvm.certify.tolerances import (
    KERNEL_RESOLUTION,
    KERNEL_VANISHING,
    SAME_FINGERPRINT,
    VANISHING,
)
from marginsvm.kernel_matrix.single import Prepared, SingleColumns
from marginsvm.problem import adapter as problem
from marginsvm.problem.adapter import BestResponse as BestResponse
from marginsvm.problem.design import Design
from marginsvm.problem.kernels import Kernel, distinct
from marginsvm.problem.matrix import Csr, Dense, Matrix, on_host, support_of
from marginsvm.problem.rows import Rows, make_rows, output_rows
from marginsvm.problem.vector import Predictor, Vector


class Errors(NamedTuple):
    """What rounding leaves of lengths and margins (in radii).

    Attributes
    ----------
    resolution : float
        Margins up to this may be due to rounding.
    vanishing : float
        Upper bounds below this may be due to rounding.
    farthest : float
        Largest norm of an image of an example, from the origin of the images.
    """

    resolution: float
    vanishing: float
    farthest: float


class KernelMatrixAdapter(problem.KernelMatrixAdapter):
    """A problem with what the exact solver asks of it."""

    cheap_sums = True  # whether a sum over all rows costs no more than a pass
    caps: Caps | None = None
    errors: Errors
    models: dict[Any, Any]

    def _begin(self) -> None:
        """Set what belongs to these units."""
        self.models, self.errors = {}, self._error_model()

    @abstractmethod
    def _error_model(self) -> Errors:
        """What rounding leaves."""

    @abstractmethod
    def length(self, w: Predictor) -> float:
        """Norm of a vector as a predictor, without a ridge."""

    @abstractmethod
    def margin_error(self, w: Predictor) -> float:
        """Estimate of the rounding of margins of a vector in float64."""

    @abstractmethod
    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """See ``Certifiable``."""

    @abstractmethod
    def fingerprints(self) -> Array | None:
        """See ``Certifiable``."""

    @property
    def slack(self) -> Array | None:
        """Squares of the slack coordinates, of the shape of margins; None: a hard margin."""
        return self.ridge

    @property
    def width(self) -> float:
        """Numbers in a row that is written out, without slack; infinite where it cannot be."""
        return np.inf

    @property
    def mean_square(self) -> float:
        """Mean squared norm of the examples, with their weights, in the user's units."""
        return float(np.average(self.lengths, weights=self.rows.weights)) * self.radius**2

    @cached_property
    def meeting(self) -> Vector | None:
        """Two rows that cancel, see ``meeting_rows``; the first call takes a pass."""
        return meeting_rows(self)

    def inner_products(self, examples: Array) -> Array:
        """Inner products of some examples, in units of the radius squared, as a new array."""
        return self.examples.gram(examples, examples)

    # Other problems of the same examples.

    def _copied(self) -> Self:
        other = super()._copied()
        other.caps, other.models = None, {}
        vars(other).pop("meeting", None)
        return other

    def with_C(self, C: float) -> Self:  # noqa: N802 - the parameter's name
        other = super().with_C(C)
        other._begin()
        return other

    def below(self, caps: Caps) -> Self:  # type: ignore[override]
        """The problem without slack, and with weights that are at most these."""
        other = super().below(caps.largest)
        other.caps = caps
        return other

    @property
    def loss(self) -> str:
        """What slack costs: ``"squared_hinge"`` or, with caps on weights, ``"hinge"``."""
        return "squared_hinge" if self.caps is None else "hinge"

    @property
    def nu(self) -> float | None:
        """Share of the examples whose mean margin is maximised; None: it is no such problem."""
        return None if self.caps is None else self.caps.nu

    def with_hinge_loss(self) -> Self:
        """The problem in which slack costs C times its size, and not times its square."""
        return self if self.ridge is None else self.below(HingeCaps.of(self.rows, self.ridge))

    def alone(self, j: int) -> Self:
        """The problem of one output, in the same units."""
        other = self._copied()
        other.rows = output_rows(self.rows).output(j)
        other.n_rows = other.rows.n_rows
        other._soften(self.C if self.ridge is not None else np.inf)
        other.C = self.C
        other._begin()
        return other if self.caps is None else other.below(hinge_caps(self.caps).output(j))

    def of_output(self, image: Array, j: int) -> Array:
        """An image with 0 in place of what does not belong to one output."""
        only, axis = np.zeros_like(image), self.output_axis
        np.moveaxis(only, axis, 0)[j] = np.moveaxis(image, axis, 0)[j]
        return only

    def together(self, images: list[Array]) -> Array:
        """The image of all outputs, from those of each."""
        return np.stack(images, self.output_axis)


class LinearAdapter(KernelMatrixAdapter, problem.LinearAdapter, WrittenOut):
    """A problem of linear predictors; images are vectors of features."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._begin()

    def _error_model(self) -> Errors:
        return Errors(0.0, VANISHING, 1.0)

    def length(self, w: Predictor) -> float:
        norm = self.norm_of_predictors
        return norm.length(norm.mirror(w.image).ravel())

    def margin_error(self, w: Predictor) -> float:
        design, offset = self.design, 0.0
        if design.centre is not None:
            offset = float(np.sqrt(design.centre @ design.centre)) / self.radius
        error = UNIT * (design.additions[0] + 8) + design.rounding
        return error * (1.0 + 2.0 * offset) * self.length(w)

    @property
    def width(self) -> float:
        return float(np.prod(self.image_shape))

    def fingerprints(self) -> Array | None:
        lengths, X = np.sort(self.lengths), self.design.X  # known already, a first fingerprint
        near = np.diff(lengths) <= SAME_FINGERPRINT * lengths[-1]
        if not (X.in_memory and (near.any() or lengths[0] == 0.0)):
            return None
        self.work.add_pass()
        at_random = np.random.default_rng(0).random(X.shape[1]) - 0.5
        return np.concatenate(X.each(lambda some: some.times(at_random, LONG)))

    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        X, constant = self.design.X, self.design.constant
        if X.factor is None:
            intercept = self.rows.balanced or constant != 0.0
            some = X[examples]
            array = some.array if some.sparse else some.written_out()
            return array, np.ones(len(examples)), intercept
        factor, some = X.factor[examples], X.given[examples]
        array = some.array if some.sparse else some.written_out()
        return array, np.where(factor > 0, factor, 1.0), X.constant != 0.0

    def spread(self) -> Array | None:
        """See ``WrittenOut``."""
        return None if self.design.X.factor is not None else self.design.spread

    def written(self, index: Array) -> Array:
        """See ``WrittenOut``."""
        return self.design.written_out(index)

    def points(self, row_ids: Array) -> Array:
        """See ``WrittenOut``."""
        examples, signs = self.rows.locate(row_ids)
        x = self.written(examples)
        if signs.shape[1] == 1:
            x *= signs
            return x
        return (signs[:, :, None] * x[:, None, :]).reshape(len(row_ids), -1)

    def csr(self) -> Any:
        """The examples in the user's units if they are a CSR matrix in memory, or None."""
        X = self.design.X
        return X.array if isinstance(X, Csr) and X.factor is None else None

    def are_dense(self) -> bool:
        """Whether the examples are an array of NumPy in memory."""
        X = self.design.X
        return isinstance(X, Dense) and not X.foreign and X.factor is None

    def two_classes(self, a: int, b: int) -> LinearAdapter | None:
        """The hard-margin problem of two of the classes, in the same units, if in memory."""
        if not self.design.X.in_memory:
            return None
        members = np.flatnonzero((self.rows.codes == a) | (self.rows.codes == b))
        codes = (self.rows.codes[members] == b).astype(int)
        rows = make_rows(codes, 2, balanced=self.rows.balanced)
        return in_units(self, self.design.take(members), rows, self.lengths[members], self.radius)


def in_units(like: Any, design: Design, rows: Rows, lengths: Array, radius: float) -> LinearAdapter:
    """The hard-margin problem of other examples, in given units."""
    other = LinearAdapter.__new__(LinearAdapter)
    other.rows, other.n_rows, other._plan = rows, rows.n_rows, None
    other.norm_of_predictors, other.upper, other.work = (
        like.norm_of_predictors,
        None,
        problem.Work(),
    )
    other._take_units(design, lengths * radius**2, radius)
    other.C, other.ridge = np.inf, None
    other._begin()
    return other


class GramAdapter(KernelMatrixAdapter, problem.GramAdapter):
    """A problem in the feature space of a kernel, of which only inner products are computed."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._whole = options.get("whole", True) or arguments[0] is None
        super().__init__(*arguments, **options)
        self.cheap_sums = self._whole
        self._begin()

    @property
    def cache_size(self) -> float:
        """Memory for kernel values (MB)."""
        return self.examples.cache_size

    @property
    def constant(self) -> float:
        """Its square is added to all kernel values."""
        return self.examples.constant

    @property
    def dimensions(self) -> float:
        """Of the feature space, if the kernel is a polynomial in few features; or infinite."""
        kernel = self.examples.kernel
        return kernel.dimensions(self.examples.X.shape[1]) if isinstance(kernel, Kernel) else np.inf

    @property
    def _highest(self) -> float:
        """Largest kernel value (in radii squared)."""
        return float(np.abs(self.examples.squared_norms).max())

    def _error_model(self) -> Errors:
        # the mean is not subtracted from images
        return Errors(KERNEL_RESOLUTION, KERNEL_VANISHING, float(np.sqrt(1.0 + self._highest)))

    def length(self, w: Predictor) -> float:
        return float(np.sqrt(max(np.sum(self.rows.adjoint(w.coef) * w.image), 0.0)))

    def margin_error(self, w: Predictor) -> float:
        gram = self.examples
        error = UNIT * (gram.additions[0] + 8) + gram.rounding
        return 2.0 * error * self._highest * float(np.abs(self.rows.adjoint(w.coef)).sum())

    @property
    def mean_square(self) -> float:
        squared = super().mean_square
        if self._whole or not self.rows.balanced:
            return squared
        n = self.rows.n_examples
        some = np.unique(np.linspace(0, n - 1, min(n, problem.EXAMINED)).astype(int))
        v = np.ones(len(some)) if self.rows.weights is None else self.rows.weights[some]
        v = v / v.sum()
        return max(squared - float(v @ self.examples.values(some, some) @ v), 0.0)

    def fingerprints(self) -> Array | None:
        X = self.examples.X
        at_random = np.random.default_rng(0).random(X.shape[1]) - 0.5
        if isinstance(X, Matrix):
            return X.times(at_random).astype(np.float64)
        X = getattr(X, "X", X)  # without what is kept beside it
        return np.asarray(X @ at_random, dtype=np.float64)

    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """Of a given matrix its rows. Computed values prove nothing about the kernel, but equal
        examples are equal for any kernel: there is one feature for each set of equal examples.
        """
        gram = self.examples
        factor, intercept = np.ones(len(examples)), self.rows.balanced or gram.constant != 0.0
        X = gram.X[examples]
        if gram.kernel is None:
            return X, factor, intercept
        return distinct(on_host(getattr(X, "array", getattr(X, "X", X)))), factor, intercept

    @cached_property
    def single(self) -> SingleColumns:
        """Columns of kernel values in float32."""
        gram = self.examples
        prepared = None if gram.products is None else Prepared(gram.products)
        return SingleColumns(gram.single_values, gram.n, prepared, gram.cache_size)

    def with_scores(self, q: Array, F: Array, exact: Array) -> Vector:
        """``A^T q`` whose scores are computed in float64 for some examples only.

        Parameters
        ----------
        q : ndarray of shape rows.shape
        F : ndarray of shape rows.score_shape
            Scores of the others.
        exact : ndarray of int
            The examples, those with weight among them: norms then have no error of the others.
        """
        V, F = self.rows.adjoint(q), F.copy()
        few, size = support_of(V), max(1, 2**21 // max(1, len(support_of(V))))
        self.work.add_pass(len(exact) * len(few) / self.rows.n_examples**2)
        for i in range(0, len(exact), size):
            some = exact[i : i + size]
            F[some] = self.examples.gram(some, few) @ V[few]
        return Vector(F, q)

    def stored_products(self, dtype: Any) -> Array:
        """The inner products of all examples, where they fit in memory."""
        K, gram = self.examples.whole(), self.examples
        if gram.constant != 0.0 or self.radius != 1.0:
            K = (K + gram.constant**2) / self.radius**2
        return K.astype(dtype, copy=False)


def about_the_mean(K: Array, rows: Rows) -> Array:
    """A Gram matrix, overwritten by that about the mean where rows are balanced."""
    if rows.balanced:
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
    return K
