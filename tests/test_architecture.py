"""Imports go down only, between the rooms and inside them; all modules can be imported."""

import ast
import io
import pickle
import re
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from helpers.estimators import ESTIMATORS, fit, make

import marginsvm

ROOT = Path(marginsvm.__file__).parent
PAGE = ROOT.parent / "docs" / "contributing.md"
# Rooms, from top to bottom: a module imports from the rooms below its own, and from its own room.
# Rooms of one line know nothing of each other.
ROOMS = """
verify comparison
separation dask display many audit testing
papers
extend
estimators
solvers fit
certificate
problem
schedules kernels sources
_threads _rounding _compiling
_show_versions
_typing _version _warnings verify_alone
"""
LEVEL = {
    f"marginsvm.{r}": i
    for i, rooms in enumerate(ROOMS.split("\n"))
    for r in rooms.split()
}
# The first only passes names on, and the other one is an error for whoever imports it.
WINDOWS = {"marginsvm", "marginsvm.algorithms"}


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}
MODULES = sorted(set(FILES) - WINDOWS)
FOLDERS = [name for name in MODULES if FILES[name].name == "__init__.py"]


def imports_of(module):
    """The modules of the package that a module imports, wherever; a name is of its module."""
    package = module if module in FOLDERS else module.rpartition(".")[0]
    names = set()
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            prefix = above * (node.level > 0) + [node.module] * (
                node.module is not None
            )
            names.update(".".join([*prefix, alias.name]) for alias in node.names)
    ours = {name for name in names if (name + ".").startswith("marginsvm.")}
    return {name if name in FILES else name.rpartition(".")[0] for name in ours}


IMPORTS = {module: imports_of(module) for module in MODULES}


def room_of(module):
    return ".".join(module.split(".")[:2])


def test_imports_between_rooms_go_down():
    assert {room_of(module) for module in MODULES} <= set(LEVEL)
    up = [
        f"{module} imports {other}"
        for module in MODULES
        for other in IMPORTS[module]
        if room_of(other) != room_of(module)
        and LEVEL.get(room_of(other), -1) <= LEVEL[room_of(module)]
    ]
    assert not up, (
        f"import from the module that has the name, which is to be further down: {up}"
    )


def test_imports_within_a_folder_have_no_cycle():
    """Between its files and its folders, each of these as a whole."""
    for folder in FOLDERS:
        inside = [
            module for module in MODULES if (module + ".").startswith(folder + ".")
        ]
        part = {module: module.split(".")[: folder.count(".") + 2] for module in inside}
        graph = {tuple(name): set() for name in part.values()}
        for module in inside:
            below = {tuple(part[other]) for other in IMPORTS[module] if other in part}
            graph[tuple(part[module])] |= below - {tuple(part[module])}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = " imports ".join(".".join(name) for name in reversed(error.args[1]))
            raise AssertionError(cycle) from None


def test_modules_can_be_imported():
    """Pytest leaves out the examples of a module that cannot be, which one may be for want of a
    library that is optional, but not for an error of ours."""
    needed = ("marginsvm", "numpy", "scipy", "sklearn", "joblib", "numba")
    for name in FILES.keys() - {"marginsvm.algorithms"}:
        try:
            import_module(name)
        except ImportError as error:
            # our own message has that of Python for its cause
            cause = error.__cause__ or error
            assert isinstance(cause, ModuleNotFoundError), name
            assert cause.name.partition(".")[0] not in needed, name


