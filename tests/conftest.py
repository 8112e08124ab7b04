"""Shared fixtures; see helpers/estimators.py for the discovery that the battery runs over."""

import ast
import os
import sys
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import marginsvm
from marginsvm import _compiling

matplotlib.use("Agg")

SEED = int(os.environ.get("MARGINSVM_TEST_SEED", "20210718"))


def without_long_double():
    """Long double is float64 in all of the package, as on Windows and on Apple's processors."""
    for name, module in [*sys.modules.items()]:
        if name.startswith(f"{marginsvm.__name__}."):
            for key in [
                key for key, value in vars(module).items() if value is np.longdouble
            ]:
                setattr(module, key, np.float64)
    assert marginsvm._rounding.Extended is np.float64


if os.environ.get("MARGINSVM_TEST_LONG_DOUBLE") == "float64":
    without_long_double()


def pytest_addoption(parser):
    parser.addoption(
        "--all", action="store_true", help="run the tests marked slow, too"
    )
    parser.addoption(
        "--not-passed",
        action="store_true",
        help="leave out what passed in the last run without it",
    )


def pytest_configure(config):
    if _compiling.njit is None:  # the warning is expected there
        ignored = "ignore::marginsvm._compiling.NotCompiledWarning"
        config.addinivalue_line("filterwarnings", ignored)
    if config.pluginmanager.hasplugin("cacheprovider"):
        config.pluginmanager.register(Passed(config), "passed")


class Passed:
    """The tests that passed in the last run, kept in pytest's cache for ``--not-passed``."""

    KEY = "marginsvm/passed"

    def __init__(self, config):
        self._cache, self._left_out = config.cache, config.getoption("not_passed")
        self._names = set(self._cache.get(self.KEY, []) if self._left_out else [])

    def pytest_collection_modifyitems(self, config, items):
        if self._left_out:
            _leave_out(config, items, lambda item: item.nodeid in self._names)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self._names.add(report.nodeid)

    def pytest_sessionfinish(self, session):
        if not (self._left_out or hasattr(session.config, "workerinput")):
            self._cache.set(self.KEY, sorted(self._names))


def pytest_report_header(config):
    kernels = {library.get("architecture") for library in threadpool_info()}
    return (
        f"marginsvm random seed: {SEED} (MARGINSVM_TEST_SEED), kernels of BLAS: "
        f"{', '.join(sorted(filter(None, kernels)))}"
    )


@pytest.fixture
def rng():
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)


@pytest.fixture(scope="session")
def shared_data():
    folder = os.environ.get("MARGINSVM_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("MARGINSVM_DATA does not name a folder with the real data sets")
    return lambda name: np.load(Path(folder) / f"{name}.npz")


def pytest_collection_modifyitems(config, items):
    one_by_one = any("::" in name for name in config.args)
    if not (
        config.getoption("all") or "slow" in config.getoption("markexpr") or one_by_one
    ):
        _leave_out(config, items, lambda item: item.get_closest_marker("slow"))
    _leave_out(config, items, _does_not_apply)
    for item in items:
        for name in _imported(item):
            if not find_spec(name):
                item.add_marker(pytest.mark.skip(reason=f"could not import {name!r}"))


def _leave_out(config, items, is_left_out):
    config.hook.pytest_deselected(items=[item for item in items if is_left_out(item)])
    items[:] = [item for item in items if not is_left_out(item)]


def _imported(item):
    """Modules that a test, or the examples of a docstring or a page, may not find installed."""
    examples = getattr(getattr(item, "dtest", None), "examples", [])
    source = "".join(example.source for example in examples)
    if item.get_closest_marker("callbacks") or "callback" in source:
        yield "sklearn.callback"  # of scikit-learn 1.9
    if "ProgressBar(" in source:  # scikit-learn's, which rich draws
        yield "rich"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def _does_not_apply(item):
    """Whether the table DOES_NOT_APPLY of a test's module names it, by a pattern."""
    table = getattr(getattr(item, "module", None), "DOES_NOT_APPLY", {})
    return any(
        _matches(item.name, pattern) for names in table.values() for pattern in names
    )


def _matches(name, pattern):
    """Whether a pattern is for a test, of all its parameters unless it has a part for them."""
    (test, _, parameters), (wanted, _, part) = (
        name.partition("["),
        pattern.partition("["),
    )
    return fnmatch(test, wanted) and fnmatch(parameters, part or "*")
