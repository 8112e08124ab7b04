"""The data player's responses: weights on the rows, given the margins of a predictor.

``softmax``, ``logistic``, ``euclidean`` and ``worst_row`` are responses with their default
parameters. They may also be called: ``softmax(rows, margins, mu)`` is
``softmax.respond(rows, margins, mu)``.
"""

from marginsvm.problem.responses import *  # noqa: F403 - all of it, under a shorter name
from marginsvm.problem.responses import __all__ as __all__
