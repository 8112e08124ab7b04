"""DualStateMixin: a scikit-learn estimator around an algorithm, which it plays and publishes.

Nothing here depends on whether scikit-learn has callbacks: a fit without any is the same.
"""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from typing import Any, ClassVar

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.certificate.certificate import StatesMargin, relative_gap
from marginsvm.estimators.fit_blocks import FitsBlocks, block_set, blocks_of_map
from marginsvm.estimators.inputs import published
from marginsvm.estimators.parameters import (
    CommonParameters,
    KernelParameters,
    NormalizeParameters,
    ShareParameters,
    constraints_of,
)
from marginsvm.estimators.prediction import PredictorMixin
from marginsvm.estimators.results import Fitted
from marginsvm.estimators.training_data import training_set
from marginsvm.fit import Algorithm, Candidate, Progress, Stopping, play
from marginsvm.fit.confirm import confirm
from marginsvm.fit.interrupts import interrupts_wait
from marginsvm.fit.play import Outcome, begin
from marginsvm.fit.progress import Confirmed
from marginsvm.fit.stopping import NEGLIGIBLE
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.quadratic_program import ProblemSpec
from marginsvm.problem.threads import single_threaded_blas

__all__ = ["CallbackSupportMixin", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:

    class _NoCallbacks:
        """The context of a fit that has no callbacks to call."""

        def call_on_fit_task_begin(self, **_: Any) -> None:
            """No callback is told."""

        def call_on_fit_task_end(self, **_: Any) -> None:
            """No callback is told."""

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """What :class:`DualStateMixin` uses of scikit-learn's mixin, without callbacks."""

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Refuse callbacks; without any, return the estimator as it is."""
            if callbacks:
                raise ImportError(
                    "set_callbacks needs scikit-learn 1.9 or newer, but this is scikit-learn "
                    f"{sklearn.__version__}: pip install -U 'scikit-learn>=1.9'"
                )
            return self

        def _init_callback_context(self, **_: Any) -> _NoCallbacks:
            return _NoCallbacks()

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Call the method. As deep as scikit-learn's decorator, as warnings name their caller."""

        @wraps(method)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        return wrapped


# Part of the published gap, or less, that rounds leave where most of it is rounding.
_ROUNDING_SHARE = 0.5
# Relative gap from which on bounds are not worth accepting.
_WORTHLESS = 0.5
# Factor between the spreads of two features up to which their units are similar: a digit.
_SIMILAR = 10.0
_IN_VAIN = "More rounds do not help:"


def remedies(
    estimator: Any, algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
) -> str:
    """Sentences that say what would help a fit that ended as this one did.

    Parameters
    ----------
    estimator : estimator
        Fitted, with the status ``max_iter``, ``stalled`` or ``no_margin``.
    algorithm : Algorithm
        What it played.
    problem : KernelMatrixAdapter
        The problem that it was fitted to.
    progress : Progress
        The end of the fit.
    """
    if flaw := problem.flaw():
        return flaw
    if estimator.status_ == "no_margin":
        return _thinner(estimator, problem, progress.confirmed)
    if _hidden_by_rounding(estimator):
        return _coarser(estimator, problem)
    if estimator.status_ == "stalled":
        return _stalled(estimator, problem)
    return _longer(estimator, problem)


def _thinner(estimator: Any, problem: KernelMatrixAdapter, bounds: Confirmed | None) -> str:
    """Say what the model is, and advise a soft margin, or a search for a thinner one."""
    soft = _softer(estimator, problem)
    if problem.nu is not None:
        return f"{soft.capitalize()}."
    model = f"The model is {bounds.words}. " if bounds is not None and bounds.words else ""
    if estimator.separable_ is False:
        return f"{model}{soft}."
    text = "Whether a thinner margin separates the classes is not known"
    if estimator.kernel == "linear":
        text += ": check_separability may decide it, and features in similar units help"
    return f"{text}. {model}{soft}."


def _hidden_by_rounding(estimator: Any) -> bool:
    """Whether most of the gap is rounding: what bounds allow for it, in all digits but a round's.

    The bounds of rounds, which allow for none, are then within the tolerance, or far nearer to
    each other than the published ones.
    """
    history = estimator.history_
    of_rounds = relative_gap(history["margin"][-1], history["margin_bound"][-1])
    return bool(of_rounds <= max(estimator.tol, _ROUNDING_SHARE * estimator.gap_))


def _coarser(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Say that rounding hides the rest, and advise a larger tolerance, or float64.

    The exact solver computes in float64 with features of either type, but kernel values have
    the type of X.
    """
    kernel = estimator.kernel != "linear"
    if problem.precision == np.float32 and (kernel or estimator.status_ != "stalled"):
        return f"{_IN_VAIN} rounding in float32 hides the rest. {_wider(estimator)}."
    ways = " and ".join(_ways(estimator, problem, "leaves less to hide", "show more"))
    return f"{_IN_VAIN} rounding in float64 hides the rest{'; ' * bool(ways)}{ways}."


def _stalled(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Say that no method came nearer, which is all that is known, and what may help."""
    text = "No method came nearer"
    if problem.precision == np.float32 and estimator.kernel != "linear":
        return f"{text}; kernel values in float32 have seven digits. {_wider(estimator)}."
    ways = " and ".join(_ways(estimator, problem, "may be solved to the end", "may help"))
    return f"{text}{'; ' * bool(ways)}{ways}."


def _wider(estimator: Any) -> str:
    """Advise numbers of more digits."""
    what = "the kernel matrix" if estimator.kernel == "precomputed" else "X"
    return f"Pass {what} as float64"


def _ways(
    estimator: Any, problem: KernelMatrixAdapter, smaller: str, similar: str
) -> Iterator[str]:
    """Ways on from bounds that come no nearer; what a smaller C and similar units do, in words."""
    if estimator.margin_ > 0.0 and estimator.gap_ < _WORTHLESS:
        yield "a tol above gap_ accepts these bounds"
    if np.isfinite(estimator.C):
        yield f"a smaller C {smaller}"
    elif estimator.margin_ <= 0:
        yield _softer(estimator, problem)
    if _has_different_units(problem):
        yield f"features in similar units (StandardScaler) {similar}"


def _has_different_units(problem: KernelMatrixAdapter) -> bool:
    """Whether the spreads of features differ by much."""
    design = problem.design
    spread = None if design is None or design.X.factor is not None else design.spread
    if spread is None:
        return False
    spread = spread[spread > 0.0]
    return bool(len(spread) and spread.max() > _SIMILAR * spread.min())


def _softer(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Name what gives a positive margin where the smallest margin is not positive."""
    if problem.nu is not None:
        return "a larger nu gives a larger mean of margins"
    whose = "" if "C" in estimator.get_params() else "MaxMarginClassifier with "
    return f"{whose}C < inf gives a soft margin (MaxMarginClassifierCV chooses C)"


def _longer(estimator: Any, problem: KernelMatrixAdapter) -> str:
    """Advise more rounds, or another C."""
    if problem.nu is not None:
        return "Increase max_iter, or choose a larger nu, which takes fewer rounds."
    if np.isfinite(estimator.C):
        return "Increase max_iter, or choose a smaller C, which takes fewer rounds."
    overlap = estimator.margin_ <= 0 and "C" in estimator.get_params()
    return "Increase max_iter" + (", or set C < inf if the classes overlap." if overlap else ".")


_UNFINISHED = ("max_iter", "no_margin", "infeasible", "stalled")


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
            played = resume.n_iter if resume else 0
            context = self._init_callback_context(max_subtasks=max(0, self.max_iter - played))
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            follower = _Follower(self, problem, context, X, y, results, training, played, resume)
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
        if not same or (is_same and not last.agrees_with(problem)):
            raise ValueError(
                "warm_start=True continues the previous fit, but this data has another shape, "
                "other classes, intervals or values; fit a clone, or set warm_start=False"
            )
        if is_same:
            return replace(last, confirmed=confirm(algorithm, problem, last))
        # slack, radius or mean differ, and with them all bounds
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
        last = (progress.begun or progress).copy() if resumable else None
        if last is not None:
            last.confirmed = None
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
    n_iter: int
    last: Progress | None

    def __call__(self, progress: Progress) -> bool:
        """Take note of a round; returning True stops the fit."""
        before, self.n_iter, self.last = self.n_iter, progress.n_iter, progress
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


__all__ = ["Candidate", "DualStateMixin", "Progress"]


class DualStateMixin(StatesMargin, PredictorMixin, FitsBlocks, Played, ClassifierMixin):
    """A scikit-learn classifier around an algorithm: it validates, plays and publishes.

    The estimator of an algorithm returns it from ``_algorithm()``, as a value that holds the
    estimator's parameters, see ``marginsvm.fit.Algorithm``.

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

    # Values of the shared parameters that an estimator does not declare.
    class_weight: Any = None
    C: float = np.inf
    nu: float | None = None
    kernel: Any = "linear"
    kernel_params: dict[str, Any] | None = None
    p: float | str = 2.0
    monotonic_cst: Any = None
    intercept_scaling: Any = None  # None: the intercept is not penalised

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = constraints_of(
        CommonParameters, KernelParameters, ShareParameters, NormalizeParameters
    )

    @classmethod
    @cache  # of a class; reading its signature takes a twentieth of a small fit
    def _get_param_names(cls) -> list[str]:
        names: list[str] = super()._get_param_names()
        return names

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
        return Stopping(self.stopping, self.tol, self.max_iter, NEGLIGIBLE)

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

    def _advice(
        self, algorithm: Algorithm, problem: KernelMatrixAdapter, progress: Progress
    ) -> str:
        return remedies(self, algorithm, problem, progress)
