"""From the parameters of an estimator to its quadratic programs.

These are of classification, of regression and of examples without labels; their table stands in
:mod:`~marginsvm.problem.quadratic_program`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from math import isfinite

import numpy as np

from marginsvm._typing import Array, Stored, Values
from marginsvm.problem.design import Design
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.matrix import FLOAT32, Matrix
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.row_maps import (
    ClassPairs,
    IntervalEnds,
    RowMap,
    SignedExamples,
)
from marginsvm.problem.rows import OutputRows, Rows


@dataclass(frozen=True)
class ProblemSpec:
    """Parameters of a problem and its tolerances; few estimators have all of them.

    Attributes
    ----------
    C : float
        Infinite: a hard margin.
    loss : str
    nu : float or None
        Share of the examples whose mean margin is maximised.
    p : float or str
        Norm of predictors.
    kernel : str or callable
    gamma, degree, coef0, kernel_params
        Parameters of the kernel.
    class_weight : dict, "balanced" or None
    epsilon : float
        Half the width of a tube.
    normalize, fit_intercept : bool
    intercept_scaling : float or None
        Value of the constant feature that makes the intercept a coefficient like any other.
    monotonic_cst : array-like, dict or None
        Signs that coefficients must have.
    tol : float
        Gap at which a fit ends (dimensionless).
    max_iter : int
        Largest number of iterations of a fit.
    cache_size : float
        Memory for kernel values (MB).

    Examples
    --------
    >>> from marginsvm import MaxMarginClassifier
    >>> from marginsvm.problem.programs import ProblemSpec
    >>> spec = ProblemSpec.of(MaxMarginClassifier(C=2.0, loss="hinge"))
    >>> spec.C, spec.is_soft, spec.slack_is_linear, spec.intercept_is_free
    (2.0, True, True, True)
    """

    C: float = np.inf
    loss: str = "squared_hinge"
    nu: float | None = None
    p: float | str = 2.0
    kernel: str | Callable[..., Stored] = "linear"
    gamma: float | str = "scale"
    degree: float = 3
    coef0: float = 0.0
    kernel_params: dict[str, object] | None = None
    class_weight: str | Mapping[object, float] | None = None
    epsilon: float = 0.0
    normalize: bool = False
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    monotonic_cst: object = None
    tol: float = 0.0
    max_iter: int = 0
    cache_size: float = np.inf

    @classmethod
    def of(cls, estimator: object) -> ProblemSpec:
        """The parameters of an estimator; others have their defaults."""
        defaults = {f.name: getattr(cls, f.name) for f in fields(cls)}
        return cls(*(getattr(estimator, *of_field) for of_field in defaults.items()))

    @property
    def is_soft(self) -> bool:
        """Whether C makes the margin a soft one."""
        return bool(np.isfinite(self.C))

    @property
    def slack_is_linear(self) -> bool:
        """Whether the loss is linear in the slack."""
        return self.loss in ("hinge", "epsilon_insensitive")

    @property
    def constant(self) -> float:
        """The constant feature of a penalised intercept; 0: there is none."""
        return (self.intercept_scaling or 0.0) if self.fit_intercept else 0.0

    @property
    def intercept_is_free(self) -> bool:
        """Whether the intercept is not penalised: ``F'alpha = g`` then constrains it.

        Normalised examples get a constant feature before they are divided by their norms.
        """
        free = self.intercept_scaling is None and not self.normalize
        return bool(self.fit_intercept) and free

    @property
    def outputs_are_apart(self) -> bool:
        """Whether each output of a regression is a problem by itself (exact solver)."""
        return self.intercept_scaling is None


# The radius of a problem, the norm of its longest row, within the range of floats.

# Sizes (units of x) whose squares neither overflow nor vanish; and those of float32.
LARGEST_NORM = 1e152
LARGEST_FLOAT32 = 1e35


class NotFinite(ValueError):  # noqa: N818 - of examples
    """Examples that hold NaN or infinity, or that are too long for float64."""


def check_finite(squared: Array) -> None:
    """Refuse examples whose squared norms are not finite."""
    if not np.isfinite(squared.max()):
        raise NotFinite(
            "examples hold NaN or infinity, or their squared norms overflow float64: scale X"
        )


def largest_square(
    examples: FloatExamples, squared: Array, C: float, weights: Array, unit: float
) -> float:
    """Largest squared norm of an example, ridge included; sample weights above 1 count as 1.

    ``unit`` is the size of the examples before their mean was subtracted.

    Raises
    ------
    ValueError
        If it overflows or vanishes in float64, unless all examples are zero.
    """
    with np.errstate(all="ignore"):
        longest = float((squared + 0.5 / (C * np.minimum(weights, 1.0))).max())
    short = longest < LARGEST_NORM**-2
    if short:
        entry = longest**0.5
        if isinstance(examples, Design):
            entry = unit + float(examples.spread.max())
        short = 0.0 < entry < 1 / LARGEST_NORM
    if short or not longest < LARGEST_NORM**2:
        raise ValueError(
            f"the squared norms of the examples (and 1 / 2C) come to {longest:.3g}, outside "
            f"the range of float64: scale X to entries between {1 / LARGEST_NORM:g} and "
            f"{LARGEST_NORM:g}, and C with the inverse of their squares"
        )
    return longest


def check_single(X: Matrix, radius: float) -> None:
    """Refuse a radius by which numbers of float32 cannot be divided."""
    single = X.dtype == FLOAT32 and X.factor is None
    if single and radius * LARGEST_FLOAT32 < 1.0:
        raise ValueError(
            f"the longest row has the norm {radius:.3g}, by which numbers of float32 "
            "cannot be divided: scale X, or pass it as float64"
        )


def cost_of_slack(C: Values, weight: Values, radius: Values) -> Values:
    """Cost of slack of examples with sample weights, in units of the radius."""
    with np.errstate(over="ignore"):  # fits refuse what overflows
        return C * weight * radius * radius


def classification(
    examples: FloatExamples,
    codes: Array,
    k: int,
    *,
    C: float = np.inf,
    loss: str = "squared_hinge",
    nu: float | None = None,
    weight: Array | None = None,
    intercept: bool = True,
    signs: Array | None = None,
    p: float = 2.0,
) -> QuadraticProgram:
    """The program of classification.

    Parameters
    ----------
    examples : Design or Gram
    codes : ndarray of shape (n,)
        Classes, in ``0..k-1``.
    k : int
        Number of classes.
    C : float
        Cost of slack in the user's units (dimensionless); infinite: a hard margin.
    loss : {"hinge", "squared_hinge"}
    nu : float or None
        nu of nu-SVC (maximise the mean of the smallest margins), in place of C.
    weight : ndarray of shape (n,) or None
        Sample weights, all positive.
    intercept : bool
    signs : ndarray of shape (d,) or None
        Signs that coefficients must have (two classes).
    p : float
        Of the norm of predictors.
    """
    n = examples.n
    several = k > 2
    each = np.ones(1) if weight is None else weight
    m = np.broadcast_to(each, n)
    zero = 0 * m[:1]
    free = np.full(1, np.inf)
    soft = isfinite(C)
    game = nu is not None or not soft
    ridge = zero
    upper = free
    cap = None
    rows: RowMap = SignedExamples(zero + np.where(codes == 1, 1, -1))
    if several:
        rows = ClassPairs(codes, k)
    if nu is not None:
        size = nu * m.sum()
        if intercept:  # no class has more than half of the sum of alpha
            size = min([size, *(2 * m[codes != c].sum() for c in range(k))])
        upper = m / size
    elif soft:
        cost = cost_of_slack(C, each, examples.radius)
        if loss == "hinge":
            upper = cost
        else:
            ridge = rows.square / (2 * cost)
    # what is constant is a number, seen n times
    target = np.broadcast_to(zero if game else zero + 1, n)
    ridge = np.broadcast_to(ridge, n)
    if several:
        cap = None if upper is free else np.broadcast_to(upper, n)
        upper = rows.fill(np.full((n, k), np.inf), 0.0)
        target = target[:, None]
        ridge = ridge[:, None]
    return QuadraticProgram(
        examples,
        rows,
        target=target,
        ridge=ridge,
        upper=np.broadcast_to(upper, rows.shape),
        cap=cap,
        intercept=intercept,
        level=-1 if game else 0,
        total=-1 if game else 0,
        signs=signs,
        p=p,
    )


def regression(
    examples: FloatExamples,
    low: Array,
    high: Array,
    *,
    C: float = np.inf,
    loss: str = "epsilon_insensitive",
    nu: float | None = None,
    weight: Array | None = None,
    intercept: bool = True,
    signs: Array | None = None,
    p: float = 2.0,
    rounded: bool = True,
) -> QuadraticProgram:
    """The program of regression: scores are to lie in intervals, one row for each end.

    Parameters
    ----------
    examples : Design or Gram
    low, high : ndarray of shape (n,) or (n, k)
        Ends of the intervals: ``y - epsilon`` and ``y + epsilon``; an infinite end has no row. With
        nu, both are y. Several outputs have one norm, without free intercepts and without nu.
    C : float
        Cost of slack in the user's units; infinite: a hard tube.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
    nu : float or None
        nu of nu-SVR: epsilon is an unknown, with ``C nu sum(weight) epsilon`` in the objective.
    weight : ndarray of shape (n,) or None
    intercept : bool
    signs : ndarray of shape (d,) or None
    p : float
        Of the norm of predictors.
    rounded : bool
        Whether some ends are rounded.

    Raises
    ------
    ValueError
        If several outputs have free intercepts, or nu.
    """
    if low.ndim > 1 and (intercept or nu is not None):
        raise ValueError(
            f"no solver takes {low.shape[1]} outputs with one norm and free intercepts or nu: "
            "make a program of each output"
        )
    m = np.ones(examples.n) if weight is None else weight
    below = np.nonzero(low > -np.inf)
    above = np.nonzero(high < np.inf)
    example, *found = (np.concatenate(pair) for pair in zip(below, above, strict=True))
    output, k = (found[0], low.shape[1]) if found else (0 * example, 1)
    m_rows = m[example]
    zero = 0 * m_rows
    free = np.full(len(example), np.inf)
    soft = isfinite(C)
    cost = cost_of_slack(C, m_rows, examples.radius) if soft else free
    squared = loss.startswith("squared")
    sign = zero + np.repeat([1, -1], [len(below[0]), len(above[0])])
    return QuadraticProgram(
        examples,
        IntervalEnds(sign, example, output, examples.n, k),
        target=np.concatenate([low[below], -high[above]]),
        ridge=1 / (2 * cost) if soft and squared else zero,
        upper=cost if soft and not squared else free,
        intercept=intercept,
        level=0 if nu is None else 1,
        total=0 if nu is None else cost_of_slack(C * nu, m.sum(), examples.radius),
        signs=signs,
        p=p,
        by_margins=False,
        rounded=rounded,
    )


def one_class(
    examples: FloatExamples, nu: float, weight: Array | None = None
) -> QuadraticProgram:
    """The program of examples without labels: the hull of the examples, held off the origin.

    Parameters
    ----------
    examples : Design or Gram
    nu : float
        nu of the one-class SVM (mean of the smallest scores); 0: the smallest score.
    weight : ndarray of shape (n,) or None
    """
    m = np.ones(examples.n) if weight is None else weight
    zero = 0 * m
    return QuadraticProgram(
        examples,
        SignedExamples(zero + 1),
        target=zero,
        ridge=zero,
        upper=m / (nu * m.sum()) if nu > 0 else np.full(len(m), np.inf),
        intercept=False,
        level=-1,
        total=-1,
    )


def programs_of(
    examples: FloatExamples,
    rows: Rows,
    C: float | Array,
    *,
    loss: str,
    nu: float | None,
    signs: Array | None,
    p: float,
) -> list[QuadraticProgram]:
    """The program of labelled rows or, where outputs are separate problems, that of each output.

    Parameters
    ----------
    C : float or ndarray of shape (n_outputs,)
        Cost of slack, in the units of each output.
    loss : {"squared_hinge", "hinge"}
        Intervals: squared or not.
    """
    if not isinstance(rows, OutputRows):
        found = classification(
            examples,
            rows.codes,
            rows.n_classes,
            C=float(C),
            loss=loss,
            nu=nu,
            weight=rows.weights,
            intercept=rows.balanced,
            signs=signs,
            p=p,
        )
        return [replace(found, rows=rows.map)]
    ends = rows.intervals
    lows = [ends.low]
    highs = [ends.high]
    if rows.scales is not None:
        lows, highs = (
            list(end.reshape(rows.n_examples, -1).T) for end in (ends.low, ends.high)
        )
    costs = np.broadcast_to(C, len(lows)).astype(float).tolist()
    hinge = loss == "hinge"
    return [
        regression(
            examples,
            low,
            high,
            C=cost,
            loss="epsilon_insensitive" if hinge else "squared_epsilon_insensitive",
            nu=nu,
            weight=rows.weights,
            intercept=rows.balanced,
            signs=signs,
            p=p,
            rounded=ends.rounded,
        )
        for low, high, cost in zip(lows, highs, costs, strict=True)
    ]
