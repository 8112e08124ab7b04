"""All that an algorithm or a loss of your own needs, from one place; see "Add an algorithm".

An algorithm is an :class:`Algorithm`, played by :func:`play` on a :class:`KernelMatrixAdapter`.
An estimator around it is a :class:`DualStateMixin`, whose parameters are declared.

``softmax``, ``logistic``, ``euclidean`` and ``worst_row`` are responses with their default
parameters. They may also be called: ``softmax(rows, margins, mu)`` is
``softmax.respond(rows, margins, mu)``.
"""

from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    CommonParameters,
    KernelParameters,
    RandomParameters,
    parameter,
    with_parameters,
)
from marginsvm.fit import Algorithm, Candidate, Requirements, Stopping, measured, play
from marginsvm.problem.adapter import GramAdapter, KernelMatrixAdapter, LinearAdapter
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.responses import (
    CappedSoftmax,
    Euclidean,
    Logistic,
    Response,
    Softmax,
    Weights,
    WorstRow,
    euclidean,
    logistic,
    softmax,
    worst_row,
)
from marginsvm.problem.rows import make_rows
from marginsvm.problem.vectors import Predictor, Vector
from marginsvm.schedules import MOMENTA, STEPS, momentum_at, resolve, step_at

__all__ = [
    "MOMENTA",
    "STEPS",
    "Algorithm",
    "Candidate",
    "CappedSoftmax",
    "CommonParameters",
    "DualStateMixin",
    "Euclidean",
    "GramAdapter",
    "KernelMatrixAdapter",
    "KernelParameters",
    "LinearAdapter",
    "Logistic",
    "LpNorm",
    "Predictor",
    "RandomParameters",
    "Requirements",
    "Response",
    "Softmax",
    "Stopping",
    "Vector",
    "Weights",
    "WorstRow",
    "euclidean",
    "logistic",
    "make_rows",
    "measured",
    "momentum_at",
    "parameter",
    "play",
    "resolve",
    "softmax",
    "step_at",
    "with_parameters",
    "worst_row",
]
