"""How far the numbers of linear predictors may be off whose examples are on other machines."""

from __future__ import annotations

from dataclasses import dataclass

from marginsvm._rounding import PAIRWISE, UNIT
from marginsvm.certify.certifiable import Distribution
from marginsvm.certify.linear_errors import LinearErrors


@dataclass(frozen=True)
class LazyErrors(LinearErrors):
    """Predictors are off as those of :class:`LinearErrors`; proofs, by sums over all examples.

    To look at the weights one by one would take a pass more.
    """

    def proof_norm(self, proof: Distribution) -> float:
        length = self.norm.dual.length(proof.image.ravel()) * (1.0 + PAIRWISE)
        sums = UNIT * (self.rows.n_examples + 8) * (self.reach + 3.0)
        return length + sums + self.row_error
