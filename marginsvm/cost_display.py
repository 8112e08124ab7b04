"""Pictures along C: scores of a cross-validation, and the margins of a path."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from marginsvm._typing import Array
from marginsvm.certificate.unwrapping import unwrapped


class CostCurveDisplay:
    """Held-out scores, or certified margins and support sizes, along C.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C (dimensionless for given units of X).
    scores : ndarray of shape (n_folds, n_Cs), default=None
        Held-out scores; None: margins are drawn.
    path : MarginPath, default=None
        What :func:`marginsvm.margin_path` returned.
    best : float, default=None
        The chosen C (dimensionless for given units of X); None: there is none.
    name : str, default=""
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of these axes.
    line_ : matplotlib Line2D
        The line of the mean score, or of the lower bound.

    See Also
    --------
    MarginPathDisplay : The bounds of a single fit against its cost.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import CostCurveDisplay, MaxMarginClassifierCV, margin_path
    >>> X, y = load_iris(return_X_y=True)
    >>> display = CostCurveDisplay.from_estimator(MaxMarginClassifierCV().fit(X, y))
    >>> display = CostCurveDisplay.from_path(margin_path(X, y))
    """

    def __init__(
        self,
        Cs: Array,
        *,
        scores: Array | None = None,
        path: Any = None,
        best: float | None = None,
        name: str = "",
    ) -> None:
        self.Cs, self.scores, self.path, self.best, self.name = Cs, scores, path, best, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, ax: Any = None, **line_kw: Any
    ) -> CostCurveDisplay:
        """Draw the scores of a cross-validation.

        Parameters
        ----------
        estimator : MaxMarginClassifierCV
            A fitted one, a pipeline that ends in one, or a search over these. Of several gammas,
            the chosen one is drawn.
        name : str, default=None
            Name in the legend; the class's if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **line_kw : dict
            Passed to the line of the mean score.

        Returns
        -------
        CostCurveDisplay

        Raises
        ------
        TypeError
            If the estimator has no scores along C.
        """
        estimator, _ = unwrapped(estimator, "scores_")
        name = type(estimator).__name__ if name is None else name
        Cs, scores = estimator.Cs_, estimator.scores_
        if Cs.ndim > 1:  # of several gammas
            i = int(np.flatnonzero(estimator.gammas_ == estimator.gamma_)[0])
            Cs, scores = Cs[i], scores[:, i]
        drawn = cls(Cs, scores=scores, best=estimator.C_, name=name)
        return drawn.plot(ax=ax, **line_kw)

    @classmethod
    def from_path(
        cls, path: Any, *, name: str = "margin", ax: Any = None, **line_kw: Any
    ) -> CostCurveDisplay:
        """Draw the bounds and the support sizes of a path.

        Parameters
        ----------
        path : MarginPath
            What :func:`marginsvm.margin_path` returned.
        name : str, default="margin"
            Name in the legend.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **line_kw : dict
            Passed to the line of the lower bound.

        Returns
        -------
        CostCurveDisplay
        """
        return cls(path.Cs, path=path, name=name).plot(ax=ax, **line_kw)

    def plot(self, *, ax: Any = None, **line_kw: Any) -> CostCurveDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **line_kw : dict
            Passed to the line.

        Returns
        -------
        CostCurveDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        wanted = {"label": self.name, **line_kw}
        if self.scores is not None:
            self._draw_scores(ax, self.scores, wanted)
        else:
            self._draw_path(ax, wanted)
        ax.set(xlabel="C", xscale="log")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_scores(self, ax: Any, scores: Array, wanted: dict[str, Any]) -> None:
        """Mean and standard error over the folds; the chosen C is marked."""
        mean = np.nanmean(scores, axis=0)
        error = np.nanstd(scores, axis=0) / np.sqrt(len(scores))
        (self.line_,) = ax.plot(self.Cs, mean, **wanted)
        color = self.line_.get_color()
        ax.fill_between(self.Cs, mean - error, mean + error, color=color, alpha=0.15, lw=0)
        if self.best is not None:
            ax.axvline(self.best, color=color, linestyle=":", label=f"C = {self.best:.3g}")
        ax.set_ylabel("held-out score (band: standard error)")
        ax.legend()

    def _draw_path(self, ax: Any, wanted: dict[str, Any]) -> None:
        """Both bounds, which hardly differ; and on a second axis the number of support vectors."""
        path = self.path
        (self.line_,) = ax.plot(self.Cs, path.margins, **wanted)
        ax.plot(self.Cs, path.margin_bounds, color=self.line_.get_color(), linestyle="--", lw=1)
        ax.set(ylabel="soft margin (line) and bound (dashed)", yscale="log")
        other = ax.twinx()
        other.plot(self.Cs, path.n_support, color="0.5", lw=1, label="support vectors")
        other.set(ylabel="support vectors", ylim=(0, None))
        ax.legend(handles=[*ax.get_lines()[:1], *other.get_lines()])
