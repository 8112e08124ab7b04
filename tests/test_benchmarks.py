"""The benchmark scripts that have no data of their own to wait for."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.fresh import python

BENCHMARKS = Path(__file__).parent.parent / "examples" / "benchmarks"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.mark.slow
def test_a_problem_of_the_stress_run_ends_and_checks():
    said = python(BENCHMARKS / "stress.py", "--only", "5", timeout=300)
    assert "ended: 1 of 1; certificates that hold: 1 of 1" in said
    assert "memory within the rule: 1 of 1" in said


def test_generated_sets_are_what_they_are_said_to_be():
    sets = runpy.run_path(str(BENCHMARKS / "_sets.py"))
    X, y = sets["text_like"](400, 300, seed=0, density=0.02)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    assert y.sum() == 200
    X, y = sets["topics"](90, 2000, 30, seed=0)
    assert np.bincount(y).tolist() == [3] * 30
    X, y = sets["spambase_like"]()
    assert X.shape == (4600, 57)
    assert 0.6 < (X == 0).mean() < 0.8
    again, _ = sets["spambase_like"]()
    np.testing.assert_array_equal(again, X)
