"""The array type that every room uses."""

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
