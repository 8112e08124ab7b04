"""What is asked: the family, and the examples that count."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import (
    _check_sample_weight,
    _get_feature_names,
    check_consistent_length,
)

from marginsvm.separation.families import (
    Conditional,
    Counts,
    Cox,
    Data,
    Family,
    Labels,
    Ordinal,
    are_trials,
    numbers_of,
)
from marginsvm.separation.pairs import Pairs

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Labels("binomial", "logistf or brglm2 in R, firthmodels in Python"),
        Labels("multinomial", "brglm2 in R", partly="some classes are ruled out"),
        Ordinal(
            "ordinal",
            "brglm2 in R, of adjacent categories",
            intercept=False,
            partly="one of the two bounds holds for certain",
        ),
        Counts("poisson", "brglm2 in R"),
        Counts("negative_binomial", "brglm2 in R"),
        Cox(
            "cox",
            "coxphf in R",
            takes=("strata", "entry", "offset"),
            intercept=False,
            noun="subjects",
            perfect="have an event at which others at risk are ruled out",
            compares=True,
        ),
        Conditional(
            "conditional",
            "coxphf in R, of groups with one choice as strata",
            takes=("groups", "offset"),
            intercept=False,
            noun="alternatives",
            perfect="are chosen where others of the group are ruled out",
            compares=True,
        ),
        Pairs(
            "pairs",
            "BradleyTerry2 in R, with br=TRUE; rankings: PlackettLuce in R, with npseudo",
            intercept=False,
            noun="comparisons",
            otherwise="raise max_iter",
        ),
    )
}


def family_of(name: str | None, y: Any) -> Family:
    """The family of a name; None: the one of these classes or trials."""
    if name is not None and name not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, but is {name!r}")
    if name is not None:
        return FAMILIES[name]
    if y is None:
        raise ValueError("y is missing; only some families go without, see family")
    try:
        few = are_trials(y) or len(np.unique(np.asarray(y))) <= 2
    except TypeError:  # words and numbers, which the family refuses
        few = False
    return FAMILIES["binomial" if few else "multinomial"]


def data_of(
    family: Family,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    feature_names: Any = None,
    **more: Any,
) -> Data:
    """The examples of positive weight, with trials, as their family reads them."""
    given = {key: value for key, value in more.items() if value is not None}
    for key in given:
        if key not in family.takes:
            who = ", ".join(repr(f.name) for f in FAMILIES.values() if key in f.takes)
            raise ValueError(f"{key} is for family {who}, but the family is {family.name!r}")
    names = _get_feature_names(X) if feature_names is None else feature_names
    X, y, given = family.read(X, y, given)
    if family.name != "pairs":
        X = numbers_of(X)
        check_consistent_length(X, y)
        if names is None:
            names = [f"x{j}" for j in range(X.shape[1])]
        elif len(names) != X.shape[1]:
            raise ValueError(
                f"feature_names has {len(names)} names, but X has {X.shape[1]} columns; give one "
                "name for each, without the intercept"
            )
    used, n = family.used(y), X.shape[0]
    if sample_weight is not None:
        used &= _check_sample_weight(sample_weight, X, ensure_non_negative=True) > 0
    if not used.any():
        raise ValueError(
            "no example has a positive weight; there must be at least one non-zero weight"
        )
    if not used.all():
        X, y = X[used], y[used]
        given = {
            key: v[used] if isinstance(v, np.ndarray) and len(v) == n else v
            for key, v in given.items()
        }
    names = [] if names is None else [str(name) for name in names]
    intercept = bool(fit_intercept and family.intercept)
    return Data(X, y, np.flatnonzero(used), n, names, intercept, given)
