"""What a fit has found so far: candidates for bounds, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.kernel_matrix import KernelMatrixAdapter, Predictor
from marginsvm.rows.vector import Vector

_OTHER_DATA = 1e-9  # a difference (in radii) that no rounding makes


@dataclass(frozen=True)
class Candidate:
    """A vector of the game and what it may prove.

    Attributes
    ----------
    vector : Vector
    mass : float
        Sum of its coefficients (dimensionless); positive: it carries an upper bound.
    min_margin : float or None
        Its worst margin (units of the radius), if known: it carries a lower bound.
    fallback : bool
        Whether it is the model where nothing separates.
    offsets : ndarray of shape (n_classes,) or None
        Its intercept in that case; None: the one of the exponential loss, where its scale is
        the best.
    margins : ndarray or None
        Its margins on all rows, if known in float64: a bound to stop on then needs no
        further pass.
    precise : bool
        Whether the vector was computed in float64 from its coefficients: nor does this one.

    Examples
    --------
    A sum of two rows, whose norm over 2 bounds the margin from above:

    >>> import numpy as np
    >>> from marginsvm.kernel_matrix import LinearAdapter, make_rows
    >>> from marginsvm.fit.progress import Candidate
    >>> data = LinearAdapter(np.eye(2), make_rows(np.array([0, 1]), 2, balanced=False))
    >>> pair = Candidate(data.row(0) + data.row(1), mass=2.0)
    >>> round(data.norm(pair.vector) / pair.mass, 6)
    0.707107
    """

    vector: Vector
    mass: float = 0.0
    min_margin: float | None = None
    fallback: bool = False
    offsets: Array | None = None
    margins: Array | None = None
    precise: bool = False


@dataclass(frozen=True)
class Exact:
    """The model and the proof with their bounds, with all of a round's rounding allowed for.

    Attributes
    ----------
    model, proof : Vector
    predictor : Predictor
    upper : float
        In units of the radius.
    overlap : bool
        Exact weights near those of ``proof`` are known to make the classes meet.
    """

    model: Vector
    predictor: Predictor
    proof: Vector
    upper: float
    overlap: bool

    @property
    def lower(self) -> float:
        """Margin of the model at least, in units of the radius."""
        return self.predictor.margin


@dataclass(frozen=True)
class Progress:
    """Where a fit stands after a round: replaced whole, so no interrupt sees half of it."""

    state: Any
    C: float = np.inf  # of the problem that all this is about
    n_iter: int = 0
    lower: float = -np.inf
    upper: float = np.inf
    best: Candidate | None = None  # reached ``lower``
    last: Candidate | None = None  # the model where nothing separates
    proof: Candidate | None = None  # reached ``upper``
    seconds: float = 0.0
    n_passes: float = 0.0
    next_confirmation: int = 0
    exact: Exact | None = None  # what these vectors were confirmed to give
    before: Progress | None = None  # where a round began that ``max_iter`` cut short
    history: list[tuple[float, ...]] = field(default_factory=list)

    def stalled(self, patience: int | None) -> bool:
        """Whether the last ``patience`` rounds gained nothing: neither bound, nor the gap.

        A hundredth is the least that counts: at such a pace, one digit takes 230 times as
        many rounds. Before there is an upper bound, there is nothing to be gained on.
        """
        if patience is None:
            return False
        rounds = [line for line in self.history if line[0] <= self.n_iter]
        if len(rounds) <= patience:
            return False
        (*_, lower, upper), (*_, lower_now, upper_now) = rounds[-1 - patience], rounds[-1]
        better = upper_now < 0.99 * upper or lower_now > 1.01 * max(lower, 0.0)
        closer = max(upper_now - lower_now, 0.0) < 0.99 * max(upper - lower, 0.0)
        return bool(np.isfinite(upper)) and not (better or closer)

    def agrees_with(self, data: KernelMatrixAdapter) -> bool:
        """Whether what is known of the vectors, and will not be computed again, holds on data."""
        proof, best, same = self.proof, self.best, True
        assert proof is not None
        if proof.precise:
            far = _OTHER_DATA * proof.vector.mass
            same = (data.refresh(proof.vector) - proof.vector).largest_entry() <= far
        if same and best is not None and best.margins is not None:
            margins, far = data.margins(best.vector, precise=True), data.norm(best.vector)
            same = np.allclose(margins, best.margins, rtol=0.0, atol=_OTHER_DATA * far)
        return bool(same)
