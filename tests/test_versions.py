"""Versions are written down in several files, which must agree; so must what CI calls."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import marginsvm

yaml = pytest.importorskip("yaml", reason="pip install marginsvm[test-all] brings it")
ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
pytestmark = pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="not in the repository")
TRIED = [
    "plot",
    "dask",
    "parquet",
    "test",
    "test-all",
]  # extras that the oldest versions are tried with


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def lowest(requirements):
    """Lower bounds of the requirements that have one, by name."""
    parsed = [Requirement(line) for line in requirements]
    return {
        part.name: Version(bound.version)
        for part in parsed
        for bound in part.specifier
        if bound.operator == ">="
    }


def test_the_oldest_versions_are_the_lower_bounds():
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / ".ci/oldest.txt").read_text(), re.M))
    extras = project()["optional-dependencies"]
    named = lowest(project()["dependencies"] + [line for name in TRIED for line in extras[name]])
    assert {name: Version(pins[name]) for name in named} == named
    others = {name for lines in extras.values() for name in lowest(lines)}
    assert not (pins.keys() - named) & others


def test_a_package_has_one_lower_bound():
    bounds = {}
    for lines in [project()["dependencies"], *project()["optional-dependencies"].values()]:
        for name, bound in lowest(lines).items():
            assert bounds.setdefault(name, bound) == bound, name


def test_the_page_on_versions_names_the_lower_bounds():
    page = (ROOT / "docs/installation.md").read_text()
    listed = dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", page, re.M))
    python = project()["requires-python"].removeprefix(">=")
    assert listed.pop("Python") == python
    extras = project()["optional-dependencies"]
    known = lowest(project()["dependencies"] + [line for name in TRIED for line in extras[name]])
    assert set(lowest(project()["dependencies"])) <= set(listed)
    assert {name: Version(text) for name, text in listed.items()}.items() <= known.items()


def test_the_conda_recipe_requires_the_same():
    recipe = yaml.safe_load((ROOT / ".github/conda/recipe.yaml").read_text())
    run = recipe["requirements"]["run"]
    assert run[0] == "python >=${{ python_min }}"
    assert f">={recipe['context']['python_min']}" == project()["requires-python"]
    assert lowest(run[1:]) == lowest(project()["dependencies"])


def test_files_name_this_version():
    recipe = yaml.safe_load((ROOT / ".github/conda/recipe.yaml").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changes = re.search(r"^(\d[\w.]*)\n-+$", (ROOT / "docs/changelog.rst").read_text(), re.M)
    cited = re.search(r"version = \{([\w.]+)\}", (ROOT / "README.md").read_text())
    found = {recipe["context"]["version"], citation["version"], changes[1], cited[1]}
    assert found == {marginsvm.__version__}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_parts_of_ci_run(path):
    parts = set(re.findall(r"^(\w+)\(\) \{", (ROOT / ".ci/run").read_text(), re.M))
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    lines = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert lines
    for line in lines:
        command, *called = line.split()
        assert command == ".ci/run"
        assert called
        assert set(called) <= parts
