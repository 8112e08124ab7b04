"""The documentation is true: what it runs and names, and what it owes every public name."""

import doctest
import inspect
import io
import os
import re
import runpy
import shutil
import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from helpers.battery import over
from helpers.estimators import (
    DETECTORS,
    ESTIMATORS,
    REGRESSORS,
    fit,
    make,
    parameters,
    sections_of,
    separable,
)
from helpers.fresh import python
from sklearn.base import BaseEstimator

import marginsvm

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


IN_THE_PACKAGE = """
import test_architecture, test_docs, marginsvm
test_architecture.test_imports_between_rooms_go_down()
test_architecture.test_imports_within_a_folder_have_no_cycle()
print(marginsvm.DualFista().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).status_)
for chore in (
    test_docs.test_docstrings_have_what_a_reader_needs,
    test_docs.test_every_public_name_is_in_the_reference,
    test_docs.test_what_the_table_of_papers_names_is_there,
):
    try:
        chore()
    except AssertionError as error:
        print(error)
"""


@pytest.mark.slow
def test_the_toy_works_in_the_package(tmp_path):
    """As a file of ``papers``; what is then missing is what tests say, by name and place."""
    package = shutil.copytree(ROOT / "marginsvm", tmp_path / "marginsvm")
    shutil.copy(DOCS / "toy_algorithm.py", package / "papers" / "fista.py")
    window = (package / "__init__.py").read_text()
    line = "from marginsvm.papers.accelerated import AcceleratedPerceptron\n"
    window = window.replace(
        line, f"{line}from marginsvm.papers.fista import DualFista\n"
    )
    window = window.replace("__all__ = [\n", '__all__ = [\n    "DualFista",\n')
    (package / "__init__.py").write_text(window)
    path = os.pathsep.join(str(folder) for folder in (tmp_path, ROOT / "tests", DOCS))
    said = python("-c", IN_THE_PACKAGE, cwd=tmp_path, PYTHONPATH=path)
    status, *asked = said.splitlines()
    assert status == "certified"
    docstring, reference, papers = (line for line in asked if "DualFista" in line)
    assert "no example that runs" in docstring
    assert "docs/api.rst" in reference
    assert "docs/statements.rst" in papers


PUBLIC = {
    name: getattr(marginsvm, name)
    for name in marginsvm.__all__
    if name != "__version__"
}
ELSEWHERE = {
    "audit": ["Audit"],
    "comparison": ["Comparison"],
    "certificate.check": ["CertificateCheck"],
    "estimators.path": ["MarginPath"],
    "extend": ["Candidate", "Response", "Weights"],
    "kernels": ["two_layer_relu_ntk", "TwoLayerReluNTK"],
    "many": ["ManyFits", "ManyScores"],
    "separation.check": ["SeparabilityCheck"],
    "sources": ["ArrayBlocks", "ParquetBlocks", "SvmlightBlocks"],
    "testing": ["check_algorithm"],
} | ({"dask": ["DaskBlocks", "DaskMargin"]} if find_spec("distributed") else {})
for module, listed in ELSEWHERE.items():
    PUBLIC |= {
        name: getattr(import_module(f"marginsvm.{module}"), name) for name in listed
    }
HOOKS = {
    "setup",
    "teardown",
    "on_fit_task_begin",
    "on_fit_task_end",
}  # called by scikit-learn
UNIT = r"dimensionless|[Uu]nits?\b|\(MB\)|[Pp]asses|relative|[Aa]s in|as there|radius"


def names(entries):  # several may share an entry
    return [name.strip(" *") for entry in entries for name in entry.name.split(",")]


def functions():
    """Functions of the public names, and methods that the package wrote for users to call."""
    for name, value in sorted(PUBLIC.items()):
        if inspect.isfunction(value):
            yield name, value
        # its methods say it in one line
        elif value is not marginsvm.KernelMatrixAdapter:
            for method, member in inspect.getmembers(value, callable):
                hidden, member = (
                    method[0] == "_" or method in HOOKS,
                    inspect.unwrap(member),
                )
                if not hidden and (member.__module__ or "").startswith("marginsvm"):
                    yield f"{name}.{method}", member


def wrong_with(name):
    """What a reader misses in the docstring of a public name."""
    doc = sections_of(inspect.getdoc(PUBLIC[name]))
    if not " ".join(doc["Summary"]).rstrip().endswith("."):
        yield "the summary is no sentence"
    if not any(line.startswith(">>>") for line in doc["Examples"]):
        yield "no example that runs"
    computes = (
        inspect.isfunction(PUBLIC[name]) and PUBLIC[name] is not marginsvm.show_versions
    )
    if PUBLIC[name] in ESTIMATORS or computes:
        where = r"Algorithm|Theorem|[Ee]q\.|Lemma|[Ff]igure|Appendix|Wolfe"
        if not re.search(where, "\n".join(doc["References"])):
            yield "where exactly it is from"
    for section in ("Parameters", "Attributes", "Returns"):
        for entry in doc[section]:
            text = " ".join([entry.type, *entry.desc])
            if re.search(r"\bfloat\b", entry.type) and not re.search(UNIT, text):
                yield f"{entry.name} has no unit"
            if (
                re.search(r"ndarray of|array-like", entry.type)
                and "of shape" not in entry.type
            ):
                yield f"{entry.name} has no shape"


