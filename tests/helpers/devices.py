"""Arrays of other libraries: where they are made, and which estimators take them."""

from contextlib import contextmanager

import numpy as np
import pytest
from sklearn import config_context
from sklearn.utils import get_tags

from helpers.estimators import ESTIMATORS

ON_DEVICES = [cls for cls in ESTIMATORS if get_tags(cls()).array_api_support]
ON_HOSTS = [cls for cls in ESTIMATORS if cls not in ON_DEVICES]


def strict(array, device="device1"):
    """The same numbers in array-api-strict, which does nothing that the standard does not say."""
    xp = pytest.importorskip("array_api_strict", reason="pip install marginsvm[test-all]")
    return xp.asarray(np.array(array), device=xp.Device(device))


def torch(array, dtype=None):
    """The same numbers in torch, on the CPU."""
    xp = pytest.importorskip("torch", reason="torch is no dependency of the tests: too large")
    there = xp.asarray(np.array(array))
    return there if dtype is None or array.dtype.kind != "f" else there.to(getattr(xp, dtype))


LIBRARIES = {"array_api_strict": strict, "torch": torch}


@contextmanager
def dispatching():
    """Within it, scikit-learn dispatches; it wants SciPy's environment variable to be set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn looks for it when it is switched on
        with config_context(array_api_dispatch=True):
            yield
