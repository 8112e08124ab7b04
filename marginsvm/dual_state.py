"""DualStateMixin: what scikit-learn's users see of an algorithm and its fits."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context

from marginsvm.certificate.certificate import StatesMargin
from marginsvm.estimator.advice import remedies
from marginsvm.estimator.block_source import FitsBlocks, block_set, blocks_of_map
from marginsvm.estimator.declaring import constraints_of
from marginsvm.estimator.parameters import (
    CommonParameters,
    KernelParameters,
    NormalizeParameters,
    ShareParameters,
)
from marginsvm.estimator.played import Played
from marginsvm.estimator.prediction import PredictorMixin
from marginsvm.estimator.training_set import training_set
from marginsvm.fit import Algorithm, Candidate, Progress, Stopping
from marginsvm.fit.stopping import NEGLIGIBLE
from marginsvm.problem.adapter import KernelMatrixAdapter

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
