"""Soft margins for several C: the grid of them, and the path of certified solutions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils.validation import check_array

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.certify.spec import ProblemSpec
from marginsvm.estimator.results import Fitted
from marginsvm.estimator.training_set import TrainingSet, training_set
from marginsvm.fit import Progress, play
from marginsvm.fit.play import begin
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.problem.threads import single_threaded_blas

# Ends of the grid, as multiples of 1 / r^2, where r^2 is the mean squared distance of an example
# from the mean of all. At the upper end, of n examples, features count that spread over
# r / sqrt(2e6 n) or more: in raw data, few features in large units make up r, and others decide.
_HIGH = 1e6
# Below 1 / (2 n r^2) the solution is the difference of the class means, whatever C. Of many
# examples, at 1e-3 / r^2 still only the directions count in which all spread most: 2e-3 n of them
# at most, as the eigenvalues of the second moments sum to n r^2.
_LOW = 1e-3


def grid_of_costs(problem: KernelMatrixAdapter, number: int) -> Array:
    """Values of C in geometric progression, placed by how far the examples lie from their mean.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    number : int
        How many; a single one is the middle of the range, by ratios.
    """
    rows = problem.rows
    n = rows.n_examples if rows.weights is None else float(rows.weights.sum())
    low, unit = max(_LOW, min(0.5 / n, 1.0)), problem.mean_square or 1.0
    if number == 1:
        return np.array([np.sqrt(low * _HIGH)]) / unit
    return np.geomspace(low, _HIGH, number) / unit


def costs_in_order(Cs: Any, problem: KernelMatrixAdapter | None) -> Array:
    """The values of C that ``Cs`` names, in ascending order.

    Raises
    ------
    ValueError
        If they are not positive and finite.
    """
    if np.ndim(Cs) == 0:
        assert problem is not None
        return grid_of_costs(problem, int(Cs))
    given = check_array(Cs, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
    if given.ndim != 1 or not (np.isfinite(given).all() and (given > 0.0).all()):
        raise ValueError(
            f"Cs must be an integer or a list of finite positive numbers, but is {Cs!r}; a hard "
            "margin, C=inf, is MaxMarginClassifier's default"
        )
    return np.unique(given)


def gammas_in_order(search: Any) -> Array:
    """The values of gamma that a search names, in ascending order.

    Raises
    ------
    ValueError
        If they are not numbers that a kernel may have, or its kernel has no gamma.
    """
    kernel, named = search.kernel, search.kernel_params or {}
    if callable(kernel) or "gamma" not in KERNEL_PARAMS.get(kernel, ()) or "gamma" in named:
        raise ValueError(
            f"gammas are values of a named kernel's gamma, which kernel={kernel!r} with "
            f"kernel_params={named} leaves no room for: choose kernel='rbf', or gammas=None"
        )
    given = check_array(search.gammas, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
    if given.ndim != 1 or not (np.isfinite(given).all() and (given > 0.0).all()):
        raise ValueError(
            f"gammas must be a list of finite positive numbers, but is {search.gammas!r}; one "
            "value, or 'scale', is gamma"
        )
    return np.unique(given)


def with_cost(
    model: MaxMarginClassifier, problem: KernelMatrixAdapter, C: float
) -> KernelMatrixAdapter:
    """The problem in which slack has this price, and the loss of the model."""
    soft = problem.with_C(C)
    return soft.with_hinge_loss() if model.loss == "hinge" else soft


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
        Training examples with positive weight.
    n_iter : ndarray of shape (n_Cs,)
        Rounds played.

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


def certified_path(
    model: MaxMarginClassifier,
    problem: KernelMatrixAdapter,
    Cs: Array,
    before: Progress | None = None,
) -> Iterator[tuple[KernelMatrixAdapter, Progress, str]]:
    """Fits for one C after another, each from the solution before it.

    Parameters
    ----------
    model : MaxMarginClassifier
        Its algorithm and when a fit ends.
    problem : KernelMatrixAdapter
        With any C.
    Cs : ndarray of shape (n_Cs,)
    before : Progress, default=None
        Progress of an earlier fit of these examples, to begin with.

    Yields
    ------
    problem, progress, status
        The problem with that C, and how its fit has ended.
    """
    algorithm, stopping = model._algorithm(), model._stopping()
    for C in Cs:
        soft = with_cost(model, problem, float(C))
        outcome = play(algorithm, soft, stopping, resume=begin(algorithm, soft, before))
        before = outcome.progress
        yield soft, before, outcome.status


def margin_path(
    X: Any,
    y: Any,
    *,
    Cs: Any = 10,
    sample_weight: Any = None,
    **params: Any,
) -> MarginPath:
    """Certified soft margins for several C, each from the solution for the one before it.

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
    training = training_set(model, X, y, sample_weight)
    algorithm = model._algorithm()
    problem = training.problem(ProblemSpec.of(model), algorithm.requires)
    with single_threaded_blas():
        costs = costs_in_order(Cs, problem)
        found = [
            Fitted(algorithm, soft, training, progress).attributes(status)
            for soft, progress, status in certified_path(model, problem, costs)
        ]
    path = _collected(costs, found, training)
    if any(fit["certificate_"].status != "certified" for fit in found):
        late = costs[path.gaps > model.tol].tolist()
        warnings.warn(
            f"margin_path: the gap is above tol={model.tol:g} for C in {late}; a larger max_iter "
            "or tol may help, or leave out the largest C",
            ConvergenceWarning,
            stacklevel=2,
        )
    return path


def _collected(costs: Array, found: list[dict[str, Any]], training: TrainingSet) -> MarginPath:
    def of(name: str) -> Array:
        return np.array([fit[name] for fit in found])

    certificates = of("certificate_")
    lower, upper, gaps = np.array([(c.margin, c.margin_bound, c.gap) for c in certificates]).T
    weights = [certificate.weights for certificate in certificates]
    coefs = [_coefficients(fit, training) for fit in found]
    n_support = np.array([len(np.unique(q.nonzero()[0])) for q in weights])
    found_at = of("intercept_"), lower, upper, gaps, n_support, of("n_iter_")
    return MarginPath(costs, np.array(coefs), *found_at)


def _coefficients(fit: dict[str, Any], training: TrainingSet) -> Array:
    if "coef_" in fit:
        return np.asarray(fit["coef_"])
    dual = fit["dual_coef_"]
    coef = np.zeros((len(dual), training.n_given))
    coef[:, fit["support_"]] = dual
    return coef
