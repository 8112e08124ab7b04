"""Which of the proofs that next to nothing separates may prove that nothing does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.nearest_point import shortest_proof
from marginsvm.certify.overlap import overlap_is_proved


def decisive(problem: Certifiable, best: Candidate, others: Iterable[Candidate]) -> Candidate:
    """Weights near which exact ones make the classes meet, or the shortest proof there is.

    Parameters
    ----------
    problem : Certifiable
    best : Candidate
        The one with the smallest bound. In large units, that may be a matter of rounding.
    others : iterable of Candidate
        Further ones, which may be those that decide.
    """
    shortest = None
    for proof in (best, *(other for other in others if other.mass > 0 and other is not best)):
        for option in _sharpened(problem, proof):
            shortest = shortest or option
            if overlap_is_proved(problem, option.vector):
                return option
    return shortest or best


def _sharpened(problem: Certifiable, proof: Candidate) -> Iterator[Candidate]:
    """Weights on as few rows as possible, at rounding level, and those they were made of."""
    short = shortest_proof(problem, problem.weights(proof.vector))
    if short is not None:
        yield Candidate(short, short.mass, precise=True)
    yield proof
