"""What the numbers and words of a certificate mean, for fits that claim them and for the check."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

# What is published as fitted attributes, too, under its name with "_": fields of a certificate, and
# parameters that a search has chosen. (``nu_`` is no field: it follows from the weights.)
PUBLISHED = {
    "margin": ("margin", "margin_bound", "gap", "separable", "status"),
    "norm": ("norm", "norm_bound", "gap", "violation", "feasible", "status"),
}
OF_SEARCHES = ("C",)


@dataclass(frozen=True)
class Bounds:
    """Two bounds on the best margin, or on the least norm: a margin is one over a norm.

    Attributes
    ----------
    lower, upper : float
        The best margin, or the least norm, is between them.
    reading : {"margin", "norm"}
        What they are bounds on.
    """

    lower: float
    upper: float
    reading: str

    @property
    def margin(self) -> float:
        """Lower bound on the best margin: that of the predictor."""
        return self.lower if self.reading == "margin" else _inverse(self.upper, 0.0)

    @property
    def margin_bound(self) -> float:
        """Upper bound on the margin of any predictor."""
        return self.upper if self.reading == "margin" else _inverse(self.lower, inf)

    @property
    def norm(self) -> float:
        """Upper bound on the least norm: that of the predictor where its values are 1 or more."""
        return self.upper if self.reading == "norm" else _inverse(self.lower, inf)

    @property
    def norm_bound(self) -> float:
        """Lower bound on the norm of any predictor that fits."""
        return self.lower if self.reading == "norm" else _inverse(self.upper, 0.0)


def _inverse(x: float, towards: float) -> float:
    """One over a number, rounded towards 0 or infinity; infinite for what is not positive."""
    return float(nextafter(1.0 / x, towards)) if x > 0.0 else inf


def published(source: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Fitted attributes that say what a certificate, or a parameter of an estimator, says."""
    return {f"{name}_": getattr(source, name) for name in names}


def relative_gap(lower: float, upper: float) -> float:
    """Relative gap between two bounds on the best margin, from 0 to 1 (dimensionless).

    No best margin is negative, so that a lower bound below 0 counts as 0. The gap is 1 while
    there is no upper bound, and NaN if a bound is.
    """
    lower = max(lower, 0.0)
    if lower >= upper:
        return 0.0
    return 1.0 if upper == inf else (upper - lower) / upper


def rows_in_words(constant: float) -> str:
    """Describe the examples that ``normalize=True`` has divided by their norms.

    Parameters
    ----------
    constant : float
        Value of the feature that joined all examples before the division; 0: none did.
    """
    row = f"(x, {constant:.4g})" if constant else "x"
    return f"{row} / ||{row}||"
