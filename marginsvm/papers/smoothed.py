"""Ramdas, Pena (ICML 2014): Margins, Kernels and Non-linear Smoothed Perceptrons, Alg. 4."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    KernelParameters,
    NormalizeParameters,
    ShareParameters,
    with_parameters,
)
from marginsvm.papers.accelerated import AcceleratedPlay


@with_parameters
class SmoothedKernelPerceptron(
    NormalizeParameters, ShareParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Smoothed normalized kernel perceptron (SNKP): sqrt(log n) / rho rounds to a separator.

    An accelerated perceptron: Nesterov's excessive gap technique, applied to the smallest margin,
    which is smoothed by an entropy. Each round costs one product with the kernel matrix. Unless it
    is stopped at the first separator, its margin converges to the maximum margin.

    Notes
    -----
    This is :class:`~marginsvm.AcceleratedPerceptron` with p = 2, round by round (Wang et al., 2023,
    Proposition 1): ``W`` and ``total``, divided by t (t + 1) / 2, are :math:`\alpha_k` and
    :math:`p_k` of the paper, with t = k + 1, :math:`\theta_k = 2 / (t + 2)` and
    :math:`\mu_k = 4 / (t (t + 1))`.

    References
    ----------
    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Algorithm 4, Lemma 5, Theorem 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import SmoothedKernelPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SmoothedKernelPerceptron(kernel="rbf").fit(X[:100], y[:100])
    >>> clf.status_, clf.score(X[:100], y[:100])
    ('certified', 1.0)
    """

    tol: float = 1e-2

    def _algorithm(self) -> AcceleratedPlay:
        return AcceleratedPlay()
