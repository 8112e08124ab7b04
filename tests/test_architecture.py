"""Imports go down only, between the rooms and inside them, and files stay small.

All imports of modules of the package by modules of the package count: those inside functions
and those for type checkers, too.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import marginsvm

ROOT = Path(marginsvm.__file__).parent
# Rooms, from top to bottom. A module may import from the rooms below its own, and from its own
# room if that is a folder. Rooms of one line know nothing of each other.
ROOMS = [
    ["verify"],
    [
        "separability",
        "callbacks",
        "dask",
        "display",
        "cost_display",
        "many",
        "proof_files",
        "auditing",
        "testing",
    ],
    ["algorithms"],
    ["dual_state"],
    ["estimator"],
    ["fit"],
    ["kernel_matrix"],
    ["data"],
    ["certify"],
    ["rows"],
    ["schedules", "kernels"],
    ["_cached", "_rounding", "_compiling", "_few_unknowns"],
    ["_show_versions"],
    ["_typing", "_version", "verify_alone"],
]
WINDOWS = {
    "marginsvm",
    "marginsvm.responses",
    "marginsvm.sources",
}  # what users import: they only pass names on
LEVEL = {f"marginsvm.{room}": level for level, line in enumerate(ROOMS) for room in line}


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}
MODULES = sorted(set(FILES) - WINDOWS)
FOLDERS = [name for name in MODULES if FILES[name].name == "__init__.py"]


def names_imported(tree, package):
    """Everything that a module's import statements name, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            prefix = ".".join(above * (node.level > 0) + [node.module] * (node.module is not None))
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


def imports_of(module):
    """The modules of the package that a module imports; a name counts for the one it is in."""
    path = FILES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for name in names_imported(ast.parse(path.read_text()), package):
        if (name + ".").startswith("marginsvm."):
            found.add(name if name in FILES else name.rpartition(".")[0])
    return found


IMPORTS = {module: imports_of(module) for module in FILES}


def room_of(module):
    return ".".join(module.split(".")[:2])


def test_every_room_is_in_the_list():
    assert {room_of(module) for module in MODULES} == set(LEVEL)
    assert all(IMPORTS[module] <= set(FILES) for module in FILES)


def test_imports_between_rooms_go_down():
    """None is from above or beside the room."""
    up = [
        f"{module} imports {other}" + (", which only passes names on" if other in WINDOWS else "")
        for module in MODULES
        for other in IMPORTS[module]
        if room_of(other) != room_of(module)
        and LEVEL.get(room_of(other), -1) <= LEVEL[room_of(module)]
    ]
    assert not up, f"import from the module that has the name, which is to be further down: {up}"


def test_imports_within_a_folder_have_no_cycle():
    """Between its files and its folders, each of these as a whole."""
    cycles = [cycle for folder in FOLDERS if (cycle := cycle_in(folder))]
    assert not cycles


def cycle_in(folder):
    """Modules of a folder that import each other around, as a text; empty if there are none."""

    def part(module):
        """The file or folder of this folder that a module is in; the folder's own ``__init__``."""
        depth = folder.count(".") + 2
        return ".".join(module.split(".")[:depth])

    inside = [module for module in FILES if (module + ".").startswith(folder + ".")]
    graph = {part(module): set() for module in inside}
    for module in inside:
        graph[part(module)] |= {part(other) for other in IMPORTS[module] if other in inside}
        graph[part(module)].discard(part(module))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " imports ".join(reversed(error.args[1]))
    return ""


def test_the_checker_shares_no_code_with_what_it_checks():
    """But what is written down as shared: exact proofs, parameters, the words of certificates."""
    checker = [module for module in MODULES if ".certify.checker" in module]
    assert len(checker) > 5
    said = ("exactly", "claims", "host", "spec", "unwrapping")
    allowed = {f"marginsvm.certify.{name}" for name in said}
    shared = [
        f"{module} imports {other}"
        for module in checker
        for other in IMPORTS[module]
        if ".certify.checker" not in other
        if other not in allowed and other.rpartition(".")[0] != "marginsvm.certify.exactly"
    ]
    assert not shared
    below = [module for module in MODULES if module.startswith("marginsvm.certify.exactly.")]
    assert len(below) > 3
    assert all(other in [*below, *allowed] for module in below for other in IMPORTS[module])


