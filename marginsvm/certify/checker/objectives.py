"""Whether a regressor's objectives, of each output for itself, are what it says."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from math import inf, isfinite
from numbers import Real
from typing import Any

import numpy as np

from marginsvm.certify.checker.numbers import Numbers
from marginsvm.certify.checker.problem import Problem
from marginsvm.certify.checker.rows import IntervalRows


def wrong_objectives(problem: Problem, estimator: Any, rtol: float) -> Iterator[str]:
    """What is wrong with ``objective_`` and ``objective_bound_``, of regressors that have them.

    Objectives are half the squares of norms, with their slack.
    """
    if not hasattr(estimator, "objective_"):
        return
    assert isinstance(problem.rows, IntervalRows)
    for name in ("objective_", "objective_bound_", "epsilon_"):
        if np.asarray(getattr(estimator, name, None)).shape != problem.rows.outputs:
            yield f"{name} is not a number for each output"
            return
    if estimator.nu is None and not np.all(np.asarray(estimator.epsilon_) == estimator.epsilon):
        yield f"epsilon_ is {estimator.epsilon_!r}, but epsilon is {estimator.epsilon!r}"
    for j in range(problem.rows.n_columns):
        objective, bound = (
            np.atleast_1d(x)[j] for x in (estimator.objective_, estimator.objective_bound_)
        )
        one = _of_output(estimator, j)
        yield from _wrong(problem.of_output(one, j), one, objective, bound, rtol)


def _wrong(problem: Problem, one: Any, objective: Any, bound: Any, rtol: float) -> Iterator[str]:
    numbers = problem.numbers
    q = problem.weights(one.certificate_.weights)
    proof, allowed = problem.proved(q), 1 + numbers.rounding_error
    if not _holds(objective, lambda x: float((proof.norm * allowed) ** 2 - 2 * x), rtol, numbers):
        yield f"objective_ is {objective!r}, but that of the predictor is larger"
    if bound == inf:
        if not (problem.is_hard and problem.none_fits(q)):  # of this output, not of another one
            yield "objective_bound_ is inf, but no exact weights near these are known to prove it"
        return

    def excess(claimed: Any) -> float:
        """By how much weights prove less, in lengths of their vector, over those of examples."""
        if not claimed > 0:
            return -inf
        proved = proof.norm_bound() / allowed
        if not proof.length > 0 and proved == inf:
            return -inf
        share = max(proved, 0 * proved) ** 2 / (2 * claimed)
        if not proof.length > 0:  # caps alone limit the bound
            return float(1 - share)
        return float(proof.length * (1 - share)) / (float(problem.radius) or 1.0)

    if not (_is_number(bound) and excess(numbers.number(float(bound))) <= 2.0 * rtol):
        yield f"objective_bound_ is {bound!r}, which the weights do not prove"


def _holds(claimed: Any, missing: Any, rtol: float, numbers: Numbers) -> bool:
    if not _is_number(claimed):
        return False
    return bool(missing(numbers.number(float(claimed))) <= 4.0 * rtol * float(claimed))


def _is_number(claimed: Any) -> bool:
    return isinstance(claimed, Real) and isfinite(claimed)


def _of_output(estimator: Any, j: int) -> Any:
    """The estimator of one output."""
    one = copy(estimator)
    for name in ("coef_", "dual_coef_"):
        if hasattr(one, name):
            setattr(one, name, np.atleast_2d(getattr(one, name))[j : j + 1])
    for name in ("intercept_", "epsilon_"):
        setattr(one, name, np.atleast_1d(getattr(one, name))[j : j + 1])
    weights = one.certificate_.weights[:, j : j + 1].tocsr()
    size = float(np.abs(weights.data).max(initial=0.0))
    if 0.0 < size < inf:  # a power of two: beside other outputs, these may be small
        weights = weights * float(np.ldexp(1.0, -int(np.frexp(size)[1])))
    one.certificate_ = replace(one.certificate_, weights=weights)
    return one
