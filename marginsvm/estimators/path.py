"""Soft margins for several C: the grid of them, and the path of certified solutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_array

from marginsvm._typing import Array
from marginsvm._warnings import warn
from marginsvm.estimators.exact import MaxMarginClassifier
from marginsvm.estimators.training_data import TrainingData, training_data
from marginsvm.problem.matrix import on_host, plain
from marginsvm.problem.programs import ProblemSpec

# Ends of the grid, as multiples of 1 / r^2; r^2 is the mean squared distance to the mean. At the
# upper end, with n examples, features matter whose spread is at least r / sqrt(2e6 n): in raw data,
# a few features in large units make up r, and others separate.
HIGH = 1e6
# Below 1 / (2 n r^2) the solution is proportional to the difference of the class means. With many
# examples, at 1e-3 / r^2 only the leading principal directions matter: at most 2e-3 n, as the
# eigenvalues of the second moments sum to n r^2.
LOW = 1e-3
SOME = 2000  # examples whose kernel values stand for those of all


def costs_in_order(
    Cs: Any, model: MaxMarginClassifier, training: TrainingData
) -> Array:
    """The values of C given by ``Cs``, in ascending order.

    Parameters
    ----------
    Cs : int or array-like
        How many, in geometric progression (a single one: the middle of the range), or the values.
    model, training : MaxMarginClassifier and TrainingData
        The examples, and their kernel.

    Raises
    ------
    ValueError
        If they are not positive and finite.
    """
    if np.ndim(Cs) == 0:
        mean_square, n = spread(model, training)
        low = max(LOW, min(0.5 / n, 1.0))
        unit = mean_square or 1.0
        if Cs == 1:
            return np.array([np.sqrt(low * HIGH)]) / unit
        return np.geomspace(low, HIGH, int(Cs)) / unit
    return _positive(
        Cs,
        f"Cs must be an integer or a list of finite positive numbers, but is {Cs!r}; a hard "
        "margin, C=inf, is MaxMarginClassifier's default",
    )


def _positive(given: Any, error: str) -> Array:
    """Positive numbers, in ascending order."""
    how: Any = {"ensure_all_finite": False, "ensure_min_samples": 0}
    given = check_array(given, ensure_2d=False, dtype=np.float64, **how)
    if (
        given.ndim != 1
        or not given.size
        or not (np.isfinite(given).all() and (given > 0.0).all())
    ):
        raise ValueError(error)
    return np.unique(given)


def spread(model: MaxMarginClassifier, training: TrainingData) -> tuple[float, float]:
    """Mean squared distance of the examples from their mean, or from 0, and their number.

    With a kernel, some examples stand for all.
    """
    X = plain(training.X)
    m = training.rows.weights
    m = np.ones(X.shape[0]) if m is None else m
    n = float(m.sum())
    balanced = training.rows.balanced
    m = m / n
    if model.kernel != "linear":
        some = np.unique(np.linspace(0, len(m) - 1, min(len(m), SOME)).astype(int))
        given = model.kernel == "precomputed"
        m = m[some] / m[some].sum()
        K = X[np.ix_(some, some)] if given else training.kernel(X[some], X[some])
        return max(float(m @ np.diag(K) - balanced * (m @ K @ m)), 0.0), n
    mean = (X.T @ m) * balanced
    if sp.issparse(X):
        return max(float(m @ row_norms(X, squared=True) - mean @ mean), 0.0), n
    return float(m @ row_norms(X - mean, squared=True)), n


def gammas_in_order(search: Any) -> Array:
    """The values of gamma of a search, in ascending order.

    Raises
    ------
    ValueError
        If they are not numbers that a kernel may have, or its kernel has no gamma.
    """
    kernel = search.kernel
    named = search.kernel_params or {}
    if (
        callable(kernel)
        or "gamma" not in KERNEL_PARAMS.get(kernel, ())
        or "gamma" in named
    ):
        raise ValueError(
            f"gammas are values of a named kernel's gamma, which kernel={kernel!r} with "
            f"kernel_params={named} leaves no room for: choose kernel='rbf', or gammas=None"
        )
    return _positive(
        search.gammas,
        f"gammas must be a list of finite positive numbers, but is {search.gammas!r}; one value, "
        "or 'scale', is gamma",
    )


@dataclass(frozen=True, eq=False)
class MarginPath:
    """Certified soft margins for several C, as :func:`marginsvm.margin_path` returns them.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C, ascending (dimensionless for given units of X).
    coefs : ndarray of shape (n_Cs, 1, n_features) or (n_Cs, n_classes, n_features)
        Linear predictors. With a kernel, of shape (n_Cs, ..., n_samples): coefficients of the
        training examples.
    intercepts : ndarray of shape (n_Cs, 1) or (n_Cs, n_classes)
        Their constant terms.
    margins : ndarray of shape (n_Cs,)
        Certified lower bounds on the margins, slack included (units of X).
    margin_bounds : ndarray of shape (n_Cs,)
        Certified upper bounds (units of X).
    gaps : ndarray of shape (n_Cs,)
        Their relative gaps.
    n_support : ndarray of shape (n_Cs,)
        Numbers of support vectors.
    n_iter : ndarray of shape (n_Cs,)
        Iterations.

    Examples
    --------
    >>> from marginsvm import margin_path
    >>> path = margin_path([[0.0], [1.0], [3.0]], [0, 1, 1], Cs=[1.0, 100.0])
    >>> path.margins.round(3)
    array([0.707, 0.502])
    """

    Cs: Array
    coefs: Array
    intercepts: Array
    margins: Array
    margin_bounds: Array
    gaps: Array
    n_support: Array
    n_iter: Array


def along_costs(
    model: MaxMarginClassifier, training: TrainingData, X: Any, y: Any, Cs: Array
) -> Iterator[MaxMarginClassifier]:
    """A model fitted for each C in turn, with warm starts and without warnings."""
    model = clone(model).set_params(warm_start=True)
    for C in Cs:
        spec = ProblemSpec.of(model.set_params(C=float(C)))
        yield model._fit(replace(training, spec=spec), X, y, warns=False)


def margin_path(
    X: Any,
    y: Any,
    *,
    Cs: Any = 10,
    sample_weight: Any = None,
    **params: Any,
) -> MarginPath:
    """Certified soft margins for several C, each warm-started at the previous solution.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data, or the kernel matrix of shape (n_samples, n_samples) if
        ``kernel="precomputed"``.
    y : array-like of shape (n_samples,)
        Class labels.
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C, or their number (dimensionless for given units of X). A number of values is
        placed as by :class:`marginsvm.MaxMarginClassifierCV`.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight m counts like m copies; 0 leaves the example out.
    **params : dict
        Further parameters of :class:`marginsvm.MaxMarginClassifier`, such as ``kernel`` or ``tol``.

    Returns
    -------
    MarginPath

    Raises
    ------
    ValueError
        If the data or a parameter cannot be used; the message says what to do.

    References
    ----------
    T. Hastie, S. Rosset, R. Tibshirani, J. Zhu. The entire regularization path for the support
    vector machine. JMLR, 2004. There, Algorithm 1 (hinge loss) visits each change of the active
    set; here, Newton's method goes from one C to the next.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import margin_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = margin_path(X, y, Cs=5)
    >>> path.coefs.shape, bool((path.gaps <= 1e-6).all())
    ((5, 3, 4), True)
    >>> path.n_support
    array([150, 112,  21,  18,  18])
    """
    if "C" in params:
        raise ValueError("margin_path takes Cs, an integer or a list, in place of C")
    model = MaxMarginClassifier(**params)
    model._validate_params()
    training = training_data(model, X, y, sample_weight)
    costs = costs_in_order(Cs, model, training)
    found = []
    for fit in along_costs(model, training, X, y, costs):
        if model.kernel == "linear":
            coef = on_host(fit.coef_)
        else:
            coef = np.zeros((len(fit.dual_coef_), training.n_given))
            coef[:, fit.support_] = fit.dual_coef_
        weights = fit.certificate_.weights
        n_support = len(np.unique(weights.nonzero()[0]))
        bounds = fit.margin_, fit.margin_bound_, fit.gap_
        found.append((coef, on_host(fit.intercept_), *bounds, n_support, fit.n_iter_))
    path = MarginPath(costs, *map(np.array, zip(*found, strict=True)))
    late = costs[path.gaps > model.tol].tolist()
    if late:
        warn(
            f"margin_path: the gap is above tol={model.tol:g} for C in {late}; a larger max_iter "
            "or tol may help, or leave out the largest C",
            ConvergenceWarning,
        )
    return path
