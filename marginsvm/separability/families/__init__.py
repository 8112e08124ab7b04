"""The families of regressions that check_separability knows, one file each."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm.separability.families.comparisons import CONDITIONAL, COX
from marginsvm.separability.families.counts import NEGATIVE_BINOMIAL, POISSON
from marginsvm.separability.families.labels import BINOMIAL, MULTINOMIAL, are_trials
from marginsvm.separability.families.ordinal import ORDINAL
from marginsvm.separability.families.pairs import PAIRS
from marginsvm.separability.family import Family

_LABELS = BINOMIAL, MULTINOMIAL, ORDINAL
_ALL = *_LABELS, POISSON, NEGATIVE_BINOMIAL, COX, CONDITIONAL, PAIRS
FAMILIES = {family.name: family for family in _ALL}


def family_of(name: str | None, y: Any) -> Family:
    """The family of a name; None: the one of these classes or trials."""
    if name is not None and name not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, but is {name!r}")
    if name is None:
        if y is None:
            raise ValueError("y is missing; only some families go without, see family")
        return BINOMIAL if are_trials(y) or _are_two(y) else MULTINOMIAL
    return FAMILIES[name]


def _are_two(y: Any) -> bool:
    """Whether labels are of no more than two classes; they are checked by their family."""
    try:
        return len(np.unique(np.asarray(y))) <= 2
    except TypeError:  # words and numbers
        return False
