"""Forged files: false claims are refused, whatever else stands there; a refusal says why."""

import copy
import csv
import io
import json
import random
import re
import runpy
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction

import numpy as np
import pytest
from helpers.battery import slow
from helpers.saved_proofs import (
    CASES,
    data_for,
    false_claims,
    number,
    save,
    table_of,
    wrong_with,
)
from sklearn.datasets import load_iris

from marginsvm import (
    DualLpPerceptron,
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    verify_alone,
)
from marginsvm.verify import main


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """A proof of each kind of estimator, of few examples, and their data."""
    folder, rng, found = tmp_path_factory.mktemp("proofs"), np.random.default_rng(0), []
    for at, (model, kind) in enumerate(CASES):
        X, y = data_for(kind, rng, 8, apart=9.0)
        X = X @ X.T if at % 3 == 2 else X
        model = copy.deepcopy(model).set_params(
            kernel="precomputed" if at % 3 == 2 else "linear"
        )
        found.append((save(folder / "proof.json", model, X, y), X, y))
    return found


def lies(proof):
    """Claims that are false of the problem of a true proof, one by one and all together."""
    claims, nothing = proof["claims"], ["0"] * len(proof["claims"]["bound"])
    if proof["of"] == "targets":
        P = [str(4 * Fraction(x) + 1) for x in claims["bound"]]
        yield {**claims, "bound": P}
        yield {**claims, "bound": [None] * len(P), "feasible": False}
        if any(number(x) > 1e-6 for x in claims["bound"]):
            yield {**claims, "reached": nothing}
    else:
        yield {**claims, "bound": ["1/1000000"]}
        yield {**claims, "reached": [str(2 * Fraction(claims["bound"][0]))]}
        yield {"bound": ["1/1000000"], "reached": ["0"], "feasible": False}


STRANGE = [
    *(
        "0",
        "1",
        "-1",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1/0",
        "0/1",
        "1/3",
        "-0",
        "",
        " 1",
    ),
    *("1" * 5000, "1/" + "3" * 4001, "\u0661", None, True, False, 0, -1, 7, 1.5, 10**9),
    *(
        float("nan"),
        float("inf"),
        [],
        {},
        [[]],
        ["0"],
        [None],
        {"0": "0"},
        [[0, 0, "1"]],
    ),
]


def weights_of(proof):
    """Weights in place of the true ones: few of them, none, and some that are out of range."""
    true = proof["weights"]
    column = 1 if len(proof["classes"]) > 2 else 0
    yield []
    for x in ("0", "-1", "1", "1/1000000"):
        yield [[0, column, x]]
        yield [[0, column, x]] * 2
        yield [[i, column, x] for i in range(8)]
    for factor in (0, 2, -1, Fraction(1, 3), 10**40):
        yield [[i, j, str(factor * Fraction(x))] for i, j, x in true]
    for i, j in ((-1, 0), (8, 0), (0, -1), (0, 9), (10**12, 0), (True, 0), (0.0, 0)):
        yield [[i, j, "1"]]
        yield [*true, [i, j, "1"]]
    yield true + true
    yield true[1:]
    yield true[::-1]


def places(part, path=()):
    """The ways to all parts of a file; of lists, to the first and the last entry."""
    yield path
    names = [*part] if isinstance(part, dict) else []
    if isinstance(part, list) and part:
        names = {0, len(part) - 1}
    for name in names:
        yield from places(part[name], (*path, name))


def with_value(part, path, value):
    """A copy with another value at a place; the last name may be new."""
    if not path:
        return value
    other = copy.copy(part)
    last = len(path) == 1
    other[path[0]] = value if last else with_value(part[path[0]], path[1:], value)
    return other


