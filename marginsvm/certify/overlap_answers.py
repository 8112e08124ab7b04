"""What is known of whether the classes of a problem overlap."""

from __future__ import annotations

from marginsvm.certify.tolerances import MAX_OVERLAP_EFFORT


class OverlapAnswers(dict[bytes, bool]):
    """Whether weights prove an overlap, for the weights that were asked about so far."""

    _spent = 0.0

    @property
    def may_be_asked(self) -> bool:
        """Whether questions in vain have not yet taken too long."""
        return self._spent < MAX_OVERLAP_EFFORT

    def add(self, asked: bytes, proved: bool, effort: float) -> None:
        """Keep an answer, and what it cost (cubes of the number of examples)."""
        self[asked] = proved
        self._spent += 0.0 if proved else effort
