"""Whether classes are separable, with a proof."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.certify.certificate import at_least, at_most


@dataclass(frozen=True, repr=False)
class Separability:
    """Result of :func:`check_separability`.

    Attributes
    ----------
    separable : bool or None
        True: ``coef`` and ``intercept`` separate the classes. False: weights q near ``weights`` are
        proved to exist with ``A^T q`` exactly zero, for the numbers of X in float64, so that no
        predictor separates the classes. None: neither was found.
    margin, margin_bound : float
        Bounds on the best margin (margin units, those of X).
    coef, intercept : ndarray or None
        The separator, if one was found: ``coef_`` of the estimator, ``dual_coef_`` over
        ``estimator.support_`` for a kernel.
    weights : csr_array or None
        The proof that there is none: a distribution over the examples at which the
        classes meet, up to the rounding of its numbers.
    estimator : MaxMarginClassifier
        The fitted estimator, for ``predict`` or :func:`marginsvm.check_certificate`.

    Examples
    --------
    >>> from marginsvm import check_separability
    >>> check_separability([[0.0], [1.0]], [0, 1])
    Separable: a predictor separates the classes with margin 0.499, and none reaches
    more than 0.501.
    """

    separable: bool | None
    margin: float
    margin_bound: float
    coef: Array | None
    intercept: Array | None
    weights: sp.csr_array | None
    estimator: MaxMarginClassifier

    def __repr__(self) -> str:
        if self.separable:
            return (
                "Separable: a predictor separates the classes with margin "
                f"{at_least(self.margin, 3)}, and none reaches more than "
                f"{at_most(self.margin_bound, 3)}."
            )
        if self.separable is None:
            return (
                "Undecided: neither a separator nor a proof that there is none was found in "
                f"{self.estimator.n_iter_} rounds. No predictor has a margin above "
                f"{at_most(self.margin_bound, 3)}; the radius of the data is "
                f"{self.estimator.certificate_.radius:.3g}."
            )
        assert self.weights is not None
        n_examples = len(np.unique(self.weights.nonzero()[0]))
        return (
            f"Not separable: weights on {n_examples} examples make the classes meet, which is "
            "proved for the numbers of X in float64."
        )


def check_separability(
    X: Any,
    y: Any,
    *,
    kernel: str | Callable[..., Array] = "linear",
    fit_intercept: bool = True,
    epsilon: float | str = "deprecated",
    max_iter: int = 200,
) -> Separability:
    """Decide whether classes can be separated, with a proof either way.

    Complete separation makes the coefficients of a logistic regression diverge. The units of
    the features do not matter.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The examples or, if ``kernel="precomputed"``, the kernel matrix, which is taken as it is.
    y : array-like of shape (n_samples,)
        Class labels. More than two classes: whether one linear score a class can put each
        example's own class first.
    kernel : str or callable, default="linear"
        As in :class:`marginsvm.MaxMarginClassifier`, with the kernel's default parameters. The
        values of a kernel are rounded, so that False is proved only where equal examples
        have different labels.
    fit_intercept : bool, default=True
        Whether the separator may have an intercept.
    epsilon : float
        Without effect: margins of all sizes, relative to the radius, are searched for.

        .. deprecated:: 0.2
            It will be removed in 0.4.
    max_iter : int, default=200
        Rounds of :class:`marginsvm.MaxMarginClassifier` after which the result is None.

    Returns
    -------
    Separability
        The result and its proof.

    Raises
    ------
    ValueError
        If the data or a parameter cannot be used; the message says what to do.

    See Also
    --------
    marginsvm.PerceptronVonNeumann : The method of a paper for the same question.

    Notes
    -----
    The exact solver finds a separator, or weights q with a small ``A^T q``. A small
    bound alone does not prove that nothing separates. So it is then proved, by Krawczyk's
    argument or by an elimination in integers, that weights near q exist for which ``A^T q`` is
    exactly zero.

    References
    ----------
    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Theorem 2 (Gordan).

    S. Rump. Verification methods: rigorous results using floating-point arithmetic. Acta
    Numerica, 2010 (Krawczyk's argument).

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
    if epsilon != "deprecated":
        warnings.warn(
            "epsilon has no effect any more: margins of all sizes are searched for",
            FutureWarning,
            stacklevel=2,
        )
    estimator = MaxMarginClassifier(
        kernel=kernel, fit_intercept=fit_intercept, stopping="separation", max_iter=max_iter
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
