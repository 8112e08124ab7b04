"""Every threshold of bounds, certificates and rounds: its quantity, its unit and its reason.

Lengths and margins are in units of the radius (the norm of the longest row) unless a line says
otherwise; a margin in these units is what float64 and its 16 digits can be held against.
"""

NOISE = 1e-14
"""A margin (in radii) that rounds may find although there is none: a few roundings of 1."""

ROUNDING_RTOL_OF_TOL = 1e-2
"""Rounding error of a bound, as a fraction of ``tol`` (relative to the bound itself), that is left
as it is: it cannot decide whether the gap is below ``tol``."""

GAP_ROUNDING = 1e-15
"""Rounding error of a relative gap (dimensionless). Added to the gap before it is compared with
``tol``, so that ``tol=0`` plays all rounds even where the bounds happen to be equal."""
