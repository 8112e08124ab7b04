"""Proofs as files: true ones are accepted by both programs, and what is changed is refused."""

import copy
import json
import math
import random
import runpy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.estimators import fit, overlapping, separable
from helpers.oracle import best_margin
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    DualLpPerceptron,
    DualLpRegressor,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    save_proof,
    verify_alone,
)
from marginsvm.proof_files import verify
from marginsvm.verify import main

UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def texts(y):
    return [str(label) for label in np.asarray(y).tolist()]


def by_both(proof, X, y):
    """What either program finds wrong; a file that it cannot understand is wrong as well."""
    answers = []
    for program in (
        lambda: verify(proof, X, y),
        lambda: verify_alone.check(proof, np.asarray(X, float).tolist(), texts(y)),
    ):
        try:
            answers.append(program())
        except UNREADABLE as error:
            answers.append([repr(error)])
    return answers


CASES = [
    (MaxMarginClassifier(), 2),
    (MaxMarginClassifier(fit_intercept=False), 3),
    (MaxMarginClassifier(C=0.7), 2),
    (MaxMarginClassifier(C=0.7), 3),
    (MaxMarginClassifier(C=0.7, loss="hinge"), 2),
    (MaxMarginClassifier(C=0.7, loss="hinge"), 3),
    (MaxMarginClassifier(C=2.0, class_weight="balanced"), 3),
    (MomentumMarginClassifier(max_iter=30), 3),
    (DualLpPerceptron(C=1.0, random_state=0, max_iter=50), 3),
    (DualLpPerceptron(random_state=0, fit_intercept=False, max_iter=50), 2),
]


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_true_proofs_are_accepted_by_both(case, kernel, rng, tmp_path):
    model, k = copy.deepcopy(CASES[case])
    X, y = separable(rng, n=24, k=k) if np.isinf(model.C) else overlapping(rng, n=24, k=k)
    given = X if kernel == "linear" else X @ X.T
    labels = np.array(["a", "b", "c"])[y]
    weight = rng.choice([0.0, 1.0, 0.3], 24)
    weight[:k] = 1.0
    clf = fit(model.set_params(kernel=kernel), given, labels, sample_weight=weight)
    path = tmp_path / "proof.json"
    proof = save_proof(clf, path, given, labels, weight)
    assert json.loads(path.read_text()) == proof
    assert by_both(proof, given, labels) == [[], []]
    upper = float(verify_alone.dyadic(proof["claims"]["margin_bound"]))
    assert clf.margin_bound_ <= upper <= clf.margin_bound_ * (1 + 1e-9)
    lower, upper = (verify_alone.dyadic(proof["claims"][x]) for x in ("margin", "margin_bound"))
    too_much = {"margin": (1 + Fraction(1, 10**9)) * upper}
    if lower > 0:
        too_much["margin_bound"] = (1 - Fraction(1, 10**9)) * lower
    for name, value in too_much.items():
        lie = copy.deepcopy(proof)
        lie["claims"][name] = [math.floor(value * 2**200), -200]
        assert all(wrong for wrong in by_both(lie, given, labels)), name


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("intercept", [True, False])
def test_files_prove_that_nothing_separates(k, kernel, intercept, rng, tmp_path):
    """By integers under which all rows cancel; weights that nearly do prove nothing of it."""
    X, y = overlapping(rng, n=40, k=k)
    X = np.round(8.0 * X)
    given = X if kernel == "linear" else X @ X.T
    weight = np.ones(40)
    weight[30:33] = 0.0
    clf = MaxMarginClassifier(kernel=kernel, fit_intercept=intercept)
    clf = fit(clf, given, y, sample_weight=weight)
    assert clf.separable_ is False
    proof = save_proof(clf, tmp_path / "proof.json", given, y, weight)
    claims = {"margin": [0, 0], "margin_bound": [0, 0], "separable": False}
    assert proof["claims"] == claims
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert by_both(proof, given, y) == [[], []]
    near = copy.deepcopy(proof)
    near["weights"][0][2] += 1
    assert all(wrong for wrong in by_both(near, given, y))
    near["claims"]["margin_bound"] = [1, 10]
    assert all("shown" in "; ".join(wrong) for wrong in by_both(near, given, y))
    soft = {**copy.deepcopy(proof), "C": [1, 0]}
    soft["claims"]["margin_bound"] = [1, 10]
    assert all("shown" in "; ".join(wrong) for wrong in by_both(soft, given, y))


def test_files_on_the_command_line(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    clf = MaxMarginClassifier().fit(sp.csr_array(X), y)
    proof, table = tmp_path / "proof.json", np.column_stack([X, y])
    save_proof(clf, proof, sp.csr_array(X), y)
    np.save(tmp_path / "c.npy", table)
    np.save(tmp_path / "f.npy", np.asfortranarray(table))
    lines = [",".join([*map(repr, x), str(c)]) for x, c in zip(X.tolist(), y, strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    alone = Path(verify_alone.__file__)
    for data in ("c.npy", "f.npy", "d.csv"):
        assert main([str(proof), str(tmp_path / data)]) == 0
        assert capsys.readouterr().out.startswith("TRUE: 0.8175")
        given = [sys.executable, "-I", "-S", str(alone), str(proof), str(tmp_path / data)]
        ran = subprocess.run(given, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout[:12]) == (0, "TRUE: 0.8175"), ran.stderr
    table[3, 1] += 1e-9
    np.save(tmp_path / "c.npy", table)
    assert main([str(proof), str(tmp_path / "c.npy")]) == 1
    assert "other data" in capsys.readouterr().out
    assert main([str(proof)]) == 2
    proof.write_text("{}")
    assert main([str(proof), str(tmp_path / "c.npy")]) == 1


def test_the_lone_program_is_short_and_needs_nothing():
    text = Path(verify_alone.__file__).read_text()
    assert len(text.splitlines()) <= 200
    imported = {
        line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))
    }
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)
    assert "check" in runpy.run_path(verify_alone.__file__)


