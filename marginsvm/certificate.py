"""The proof that comes with every fit, and a check of it that shares no code with the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from marginsvm._typing import Array


@dataclass(frozen=True)
class MarginCertificate:
    """Two bounds on the best possible margin, and what proves them.

    Attributes
    ----------
    margin : float
        Margin that the fitted predictor reaches: a lower bound (margin units, those
        of X; for a soft margin, of X with one slack coordinate a row).
    margin_bound : float
        No predictor has a larger margin: the norm of ``A^T q`` (margin units).
    status : str
        How the fit ended: ``certified``, ``separated``, ``no_margin``, ``max_iter``,
        ``stopped`` or ``interrupted``.
    separable : bool or None
        Whether the classes can be separated; None where the bounds do not say.
    weights : csr_array of shape (n_samples, 1) or (n_samples, n_classes)
        The distribution q that proves the upper bound. More than two classes: entry
        ``(i, j)`` belongs to example i held against class j.
    radius : float
        Largest norm of a row (about the mean, with an intercept; margin units): the scale
        of margins.

    Examples
    --------
    >>> from marginsvm import MaxMarginClassifier
    >>> clf = MaxMarginClassifier().fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> print(clf.certificate_)
    certified: 1 <= best margin <= 1 (relative gap 0), separable: True
    >>> clf.certificate_.weights.toarray().ravel()
    array([0. , 0.5, 0.5])
    """

    margin: float
    margin_bound: float
    status: str
    separable: bool | None
    weights: sp.csr_array
    radius: float

    @property
    def gap(self) -> float:
        """Relative gap between the bounds (dimensionless)."""
        return relative_gap(self.margin, self.margin_bound)

    def advice(self, max_iter: int, tol: float) -> str:
        """Say how a fit ended that did not reach its goal, and what would help.

        Parameters
        ----------
        max_iter : int
            Rounds that the fit was allowed.
        tol : float
            Relative gap that it was to reach (dimensionless).

        Returns
        -------
        str
        """
        if self.status == "no_margin":
            meaning = (
                "the classes cannot be separated."
                if self.separable is False
                else "next to nothing in the scale of X. If so thin a margin will do, "
                "MaxMarginClassifier or a smaller tol may find it."
            )
            return (
                f"proved that no predictor has a margin above {self.margin_bound:.3g} "
                f"(certificate_.weights is the proof): {meaning} C < inf gives a soft margin."
            )
        return (
            f"ended after max_iter={max_iter} rounds with the bounds {self.margin:.6g} <= best "
            f"margin <= {self.margin_bound:.6g}, a relative gap of {self.gap:.3g} > tol={tol}. "
            "Increase max_iter, scale the features, or set C < inf if the classes overlap."
        )

    def __str__(self) -> str:
        return (
            f"{self.status}: {self.margin:.6g} <= best margin <= {self.margin_bound:.6g} "
            f"(relative gap {self.gap:.2g}), separable: {self.separable}"
        )


def relative_gap(lower: float, upper: float) -> float:
    """``(upper - lower) / upper``; 0 where they meet, also at zero."""
    difference = max(upper - lower, 0.0)
    if difference == 0.0:
        return 0.0
    return difference / upper if upper > 0 else float("inf")


@dataclass(frozen=True)
class CertificateCheck:
    """What :func:`check_certificate` found; true if the certificate holds.

    Attributes
    ----------
    margin, margin_bound : float
        Both bounds, computed again (margin units: those of X).
    valid : bool
        Whether the claimed bounds are no better than these, up to rounding.
    reason : str
        What is wrong, or an empty string.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from marginsvm import MaxMarginClassifier, check_certificate
    >>> X, y = [[0.0], [1.0], [3.0]], [0, 0, 1]
    >>> clf = MaxMarginClassifier().fit(X, y)
    >>> clf.certificate_ = replace(clf.certificate_, margin_bound=0.9)  # a false claim
    >>> check_certificate(clf, X, y).reason
    'the weights prove 1.0, not 0.9'
    """

    margin: float
    margin_bound: float
    valid: bool
    reason: str

    def __bool__(self) -> bool:
        return self.valid


def check_certificate(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, rtol: float = 1e-7
) -> CertificateCheck:
    """Compute both bounds of a fitted estimator again, from the data alone.

    The lower bound comes from the predictor's decision values and its norm, the upper
    bound from the certificate's weights; nothing of the fit is used.

    Parameters
    ----------
    estimator : estimator
        A fitted one, of this package.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data (a precomputed kernel: the kernel matrix).
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        As in fit; they matter for a soft margin.
    rtol : float, default=1e-7
        Rounding allowed, relative to the radius of the data.

    Returns
    -------
    CertificateCheck
        True if the certificate holds, with both bounds.

    Raises
    ------
    NotFittedError
        If the estimator has not been fitted.

    References
    ----------
    Ji et al., Lemma A.1 (duality); Ramdas and Pena, Theorem 2 (Gordan).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MomentumMarginClassifier, check_certificate
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[:100], y[:100]
    >>> bool(check_certificate(MomentumMarginClassifier().fit(X, y), X, y))
    True
    """
    check_is_fitted(estimator, "certificate_")
    problem = _Problem(estimator, X, y, sample_weight)
    claim = estimator.certificate_
    lower = problem.lower_bound()
    upper = problem.upper_bound(claim.weights)
    slack = rtol * (problem.radius + max(0.0, -claim.margin))  # far below 0, it is no claim
    distribution = claim.weights.data.min(initial=0.0) >= 0
    distribution = distribution and abs(claim.weights.sum() - 1.0) <= 1e-9
    reasons = []  # what is not known to hold is wrong: NaN, too
    if not claim.margin <= lower + slack:
        reasons.append(f"the predictor's margin is {lower!r}, not {claim.margin!r}")
    if not claim.margin_bound >= upper - slack:
        reasons.append(f"the weights prove {upper!r}, not {claim.margin_bound!r}")
    if not distribution:
        reasons.append("the weights are no distribution")
    return CertificateCheck(lower, upper, not reasons, "; ".join(reasons))


class _Problem:
    """The rows of ALGORITHMS.md, section 1, spelled out plainly for a check."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        self._kept = np.flatnonzero(weight > 0)
        self._codes = np.searchsorted(estimator.classes_, np.asarray(y)[self._kept])
        self._examples = np.arange(self._kept.size)
        self._k = len(estimator.classes_)
        self._unit = 1.0 if self._k == 2 else float(np.sqrt(2.0))
        self._constant = (estimator.intercept_scaling or 0.0) if estimator.fit_intercept else 0.0
        self._balanced = bool(estimator.fit_intercept) and self._constant == 0.0
        self._slack = 0.5 / (estimator.C * weight[self._kept])  # zero where C is infinite
        space = _Linear if hasattr(estimator, "coef_") else _Kernel
        self._space = space(estimator, X, self._kept, self._constant)
        self._mean = np.full(self._kept.size, 1.0 / self._kept.size) if self._balanced else None
        squared = self._space.squared_norms(self._mean) + self._slack
        self.radius = float(np.sqrt(max(squared.max(), 0.0)))
        self.radius *= self._unit

    def lower_bound(self) -> float:
        """Margin of the predictor; a soft margin counts its cheapest slacks."""
        F, squared = self._space.scores(), self._space.squared_norm()
        if self._k == 2:
            margins = np.where(self._codes == 1, F, -F)[:, None]
        else:
            margins = F[self._examples, self._codes][:, None] - F
            margins[self._examples, self._codes] = np.inf
        if self._slack.any():  # decision values are scaled to a margin of 1
            violation = np.maximum(0.0, 1.0 - margins) ** 2
            squared += float(np.sum(violation / (self._unit**2 * self._slack[:, None])))
            return float(1.0 / np.sqrt(squared))
        return float(margins.min() / np.sqrt(squared)) if squared > 0 else 0.0

    def upper_bound(self, weights: sp.csr_array) -> float:
        """Norm of ``A^T q``, and a surcharge for weights that are not quite balanced."""
        q = weights.toarray()[self._kept]
        if self._k == 2:
            V = np.where(self._codes == 1, 1.0, -1.0)[:, None] * q
        else:
            V = -np.sqrt(0.5) * q
            V[self._examples, self._codes] += np.sqrt(0.5) * q.sum(axis=1)
        squared = self._space.squared_norm_of(V, self._mean) + float(
            np.sum(self._slack[:, None] * q**2)
        )
        bound = self._unit * float(np.sqrt(max(squared, 0.0)))
        imbalance = float(np.abs(V.sum(axis=0)).sum()) if self._balanced else 0.0
        return bound + self.radius * imbalance


