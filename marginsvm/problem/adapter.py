"""KernelMatrixAdapter: the maximum-margin problem as algorithms use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from marginsvm._rounding import UNIT, inner
from marginsvm._threads import cached_property, copied, single_threaded_blas
from marginsvm._typing import Array, KernelFunction, Stored
from marginsvm.problem.column_cache import (
    CACHE_SIZE,
    FOR_COLUMNS,
    TAKEN,
    ColumnCache,
    ColumnPlan,
)
from marginsvm.problem.design import Design, mean_of
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.gram import Gram
from marginsvm.problem.matrix import (
    FEW_TAKEN,
    FLOAT64,
    Matrix,
    as_matrix,
    support_of,
)
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.one_pass import respond_in_one_pass, to_read_once
from marginsvm.problem.programs import (
    check_finite,
    check_single,
    cost_of_slack,
    largest_square,
    programs_of,
)
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.responses import (
    Response,
    Softmax,
    below,
    softmax,
)
from marginsvm.problem.rows import Rows, share_caps
from marginsvm.problem.vectors import (
    BestResponse,
    Predictor,
    Vector,
    from_the_start,
    responded,
)

# Number of examples whose mean is the centre where iterations do not depend on the radius: any
# point among the examples will do, and the mean of all would take a pass.
CENTRE = 256
# A squared norm |A'alpha|^2 below minus this, relative to sum(alpha)^2 and the largest kernel
# value, is not due to rounding, even of float32: the kernel has negative eigenvalues.
NEGATIVE = 1e-5
# Cost of slack (in radii): squares of sums of such weights still are numbers.
LARGEST_COST = 1e100
INDEFINITE = (
    "The kernel matrix is not positive semidefinite ({}): it holds no inner products, and margins "
    "mean nothing. Choose another kernel, such as 'rbf', or other parameters of this one{}."
)


@dataclass
class Work:
    """Passes and kernel evaluations of a fit so far.

    Attributes
    ----------
    passes : float
        Passes over the examples; with kernels, products with the Gram matrix. Looking at a tenth of
        the examples is a tenth of a pass.
    kernel_evaluations : int
        Inner products of two examples (values of a kernel, or entries of a column).
    """

    passes: float = 0.0
    kernel_evaluations: int = 0

    def count(self, number: int) -> None:
        """Count inner products of two examples."""
        self.kernel_evaluations += number


class KernelMatrixAdapter(ABC):
    """The problem ``max_w min_r <a_r, w> / |w|`` over rows ``a_r``, the signed examples.

    The multiclass reduction is ``rows``: margins are ``rows.margins(scores)``, coefficients of the
    examples ``rows.adjoint(q)``, so that no algorithm depends on how many classes there are. Nor
    does it depend on whether X is sparse or in files, or on whether there is a kernel.

    Rows are divided by the largest of their norms, and A is the matrix that has them as its rows. A
    vector is ``A^T c`` for coefficients c, see :class:`marginsvm.problem.vectors.Vector`; it stands
    for a predictor as well. What an algorithm calls:

    ========================================  =====================================================
    ``zeros``, ``combine(q)``, ``row(r)``     vectors: 0, ``A^T q``, a single row
    ``respond(w, mu, response)``              one pass: the best response q to w, its ``A^T q``, and
                                              the smallest margin of w
    ``margins(w)``, ``scores(w)``             of all rows, and of all examples
    ``dot(w, u)``, ``norm(w)``                ridge included
    ``gram(r, s)``                            inner products of rows, by their flat indices
    ``refresh(w)``                            w recomputed from its coefficients
    ``mirrored(theta)``, ``add_predictors``   for norms other than the Euclidean one
    ``columns()``                             cached columns of the examples' Gram matrix
    ``programs``, ``w_of(w)``                 the quadratic programs, and w as these have it
    ========================================  =====================================================

    Parameters
    ----------
    examples : Design or Gram
        In the user's units.
    rows : Rows
        The labels, in the form of rows.
    C : float
        Soft margin (dimensionless): ``ridge`` is 1 / (2 C). Infinite: a hard margin.
    norm : LpNorm
        Norm of predictors. For p = 2 a vector is its own predictor; otherwise its predictor is
        the gradient of half the squared dual norm at the vector, the *mirror image*.
    squared : ndarray of shape (n_examples,)
        Squared norms of the examples, in the user's units.
    unit : float
        The radius where all rows are zero (user's units).

    Attributes
    ----------
    examples : Design or Gram
        In units of the radius, for certificates and solvers.
    design : Design or None
        ``examples``, if they have features.
    n_rows : int
    radius : float
        Largest norm of a row in the user's units, ridge included; with an unpenalised intercept, of
        examples about their mean. Everything else here is in units of it.
    ridge : ndarray of shape rows.shape or None
        Diagonal of the ridge, ``1 / (2 C m)`` for sample weight m, added to squared norms of rows.
    nu, upper : float or None, ndarray of shape (n_examples,) or None
        nu of nu-SVC (dimensionless), and the upper bounds of the dual variables, which sum to 1.
        Intervals: nu of nu-SVR.
    loss : str
        ``"squared_hinge"`` or ``"hinge"``.
    costs : float or ndarray of shape (n_outputs,)
        C in the units of each output.
    precision : dtype
        Floating-point type of iterations.
    work : Work

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.problem.adapter import LinearAdapter
    >>> from marginsvm.problem.rows import make_rows
    >>> X, codes = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1, 0])
    >>> problem = LinearAdapter(X, make_rows(codes, 2, balanced=False))
    >>> best = problem.respond(problem.zeros())  # the zero predictor has margin 0 on all rows
    >>> best.vector.coef, best.weights.mass
    (array([0.5, 0.5]), 1.0)
    >>> problem.radius, problem.margins(best.vector)  # in units of the radius, squared
    (2.0, array([0.5  , 0.125]))
    """

    examples: FloatExamples
    design: Design | None = None
    nu: float | None = None
    loss = "squared_hinge"
    costs: float | Array
    precision: np.dtype = FLOAT64
    work: Work

    def __init__(
        self,
        examples: FloatExamples,
        rows: Rows,
        C: float,
        norm: LpNorm,
        squared: Array,
        unit: float,
    ) -> None:
        self.rows = rows
        self.n_rows = rows.n_rows
        self.norm_of_predictors = norm
        self.upper: Array | None = None
        longest = largest_square(examples, squared, C, self._weights, unit)
        radius = float(np.sqrt(rows.square * longest))
        self._take_units(examples, squared, radius or unit or 1.0)
        self._soften(C)

    def _take_units(
        self, examples: FloatExamples, squared: Array, radius: float
    ) -> None:
        self.radius = radius
        self._squared = squared
        self.examples = examples.in_units(radius)

    @property
    def _weights(self) -> Array:
        """Sample weights; a single one, if all are equal."""
        return np.ones(1) if self.rows.weights is None else self.rows.weights

    def _soften(self, C: float) -> None:
        """Set C and the ridge; the radius stays."""
        self.C = C
        self.costs = C
        self.ridge = None
        if np.isfinite(C):
            cost = cost_of_slack(C, self._weights, self.radius)
            ridge = self.rows.square / (2.0 * cost)
            self.ridge = np.broadcast_to(self.rows.per_example(ridge), self.rows.shape)

    @property
    def in_memory(self) -> bool:
        """Whether the examples, or their kernel values, are in memory."""
        return self.design is None or self.design.X.in_memory

    def reread(self) -> None:
        """Raise an error if examples elsewhere are not those of the first pass any more."""
        if self.design is not None and not self.in_memory:
            self.design.X.each(len)

    @property
    def lengths(self) -> Array:
        """Squared norms of the examples."""
        return self._squared / self.radius**2

    # Implemented for features and for kernels.

    @property
    @abstractmethod
    def image_shape(self) -> tuple[int, ...]:
        """Shape of ``image``, see :class:`~marginsvm.problem.vectors.Vector`."""

    @abstractmethod
    def _adjoint(self, V: Array, precise: bool) -> Array:
        """Image of the vector with coefficients V of the examples (not of the rows)."""

    @abstractmethod
    def _scores(self, image: Array, precise: bool) -> Array:
        """Scores of all examples; float64 throughout where ``precise``."""

    @abstractmethod
    def inner(self, w: Predictor, u: Predictor) -> float:
        """Inner product without the ridge."""

    @abstractmethod
    def columns(self) -> ColumnCache:
        """Cache of columns of the examples' Gram matrix, their numbers sorted by class."""

    # Vectors.

    def zeros(self) -> Vector:
        """The zero vector."""
        return Vector(np.zeros(self.image_shape), np.zeros(self.rows.shape))

    def combine(self, q: Array, *, precise: bool = False) -> Vector:
        """``A^T q``."""
        q = q.reshape(self.rows.shape)
        return Vector(self._adjoint(self.rows.adjoint(q), precise), q)

    def row(self, r: int) -> Vector:
        """One row, as a vector."""
        q = np.zeros(self.rows.shape)
        q.flat[r] = 1.0
        return self.combine(q)

    def refresh(self, w: Vector) -> Vector:
        """Recompute a vector from its coefficients, without accumulated rounding."""
        return self.combine(w.coef, precise=True)

    def mirrored(self, theta: Array) -> Predictor:
        """The predictor ``theta``, without slack."""
        image = self.norm_of_predictors.mirrored(theta).reshape(self.image_shape)
        return Predictor(image, np.zeros(self.rows.shape))

    def add_predictors(self, w: Predictor, u: Predictor) -> Predictor:
        """The sum of two predictors, slack included; for p = 2, it is ``w + u``."""
        norm = self.norm_of_predictors
        if norm.p == 2.0 and norm.signs is None:
            return w + u
        image = norm.mirrored(norm.mirror(w.image) + norm.mirror(u.image))
        start = w.start if u.start is None else u.start
        return Predictor(image, w.coef + u.coef, start)

    @property
    def strong_convexity(self) -> float:
        """Strong convexity (dimensionless) of half the squared norm of predictors: p - 1."""
        return self.norm_of_predictors.p - 1.0

    @cached_property
    def programs(self) -> list[QuadraticProgram]:
        """The program of the problem; of each output, where outputs are separate problems."""
        return programs_of(
            self.examples,
            self.rows,
            self.costs,
            loss=self.loss,
            nu=self.nu,
            signs=self.signs,
            p=self.norm_of_predictors.p,
        )

    @cached_property
    def prices(self) -> list[Array | None]:
        """``C m`` of the examples, for each program; None: alpha has no upper bounds."""
        if self.loss != "hinge" or np.isinf(self.C):
            return [None] * len(self.programs)
        n = self.rows.n_examples
        m = self.rows.weights
        costs = np.broadcast_to(self.costs, len(self.programs)).astype(float)
        return [C * (np.ones(n) if m is None else m) for C in costs.tolist()]

    def w_of(self, vector: Predictor) -> Array:
        """The w of the programs, of shape (k, d), for a predictor of the problem."""
        if self.examples.is_kernel:
            return np.atleast_2d(self.rows.adjoint(vector.coef).T)
        return np.atleast_2d(self.norm_of_predictors.mirror(vector.image))

    @property
    def signs(self) -> Array | None:
        """Signs that the coefficients of the features must have; None: any."""
        return self.norm_of_predictors.signs

    def dot(self, w: Predictor, u: Predictor) -> float:
        """Inner product, ridge included (for p != 2: of ``w`` with the mirror image of ``u``)."""
        product = self.inner(w, u)
        return (
            product
            if self.ridge is None
            else product + inner(self.ridge * w.coef, u.coef)
        )

    def norm(self, w: Predictor) -> float:
        """Norm of a vector (the dual of the norm of predictors), ridge included."""
        return float(np.sqrt(max(self.dot(w, w), 0.0)))

    def gram(self, row_ids: Array, others: Array) -> Array:
        """A block of ``A A^T``, for two sets of rows given by their flat indices."""
        G = self.rows.map.gram(self.examples, row_ids, others)
        if self.ridge is not None:
            G += self.ridge.flat[row_ids][:, None] * (row_ids[:, None] == others)
        return G

    # Margins and best responses.

    def scores(self, w: Predictor, *, precise: bool = True) -> Array:
        """Scores of all examples; in float64 throughout where ``precise``."""
        return self._scores(w.image, precise)

    def margins(self, w: Predictor, *, precise: bool = False) -> Array:
        """Margins ``<a_r, w>`` of all rows."""
        return self.margins_of(self._scores(w.image, precise), w)

    def margins_of(self, scores: Array, w: Predictor) -> Array:
        """Margins of all rows from the scores of all examples."""
        margins = self.rows.margins(scores.reshape(self.rows.score_shape))
        if self.ridge is not None:
            margins += self.ridge * w.coef
        return margins

    def respond(
        self, w: Predictor, mu: float = 1.0, response: Response = softmax
    ) -> BestResponse:
        """Best response to the predictor ``w``, by one pass."""
        response = response if self.upper is None else below(response, self.upper)
        response = from_the_start(response, w)
        weights = response.respond(self.rows, self.margins(w), mu)
        return responded(self.combine(weights.q), weights)

    # The same problem with another C.

    def _copied(self) -> Self:
        """A copy without cached values that depend on C; those of the examples stay."""
        other = copied(self, "_column_cache", "_read_once")
        other.upper = None
        other.nu = None
        other.loss = "squared_hinge"
        return other

    def softened(self, C: float) -> Self:
        """The problem with another C in the same units, so that vectors keep their meaning.

        C should be large relative to ``1 / radius**2``: the ridge is then small.
        """
        other = self._copied()
        other._soften(C)
        return other

    def with_share(self, nu: float) -> Self:
        """The nu-SVC problem, see ``share_caps``."""
        other = self._copied()
        other.ridge = None
        other.nu = nu
        other.upper = share_caps(self.rows, nu)
        return other

    def with_hinge_loss(
        self, nu: float | None = None, units: float | Array = 1.0
    ) -> Self:
        """The problem with the hinge loss (intervals: the epsilon-insensitive loss).

        Parameters
        ----------
        nu : float or None
            Of intervals: nu of nu-SVR.
        units : float or ndarray of shape (n_outputs,)
            Units of the outputs, by which C is divided.
        """
        if self.ridge is None:
            return self
        with np.errstate(over="ignore", divide="ignore"):
            costs = self.C / units
            cost = cost_of_slack(np.max(costs), self._weights, self.radius)
        largest = float(cost.max())
        if not largest <= LARGEST_COST:
            raise ValueError(
                f"C and sample weights times squared norms come to {largest:.3g}, and loss="
                f"'hinge' computes with {LARGEST_COST:g} at most: scale X, or choose a smaller C"
            )
        other = self._copied()
        other.ridge = None
        other.loss = "hinge"
        other.nu = nu
        other.costs = costs
        return other

    def flaw(self) -> str:
        """Why margins on this data are meaningless, with advice; empty if they are not."""
        return ""