def test_docstrings_have_what_a_reader_needs():
    wrong = {
        name: found for name in sorted(PUBLIC) if (found := list(wrong_with(name)))
    }
    assert not wrong, f"mend these docstrings (docs/contributing.md): {wrong}"


def missing_of(function):
    """What the docstring of a function or method does not say."""
    doc = sections_of(inspect.getdoc(function))
    if not doc["Summary"]:
        yield "a summary"
    if names(doc["Parameters"]) != [p for p in parameters(function) if p != "self"]:
        yield "its parameters"
    if not doc["Returns"] and inspect.signature(function).return_annotation != "None":
        yield "what it gives"
    if re.search(r"^ +raise ", inspect.getsource(function), re.M) and not doc["Raises"]:
        yield "what it raises"


def test_functions_say_what_they_take_and_raise():
    missing = {name: list(missing_of(function)) for name, function in functions()}
    assert not {name: words for name, words in missing.items() if words}


@over([*ESTIMATORS, marginsvm.MaxMarginClassifierCV])
def test_parameters_and_fitted_attributes_are_all_documented(cls, rng):
    assert f"/generated/marginsvm.{cls.__name__}.html" in make(cls)._repr_html_()
    doc = sections_of(inspect.getdoc(cls))
    assert names(doc["Parameters"]) == list(parameters(cls))
    X, y = separable(rng)
    fitted = set()
    for kernel in ("linear", "poly"):
        clf = fit(make(cls, kernel=kernel, max_iter=3), X, y)
        fitted |= {name for name in vars(clf) if re.fullmatch(r"[a-zA-Z]\w*_", name)}
    written = names(doc["Attributes"])
    assert len(written) == len(set(written))
    assert fitted <= set(written)


def test_fields_are_all_documented():
    for name, value in PUBLIC.items():
        if is_dataclass(value) and not issubclass(value, BaseEstimator):
            doc = sections_of(inspect.getdoc(value))
            fields = [field.name for field in dataclass_fields(value)]
            assert names(doc["Attributes"] or doc["Parameters"]) == fields, name


TEXTS = {
    page.name: page.read_text() for page in (*DOCS.rglob("*.rst"), *DOCS.glob("*.md"))
}


@pytest.mark.skipif("dask" not in ELSEWHERE, reason="pip install marginsvm[dask]")
def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^    ([\w.]+)$", (DOCS / "api.rst").read_text(), re.M)
    listed = {name.split(".")[-1] for name in listed}
    assert not set(PUBLIC) - listed, f"add to docs/api.rst: {set(PUBLIC) - listed}"
    assert not listed - set(PUBLIC), (
        f"docs/api.rst has no such names: {listed - set(PUBLIC)}"
    )


def test_fractions_have_braces():
    r"""The site's converter reads \frac12 x as 12 over x, without a warning."""
    texts = [
        *TEXTS.values(),
        *(p.read_text() for p in (ROOT / "marginsvm").rglob("*.py")),
    ]
    assert sum(text.count(r"\frac{") for text in texts) > 20
    assert not re.findall(r"\\frac[^{].{0,20}", "\n".join(texts))


def test_no_reference_is_an_item_of_a_list():
    """A paragraph of one line that begins with an initial, "A. Albert", is a list to docutils."""
    texts = {name: text for name, text in TEXTS.items() if name.endswith(".rst")}
    texts |= {name: inspect.getdoc(value) for name, value in PUBLIC.items()}
    initial = r"(?:^|\n\n)([A-Z]\. [^\n]+)(?=\n\n|\n?$)"
    assert not {
        name: found
        for name, text in texts.items()
        if (found := re.findall(initial, text))
    }


def test_lines_of_code_fit_beside_the_menus():
    """At 1280 pixels, beside the menus of both sides: examples that are run, of whatever page."""
    room = 98  # characters, in the size of letters of docs/_static/site.css
    lines = re.findall(r"^ *((?:>>>|\.\.\.) .*)", "\n".join(TEXTS.values()), re.M)
    assert len(lines) > 300
    assert not [line for line in lines if len(line.strip()) > room]


def test_what_the_table_of_papers_names_is_there():
    text = (DOCS / "statements.rst").read_text()
    cited = re.findall(r"``((?:marginsvm|tests|examples)/[^`]+)``", text)
    assert len(cited) > 80
    for place in cited:
        path, _, test = place.partition("::")
        assert (ROOT / path).is_file(), place
        assert not test or f"def {test}(" in (ROOT / path).read_text(), place
    without_a_row = [cls.__name__ for cls in ESTIMATORS if cls.__name__ not in text]
    assert not without_a_row, (
        f"add a row to docs/statements.rst that names them: {without_a_row}"
    )


