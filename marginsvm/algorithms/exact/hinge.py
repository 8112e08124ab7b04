"""Soft margins with the hinge loss: Newton's method for an augmented Lagrangian.

The weights of the data player may be at most ``caps``: those of examples on the wrong side of their
margin are at their caps, and few others are free. A squared term rounds the loss off, and with the
last weights as its multipliers, its solution is that of the loss itself: the method of multipliers,
or the proximal point method for the weights. Each is solved by Newton's method, in whose systems
free rows alone have a part.

References
----------
R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research 1976.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.definite import cholesky
from marginsvm.algorithms.exact.method import Method, Turn
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems import System
from marginsvm.certify.candidate import HingeCandidate
from marginsvm.certify.caps import hinge_offsets, hinge_scale
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Rows, Vector

# Range of margins over which the loss is rounded off at first, and the square of the extra
# coordinates (in radii squared) that rounds it off at least.
_RANGE, _LEAST = 1.0, 0.05
# Factor by which both fall from one set of multipliers to the next, where the last one took no more
# than so many steps: the less the loss is rounded off, the further do multipliers lead, and the
# more steps each takes.
_NARROWER, _QUICK = 0.2, 2
# Relative gap from which on bounds get no worse from one set of multipliers to the next, unless by
# rounding.
_CLOSE = 1e-2
# Square of the extra coordinates (in radii squared) at the end: weights are margins, which are
# about 1, over this, and so is their rounding.
_LAST = 1e-8
# What a problem with given multipliers may leave of its gap, as a share of the whole gap.
_NEAR = 0.3
# Decrease of the objective in a step, relative to it, that is rounding.
_ROUNDED = 1e-14


class Steps(Protocol):
    """A way to solve Newton's systems, for features or for a kernel."""

    def direction(
        self, problem: KernelMatrixAdapter, weight: Array, descent: Vector
    ) -> tuple[Vector, float, Steps]:
        """Newton's direction, the change of the intercept, and what is kept for the next system.

        Parameters
        ----------
        problem : KernelMatrixAdapter
        weight : ndarray of shape rows.shape
            1/s of the free rows, 0 of the others.
        descent : Vector
            The negative gradient.
        """
        ...

    def anew(self) -> Steps:
        """The same for the systems of other multipliers."""
        ...

    def refreshed(self, problem: KernelMatrixAdapter, w: Vector) -> Vector:
        """A predictor without the rounding of the sums that it is the end of."""
        ...


@dataclass(frozen=True)
class FeatureSteps:
    """In the space of features."""

    system: System

    def direction(
        self, problem: KernelMatrixAdapter, weight: Array, descent: Vector
    ) -> tuple[Vector, float, FeatureSteps]:
        z, system = self.system.solve(problem, weight, descent.image)
        width = descent.image.shape[-1]
        shift = float(z[width]) if problem.rows.balanced else 0.0
        return Vector(z[:width], np.zeros(problem.rows.shape)), shift, FeatureSteps(system)

    def anew(self) -> FeatureSteps:
        return FeatureSteps(self.system.anew())

    def refreshed(self, problem: KernelMatrixAdapter, w: Vector) -> Vector:
        return w


@dataclass(frozen=True)
class GramSteps:
    """By the Gram matrix of the free rows.

    With the direction ``A' x``, Newton's system is ``x = r - W (A A' x + y t)`` for a descent
    ``A' r``: ``x = r`` on rows that are not free, whose W is 0.
    """

    def direction(
        self, problem: KernelMatrixAdapter, weight: Array, descent: Vector
    ) -> tuple[Vector, float, GramSteps]:
        rows, r = problem.rows, descent.coef
        free = np.flatnonzero(weight)
        y = rows.moves(np.ones(rows.score_shape))[free]
        H = problem.gram(free, free)
        known = r.copy()
        known[free] = 0.0
        margins = np.zeros(len(free))
        if known.any():
            margins = rows.moves(problem.scores(problem.combine(known)))[free]
        s = 1.0 / weight[free]
        H.flat[:: len(free) + 1] += s
        right = np.column_stack([s * r[free] - margins, y])
        x, of_one = dpotrs(cholesky(H.T), right, lower=0)[0].T
        t = float(y @ (x - r[free]) / (y @ of_one)) if rows.balanced else 0.0
        known[free] = x - t * of_one
        return problem.combine(known, precise=True), t, self

    def anew(self) -> GramSteps:
        return self

    def refreshed(self, problem: KernelMatrixAdapter, w: Vector) -> Vector:
        return problem.refresh(w)


