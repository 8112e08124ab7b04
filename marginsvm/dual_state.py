"""DualStateMixin: the life of a fit. The only loop of the package is here."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from marginsvm._typing import Array
from marginsvm.certify.bounds import upper_bound
from marginsvm.certify.certificate import bounds_text, relative_gap
from marginsvm.certify.decisive import decisive
from marginsvm.certify.tolerances import GAP_ROUNDING, NOISE
from marginsvm.data.threads import single_threaded_blas
from marginsvm.estimator.advice import remedies
from marginsvm.estimator.block_source import block_set
from marginsvm.estimator.prediction import PredictorMixin
from marginsvm.estimator.results import ResultsMixin
from marginsvm.estimator.training_set import KERNELS, TrainingSet, training_set
from marginsvm.fit.interrupts import interrupts_wait, let_interrupts_through
from marginsvm.fit.progress import Candidate, Exact, Progress
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.columns import ColumnPlan

__all__ = ["Candidate", "DualStateMixin", "Progress"]


class DualStateMixin(ResultsMixin, PredictorMixin, CallbackSupportMixin, ClassifierMixin):
    """The life of a fit: validate, play rounds, certify, stop, publish.

    An algorithm supplies ``_start(data)`` (its state: a dataclass of arrays and
    numbers), ``_round(data, state)`` (the paper's lines; gives a new state and leaves
    the old one alone) and ``_candidates(data, state)`` (what may be certified).
    Where a round is a batch of draws, ``_round_end(n_iter)`` says how far it goes.

    Examples
    --------
    The batch perceptron, whose state is the sum of all the worst rows:

    >>> from sklearn.base import BaseEstimator
    >>> from marginsvm import DualStateMixin
    >>> from marginsvm.dual_state import Candidate
    >>> from marginsvm.kernel_matrix.responses import worst_row
    >>> class Perceptron(DualStateMixin, BaseEstimator):
    ...     fit_intercept = warm_start = verbose = False
    ...     stopping, tol, max_iter = "separation", 1e-6, 100
    ...     def _start(self, data):
    ...         return data.zeros()
    ...     def _round(self, data, state):
    ...         return state + data.respond(state, response=worst_row).vector
    ...     def _candidates(self, data, state):
    ...         worst = data.margins(state).min()
    ...         yield Candidate(state, state.mass, worst, fallback=True)
    >>> Perceptron().fit([[1.0, 0.0], [1.0, -1.0]], [1, -1]).status_
    'separated'
    """

    # What an estimator has unless it has a parameter of that name.
    C: float = np.inf
    kernel: Any = "linear"
    kernel_params: dict[str, Any] | None = None
    p: float | str = 2.0
    intercept_scaling: float | None = None  # None: the intercept is not penalised
    _column_plan: ColumnPlan | None = None  # for algorithms that go by columns of the Gram matrix

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="right")],
        "kernel": [StrOptions(KERNELS), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "degree": [Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "fit_intercept": ["boolean"],
        "normalize": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "stopping": [StrOptions({"gap", "separation"})],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    _all_rows: ClassVar[bool] = True  # take part in rounds; False: few matter
    _in_order: ClassVar[bool] = False  # rows are visited one by one: their order matters
    _by_passes: ClassVar[bool] = True  # rounds are passes over all rows, wherever these are
    _patience: ClassVar[int | None] = None  # rounds without closer bounds before a fit has stalled
    _softmax_only: bool = False  # every vector is a combination of softmax answers

    @abstractmethod
    def _start(self, data: KernelMatrixAdapter) -> Any:
        """State before the first round."""

    @abstractmethod
    def _round(self, data: KernelMatrixAdapter, state: Any) -> Any:
        """State after one round more; the old one stays as it was."""

    @abstractmethod
    def _candidates(self, data: KernelMatrixAdapter, state: Any) -> Iterable[Candidate]:
        """Vectors that carry bounds after a round."""

    def _negligible(self, data: KernelMatrixAdapter) -> float:
        """Upper bound (in radii) at which a fit without a separator gives up."""
        return self.tol if self.stopping == "gap" else min(self.tol, 1e-6)

    def _may_find_more(self, state: Any) -> bool:
        """Whether later rounds may decide what a negligible bound leaves open."""
        return False

    def _round_end(self, n_iter: int) -> int:
        """Where the round that begins at ``n_iter`` ends, if ``max_iter`` does not cut it."""
        return n_iter + 1

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Play rounds until the margin is certified.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data, or the kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. float32 stays float32; a memory map stays one.
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
            If the data or a parameter cannot be used; the text says what to do.
        KeyboardInterrupt
            After the round that was interrupted (a second interrupt does not wait); the best
            model so far is kept, and ``warm_start=True`` goes on from there.
        """
        return self._fit(training_set(self, X, y, sample_weight), X, y)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_blocks(self, source: Any) -> Any:
        """Fit to blocks of examples that need not fit in memory together.

        The same rounds as ``fit`` on all the blocks, one below the other: memory holds a few
        blocks and some numbers for each example. Linear predictors only.

        Parameters
        ----------
        source : iterable
            Yields ``(X, y)`` or ``(X, y, sample_weight)``, dense or CSR, as in ``fit``. It is
            read once a pass, so that every iteration must begin anew and give the same
            blocks: a list, or one of :mod:`marginsvm.sources`.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a block cannot be used; the text names it and says what to do.
        """
        return self._fit(block_set(self, source), source, None)

    @interrupts_wait
    @with_callbacks
    def _fit(self, training: TrainingSet, X: Any, y: Any) -> Any:
        data = training.adapter(self)  # a kernel matrix may take all of BLAS's threads
        with single_threaded_blas():
            progress = self._resume(data, training.classes) or self._begin(data)
            context = self._init_callback_context(
                max_subtasks=max(0, self.max_iter - progress.n_iter)
            )
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            status = self._play(data, training, progress, context, X, y)
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
        self._warn(data, status)
        return self

    # The loop.

    def _play(
        self, data: Any, training: TrainingSet, progress: Progress, context: Any, X: Any, y: Any
    ) -> str:
        publish = partial(self._results, data, training)
        known = progress.exact  # of a fit that is gone on with, and may have been at its end
        status = known and self._confirmed(data, progress, known)
        try:
            while status is None and progress.n_iter < self.max_iter:
                let_interrupts_through()
                before, progress = progress.n_iter, self._advance(data, progress)
                status, progress = self._verdict(data, progress)
                self._report(data, before, progress)
                if self._told_to_stop(context, X, y, partial(publish, progress, "stopped")):
                    status = status or "stopped"
        except (KeyboardInterrupt, OSError):  # not the data's fault: what was found stays good
            if progress.n_iter:
                self._publish(publish(progress, "interrupted"))
            raise
        self._publish(publish(progress, status or "max_iter"))
        return self.status_

    @np.errstate(over="ignore", invalid="ignore")  # norms tell
    def _begin(self, data: KernelMatrixAdapter) -> Progress:
        return Progress(self._start(data), C=self.C, n_passes=data.n_passes)

    @np.errstate(over="ignore", invalid="ignore")
    def _advance(self, data: KernelMatrixAdapter, progress: Progress) -> Progress:
        """Play one round and keep the best bounds."""
        begin, _ = time.perf_counter(), data.work.lap()
        state = self._round(data, progress.state)
        found: dict[str, Any] = {}
        lower, upper = progress.lower, progress.upper
        for candidate in self._candidates(data, state):
            norm = data.norm(candidate.vector)
            if not np.isfinite(norm):
                raise ValueError(
                    f"{type(self).__name__} diverged in round {progress.n_iter + 1}: its vectors "
                    "are too long for float64; choose a smaller step, or scale X"
                )
            if candidate.fallback:
                found["last"] = candidate
            if (
                candidate.min_margin is not None
                and norm > 0
                and candidate.min_margin / norm > lower
            ):
                lower, found["best"] = candidate.min_margin / norm, candidate
            if candidate.mass > 0 and norm / candidate.mass < upper:
                upper, found["proof"] = norm / candidate.mass, candidate
        history, end = progress.history, self._round_end(progress.n_iter)
        while history and history[-1][0] > progress.n_iter:
            history.pop()  # what an interrupt or a round cut short has left
        progress = replace(
            progress,
            state=state,
            n_iter=min(end, self.max_iter),
            before=progress if end > self.max_iter else None,
            lower=lower,
            upper=upper,
            seconds=progress.seconds + time.perf_counter() - begin,
            n_passes=progress.n_passes + data.work.lap(),
            exact=None,
            **found,
        )
        history.append((progress.n_iter, progress.n_passes, progress.seconds, lower, upper))
        return progress

    def _verdict(
        self, data: KernelMatrixAdapter, progress: Progress
    ) -> tuple[str | None, Progress]:
        """Name the reason to stop, if there is one and exact bounds confirm it.

        The bounds of a round carry its rounding (float32's, too); bounds to stop on
        are computed again in float64, now and then if they disagree.
        """
        lower = progress.lower if progress.lower > NOISE else 0.0
        status = self._reason(data, lower, progress.upper)
        n, due = progress.n_iter, progress.next_confirmation
        promising = status is not None and (n >= due or n == self.max_iter)
        if not (promising or self._stalled(progress)):
            return None, progress
        if status == "no_margin":
            progress = self._decisive(data, progress)
        exact = self._exact(data, progress)
        later = progress.n_iter + 1 + progress.n_iter // 10
        progress = replace(progress, next_confirmation=later, exact=exact)
        return self._confirmed(data, progress, exact), progress

    def _decisive(self, data: KernelMatrixAdapter, progress: Progress) -> Progress:
        """Replace a proof that next to nothing separates by one that nothing does, if it can be."""
        assert progress.proof is not None
        found = [progress.proof, *self._candidates(data, progress.state)]
        vector = decisive(data, [proof.vector for proof in found if proof.mass > 0])
        made_of_it = Candidate(vector, vector.mass, precise=True)
        proof = next((proof for proof in found if proof.vector is vector), made_of_it)
        upper = min(progress.upper, upper_bound(data, vector))  # no worse one may follow it
        return replace(progress, proof=proof, upper=upper)

    def _confirmed(self, data: KernelMatrixAdapter, progress: Progress, exact: Exact) -> str | None:
        status = self._reason(data, exact.lower, exact.upper, exact.predictor.separates)
        stalled = self._stalled(progress)
        if status == "no_margin" and not exact.overlap:
            at_the_end = stalled or progress.n_iter >= self.max_iter
            return status if at_the_end or not self._may_find_more(progress.state) else None
        return status or ("stalled" if stalled else None)

    def _stalled(self, progress: Progress) -> bool:
        return self.tol > 0 and progress.stalled(self._patience)

    def _reason(
        self, data: KernelMatrixAdapter, lower: float, upper: float, separates: bool = True
    ) -> str | None:
        """Name the reason to stop at these bounds.

        A soft margin is positive whether or not the examples themselves are separated;
        ``separates`` says so where it has been looked at.
        """
        positive = lower > data.errors.resolution
        if self.stopping == "separation" and positive and separates:
            return "separated"
        if positive and relative_gap(lower, upper) + GAP_ROUNDING <= self.tol:
            return "certified"
        if not positive and upper <= self._negligible(data) and np.isinf(self.C):
            return "no_margin"
        return None

    def _report(self, data: KernelMatrixAdapter, before: int, progress: Progress) -> None:
        n, unit = progress.n_iter, data.radius * data.rows.unit
        if self.verbose and (n.bit_length() > before.bit_length() or n // 1000 > before // 1000):
            bounds = bounds_text(progress.lower * unit, progress.upper * unit)
            gap = relative_gap(progress.lower, progress.upper)
            print(f"[{type(self).__name__}] round {n}: {bounds} (relative gap {gap:.3g})")

    def _told_to_stop(self, context: Any, X: Any, y: Any, attributes: Any) -> bool:
        if not getattr(self, "_skl_callbacks", None):
            return False
        task = context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        self._snapshot = attributes  # for callbacks that do not want it every round
        try:
            stop = task.call_on_fit_task_end(
                estimator=self, X=X, y=y, reconstruction_attributes=attributes
            )
        finally:
            del self._snapshot
        return bool(stop)

    def _resume(self, data: KernelMatrixAdapter, classes: Array) -> Progress | None:
        """Where the previous fit ended; None: begin, as there is none, or it had another C."""
        last: Progress | None = getattr(self, "_progress", None)
        if not self.warm_start or last is None:
            return None
        assert last.proof is not None
        same = np.array_equal(classes, self.classes_)
        same = same and last.proof.vector.has_shape_of(data.zeros())
        if not (same and (last.C != self.C or last.agrees_with(data))):
            raise ValueError(
                "warm_start=True continues the previous fit, but this data has another shape, "
                "other classes or other values; fit a clone, or set warm_start=False"
            )
        if last.C != self.C:  # other rows: no vector, bound or line of the history is theirs
            return None
        exact = last.exact and self._exact(data, last)  # on this data
        # a copy of this estimator goes on from the same progress, with lines of its own
        return replace(last, exact=exact, history=[*last.history])

    # The results.

    def _publish(self, attributes: dict[str, Any]) -> None:
        """Replace the fitted attributes, all at once: none is left of an earlier fit."""
        others = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = {**others, **attributes}

    def _warn(self, data: KernelMatrixAdapter, status: str) -> None:
        if status in ("max_iter", "no_margin", "stalled"):
            outcome = self.certificate_.outcome(self.max_iter, self.tol)
            text = f"{type(self).__name__} {outcome} {remedies(self, data)}".strip()
            # stacklevel: the caller of fit, past three decorators and _fit
            warnings.warn(text, ConvergenceWarning, stacklevel=7)
