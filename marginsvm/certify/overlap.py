"""Whether weights prove that the classes overlap: that no predictor separates them at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.checker.overlap import nothing_separates
from marginsvm.certify.nearest_point import shortest_proof
from marginsvm.rows import Vector


def overlap_is_proved(problem: Certifiable, vector: Vector) -> bool:
    """Whether exact weights near those of a vector make the classes meet.

    Equal questions are answered once. When questions in vain have taken some seconds, no more
    are looked into: the answer then is False, which says nothing about the classes.
    """
    q = problem.distribution(vector).weights()
    few = np.flatnonzero(q.reshape(len(q), -1).any(axis=1))
    asked, answers = few.tobytes() + q[few].tobytes(), problem.overlap_answers
    if asked not in answers:
        proved = answers.may_be_asked and _classes_meet(problem, few, q[few])
        answers.add(asked, proved, effort=float(len(few)) ** 3)
    return answers[asked]


def _classes_meet(problem: Certifiable, few: Array, q: Array) -> bool:
    given = problem.given(few)
    if given is None:
        return False
    X, factor, intercept = given
    q = q * problem.rows.per_example(factor)
    codes, n_classes = problem.rows.codes[few], problem.rows.n_classes
    return nothing_separates(X, codes, n_classes, q, intercept=intercept)


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