@dataclass(frozen=True)
class Hinge(Method):
    """An iterate of Newton's method for the present multipliers.

    Attributes
    ----------
    slack : Slack
        The penalty.
    steps : Steps
        Solves Newton's systems.
    margins : ndarray of shape rows.shape
        Of ``w`` with its best intercept.
    w : Vector
        The predictor. Of features, its coefficients are of no account.
    proof : Vector
        ``A^T u`` of the data player's weights u.
    candidates : tuple of HingeCandidate
    taken : int
        Steps since the multipliers were last updated.
    narrow : float
        Factor by which the loss is rounded off less than at first.
    fell : float
        By how much the last step reduced the objective; infinite before the first.
    left : float
        Relative gap at which the multipliers were last updated; infinite before.
    least : float
        ``narrow`` must not fall below this.
    """

    name: ClassVar[str] = "multipliers"

    slack: Slack
    steps: Steps
    margins: Array
    w: Vector
    proof: Vector
    candidates: tuple[HingeCandidate, ...]
    taken: int = 0
    narrow: float = 1.0
    fell: float = np.inf
    left: float = np.inf
    least: float = 0.0

    def _penalised(self, problem: KernelMatrixAdapter) -> float:
        """The objective of Newton's method."""
        u, slack = self.proof.coef, self.slack
        moved = u - slack.v
        return 0.5 * _squared(problem, self.w) + float(
            np.sum(u * (1.0 - self.margins) - 0.5 * slack.s * moved * moved)
        )

    @property
    def _moving(self) -> bool:
        """Whether the last step reduced the objective by more than rounding."""
        objective = self.candidates[0].objective
        return objective is not None and self.fell > _ROUNDED * objective

    @classmethod
    def start(
        cls,
        problem: KernelMatrixAdapter,
        steps: Steps,
        u: Array | None = None,
        narrow: float = 1.0,
    ) -> Hinge:
        """Begin at w = 0 or at weights that are known, which then are the multipliers.

        Parameters
        ----------
        problem : KernelMatrixAdapter
        steps : Steps
        u : ndarray of shape rows.shape, default=None
        narrow : float
            Factor of the range over which the loss is rounded off, at least: known weights that
            miss the margins by more begin with a wider one.
        """
        assert problem.caps is not None
        caps, none, w = problem.caps.largest, np.zeros(problem.rows.shape), problem.zeros()
        margins = none
        if u is not None:
            w = problem.combine(u, precise=True)
            margins = problem.rows.margins(problem.scores(w))
            narrow = max(narrow, min(_missed(problem.rows, caps, u, margins) / _RANGE, 1.0))
        s = np.maximum(narrow * np.maximum(_RANGE / caps, _LEAST), _LAST)
        slack = Slack(0.0, caps, soft=s, v=none if u is None else u)
        return replace(cls.at(problem, slack, steps, w, margins), narrow=narrow)

    @classmethod
    def at(
        cls,
        problem: KernelMatrixAdapter,
        slack: Slack,
        steps: Steps,
        w: Vector,
        margins: Array,
    ) -> Hinge:
        """Weights and bounds at w, under its best intercept."""
        if problem.rows.balanced:
            b = slack.best_intercept(problem.rows, margins)
            margins = margins + problem.rows.moves(np.broadcast_to(b, problem.rows.score_shape))
        u = slack.weights(margins)
        proof = problem.combine(u, precise=True)
        return cls(
            slack,
            steps,
            margins,
            w,
            proof,
            hinge_candidates(problem, np.asarray(slack.cap), w, margins, proof),
        )

    def advance(self, problem: KernelMatrixAdapter, tol: float) -> tuple[Hinge, Turn]:
        """One step of Newton's method, and new multipliers where that was enough."""
        weight, steps = self.slack.curvature(self.margins)[0], self.steps
        z, shift = self.proof - self.w, 0.0
        if weight.any():
            z, shift, steps = steps.direction(problem, weight, z)
        move = problem.rows.moves(problem.scores(z) + shift)
        slope, square = problem.dot(self.w, z), problem.dot(z, z)
        t = self.slack.line_search(self.margins, move, slope, square)
        new = self.at(problem, self.slack, steps, self.w + t * z, self.margins + t * move)
        fell = self._penalised(problem) - new._penalised(problem)
        new = replace(
            new,
            narrow=self.narrow,
            taken=self.taken + 1,
            fell=fell,
            left=self.left,
            least=self.least,
        )
        now = new._with_multipliers(problem) if new._near(problem) else new
        return now, Turn.NEARER if now._moving else Turn.STALLED

    def _near(self, problem: KernelMatrixAdapter) -> bool:
        """Whether w is as near to ``A' u`` as these multipliers are to the loss itself."""
        return 0.5 * _squared(problem, self.proof - self.w) <= _NEAR * self._of_multipliers

    @property
    def _of_multipliers(self) -> float:
        """What of the gap is due to the rounding off of the loss: slack that weights miss."""
        missing, u = 1.0 - self.margins, self.proof.coef
        return float(np.sum((np.where(missing > 0.0, self.slack.cap, 0.0) - u) * missing))

    def _with_multipliers(self, problem: KernelMatrixAdapter) -> Hinge:
        """The next multipliers, and a loss that is rounded off less where that helped.

        The weights' rounding is that of margins over s. Where bounds that are close already get
        worse, it shows: then the loss is rounded off more, and never again so little.
        """
        gap, factor, least = relative_gap(self.candidates), 1.0, self.least
        if self.left < gap < _CLOSE:
            least = self.narrow / _NARROWER
        if self.taken <= _QUICK or self.narrow < least:
            factor = max(_NARROWER, least / self.narrow)
        s = np.maximum(self.slack.s * factor, _LAST)
        slack = self.slack.about(self.proof.coef, s)
        # what earlier, longer vectors have left of their rounding would count 1/s times
        w = self.steps.refreshed(problem, self.w)
        margins = problem.rows.margins(problem.scores(w))
        new = self.at(problem, slack, self.steps.anew(), w, margins)
        return replace(new, fell=self.fell, narrow=self.narrow * factor, left=gap, least=least)


