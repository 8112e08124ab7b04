"""The problem of kernel predictors: the image of a vector is its scores on all examples."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._typing import Array
from marginsvm.certify.certifiable import LowestMargins
from marginsvm.certify.exactly.overlap import distinct
from marginsvm.certify.kernel_errors import KernelErrors
from marginsvm.certify.prices import hinge_caps
from marginsvm.data.block import Block
from marginsvm.data.threads import single_threaded_blas
from marginsvm.data.work import Work
from marginsvm.kernel_matrix.adapter import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import HasColumns, HasLayout
from marginsvm.kernel_matrix.columns import CACHE_SIZE, ColumnCache, ColumnPlan
from marginsvm.kernel_matrix.kernel_values import KernelValues
from marginsvm.kernel_matrix.layout import GRAM, RowLayout, common_layout
from marginsvm.kernel_matrix.scale import Scale
from marginsvm.kernel_matrix.single import Formula, SingleColumns
from marginsvm.rows import LpNorm, Predictor, Rows, Vector, output_rows, support_of

# Examples whose kernel matrix is searched for negative eigenvalues: a tenth of a second.
_EXAMINED = 500
# Examples whose mean stands for that of all where a product with the whole matrix is to be spared.
_CENTRE = 256
# A squared norm below minus this, relative to the mass squared and the largest kernel value, is no
# rounding, not even of float32, of a combination of rows: the kernel has negative eigenvalues.
_NEGATIVE = 1e-5
# Roundings of a kernel value, as of a product and an exponential: an eigenvalue of n examples may
# be off by n times as much.
_ROUNDINGS = 16


class GramAdapter(KernelMatrixAdapter, HasColumns, HasLayout):
    """A problem in the feature space of a kernel, of which only inner products are computed.

    The image of a vector is its scores ``K V``, for its coefficients V on the examples. A round
    costs one product with K, in ``combine``; norms and margins are computed from the scores.

    Parameters
    ----------
    kernel : callable or None
        ``kernel(X, Y)`` gives a block of the kernel matrix; None: X is that matrix.
    X : array-like
        Examples, or their kernel matrix.
    rows : Rows
    C : float
        Soft margin (dimensionless): each row has its own slack coordinate ``1 / sqrt(2 C)``.
    norm : LpNorm
        Norm of predictors, with p = 2.
    constant : float
        Its square is added to all kernel values.
    plan : ColumnPlan or None
        For algorithms that use columns of the Gram matrix, which then is never formed.
    whole : bool
        Whether rounds need products with the whole matrix. False: only with some columns, which
        are computed when they are needed, and kept.
    rounding_rtol : float
        Relative rounding error of a bound that is small enough (dimensionless).
    frame : Scale or None
        The units of the problem; None: they are measured.
    formula : Formula or None
        What the kernel is, if that is known.
    cache_size : float
        Memory for kernel values (MB).
    kernel_error : float
        Error of the kernel values, as far as they are computed by this package.
    """

    _output_axis = -1

    def __init__(
        self,
        kernel: Callable[[Any, Any], Array] | None,
        X: Any,
        rows: Rows,
        C: float = np.inf,
        norm: LpNorm = LpNorm(),  # noqa: B008 - frozen
        constant: float = 0.0,
        plan: ColumnPlan | None = None,
        whole: bool = True,
        rounding_rtol: float = 0.0,
        frame: Scale | None = None,
        formula: Formula | None = None,
        cache_size: float = CACHE_SIZE,
        kernel_error: float = 0.0,
    ) -> None:
        if norm.p != 2.0:
            raise ValueError(
                f"p={norm.p:.4g} needs the features themselves, which a kernel does not give; "
                "use kernel='linear', or p=2"
            )
        work = Work()
        values = KernelValues(kernel, X, rows, constant, plan, whole, work, formula, cache_size)
        self._values, self.cheap_sums = values, values.whole
        self._constant, self.cache_size = constant, cache_size
        diagonal = self._values.diagonal
        highest = float(np.abs(diagonal).max()) + constant**2
        scale = frame
        if scale is None:
            squared = _squared_norms(self._values, rows, constant, bool(plan and kernel))
            tallest = float(np.sqrt(highest))
            scale = Scale.of(squared, rows, C, lambda: tallest, tallest)
        errors = KernelErrors(
            self._values.extended_square,
            rows,
            scale.radius,
            highest=highest / scale.radius**2,
            value_error=self._values.value_error,
            kernel_error=kernel_error,
            extended_values=self._values.extended_values,
            unit_error=0.0 if kernel is None else float(np.finfo(diagonal.dtype).eps),
            rounding_rtol=rounding_rtol,
        )
        super().__init__(rows, rows.score_shape, norm, scale, errors, work)
        self.precision, self._highest = diagonal.dtype, errors.highest

    @property
    def dimensions(self) -> float:
        """Of the feature space, if the kernel is a polynomial in few features; or infinite."""
        return self._values.dimensions

    def _adjoint(self, V: Array, precise: bool) -> Array:
        product = self._values.multiply(V, precise)
        return (product + self._constant**2 * V.sum(axis=0)) / self.radius**2

    def _scores(self, image: Array, precise: bool) -> Array:
        return image

    def inner(self, w: Predictor, u: Predictor) -> float:
        return float(np.vdot(self.rows.adjoint(w.coef), u.image))

    def _kernel_block(self, i: Array, j: Array) -> Array:
        K = self._values.values(i, j)
        K += self._constant**2
        K /= self.radius**2
        return K

    def norm(self, w: Predictor) -> float:
        squared, mass = self.dot(w, w), np.float64(np.abs(w.coef).sum())  # its square may overflow
        if isinstance(w, Vector) and squared < -_NEGATIVE * mass**2 * max(1.0, self._highest):
            raise ValueError(self._indefinite(f"a squared norm is {squared:.3g}"))
        return float(np.sqrt(max(squared, 0.0)))

    def _converted(self, image: Array, t: float) -> Array:
        return image

    def with_C(self, C: float) -> GramAdapter:  # noqa: N802
        other = self._rescaled(self._scale.with_C(C, self.rows))
        highest = self._highest * (self.radius / other.radius) ** 2
        assert isinstance(self.errors, KernelErrors)
        other.errors = replace(self.errors, radius=other.radius, highest=highest)
        other._highest = highest
        return other

    def alone(self, j: int) -> GramAdapter:
        rows, other = output_rows(self.rows).output(j), copy(self)
        other.rows, other.n_rows, other._image_shape = rows, rows.n_rows, rows.score_shape
        assert isinstance(self.errors, KernelErrors)
        other.errors = replace(self.errors, rows=rows)
        vars(other).pop("_layout", None)
        scale = self._scale if self._slack is None else self._scale.softened(self.C, rows)
        one = other._rescaled(scale)
        return one if self.caps is None else one.below(hinge_caps(self.caps).output(j))

    def predictor(self, w: Predictor, offsets: Array) -> tuple[Array, Array]:
        V = self.rows.adjoint(w.coef) / self.radius**2
        intercept = self.rows.score_offsets(offsets) + self._constant**2 * V.sum(axis=0)
        return V.T, np.asarray(intercept)

    # Kernels that are not positive semidefinite.

    def flaw(self) -> str:
        known = self._values.is_definite  # eigenvalues take half of the time of a small fit
        least, rounding = (0, 0) if known else self._least_eigenvalue(centred=self.rows.balanced)
        return "" if least >= -rounding else self._indefinite("it has negative eigenvalues")

    @property
    def mean_square(self) -> float:
        squared = super().mean_square
        if self._values.whole or not self.rows.balanced:
            return squared
        some = self._some_examples()  # whose mean stands for that of all
        v = np.ones(len(some)) if self.rows.weights is None else self.rows.weights[some]
        v = v / v.sum()
        return max(squared - float(v @ self._values.block(some, some) @ v), 0.0)

    def _some_examples(self) -> Array:
        n = self.rows.n_examples
        return np.unique(np.linspace(0, n - 1, min(n, _EXAMINED)).astype(int))

    def _least_eigenvalue(self, *, centred: bool) -> tuple[float, float]:
        """Least eigenvalue of the kernel matrix of some examples, and its rounding error.

        Centred: for coefficients that sum to 0, as those of predictors with an unpenalised
        intercept do.
        """
        some = self._some_examples()
        K = self._values.block(some, some).astype(np.float64) + self._constant**2
        eps = float(np.finfo(self._values.dtype).eps)
        rounding = _ROUNDINGS * len(some) * eps * float(np.abs(K).max())
        if centred:
            K = K - K.mean(axis=0)
            K = K - K.mean(axis=1)[:, None]
        return float(np.linalg.eigvalsh(K)[0]), rounding

    def _indefinite(self, evidence: str) -> str:
        text = (
            f"The kernel matrix is not positive semidefinite ({evidence}): it holds no inner "
            "products, and margins mean nothing. Choose another kernel, such as 'rbf', or other "
            "parameters of this one"
        )
        least, rounding = self._least_eigenvalue(centred=True)
        conditionally = least >= -rounding and not (self.rows.balanced or self._constant)
        return text + (", or set fit_intercept=True, which helps here." if conditionally else ".")

    # What bounds and proofs need.

    def lowest_margins(self, w: Predictor) -> LowestMargins:
        return super().lowest_margins(self.combine(w.coef, precise=True))

    def published_scores(self, coef: Array, intercept: Array, few: Array | None) -> Array | None:
        return self._values.published_scores(coef, intercept, few)

    def fingerprints(self) -> Array | None:
        X = getattr(self._values.X, "X", self._values.X)  # without what is kept beside it
        at_random = np.random.default_rng(0).random(X.shape[1]) - 0.5
        return np.asarray(X @ at_random, dtype=np.float64)

    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """Features of some examples, see ``Certifiable``.

        Of a given kernel matrix, these are its rows. Computed kernel values are rounded, so that
        they prove nothing about the kernel. But equal examples are equal for any kernel: there
        is then one feature for each set of equal examples.
        """
        factor, intercept = np.ones(len(examples)), self.rows.balanced or self._constant != 0.0
        X = self._values.X[examples]
        if self._values.kernel is None:
            return X, factor, intercept
        if isinstance(X, Block):
            if X.scale is not None:  # multiples of equal examples are equal
                intercept = X.constant != 0.0
            X = X.undivided.on_host().matrix
        X = getattr(X, "X", X)  # the kernel may have a prepared form of its examples
        return distinct(X), factor, intercept

    # Capabilities.

    @property
    def single(self) -> SingleColumns:
        """Columns of kernel values in float32."""
        return self._values.single

    @property
    def constant(self) -> float:
        """Its square is added to all kernel values."""
        return self._constant

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
        few = support_of(V)
        found = self._values.scores_of(exact, few, V[few]) + self._constant**2 * V.sum(axis=0)
        F[exact] = found / self.radius**2
        return Vector(F, q)

    def columns(self) -> ColumnCache:
        return self._values.columns

    def column_scale(self) -> float:
        return 1.0 / self.radius**2

    def assemble(self, F: Array, q: Array) -> Vector:
        return Vector(F, q)

    def stored_products(self, dtype: Any) -> Array:
        """The inner products of all examples, where they fit in memory."""
        K = self._values.must_be_stored()
        if self._constant != 0.0 or self.radius != 1.0:
            K = (K + self._constant**2) / self.radius**2
        return K.astype(dtype, copy=False)

    @cached_property
    def _layout(self) -> RowLayout:
        K, none = self._values.must_be_stored(), np.empty(0, np.int32)
        return RowLayout(
            form=GRAM,
            values=np.asarray(K, order="C").reshape(-1),
            indices=none,
            indptr=none,
            n_columns=len(K),
            read=1.0,
            push=1.0 / self.radius**2,
            constant=self._constant**2,
            block=1,
            stride=int(np.prod(self.rows.score_shape[1:])),
            **common_layout(self.rows, self._scale, self._norm),
        )

    def layout(self) -> RowLayout:
        return self._layout


def about_the_mean(K: Array, rows: Rows) -> Array:
    """A Gram matrix, overwritten by that about the mean where rows are balanced."""
    if rows.balanced:
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
    return K


@single_threaded_blas()
def _squared_norms(values: KernelValues, rows: Rows, constant: float, sampled: bool) -> Array:
    """Squared norms of the examples; if balanced, of their differences from the mean."""
    squared = values.diagonal.astype(np.float64)
    if rows.balanced and values.whole:  # about the mean: a shift is not seen
        v = np.ones(len(squared)) if rows.weights is None else rows.weights
        if sampled and len(v) > _CENTRE:
            some = np.linspace(0, len(v) - 1, _CENTRE).astype(int)
            v = np.bincount(some, v[some], minlength=len(v))
        v = v / v.sum()
        from_mean = values.multiply(v, precise=True)
        squared = squared - 2.0 * from_mean + v @ from_mean
    return np.maximum(squared, 0.0) + constant**2
