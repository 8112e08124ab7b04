"""Shared fixtures; see helpers/estimators.py for the discovery that the battery runs over."""

import os
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
