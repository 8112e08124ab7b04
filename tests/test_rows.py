"""Rows: the best intercepts of many classes."""

import numpy as np
import pytest

from marginsvm.rows.cycles import cycle_offsets, min_cycle


@pytest.mark.parametrize("k", [3, 30, 200])
def test_offsets_of_many_classes_attain_the_least_mean(k, rng):
    """Cycles of length 0 are negative by rounding; walks around them must not add up."""
    beta = rng.normal(size=k)
    low = 1.0 + rng.exponential(size=(k, k)) * (rng.random((k, k)) < 0.5)
    low += beta[:, None] - beta
    np.fill_diagonal(low, np.inf)
    found = cycle_offsets(low)
    smallest = (low + found[:, None] - found).min()
    assert smallest <= min_cycle(low)[0] <= smallest + 1e-13
