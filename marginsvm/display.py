"""MarginPathDisplay: the certified bounds of a fit, drawn against its cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from marginsvm._typing import Array
from marginsvm.certify.checker.unwrapping import unwrapped

LABELS = {
    "n_iter": "rounds",
    "n_passes": "passes over the data",
    "seconds": "seconds",
}


class MarginPathDisplay:
    """Path of the certified margin bounds.

    Parameters
    ----------
    history : dict of ndarray
        ``history_`` of a fitted estimator.
    name : str
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of these axes.
    line_ : matplotlib Line2D
        The line of the lower bound.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MarginPathDisplay, MomentumMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MomentumMarginClassifier().fit(X[:100], y[:100])
    >>> display = MarginPathDisplay.from_estimator(clf)
    """

    def __init__(self, history: dict[str, Array], *, name: str = "") -> None:
        self.history = history
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: str = "n_passes",
        name: str | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> MarginPathDisplay:
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted one, of this package; or a pipeline that ends in one, or a search over
            these, whose best estimator is drawn.
        x : {"n_passes", "n_iter", "seconds"}, default="n_passes"
            Horizontal axis.
        name : str, default=None
            Name in the legend; the class's if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **line_kw : dict
            Passed to the line of the lower bound.

        Returns
        -------
        MarginPathDisplay

        Raises
        ------
        NotFittedError
            If the estimator has not been fitted.
        TypeError
            If it is not one of this package, nor a pipeline or search that holds one.
        """
        estimator, _ = unwrapped(estimator, "history_")
        name = type(estimator).__name__ if name is None else name
        return cls(estimator.history_, name=name).plot(x=x, ax=ax, **line_kw)

    def plot(self, *, x: str = "n_passes", ax: Any = None, **line_kw: Any) -> MarginPathDisplay:
        """Draw both bounds and the band between them.

        Parameters
        ----------
        x : {"n_passes", "n_iter", "seconds"}, default="n_passes"
            Horizontal axis.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **line_kw : dict
            Passed to the line of the lower bound.

        Returns
        -------
        MarginPathDisplay

        Raises
        ------
        ValueError
            If ``x`` is not one of the axes.
        ImportError
            If matplotlib is not installed.
        """
        if x not in LABELS:
            raise ValueError(f"x must be one of {sorted(LABELS)}, but is {x!r}")
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        history = self.history
        lower = np.where(np.isfinite(history["margin"]), history["margin"], np.nan)
        upper = np.where(np.isfinite(history["margin_bound"]), history["margin_bound"], np.nan)
        (self.line_,) = ax.plot(history[x], lower, **{"label": self.name, **line_kw})
        color = self.line_.get_color()
        ax.plot(history[x], upper, color=color, linestyle="--", linewidth=1)
        ax.fill_between(history[x], np.maximum(lower, 0), upper, color=color, alpha=0.12, lw=0)
        ax.axhline(0, color="0.7", linewidth=0.8)
        known = upper[np.isfinite(upper)]
        if known.size:  # the first rounds' margins are far below anything of interest
            ax.set_ylim(-0.15 * known[-1] - 1e-12, min(known.max(), 2.5 * known[-1]) + 1e-12)
        ax.set(xlabel=LABELS[x], ylabel="margin", xscale="log")
        ax.legend(title="margin (line) and bound (dashed)", loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self
