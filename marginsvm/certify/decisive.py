"""Which of the proofs that next to nothing separates may prove that nothing does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.nearest_point import shortest_proof
from marginsvm.certify.overlap import overlap_is_proved
from marginsvm.rows.vector import Vector


def decisive(problem: Certifiable, proofs: Iterable[Vector]) -> Vector:
    """Weights near which exact ones make the classes meet, or the shortest proof there is.

    Parameters
    ----------
    problem : Certifiable
    proofs : iterable of Vector
        The first is that with the smallest bound. In large units, that may be a matter of
        rounding, and another may be the one that decides.

    Returns
    -------
    Vector
        One of ``proofs``, or one that was made of it and computed in float64.
    """
    shortest = None
    for proof in proofs:
        for option in _sharpened(problem, proof):
            shortest = option if shortest is None else shortest
            if overlap_is_proved(problem, option):
                return option
    assert shortest is not None, "there is no proof to choose from"
    return shortest


def _sharpened(problem: Certifiable, proof: Vector) -> Iterator[Vector]:
    """Weights on as few rows as possible, at rounding level, and those they were made of."""
    short = shortest_proof(problem, problem.weights(proof))
    if short is not None:
        yield short
    yield proof
