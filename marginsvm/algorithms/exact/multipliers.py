"""Hard margins, the hinge loss, and soft margins with a large C, by softer ones on the way.

The cost of slack is rounded off by ``soft``, about weights v, see :class:`Slack`: the weights of
one solution are the v of the next, its multipliers. Slack is then counted from v, not from 0, so
that the solution is that of the problem itself although ``soft`` does not go to 0. Each is solved
loosely.

References
----------
R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research 1976.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.candidates import relative_gap
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems.system import System
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.prices import hinge_caps
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import OutputRows

# Square of the extra coordinates that costs are rounded off by at first (in radii squared): that of
# C = 10 / R^2.
_FIRST_SOFT = 0.05
# If the last multipliers took two Newton steps or fewer, costs are rounded off five times less for
# the next ones; 25 times while no predictor separates, as bounds fall with that alone. Less of it:
# fewer updates, more steps each. Steps by passes take more products then: they go on as they are
# while each update at least halves the gap.
_HARDER, _QUICK, _HALVED = 0.2, 2, 0.5
# Steps after which a working set of the rows with weight is quicker, if they are few.
_STEPS = 15
# The least ``soft``: less would be rounding. Where nothing separates, weights grow without a bound.
_LEAST_SOFT = 1e-13


@dataclass(frozen=True)
class Multipliers(Method):
    """A softer problem on the way, and its iterate.

    Attributes
    ----------
    newton : Newton
    narrow : float
        Factor by which costs are rounded off less than at first.
    taken : int
        Steps since the multipliers were last updated.
    gap : float
        Relative gap of the problem at that time.
    ended : bool
        Costs are rounded off as little as float64 resolves, and nothing separates.
    """

    name: ClassVar[str] = "multipliers"

    newton: Newton
    narrow: float = 1.0
    taken: int = 0
    gap: float = np.inf
    ended: bool = False

    @classmethod
    def start(
        cls,
        problem: KernelMatrixAdapter,
        system: System,
        u: Array | None = None,
        narrow: float = 1.0,
    ) -> Multipliers:
        """Begin at w = 0, or at weights that are known, which then are the multipliers.

        Parameters
        ----------
        problem : KernelMatrixAdapter
        system : System
        u : ndarray of shape rows.shape, default=None
        narrow : float
            Factor of how far costs are rounded off at first.
        """
        if u is None:
            newton = Newton.start(problem, _rounded_off(problem, np.zeros(1), narrow), system)
            if newton.slack.is_game:  # margins are to be about as large as those of the mean
                narrow *= problem.inner(newton.proof, newton.proof)
                newton = newton.with_slack(problem, _rounded_off(problem, newton.weights, narrow))
            return cls(newton, narrow)
        w = problem.combine(u, precise=True)
        newton = Newton.of(problem, _rounded_off(problem, u, narrow), system, w)
        wide = min(_missed(newton), 1.0)
        if wide > narrow:  # the weights say less than was assumed
            newton = newton.with_slack(problem, _rounded_off(problem, u, wide))
        return cls(newton, max(narrow, wide))

    @property
    def candidates(self) -> tuple[Candidate, ...]:  # type: ignore[override]
        return self.newton.candidates

    @property
    def weights(self) -> Array | None:
        return self.newton.weights if self._bounded else None

    @property
    def _bounded(self) -> bool:
        """Whether the best weights are: the last predictor has a positive margin on all rows."""
        uncapped = isinstance(self.newton.slack.cap, float)
        return uncapped and (self.newton.candidates[0].lower(1.0) or 0.0) > 0.0

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Multipliers, Turn]:
        """One step of Newton's method, and the next multipliers where that was enough."""
        if self.ended:
            return self, Turn.STALLED
        newton, turn = self.newton.advance(problem, tol)
        now, turn = replace(self, newton=newton, taken=self.taken + 1), turn & ~Turn.SHORT
        few = newton.steps >= _STEPS or (problem.slack is None and now._bounded)
        if newton.settled or now._is_near():
            now = now._next(problem)
            turn = Turn.NEARER if now.narrow < self.narrow else turn
        return now, Turn.STALLED if now.ended else turn | Turn.FEW if few else turn

    def _is_near(self) -> bool:
        """Whether these multipliers are solved for as precisely as they are near to the next."""
        slack, u = self.newton.slack, self.newton.weights
        missed = 0.5 * float(np.sum(slack.soft * (u - slack.v) ** 2))
        return self.newton.gap <= missed

    def _next(self, problem: KernelMatrixAdapter) -> Multipliers:
        """The problem with the next multipliers, rounded off less where that was easy."""
        before, u = self.newton.slack, self.newton.weights
        gap = relative_gap(problem, self.candidates)
        halved = self.newton.system.by_passes and gap <= _HALVED * self.gap
        harder = self.taken <= _QUICK and not halved
        unseparated = problem.caps is None and problem.slack is None and not self._bounded
        times = (2 if unseparated else 1) if harder else 0
        narrow = self.narrow * _HARDER**times
        slack = _rounded_off(problem, u, narrow)
        if harder and np.all(slack.soft >= before.soft):  # float64 resolves no less
            if unseparated:
                return replace(self, ended=True)
            narrow = self.narrow
        newton = self.newton.with_slack(problem, slack)
        return replace(self, newton=newton, narrow=narrow, taken=0, gap=gap)