def forged(proof, draw):
    """A file with claims that are false, or with the true ones, and another change."""
    claims = draw.choice([*lies(proof), proof["claims"]])
    lie = {**proof, "claims": claims}
    if draw.random() < 0.25:
        return {**lie, "weights": draw.choice([*weights_of(proof)])}
    path = draw.choice([*places(lie)])
    if path and isinstance(path[-1], str) and draw.random() < 0.05:
        path = (*path[:-1], "another")
    return with_value(lie, path, draw.choice(STRANGE))


@pytest.mark.parametrize("number", [1_000, slow(8_000)])
def test_forged_files_are_refused(number, problems):
    """Whatever is accepted is true of the problem that it states."""
    draw, accepted = random.Random(0), 0
    for i in range(number):
        proof, X, y = problems[i % len(problems)]
        other = forged(proof, draw)
        if not refused(other, X, y):
            accepted += 1
            assert not false_claims(other, table_of(other, X, y)[0]), other
    assert 0 < accepted < 0.2 * number


def refused(proof, X, y):
    """Whether a file is refused; nothing but a refusal is raised."""
    lines = [*X.tolist()] if y is None else np.column_stack([X, y]).tolist()
    try:
        return verify_alone.check(proof, lines) != []
    except verify_alone.RefusedError as refusal:
        return re.match("expected .*ound", str(refusal), re.DOTALL) is not None


# The two that were accepted: weights that are all zero, and none.


@pytest.mark.parametrize("weights", [[], "zeros"])
def test_no_weight_proves_no_bound(weights, problems):
    """P is 0 or more, and no more is proved."""
    told = 0
    for proof, X, y in problems:
        lie = {**proof, "weights": weights}
        if weights == "zeros":
            lie["weights"] = [[i, j, "0"] for i, j, _ in proof["weights"]]
        targets = proof["of"] == "targets"
        for bound, feasible in (
            ("1/1000000", None),
            ("1/1000000", False),
            ("0", False),
        ):
            bound = (None if bound == "0" else "1/10") if targets else bound
            bounds = [bound] * len(proof["claims"]["bound"])
            lie["claims"] = {**proof["claims"], "bound": bounds, "feasible": feasible}
            assert wrong_with(lie, X, y)
            told += 1
        nothing = ["0"] * len(bounds) if targets else [None]
        lie["claims"] = {**proof["claims"], "bound": nothing}
        assert wrong_with(lie, X, y) == []
    assert told == 3 * len(CASES)


