"""Error bounds for linear predictors whose examples are on other machines."""

from __future__ import annotations

from dataclasses import dataclass

from marginsvm._rounding import PAIRWISE, UNIT
from marginsvm.certify.certifiable import Distribution
from marginsvm.certify.linear_errors import LinearErrors


@dataclass(frozen=True)
class LazyErrors(LinearErrors):
    """Errors of predictors as in :class:`LinearErrors`, of proofs as sums over all examples.

    A closer bound for proofs would need the single weights, and with them one more pass.
    """

    def proof_norm(self, proof: Distribution) -> float:
        length = self.norm.dual.length(proof.image.ravel()) * (1.0 + PAIRWISE)
        sums = UNIT * (self.rows.n_examples + 8) * (self.reach + 3.0)
        return length + sums + self.row_error
