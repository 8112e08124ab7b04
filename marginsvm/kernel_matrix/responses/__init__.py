"""The data player's responses: weights on the rows, given the margins of a predictor.

A response finds the unpenalised intercept on its way: the class offsets ``beta`` at which its
weights are balanced. Each of them is one file; so is a new one.
"""

from marginsvm.kernel_matrix.responses.capped import CappedSoftmax
from marginsvm.kernel_matrix.responses.euclidean import Euclidean, euclidean
from marginsvm.kernel_matrix.responses.logistic import Logistic, logistic
from marginsvm.kernel_matrix.responses.response import (
    OnePassAnswer,
    OnePassResponse,
    Response,
    Weights,
)
from marginsvm.kernel_matrix.responses.softmax import Softmax, softmax
from marginsvm.kernel_matrix.responses.worst_row import WorstRow, worst_row

__all__ = [
    "CappedSoftmax",
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
