"""Whether classes are separable, and what proves it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.algorithms.von_neumann import PerceptronVonNeumann


@dataclass(frozen=True, repr=False)
class Separability:
    """Answer of :func:`check_separability`.

    Attributes
    ----------
    separable : bool or None
        None: not decided within ``max_iter`` rounds.
    margin, margin_bound : float
        Bounds on the best margin (margin units, those of X).
    coef, intercept : ndarray or None
        The separator, if one was found: ``coef_`` of the estimator, ``dual_coef_`` over
        ``estimator.support_`` for a kernel.
    weights : csr_array or None
        The proof that there is none: a distribution over the examples at which the
        classes meet, up to ``margin_bound``.
    estimator : PerceptronVonNeumann
        The fitted estimator, for ``predict`` or :func:`marginsvm.check_certificate`.

    Examples
    --------
    >>> from marginsvm import check_separability
    >>> check_separability([[0.0], [1.0]], [0, 1])
    Separable: a predictor separates the classes with margin 0.5, and none reaches more than 0.5.
    """

    separable: bool | None
    margin: float
    margin_bound: float
    coef: Array | None
    intercept: Array | None
    weights: sp.csr_array | None
    estimator: PerceptronVonNeumann

    def __repr__(self) -> str:
        if self.separable:
            return (
                f"Separable: a predictor separates the classes with margin {self.margin:.3g}, "
                f"and none reaches more than {self.margin_bound:.3g}."
            )
        if self.separable is None:
            return (
                f"Undecided after {self.estimator.n_iter_} rounds: no separator was found, and "
                f"none can have a margin above {self.margin_bound:.3g}."
            )
        assert self.weights is not None
        return (
            f"Not separable: weights on {self.weights.nnz} examples make the classes meet, so "
            f"that no predictor has a margin above {self.margin_bound:.3g}."
        )


def check_separability(
    X: Any,
    y: Any,
    *,
    kernel: str | Callable[..., Array] = "linear",
    fit_intercept: bool = True,
    epsilon: float = 1e-6,
    max_iter: int = 100_000,
) -> Separability:
    """Decide whether classes can be separated, with a proof either way.

    Complete separation makes the coefficients of a logistic regression diverge.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features of like scale are decided faster: scaling them does not change the answer.
    y : array-like of shape (n_samples,)
        Class labels. More than two classes: whether one linear score a class can put each
        example's own class first.
    kernel : str or callable, default="linear"
        As in :class:`marginsvm.PerceptronVonNeumann`, with the kernel's default parameters.
    fit_intercept : bool, default=True
        Whether the separator may have an intercept.
    epsilon : float, default=1e-6
        Margins below it, relative to the radius of the data, are not searched for: the
        answer is then False with a proof up to rounding, else None.
    max_iter : int, default=100000
        Rounds after which the question is left open.

    Returns
    -------
    Separability
        The answer, and what proves it.

    Raises
    ------
    ValueError
        If the data or a parameter cannot be used; the text says what to do.

    References
    ----------
    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Algorithm 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import check_separability
    >>> X, y = load_iris(return_X_y=True)
    >>> check_separability(X[:100], y[:100]).separable
    True
    >>> check_separability(X[50:], y[50:]).separable
    False
    """
    estimator = PerceptronVonNeumann(
        kernel=kernel,
        fit_intercept=fit_intercept,
        normalize=False,  # with an intercept, it would be another question
        epsilon=epsilon,
        max_iter=max_iter,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X, y)
    found = estimator.separable_
    return Separability(
        separable=found,
        margin=estimator.margin_,
        margin_bound=estimator.margin_bound_,
        coef=getattr(estimator, "coef_", getattr(estimator, "dual_coef_", None)) if found else None,
        intercept=estimator.intercept_ if found else None,
        weights=estimator.certificate_.weights if found is False else None,
        estimator=estimator,
    )
