"""What an algorithm is: a value that starts, steps, and says what its vectors may prove."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marginsvm.certify.candidate import Candidate
from marginsvm.fit.progress import Progress
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.columns import ColumnPlan
from marginsvm.kernel_matrix.responses import Response


@dataclass(frozen=True)
class Requirements:
    """What an algorithm asks of the problem that it is played on.

    Attributes
    ----------
    by_passes : bool
        Its steps are passes over all rows, so that the examples may be anywhere: in memory, in
        files, on a cluster. False: it goes from row to row and needs them in memory.
    every_row : bool
        All rows take part in every step. False: few of them matter, so that a product with all
        of a kernel matrix, or a pass to find the mean, would cost more than it gains.
    in_order : bool
        The result depends on the order of the examples, as they are visited one by one.
    columns : ColumnPlan or None
        How it wants columns of the Gram matrix, if it goes by these; the whole matrix is then
        never formed.
    responses : tuple of Response or None
        The responses that it asks for, where each of its vectors is a combination of best
        responses; None: its vectors are combinations of rows of its own choice.
    """

    by_passes: bool = True
    every_row: bool = True
    in_order: bool = False
    columns: ColumnPlan | None = None
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
            If steps are no passes over the data.
        """
        if not self.by_passes:
            raise ValueError(
                f"{name} moves from example to example and needs them in memory: use fit, or "
                "MaxMarginClassifier or MomentumMarginClassifier for blocks"
            )


class Algorithm(ABC):
    """An algorithm of a paper, with its parameters: a frozen dataclass.

    It supplies ``start`` (its first state), ``step`` (the paper's lines), ``candidates`` (which
    vectors may be certified) and ``requires``. States are values as well: a step gives a new
    one and leaves the old one as it was, so that a fit may be interrupted at any time.

    Examples
    --------
    The batch perceptron. In every round it adds the row of smallest margin to its state, a sum:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from marginsvm.fit import Algorithm, Candidate, Stopping, play
    >>> from marginsvm.kernel_matrix import LinearAdapter, make_rows
    >>> from marginsvm.kernel_matrix.responses import worst_row
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
        """What it asks of the problem."""
        return Requirements()

    @abstractmethod
    def start(self, problem: KernelMatrixAdapter) -> Any:
        """State before the first round."""

    @abstractmethod
    def step(self, problem: KernelMatrixAdapter, state: Any) -> Any:
        """State after one round more; the same object where nothing is left to be done."""

    @abstractmethod
    def candidates(self, problem: KernelMatrixAdapter, state: Any) -> Iterable[Candidate]:
        """Vectors that carry bounds after a round, and the model where nothing separates."""

    def n_rounds(self, n_iter: int) -> int:
        """How many rounds the step that begins after ``n_iter`` of them plays together."""
        return 1

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """Model where nothing separates, as far as is known: the last candidate that is one."""
        assert progress.last is not None, "one candidate must have fallback=True"
        return progress.last
