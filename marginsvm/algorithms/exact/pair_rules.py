"""Rules of pairs of weights for a share of the examples and for tubes, with a kernel."""

from __future__ import annotations

from marginsvm.algorithms.exact.rules import Rule
from marginsvm.algorithms.exact.shape import Shape
from marginsvm.algorithms.exact.share_pairs import SharePairs
from marginsvm.algorithms.exact.tube_pairs import TubePairs
from marginsvm.algorithms.exact.tube_shares import TubeShares

# Tables of the documentation.
OF_SHARES, TUBES = "One class (one_class.md)", "Regression (regression.md)"

PAIRS_OF_A_SHARE = Rule(
    "share of the examples, kernel, more than `one_class` of them",
    SharePairs,
    lambda s, p: s.is_for_share_pairs(p),
    lambda problem, p: SharePairs.start(problem),
    OF_SHARES,
)

PAIRS_OF_TUBES = (
    Rule(
        "tube of unknown width, kernel, soft",
        TubeShares,
        lambda s, p: s.share and s.is_for_tube_pairs(p),
        lambda problem, p: TubeShares.start(problem),
        TUBES,
    ),
    Rule(
        "tube, kernel, soft",
        TubePairs,
        Shape.is_for_tube_pairs,
        lambda problem, p: TubePairs.start(problem),
        TUBES,
    ),
)