class LinearAdapter(KernelMatrixAdapter):
    """A problem of linear predictors; primal vectors have an entry for each feature.

    Parameters
    ----------
    X : array, CSR matrix or Matrix of shape (n_examples, n_features)
    rows : Rows
    C : float
        Soft margin (dimensionless).
    norm : LpNorm
        Norm of predictors.
    constant : float
        A constant feature that every example has (units of x): a penalised intercept. The last
        entry of every primal vector belongs to it, unless it is 0.
    plan : ColumnPlan or None
        For algorithms that use columns of the Gram matrix.
    whole : bool
        Whether iterations use all rows. Their number then depends on the radius, and the centre is
        the mean of all examples. False: the mean of some, which saves a pass.
    """

    examples: Design
    design: Design

    def __init__(
        self,
        X: Stored | Matrix,
        rows: Rows,
        C: float = np.inf,
        norm: LpNorm = LpNorm(),  # noqa: B008 - frozen
        constant: float = 0.0,
        plan: ColumnPlan | None = None,
        whole: bool = True,
    ) -> None:
        self._plan = plan
        self.work = Work()
        with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
            X = as_matrix(X)
            mean = None
            if rows.balanced:  # results are then invariant to shifts of x
                mean = mean_of(X, rows.weights, None if whole else CENTRE)
            design = Design.of(X, mean, constant, norm=norm)
            squared = design.squared_lengths(norm)
            check_finite(squared)
            squared = norm.squared_with_entry(squared, constant)
            unit = 0.0 if mean is None else float(np.sqrt(mean @ mean))
        super().__init__(design, rows, C, norm, squared, unit)
        check_single(X, self.radius)

    def _take_units(
        self, examples: FloatExamples, squared: Array, radius: float
    ) -> None:
        super()._take_units(examples, squared, radius)
        self.precision = np.dtype(self.examples.X.dtype)
        self.design = self.examples

    @property
    def image_shape(self) -> tuple[int, ...]:
        return (*self.rows.score_shape[1:], self.examples.d)

    def _adjoint(self, V: Array, precise: bool) -> Array:
        self.work.passes += 1.0
        return self.design.combine(V, precise=precise)

    def _scores(self, image: Array, precise: bool) -> Array:
        self.work.passes += 1.0
        return self.design.scores(
            self.norm_of_predictors.mirror(image), precise=precise
        )

    def inner(self, w: Predictor, u: Predictor) -> float:
        return self.design.inner(w.image, self.norm_of_predictors.mirror(u.image))

    def respond(
        self, w: Predictor, mu: float = 1.0, response: Response = softmax
    ) -> BestResponse:
        passes = self.work.passes
        near = self._read_once
        if near is None or self.upper is not None or not isinstance(response, Softmax):
            best = super().respond(w, mu, response)
        else:
            rows = self.rows
            design = self.design
            coef, shift = design.for_products(
                self.norm_of_predictors.mirror(w.image), False
            )
            slack = None if self.ridge is None else self.ridge * w.coef
            response = from_the_start(response, w)
            weights, image = respond_in_one_pass(
                response, near, rows, slack, coef, shift, mu
            )
            total = 0.0 if rows.balanced else rows.adjoint(weights.q).sum(axis=0)
            vector = Vector(design.completed(image, total), weights.q)
            best = responded(vector, weights)
        self.work.passes = passes + 1.0
        return best

    @cached_property
    def _read_once(self) -> Matrix | None:
        return to_read_once(self.design, self.rows)

    def columns(self) -> ColumnCache:
        return self._column_cache

    @cached_property
    def _column_cache(self) -> ColumnCache:
        size, batch = self._plan or ColumnPlan()

        def compute(index: Array) -> Array:
            self.work.kernel_evaluations += len(index) * self.design.n
            return self.design.columns(index)

        return ColumnCache(
            compute,
            self.design.n,
            FLOAT64,
            size,
            batch,
            at_least=self.rows.n_classes,
            order=self.rows.by_class[0],
        )


