"""Results of earlier checks of whether weights prove that the classes overlap."""

from __future__ import annotations

from marginsvm.certify.tolerances import MAX_OVERLAP_EFFORT


class OverlapChecks(dict[bytes, bool]):
    """For the weights that were checked so far, as bytes: whether they prove an overlap."""

    _spent = 0.0

    @property
    def may_continue(self) -> bool:
        """Whether checks without a proof have not yet taken too long."""
        return self._spent < MAX_OVERLAP_EFFORT

    def add(self, weights: bytes, proved: bool, effort: float) -> None:
        """Keep a result, and the effort of its check (cube of the number of examples)."""
        self[weights] = proved
        self._spent += 0.0 if proved else effort
