"""The report of an audit: what a model is worth, what the best is, and which claims hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_LISTED_PROBLEMS = 10  # problems that a text shows
_TIMES = 10.0  # above the least, relative to it: from then on, a text says how many times it is
_APART = 1e-4  # relative distance of bounds from which on a text shows both


@dataclass(frozen=True)
class Worth:
    """What a predictor is worth, and the bounds between which the best is.

    Attributes
    ----------
    value : float
        That of the model.
    lower, upper : float
        Bounds on that of the best predictor, which are proved.
    is_margin : bool
        Whether the best is the largest, as of a margin, or the least, as of an objective.

    Examples
    --------
    >>> from marginsvm.auditing import Worth
    >>> print(Worth(0.699, 0.8176, 0.8176, is_margin=True))
    0.699; the best is 0.8176: 14.5 % short
    """

    value: float
    lower: float
    upper: float
    is_margin: bool

    @property
    def short(self) -> tuple[float, float]:
        """How far it is from the best, relative to the best: at least, and at most."""
        ends = (self.lower, self.upper) if self.is_margin else (self.upper, self.lower)
        least, most = (self._short_of(best) for best in ends)
        return least, most

    def _short_of(self, best: float) -> float:
        if not best > 0.0:
            return 0.0
        missing = best - self.value if self.is_margin else self.value - best
        return max(0.0, missing / best)

    def __str__(self) -> str:
        apart = self.upper - self.lower > _APART * abs(self.upper)
        both = f"between {self.lower:.4g} and {self.upper:.4g}" if apart else f"{self.upper:.4g}"
        best, short = ("best", "short") if self.is_margin else ("least", "above it")
        least, most = (f"{100.0 * share:.3g}" for share in self.short)
        share = f"{most} % {short}" if least == most else f"{least} to {most} % {short}"
        if self.short[1] > _TIMES:
            share = f"{self.value / self.lower:.3g} times as much"
        return f"{self.value:.4g}; the {best} is {both}: {share}"


@dataclass(frozen=True)
class Claim:
    """Something that a model says or implies of itself.

    Attributes
    ----------
    name : str
        ``free_intercept``: its problem does not penalise the intercept. ``iterations``: it ended
        before its limit of iterations. ``tolerance``: the objective of its own problem, with the
        intercept penalised if it is, exceeds the least by no more than ``tol``, relative to it.
        ``share``: at most the share nu of the examples are outliers.
    holds : bool or None
        None: not decided.
    text : str
        The claim and what was found, as a sentence.
    """

    name: str
    holds: bool | None
    text: str

    def __str__(self) -> str:
        said = {True: "holds", False: "does not hold", None: "undecided"}[self.holds]
        return f"{said}: {self.text}"


@dataclass(frozen=True)
class Judged:
    """One problem that a model has solved: all of it, or two of its classes.

    Attributes
    ----------
    name : str
        The classes; empty: all of the model.
    problem : str
        What was judged: loss, C, kernel and intercept.
    n_samples, n_errors : int
        Examples, and how many of them are on the wrong side, outside of the tube, or outliers.
    objective : Worth or None
        ``|w|^2 / 2 + C sum of losses``, with an intercept that costs nothing. None: the model
        minimises something else, or has no C.
    margin : Worth or None
        Smallest distance of an example from the boundary (units of X; of differences of scores,
        with k classes at once; of one class, the mean of the worst share of values, over the
        norm). None: it does not separate the examples.
    separable : bool or None
        Whether the classes can be separated, if it is known.
    claims : tuple of Claim
    regression : bool
        Whether it is one, which has no margin and nothing to separate.
    """

    name: str
    problem: str
    n_samples: int
    n_errors: int
    objective: Worth | None
    margin: Worth | None
    separable: bool | None
    claims: tuple[Claim, ...]
    regression: bool = False

    def row(self) -> dict[str, Any]:
        """All fields in a flat dict, of numbers, texts and None.

        Returns
        -------
        dict
            Of a worth, ``margin_short`` and ``objective_short`` are the shares by which the model
            falls short at most; claims have their names.
        """
        found: dict[str, Any] = {"problem": " ".join(filter(None, [self.name, self.problem]))}
        found |= {"n_samples": self.n_samples, "n_errors": self.n_errors}
        for name, worth in (("margin", self.margin), ("objective", self.objective)):
            found[name] = worth and worth.value
            found[f"{name}_lower"] = worth and worth.lower
            found[f"{name}_upper"] = worth and worth.upper
            found[f"{name}_short"] = worth and worth.short[1]
        return {**found, "separable": self.separable, **{c.name: c.holds for c in self.claims}}

    @property
    def short(self) -> float:
        """By how much it falls short at most: of the best margin or else in its objective."""
        worths = [worth.short[1] for worth in (self.margin, self.objective) if worth]
        return max(worths, default=0.0)

    def lines(self) -> list[str]:
        """The report as lines of text."""
        found = [f"margin {self.margin}"] if self.margin else [self._errors()]
        if self.objective:
            found.append(f"objective {self.objective} ({self.problem})")
        return found + [str(claim) for claim in self.claims]

    def _errors(self) -> str:
        if self.regression:
            return f"{self.n_errors} of {self.n_samples} targets are outside of the tube"
        known = {True: ", which can be separated", False: ", which cannot be separated", None: ""}
        on = f"{self.n_errors} of {self.n_samples} examples are on the wrong side"
        return f"does not separate the classes{known[self.separable]}: {on}"


@dataclass(frozen=True, repr=False)
class Audit:
    """Result of :func:`audit`.

    Attributes
    ----------
    model : str
        The model, as it prints itself.
    problems : tuple of Judged
        The problems that it has solved: one, or as many as it has pairs of classes, or classes to
        hold against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from marginsvm import audit
    >>> X, y = load_iris(return_X_y=True)
    >>> report = audit(SVC(C=10.0, gamma=0.1, tol=1e-8).fit(X, y), X, y)
    >>> [judged.name for judged in report.problems]
    ['0 against 1', '0 against 2', '1 against 2']
    >>> report.worst.objective.short[1] < 1e-5
    True
    """

    model: str
    problems: tuple[Judged, ...]

    @property
    def worst(self) -> Judged:
        """The problem in which the model falls short by most."""
        return max(self.problems, key=lambda judged: judged.short)

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat dict for each problem, of which ``pandas.DataFrame`` makes a table.

        Returns
        -------
        list of dict
        """
        return [{"model": self.model, **judged.row()} for judged in self.problems]

    def to_frame(self) -> Any:
        """Make a table with a line for each problem.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        shown = sorted(self.problems, key=lambda judged: -judged.short)[:_LISTED_PROBLEMS]
        parts = [f"{self.model} on"]
        for judged in self.problems:
            if judged in shown:
                parts.append(", ".join(filter(None, [judged.name, f"{judged.n_samples} examples"])))
                parts[-1] += ":"
                parts += [f"  {line}" for line in judged.lines()]
        if len(self.problems) == 1:
            parts[:2] = [f"{parts[0]} {parts[1]}"]
        if (left := len(self.problems) - len(shown)) > 0:
            parts.append(f"and {left} more, which fall short by less: see rows()")
        return "\n".join(parts)