class GramAdapter(KernelMatrixAdapter):
    """A problem in the feature space of a kernel, by inner products only.

    ``image`` of a vector with coefficients V of the examples is its scores ``K V``. An iteration
    costs one product with K, in ``combine``; norms and margins are computed from the scores.

    Parameters
    ----------
    kernel : Kernel, callable or None
        ``kernel(X, Y)`` gives a block of the kernel matrix; None: X is that matrix.
    X : array-like
        Examples, or their kernel matrix.
    rows : Rows
    C : float
        Soft margin (dimensionless).
    norm : LpNorm
        Norm of predictors, with p = 2.
    constant : float
        Its square is added to all kernel values.
    plan : ColumnPlan or None
        For algorithms that use columns of the Gram matrix, which then is never formed.
    whole : bool
        Whether iterations need products with the whole matrix. False: only with some columns, which
        are computed on demand and cached.
    cache_size : float
        Memory for kernel values (MB).
    dtype, scale
        See :class:`~marginsvm.problem.gram.Gram`.
    """

    examples: Gram

    def __init__(
        self,
        kernel: KernelFunction | None,
        X: Stored | Matrix,
        rows: Rows,
        C: float = np.inf,
        norm: LpNorm = LpNorm(),  # noqa: B008 - frozen
        constant: float = 0.0,
        plan: ColumnPlan | None = None,
        whole: bool = True,
        cache_size: float = CACHE_SIZE,
        dtype: np.dtype | None = None,
        scale: Array | None = None,
    ) -> None:
        if norm.p != 2.0:
            raise ValueError(
                f"p={norm.p:.4g} needs the features themselves, which a kernel does not give; "
                "use kernel='linear', or p=2"
            )
        self.work = Work()
        gram = Gram(
            kernel,
            X,
            constant,
            cache_size=cache_size,
            dtype=dtype,
            scale=scale,
            count=self.work.count,
        )
        constant = gram.constant
        if kernel is not None and (plan is not None or not whole):
            size, batch = plan or (FOR_COLUMNS * cache_size, TAKEN)
            # what a kernel prepared of its examples takes memory from the cache
            size -= getattr(X, "extra_bytes", 0) / 2**20
            order = None if plan is None else rows.by_class[0]
            gram.keep_columns(size, batch, rows.n_classes, order)
        highest = float(np.sqrt(np.abs(gram.diagonal).max() + constant**2))
        squared = gram.diagonal.astype(FLOAT64)
        if rows.balanced and whole:  # about the mean: invariant to shifts
            few = plan is not None and kernel is not None
            squared = gram.squared_about_mean(rows.weights, CENTRE if few else gram.n)
        squared = np.maximum(squared, 0.0) + constant**2
        super().__init__(gram, rows, C, norm, squared, highest)
        self.precision = gram.dtype

    @property
    def image_shape(self) -> tuple[int, ...]:
        return self.rows.score_shape

    def _adjoint(self, V: Array, precise: bool) -> Array:
        few = len(support_of(V))
        self.work.passes += 1.0 if FEW_TAKEN * few >= len(V) else few / len(V)
        return self.examples.scores(V.T, precise=precise)

    def _scores(self, image: Array, precise: bool) -> Array:
        return image

    def inner(self, w: Predictor, u: Predictor) -> float:
        return float(np.vdot(self.rows.adjoint(w.coef), u.image))

    def norm(self, w: Predictor) -> float:
        squared = self.dot(w, w)
        # a number of NumPy, whose square may overflow
        mass = np.float64(np.abs(w.coef).sum())
        gram = self.examples
        rounding = (gram.rounding + gram.n * UNIT) * float(gram.squared_norms.max())
        error = NEGATIVE * max(1.0, float(self.lengths.max())) + rounding
        if isinstance(w, Vector) and squared < -error * mass**2:
            raise ValueError(self._indefinite(f"a squared norm is {squared:.3g}"))
        return float(np.sqrt(max(squared, 0.0)))

    def columns(self) -> ColumnCache:
        if self.examples.kept is None:
            self.examples.keep_columns(self.examples.cache_size)
        assert self.examples.kept is not None
        return self.examples.kept

    # Kernels that are not positive semidefinite.

    def flaw(self) -> str:
        if self.examples.is_definite(centred=self.rows.balanced):
            return ""
        return self._indefinite("it has negative eigenvalues")

    def _indefinite(self, evidence: str) -> str:
        free = self.rows.balanced or self.examples.constant
        helps = not free and self.examples.is_definite(centred=True)
        return INDEFINITE.format(
            evidence, ", or set fit_intercept=True, which helps here" if helps else ""
        )
