"""Schedules of steps, momenta and norms: functions of the iteration, open to a grid search."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, log, sqrt
from numbers import Integral, Real
from sys import float_info
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, validate_params

from marginsvm._typing import Array

_LONGEST = -log(float_info.epsilon)  # logarithm of the factor at which growth ends


class PowerSchedule(BaseEstimator):
    """``scale / (t + 1) ** power``: a constant, ``1/sqrt(t + 1)``, or between.

    Parameters
    ----------
    power : float, default=0.0
        Decay (dimensionless); 0 is a constant, 0.5 the schedule of Nacson et al.
    scale : float, default=1.0
        Value at the first iteration (dimensionless). A step of 1 is that of Ji et al. (2021).

    References
    ----------
    M. S. Nacson et al. Convergence of Gradient Descent on Separable Data. AISTATS 2019;
    section 3.1 of Ji et al. (2021).

    Examples
    --------
    >>> from marginsvm.schedules import PowerSchedule
    >>> PowerSchedule(0.5)(3)
    0.5
    """

    def __init__(self, power: float = 0.0, *, scale: float = 1.0) -> None:
        self.power = power
        self.scale = scale

    def __call__(self, t: int) -> float:
        """Value at iteration ``t`` = 0, 1, ..."""
        return self.scale / (t + 1) ** self.power


class NesterovSchedule(BaseEstimator):
    """``t / (t + delay)``: Nesterov's momentum; Ji's Theorem 3.1 has ``delay`` 1, textbooks 3.

    Parameters
    ----------
    delay : float, default=1.0
        Iterations until the momentum is one half (a number: dimensionless).

    References
    ----------
    Ji et al. (2021), Algorithm 1 and Theorem 3.1.

    Examples
    --------
    >>> from marginsvm.schedules import NesterovSchedule
    >>> NesterovSchedule()(3)
    0.75
    """

    def __init__(self, *, delay: float = 1.0) -> None:
        self.delay = delay

    def __call__(self, t: int) -> float:
        """Value at iteration ``t`` = 0, 1, ..."""
        return t / (t + self.delay)


class GrowthSchedule(BaseEstimator):
    """``scale * growth ** (t // period)``: the norms of progressive rescaling.

    It stops growing at ``scale`` / (machine epsilon): beyond that, a step is lost to rounding.

    Parameters
    ----------
    scale : float, default=1.0
        Value in the first phase (dimensionless, a multiple of the longest step).
    growth : float, default=1.2
        Factor from one phase to the next (dimensionless).
    period : int, default=5
        Iterations in a phase (a number: dimensionless).

    References
    ----------
    M. Wang, Z. Min, L. Wu. Achieving Margin Maximization Exponentially Fast via Progressive Norm
    Rescaling. ICML 2024. The progressive radius and the progressive time of the algorithm.

    Examples
    --------
    >>> from marginsvm.schedules import GrowthSchedule
    >>> [round(GrowthSchedule(growth=2.0, period=2)(t), 6) for t in range(5)]
    [1.0, 1.0, 2.0, 2.0, 4.0]
    """

    def __init__(
        self, *, scale: float = 1.0, growth: float = 1.2, period: int = 5
    ) -> None:
        self.scale = scale
        self.growth = growth
        self.period = period

    def __call__(self, t: int) -> float:
        """Value at iteration ``t`` = 0, 1, ..."""
        return self.scale * exp(min(log(self.growth) * (t // self.period), _LONGEST))


OfIteration = Callable[[int], float]
Schedule = str | float | OfIteration

STEPS: dict[str, OfIteration] = {
    "constant": PowerSchedule(),
    "inv_sqrt": PowerSchedule(0.5),
}
MOMENTA: dict[str, OfIteration] = {"nesterov": NesterovSchedule()}
NORMS: dict[str, OfIteration] = {"progressive": GrowthSchedule()}


def resolve(schedule: Schedule | None, names: dict[str, OfIteration]) -> OfIteration:
    """Make a function of the iteration of a name, a number, a callable, or of None: no momentum."""
    if isinstance(schedule, type):
        name = schedule.__name__
        raise ValueError(
            f"{name} is a class: pass a schedule, such as {name}(), in its place"
        )
    if schedule is None and names is not MOMENTA:
        raise ValueError(
            'None is no step: pass "constant", which is 1, another name, a number or a function'
        )
    if isinstance(schedule, str):
        if schedule not in names:
            raise ValueError(
                f"unknown schedule {schedule!r}; the names are {sorted(names)}"
            )
        return names[schedule]
    return (
        schedule if callable(schedule) else PowerSchedule(scale=float(schedule or 0.0))
    )


def step_at(schedule: OfIteration, t: int, name: str = "step") -> float:
    """Evaluate a schedule of steps or norms, which must be positive and finite."""
    value = float(schedule(t))
    if not 0.0 < value < float("inf"):
        raise ValueError(
            f"{name} must be positive and finite, but its schedule gave {value} at iteration {t}"
        )
    return value


def momentum_at(schedule: OfIteration, t: int) -> float:
    """Evaluate a momentum schedule, which must lie in [0, 1]."""
    value = float(schedule(t))
    if not 0.0 <= value <= 1.0:
        raise ValueError(
            f"momentum must lie in [0, 1], but its schedule gave {value} at iteration {t}"
        )
    return value


def each_of(
    at: Callable[[OfIteration, int], float], schedule: Any, rounds: range
) -> Array:
    """``at(schedule, t)`` of each iteration, where ``at`` is ``step_at`` or ``momentum_at``.

    Values of schedules of this module are computed before their extremes are checked: at once, if
    NumPy's arithmetic has the bits of Python's. A power may differ in its last digit.
    """
    if type(schedule) not in (PowerSchedule, NesterovSchedule) or not rounds:
        return np.array([at(schedule, t) for t in rounds])
    if getattr(schedule, "power", 0.0) == 0.0:
        values = np.asarray(schedule(np.arange(rounds.start, rounds.stop)), float)
    else:
        values = np.fromiter(map(schedule, rounds), float, len(rounds))
    for extreme in (values.argmin(), values.argmax()):
        at(schedule, rounds[extreme])
    return values


def theory_step(n_rows: int, max_iter: int) -> float:
    """Theta = sqrt(ln n / T) of Ji's Theorem 4.1."""
    return sqrt(log(max(n_rows, 2)) / max_iter)


_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_SEVERAL = Interval(Integral, 2, None, closed="left")


@validate_params(
    {
        "epsilon": [_POSITIVE],
        "delta": [Interval(Real, 0.0, 1.0, closed="neither")],
        "margin": [_POSITIVE],
        "n_samples": [_SEVERAL],
        "n_classes": [_SEVERAL],
        "radius": [_POSITIVE],
    },
    prefer_skip_nested_validation=True,
)
def theory_draws(
    epsilon: float,
    delta: float,
    *,
    margin: float,
    n_samples: int,
    n_classes: int = 2,
    radius: float = 1.0,
) -> int:
    r"""Draws after which adaptive sampling is within ``epsilon`` of the best margin.

    This holds with probability ``1 - delta`` over the draws. Pass the number as ``max_iter`` to
    ``AdaptiveSamplingKernelClassifier(schedule="theory", fit_intercept=False)``, whose step
    depends on it.

    Parameters
    ----------
    epsilon : float
        Largest shortfall from the best margin (units of X, as ``margin``).
    delta : float
        Probability of a larger shortfall (dimensionless).
    margin : float
        The best margin, or any positive lower bound on it (units of X): the smaller, the
        more draws.
    n_samples : int
        Number of examples.
    n_classes : int, default=2
        Number of classes.
    radius : float, default=1.0
        Largest norm of an example (units of X; with a kernel, of its features).

    Returns
    -------
    int
        T of the theorem.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    The theorem, for n rows of norm at most 1 and the best margin :math:`\bar\gamma`:

    .. math::

        T = \max\left( \left\lceil \frac{32 \ln(n) + 64 \ln(2 / \delta)}
        {\bar\gamma^2 \epsilon^2} \right\rceil,
        \left\lceil \frac{32}{\delta \epsilon^2} \right\rceil \right)

    With k > 2 classes, each example has k - 1 rows, whose margins are those of the
    classifier over the square root of 2 (Theorem 5.1).

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky. Fast Margin Maximization via Dual Acceleration.
    ICML 2021. Theorem 4.1, section 5.2.

    Examples
    --------
    Four examples no longer than 1.05, of which a margin of 0.9 is known to be possible:

    >>> from marginsvm import AdaptiveSamplingKernelClassifier, theory_draws
    >>> X, y = [[1.0, 0.2], [1.0, -0.2], [-1.0, 0.3], [-1.0, -0.1]], [1, 1, 0, 0]
    >>> T = theory_draws(0.2, 0.1, margin=0.9, n_samples=4, radius=1.05)
    >>> T
    8857
    >>> clf = AdaptiveSamplingKernelClassifier(
    ...     schedule="theory", fit_intercept=False, max_iter=T, random_state=0
    ... )
    >>> bool(clf.fit(X, y).margin_ >= 0.9 - 0.2)
    True
    """
    unit = radius if n_classes == 2 else radius * sqrt(2.0)
    n_rows = n_samples * (n_classes - 1)
    gamma = margin / unit
    short = epsilon / unit
    first = (32.0 * log(n_rows) + 64.0 * log(2.0 / delta)) / (gamma * short) ** 2
    return max(ceil(first), ceil(32.0 / (delta * short**2)))