def test_the_loop_knows_nothing_of_scikit_learn():
    loop = [module for module in MODULES if room_of(module) == "marginsvm.fit"]
    assert len(loop) > 5
    for module in loop:
        assert "marginsvm.estimator" not in {room_of(other) for other in IMPORTS[module]}, module
        names = names_imported(ast.parse(FILES[module].read_text()), room_of(module))
        assert "sklearn" not in {name.split(".")[0] for name in names}, module


# Questions about what a matrix is that are left where examples of a fit are, and what they are for.
QUESTIONS = {
    "rows": 0,
    "data": 7,  # the place where blocks are made; what files and memory maps hold
    # how the examples of a kernel are kept; which compiled loop; weights
    "kernel_matrix": 7,
    "estimator": 15,  # what users pass, and what they get
    "fit": 0,
    "algorithms": 0,
}
KINDS = {"ndarray", "memmap", "csr_array", "csr_matrix", "sparray", "spmatrix"}
OF_SOME = ("toarray", "tocsr", "shape", "flags", "X", "scale", "csr", "dense")


def asks_for_a_kind(node):
    """Whether a call asks what kind of matrix, block or store something is.

    It is issparse; isinstance of a type of NumPy's or SciPy's matrices, of a block or of a store;
    or hasattr, or getattr with a default, of what only some kinds of matrix have.
    """
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name == "isinstance":
        return bool(
            KINDS & {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(node.args[1])}
        )
    if name == "hasattr" or (name == "getattr" and len(node.args) == 3):
        return getattr(node.args[1], "value", "") in (
            "toarray",
            "tocsr",
            "shape",
            "flags",
            "X",
            "csr",
        )
    return name == "issparse"


def test_what_a_matrix_is_is_asked_in_few_places():
    from marginsvm.data.block import Block
    from marginsvm.data.memory import Store

    def below(cls):
        return {cls.__name__}.union(*map(below, cls.__subclasses__()))

    KINDS.update(below(Block) | below(Store))
    found = {}
    for part in QUESTIONS:
        trees = [ast.parse(path.read_text()) for path in (ROOT / part).rglob("*.py")]
        calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
        found[part] = sum(map(asks_for_a_kind, calls))
    assert found == QUESTIONS


def test_files_stay_small():
    """At most 300 lines that are not empty."""
    sizes = {
        name: sum(bool(line.strip()) for line in path.read_text().splitlines())
        for name, path in FILES.items()
    }
    assert not {name: size for name, size in sizes.items() if size > 300}


def test_functions_stay_small():
    """Without their docstrings; constructors may list as many parameters as they have."""
    long = [
        f"{name}: {node.name}"
        for name, path in FILES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__init__"
        if lines_of(node) > 45
    ]
    assert not long


def lines_of(node):
    doc = ast.get_docstring(node) or ""
    return node.end_lineno - node.lineno - doc.count("\n")


# The imports are found wherever they are.

SOURCE = """
import marginsvm.fit.play
from .. import schedules
from . import beside
from .below import name
from marginsvm import __version__

if TYPE_CHECKING:
    from marginsvm.data import stream

class A:
    def f(self):
        from marginsvm.rows.rows import Rows
"""


def test_all_forms_of_imports_are_found():
    assert set(names_imported(ast.parse(SOURCE), "marginsvm.here")) == {
        "marginsvm.fit.play",
        "marginsvm.schedules",
        "marginsvm.here.beside",
        "marginsvm.here.below.name",
        "marginsvm.__version__",
        "marginsvm.data.stream",
        "marginsvm.rows.rows.Rows",
    }


def test_modules_can_be_imported():
    """Pytest leaves out the examples of a module that cannot be, which one may be for want of a
    library that is optional, but not for an error of ours."""
    needed = ("marginsvm", "numpy", "scipy", "sklearn", "joblib", "numba")
    for name in FILES:
        try:
            import_module(name)
        except ImportError as error:
            cause = error.__cause__ or error  # our own message has that of Python for its cause
            assert isinstance(cause, ModuleNotFoundError), name
            assert cause.name.partition(".")[0] not in needed, name
