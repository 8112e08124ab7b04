"""Plots: bounds against passes or time, scores and margins along C, separation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from marginsvm._typing import Array
from marginsvm.certificate.unwrapping import unwrapped

LABELS = {
    "n_iter": "iterations",
    "n_passes": "passes over the data",
    "seconds": "seconds",
}


def axes_for(display: Any, ax: Any, **options: Any) -> Any:
    """The given axes, or those of a new figure."""
    check_matplotlib_support(f"{type(display).__name__}.plot")
    import matplotlib.pyplot as plt

    display.ax_ = plt.subplots(**options)[1] if ax is None else ax
    display.figure_ = np.ravel(display.ax_)[0].figure
    return display.ax_


class MarginPathDisplay:
    """Plot of the margin bounds along a fit.

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
        """Plot the bounds of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator of this package; or a pipeline that ends in one, or a search over
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

    def plot(
        self, *, x: str = "n_passes", ax: Any = None, **line_kw: Any
    ) -> MarginPathDisplay:
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
        ax = axes_for(self, ax)
        history = self.history
        lower = np.where(np.isfinite(history["margin"]), history["margin"], np.nan)
        upper = np.where(
            np.isfinite(history["margin_bound"]), history["margin_bound"], np.nan
        )
        (self.line_,) = ax.plot(history[x], lower, **{"label": self.name, **line_kw})
        color = self.line_.get_color()
        ax.plot(history[x], upper, color=color, linestyle="--", linewidth=1)
        band = {"color": color, "alpha": 0.12, "lw": 0}
        ax.fill_between(history[x], lower, upper, where=lower > 0, **band)
        ax.axhline(0, color="0.7", linewidth=0.8)
        known = upper[np.isfinite(upper)]
        if known.size:  # margins of the first iterations may be far below
            ax.set_ylim(
                -0.15 * known[-1] - 1e-12, min(known.max(), 2.5 * known[-1]) + 1e-12
            )
        ax.set(xlabel=LABELS[x], ylabel="margin", xscale="log")
        ax.legend(title="margin (line) and bound (dashed)", loc="lower right")
        return self


class CostCurveDisplay:
    """Plot of held-out scores, or of certified margins and support vectors, along C.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C (dimensionless for given units of X).
    scores : ndarray of shape (n_folds, n_Cs), default=None
        Held-out scores; None: margins are drawn.
    path : MarginPath, default=None
        Result of :func:`marginsvm.margin_path`.
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
        self.Cs = Cs
        self.scores = scores
        self.path = path
        self.best = best
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, ax: Any = None, **line_kw: Any
    ) -> CostCurveDisplay:
        """Draw the scores of a cross-validation.

        Parameters
        ----------
        estimator : MaxMarginClassifierCV
            A fitted estimator, a pipeline that ends in one, or a search over these. With several
            gammas, the scores of the chosen one are drawn.
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
        estimator, _ = unwrapped(estimator, "scores_", of="MaxMarginClassifierCV")
        name = type(estimator).__name__ if name is None else name
        Cs = estimator.Cs_
        scores = estimator.scores_
        if Cs.ndim > 1:  # several gammas
            i = int(np.flatnonzero(estimator.gammas_ == estimator.gamma_)[0])
            Cs = Cs[i]
            scores = scores[:, i]
        drawn = cls(Cs, scores=scores, best=estimator.C_, name=name)
        return drawn.plot(ax=ax, **line_kw)

    @classmethod
    def from_path(
        cls, path: Any, *, name: str = "margin", ax: Any = None, **line_kw: Any
    ) -> CostCurveDisplay:
        """Plot the bounds and the numbers of support vectors of a path.

        Parameters
        ----------
        path : MarginPath
            Result of :func:`marginsvm.margin_path`.
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
        ax = axes_for(self, ax)
        wanted = {"label": self.name, **line_kw}
        if self.scores is not None:
            self._draw_scores(ax, self.scores, wanted)
        else:
            self._draw_path(ax, wanted)
        ax.set(xlabel="C", xscale="log")
        return self

    def _draw_scores(self, ax: Any, scores: Array, wanted: dict[str, object]) -> None:
        """Mean and standard error over the folds; the chosen C is marked."""
        mean = np.nanmean(scores, axis=0)
        error = np.nanstd(scores, axis=0) / np.sqrt(len(scores))
        (self.line_,) = ax.plot(self.Cs, mean, **wanted)
        color = self.line_.get_color()
        ax.fill_between(
            self.Cs, mean - error, mean + error, color=color, alpha=0.15, lw=0
        )
        if self.best is not None:
            ax.axvline(
                self.best, color=color, linestyle=":", label=f"C = {self.best:.3g}"
            )
        ax.set_ylabel("held-out score (band: standard error)")
        ax.legend()

    def _draw_path(self, ax: Any, wanted: dict[str, object]) -> None:
        """Both bounds, which nearly coincide; on a second axis the number of support vectors."""
        path = self.path
        (self.line_,) = ax.plot(self.Cs, path.margins, **wanted)
        ax.plot(
            self.Cs,
            path.margin_bounds,
            color=self.line_.get_color(),
            linestyle="--",
            lw=1,
        )
        ax.set(ylabel="soft margin (line) and bound (dashed)", yscale="log")
        other = ax.twinx()
        other.plot(self.Cs, path.n_support, color="0.5", lw=1, label="support vectors")
        other.set(ylabel="support vectors", ylim=(0, None))
        ax.legend(handles=[*ax.get_lines()[:1], *other.get_lines()])


