"""Problems with what bounds and the methods of the exact solver ask of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._rounding import (
    CHAIN,
    EXTENDED_TERMS,
    EXTENDED_TERMS_OF_ALL,
    LONG,
    PAIRWISE,
    Extended,
    exact_inner,
)
from marginsvm._typing import Array
from marginsvm.certify.caps import Caps
from marginsvm.certify.certifiable import (
    Distribution,
    ErrorModel,
    LowestMargins,
    OverlapChecks,
    WrittenOut,
)
from marginsvm.certify.distribution import distribution_of
from marginsvm.certify.exactly.overlap import distinct
from marginsvm.certify.kernel_errors import KernelErrors
from marginsvm.certify.linear_errors import LinearErrors
from marginsvm.certify.overlapping import meeting_rows
from marginsvm.certify.prices import HingeCaps, hinge_caps
from marginsvm.certify.tolerances import SAME_FINGERPRINT
from marginsvm.kernel_matrix.single import Prepared, SingleColumns
from marginsvm.problem import adapter as problem
from marginsvm.problem.adapter import BestResponse as BestResponse
from marginsvm.problem.design import Design
from marginsvm.problem.gaussian import extended_gaussian, extended_values
from marginsvm.problem.kernels import Kernel
from marginsvm.problem.matrix import Csr, Dense, Matrix, on_host, support_of
from marginsvm.problem.rows import Rows, make_rows, output_rows
from marginsvm.problem.vector import Predictor, Vector


class KernelMatrixAdapter(problem.KernelMatrixAdapter):
    """A problem that bounds can be computed for, see ``certify.certifiable.Certifiable``."""

    cheap_sums = True  # whether a sum over all rows costs no more than a pass
    rounding_rtol = 0.0
    caps: Caps | None = None
    errors: ErrorModel
    overlap_checks: OverlapChecks
    models: dict[Any, Any]

    def _begin(self) -> None:
        """Set what belongs to these units."""
        self.overlap_checks, self.models, self.errors = OverlapChecks(), {}, self._error_model()

    @abstractmethod
    def _error_model(self) -> ErrorModel:
        """How far computed lengths and margins may be off."""

    @abstractmethod
    def published_scores(self, coef: Array, intercept: Array, few: Array | None) -> Array | None:
        """See ``Certifiable``."""

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

    def weights(self, w: Predictor) -> Array:
        """Weights of a vector on the rows."""
        return w.coef

    def lowest_margins(self, w: Predictor) -> LowestMargins:
        """Compute the margins for a lower bound, in float64, by a pass over the examples."""
        margins = self.margins(w, precise=True)
        return LowestMargins(w, self.rows.group_min(margins), margins)

    def distribution(self, w: Vector) -> Distribution:
        """The distribution over the rows that is published for a vector."""
        return distribution_of(self, w)

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


@dataclass(frozen=True)
class _Features:
    """A design, as the error model asks for it."""

    design: Design

    chain = CHAIN

    @property
    def mean_before_products(self) -> bool:
        return self.design.late is None

    @property
    def extended_terms(self) -> int:
        return EXTENDED_TERMS_OF_ALL if self.design.X.in_memory else EXTENDED_TERMS

    @property
    def extent(self) -> tuple[Array, Array] | None:
        design = self.design
        if design.X.factor is not None:
            return None
        late = np.zeros(design.d)
        if design.centre is not None:
            late[: len(design.centre)] = 2.0 * np.abs(design.centre)
        return design.spread, late / design.radius

    def extended_image(self, few: Array, V: Array, features: Array) -> Array:
        design, d = self.design, self.design.X.shape[1]
        given = features[features < d]
        if design.centre is None:
            X = design.X[few]
            image = (
                Csr(X.array[:, given]).adjoint(V) if X.sparse else V.T @ X.written_out()[:, given]
            )
        else:  # before the product, so that no digits are lost
            x = design.X[few].written_out()[:, given].astype(Extended)
            image = V.T @ (x - design.centre[given])
        if len(given) < len(features):
            image = np.append(image, (design.constant * V.sum(axis=0))[..., None], axis=-1)
        return np.asarray(image / design.radius)


class LinearAdapter(KernelMatrixAdapter, problem.LinearAdapter, WrittenOut):
    """A problem of linear predictors; images are vectors of features."""

    def __init__(self, *arguments: Any, rounding_rtol: float = 0.0, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rounding_rtol = rounding_rtol
        self._begin()

    def _error_model(self) -> LinearErrors:
        design = self.design
        # the longest example, and an allowance for the rounding of the subtraction of the mean
        centre = design.centre
        unit = 0.0 if centre is None else float(np.sqrt(centre @ centre))
        reach = 1.0 + 2.0 * unit / self.radius
        return LinearErrors(
            _Features(design),
            self.rows,
            self.norm_of_predictors,
            design.d,
            reach,
            row_error=0.0 if design.X.factor is None else PAIRWISE * reach,
            centre_is_far=design.near is not design.X,
            dense=self.are_dense(),
            rounding_rtol=self.rounding_rtol,
        )

    @property
    def width(self) -> float:
        return float(np.prod(self.image_shape))

    def published_scores(self, coef: Array, intercept: Array, few: Array | None) -> Array | None:
        """Scores in extended precision; those of all about a far mean, which costs no rounding."""
        design = self.design
        if few is not None:
            X, W = design.X[few], coef.T.astype(Extended)
            return (X.times(W) if X.sparse else X.written_out() @ W) + intercept
        if design.late is not None or design.centre is None:
            return None
        self.work.add_pass()
        mean, W = design.centre, coef.T.astype(np.float64)
        about = np.concatenate(design.near.each(lambda X: X.times(W, LONG)))
        return about + [exact_inner(w, mean, b) for w, b in zip(coef, intercept, strict=True)]

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
    other.rounding_rtol = like.rounding_rtol
    other._take_units(design, lengths * radius**2, radius)
    other.C, other.ridge = np.inf, None
    other._begin()
    return other


class GramAdapter(KernelMatrixAdapter, problem.GramAdapter):
    """A problem in the feature space of a kernel, of which only inner products are computed."""

    def __init__(self, *arguments: Any, rounding_rtol: float = 0.0, **options: Any) -> None:
        self._whole = options.get("whole", True) or arguments[0] is None
        self._divided = options.get("scale") is not None
        super().__init__(*arguments, **options)
        self.rounding_rtol, self.cheap_sums = rounding_rtol, self._whole
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

    def _error_model(self) -> KernelErrors:
        gram = self.examples
        return KernelErrors(
            self._extended_square,
            self.rows,
            self.radius,
            highest=float(np.abs(gram.diagonal).max() + gram.constant**2) / self.radius**2,
            value_error=PAIRWISE if self._divided else 0.0,
            kernel_error=gram.error,
            extended_values=extended_values(gram.X.array) if self._is_gaussian else 0,
            unit_error=0.0 if gram.kernel is None else float(np.finfo(gram.diagonal.dtype).eps),
            rounding_rtol=self.rounding_rtol,
        )

    def _extended_square(self, few: Array, V: Array) -> float:
        """``V' (K + constant^2) V`` of extended coefficients on few examples."""
        squared = np.sum(V * self._extended(few, few, V))
        return squared + np.sum((self.examples.constant * V.sum(0)) ** 2)

    def _extended(self, examples: Array, few: Array, V: Array) -> Array:
        """``K[examples, few] V``, some examples at a time."""
        size = max(1, EXTENDED_TERMS // max(1, len(few)))
        some = (examples[i : i + size] for i in range(0, len(examples), size))
        return np.concatenate([self._values(part, few, len(examples)) @ V for part in some])

    @property
    def _is_gaussian(self) -> bool:
        products = self.examples.products
        return products is not None and products.gaussian and not self._divided

    def _values(self, i: Array, j: Array, n: int) -> Array:
        """Kernel values, in extended precision if these take no more than a second for n of i."""
        X = self.examples.X
        if self._is_gaussian and n * len(j) <= extended_values(X.array):
            return extended_gaussian(on_host(X.array), i, j, self.examples.kernel.gamma)
        return self.examples.values(i, j).astype(np.float64)

    def published_scores(self, coef: Array, intercept: Array, few: Array | None) -> Array | None:
        some, n = np.flatnonzero(coef.any(axis=0)), self.rows.n_examples
        if few is None and n * len(some) > EXTENDED_TERMS_OF_ALL:
            return None
        examples = np.arange(n) if few is None else few
        return self._extended(examples, some, coef[:, some].T.astype(Extended)) + intercept

    def lowest_margins(self, w: Predictor) -> LowestMargins:
        return super().lowest_margins(self.combine(w.coef, precise=True))

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
