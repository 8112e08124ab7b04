"""The training set of a regression: validated examples, their intervals and weights."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from marginsvm._typing import Array
from marginsvm.certify.certificate import Certificate
from marginsvm.certify.claims import PUBLISHED, published
from marginsvm.certify.tolerances import LARGEST_NORM, ROUNDING_RTOL_OF_TOL
from marginsvm.estimator.on_device import refuse_foreign
from marginsvm.estimator.prediction import canonical
from marginsvm.estimator.results import Fitted
from marginsvm.fit import Requirements
from marginsvm.fit.progress import Line
from marginsvm.kernel_matrix import KernelMatrixAdapter, LinearAdapter
from marginsvm.rows import Intervals, LpNorm, OutputRows


@dataclass(frozen=True)
class IntervalSet:
    """Validated training data of a regression: the examples of positive weight.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_kept, n_features)
    intervals : Intervals
        Where their scores are to lie, in units of ``unit``.
    unit : float
        A power of two, the size of the ends of the intervals (units of y).
    weights : ndarray of shape (n_kept,) or None
        Sample weights; None: they are all 1.
    kept : ndarray of shape (n_kept,)
        Indices of these examples among the given ones.
    n_given : int
    is_column : bool
        Whether y has a single column, and so have predictions.
    features : dict
        Fitted attributes: number and names of the features.
    """

    X: Any
    intervals: Intervals
    unit: float
    weights: Array | None
    kept: Array
    n_given: int
    is_column: bool
    features: dict[str, Any]
    classes = place = None  # a regression has none, and fits run where the package does

    def problem(self, estimator: Any, requires: Requirements) -> LinearAdapter:
        """Make the problem: the rows that are to lie in the intervals."""
        constant = estimator.intercept_scaling if estimator.fit_intercept else 0.0
        rows = OutputRows(self.intervals, self.weights)
        norm = LpNorm.named(estimator.p, self.X.shape[1])
        rtol = ROUNDING_RTOL_OF_TOL * estimator.tol
        problem = LinearAdapter(self.X, rows, estimator.C, norm, constant, rounding_rtol=rtol)
        if problem.slack is not None and problem.slack.min() < LARGEST_NORM**-1:
            raise ValueError(
                "C and sample weights times squared norms of the examples come to "
                f"{0.5 / max(problem.slack.min(), 1e-308):.3g}, and soft intervals compute with "
                f"{0.5 * LARGEST_NORM:g} at most: scale X, or choose a smaller C, or none"
            )
        return problem

    def embed(self, q: Array) -> sp.csr_array:
        """Weights on the rows, as a sparse array with one row for each given example."""
        q = q.reshape(len(q), -1)
        examples, j = np.nonzero(q)
        shape = self.n_given, q.shape[1]
        return sp.csr_array((q[examples, j], (self.kept[examples], j)), shape=shape)

    def words(self, problem: KernelMatrixAdapter, line: Line) -> str:
        """The bounds after an epoch, in words."""
        norm, bound = in_norms(line.lower, line.upper, self.unit / problem.radius)
        violation = line.violation * self.unit
        return (
            f"epoch {line.n_iter}: {bound:.6g} <= least norm, norm {norm:.6g}, "
            f"violation {violation:.3g}"
        )


def in_norms(lower: Any, upper: Any, length: float) -> tuple[Any, Any]:
    """The norm of a predictor and the least norm, from bounds on margins, which are one over them.

    Parameters
    ----------
    lower, upper : float or ndarray
        Units of the problem.
    length : float
        One over the unit of a margin.
    """
    with np.errstate(divide="ignore"):
        return length / np.asarray(lower), length / np.asarray(upper)


class FittedIntervals(Fitted):
    """A fit of intervals after some epoch, from which the fitted attributes are computed."""

    training: IntervalSet  # type: ignore[assignment]

    def certificate(self, status: str) -> Certificate:
        fit, proof, infeasible = self.bounds.fit, self.bounds.weighed, self.bounds.overlap
        assert fit is not None
        assert proof is not None
        unit, length = self.training.unit, self.training.unit / self.problem.radius
        return Certificate(
            lower=np.inf if infeasible else proof.norm * length,
            upper=fit.norm * length,
            reading="norm",
            status=status,
            feasible=False if infeasible else (fit.violation == 0.0 or None),
            weights=self.training.embed(proof.vector.coef),
            radius=self.problem.radius,
            route=self.progress.route,
            violation=fit.violation * unit,
            widened_bound=proof.widened(fit.allowed) * length,
        )

    def attributes(self, status: str) -> dict[str, Any]:
        certificate, training = self.certificate(status), self.training
        coef, intercept = self.problem.predictor(training.unit * self.bounds.model, np.zeros(1))
        if training.is_column:
            coef, intercept = coef[None], intercept[None]
        return {
            **training.features,
            "coef_": coef,
            "intercept_": np.broadcast_to(intercept, coef.shape[:-1])[()],
            "certificate_": certificate,
            **published(certificate, PUBLISHED["norm"]),
            "n_iter_": self.progress.n_iter,
            "history_": self._table(),
        }

    def _table(self) -> dict[str, Array]:
        """The columns of the history, in the user's units."""
        table = np.array([*self.progress.history], dtype=np.float64).reshape(-1, 6)
        length = self.training.unit / self.problem.radius
        norm, bound = in_norms(table[:, 3], table[:, 4], length)
        return {
            "n_iter": table[:, 0].astype(int),
            "n_passes": table[:, 1],
            "seconds": table[:, 2],
            "norm": norm,
            "norm_bound": bound,
            "violation": table[:, 5] * self.training.unit,
        }


