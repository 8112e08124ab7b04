"""From proofs that the best margin is negligible to a proof that nothing separates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.nearest_point import shortest_proof
from marginsvm.certify.overlap import overlap_is_proved


def decisive(problem: Certifiable, best: Candidate, others: Iterable[Candidate]) -> Candidate:
    """A candidate whose weights prove that nothing separates, or else the best one, sharpened.

    Parameters
    ----------
    problem : Certifiable
    best : Candidate
        The candidate with the smallest upper bound, of which rounding may be the larger part.
    others : iterable of Candidate
        Further candidates, which are tried after it.
    """
    shortest = None
    for proof in (best, *(other for other in others if other.mass > 0 and other is not best)):
        for option in _sharpened(problem, proof):
            shortest = shortest or option
            if overlap_is_proved(problem, option.vector):
                return option
    return shortest or best


def _sharpened(problem: Certifiable, proof: Candidate) -> Iterator[Candidate]:
    """The candidate moved to few rows, where its norm is only rounding, and then itself."""
    short = shortest_proof(problem, problem.weights(proof.vector))
    if short is not None:
        yield Candidate(short, short.mass, precise=True)
    yield proof
