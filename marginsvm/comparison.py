"""Algorithms compared on one problem: bounds against iterations, passes and seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from marginsvm._typing import Array
from marginsvm.certificate.certificate import relative_gap
from marginsvm.display import LABELS, MarginPathDisplay, axes_for
from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.problem.programs import ProblemSpec

AXES = {"iterations": "n_iter", "passes": "n_passes", "seconds": "seconds"}


@dataclass
class Comparison:
    """Estimators fitted to the same problem, as :func:`~marginsvm.compare` returns them.

    Attributes
    ----------
    estimators : dict
        Fitted estimators by name.
    table : dict of ndarray of shape (n_estimators,)
        ``name``, ``status``, ``iterations``, ``passes`` over the data, ``seconds``, the bounds
        ``margin`` and ``margin_bound`` (units of X) and the relative ``gap`` between these.
    ax_ : ndarray of shape (2,)
        Axes of the bounds and of the gaps, once plotted.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MaxMarginClassifier, MomentumMarginClassifier, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> pair = [MaxMarginClassifier(), MomentumMarginClassifier(tol=0.1)]
    >>> found = compare(pair, X[:100], y[:100], verbose=False)
    >>> found.table["gap"] < [1e-6, 0.1]
    array([ True,  True])
    >>> display = found.plot(x="passes")
    """

    estimators: dict[str, Any]
    table: dict[str, Array]
    ax_: Any = field(init=False, repr=False)
    figure_: Any = field(init=False, repr=False)

    def to_frame(self) -> Any:
        """``table`` as a pandas DataFrame, indexed by name.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self.table).set_index("name")

    def gaps(self, name: str, x: str = "iterations") -> tuple[Array, Array]:
        """The relative gap of an estimator along its fit.

        Parameters
        ----------
        name : str
            Name of the estimator.
        x : {"iterations", "passes", "seconds"}, default="iterations"
            What is counted.

        Returns
        -------
        x, gap : ndarray of shape (n_looks,)
            A gap is 1 - margin / margin_bound, of the best bounds so far; 1 before a separator.
        """
        history = self.estimators[name].history_
        lower = np.maximum(history["margin"], 0.0)
        return history[AXES[x]], 1.0 - lower / history["margin_bound"]

    def plot(self, x: str = "iterations", *, ax: Any = None) -> Comparison:
        """Draw the bounds and, on logarithmic axes, the gaps beside slopes 1/t and 1/t^2.

        Parameters
        ----------
        x : {"iterations", "passes", "seconds"}, default="iterations"
            Horizontal axis.
        ax : sequence of two matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        Comparison

        Raises
        ------
        ValueError
            If ``x`` is not one of the axes.
        ImportError
            If matplotlib is not installed.
        """
        if x not in AXES:
            raise ValueError(f"x must be one of {sorted(AXES)}, but is {x!r}")
        bounds, gaps = axes_for(
            self, ax, ncols=2, figsize=(11, 4.2), layout="constrained"
        )
        longest: tuple[Array, Array] = (np.empty(0), np.empty(0))
        for name, fitted in self.estimators.items():
            drawn = MarginPathDisplay(fitted.history_, name=name)
            drawn.plot(x=AXES[x], ax=bounds)
            at, gap = self.gaps(name, x)
            shown = (gap > 0.0) & (gap < 1.0) & (at > 0.0)
            curve = at[shown], gap[shown]
            marker = "o" if len(curve[0]) < 10 else ""
            color = drawn.line_.get_color()
            gaps.plot(*curve, color=color, marker=marker, label=name)
            longest = max(longest, curve, key=lambda c: len(c[0]))
        # Slopes begin where the longest curve does.
        for power, style in ((1, ":"), (2, "-.")):
            at, gap = (values[[0, -1]] if len(values) else values for values in longest)
            slope = gap[:1] * (at / at[:1]) ** -power
            label = "slope $1/t$" if power == 1 else "slope $1/t^2$"
            gaps.plot(at, slope, color="0.6", linestyle=style, label=label)
        gaps.set(xlabel=LABELS[AXES[x]], ylabel="relative gap")
        gaps.set(xscale="log", yscale="log")
        gaps.legend()
        return self


