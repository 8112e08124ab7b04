"""Shared fixtures; see helpers/estimators.py for the discovery that the battery runs over."""

import os
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


def pytest_collection_modifyitems(items):
    """Tests marked by ``callbacks``, and examples that set some, need scikit-learn 1.9."""
    if find_spec("sklearn.callback"):
        return
    for item in items:
        examples = getattr(getattr(item, "dtest", None), "examples", [])
        if item.get_closest_marker("callbacks") or any("callback" in e.source for e in examples):
            item.add_marker(pytest.mark.skip(reason="scikit-learn has no callbacks before 1.9"))


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