class _Linear:
    def __init__(self, estimator: Any, X: Any, kept: Array, constant: float) -> None:
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        self._X = (X if kept.size == X.shape[0] else X[kept]).astype(np.float64, copy=False)
        if estimator.normalize:
            inverse = _inverse(np.sqrt((self._X * self._X).sum(axis=1)))
            X = self._X
            self._X = (
                X * inverse[:, None] if isinstance(X, np.ndarray) else sp.diags_array(inverse) @ X
            )
        self._coef = estimator.coef_.astype(np.float64)
        self._intercept = estimator.intercept_
        self._p = float(estimator.p) if estimator.p != "sparse" else _sparse_p(self._X.shape[1])
        self._q = self._p / (self._p - 1.0)
        if constant:  # a feature that is the same for all; its coefficient is in the intercept
            column = np.full((kept.size, 1), constant)
            self._X = (sp.hstack if sp.issparse(X) else np.hstack)([self._X, column])
            self._coef = np.hstack([self._coef, self._intercept[:, None] / constant])
            self._intercept = np.zeros_like(self._intercept)

    def scores(self) -> Array:
        F = self._X @ self._coef.T + self._intercept
        return F[:, 0] if len(self._coef) == 1 else F

    def squared_norm(self) -> float:
        return _norm(self._coef, self._p) ** 2

    def squared_norms(self, mean: Array | None) -> Array:
        X = abs(self._X)
        top = float(X.max()) or 1.0
        powers = (X / top).power(self._q) if sp.issparse(X) else (X / top) ** self._q
        squared = top**2 * np.asarray(powers.sum(axis=1)).ravel() ** (2.0 / self._q)
        if mean is not None:
            centre = mean @ self._X
            squared = squared - 2.0 * (self._X @ centre) + centre @ centre
        return squared

    def squared_norm_of(self, V: Array, mean: Array | None) -> float:
        if mean is not None:  # V sums to zero, but for rounding
            V = V - np.outer(mean, V.sum(axis=0))
        return _norm(V.T @ self._X, self._q) ** 2


