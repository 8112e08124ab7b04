"""The quadratic program that a problem of rows is."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.problem.quadratic_program import QuadraticProgram, classification, regression
from marginsvm.problem.rows import OutputRows
from marginsvm.problem.vector import Predictor


def programs_of(problem: Any) -> list[QuadraticProgram]:
    """The program of a problem or, where its outputs are problems of their own, of each output."""
    rows = problem.rows
    given: dict[str, Any] = {
        "weight": rows.weights,
        "intercept": rows.balanced,
        "signs": problem.signs,
        "p": problem.norm_of_predictors.p,
        "nu": problem.nu,
    }
    if not isinstance(rows, OutputRows):
        given |= {"C": problem.C, "loss": problem.loss}
        return [classification(problem.examples, rows.codes, rows.n_classes, **given)]
    ends = rows.intervals.low, rows.intervals.high
    given["rounded"] = rows.intervals.rounded
    given["loss"] = "epsilon_insensitive" if problem.caps is not None else "squared"
    if rows.scales is None:
        return [regression(problem.examples, *ends, C=problem.C, **given)]
    low, high = (end.reshape(rows.n_examples, -1) for end in ends)
    costs = np.full(low.shape[1], problem.C)
    if problem.caps is not None:  # slack costs its size: C in units of the targets
        first = 1.0 if rows.weights is None else rows.weights[0]
        costs = problem.caps.largest.reshape(low.shape)[0] / (first * problem.radius**2)
    outputs = zip(low.T, high.T, costs, strict=True)
    return [regression(problem.examples, a, b, C=float(C), **given) for a, b, C in outputs]


def predictor_of(problem: Any, vector: Predictor) -> Array:
    """A predictor of a problem of rows as one of its program, of shape (k, d)."""
    if problem.examples.d is None:
        return np.atleast_2d(problem.rows.adjoint(vector.coef).T)
    return np.atleast_2d(problem.norm_of_predictors.mirror(vector.image))


def weights_of(qp: QuadraticProgram, signed: Array) -> Array:
    """Weights of rows that are ends of intervals, from signed ones of examples and outputs."""
    of = signed[qp.example] if qp.output is None else signed[qp.example, qp.output]
    return np.maximum(qp.sign * of, 0.0)
