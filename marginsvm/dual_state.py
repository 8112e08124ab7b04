"""DualStateMixin: what scikit-learn's users see of an algorithm and its fits."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.certify.certificate import bounds_text, quantity
from marginsvm.certify.checker.claims import relative_gap
from marginsvm.certify.tolerances import NEGLIGIBLE
from marginsvm.data.threads import single_threaded_blas
from marginsvm.estimator.advice import remedies
from marginsvm.estimator.block_source import block_set, blocks_of_map
from marginsvm.estimator.callback_support import CallbackSupportMixin, with_callbacks
from marginsvm.estimator.declaring import constraints_of
from marginsvm.estimator.on_device import published
from marginsvm.estimator.parameters import (
    CommonParameters,
    KernelParameters,
    NormalizeParameters,
    ShareParameters,
)
from marginsvm.estimator.prediction import PredictorMixin
from marginsvm.estimator.results import Fitted
from marginsvm.estimator.training_set import TrainingSet, training_set
from marginsvm.fit import Algorithm, Candidate, Progress, Stopping, play
from marginsvm.fit.confirm import confirm
from marginsvm.fit.interrupts import interrupts_wait
from marginsvm.fit.play import begin
from marginsvm.kernel_matrix import KernelMatrixAdapter

__all__ = ["Candidate", "DualStateMixin", "Progress"]


class DualStateMixin(PredictorMixin, CallbackSupportMixin, ClassifierMixin):
    """A scikit-learn classifier around an algorithm: it validates, plays and publishes.

    The estimator of an algorithm returns it from ``_algorithm()``, as a value that holds the
    estimator's parameters, see ``marginsvm.fit.Algorithm``.

    Examples
    --------
    An estimator that offers the momentum method with a longer step:

    >>> from sklearn.base import BaseEstimator
    >>> from marginsvm import DualStateMixin
    >>> from marginsvm.algorithms.momentum import Momentum
    >>> class Hasty(DualStateMixin, BaseEstimator):
    ...     fit_intercept = warm_start = verbose = False
    ...     stopping, tol, max_iter = "gap", 0.01, 1000
    ...     def _algorithm(self):
    ...         return Momentum(theta=lambda t: 2.0)
    >>> Hasty().fit([[1.0, 0.0], [1.0, -1.0]], [1, -1]).status_
    'certified'
    """

    # Values of the shared parameters that an estimator does not declare.
    class_weight: Any = None
    C: float = np.inf
    nu: float | None = None
    kernel: Any = "linear"
    kernel_params: dict[str, Any] | None = None
    p: float | str = 2.0
    intercept_scaling: Any = None  # None: the intercept is not penalised

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = constraints_of(
        CommonParameters, KernelParameters, ShareParameters, NormalizeParameters
    )

    @property
    def _runs_on_devices(self) -> bool:  # type: ignore[override]
        """Whether fits are by passes, so that they run on a device as well."""
        default: DualStateMixin = type(self)()  # this one's parameters may not be valid
        return default._algorithm().requires.by_passes

    @abstractmethod
    def _algorithm(self) -> Algorithm:
        """Algorithm with the parameters of this estimator."""

    def _stopping(self) -> Stopping:
        """When a fit ends."""
        negligible = self.tol if self.stopping == "gap" else min(self.tol, NEGLIGIBLE)
        return Stopping(self.stopping, self.tol, self.max_iter, negligible)

    def _own_results(self, fitted: Fitted) -> dict[str, Any]:
        """Fitted attributes of this estimator alone, such as counts that its paper bounds."""
        return {}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Play rounds until the margin is certified.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data, or the kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. float32 stays float32; a memory map stays one. A map of
            whole numbers or of half precision is read in blocks, as by ``fit_blocks``, by the
            algorithms that can; others convert it as a whole. With scikit-learn's
            ``array_api_dispatch``, an array of another library, such as torch: fits by passes
            compute where it is, and fitted arrays are there.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight m counts like m copies; 0 leaves the example out.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or a parameter cannot be used; the message says what to do.
        KeyboardInterrupt
            After the round that was interrupted, or at once on a second interrupt. The best model
            so far is kept, and a fit with ``warm_start=True`` continues from there.
        """
        blocks = blocks_of_map(self, X, y, sample_weight)
        if blocks is not None:
            return self._fit(block_set(self, blocks), X, y)
        return self._fit(training_set(self, X, y, sample_weight), X, y)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_blocks(self, source: Any) -> Any:
        """Fit to blocks of examples that need not fit in memory together.

        The rounds are those of ``fit`` on all blocks stacked below each other, but memory only
        holds a few blocks and some numbers for each example. Linear predictors only.

        Parameters
        ----------
        source : iterable
            Yields ``(X, y)`` or ``(X, y, sample_weight)``, dense or CSR, as in ``fit``. Each
            pass iterates over it from the start, and must get the same blocks: a list, or
            one of :mod:`marginsvm.sources`.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a block cannot be used; the message names it and says what to do.
        """
        return self._fit(block_set(self, source), source, None)

    @interrupts_wait
    @with_callbacks
    def _fit(self, training: TrainingSet, X: Any, y: Any) -> Any:
        algorithm, stopping = self._algorithm(), self._stopping()
        # outside single_threaded_blas: computing a kernel matrix may use all of BLAS's threads
        problem = training.problem(self, algorithm.requires)
        results = partial(self._results, algorithm, problem, training)
        with single_threaded_blas():
            resume = self._resume(algorithm, problem, training.classes)
            rounds_left = self.max_iter - (resume.n_iter if resume else 0)
            context = self._init_callback_context(max_subtasks=max(0, rounds_left))
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            follower = _Follower(self, problem, context, X, y, results, last=resume)
            try:
                outcome = play(algorithm, problem, stopping, follower, resume)
            except (KeyboardInterrupt, OSError):  # or a failed read: keep what was found
                if follower.last is not None and follower.last.n_iter:
                    self._publish(results(follower.last, "interrupted"))
                raise
            self._publish(results(outcome.progress, outcome.status))
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
        self._warn(algorithm, problem, outcome.progress)
        return self

    def _resume(
        self, algorithm: Algorithm, problem: KernelMatrixAdapter, classes: Array
    ) -> Progress | None:
        """Progress of the previous fit; None to begin anew: there is none, or of other rows."""
        last: Progress | None = getattr(self, "_progress", None)
        if not self.warm_start or last is None:
            return None
        assert last.proof is not None
        same = np.array_equal(classes, self.classes_)
        same = same and last.proof.vector.has_shape_of(problem.zeros())
        if not (same and (not last.is_of(problem) or last.agrees_with(problem))):
            raise ValueError(
                "warm_start=True continues the previous fit, but this data has another shape, "
                "other classes or other values; fit a clone, or set warm_start=False"
            )
        if not last.is_of(problem):  # slack, radius or mean differ, and with them all bounds
            near = last.has_weights_of(problem)
            return begin(algorithm, problem, last) if near else None
        confirmed = last.confirmed and confirm(algorithm, problem, last)  # computed on this X
        return replace(last, confirmed=confirmed)

    def set_params(self, **params: Any) -> Any:
        """Set parameters of this estimator, and ``name__part`` of a schedule or kernel object.

        Parameters
        ----------
        **params
            Parameters and their values.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a name is unknown, or ``name`` of a ``name__part`` holds no object with parts.
        """
        for path in params:
            name, _, part = path.partition("__")
            value = params.get(name, getattr(self, name, None))
            if part and name in self._get_param_names() and not hasattr(value, "set_params"):
                raise ValueError(
                    f"{path!r} sets the parameter {part!r} of {name}={value!r}, which has none: "
                    f"pass an object that has, such as one of marginsvm.schedules, as {name} first"
                )
        return super().set_params(**params)

    # The results.

    def _results(
        self,
        algorithm: Algorithm,
        problem: KernelMatrixAdapter,
        training: TrainingSet,
        progress: Progress,
        status: str,
    ) -> dict[str, Any]:
        """Fitted attributes, and the progress from which a later fit may continue."""
        fitted = Fitted(algorithm, problem, training, progress)
        found = {**fitted.attributes(status), **self._own_results(fitted)}
        found = published(found, training.place)
        resumable = self.warm_start or status in ("interrupted", "stopped")
        return {**found, "_progress": (progress.begun or progress) if resumable else None}

    def _publish(self, attributes: dict[str, Any]) -> None:
        """Replace all fitted attributes at once, so that none of an earlier fit stays."""
        others = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = {**others, **attributes}

    def _warn(self, algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress) -> None:
        if self.status_ in ("max_iter", "no_margin", "stalled"):
            outcome = self.certificate_.outcome(self.max_iter, self.tol)
            advice = remedies(self, algorithm, problem, progress)
            text = f"{type(self).__name__} {outcome} {advice}".strip()
            # stacklevel 7 is the line that called fit: _fit, fit and three decorators lie between
            warnings.warn(text, ConvergenceWarning, stacklevel=7)


@dataclass
class _Follower:
    """What happens after each round: print, run callbacks, and remember the latest progress."""

    estimator: Any
    problem: KernelMatrixAdapter
    context: Any
    X: Any
    y: Any
    results: Callable[[Progress, str], dict[str, Any]]
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
        n, unit = progress.n_iter, self.problem.radius * self.problem.rows.unit
        if n.bit_length() > before.bit_length() or n // 1000 > before // 1000:
            what = quantity(self.problem.nu)
            bounds = bounds_text(progress.lower * unit, progress.upper * unit, what)
            gap = relative_gap(progress.lower, progress.upper)
            name = type(self.estimator).__name__
            print(f"[{name}] round {n}: {bounds} (relative gap {gap:.3g})")

    def _run_callbacks(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        task = self.context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X, y=self.y)
        # so that a callback may compute them in some rounds only
        self.estimator._snapshot = attributes
        try:
            stop = task.call_on_fit_task_end(
                estimator=self.estimator, X=self.X, y=self.y, reconstruction_attributes=attributes
            )
        finally:
            del self.estimator._snapshot
        return bool(stop)