def test_files_that_pages_name_are_there():
    links = re.findall(r"\]\((docs/[^)#]+)\)", (ROOT / "README.md").read_text())
    named = re.findall(r"``(tests/[\w.]+)``", "\n".join(TEXTS.values()))
    assert min(len(links), len(named)) > 10
    assert "literalinclude:: toy_algorithm.py" in TEXTS["extending.rst"]
    assert not [path for path in links + named if not (ROOT / path).is_file()]


def test_the_page_of_papers_names_those_that_take_less_than_the_others():
    text = (DOCS / "papers.rst").read_text()
    text = text[
        text.index("All take ``fit_intercept``") : text.index("All have ``margin_``")
    ]
    common = {"fit_intercept", "tol", "max_iter", "warm_start"}
    assert all(common <= set(parameters(cls)) for cls in ESTIMATORS)
    less = {
        c.__name__
        for c in ESTIMATORS
        if not {"C", "kernel", "stopping"} <= set(parameters(c))
    }
    assert less == set(re.findall(r":class:`~marginsvm\.(\w+)`", text))


@pytest.mark.filterwarnings("error")
def test_code_of_the_readme_prints_what_its_comments_say():
    """As a new user types it; comments at the beginning of a line are its output."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) == 3
    for block in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(block, {})
        said = "".join(re.findall(r"^# (.*\n)", block, re.M))
        same = doctest.OutputChecker().check_output
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert same(said, printed.getvalue(), flags), printed.getvalue()


def test_the_page_of_separation_begins_with_what_statsmodels_users_see():
    pytest.importorskip("statsmodels", reason="pip install marginsvm[test-all]")
    blocks = re.findall(
        r"^\.\. code-block:: (?:python|none)\n((?:\n|    .*\n)+)",
        TEXTS["separation.rst"],
        re.M,
    )
    code, said = map(inspect.cleandoc, blocks)
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, {})
    shown = printed.getvalue()  # first what statsmodels prints
    assert inspect.cleandoc(shown[shown.index("Quasi-complete") :]) == said


def test_the_user_guide_names_who_may_stall_and_linear_models_with_support_vectors(rng):
    data, text = separable(rng), TEXTS["user_guide.rst"]
    exact = marginsvm.MaxMarginClassifierCV, *REGRESSORS, *DETECTORS
    ends = {
        c.__name__: c(tol=1e-300, max_iter=300).fit(*data)
        for c in (*ESTIMATORS, *exact)
    }
    linear = [
        make(cls, max_iter=3) for cls in (*ESTIMATORS, marginsvm.MaxMarginClassifierCV)
    ]
    stalled = {name for name, clf in ends.items() if clf.status_ == "stalled"}
    supported = {
        type(clf).__name__ for clf in linear if hasattr(fit(clf, *data), "support_")
    }
    place = r"``stalled``\n(.*?)\n``.*of linear predictors, only those of(.*?)\.\s"
    said = [
        set(re.findall(r"marginsvm\.(\w+)", part))
        for part in re.search(place, text, re.S).groups()
    ]
    assert said == [stalled, supported]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_problem_of_the_stress_run_ends_and_checks():
    said = python(
        ROOT / "examples" / "benchmarks" / "stress.py", "--only", "5", timeout=300
    )
    assert "ended: 1 of 1; certificates that hold: 1 of 1" in said
    assert "memory within the rule: 1 of 1" in said


def test_pages_show_the_same_comparison():
    """``examples/benchmarks/peers.py`` writes both, between these markers."""
    place = r"<!-- peers -->\n(.*?)<!-- end of peers -->"
    readme, page = (
        re.search(place, (ROOT / name).read_text(), re.S)[1]
        for name in ("README.md", "docs/benchmarks.md")
    )
    assert readme == page
    assert len(readme.splitlines()) > 5
    kinds = {line.split("|")[1].split(",")[0] for line in readme.splitlines()[2:]}
    assert kinds >= {"text", "0/1", "dense", "rbf", "given"}


def test_generated_sets_are_what_they_are_said_to_be():
    sets = runpy.run_path(str(ROOT / "examples" / "benchmarks" / "_sets.py"))
    X, y = sets["text_like"](400, 300, seed=0, density=0.02)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    assert y.sum() == 200
    X, y = sets["topics"](90, 2000, 30, seed=0)
    assert np.bincount(y).tolist() == [3] * 30
    X, y = sets["spambase_like"]()
    assert X.shape == (4600, 57)
    assert 0.6 < (X == 0).mean() < 0.8
    again, _ = sets["spambase_like"]()
    np.testing.assert_array_equal(again, X)
