"""Ramdas, Pena (ICML 2014): Margins, Kernels and Non-linear Smoothed Perceptrons, Alg. 4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import with_parameters
from marginsvm.estimator.parameters import KernelParameters, NormalizeParameters, ShareParameters
from marginsvm.fit import Algorithm, Candidate, Requirements
from marginsvm.kernel_matrix import BestResponse, KernelMatrixAdapter
from marginsvm.kernel_matrix.responses import Response, softmax
from marginsvm.rows import Vector


@dataclass(frozen=True)
class SmoothedState:
    """``alpha_k``, ``mu_k``, ``p_k``, and the best response ``p_{mu_k}(alpha_k)``."""

    k: int
    mu: float
    alpha: Vector
    p: Vector
    best_response: BestResponse


def smoothed_start(
    problem: KernelMatrixAdapter, alpha: Vector, response: Response
) -> SmoothedState:
    """State before the first round, from the first predictor ``alpha``."""
    best = problem.respond(alpha, 2.0, response)
    return SmoothedState(0, 2.0, alpha, best.vector, best)


def smoothed_round(
    problem: KernelMatrixAdapter, state: SmoothedState, response: Response
) -> SmoothedState:
    """One round of Algorithm 4 or, with a Euclidean response, of Algorithm 6.

    The best response to ``alpha_k`` is used in two rounds, so that a round makes one product
    with the Gram matrix.
    """
    k, mu, alpha, p = state.k, state.mu, state.alpha, state.p
    theta = 2.0 / (k + 3)
    alpha = (1.0 - theta) * (alpha + theta * p) + theta**2 * state.best_response.vector
    mu = (1.0 - theta) * mu
    best = problem.respond(alpha, mu, response)
    p = (1.0 - theta) * p + theta * best.vector
    return SmoothedState(k + 1, mu, alpha, p, best)


@dataclass(frozen=True)
class Smoothed(Algorithm):
    """Algorithm 4 of Ramdas and Pena (SNKP)."""

    requires = Requirements(responses=(softmax,))

    def start(self, problem: KernelMatrixAdapter) -> SmoothedState:
        """Begin at the uniform distribution."""
        return smoothed_start(problem, problem.respond(problem.zeros()).vector, softmax)

    def step(self, problem: KernelMatrixAdapter, state: SmoothedState) -> SmoothedState:
        """Play one round."""
        return smoothed_round(problem, state, softmax)

    def candidates(self, problem: KernelMatrixAdapter, state: SmoothedState) -> Iterator[Candidate]:
        """``alpha`` gives a lower bound, ``p`` an upper bound."""
        weights = state.best_response.weights
        yield Candidate(state.alpha, 1.0, weights.min_margin, True, weights.offsets)
        yield Candidate(state.p, 1.0)


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
    paper                          code
    =============================  ====================================================
    :math:`\alpha_k, p_k`          ``alpha``, ``p``: vectors of mass 1
    :math:`G \alpha_k`             ``problem.margins(alpha)``
    :math:`p_{\mu_k}(\alpha_k)`    ``problem.respond(alpha, mu)``
    :math:`\|p_k\|_G`              ``problem.norm(p)``, an upper bound
    :math:`\theta_k, \mu_k`        ``theta``, ``mu``
    =============================  ====================================================

    ``n_iter_`` is the paper's k. Every round keeps the excessive gap
    :math:`L_{\mu_k}(\alpha_k) \le -\|p_k\|_G^2 / 2` (Lemma 5), so that alpha separates
    within :math:`2 \sqrt{2 \ln(n)} / \rho_K` rounds; with ``normalize=False``, :math:`\rho_K` is
    replaced by the best margin divided by the largest norm of a row. Where nothing separates, the
    last alpha is the model: divided by mu, it tends to the minimiser of the exponential loss.

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
    >>> clf = SmoothedKernelPerceptron(kernel="rbf", tol=1e-2).fit(X[:100], y[:100])
    >>> clf.status_, clf.score(X[:100], y[:100])
    ('certified', 1.0)
    """

    def _algorithm(self) -> Smoothed:
        return Smoothed()
