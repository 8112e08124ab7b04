"""Published bounds of hostile fits hold in rationals, and changed ones are refused.

``examples/benchmarks/hostile_fits.py`` does the same for as many fits as one likes.
"""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers.battery import in_blocks

from marginsvm import check_certificate

SCRIPT = Path(__file__).parent.parent / "examples" / "benchmarks" / "hostile_fits.py"
HOSTILE = runpy.run_path(str(SCRIPT))


def fitted(seed):
    """A fit, and its data; None where the problem is refused."""
    estimator, X, y, weight = HOSTILE["problem"](seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return (
                estimator.fit(X, *(() if y is None else (y,)), sample_weight=weight),
                X,
                y,
                weight,
            )
        except ValueError:
            return None


@in_blocks(2600, size=130)
def test_bounds_hold_in_rationals(seeds):
    for seed in seeds:
        if found := fitted(seed):
            assert not HOSTILE["wrong"](*found), seed


@pytest.mark.parametrize("start", [0, pytest.param(10_000, marks=pytest.mark.slow)])
def test_what_is_accepted_is_true(start):
    told = accepted = 0
    for seed in range(start, start + (100 if start == 0 else 1000)):
        found = fitted(seed)
        if found is None or getattr(found[0], "kernel", "linear") not in ("linear", "precomputed"):
            continue
        estimator, X, y, weight = found
        best = estimator.certificate_
        for what, claim in HOSTILE["lies"](estimator, np.random.default_rng(seed), 4):
            told += 1
            if check_certificate(estimator, X, y, weight, exact=True):
                accepted += 1
                assert not HOSTILE["contradicts"](claim, best), (seed, what)
    assert 0.2 * told < accepted < 0.8 * told