def target(problem: KernelMatrixAdapter) -> Slack:
    """The cost of the problem itself."""
    if isinstance(problem.rows, OutputRows):
        ends = problem.rows.intervals
        caps, own = problem.caps, 0.0 if problem.slack is None else problem.slack
        if caps is None:
            return Slack(own, np.inf, ends.low, ends.high)
        mass = 0.0 if caps.nu is None else float(hinge_caps(caps).most)
        return Slack(own, caps.largest, ends.low, ends.high, mass=mass)
    if problem.caps is None:
        return Slack(0.0 if problem.slack is None else problem.slack)
    if problem.nu is not None:
        return Slack(0.0, problem.caps.largest, 0.0, mass=1.0)
    if problem.rows.n_classes > 2:
        return Slack(0.0, problem.caps.largest[:, None], shared=True)
    return Slack(0.0, problem.caps.largest)


def _rounded_off(problem: KernelMatrixAdapter, u: Array, narrow: float) -> Slack:
    """The cost of the problem, rounded off about weights, by a factor less than at first.

    Where weights are capped, at first at least so much that margins within 1 of each other are. Not
    at all, if a step further that would be less than the problem's own slack.
    """
    slack = target(problem)
    soft = narrow * np.maximum(1.0 / slack.cap, _FIRST_SOFT * _prior(problem)) - slack.own
    if problem.slack is not None and np.all(_HARDER * soft <= slack.own):
        return slack
    return slack.about(u, np.maximum(soft, _LEAST_SOFT))


def is_rounded_off(problem: KernelMatrixAdapter) -> bool:
    """Whether the costs of the problem are rounded off at first, and multipliers count."""
    return bool(np.any(_rounded_off(problem, np.zeros(1), 1.0).soft))


def is_steep(problem: KernelMatrixAdapter) -> bool:
    """Whether the problem leaves so little slack that softer ones lead to it sooner."""
    return problem.slack is None or bool(np.all(problem.slack < _FIRST_SOFT * _prior(problem)))


def _prior(problem: KernelMatrixAdapter) -> Array:
    """Factor for each row: examples of small weight get as much slack as a soft margin gives."""
    weights = problem.rows.weights
    if weights is None or problem.caps is not None:  # caps have them
        return np.ones((1,) * len(problem.rows.shape))
    return problem.rows.per_example(weights.mean() / weights)


def _missed(newton: Newton) -> float:
    """By how much margins miss their weights, at most, where these may move in that direction."""
    slack, v = newton.slack, newton.slack.v
    missing = np.where(np.isfinite(newton.margins), 1.0 - newton.margins - slack.own * v, 0.0)
    return float(np.maximum(missing * (v < slack.cap), -missing * (v > 0.0)).max())