def changed(proof, draw):
    """The proof with one of its numbers or words changed."""
    other = copy.deepcopy(proof)
    place = draw.choice(["weights", "weights", "coef", "intercept_", "claims", "claims", "words"])
    if place == "words":
        name = draw.choice(["C", "loss", "intercept", "kernel", "classes", "example_weights"])
        values = [
            None,
            [1, 0],
            [-1, 0],
            "free",
            "hinge",
            "squared_hinge",
            "precomputed",
            ["0", "1"],
        ]
        other[name] = draw.choice(values)
        return other
    if place == "claims":
        name = draw.choice([*other["claims"]])
        pair = other["claims"][name]
        if name == "separable":
            other["claims"][name] = draw.choice([True, False, None, 1, "True"])
        else:
            pair[0] += draw.choice([1, -1, 2**30, -(2**30), 2**52, -pair[0]])
        return other
    row = draw.choice(other[place])
    while isinstance(row[0], list):
        row = draw.choice(row)
    i = draw.randrange(len(row))
    row[i] = draw.choice([row[i] + 1, row[i] - 1, -row[i], 0, 2 * row[i], row[i] + 2**40])
    return other


def separated(X, y):
    """Whether some predictor separates the classes, by a linear program."""
    k, n = len(np.unique(y)), X.shape[1] + 1
    Z, rows = np.column_stack([X, np.ones(len(X))]), []
    for z, c in zip(Z, y, strict=True):
        for j in set(range(k)) - {int(c)}:
            row = np.zeros((k, n))
            row[c], row[j] = -z, z
            rows.append(row.ravel())
    found = linprog(np.zeros(k * n), np.array(rows), -np.ones(len(rows)), bounds=(None, None))
    return found.status == 0


def is_true(proof, X, y):
    """A third oracle, in floats: whether what is still claimed is so, of the true problem."""
    margin, bound = (
        float(verify_alone.dyadic(proof["claims"][x])) for x in ("margin", "margin_bound")
    )
    C = np.inf if proof["C"] is None else float(verify_alone.dyadic(proof["C"]))
    known = proof["claims"]["separable"]
    if known is not None and known is not separated(X, y):
        return False
    best = best_margin(X, y, C=C)
    return margin <= best * (1 + 1e-7) + 1e-9 and bound >= best * (1 - 1e-7) - 1e-9


@pytest.mark.parametrize("number", [300, slow(6_000)])
def test_changed_proofs_are_refused_or_true(number, tmp_path):
    """Whatever either program accepts is true of the data, by an oracle that shares no code."""
    rng, draw, accepted = np.random.default_rng(0), random.Random(0), 0
    problems = []
    for k, C, apart in ((2, np.inf, True), (3, 1.0, False), (2, 1.0, False), (2, np.inf, False)):
        X, y = (separable if apart else overlapping)(rng, n=8, d=2, k=k)
        clf = fit(MaxMarginClassifier(C=C), X, y)
        assert apart or np.isfinite(C) or clf.separable_ is False
        problems.append((save_proof(clf, tmp_path / "proof", X, y), X, y))
    for i in range(number):
        true, X, y = problems[i % len(problems)]
        other = changed(true, draw)
        package, alone = by_both(other, X, y)
        if json.dumps(other) == json.dumps(true):
            assert package == alone == []
        elif [] in (package, alone):
            accepted += 1
            if other["loss"] == true["loss"] and other["intercept"] == true["intercept"]:
                assert is_true(other, X, y), other
    assert accepted < 0.6 * number


def test_what_cannot_be_saved_is_refused(rng, tmp_path):
    X, y = separable(rng, n=20)
    path = tmp_path / "proof"
    for clf, match in (
        (MaxMarginClassifier(kernel="rbf"), "kernel='rbf'"),
        (DualLpPerceptron(p=1.5, random_state=0), "p=1.5"),
        (MomentumMarginClassifier(nu=0.3), "nu=0.3"),
    ):
        with pytest.raises(ValueError, match=match):
            save_proof(fit(clf, X, y), path, X, y)
    reg = fit(DualLpRegressor(C=1.0, random_state=0), X, X[:, 0])
    with pytest.raises(ValueError, match="regressors"):
        save_proof(reg, path, X, X[:, 0])
    clf = make_pipeline(StandardScaler(), MaxMarginClassifier()).fit(X, y)
    Z = clf[:-1].transform(X)
    assert by_both(save_proof(clf, path, X, y), Z, y) == [[], []]
    with pytest.raises(ValueError, match="does not hold"):
        save_proof(clf, path, 2.0 * X, y)
