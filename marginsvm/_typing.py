"""Types that every room uses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]] | NDArray[Any]