# Label of a coefficient, its arrows (left: -1, right: 1), and its colour.
STATUSES = {
    "finite": ("finite", (), "0.45"),
    "+inf": ("+infinite", (1,), "C3"),
    "-inf": ("-infinite", (-1,), "C0"),
    "inf": ("infinite, of either sign", (-1, 1), "C4"),
    "not identified": ("not identified", (), "0.75"),
}
_SHOWN = 30  # largest number of coefficients in a plot, infinite ones first


class SeparationDisplay:
    """Plot of a separation report: infinite coefficients, or the separating line of two features.

    Parameters
    ----------
    report : Separability
        Result of :func:`marginsvm.check_separability`.
    X : array-like of shape (n_samples, 2), default=None
        Two features, to plot the examples. None: the coefficients are drawn.
    y : array-like of shape (n_samples,), default=None
        Their labels or counts.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> from marginsvm import SeparationDisplay, check_separability
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [2.0, 2.0]], [0, 0, 1, 1]
    >>> display = SeparationDisplay.from_report(check_separability(X, y))
    >>> display = SeparationDisplay.from_report(check_separability(X, y), X, y)
    """

    def __init__(self, report: Any, X: Any = None, y: Any = None) -> None:
        self.report = report
        self.X = X
        self.y = y

    @classmethod
    def from_report(
        cls, report: Any, X: Any = None, y: Any = None, *, ax: Any = None
    ) -> SeparationDisplay:
        """Draw a report.

        Parameters
        ----------
        report : Separability
            Result of :func:`marginsvm.check_separability`.
        X : array-like of shape (n_samples, 2), default=None
            Two features, to plot the examples. None: the coefficients are drawn.
        y : array-like of shape (n_samples,), default=None
            Their labels or counts.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        SeparationDisplay
        """
        return cls(report, X, y).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> SeparationDisplay:
        """Draw the coefficients or, with two features, the examples.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        SeparationDisplay

        Raises
        ------
        ValueError
            If X does not have two features.
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_for(self, ax, layout="constrained")
        if self.X is None:
            self._draw_coefficients(ax)
        else:
            self._draw_examples(ax)
        return self

    def _planes(self) -> list[tuple[Array, float]]:
        """Lines ``x w + b = 0`` on which the scores of the direction are 0."""
        direction = self.report.direction
        if direction is None:
            return []
        if self.report.family == "ordinal":
            return [(-direction.coef[0], b) for b in direction.intercept]
        return list(zip(*direction, strict=True))

    def _draw_coefficients(self, ax: Any) -> None:
        everyone = self.report.coefficients
        first = sorted(
            range(len(everyone)), key=lambda j: "inf" not in everyone[j].status[-3:]
        )
        shown = [everyone[j] for j in sorted(first[:_SHOWN])]
        for place, (_, status) in enumerate(shown):
            words, arrows, color = STATUSES[status]
            ax.plot(0.0, place, "o" if status == "finite" else "|", color=color)
            for side in arrows:
                arrow = {"arrowstyle": "-|>", "color": color, "lw": 2}
                ax.annotate("", (side, place), (0.0, place), arrowprops=arrow)
            ax.text(1.1, place, words, va="center", color=color)
        ax.axvline(0, color="0.8", lw=0.8, zorder=0)
        ax.set_yticks(range(len(shown)), [name for name, _ in shown])
        ax.set(
            xlim=(-1.2, 2.4),
            ylim=(len(shown) - 0.5, -0.5),
            xticks=[],
            title=self.report.kind,
        )

    def _draw_examples(self, ax: Any) -> None:
        X = np.asarray(self.X, dtype=float)
        y = np.asarray(self.y)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(
                f"a plot of examples needs two features, but X is {X.shape}"
            )
        y = y[:, 0] if y.ndim == 2 else y
        for c in np.unique(y):
            ax.plot(*X[y == c].T, "o", ms=5, alpha=0.7, label=str(c))
        rings = X[self.report.separated]
        ax.plot(
            *rings.T, "o", ms=10, mfc="none", mec="0.2", ls="none", label="separated"
        )
        for w, b in self._planes():
            if np.any(w):
                ax.axline(
                    -b * w / (w @ w),
                    -b * w / (w @ w) + [w[1], -w[0]],
                    color="0.4",
                    lw=1,
                )
        ax.set(title=self.report.kind)
        ax.legend()
