"""What a rule of the portfolio says: which method begins, and which one takes over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marginsvm.algorithms.exact.method import Method
from marginsvm.algorithms.exact.shape import Shape
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import Predictor, Vector

Problem = KernelMatrixAdapter


@dataclass(frozen=True)
class Rule:
    """A method to begin with, and the problems that it is for.

    Attributes
    ----------
    name : str
        The problems, in words.
    method : type
    applies : callable
        ``applies(shape, portfolio)``: whether a problem is one of these.
    begin : callable
        ``begin(problem, portfolio)`` is the method's first state.
    measured : str
        Against what, and which table of the documentation it moves.
    near : callable or None
        ``near(problem, portfolio, w, proof)`` is a state at the predictor and the proof for another
        C, or None; None: to begin anew is as quick.
    """

    name: str
    method: type[Method]
    applies: Callable[[Shape, Portfolio], bool]
    begin: Callable[[Problem, Portfolio], Method]
    measured: str
    near: Callable[[Problem, Portfolio, Predictor, Vector], Method | None] | None = None


@dataclass(frozen=True)
class Handover:
    """A method that takes over from another. A fit does each once at most.

    Attributes
    ----------
    name : str
        Under which condition, in words.
    method : type
        The method that takes over.
    applies : callable
        ``applies(shape, portfolio, state)``: whether it can go on from a state.
    begin : callable
        ``begin(problem, portfolio, state)`` is the first state of the method that takes over, or
        None: a look at the data shows that it cannot.
    measured : str
    returns : bool
        Whether the state goes on where the method that took over has outgrown its room.
    """

    name: str
    method: type[Method]
    applies: Callable[[Shape, Portfolio, Any], bool]
    begin: Callable[[Problem, Portfolio, Any], Method | None]
    measured: str
    returns: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What tells it apart: the method that takes over, and the condition."""
        return self.method.name, self.name