def test_honest_proofs_without_weights_are_true(tmp_path):
    """Of w = 0, which is the optimum where all targets are within epsilon."""
    X = np.arange(12.0).reshape(6, 2) % 5.0
    y = np.linspace(-0.5, 0.5, 6)
    for model in (
        MaxMarginRegressor(C=1.0, epsilon=1.0),
        MaxMarginRegressor(C=np.inf, epsilon=1.0, fit_intercept=False),
        MaxMarginRegressor(C=1.0, epsilon=1.0, loss="squared_epsilon_insensitive"),
    ):
        proof = save(tmp_path / "proof.json", model, X, y)
        assert proof["weights"] == []
        assert proof["claims"]["bound"] == ["0"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_honest_proofs_of_unfinished_fits_are_true(tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    for model in (
        MaxMarginClassifier(max_iter=1),
        MaxMarginClassifier(C=1.0, loss="hinge", max_iter=1),
        MomentumMarginClassifier(nu=0.3, max_iter=1),
        DualLpPerceptron(C=1.0, random_state=0, max_iter=1),
        DualLpPerceptron(random_state=0, max_iter=1),
        MaxMarginOutlierDetector(kernel="linear", max_iter=1),
    ):
        save(tmp_path / "proof.json", model, X, None if "Outlier" in str(model) else y)
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        model = MaxMarginRegressor(C=1.0, loss=loss, max_iter=1)
        save(tmp_path / "proof.json", model, X[:, :2], X[:, 2:])


# What the command says.


def said(proof, data, capsys):
    """The one line that is printed, and the exit status."""
    status = main([str(proof), str(data)])
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    assert text.startswith("REFUSED: " if status else "TRUE: ")
    return text, status


@pytest.fixture
def irises(tmp_path):
    X, y = load_iris(return_X_y=True)
    return X[:100], y[:100], tmp_path / "proof.json", tmp_path / "data.npy"


def test_true_says_of_what(irises, capsys):
    """Three true lines of the same data, of three problems."""
    X, y, proof, data = irises
    few = np.isin(np.arange(100), [13, 83]) * 1.0
    np.save(data, np.column_stack([X, y]))
    for model, weight, words in (
        (MaxMarginClassifier(), None, ["hard margin", "100 of 100", "separated: True"]),
        (MaxMarginClassifier(), 2.5 * few, ["hard margin", "2 of 100", "2.5 to 2.5"]),
        (MaxMarginClassifier(C=1e-3), few, ["squared hinge loss with C = 0.001"]),
        (
            MaxMarginClassifier(C=0.1, loss="hinge", class_weight={1: 3.0}),
            None,
            ["hinge loss with C = 0.1;", "1.0 to 3.0"],
        ),
        (
            MomentumMarginClassifier(nu=0.3, max_iter=100, fit_intercept=False),
            None,
            ["smallest margins, of the share nu = 0.3", "intercept: none"],
        ),
        (
            DualLpPerceptron(C=1.0, intercept_scaling=2.0, random_state=0, max_iter=50),
            None,
            ["intercept: 2;", "classes: 0.0, 1.0"],
        ),
    ):
        save(proof, model, X, y, weight)
        text, status = said(proof, data, capsys)
        assert not status
        for word in words:
            assert word in text, text


def test_printed_bounds_are_those_of_the_file_or_weaker(irises, capsys):
    X, y, proof, data = irises
    np.save(data, np.column_stack([X, y]))
    claims = save(proof, MaxMarginClassifier(), X, y)["claims"]
    low, high = re.findall(r"[0-9.]+", said(proof, data, capsys)[0])[:2]
    reached, bound = (Fraction(claims[name][0]) for name in ("reached", "bound"))
    assert reached * (1 - Fraction(1, 10**11)) < Fraction(low) <= reached
    assert bound <= Fraction(high) < bound * (1 + Fraction(1, 10**11))
    for tiny in (Fraction(1, 3) ** 4000, Fraction(3) ** 4000):  # beyond all doubles
        ends = (verify_alone.near(tiny, way) for way in (ROUND_FLOOR, ROUND_CEILING))
        low, high = map(Fraction, ends)
        assert 0 < low < tiny < high < low * (1 + Fraction(1, 10**10))


TYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", ">f8", ">i4"]


@pytest.mark.parametrize("kind", TYPES)
def test_numbers_of_any_type_are_read(kind, irises, capsys):
    """By lines and by columns; and the same as text."""
    X, y, proof, data = irises
    X = np.round(10 * X)
    table = np.column_stack([X, y]).astype(kind)
    save(proof, MaxMarginClassifier(), X, y)
    for array in (table, np.asfortranarray(table)):
        np.save(data, array)
        assert said(proof, data, capsys)[1] == 0
    written = data.with_suffix(".csv")
    np.savetxt(written, table, fmt="%d", delimiter=",")
    assert said(proof, written, capsys)[1] == 0


def test_bools_are_read(irises, capsys):
    X, _, proof, data = irises
    X = np.median(X, axis=0) < X
    y = X[:, 0] ^ X[:, 1]
    save(proof, MaxMarginClassifier(C=1.0), X, y)
    np.save(data, np.column_stack([X, y]))
    assert "classes: 'False', 'True'" in said(proof, data, capsys)[0]
    np.save(data, np.column_stack([X, y]).astype(float))
    text, status = said(proof, data, capsys)
    assert status
    assert "expected classes ['False', 'True'], each with examples of weight" in text
    assert ".npy holds no texts" in text


NAMES = [("é", "ß"), ("大", "小"), ("a,b", 'say "c"'), ("two\nlines", "x"), ("1", "01")]


def in_ascii(module, proof, data, monkeypatch):
    """What a program prints to an output that takes no more than ASCII."""
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "argv", [module, str(proof), str(data)])
        patch.delitem(sys.modules, module)
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__")
    assert not ended.value.code
    out.flush()
    return out.buffer.getvalue()


@pytest.mark.parametrize("names", NAMES)
def test_names_of_classes_are_utf8(names, irises, capsys, monkeypatch):
    """Also where the output has another encoding, and with a byte order mark."""
    X, y, proof, data = irises
    y = np.array(names)[y]
    save(proof, MaxMarginClassifier(), X, y)
    text = io.StringIO()
    csv.writer(text).writerows(np.column_stack([X.astype(object), y]).tolist())
    data = data.with_suffix(".csv")
    for encoding in ("utf-8", "utf-8-sig"):
        data.write_bytes(text.getvalue().encode(encoding))
        line, status = said(proof, data, capsys)
        assert not status
        assert repr(sorted(names)[0]) in line
    for name in ("marginsvm.verify_alone", "marginsvm.verify"):
        assert in_ascii(name, proof, data, monkeypatch).startswith(b"TRUE: ")
    data.write_bytes(text.getvalue().encode("utf-16"))
    assert "CSV in UTF-8" in said(proof, data, capsys)[0]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_a_refusal_says_what_was_expected_and_found(irises, capsys):
    """Of data files that people have."""
    X, y, proof, data = irises
    save(proof, MaxMarginClassifier(), X, y)
    table = np.column_stack([X, y])
    lines = [",".join(map(repr, line)) for line in table.tolist()]
    whole, csv_file = npy(table), data.with_suffix(".csv")
    many = whole.replace(b"(100, 5), }", b"(1000000000000, 5), }")
    for path, content, found in (
        (csv_file, "\n".join(["a,b,c,d,y", *lines]), "line 1 (without a header)"),
        (csv_file, "\n".join(["0,1,2,3,4", *lines]), "expected 100 lines"),
        (csv_file, "\n".join(lines[:-1]), "found 99"),
        (csv_file, "\n".join(lines).replace(",", ";"), "could not convert"),
        (csv_file, "\n".join([*lines[:-1], "1,2,3"]), "in line 100, found 3"),
        (
            csv_file,
            "\n".join([*lines[:-1], "1,2,nan,3,1"]),
            "finite numbers in line 100",
        ),
        (csv_file, "\n".join([*lines[:-1], "1,2,1e999,3,1"]), "finite"),
        (csv_file, "\n".join([*lines[:-1], "1,2,3,4,5"]), "-1: at none"),
        (csv_file, "\n".join(line[4:] for line in lines), "for data of 4 columns"),
        (csv_file, '"' + "1" * 200_000, "field larger than"),
        (csv_file, "", "found 0"),
        (data, npy(table[:, 0]), "(100,), }"),
        (data, npy(table.astype(complex)), "<c16"),
        (data, npy(table.astype("U4")), "<U"),
        (data, whole[:-8], "requires a buffer of 4000 bytes"),
        (data, whole + b"0", "requires a buffer of 4000 bytes"),
        (data, whole[:60], "floats, integers or bools"),
        (data, many, "expected a table"),
        (data, whole.replace(b"False", b"[[" * 20), "floats, integers or bools"),
        (data, b"", "floats, integers or bools"),
        (data, npy(table + 1e-9 * (np.arange(5) < 1)), "found other data"),
        (data, npy(table[::-1]), "found other data"),
        (data, npy(table.astype("f4")), "float32 with all digits"),
        (data.with_name("none.npy"), None, "No such file"),
    ):
        if content is not None:
            written(path, content)
        text, status = said(proof, path, capsys)
        assert status, found
        assert found in text
        assert "expected " in text


def test_proofs_that_are_no_proofs(irises, capsys):
    X, y, proof, data = irises
    save(proof, MaxMarginClassifier(), X, y)
    np.save(data, np.column_stack([X, y]))
    true = json.loads(proof.read_text())
    for content, found in (
        ("[" * 100_000, "recursion"),
        ('{"a":' * 100_000, "recursion"),
        ("{", "JSON"),
        (b"\xff\xfe\xff", "JSON"),
        ("1" * 10_000, "JSON"),
        ("3", "expected a table of format, of"),
        ("{}", "expected a table of format, of"),
        (json.dumps({**true, "note": "certified"}), "and no more"),
        (json.dumps({**true, "C": "1/0"}), "C as save_proof writes it: A number"),
        (json.dumps({**true, "C": "-1"}), "not negative"),
        (json.dumps({**true, "C": "1"}), "found margins none C"),
        (json.dumps({**true, "nu": "2"}), "found margins none nu above 1"),
        (json.dumps({**true, "epsilon": "1"}), "found margins none epsilon"),
        (
            json.dumps({**true, "example_weights": ["0"] * 100}),
            "with weight, found none",
        ),
        (json.dumps({**true, "classes": []}), "for data of 5 columns"),
        (json.dumps({**true, "classes": [0.0, 1.0, 2.0]}), "found ([4], 1, 0)"),
        (json.dumps({**true, "classes": [0.0, 0.0]}), "expected classes [0.0, 0.0]"),
        (json.dumps({**true, "intercept": "0"}), "coefficients 0 of what is not used"),
        (json.dumps({**true, "weights": [[0, 1, "1"]]}), "one weight for a row"),
        (json.dumps({**true, "sha256": None}), "SHA-256 None"),
    ):
        text, status = said(written(proof, content), data, capsys)
        assert status
        assert found in text, text


def test_other_fields_of_the_claims_are_refused(problems):
    for proof, X, y in problems:
        for name in ("margin", "violation"):
            if name not in proof["claims"]:
                claims = {**proof["claims"], name: "1"}
                (refusal,) = wrong_with({**proof, "claims": claims}, X, y)
                assert "and no more" in refusal


def test_coefficients_of_examples_without_weight_are_0(tmp_path, rng):
    X, y = data_for(-2, rng, 12, apart=9.0)
    weight = (np.arange(12) > 1) * 1.0
    model = MaxMarginClassifier(kernel="precomputed")
    proof = save(tmp_path / "proof.json", model, X @ X.T, y, weight)
    proof["coef"][0][0] = "1"
    (refusal,) = wrong_with(proof, X @ X.T, y)
    assert "coefficients 0 of what is not used" in refusal


@pytest.mark.parametrize("number", [300, slow(5_000)])
def test_files_with_other_bytes_are_refused_or_true(number, irises, capsys):
    """Cut, or with bytes that are others; nothing but one line is printed."""
    X, y, proof, data = irises
    X, y = X[45:55], y[45:55]
    save(proof, MaxMarginClassifier(), X, y)
    data_csv = data.with_suffix(".csv")
    table = np.column_stack([X, y])
    np.savetxt(data_csv, table, delimiter=",", fmt="%r")
    files = {
        proof: proof.read_bytes(),
        data: npy(table),
        data_csv: data_csv.read_bytes(),
    }
    draw, accepted = random.Random(0), 0
    for i in range(number):
        for path, content in files.items():
            path.write_bytes(content)
        path = [*files][i % 3]
        content = bytearray(files[path])
        at = draw.randrange(min(len(content), 200 if path == data else 10**9))
        if draw.random() < 0.2:
            del content[at:]
        for _ in range(draw.choice([0, 1, 1, 3]) if content else 0):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content)
        text, status = said(proof, data_csv if path == data_csv else data, capsys)
        accepted += not status
        if not status:
            bounds = r"TRUE: ([\d.]+) <= best margin <= ([\d.]+) \("
            lower, upper = map(float, re.match(bounds, text).groups())
            # the margin; other digits claim less
            assert lower <= 1.47764322054 <= upper + 1e-11
    assert accepted < 0.4 * number
