"""Whether weights prove that the classes overlap: that no predictor separates them at all."""

from __future__ import annotations

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.checker.overlap import nothing_separates
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
