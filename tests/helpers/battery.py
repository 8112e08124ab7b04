"""Whom a test of "every estimator" runs over."""

import pytest
from toy_algorithm import DualFista

from helpers.estimators import ESTIMATORS


def over(classes):
    return pytest.mark.parametrize("cls", classes, ids=lambda cls: cls.__name__)


each = over(ESTIMATORS)

# The toy of "Add an algorithm" (docs/extending.rst) must be what that page says it is.
each_and_toy = over([*ESTIMATORS, DualFista])