def interval_set(estimator: Any, X: Any, y: Any, sample_weight: Any, bounds: Any) -> IntervalSet:
    """Validate the arguments of ``fit`` before a fit begins."""
    refuse_foreign(type(estimator).__name__, X)
    probe, floats = copy(estimator), [np.float64, np.float32]
    if y is None and bounds is not None:
        y = np.asarray(bounds)[..., 0]
        y = np.where(np.isfinite(y), y, 0.0)
    X, y = validate_data(
        probe, X, y, accept_sparse="csr", dtype=floats, multi_output=True, y_numeric=True
    )
    X, y = canonical(X), y.astype(np.float64)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    intervals = Intervals.around(y, estimator.epsilon)
    if bounds is not None:
        intervals = _given(bounds, y.shape)
    is_column = y.ndim == 2 and y.shape[1] == 1
    if is_column:
        intervals = Intervals(intervals.low[:, 0], intervals.high[:, 0])
    given = np.ones(len(y)) if weight is None else weight
    kept = np.flatnonzero(given)
    if len(kept) < len(y):
        X, intervals = X[kept], intervals.restrict(kept)
    weight = given[kept] if np.any(given[kept] != 1.0) else None
    unit = float(np.ldexp(1.0, int(np.frexp(intervals.size)[1])))
    names = ("n_features_in_", "feature_names_in_")
    features = {name: getattr(probe, name) for name in names if hasattr(probe, name)}
    scaled = intervals.scaled(1.0 / unit)
    return IntervalSet(X, scaled, unit, weight, kept, len(y), is_column, features)


def _given(bounds: Any, shape: tuple[int, ...]) -> Intervals:
    """Intervals as the user gave them, one pair of ends for each value of y."""
    bounds = check_array(
        bounds, dtype=np.float64, ensure_all_finite=False, allow_nd=True, input_name="bounds"
    )
    if bounds.shape != (*shape, 2):
        raise ValueError(
            f"bounds must hold a lower and an upper end for each value of y, in an array of shape "
            f"{(*shape, 2)}, but its shape is {bounds.shape}"
        )
    low, high = np.ascontiguousarray(bounds[..., 0]), np.ascontiguousarray(bounds[..., 1])
    wrong = ~((low <= high) & (low < np.inf) & (high > -np.inf))  # NaN is wrong as well
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"the lower end of an interval must not be above the upper one, but bounds{[*first]} "
            f"is {[float(low[first]), float(high[first])]}; -inf and inf stand for no end"
        )
    return Intervals(low, high)
