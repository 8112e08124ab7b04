"""DualStateMixin: a scikit-learn estimator around an algorithm.

Fits without callbacks do not depend on whether scikit-learn has these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache, partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import validate_parameter_constraints

from marginsvm._threads import interrupts_wait, single_threaded_blas
from marginsvm._warnings import warn
from marginsvm.certificate.certificate import StatesMargin, relative_gap
from marginsvm.certificate.publication import Certified
from marginsvm.estimators.advice import advice
from marginsvm.estimators.fit_blocks import FitsBlocks, blocks_of_map, source_data
from marginsvm.estimators.inputs import HOST, rows_in_part
from marginsvm.estimators.parameters import (
    CommonParameters,
    KernelParameters,
    NormalizeParameters,
    ShareParameters,
    constraints_of,
)
from marginsvm.estimators.predictions import PredictorMixin
from marginsvm.estimators.results import Fitted, publish
from marginsvm.estimators.training_data import TrainingData, training_data
from marginsvm.fit import (
    NEGLIGIBLE,
    OTHER_DATA_IN_SINGLE,
    Method,
    Outcome,
    Progress,
    Stopping,
    begin,
    certify,
    looks,
    play,
    unproved,
)
from marginsvm.problem.adapter import KernelMatrixAdapter

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's mixin where it has none; without callbacks."""

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Refuse callbacks; without any, return the estimator as it is."""
            if callbacks:
                raise ImportError(
                    "set_callbacks needs scikit-learn 1.9 or newer, but this is scikit-learn "
                    f"{sklearn.__version__}: pip install -U 'scikit-learn>=1.9'"
                )
            return self

        def _init_callback_context(self, **_: Any) -> Any:
            return SimpleNamespace(
                call_on_fit_task_begin=dict, call_on_fit_task_end=dict
            )

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Leave the method as it is."""
        return method


PLAIN = {bool, int, float, str, type(None)}  # types of parameters that are checked once
UNFINISHED = ("max_iter", "no_margin", "infeasible", "stalled")


