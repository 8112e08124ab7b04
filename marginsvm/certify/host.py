"""Arrays of other libraries, such as torch or CuPy, copied to NumPy."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils._array_api import _convert_to_numpy, array_api_compat


def is_foreign(value: Any) -> bool:
    """Whether a value is an array of another library than NumPy."""
    if isinstance(value, np.ndarray | np.generic):
        return False
    return bool(array_api_compat.is_array_api_obj(value))


def detached(array: Any) -> Any:
    """A tensor of torch without the record of how it was computed; other arrays as they are."""
    return array.detach() if hasattr(array, "detach") else array


def on_host(value: Any) -> Any:
    """Copy an array of another library to NumPy; anything else is returned as it is.

    Numbers of a type that NumPy does not have, such as bfloat16, become float32, which holds them.
    """
    if not is_foreign(value):
        return value
    value, xp = detached(value), array_api_compat.array_namespace(value)
    if xp.isdtype(value.dtype, "real floating") and value.dtype not in (xp.float32, xp.float64):
        value = xp.astype(value, xp.float32)
    return _convert_to_numpy(value, xp)


def examples_on_host(X: Any) -> Any:
    """The same for examples, which become float64: in it, fits compute kernels on devices."""
    return on_host(X).astype(np.float64) if is_foreign(X) else X


def with_attributes_on_host(estimator: Any) -> Any:
    """A fitted estimator with all arrays among its attributes on the host."""
    found = {name: on_host(value) for name, value in vars(estimator).items()}
    if all(value is vars(estimator)[name] for name, value in found.items()):
        return estimator
    other = copy(estimator)
    vars(other).update(found)
    return other