# Modules whose names stand in pickles of fitted estimators and of reports, or on a page, with the
# names found there: they stay.
KEPT = """
marginsvm.audit
marginsvm.certificate.bounded
marginsvm.certificate.certificate
marginsvm.certificate.check
marginsvm.certificate.proof_files
marginsvm.comparison
marginsvm.estimators.cv
marginsvm.estimators.exact
marginsvm.estimators.outliers
marginsvm.estimators.path
marginsvm.estimators.regressor
marginsvm.extend
marginsvm.fit
marginsvm.kernels
marginsvm.many
marginsvm.papers.accelerated
marginsvm.papers.adaptive_sampling
marginsvm.papers.dual_lp
marginsvm.papers.dual_lp_newton
marginsvm.papers.dual_lp_regressor
marginsvm.papers.momentum
marginsvm.papers.optimistic
marginsvm.papers.perceptrons
marginsvm.papers.smoothed
marginsvm.problem.responses
marginsvm.problem.rows
marginsvm.problem.vectors
marginsvm.schedules
marginsvm.separation.check
marginsvm.separation.report
marginsvm.sources
marginsvm.testing
marginsvm.verify_alone
"""
SAME_NAME = {"check"}  # of certificates and of reports on separation: both are on pages
# Numba's caches of an older version name ``papers.draws.Response``, and could not be read.
SAME_CLASS = {"Response"}


class Modules(pickle.Unpickler):
    """Loads a pickle, and notes the modules of ours that it names."""

    named: ClassVar[set[str]] = set()

    def find_class(self, module, name):
        if module.split(".")[0] == "marginsvm":
            self.named.add(module)
        return super().find_class(module, name)


def results():
    """Fits that may go on, of all kinds, and reports."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2))
    y, t = np.arange(12) % 3, X @ np.ones(2)
    for cls in ESTIMATORS:
        for params in ({"C": 1.0}, {}):
            yield fit(make(cls, max_iter=3, warm_start=True, **params), X, y)
    for cls in (marginsvm.MaxMarginRegressor, marginsvm.DualLpRegressor):
        yield fit(cls(C=1.0, max_iter=3, warm_start=True), X, t)
    yield fit(marginsvm.MaxMarginOutlierDetector(nu=0.5), X)
    cv = fit(marginsvm.MaxMarginClassifierCV(Cs=[1.0], cv=2), X, y)
    yield cv
    yield marginsvm.check_certificate(cv, X, y)
    yield marginsvm.audit(cv, X, y)
    yield marginsvm.check_separability(X, y)
    yield marginsvm.margin_path(X, y, Cs=[1.0])
    yield marginsvm.fit_many(marginsvm.MaxMarginClassifier(C=1.0), X[None], y > 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_modules_named_in_pickles_keep_their_names():
    for result in results():
        Modules(io.BytesIO(pickle.dumps(result))).load()
    kept = set(KEPT.split())
    assert kept <= set(MODULES)
    assert Modules.named - {"marginsvm"} <= kept, "a module more is named in pickles"


def test_no_two_modules_or_classes_share_a_name():
    inner = [name.split(".")[-1] for name in MODULES if name not in FOLDERS]
    assert {name for name in inner if inner.count(name) > 1} <= SAME_NAME
    classes = [
        node.name
        for path in FILES.values()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in classes if classes.count(name) > 1} <= SAME_CLASS


@pytest.mark.skipif(not PAGE.exists(), reason="not in the sources' folder")
def test_the_table_of_tests_names_all_modules():
    """And folders whose modules all have the same tests; and only tests that there are."""
    rows = re.findall(r"^\| (.*?) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    left = {path.relative_to(ROOT).as_posix() for path in FILES.values()}
    left = {name for name in left if not name.endswith("__init__.py")}
    for modules, tests in rows:
        named = re.findall(r"`([\w/]+(?:\.py)?/?)`", modules)
        if "test_" not in tests:
            continue
        for test in re.findall(r"`(test_\w+\.py)`", tests):
            assert (Path(__file__).parent / test).exists(), test
        folder = ""
        for name in named:
            if name.endswith("/"):
                left = {other for other in left if not other.startswith(name)}
                continue
            folder = name.rpartition("/")[0] or folder
            whole = name if "/" in name or name in left else f"{folder}/{name}"
            assert whole in left, whole
            left.remove(whole)
    assert not left
