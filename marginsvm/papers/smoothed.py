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
    =============================  ====================================================
    paper                          code, after round t = k + 1
    =============================  ====================================================
    :math:`\alpha_k, p_k`          ``W``, ``total``, divided by t (t + 1) / 2
    :math:`G \alpha_k`             ``problem.margins(alpha)``
    :math:`p_{\mu_k}(\alpha_k)`    ``problem.respond(W, 2)``: ``last``
    :math:`\|p_k\|_G`              ``problem.norm(p)``, an upper bound
    :math:`\theta_k, \mu_k`        2 / (t + 2), 4 / (t (t + 1))
    =============================  ====================================================

    This is the algorithm of :class:`~marginsvm.AcceleratedPerceptron` with p = 2, round by round
    (Wang et al., 2023, Proposition 1). ``n_iter_`` is k + 1, as the margins
    of :math:`\alpha_k` are computed in round k + 1. Where nothing separates, the
    last W is the model: it tends to the minimiser of the exponential loss.

    With ``nu``, the responses are the same among weights of at most :math:`1 / (\nu n)` each.

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
