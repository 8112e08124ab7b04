"""Whether the fitted attributes, which are what users read, say what the certificate says."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from marginsvm.certify.claims import OF_SEARCHES, published
from marginsvm.certify.unwrapping import layers

_ABSENT = object()


def is_one_of(word: Any, words: Collection[str]) -> bool:
    """Whether something is one of some words; what cannot be hashed or is an array is not."""
    return isinstance(word, str) and word in words


def is_csr(weights: Any, shape: tuple[int, int]) -> bool:
    """Whether weights are a sparse array of a given shape, as certificates have it."""
    return sp.issparse(weights) and weights.format == "csr" and weights.shape == shape


def wrong_attributes(estimator: Any, expected: dict[str, Any]) -> Iterator[str]:
    """What is wrong with attributes that are to have given values.

    NaN, None and arrays are no number, and 1 is not True: users would compute or decide
    otherwise with them.
    """
    for name, value in expected.items():
        found = getattr(estimator, name, _ABSENT)
        if found is _ABSENT:
            yield f"there is no {name}"
        elif found is value:
            continue
        elif not (isinstance(found, type(value)) and np.all(found == value)):
            yield f"{name} is {found!r}, not {value!r}"


def wrong_copies(outermost: Any, estimator: Any, fields: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with a search that publishes the attributes of the estimator that it found.

    Pipelines, and searches that publish nothing of it, have no such attributes.

    Parameters
    ----------
    outermost : estimator
        What the user holds: the estimator, or pipelines and searches around it.
    estimator : fitted estimator
    fields : tuple of str
        Fields of its certificate that are attributes as well. A search that has one of these
        attributes has all that are fitted.
    """
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    for outer in layers(outermost):
        if outer is estimator or not any(hasattr(outer, f"{name}_") for name in fields):
            continue
        others = [name for name, value in fitted.items() if not _are_same(outer, name, value)]
        if others:
            yield f"{type(outer).__name__} has another {', '.join(others)} than what it has found"
        yield from wrong_attributes(outer, published(estimator, OF_SEARCHES))


def _are_same(outer: Any, name: str, value: Any) -> bool:
    found = getattr(outer, name, _ABSENT)
    return found is value or joblib.hash(found) == joblib.hash(value)
