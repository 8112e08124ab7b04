"""Ramdas, Pena (ICML 2014): Margins, Kernels and Non-linear Smoothed Perceptrons, Alg. 4, 6, 7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from marginsvm.certificate.overlap import equal_examples
from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    POSITIVE,
    KernelParameters,
    NormalizeParameters,
    ShareParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.results import Fitted
from marginsvm.fit import Algorithm, Candidate, Stopping
from marginsvm.papers.accelerated import AcceleratedPlay, AcceleratedState
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.responses import Euclidean
from marginsvm.problem.vectors import Predictor, Vector


@with_parameters
class SmoothedKernelPerceptron(
    NormalizeParameters,
    ShareParameters,
    KernelParameters,
    DualStateMixin,
    BaseEstimator,
):
    r"""Smoothed normalized kernel perceptron (SNKP): sqrt(log n) / rho iterations to a separator.

    An accelerated perceptron: Nesterov's excessive gap technique for the smallest margin, smoothed
    by an entropy. Each iteration costs one product with the kernel matrix. Unless it is stopped at
    the first separator, its margin converges to the maximum.

    See Also
    --------
    OptimisticPerceptron : A separator from another game.

    Notes
    -----
    This is :class:`~marginsvm.AcceleratedPerceptron` with p = 2, step by step (Wang et al., 2023,
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

    def _algorithm(self) -> AcceleratedPlay:
        return AcceleratedPlay()


@dataclass(frozen=True)
class IteratedState:
    """Outer iteration t: its centre ``q_t`` and goal ``delta_t``, and the last inner iteration.

    Attributes
    ----------
    t : int
    q : Vector
    delta : float
    inner : AcceleratedState
        Of Algorithm 4 with a Euclidean response: that is Algorithm 6.
    hinge : Predictor
        The sum of ``inner.W`` at the ends of the outer iterations so far.
    contradiction : Vector
        A dual certificate found beforehand, or zero.
    """

    t: int
    q: Vector
    delta: float
    inner: AcceleratedState
    hinge: Predictor
    contradiction: Vector


@dataclass(frozen=True)
class IteratedSmoothed(Algorithm):
    r"""Algorithms 6 and 7 of Ramdas and Pena (ISNKPVN).

    Attributes
    ----------
    gamma_outer : float
        Factor by which an outer iteration shrinks the norm of q (dimensionless).

    ================================  =================================================
    paper                             code
    ================================  =================================================
    :math:`\gamma, \epsilon`          ``gamma_outer``, ``epsilon``
    :math:`q_t, \delta_t`             ``q``, ``delta``
    :math:`\alpha_k, p_k`             ``inner.W``, ``inner.total``, over ``inner.weight``
    :math:`p_{\mu_k}^q(\alpha_k)`     ``problem.respond(W, 2, Euclidean(centre))``
    :math:`\mu_k`                     2 n / ``inner.weight``
    ================================  =================================================
    """

    gamma_outer: float = 16.0

    def start(self, problem: KernelMatrixAdapter) -> IteratedState:
        """Begin at the uniform distribution, after a search for equal examples."""
        q = problem.respond(problem.zeros()).vector
        nothing = problem.zeros()
        return IteratedState(
            0, q, *self._inner(problem, q), nothing, contradiction(problem)
        )

    def _inner(
        self, problem: KernelMatrixAdapter, q: Vector
    ) -> tuple[float, AcceleratedState]:
        """``delta``, and ``alpha_0`` and ``p_0`` of SNKPVN(q, delta)."""
        zeros = problem.zeros()
        start = AcceleratedState(0, q, zeros, zeros)
        return problem.norm(q) / self.gamma_outer, about(q).step(problem, start)

    def step(self, problem: KernelMatrixAdapter, state: IteratedState) -> IteratedState:
        """An inner iteration, after the lines of an outer one where SNKPVN returns ``p_k``."""
        p = state.inner.total / state.inner.weight
        if problem.norm(p) < state.delta:
            delta, inner = self._inner(problem, p)
            hinge = state.hinge + state.inner.W
            state = IteratedState(
                state.t + 1, p, delta, inner, hinge, state.contradiction
            )
        return replace(state, inner=about(state.q).step(problem, state.inner))

    def candidates(
        self, problem: KernelMatrixAdapter, state: IteratedState
    ) -> Iterator[Candidate]:
        """The inner iteration's primal and dual points, and the certificate found beforehand."""
        inner = state.inner
        assert inner.measured is not None
        yield Candidate(inner.W, inner.weight, inner.measured.min_margin)
        yield Candidate(inner.total, inner.weight)
        yield Candidate(state.contradiction, state.contradiction.mass)
        yield Candidate(state.hinge + inner.W, fallback=True)


def about(q: Vector) -> AcceleratedPlay:
    """Algorithm 6: Algorithm 4 with the distance from q in place of the entropy."""
    return AcceleratedPlay(response=Euclidean(centre=q.coef))


@with_parameters
class PerceptronVonNeumann(
    NormalizeParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    r"""Iterated smoothed perceptron-von Neumann method (ISNKPVN): a separator or a proof of none.

    It ends with a separator (``separable_`` True), or with a distribution q for which the classes
    nearly meet, ``||A^T q|| < epsilon``. If an exact q nearby proves that the classes meet,
    ``separable_`` is False, otherwise None.

    Parameters
    ----------
    tol : float
        Relative gap at which the fit ends, with ``stopping="gap"`` (dimensionless).
    gamma_outer : float
        Factor, above 1, by which an outer iteration shrinks ``||q||_G`` (dimensionless).
    epsilon : float
        ``||A^T q||`` at which the search for a separator ends, relative to the largest norm of an
        example.

    Attributes
    ----------
    n_outer_ : int
        Outer iterations; ``n_iter_`` counts the inner ones.

    See Also
    --------
    check_separability : A faster decision, with a proof.

    Notes
    -----
    With an intercept, q has sum 1/2 in each of two classes. Without a separator, the model is the
    sum of ``W / 2`` over the outer iterations, which minimises a squared hinge loss.

    References
    ----------
    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Algorithms 6 and 7, Theorem 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import PerceptronVonNeumann
    >>> X, y = load_iris(return_X_y=True)
    >>> PerceptronVonNeumann().fit(X[:100], y[:100]).separable_
    True
    """

    stopping: str = "separation"
    gamma_outer: float = parameter(
        Interval(Real, 1.0, None, closed="neither"), default=16.0
    )
    epsilon: float = parameter(POSITIVE, default=1e-6)

    def _algorithm(self) -> IteratedSmoothed:
        return IteratedSmoothed(self.gamma_outer)

    def _stopping(self) -> Stopping:
        return replace(super()._stopping(), negligible=self.epsilon)

    def _own_results(self, fitted: Fitted) -> dict[str, object]:
        return {"n_outer_": fitted.progress.state.t + 1}


def contradiction(problem: KernelMatrixAdapter) -> Vector:
    """Two equal examples of different classes, or zero: a dual certificate.

    The iterated method is slow at finding such a pair among many examples.
    """
    q = equal_examples(problem.programs[0])
    return problem.zeros() if q is None else problem.combine(q)