def _sparse_p(d: int) -> float:
    return 1.0 + 1.0 / max(float(np.log(d)), 1.0)


def _norm(x: Array, p: float) -> float:
    top = float(np.abs(x).max(initial=0.0))
    return top * float(np.sum(np.abs(x / top) ** p) ** (1.0 / p)) if top > 0 else 0.0


class _Kernel:
    def __init__(self, estimator: Any, X: Any, kept: Array, constant: float) -> None:
        K = estimator._kernel_matrix(X, X) if estimator.kernel != "precomputed" else np.asarray(X)
        self._K = K[np.ix_(kept, kept)].astype(np.float64, copy=False)
        self._V = np.zeros((K.shape[0], len(estimator.dual_coef_)))
        self._V[estimator.support_] = estimator.dual_coef_.T
        self._V = self._V[kept]
        if estimator.normalize:
            norms = np.sqrt(np.maximum(np.diagonal(self._K), 0.0))
            self._K = self._K * np.outer(_inverse(norms), _inverse(norms))
        self._intercept = estimator.intercept_
        self._constant = constant

    def scores(self) -> Array:
        F = self._K @ self._V + self._intercept
        return F[:, 0] if F.shape[1] == 1 else F

    def squared_norm(self) -> float:
        squared = float(np.sum(self._V * (self._K @ self._V)))
        if self._constant:  # a feature like any other, of which the intercept is a multiple
            squared += float(np.sum((self._intercept / self._constant) ** 2))
        return squared

    def squared_norms(self, mean: Array | None) -> Array:
        squared = np.diagonal(self._K) + self._constant**2
        return squared if mean is None else squared - 2.0 * (self._K @ mean) + mean @ self._K @ mean

    def squared_norm_of(self, V: Array, mean: Array | None) -> float:
        if mean is not None:
            V = V - np.outer(mean, V.sum(axis=0))
        constant = float(np.sum((self._constant * V.sum(axis=0)) ** 2))
        return float(np.sum(V * (self._K @ V))) + constant


def _inverse(norms: Array) -> Array:
    """Inverse norms; a row of zeros stays zero."""
    norms = np.asarray(norms).ravel()
    return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)
