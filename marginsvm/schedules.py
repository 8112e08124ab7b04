"""Step and momentum schedules: functions of the round that a grid search can reach into."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.base import BaseEstimator


class PowerSchedule(BaseEstimator):
    """``scale / (t + 1) ** power``: a constant, ``1/sqrt(t + 1)``, or between.

    Parameters
    ----------
    scale : float, default=1.0
        Value at the first round (dimensionless, a multiple of the paper's step).
    power : float, default=0.0
        Decay (dimensionless); 0 is a constant, 0.5 the schedule of Nacson et al.

    References
    ----------
    M. S. Nacson et al. Convergence of Gradient Descent on Separable Data. AISTATS 2019;
    section 3.1 of Ji et al. (2021).

    Examples
    --------
    >>> from marginsvm.schedules import PowerSchedule
    >>> PowerSchedule(power=0.5)(3)
    0.5
    """

    def __init__(self, *, scale: float = 1.0, power: float = 0.0) -> None:
        self.scale = scale
        self.power = power

    def __call__(self, t: int) -> float:
        """Value at round ``t`` = 0, 1, ..."""
        return self.scale / (t + 1) ** self.power


class NesterovSchedule(BaseEstimator):
    """``t / (t + delay)``: Nesterov's momentum; Ji's Theorem 3.1 has ``delay`` 1.

    Parameters
    ----------
    delay : float, default=1.0
        Rounds until the momentum is one half (a number of rounds: dimensionless).

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
        """Value at round ``t`` = 0, 1, ..."""
        return t / (t + self.delay)


Schedule = str | float | Callable[[int], float]

STEPS: dict[str, Callable[[int], float]] = {
    "constant": PowerSchedule(),
    "inv_sqrt": PowerSchedule(power=0.5),
}
MOMENTA: dict[str, Callable[[int], float]] = {
    "nesterov": NesterovSchedule(),
    "none": PowerSchedule(scale=0.0),
}


def resolve(schedule: Schedule, names: dict[str, Callable[[int], float]]) -> Callable[[int], float]:
    """Make a function of the round of a name, a number or a callable."""
    if isinstance(schedule, str):
        if schedule not in names:
            raise ValueError(f"unknown schedule {schedule!r}; the names are {sorted(names)}")
        return names[schedule]
    return schedule if callable(schedule) else PowerSchedule(scale=float(schedule))


def step_at(schedule: Callable[[int], float], t: int) -> float:
    """Evaluate a step schedule, which must be positive and finite."""
    value = float(schedule(t))
    if not 0.0 < value < float("inf"):
        raise ValueError(
            f"step must be positive and finite, but its schedule gave {value} at round {t}"
        )
    return value


def momentum_at(schedule: Callable[[int], float], t: int) -> float:
    """Evaluate a momentum schedule, which must lie in [0, 1]."""
    value = float(schedule(t))
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"momentum must lie in [0, 1], but its schedule gave {value} at round {t}")
    return value
