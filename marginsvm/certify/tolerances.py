"""Every threshold of bounds, certificates and rounds: its quantity, its unit and its reason.

Lengths and margins are in radii, that is in units of the norm of the longest row, unless a line
says otherwise: in these units the sixteen digits of float64 resolve a margin down to about 1e-15.
"""

# Rounds.

NOISE = 1e-14
"""A margin (in radii) that rounds may find although there is none: a few roundings of 1."""

ROUNDING_RTOL_OF_TOL = 1e-2
"""Rounding error of a bound, as a fraction of ``tol`` (relative to the bound itself), that is left
as it is: it cannot decide whether the gap is below ``tol``."""

GAP_ROUNDING = 1e-15
"""Rounding error of a relative gap (dimensionless). Added to the gap before it is compared with
``tol``, so that ``tol=0`` plays all rounds even where the bounds happen to be equal."""

OTHER_DATA = 1e-9
"""Difference of two entries of a vector per unit of its mass (in radii) that no rounding makes:
it shows that a warm start was given other data."""

# Bounds.

LARGEST_NORM = 1e152
"""Largest norm of a row, and inverse of the smallest (units of x): their squares, summed over
many rows, still are numbers of float64, which go to 1e308."""

SCALABLE_MARGIN = 1e-200
"""Margin per unit of norm (in radii) up to which a predictor is not scaled to margin 1: dividing
by less may overflow."""

IMBALANCE_SURCHARGE = 3.0
"""What a proof pays for weights that are not quite balanced: so many longest rows for each unit
of imbalance, see :func:`marginsvm.certify.bounds.upper_bound`."""

VANISHING = 1e-9
"""Upper bound (in radii) from which down exact weights that prove a margin of 0 may be near: some
digits above the rounding of ``A^T q``."""

KERNEL_VANISHING = 1e-6
"""The same for kernels, whose norms are square roots of sums that cancel: half the digits."""

KERNEL_RESOLUTION = 1e-7
"""Margin (in radii) of a kernel predictor up to which its sign is not claimed: norms are square
roots of sums of kernel values that cancel, so that half the digits of float64 are left."""

# Proofs that the classes overlap.

MAX_OVERLAP_EFFORT = 2e7
"""Effort spent in vain on whether exact weights prove an overlap, in cubes of the number of
examples: some seconds. After that the question is left open."""
