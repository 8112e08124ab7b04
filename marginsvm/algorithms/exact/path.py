"""Hard margins where their support is large: by soft margins with ever larger C.

The square s = 1/(2C) of the rows' extra coordinates falls along the path, and each soft margin is
solved loosely, from the solution of the last. Near a separator, its weights become multipliers
(the augmented Lagrangian, or method of multipliers): they turn exact at an s that stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.exact.method import MAX_ROWS, Method
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import SquaredSlack
from marginsvm.algorithms.exact.systems import System
from marginsvm.certify.candidate import Candidate
from marginsvm.kernel_matrix import KernelMatrixAdapter

# Square of the extra coordinate that the path begins with (in radii squared): C = 10 / R^2.
_FIRST = 0.05
# Factor by which it falls from one soft margin to the next.
_HARDER = 0.1
# Relative gap to which a soft margin on the path is solved before the next one.
_LOOSE = 0.1
# Square of the extra coordinate at which the path ends (in radii squared): beyond, rounding
# of margins, which are about 1, is all that it resolves.
_LAST = 1e-13
# Share of the gap that an update of the multipliers must remove; if it does not, s falls.
_PROGRESS = 0.5


@dataclass(frozen=True)
class Path(Method):
    """A soft margin on the way to the hard one.

    Attributes
    ----------
    newton : Newton
        Its iterate.
    gap : float
        Relative gap between the bounds on the hard margin when the multipliers were last updated.
    stay : bool
        Whether the path goes on to its end, as a working set has been tried before.
    """

    newton: Newton
    gap: float = np.inf
    stay: bool = False

    @classmethod
    def start(cls, problem: KernelMatrixAdapter, system: System, stay: bool) -> Path:
        """Begin where the soft margin is easy."""
        s = np.full((1,) * len(problem.rows.shape), _FIRST)
        return cls(Newton.start(problem, SquaredSlack(s * _prior(problem)), system), stay=stay)

    @property
    def candidates(self) -> tuple[Candidate, ...]:  # type: ignore[override]
        return self.newton.candidates

    @property
    def few_weights(self) -> Array | None:
        u = self.newton.separator.coef
        few = self.separates and not self.stay and np.count_nonzero(u) <= MAX_ROWS
        return u if few else None

    @property
    def separates(self) -> bool:
        """Whether the last predictor has a positive margin on all rows."""
        margin = self.newton.candidates[0].min_margin
        return margin is not None and margin > 0.0

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> Path:
        """One step of Newton's method, and on to the next soft margin where that was enough."""
        newton = self.newton.advance(problem, tol)
        if not newton.settled and newton.gap > _LOOSE:
            return replace(self, newton=newton)
        slack, u, gap = newton.slack, newton.separator.coef, self._gap(problem, newton)
        now = replace(self, newton=newton)
        if now.separates:
            s = slack.s * (1.0 if gap <= _PROGRESS * self.gap else _HARDER)
            harder = SquaredSlack(np.maximum(s, _LAST), 1.0 + np.maximum(s, _LAST) * u)
        elif np.max(slack.s) <= _LAST:
            return self if newton.settled else now
        else:
            harder, gap = SquaredSlack(np.maximum(slack.s * _HARDER, _LAST)), np.inf
        w, system = newton.separator.image, newton.system
        newton = Newton.at(problem, harder, system.anew(), w, newton.margins)
        return replace(self, newton=newton, gap=gap)

    @staticmethod
    def _gap(problem: KernelMatrixAdapter, newton: Newton) -> float:
        separator, proof = newton.candidates
        lower = (separator.min_margin or 0.0) / max(problem.norm(separator.vector), 1e-300)
        upper = problem.norm(proof.vector) / max(proof.mass, 1e-300)
        return 1.0 - lower / max(upper, 1e-300)


def _prior(problem: KernelMatrixAdapter) -> float | Array:
    """Factor for each row: examples of small weight get as much slack as a soft margin gives."""
    weights = problem.rows.weights
    return 1.0 if weights is None else problem.rows.per_example(weights.mean() / weights)
