"""The types that every module uses."""

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
# A number, or an array of numbers: float64 in fits, Fractions in exact checks.
Values: TypeAlias = Any
