"""Imports go one way, and files stay small."""

import ast
from pathlib import Path

import pytest

import marginsvm

ROOT = Path(marginsvm.__file__).parent
ORDER = [  # a room may import from those after it, and from its own folder
    "separability",
    "callbacks",
    "algorithms",
    "dual_state",
    "_advice",
    "_results",
    "_decisive",
    "certificate",
    "_proof",
    "progress",
    "_block_source",
    "_validation",
    "_prediction",
    "nearest_point",
    "kernel_matrix",
    "responses",
    "kernel_matrix.rows",
    "kernel_matrix.cycles",
]
FREE = {
    "_corral",
    "_interrupts",
    "_numbers",
    "_overlap",
    "_proof_kernels",
    "_threads",
    "_typing",
    "_unwrapping",
    "display",
    "progress",
    "schedules",
    "sources",
}
FILES = sorted(ROOT.rglob("*.py"))


def rank(module):
    matches = [i for i, room in enumerate(ORDER) if (module + ".").startswith(room + ".")]
    return max(matches, default=None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_arrow(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    if name == "__init__" or rank(name) is None:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("marginsvm."):
            other = node.module.removeprefix("marginsvm.")
            if other.split(".")[0] in FREE or other.split(".")[0] == name.split(".")[0]:
                continue
            assert rank(other) > rank(name), f"{name} imports {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path):
    text = path.read_text()
    code = [line for line in text.splitlines() if line.strip()]
    assert len(code) <= 330
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            doc = ast.get_docstring(node) or ""
            assert node.end_lineno - node.lineno - doc.count("\n") <= 45, node.name
