"""A scikit-learn estimator around an algorithm: it plays it, publishes, and warns."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.estimator.callback_support import CallbackSupportMixin, with_callbacks
from marginsvm.estimator.on_device import published
from marginsvm.estimator.results import Fitted
from marginsvm.fit import Algorithm, Progress, Stopping, play
from marginsvm.fit.confirm import confirm
from marginsvm.fit.interrupts import interrupts_wait
from marginsvm.fit.play import Outcome, begin
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.spec import ProblemSpec
from marginsvm.problem.threads import single_threaded_blas

_UNFINISHED = ("max_iter", "no_margin", "infeasible", "stalled")

# Difference of two entries of a vector per unit of its mass (in radii) where parts were computed
# from kernel values in float32: the weights are the same, and the rest is computed anew.
OTHER_DATA_IN_SINGLE = 1e-3


class Played(CallbackSupportMixin):
    """What classifiers and regressors share once their training data is validated."""

    _fitted: ClassVar[type[Fitted]] = Fitted
    _run: ClassVar[Callable[..., Outcome]] = staticmethod(play)

    @abstractmethod
    def _algorithm(self) -> Algorithm:
        """Algorithm with the parameters of this estimator."""

    @abstractmethod
    def _stopping(self) -> Stopping:
        """When a fit ends."""

    @abstractmethod
    def _advice(
        self, algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
    ) -> str:
        """What helps where a fit did not reach its goal, in sentences."""

    def _own_results(self, fitted: Any) -> dict[str, Any]:
        """Fitted attributes of this estimator alone, such as counts that its paper bounds."""
        return {}

    @interrupts_wait
    @with_callbacks
    def _fit(self, training: Any, X: Any, y: Any) -> Any:
        algorithm, stopping = self._algorithm(), self._stopping()
        # outside single_threaded_blas: computing a kernel matrix may use all of BLAS's threads
        problem = training.problem(ProblemSpec.of(self), algorithm.requires)
        results = partial(self._results, algorithm, problem, training)
        with single_threaded_blas():
            resume = self._resume(algorithm, problem, training.classes)
            rounds_left = self.max_iter - (resume.n_iter if resume else 0)
            context = self._init_callback_context(max_subtasks=max(0, rounds_left))
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            follower = _Follower(self, problem, context, X, y, results, training, resume)
            try:
                outcome = self._run(algorithm, problem, stopping, follower, resume)
            except (KeyboardInterrupt, OSError):  # or a failed read: keep what was found
                if follower.last is not None and follower.last.n_iter:
                    self._publish(results(follower.last, "interrupted"))
                raise
            self._publish(results(outcome.progress, outcome.status))
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
        self._warn(algorithm, problem, outcome.progress)
        return self

    def _resume(
        self, algorithm: Algorithm, problem: KernelMatrixAdapter, classes: Array | None
    ) -> Progress | None:
        """Progress of the previous fit; None to begin anew: there is none, or of other rows."""
        last: Progress | None = getattr(self, "_progress", None)
        if not self.warm_start or last is None:
            return None
        assert last.proof is not None
        same = classes is None or np.array_equal(classes, self.classes_)
        same = same and last.proof.vector.has_shape_of(problem.zeros())
        is_same = same and last.is_of(problem)
        if is_same and last.agrees_with(problem):
            return replace(last, confirmed=confirm(algorithm, problem, last))
        if not same or (is_same and not last.agrees_with(problem, OTHER_DATA_IN_SINGLE)):
            raise ValueError(
                "warm_start=True continues the previous fit, but this data has another shape, "
                "other classes, intervals or values; fit a clone, or set warm_start=False"
            )
        # slack, radius or mean differ, and with them all bounds; or scores have some digits only
        return begin(algorithm, problem, last) if last.has_weights_of(problem) else None

    # The results.

    def _results(
        self,
        algorithm: Algorithm,
        problem: KernelMatrixAdapter,
        training: Any,
        progress: Progress,
        status: str,
    ) -> dict[str, Any]:
        """Fitted attributes, and the progress from which a later fit may continue."""
        fitted = self._fitted(algorithm, problem, training, progress)
        found = {**fitted.attributes(status), **self._own_results(fitted)}
        found = published(found, training.place)
        resumable = self.warm_start or status in ("interrupted", "stopped")
        if resumable and progress.proof is None:
            best, proof = algorithm.candidates(problem, progress.state)
            progress = replace(progress, best=best, proof=proof)
        # what was proved holds the examples
        last = replace(progress.begun or progress, confirmed=None) if resumable else None
        return {**found, "_progress": last}

    def _publish(self, attributes: dict[str, Any]) -> None:
        """Replace all fitted attributes at once, so that none of an earlier fit stays."""
        others = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = {**others, **attributes}

    def _warn(self, algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress) -> None:
        if self.status_ in _UNFINISHED:
            outcome = self.certificate_.outcome(self.max_iter, self.tol)
            advice = self._advice(algorithm, problem, progress)
            text = f"{type(self).__name__} {outcome} {advice}".strip()
            # stacklevel 8 is the line that called fit: _fit, fit and three decorators lie between
            _warn_once(text, stacklevel=8)


_shown: set[tuple[str, str, int]] = set()


def _warn_once(text: str, stacklevel: int) -> None:
    """Warn of a text once at each place, unless the filters ask for more or for less.

    That is Python's default. But Python forgets what it has shown when filters are set, and
    scikit-learn sets them before each fit of a search.
    """
    frame = sys._getframe(stacklevel - 1)
    place, module = (frame.f_code.co_filename, frame.f_lineno), frame.f_globals.get("__name__", "")
    actions = (
        action
        for action, message, category, of, line in warnings.filters
        if issubclass(ConvergenceWarning, category)
        and (message is None or message.match(text))
        and (of is None or of.match(module))
        and line in (0, place[1])
    )
    if next(actions, "default") in ("default", "module", "once"):
        if (text, *place) in _shown:
            return
        _shown.add((text, *place))
    warnings.warn(text, ConvergenceWarning, stacklevel=stacklevel)


@dataclass
class _Follower:
    """What happens after each round: print, run callbacks, and remember the latest progress."""

    estimator: Any
    problem: KernelMatrixAdapter
    context: Any
    X: Any
    y: Any
    results: Callable[[Progress, str], dict[str, Any]]
    training: Any
    last: Progress | None

    def __call__(self, progress: Progress) -> bool:
        """Take note of a round; returning True stops the fit."""
        before, self.last = 0 if self.last is None else self.last.n_iter, progress
        if self.estimator.verbose:
            self._print(before, progress)
        if not getattr(self.estimator, "_skl_callbacks", None):
            return False
        return self._run_callbacks(partial(self.results, progress, "stopped"))

    def _print(self, before: int, progress: Progress) -> None:
        """Print bounds after rounds 1, 2, 4, 8 and so on, and after every thousandth."""
        n = progress.n_iter
        if n.bit_length() > before.bit_length() or n // 1000 > before // 1000:
            text = self.training.words(self.problem, progress.line)
            print(f"[{type(self.estimator).__name__}] {text}")

    def _run_callbacks(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        task = self.context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X, y=self.y)
        stop = task.call_on_fit_task_end(
            estimator=self.estimator, X=self.X, y=self.y, reconstruction_attributes=attributes
        )
        return bool(stop)
