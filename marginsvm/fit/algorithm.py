"""What an algorithm is: a value with a first state, a step, and vectors that carry bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from marginsvm.fit.progress import Candidate, Confirmed, Progress
from marginsvm.problem.adapter import BestResponse, ColumnPlan, KernelMatrixAdapter, Predictor
from marginsvm.problem.responses import Response


@dataclass(frozen=True)
class Requirements:
    """What an algorithm needs of the problem that it is played on.

    Attributes
    ----------
    by_passes : bool
        Whether each step is a pass over all rows, so that the examples may lie anywhere: in
        memory, in files, on a cluster, on a device. False: a step visits single rows, and needs the
        examples in memory.
    every_row : bool
        Whether all rows take part in every step. False: few rows matter, so that computing a
        whole kernel matrix, or the mean of all examples, would cost more than it saves.
    in_order : bool
        Whether the result depends on the order of the examples.
    columns : ColumnPlan or None
        How columns of the Gram matrix are computed and cached, for an algorithm that uses single
        columns; the whole matrix is then never formed. None: it does not use columns.
    n_responses : int
        Best responses in a round.
    responses : tuple of Response or None
        The responses that the algorithm uses, where each of its vectors is a combination of best
        responses. None: its vectors are combinations of rows that it chooses itself.
    """

    by_passes: bool = True
    every_row: bool = True
    in_order: bool = False
    columns: ColumnPlan | None = None
    n_responses: int = 1
    responses: tuple[Response, ...] | None = None

    def check_blocks(self, name: str) -> None:
        """Refuse examples that come in blocks where they are needed one by one.

        Parameters
        ----------
        name : str
            Name of the estimator, for the message.

        Raises
        ------
        ValueError
            If the steps are not passes over the data.
        """
        if not self.by_passes:
            raise ValueError(
                f"{name} moves from example to example and needs them in memory: use fit, or "
                "MaxMarginClassifier or MomentumMarginClassifier for blocks"
            )


class Algorithm(ABC):
    """An algorithm of a paper, with its parameters: a frozen dataclass.

    It supplies ``start`` (the first state), ``step`` (one round of the paper), ``candidates`` (the
    vectors from which bounds are computed) and ``requires``. States are values as well: a step
    returns a new state and leaves the old one unchanged, so that a fit may be interrupted at
    any time.

    Examples
    --------
    The batch perceptron. In every round it adds the row of smallest margin to its state, a sum:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from marginsvm.fit import Algorithm, Candidate, Stopping, play
    >>> from marginsvm.problem.adapter import LinearAdapter
    >>> from marginsvm.problem.rows import make_rows
    >>> from marginsvm.problem.responses import worst_row
    >>> @dataclass(frozen=True)
    ... class Perceptron(Algorithm):
    ...     def start(self, problem):
    ...         return problem.zeros()
    ...     def step(self, problem, w):
    ...         return w + problem.respond(w, response=worst_row).vector
    ...     def candidates(self, problem, w):
    ...         yield Candidate(w, w.mass, problem.margins(w).min(), fallback=True)
    >>> rows = make_rows(np.array([1, 0]), 2, balanced=False)
    >>> problem = LinearAdapter(np.array([[1.0, 0.0], [1.0, -1.0]]), rows)
    >>> play(Perceptron(), problem, Stopping("separation")).status
    'separated'
    """

    @property
    def requires(self) -> Requirements:
        """What the algorithm needs of the problem."""
        return Requirements()

    @abstractmethod
    def start(self, problem: KernelMatrixAdapter) -> Any:
        """State before the first round."""

    def continued(self, problem: KernelMatrixAdapter, before: Progress) -> Any:
        """State near the end of a fit of the same examples with another C; None: begin anew."""
        return None

    @abstractmethod
    def step(self, problem: KernelMatrixAdapter, state: Any) -> Any:
        """State after one more round; the same object if there is nothing left to do."""

    @abstractmethod
    def candidates(self, problem: KernelMatrixAdapter, state: Any) -> Iterable[Candidate]:
        """Vectors that carry bounds after a round, and the model where nothing separates."""

    def best_bounds(
        self, problem: KernelMatrixAdapter, state: Any, before: Progress
    ) -> dict[str, Any]:
        """What a state changes of the progress: better bounds, and the candidates they are of."""
        found: dict[str, Any] = {}
        lower, upper = before.lower, before.upper
        for candidate in self.candidates(problem, state):
            norm = problem.norm(candidate.vector)
            if not isfinite(norm):
                raise ValueError(
                    f"{type(self).__name__} diverged in round {before.n_iter + 1}: its vectors are "
                    "too long for float64; choose a smaller step, if it has one, or scale X"
                )
            if candidate.fallback:
                found["fallback"] = candidate
            low = candidate.min_margin
            if low is not None and norm > 0.0 and low / norm > lower:
                lower = low / norm
                found["lower"], found["best"] = lower, candidate
            if candidate.mass > 0.0 and norm / candidate.mass < upper:
                upper = norm / candidate.mass
                found["upper"], found["proof"] = upper, candidate
        return found

    def confirmed(self, problem: KernelMatrixAdapter, progress: Progress) -> Confirmed | None:
        """What a fit publishes and proves; None: that of its candidates."""
        return None

    def n_rounds(self, n_iter: int) -> int:
        """Number of rounds that one step plays, where ``n_iter`` rounds were played before it."""
        return 1

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """Model for a fit that found no separator: the last candidate with ``fallback=True``."""
        if progress.fallback is None:
            raise ValueError(
                f"no candidate of {type(self).__name__} has fallback=True; one must have it: "
                "the model where nothing separates the classes"
            )
        return progress.fallback


def measured(w: Predictor, best: BestResponse) -> Candidate:
    """A predictor as candidate, with what the best response to it has found of its margins.

    It gives a lower bound, and may be the model of a fit that finds no separator, with the
    intercept of the response.

    Parameters
    ----------
    w : Predictor
    best : BestResponse
        The best response to ``w``.

    Returns
    -------
    Candidate
    """
    low, offsets = best.weights.min_margin, best.weights.offsets
    return Candidate(w, min_margin=low, fallback=True, offsets=offsets)
