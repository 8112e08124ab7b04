"""Versions are written down in several files, which must agree; so must what CI calls."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import marginsvm

yaml = pytest.importorskip("yaml", reason="pip install marginsvm[test-all] brings it")
ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
pytestmark = pytest.mark.skipif(
    not (ROOT / ".ci").is_dir(), reason="not in the repository"
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
# Extras that the oldest versions are tried with.
TRIED = ["plot", "dask", "parquet", "test", "test-all"]


def read(path):
    return (ROOT / path).read_text()


def recipe():
    return yaml.safe_load(read(".github/conda/recipe.yaml"))


def bounds(requirements):
    """Names and lower bounds of the requirements that have one."""
    for part in map(Requirement, requirements):
        yield from (
            (part.name, Version(b.version))
            for b in part.specifier
            if b.operator == ">="
        )


def known():
    return dict(bounds(NEEDED + [line for name in TRIED for line in EXTRAS[name]]))


def test_the_oldest_versions_are_the_lower_bounds():
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)$", read(".ci/oldest.txt"), re.M))
    assert {name: Version(pins[name]) for name in known()} == known()
    others = {name for lines in EXTRAS.values() for name, _ in bounds(lines)}
    assert not (pins.keys() - known()) & others


def test_a_package_has_one_lower_bound():
    found = {}
    for name, bound in bounds(
        [*NEEDED, *(line for lines in EXTRAS.values() for line in lines)]
    ):
        assert found.setdefault(name, bound) == bound, name


def test_the_page_on_versions_names_the_lower_bounds():
    listed = dict(
        re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", read("docs/installation.md"), re.M)
    )
    assert listed.pop("Python") == PROJECT["requires-python"].removeprefix(">=")
    assert set(dict(bounds(NEEDED))) <= set(listed)
    assert {
        name: Version(text) for name, text in listed.items()
    }.items() <= known().items()


def test_the_conda_recipe_requires_the_same():
    run = recipe()["requirements"]["run"]
    assert run[0] == "python >=${{ python_min }}"
    assert f">={recipe()['context']['python_min']}" == PROJECT["requires-python"]
    assert dict(bounds(run[1:])) == dict(bounds(NEEDED))


def test_files_name_this_version():
    citation = yaml.safe_load(read("CITATION.cff"))["version"]
    changes = re.search(r"^(\d[\w.]*)\n-+$", read("docs/changelog.rst"), re.M)[1]
    cited = re.search(r"version = \{([\w.]+)\}", read("README.md"))[1]
    found = {recipe()["context"]["version"], citation, changes, cited}
    assert found == {marginsvm.__version__}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_parts_of_ci_run(path):
    parts = set(re.findall(r"^(\w+)\(\) \{", read(".ci/run"), re.M))
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    lines = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert lines
    for line in lines:
        command, *called = line.split()
        assert command == ".ci/run"
        assert called
        assert set(called) <= parts


tokens_of_code = (
    runpy.run_path(ROOT / ".ci/tokens.py")["tokens_of_code"]
    if (ROOT / ".ci").is_dir()
    else None
)
COUNTED = '''"""A docstring,
of two lines."""

import os  # a comment


def greet(name, width=3):
    """Another."""
    text = f"hello {name!r:>{width}} " f"{', '.join([name])}"
    return (
        text,
    )
'''


def test_tokens_are_counted_alike_on_every_python():
    # import, def, text (an f-string is one token), return
    assert tokens_of_code(COUNTED) == 2 + 10 + 4 + 5


def test_the_lone_checker_is_read_in_a_quarter_of_an_hour():
    assert tokens_of_code(read("marginsvm/verify_alone.py")) <= 3400
