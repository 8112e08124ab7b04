"""What the numbers and words of a certificate mean, for fits that claim them and for the check."""

from __future__ import annotations

from math import inf
from typing import Any

# What is published as fitted attributes, too, under its name with "_": fields of a certificate, and
# parameters that a search has chosen. (``nu_`` is no field: it follows from the weights.)
OF_MARGINS = ("margin", "margin_bound", "gap", "separable", "status")
OF_NORMS = ("norm", "norm_bound", "gap", "violation", "feasible", "status")
OF_SEARCHES = ("C",)


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
