"""Reads the quadratic programs, predictors and alpha of a fitted estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_outlier_detector, is_regressor
from sklearn.utils.validation import (
    _check_monotonic_cst,
    _check_sample_weight,
    column_or_1d,
)

from marginsvm._rounding import exact_inner
from marginsvm._typing import Array, Stored, Values
from marginsvm.certificate.bounded import Dual, Numbers, Primal, Rationals, dual, primal
from marginsvm.certificate.exact_algebra import refuting_weights
from marginsvm.certificate.exact_examples import (
    ExactBlocks,
    ExactFeatures,
    KernelMatrix,
)
from marginsvm.certificate.unwrapping import FittedEstimator
from marginsvm.problem.design import Design, mean_of
from marginsvm.problem.examples import Examples, FloatExamples
from marginsvm.problem.gram import Gram, distinct
from marginsvm.problem.kernel_functions import in_floats, kernel_on
from marginsvm.problem.matrix import Matrix, as_matrix, check_format, dense, plain
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.programs import (
    ProblemSpec,
    classification,
    one_class,
    regression,
)
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.source import Source


def class_weights(
    class_weight: str | Mapping[object, float] | None, y: Array, sample_weight: Array
) -> Array:
    """Weight of the class of each example.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        None: all weights are 1. ``"balanced"``: ``n / (k n_c)``, where k is the number of classes
        with an example of positive weight, ``n_c`` the sum of the sample weights of class c and n
        the sum of all; so a sample weight m counts like m copies. A dict maps labels to weights;
        missing labels have weight 1.
    y : ndarray of shape (n,)
        Labels.
    sample_weight : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
    """
    if class_weight is None:
        return np.ones(len(y))
    labels, codes = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str):
        totals = np.bincount(codes, weights=sample_weight)
        some = totals > 0  # the other classes take no part in a fit
        of_label = np.ones(len(labels))
        of_label[some] = totals.sum() / (np.count_nonzero(some) * totals[some])
    else:
        of_label = np.array(
            [class_weight.get(label, 1.0) for label in labels.tolist()], float
        )
    return of_label[codes]


@dataclass(frozen=True)
class Data:
    """The examples of positive weight, in the given units.

    Attributes
    ----------
    X : ndarray or CSR
    y, bounds : ndarray or None
        Labels or targets of all examples; intervals.
    weight : ndarray of shape (n_kept,)
        Sample weights times class weights.
    kept : ndarray of shape (n_kept,)
    n : int
        Number of all examples.
    """

    X: Stored | Matrix
    y: Array | None
    bounds: Array | None
    weight: Array
    kept: Array
    n: int

    @classmethod
    def of(
        cls,
        estimator: object,
        X: object,
        y: object,
        sample_weight: object,
        bounds: object,
    ) -> Data:
        """From the arguments of fit; without y, X is blocks ``(X, y)`` or ``(X, y, weight)``."""
        if y is None and bounds is None and not is_outlier_detector(estimator):
            return cls._of_source(estimator, X)
        check_format(X)
        Z: Stored = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        # objects and strings are read as by fits
        if Z.ndim > 1 and Z.dtype.kind not in "fiub":
            Z = Z.astype(np.float64)
        n = Z.shape[0]
        like = Z if Z.dtype.kind in "fiub" and Z.ndim > 1 else np.zeros((n, 1))
        weight = _check_sample_weight(sample_weight, like, dtype=np.float64)
        labels = None if y is None else np.asarray(y)
        if labels is not None and hasattr(estimator, "classes_"):
            labels = column_or_1d(y, warn=True)
            weight = _with_class_weights(estimator, labels, weight)
        kept = np.flatnonzero(weight > 0)
        if len(kept) < n:
            given = getattr(estimator, "kernel", "linear") == "precomputed"
            Z = (Z[:, kept] if given else Z)[kept]
        ends = None if bounds is None else np.asarray(bounds)
        return cls(Z, labels, ends, weight[kept], kept, n)

    @classmethod
    def _of_source(cls, estimator: object, source: Values) -> Data:
        """Blocks stay where they are; kernels need the examples in memory."""
        examples, y, weight = Source(source).read()
        if hasattr(estimator, "classes_"):
            y = column_or_1d(y, warn=True)
            weight = _with_class_weights(estimator, y, weight)
        kept = np.flatnonzero(weight > 0)
        X: Stored | Matrix = examples(kept)
        if not hasattr(estimator, "coef_"):
            X = plain(X[np.arange(len(kept))])
        return cls(X, y, None, weight[kept], kept, len(y))

    def examples(self, index: Array) -> Stored:
        """Some of the examples, as an array."""
        return plain(self.X[index])


def _with_class_weights(estimator: object, y: Array, weight: Array) -> Array:
    given = getattr(estimator, "class_weight", None)
    return weight * class_weights(given, y, weight)


@dataclass(frozen=True)
class Part:
    """One program, with its published predictor.

    Attributes
    ----------
    qp : QuadraticProgram
    w, f : ndarray
        In the units of the examples.
    columns : list of int
        Columns of the published weights.
    """

    qp: QuadraticProgram
    w: Array
    f: Array
    columns: list[int]

    def primal(self, numbers: Numbers) -> Primal:
        return primal(self.qp, self.w, self.f, numbers)

    def alpha(self, table: Array, numbers: Numbers) -> Array:
        """Alpha of the rows from the published weights, as floats."""
        return self.qp.rows.stated(numbers.array(table[:, self.columns]))

    def dual(self, table: Array, numbers: Numbers) -> Dual:
        return dual(self.qp, self.alpha(table, numbers), numbers)


class FittedPrograms:
    """The programs of a fitted estimator: one, or one per output.

    Parameters
    ----------
    estimator : fitted estimator
    data : Data
    numbers : Floats or Rationals

    Attributes
    ----------
    spec : ProblemSpec
    parts : list of Part
    examples : Design, ExactFeatures or KernelMatrix
    codes : ndarray or None
    shape : tuple of int
        Shape of attributes with one value per output: () or (n_outputs,).
    low, high : ndarray of shape (n, n_outputs), or None
        Ends of the intervals, as floats; without epsilon.
    """

    low: Values = None
    high: Values = None
    codes: Array | None = None
    shape: tuple[int, ...] = ()

    def __init__(
        self, estimator: FittedEstimator, data: Data, numbers: Numbers
    ) -> None:
        self.estimator = estimator
        self.data = data
        self.numbers = numbers
        self.spec = ProblemSpec.of(estimator)
        self.regression = is_regressor(estimator)
        self.one_class = is_outlier_detector(estimator)
        spec = self.spec
        self.free = spec.intercept_is_free and not self.one_class
        self.fit_intercept = bool(spec.fit_intercept) and not self.one_class
        self.constant = spec.constant if self.fit_intercept else 0.0
        if spec.normalize and self.fit_intercept:
            self.constant = estimator.constant_
        b = np.zeros(1) if self.one_class else np.atleast_1d(estimator.intercept_)
        self.intercept = numbers.array(np.asarray(b, float))
        # what rounding has taken from b, when it was moved to the mean
        self.lost = 0 * self.intercept
        found = self._features() if hasattr(estimator, "coef_") else self._kernel()
        # programs are typed for floats; their two values exist in fractions as well
        self.examples = cast("FloatExamples", found)
        self.weight = numbers.array(data.weight)
        self.C = numbers.number(spec.C) if np.isfinite(spec.C) else inf
        self.nu = None if spec.nu is None else numbers.number(spec.nu)
        if self.regression:
            self._targets()
        elif self.one_class:
            qp = one_class(self.examples, self.nu or 0, self.weight)
            self.parts = [Part(qp, self.w, self.b, [0])]
        else:
            self._classes()

    # Examples and predictors.

    def _features(self) -> Examples:
        estimator = self.estimator
        numbers = self.numbers
        X = self.data.X
        coef = estimator.coef_
        coef = np.atleast_2d(dense(coef))
        self.p = LpNorm.named(self.spec.p, coef.shape[1]).p
        signs = getattr(estimator, "monotonic_cst", None)
        self.signs = (
            None
            if signs is None
            else _check_monotonic_cst(estimator, signs).astype(int)
        )
        if self.constant and self.signs is not None:
            self.signs = np.append(self.signs, 0)
        coef = numbers.array(coef.astype(float))
        constant = numbers.number(self.constant)
        self.w = coef
        self.b = self.intercept
        if constant:
            self.w = np.hstack([coef, (self.b / constant)[:, None]])
            self.b = 0 * self.b
        if numbers.exact:
            given = as_matrix(in_floats(X))
            if given.in_memory:
                return self._exact(given)
            centre = mean_of(given) if self.free else np.zeros(self.w.shape[1])
            return ExactBlocks(given, self._exact, centre)
        matrix = as_matrix(in_floats(X))
        constant = self.constant
        if self.spec.normalize:
            matrix = matrix.divided(constant)
            constant = 0.0
        mean: Values = mean_of(matrix) if self.free else None
        design = Design.of(matrix, mean, constant, norm=LpNorm(self.p))
        # the radius counts 1 / 2C, so that C radius^2 neither vanishes nor overflows
        squared = design.squared_dual_norms(self.p).max() + 0.5 / self.spec.C
        radius = float(np.sqrt(squared)) or 1.0
        self.w = self.w * radius
        if self.free:
            b = [
                exact_inner(c, mean, x)
                for c, x in zip(coef, self.intercept, strict=True)
            ]
            of_all = zip(coef, self.intercept, b, strict=True)
            self.lost = np.array(
                [exact_inner(c, mean, x, -rounded) for c, x, rounded in of_all]
            )
            self.b = np.array(b)
        if constant:
            self.w[:, -1] = self.intercept * (radius / constant)
        return design.in_units(radius)

    def _exact(self, matrix: Matrix) -> ExactFeatures:
        """Examples in memory as fractions."""
        numbers = self.numbers
        X = self.numbers.array(matrix.array)
        if self.constant:
            X = np.hstack([X, numbers.array(np.full((len(X), 1), self.constant))])
        if self.spec.normalize:
            X = np.array([x / (numbers.length(x) or 1) for x in X], dtype=object)
        return ExactFeatures(X, centred=self.free)

    def _kernel(self) -> Examples:
        estimator = self.estimator
        numbers = self.numbers
        data = self.data
        self.p = 2.0
        self.signs = None
        rounding = 0.0
        self.given = estimator.kernel == "precomputed"
        X = plain(data.X)
        K = X
        if not self.given:
            kernel = kernel_on(self.spec, X, data.weight)
            if callable(estimator.kernel):
                K = kernel(X, X)
            else:
                wide = estimator._widens_kernels or self.spec.normalize  # as fits do
                gram = Gram(kernel, X.astype(np.float64) if wide else X, cache_size=inf)
                K = gram.whole()
                rounding = gram.rounding
        K = numbers.array(K)
        scale = None
        constant = numbers.number(self.constant)
        if self.spec.normalize:
            squares = numbers.array(np.ones(len(K))) if self.given else np.diagonal(K)
            squares = np.maximum(squares, 0 * squares) + constant * constant
            roots = [numbers.sqrt(x) for x in squares.tolist()]
            scale = numbers.array(np.array([1 / x if x else 0 * x for x in roots]))
        coef = np.zeros((len(estimator.dual_coef_), len(K) + 1))
        coef[:, np.searchsorted(data.kept, estimator.support_)] = estimator.dual_coef_
        self.w = numbers.array(coef)
        self.b = self.intercept
        if constant:
            self.b = 0 * self.b
            self.w[:, -1] = self.intercept / constant
        return KernelMatrix(K, scale, constant, numbers, rounding)

    # Programs.

    def _classes(self) -> None:
        classes = self.estimator.classes_
        k = len(classes)
        labels = self.data.y
        assert labels is not None
        found, self.codes = np.unique(labels[self.data.kept], return_inverse=True)
        if not np.array_equal(found, classes):
            raise ValueError(
                f"the examples of positive weight have the classes {found.tolist()}, but "
                f"{type(self.estimator).__name__} was fitted to {classes.tolist()}"
            )
        qp = classification(
            self.examples,
            self.codes,
            k,
            C=self.C,
            loss=self.spec.loss,
            nu=self.nu,
            weight=self.weight,
            intercept=self.free,
            signs=self.signs,
            p=self.p,
        )
        columns = [*range(k)] if k > 2 else [0]
        self.parts = [Part(qp, self.w, self.b, columns)]

    def _targets(self) -> None:
        numbers = self.numbers
        data = self.data
        spec = self.spec
        given = np.asarray(data.y if data.bounds is None else data.bounds, float)
        both = (given, given) if data.bounds is None else (given[..., 0], given[..., 1])
        self.shape = both[0].shape[1:]
        self.low, self.high = (end.reshape(data.n, -1)[data.kept] for end in both)
        found = data.bounds is not None or spec.nu is not None
        self.epsilon = 0.0 if found else self.estimator.epsilon
        epsilon = numbers.number(self.epsilon)
        low = numbers.array(self.low)
        high = numbers.array(self.high)
        width = numbers.array(np.atleast_1d(getattr(self.estimator, "epsilon_", 0.0)))
        k = low.shape[1]
        if self.w.shape[0] != k or (spec.nu is not None and len(width) != k):
            raise ValueError(
                f"{type(self.estimator).__name__} and y differ in their outputs"
            )
        joint = self.p != 2.0 and k > 1
        self.parts = []
        for o in [slice(0, k)] if joint else [slice(o, o + 1) for o in range(k)]:
            centre = numbers.number(0.0)
            b = self.b[o]
            if self.free:  # large targets keep their digits about one of them
                finite = self.low[:, o][np.isfinite(self.low[:, o])]
                centre = numbers.number(
                    float(np.median(finite)) if len(finite) else 0.0
                )
                b = (b - centre) + self.lost[o]
            ends = [(low[:, o] - centre) - epsilon, (high[:, o] - centre) + epsilon]
            qp = regression(
                self.examples,
                *(ends if joint else (end[:, 0] for end in ends)),
                C=self.C,
                loss=spec.loss,
                nu=self.nu,
                weight=self.weight,
                intercept=self.free,
                signs=self.signs,
                p=self.p,
            )
            f = np.append(b, width[o]) if spec.nu is not None else b
            self.parts.append(Part(qp, self.w[o], f, [*range(k)][o]))

    # Joint bounds, in the user's units.

    @property
    def radius(self) -> Values:
        """Scale by which the examples are divided."""
        return self.examples.radius

    def table(self, weights: sp.csr_array) -> Array | None:
        """The published weights of the kept examples; None: they are invalid."""
        m = sum(len(part.columns) for part in self.parts)
        fits = sp.issparse(weights) and weights.format == "csr"
        if (
            not fits
            or weights.shape != (self.data.n, m)
            or not np.isfinite(weights.data).all()
        ):
            return None
        if not self.regression and (weights.data < 0).any():
            return None
        return weights.toarray()[self.data.kept]

    def refuted(
        self, table: Array, output: int = 0, *, integers_wanted: bool = False
    ) -> dict[tuple[int, int], int] | None:
        """An exact alpha near a table's that proves that no predictor fits without slack.

        For classes: that they overlap; for targets: of one output.

        Parameters
        ----------
        table : ndarray of shape (n, n_columns)
        output : int
        integers_wanted : bool
            If False, an empty dict may be returned: such an alpha is proved to exist.

        Returns
        -------
        dict or None
            By example and column; None: nothing is proved.
        """
        rows = self.parts[0].qp.rows
        q = table.copy()
        gains = None
        if self.regression:
            q[:, np.arange(q.shape[1]) != output] = 0.0
        else:
            q = rows.stated(q).reshape(q.shape)
        i, j = np.nonzero(q)
        weights = np.abs(q[i, j])
        if self.regression:
            S = np.sign(q[i, j])[:, None]
            gains = S[:, 0] * np.where(
                S[:, 0] > 0, *(end[i, j] for end in self.ends_outward())
            )
        else:
            S = rows.of_scores(i * q.shape[1] + j)[:, : rows.n_intercepts]
        X = self.data.examples(i)
        if self.examples.is_kernel:
            X = X if self.given else distinct(X)
        elif self.spec.normalize:
            few, at = np.unique(i, return_inverse=True)
            norms = np.hypot(as_matrix(self.data.examples(few)).norms(), self.constant)[
                at
            ]
            weights = weights / np.where(norms > 0, norms, 1.0)
        signs = None if self.signs is None else self.signs[: X.shape[1]]
        found = refuting_weights(
            X,
            S,
            weights,
            intercept=self.fit_intercept,
            signs=signs,
            gains=gains,
            integers_wanted=integers_wanted,
        )
        if found is None:
            return None
        sign = S[:, 0] if self.regression else np.ones(len(i))
        places = zip(i.tolist(), j.tolist(), strict=True)
        return {
            at: int(s) * x for at, s, x in zip(places, sign, found, strict=False) if x
        }

    def ends_outward(self) -> tuple[Array, Array]:
        """Interval ends as floats, rounded outward: infeasible here is infeasible exactly."""
        if not self.epsilon:
            return self.low, self.high
        exact = Rationals()
        epsilon = Rationals().number(self.epsilon)
        low = np.vectorize(exact.down, otypes=[float])(exact.array(self.low) - epsilon)
        return low, np.vectorize(exact.up, otypes=[float])(
            exact.array(self.high) + epsilon
        )

    def margin_bound(self, dual: Dual) -> Values:
        """Upper bound on the margin of any predictor, in the user's units."""
        if self.parts[0].qp.game:
            return dual.margin_bound * self.radius
        least = self.norm_of(dual.objective(), -1)
        if not 0 < least < inf:
            return 0 if least == inf else inf
        return 1 / least * (1 + self.numbers.gamma(4))

    def norm_of(self, objective: Values, direction: int) -> Values:
        """``sqrt(2 P)`` in the user's units, rounded up (1) or down (-1)."""
        if objective == inf:
            return inf
        numbers = self.numbers
        out = 1 + direction * (numbers.gamma(4) + numbers.error_of_length(1))
        return numbers.sqrt(2 * objective) * out / self.radius
