"""Newton's systems ``(I + A' D A) z = r``, and conjugate gradients for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from marginsvm._rounding import inner
from marginsvm._typing import Array
from marginsvm.fit.interrupts import let_interrupts_through
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Predictor

# Residual, relative to the right hand side, up to which systems are solved: more digits of a
# direction save no steps. And products for each system at most.
RESIDUAL, MOST_PRODUCTS = 0.1, 300
# Share of the active rows: if more have changed, factors are computed anew.
_OUTDATED = 0.3

T = TypeVar("T", bound=Any)


class Equation(NamedTuple):
    """Newton's equation at an iterate.

    Attributes
    ----------
    weight : ndarray of shape rows.shape
        1/s of the free rows, 0 of the others.
    descent : Predictor
        The negative gradient in w; that in the intercepts is 0.
    linked : ndarray of shape rows.shape or None
        Where rows share caps, see ``Slack.curvature``.
    """

    weight: Array
    descent: Predictor
    linked: Array | None = None


class System(ABC):
    """A way to solve Newton's systems, and what it keeps from one to the next.

    Attributes
    ----------
    by_passes : bool
        Whether it takes passes over the examples, the more the harder the system is.
    """

    by_passes: ClassVar[bool] = False

    @abstractmethod
    def direction(
        self, problem: KernelMatrixAdapter, equation: Equation
    ) -> tuple[Predictor, Array, System]:
        """Direction along which the objective falls.

        Parameters
        ----------
        problem : KernelMatrixAdapter
        equation : Equation

        Returns
        -------
        direction : Predictor
        shift : ndarray of shape rows.score_shape[1:]
            Its change of the intercepts of the scores.
        system : System
        """


def is_outdated(before: Array, weight: Array) -> bool:
    """Whether too many rows have come or gone for a preconditioner computed before."""
    moved = np.count_nonzero((weight > 0) != (before > 0))
    return bool(moved > _OUTDATED * np.count_nonzero(weight))


def conjugate_gradients(
    multiply: Callable[[T], T],
    precondition: Callable[[T], T],
    r: T,
    rtol: float,
    most: int,
    dot: Callable[[Any, Any], float] = inner,
) -> T:
    """Solve ``multiply(z) = r`` until the residual has fallen to ``rtol`` of what it was.

    Parameters
    ----------
    multiply, precondition : callable
        A positive definite operator, and roughly its inverse.
    r : ndarray, or another vector
        Right hand side.
    rtol : float
        In the norm that the preconditioner gives (dimensionless).
    most : int
        Products at most.
    dot : callable
        Inner product of two vectors.

    Raises
    ------
    KeyboardInterrupt
        Between two products, if an interrupt waits: a step leaves the states before it unchanged.
    """
    q = precondition(r)
    z: Any = 0.0 * q
    p, rq = q, dot(r, q)
    stop = rtol**2 * rq
    for _ in range(most):
        if not rq > stop:
            break
        let_interrupts_through()  # a product may take a second, and a round hundreds of them
        Hp = multiply(p)
        curved = dot(p, Hp)
        if not curved > 0.0:  # rounding
            break
        step = rq / curved
        z = z + step * p
        r = r - step * Hp
        q = precondition(r)
        rq, old = dot(r, q), rq
        p = q + (rq / old) * p
    return z