class DualState(CallbackSupportMixin):
    """Fits of validated data with a dual state for warm starts, and their results.

    The common base of classifiers, regressors and outlier detectors.
    """

    _fitted: ClassVar[type[Fitted]] = Fitted
    _run: ClassVar[Callable[..., Outcome]] = staticmethod(play)
    _looks: ClassVar[Callable[..., int]] = staticmethod(looks)

    @abstractmethod
    def _algorithm(self) -> Method:
        """Algorithm, or other method, with the parameters of this estimator."""

    @abstractmethod
    def _stopping(self) -> Stopping:
        """When a fit ends."""

    @abstractmethod
    def _advice(self, problem: KernelMatrixAdapter, progress: Progress) -> str:
        """Advice for a fit that did not reach its goal, in sentences."""

    def _own_results(self, fitted: Any) -> dict[str, object]:
        """Fitted attributes of this estimator alone, such as the number of mistakes."""
        return {}

    def _validate_params(self) -> None:
        """Validate the parameters; the same plain values only once, as this takes a while."""
        cls: Any = type(self)
        values = self.get_params(deep=False).values()
        if PLAIN.issuperset(map(type, values)):
            _validated(cls, *values)
        else:
            super()._validate_params()

    @with_callbacks
    def _fit(
        self, training: TrainingData, X: Any, y: Any, *, warns: bool = True
    ) -> Any:
        """Fit; ``warns=False`` is for a fit within another, which reports how both ended."""
        with interrupts_wait():
            algorithm = self._algorithm()
            stopping = self._stopping()
            # computing a kernel matrix may use all of BLAS's threads
            problem = training.problem(algorithm.requires)
            with single_threaded_blas():
                last = resume = self._resume(algorithm, problem, training)
                played = resume.n_iter if resume else 0
                certified = resume.certified if resume else None
                context = self._init_callback_context(
                    max_subtasks=self._looks(algorithm, stopping, played)
                )
                context.call_on_fit_task_begin(estimator=self, X=X, y=y)
                callbacks = getattr(self, "_skl_callbacks", None)

                def results(progress: Progress, status: str) -> dict[str, object]:
                    return self._results(
                        self._fitted(algorithm, problem, training, progress), status
                    )

                def follow(progress: Progress) -> bool:
                    """Record what was found; returning True stops the fit."""
                    nonlocal last, played, certified
                    n = progress.n_iter
                    before = played
                    last = progress
                    played = n
                    certified = progress.certified or certified
                    # after iterations 1, 2, 4, 8 and so on, and after every thousandth
                    due = (
                        n.bit_length() > before.bit_length()
                        or n // 1000 > before // 1000
                    )
                    if self.verbose and due:
                        fitted = self._fitted(algorithm, problem, training, progress)
                        values = fitted.in_units(*progress.line[3:]).items()
                        text = ", ".join(
                            f"{name} {value:.6g}"
                            for name, value in values
                            if np.isfinite(value)
                        )
                        gap = relative_gap(progress.lower, progress.upper)
                        line = f"iteration {n}: {text} (relative gap {gap:.3g})"
                        print(f"[{type(self).__name__}] {line}")
                    if not callbacks:
                        return False
                    task = context.subcontext(task_name="iteration")
                    known = {"X": X, "y": y}
                    task.call_on_fit_task_begin(estimator=self, **known)
                    known["reconstruction_attributes"] = partial(
                        results, progress, "stopped"
                    )
                    return bool(task.call_on_fit_task_end(estimator=self, **known))

                try:
                    outcome = self._run(algorithm, problem, stopping, follow, resume)
                except BaseException:
                    if last is not None and last.n_iter:
                        with suppress(Exception):  # none in place of this one
                            found = self._found(algorithm, problem, last, certified)
                            publish(self, results(found, "interrupted"))
                    raise
                publish(self, results(outcome.progress, outcome.status))
                context.call_on_fit_task_end(estimator=self, X=X, y=y)
            if warns and self.status_ in UNFINISHED:
                ended = self.certificate_.outcome(self.max_iter, self.tol)
                way_on = self._advice(problem, outcome.progress)
                text = f"{type(self).__name__} {ended} {way_on}".strip()
                warn(text, ConvergenceWarning)
        return self

    def _fit_within(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """``fit`` without a warning, for a fit whose outcome is a part of another's."""
        self._validate_params()
        training = training_data(self, X, y, sample_weight)
        return self._fit(training, X, y, warns=False)

    @staticmethod
    def _found(
        algorithm: Method,
        problem: KernelMatrixAdapter,
        last: Progress,
        certified: Certified | None,
    ) -> Progress:
        """Progress after an error, with the model to be published.

        Examples that are not in memory are not read again: the model is the last one that was
        certified on the way or, without one, that of the last iteration, with no bounds.
        """
        found = None
        if problem.in_memory:
            with suppress(Exception):
                found = certify(algorithm, problem, last)
        found = found or certified or unproved(algorithm, problem, last)
        return last._replace(certified=found)

    def _resume(
        self, algorithm: Method, problem: KernelMatrixAdapter, training: TrainingData
    ) -> Progress | None:
        """Progress of the previous fit; None (a cold start): there is none, or of other rows."""
        last: Progress | None = getattr(self, "_progress", None)
        if not self.warm_start or last is None:
            return None
        classes = training.classes
        width = getattr(self, "n_features_in_", None)
        same = classes is None or np.array_equal(classes, self.classes_)
        same = same and training.n_given == self.certificate_.weights.shape[0]
        same = same and training.features.get("n_features_in_") == width
        same = same and training.rows.balanced == last.balanced
        if same and last.proof is None:  # after an error in a pass over blocks
            last = algorithm.recognisable(problem, last)
        known = last.proof
        same = same and known is not None and known.vector.has_shape_of(problem.zeros())
        is_same = same and last.is_of(problem)
        if is_same and last.agrees_with(problem):
            return last._replace(certified=certify(algorithm, problem, last))
        if not same or (
            is_same and not last.agrees_with(problem, OTHER_DATA_IN_SINGLE)
        ):
            raise ValueError(
                "warm_start=True continues the previous fit, but this data has another shape, "
                "other classes, intervals or values (also with another kernel, p or intercept); "
                "fit a clone, or set warm_start=False"
            )
        # C, radius or mean differ, and with them all bounds; or the examples, slightly
        return begin(algorithm, problem, last) if last.has_weights_of(problem) else None

    def _results(self, fitted: Fitted, status: str) -> dict[str, object]:
        """Fitted attributes, and the progress from which a later fit may continue."""
        progress = fitted.progress
        place = fitted.training.place
        found = {**fitted.attributes(status), **self._own_results(fitted)}
        for name, value in found.items() if place is not HOST else ():
            # labels may be text
            if isinstance(value, np.ndarray) and name != "classes_":
                found[name] = place.put(value)
        resumable = self.warm_start or status in ("interrupted", "stopped")
        again = status != "interrupted" or fitted.problem.in_memory
        if resumable and progress.proof is None and again:
            progress = fitted.algorithm.recognisable(fitted.problem, progress)
        last = None
        if resumable:  # what was proved holds the examples
            last = (progress.begun or progress).copy()._replace(certified=None)
        return {**found, "_progress": last}


@lru_cache(typed=True)
def _validated(cls: Any, *values: Any) -> None:
    params = dict(zip(cls._get_param_names(), values, strict=True))
    validate_parameter_constraints(cls._parameter_constraints, params, cls.__name__)


class DualStateMixin(
    StatesMargin, PredictorMixin, FitsBlocks, DualState, ClassifierMixin
):
    """A scikit-learn classifier around an algorithm: validation, fit and fitted attributes.

    A subclass returns its algorithm, with the estimator's parameters, from ``_algorithm()``; see
    ``marginsvm.fit.Algorithm``.

    Examples
    --------
    An estimator that offers the momentum method with a longer step:

    >>> from sklearn.base import BaseEstimator
    >>> from marginsvm import DualStateMixin
    >>> from marginsvm.papers.momentum import Momentum
    >>> class Hasty(DualStateMixin, BaseEstimator):
    ...     fit_intercept = warm_start = verbose = False
    ...     stopping, tol, max_iter = "gap", 0.01, 1000
    ...     def _algorithm(self):
    ...         return Momentum(theta=lambda t: 2.0)
    >>> Hasty().fit([[1.0, 0.0], [1.0, -1.0]], [1, -1]).status_
    'certified'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = constraints_of(
        CommonParameters, KernelParameters, ShareParameters, NormalizeParameters
    )

    @classmethod
    @cache  # of a class; reading its signature takes a twentieth of a small fit
    def _get_param_names(cls) -> list[str]:
        names: list[str] = super()._get_param_names()
        return names

    @classmethod
    @cache
    def _runs_on_devices(cls) -> bool:
        return cls()._algorithm().requires.by_passes

    def _stopping(self) -> Stopping:
        """When a fit ends."""
        return Stopping(self.stopping, self.tol, self.max_iter, NEGLIGIBLE)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Iterate until the margin is certified.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data, or the kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. float32 stays float32, and a memory map stays one. Maps of
            integers or half precision are read in blocks, as by ``fit_blocks``, where the
            algorithm supports it, else converted. With scikit-learn's ``array_api_dispatch``, also
            an array of another library, such as torch: fits by passes compute on its device, and
            fitted arrays are there.
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
            After the current iteration, or at once on a second interrupt. The best model of the
            last line of ``history_`` is kept; a fit with ``warm_start=True`` continues from there.
        """
        blocks = blocks_of_map(self, X, y, sample_weight) if rows_in_part(X) else None
        if blocks is not None:
            return self._fit(source_data(self, blocks), X, y)
        return self._fit(training_data(self, X, y, sample_weight), X, y)

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
            if (
                part
                and name in self._get_param_names()
                and not hasattr(value, "set_params")
            ):
                raise ValueError(
                    f"{path!r} sets the parameter {part!r} of {name}={value!r}, which has none: "
                    f"pass an object that has, such as one of marginsvm.schedules, as {name} first"
                )
        return super().set_params(**params)

    def _advice(self, problem: KernelMatrixAdapter, progress: Progress) -> str:
        return advice(self, problem, progress)
