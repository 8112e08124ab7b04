"""A name stands for one thing: of files, of classes, and of constants."""

import ast
from pathlib import Path

import marginsvm

FILES = sorted(Path(marginsvm.__file__).parent.rglob("*.py"))
# Names that stand for several things, and why they may. One that is mended leaves its list, and
# none joins it.
ON_PURPOSE = {  # the check's own beside the fit's, as they share no code; types of any kind
    "files": "coordinates examples pairs comparisons rows signs",
    "classes": "Examples Slack Claim Problem Answer Comparisons",
    "constants": "T FAMILIES EXACT MAX_ENTRIES PRIME",
}
STILL_OPEN = {  # the exact solver's, separability's, and of many fits
    "files": "",
    "classes": "ClassWeights RowWeights Features FeatureSystem WrittenOut Statement Curvature "
    "Solution Search Question Predictor Bounds Labels Block Pairs Prepared",
    "constants": "",
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
        allowed = f"{ON_PURPOSE[kind]} {STILL_OPEN[kind]}".split()
        assert not several.difference(allowed), f"give these {kind} other names"
