"""Whether weights prove that the classes overlap: that no predictor separates them at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from marginsvm._typing import Array
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.checker.overlap import nothing_separates
from marginsvm.certify.nearest_point import shortest_proof
from marginsvm.rows import Vector, support_of


def overlap_is_proved(problem: Certifiable, vector: Vector) -> bool:
    """Whether weights near those of a vector are proved to exist with ``A^T q`` exactly zero.

    False means that no proof was found; it says nothing about the classes. Results are kept, so
    that the same weights are checked only once. After some seconds spent on checks without a
    proof, further weights are not checked.
    """
    q = problem.distribution(vector).weights()
    few = support_of(q)
    weights, checked = few.tobytes() + q[few].tobytes(), problem.overlap_checks
    if weights not in checked:
        proved = checked.may_continue and _classes_meet(problem, few, q[few])
        checked.add(weights, proved, effort=float(len(few)) ** 3)
    return checked[weights]


def _classes_meet(problem: Certifiable, few: Array, q: Array) -> bool:
    given = problem.given(few)
    if given is None:
        return False
    X, factor, intercept = given
    q = q * problem.rows.per_example(factor)
    codes, n_classes = problem.rows.codes[few], problem.rows.n_classes
    return nothing_separates(X, codes, n_classes, q, intercept=intercept)


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
