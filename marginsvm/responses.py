"""The data player's responses: weights on the rows, given the margins of a predictor.

``softmax``, ``logistic``, ``euclidean`` and ``worst_row`` are responses with their default
parameters. They may also be called: ``softmax(rows, margins, mu)`` is
``softmax.respond(rows, margins, mu)``.
"""

from marginsvm.kernel_matrix.responses import (
    Euclidean,
    Logistic,
    OnePassAnswer,
    OnePassResponse,
    Response,
    Softmax,
    Weights,
    WorstRow,
    euclidean,
    logistic,
    softmax,
    worst_row,
)

__all__ = [
    "Euclidean",
    "Logistic",
    "OnePassAnswer",
    "OnePassResponse",
    "Response",
    "Softmax",
    "Weights",
    "WorstRow",
    "euclidean",
    "logistic",
    "softmax",
    "worst_row",
]