def compare(
    estimators: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    verbose: bool = True,
) -> Comparison:
    """Fit estimators to the same problem, and compare their bounds along the way.

    Parameters
    ----------
    estimators : dict of str to estimator, or list of estimators
        Classifiers of this package, or your own (:class:`~marginsvm.DualStateMixin`). They are
        cloned. Those of a list are named after their classes.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data, or the kernel matrix of shape (n_samples, n_samples).
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the examples.
    verbose : bool, default=True
        Whether each fit is reported by a line.

    Returns
    -------
    Comparison
        ``table``, ``to_frame()`` and ``plot()``.

    Raises
    ------
    TypeError
        If one of them has no ``history_`` of margins.
    ValueError
        If they do not solve the same problem; the message names the parameters that differ.

    See Also
    --------
    marginsvm.testing.check_algorithm : Tests of an algorithm of your own.

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky. Fast margin maximization via dual acceleration. ICML, 2021:
    Figure 1, and Theorem 3.1, whose rate is the slope 1/t^2 but for a logarithm.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MomentumMarginClassifier, OptimisticPerceptron, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare(
    ...     {"Ji et al.": MomentumMarginClassifier(), "Hanashiro": OptimisticPerceptron()},
    ...     X[:100], y[:100], verbose=False,
    ... )
    >>> found.table["status"].tolist()
    ['certified', 'certified']
    """
    named = estimators if isinstance(estimators, dict) else _named(estimators)
    for name, estimator in named.items():
        if not isinstance(estimator, DualStateMixin):
            raise TypeError(
                f"{name} is {type(estimator).__name__}, but only classifiers of marginsvm, or "
                "your own that inherit DualStateMixin, have bounds to compare"
            )
    _refuse_other_problems(named)
    fitted = {}
    for name, estimator in named.items():
        fitted[name] = clone(estimator)._fit_within(X, y, sample_weight)
        if verbose:
            print(f"{name}: {fitted[name].certificate_}", flush=True)
    return Comparison(fitted, _table(fitted))


def _named(estimators: Any) -> dict[str, Any]:
    """Estimators by the names of their classes, numbered where a class comes again."""
    named: dict[str, Any] = {}
    for estimator in estimators:
        name = base = type(estimator).__name__
        number = 1
        while name in named:
            number += 1
            name = f"{base} {number}"
        named[name] = estimator
    return named


def _problem_of(estimator: object) -> dict[str, object]:
    """The parameters on which the best margin depends."""
    spec = ProblemSpec.of(estimator)
    problem: dict[str, object] = {
        "C": spec.C,
        "nu": spec.nu,
        "p": spec.p,
        "kernel": spec.kernel,
        "normalize": spec.normalize,
        "fit_intercept": spec.fit_intercept,
    }
    if spec.fit_intercept:  # None: it is not penalised
        problem["intercept_scaling"] = spec.intercept_scaling
    if spec.is_soft:
        problem["loss"] = "hinge" if spec.slack_is_linear else "squared_hinge"
        problem["class_weight"] = spec.class_weight
    if spec.kernel not in ("linear", "precomputed"):
        for name in ("gamma", "degree", "coef0", "kernel_params"):
            problem[name] = getattr(spec, name)
    return problem


def _refuse_other_problems(named: dict[str, object]) -> None:
    """Refuse estimators whose best margins differ."""
    (first, of_first), *others = ((n, _problem_of(e)) for n, e in named.items())
    for name, problem in others:
        # A kernel's parameters and those of slack are in both, or kernel and C differ already.
        both = of_first.keys() & problem.keys()
        differ = sorted(key for key in both if of_first[key] != problem[key])
        if differ:
            said = "; ".join(f"{k}: {of_first[k]!r} and {problem[k]!r}" for k in differ)
            raise ValueError(
                f"{first} and {name} do not solve the same problem, so their bounds cannot be "
                f"compared: {said}"
            )


def _table(fitted: dict[str, Any]) -> dict[str, Array]:
    """A row for each estimator, by columns."""
    models = fitted.values()
    histories = [model.history_ for model in models]
    return {
        "name": np.array(list(fitted)),
        "status": np.array([model.status_ for model in models]),
        "iterations": np.array([model.n_iter_ for model in models]),
        "passes": np.array([history["n_passes"][-1] for history in histories]),
        "seconds": np.array([history["seconds"][-1] for history in histories]),
        "margin": np.array([model.margin_ for model in models]),
        "margin_bound": np.array([model.margin_bound_ for model in models]),
        "gap": np.array([relative_gap(m.margin_, m.margin_bound_) for m in models]),
    }
