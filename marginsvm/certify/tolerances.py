"""Every threshold of bounds, certificates and rounds: its quantity, its unit and its reason.

Lengths and margins are in radii, that is in units of the norm of the longest row, unless a line
says otherwise: in these units the sixteen digits of float64 resolve a margin down to about 1e-15.
"""

# Rounds.

NOISE = 1e-14
"""A margin (in radii) that rounds may find although there is none: a few roundings of 1."""

GAP_ROUNDING = 1e-15
"""Rounding error of a relative gap (dimensionless). Added to the gap before it is compared with
``tol``, so that ``tol=0`` plays all rounds even where the bounds happen to be equal."""

NEGLIGIBLE = 1e-6
"""Upper bound (in radii) at which a search for any separator is given up: the separator of a
thinner margin would take 1e12 mistakes of a perceptron to find."""

NOTHING_LEFT = 1e-13
"""Norm of a model over its mass (in radii) below which it is all rounding: its rows cancel."""

OTHER_DATA = 1e-9
"""Difference of two entries of a vector per unit of its mass (in radii) that no rounding makes:
it shows that a warm start was given other data."""

OTHER_DATA_IN_SINGLE = 1e-3
"""The same for vectors of which parts were computed from kernel values in float32: a warm start has
the weights of these, and computes the rest anew."""

# Bounds.

LARGEST_NORM = 1e152
"""Largest norm of a row, and inverse of the smallest (units of x): their squares, summed over
many rows, still are numbers of float64, which go to 1e308."""

LARGEST_FLOAT32 = 1e35
"""Inverse of the smallest norm of the longest row in float32 (units of x): predictors, which are
longer by this, and some hundred times themselves, still are numbers of float32, to 3e38."""

LARGEST_CAP = 1e100
"""Largest weight (in radii) that slack may cost: squares of sums of such weights, and products of
them with margins, still are numbers of float64, which go to 1e308."""

SCALABLE_MARGIN = 1e-200
"""Margin per unit of norm (in radii) up to which a predictor is not scaled to margin 1: dividing
by less may overflow."""

IMBALANCE_SURCHARGE = 3.0
"""Surcharge on an upper bound for each unit of imbalance of its weights (in radii)."""

VANISHING = 1e-9
"""Upper bound (in radii) below which it is worth looking for weights with ``A^T q`` exactly zero: a
few digits above the rounding error of ``A^T q``."""

KERNEL_VANISHING = 1e-6
"""The same for kernels, whose norms are square roots of sums that cancel: half the digits."""

KERNEL_RESOLUTION = 1e-7
"""Margin (in radii) of a kernel predictor up to which its sign is not claimed: norms are square
roots of sums of kernel values that cancel, so that half the digits of float64 are left."""

EXCESS_SURCHARGE = 8.0
"""Surcharge on an upper bound for each unit by which its weights exceed their caps (in radii), see
:meth:`marginsvm.certify.caps.ShareCaps.upper_bound`."""

ROUNDED_SHARE = 1e-12
"""Excess of a share of the examples over the largest that the classes allow (relative to it) that
is the rounding of both: they are sums of weights, and quotients of them."""

BALANCE_CORRECTIONS = 4
"""Corrections of an imbalance at most: each leaves the rounding of the weights that it changes,
which are smaller every time."""


# Equal examples of two classes.

SAME_FINGERPRINT = 1e-12
"""Difference of the fingerprints of equal examples at most, relative to the largest: the rounding
of sums of some ten thousand features, which may differ from row to row."""

MAX_TWINS = 256
"""Pairs of examples with the same fingerprint that are compared: of pairs that are not equal, only
rounding makes the fingerprints so."""

MAX_TWIN_NUMBERS = 2**20
"""Numbers in one half of these pairs (8 MiB): of wider rows, fewer pairs are compared."""
