"""Shared fixtures; see helpers/estimators.py for the discovery that the battery runs over."""

import os
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from marginsvm.data.threads import single_threaded_blas

matplotlib.use("Agg")

SEED = int(os.environ.get("MARGINSVM_TEST_SEED", "20210718"))


def pytest_report_header(config):
    return f"marginsvm random seed: {SEED} (MARGINSVM_TEST_SEED)"


@pytest.fixture
def rng():
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)


@pytest.fixture
def as_within_a_fit():
    """Fits confine BLAS to one thread; methods that a test plays by itself do not."""
    with single_threaded_blas():
        yield


@pytest.fixture(scope="session")
def shared_data():
    folder = os.environ.get("MARGINSVM_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("MARGINSVM_DATA does not name a folder with the real data sets")
    return lambda name: np.load(Path(folder) / f"{name}.npz")


def pytest_collection_modifyitems(config, items):
    _leave_out_what_does_not_apply(config, items)
    if not find_spec("sklearn.callback"):
        _skip_callbacks(items)


def _skip_callbacks(items):
    """Tests marked by ``callbacks``, and examples that set some, need scikit-learn 1.9."""
    for item in items:
        examples = getattr(getattr(item, "dtest", None), "examples", [])
        if item.get_closest_marker("callbacks") or any("callback" in e.source for e in examples):
            item.add_marker(pytest.mark.skip(reason="scikit-learn has no callbacks before 1.9"))


def _leave_out_what_does_not_apply(config, items):
    """Leave out the tests that the table DOES_NOT_APPLY of their module names, by patterns."""

    def left_out(item):
        table = getattr(getattr(item, "module", None), "DOES_NOT_APPLY", {})
        return any(_matches(item.name, pattern) for names in table.values() for pattern in names)

    config.hook.pytest_deselected(items=[item for item in items if left_out(item)])
    items[:] = [item for item in items if not left_out(item)]


def _matches(name, pattern):
    """Whether a pattern is for a test, of all its parameters unless it has a part for them."""
    (test, _, parameters), (wanted, _, part) = name.partition("["), pattern.partition("[")
    return fnmatch(test, wanted) and fnmatch(parameters, part or "*")
