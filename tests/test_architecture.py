"""Imports go down only, between the rooms and inside them; all modules can be imported."""

import ast
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import marginsvm

ROOT = Path(marginsvm.__file__).parent
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
            cause = (
                error.__cause__ or error
            )  # our own message has that of Python for its cause
            assert isinstance(cause, ModuleNotFoundError), name
            assert cause.name.partition(".")[0] not in needed, name