def _missed(rows: Rows, caps: Array, u: Array, margins: Array) -> float:
    """By how much margins miss 1, at most, on rows whose weights may move in that direction."""
    offsets = hinge_offsets(rows, margins, caps)
    missing = 1.0 - margins - rows.expand(offsets[:, None] - offsets)
    return float(np.maximum(missing * (u < caps), -missing * (u > 0.0)).max())


def relative_gap(candidates: tuple[HingeCandidate, ...]) -> float:
    """Gap between the objective and what the weights prove, relative to the objective."""
    lower, upper = candidates
    assert lower.objective is not None
    assert upper.proved is not None
    return 1.0 - upper.proved / max(lower.objective, 1e-300)


def hinge_candidates(
    problem: KernelMatrixAdapter, caps: Array, w: Vector, margins: Array, proof: Vector
) -> tuple[HingeCandidate, ...]:
    """The best multiples of the predictor and, where they are longer, of the weights."""
    squared, mass, of_w = _squared(problem, proof), proof.mass, _squared(problem, w)
    scale = hinge_scale(of_w, margins, caps)
    slack = float(np.sum(caps * np.maximum(1.0 - scale * margins, 0.0)))
    lower = HingeCandidate(
        scale * Vector(w.image, proof.coef), objective=0.5 * scale**2 * of_w + slack
    )
    t = min(1.0, mass / squared) if squared > 0.0 else 1.0
    return lower, HingeCandidate(proof, precise=True, proved=t * mass - 0.5 * t * t * squared)


def _squared(problem: KernelMatrixAdapter, w: Vector) -> float:
    """Squared norm of a vector whose coefficients may be negative."""
    return max(problem.dot(w, w), 0.0)
