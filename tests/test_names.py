"""A name stands for one thing: of files, of classes, and of constants."""

import ast
from pathlib import Path

import marginsvm

FILES = sorted(Path(marginsvm.__file__).parent.rglob("*.py"))
# Names that stand for several things on purpose: the check's own beside the fit's, as they share
# no code, and types of any kind. None joins them.
ON_PURPOSE = {
    "files": "coordinates examples pairs comparisons rows signs",
    "classes": "Examples Slack Claim Problem Answer Comparisons",
    "constants": "T FAMILIES EXACT MAX_ENTRIES PRIME",
}


def constants_of(tree):
    """Names in capitals that a module gives to values, and these as they are written."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            given = zip(target.elts, value.elts, strict=True) if several else [(target, value)]
            yield from ((t.id, ast.unparse(v)) for t, v in given if getattr(t, "id", "").isupper())


def test_a_name_stands_for_one_thing():
    """No two files have a name, no two classes, and no two constants of other values."""
    found = {kind: {} for kind in ON_PURPOSE}
    for path in FILES:
        tree = ast.parse(path.read_text())
        if path.name != "__init__.py":
            found["files"].setdefault(path.stem, set()).add(path)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found["classes"].setdefault(node.name, set()).add(path)
        for name, value in constants_of(tree):
            found["constants"].setdefault(name, set()).add(value)
    for kind, names in found.items():
        several = {name.lstrip("_") for name, things in names.items() if len(things) > 1}
        again = several.difference(ON_PURPOSE[kind].split())
        assert not again, f"give these {kind} other names: {again}"
