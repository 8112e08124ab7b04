"""Proofs as files: true ones are accepted, and what is changed is refused."""

import copy
import json
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
from helpers.estimators import (
    DETECTORS,
    ESTIMATORS,
    REGRESSORS,
    fit,
    make,
    overlapping,
    separable,
)
from helpers.saved_proofs import (
    CASES,
    data_for,
    false_claims,
    number,
    save,
    table_of,
    wrong_with,
)
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    DualLpPerceptron,
    DualLpRegressor,
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    PerceptronVonNeumann,
    check_certificate,
    save_proof,
    verify_alone,
)
from marginsvm.certificate.proof_files import lines_of
from marginsvm.verify import main


@pytest.fixture
def saved(tmp_path):
    """Fit a model and save its proof, as it is in the file."""
    return lambda *of: save(tmp_path / "proof.json", *of)


def numbers(proof):
    return [[number(x) for x in proof["claims"][name]] for name in ("reached", "bound")]


def test_weights_that_no_float_holds_are_verified(saved):
    """Exact weights of an overlap, some with numerators of more than 1,024 bits."""
    X, y = np.random.default_rng(4).standard_normal((70, 7)), np.arange(70) % 4
    proof = saved(MaxMarginClassifier(), X, y)
    assert proof["claims"]["feasible"] is False
    weights = [verify_alone.number(x) for _, _, x in proof["weights"]]
    assert max(x.numerator.bit_length() for x in weights) > 1024
    assert verify_alone.check(proof, lines_of("classes", X, y)) == []


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_true_proofs_are_accepted(case, kernel, rng, saved):
    """They are near the claims of the fit, an oracle agrees, and lies are refused."""
    model, kind = copy.deepcopy(CASES[case])
    hard = np.isinf(getattr(model, "C", 1.0))
    X, y = data_for(
        kind, rng, 24, apart=9.0 if hard and not getattr(model, "nu", None) else 2.0
    )
    X = X if kernel == "linear" else X @ X.T
    weight = rng.choice([0.0, 1.0, 0.25], 24)
    weight[:6] = 1.0
    y = np.array(["a", "b", "c"])[y] if kind < 0 else y
    proof = saved(model.set_params(kernel=kernel), X, y, weight)
    assert not false_claims(proof, table_of(proof, X, y)[0])
    names = (
        ("objective_", "objective_bound_") if kind > 0 else ("margin_", "margin_bound_")
    )
    wanted = [np.atleast_1d(getattr(model, name)) for name in names]
    assert_allclose(numbers(proof), wanted, rtol=1e-10)
    # bounds of hard tubes are those of tubes that are as wide as the predictor needs
    for name, stronger, size in (
        ("reached", -1, 9),
        ("bound", 1, 4 if kind > 0 and hard else 9),
    ):
        for o, claimed in enumerate(proof["claims"][name]):
            factor = 1 + stronger * (1 if kind > 0 else -1) * Fraction(1, 10**size)
            value = factor * verify_alone.number(claimed)
            lie = copy.deepcopy(proof)
            lie["claims"][name][o] = str(value)
            assert value == 0 or wrong_with(lie, X, y), name


@pytest.mark.parametrize("kind", ["2 classes", "3 classes", "targets", "one class"])
@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("intercept", [True, False])
def test_files_prove_that_nothing_fits(kind, kernel, intercept, rng, saved):
    """By integers under which all rows cancel; those that nearly do prove nothing of it."""
    X = np.round(8.0 * rng.standard_normal((40, 3)))
    y = np.arange(40) % int(kind[0]) if kind[0] in "23" else None
    model = MaxMarginClassifier(kernel=kernel, fit_intercept=intercept)
    claims = {"feasible": False, "reached": ["0"], "bound": ["0"]}
    if kind == "targets":  # of which the second ones cannot be fitted
        y = np.round(np.column_stack([X[:, 0], 8.0 * rng.standard_normal(40)]))
        model = MaxMarginRegressor(C=np.inf, kernel=kernel, fit_intercept=intercept)
        claims = {"feasible": False, "bound": ["0", None]}
    elif kind == "one class":
        model = MaxMarginOutlierDetector(kernel=kernel, nu=None)
    X, weight = X if kernel == "linear" else X @ X.T, np.ones(40)
    weight[30:33] = 0.0
    proof = saved(model, X, y, weight)
    assert model.certificate_.feasible is False
    assert claims.items() <= proof["claims"].items()
    near = copy.deepcopy(proof)
    near["weights"][0][2] = str(Fraction(near["weights"][0][2]) + 1)
    assert wrong_with(near, X, y)
    near["claims"]["bound"] = ["0", "0"] if kind == "targets" else ["1024"]
    assert "shown" in "; ".join(wrong_with(near, X, y))
    if kind == "targets":  # all cancel, but the targets have no gain
        opposite = copy.deepcopy(proof)
        for weight in opposite["weights"]:
            weight[2] = str(-Fraction(weight[2]))
        assert wrong_with(opposite, X, y)
    elif kind != "one class":
        soft = {**copy.deepcopy(proof), "C": "1", "slack": "square"}
        soft["claims"]["bound"] = ["1024"]
        assert "shown" in "; ".join(wrong_with(soft, X, y))


@pytest.mark.parametrize("cls", [*ESTIMATORS, *REGRESSORS, *DETECTORS])
def test_each_estimator_saves_a_proof_or_says_why_not(cls, rng, saved):
    X, y = separable(rng, n=20, d=2)
    model, y = make(cls, p=2, kernel="linear", max_iter=20, normalize=False), y
    if cls is DualLpRegressor:
        with pytest.raises(ValueError, match="MaxMarginRegressor"):
            saved(model, X, y)
        return
    saved(model, X, None if cls in DETECTORS else y)


def said_by_both(proof, table, capsys):
    """What the command says of a true proof, and the program alone."""
    assert main([str(proof), str(table)]) == 0
    said = capsys.readouterr().out
    command = [
        sys.executable,
        "-I",
        "-S",
        verify_alone.__file__,
        str(proof),
        str(table),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, said), ran.stderr
    return said


def test_files_on_the_command_line(tmp_path, saved, capsys):
    """Of classes, of targets that a predictor fits or none does, and of an outlier detector."""
    X, y = load_iris(return_X_y=True)
    X, y, Z = X[:100], y[:100], np.arange(12.0).reshape(6, 2) % 5.0
    z = np.column_stack([Z[:, 0], np.arange(6.0) ** 2])
    soft, hard = MaxMarginRegressor(), MaxMarginRegressor(C=np.inf, epsilon=0.0)
    proof, path = tmp_path / "proof.json", tmp_path / "table.csv"
    for model, features, last, text in (
        (MaxMarginOutlierDetector(kernel="linear"), Z, None, "<= best margin <="),
        (hard, Z, z, "the least >= infinity (hard tubes with epsilon = 0.0"),
        (
            soft,
            Z,
            z,
            "(loss beyond epsilon = 0.1, with C = 1.0; linear kernel",
        ),
        (MaxMarginClassifier(), sp.csr_array(X), y, "TRUE: 0.8175"),
    ):
        saved(model, features, last)
        table = np.column_stack(
            [Z if features is Z else X, *([] if last is None else [last])]
        )
        path.write_text("\n".join(",".join(map(repr, line)) for line in table.tolist()))
        assert text in said_by_both(proof, path, capsys)
    for array in (table, np.asfortranarray(table)):
        np.save(tmp_path / "table.npy", array)
        assert text in said_by_both(proof, tmp_path / "table.npy", capsys)
    table[3, 1] += 1e-9
    np.save(tmp_path / "table.npy", table)
    assert main([str(proof), str(tmp_path / "table.npy")]) == 1
    assert "other data" in capsys.readouterr().out
    proof.write_text("{}")
    assert main([str(proof), str(path)]) == 1
    assert main([str(tmp_path / "none.json"), str(path)]) == 1
    assert "No such file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status"), [(["--help"], 0), ([], 2), (["proof.json"], 2)]
)
def test_the_command_says_what_it_takes(arguments, status, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert ended.value.code == status
    assert "python -m marginsvm.verify [-h] PROOF DATA" in said.out + said.err


def test_predictions_that_miss_a_hard_tube_are_said_to(rng, saved):
    X, y = data_for(2, rng, 24)
    proof = saved(MaxMarginRegressor(C=np.inf, epsilon=1.75), X, y)
    proof["epsilon"] = "1"  # narrower, so that predictions miss it
    proof["claims"] |= {"feasible": None, "bound": ["0", "0"]}
    assert "predictor" in "".join(wrong_with(proof, X, y))
    proof["claims"]["violation"] = "3/4"
    assert wrong_with(proof, X, y) == []
    proof["claims"]["feasible"] = True
    assert "shown" in "".join(wrong_with(proof, X, y))


def test_weights_keep_to_what_the_problem_says(saved):
    """They balance and, of a share, keep their caps: one example alone proves too much."""
    detector = MaxMarginOutlierDetector(kernel="linear", nu=0.5)
    for model, X, y, best in (
        (MaxMarginClassifier(), [[0.25], [3.0]], [0, 1], 1.375),
        (detector, [[0.25], [5.0], [5.0], [5.0]], None, 2.625),
    ):
        X = np.array(X)
        proof = saved(model, X, y)
        assert_allclose(numbers(proof), best)
        for weight in proof["weights"]:
            weight[2] = str(7 * Fraction(weight[2]))  # multiples prove the same
        assert wrong_with(proof, X, y) == []
        proof["claims"] |= {"reached": ["0"], "bound": ["1/4"]}
        proof["weights"] = [[0, 0, "1"]]
        assert "weights" in "".join(wrong_with(proof, X, y))


# A rounded matrix of low rank need not be one of inner products.


def wrong_with_matrix(proof, K, y):
    """The same of another matrix than the one that was fitted."""
    return wrong_with({**proof, "sha256": table_of(proof, K, y)[1]}, K, y)


def test_a_matrix_of_no_inner_products_proves_nothing(saved):
    """Where a combination has a negative square, or the matrix is not symmetric."""
    K, y = np.ones((2, 2)), [0, 1]
    clf = MaxMarginClassifier(kernel="precomputed")
    proof = saved(clf, K, y)
    assert proof["claims"]["feasible"] is False
    assert check_certificate(clf, K, y, exact=True)
    K[0, 1] += 2.0**-52
    assert wrong_with_matrix(proof, K, y)
    assert "not symmetric" in check_certificate(clf, K, y, exact=True).reason
    K[1, 0] += 2.0**-52
    assert wrong_with_matrix(proof, K, y)
    check = check_certificate(clf, K, y, exact=True)
    assert not check
    assert "none of inner products" in check.reason
    assert "exact=False" in check.reason


@pytest.mark.parametrize("k", [2, 3])
def test_a_negative_square_is_made_good_by_no_other(k, saved):
    """Else any margin could be claimed. Not by that of a penalised intercept or of other scores."""
    K, y = np.eye(3), [0, 1, k - 1]
    model = DualLpPerceptron(
        C=1.0, intercept_scaling=2.0, kernel="precomputed", random_state=0
    )
    proof = saved(model, K, y)
    proof["coef"] = [["1", "-1", "0"], ["0", "0", "2"], ["0"] * 3]
    proof["claims"] |= {"reached": ["0"], "bound": ["512"], "feasible": None}
    if k == 2:
        proof["coef"], proof["weights"] = [["0"] * 3], [[0, 0, "1"], [1, 0, "2"]]
    proof["intercept_"] = ["0"] * len(proof["coef"])
    assert wrong_with(proof, K, y) == []
    K[0, 1] = K[1, 0] = 2.0
    assert "inner products" in str(wrong_with_matrix(proof, K, y))


# Whatever is accepted is true of the data, by an oracle that shares no code.

WORDS = {
    "C": ["0", "1", "-1", "8"],
    "nu": ["0", "1", "1/2", "3"],
    "epsilon": ["0", "1", "-1"],
    "slack": ["none", "square", "size", "share", None],
    "intercept": ["free", "0", "1"],
    "kernel": ["linear", "precomputed"],
    "of": ["classes", "targets", "one class"],
    "classes": [[], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0, 2.0]],
    "epsilon_": [[], ["0"], ["-1"], ["1/8", "1/8"]],
}
PLACES = ["weights", "claims"] * 2 + ["coef", "intercept_", "words", "example_weights"]


def changed(proof, draw):
    holder, at = copy.deepcopy(proof), draw.choice(PLACES)
    other = holder
    if at == "words":
        at = draw.choice([*WORDS])
        other[at] = draw.choice(WORDS[at])
        return other
    while isinstance(holder[at], list | dict) and holder[at]:
        holder = holder[at]
        at = draw.choice(
            [*(holder if isinstance(holder, dict) else range(len(holder)))]
        )
    x = holder[at]
    if at == "feasible":
        holder[at] = draw.choice([True, False, None])
    elif isinstance(x, int):  # an example or a column
        holder[at] += draw.choice([1, -1])
    elif x is None or draw.random() < 0.05:
        holder[at] = draw.choice([None, "0", "1"])
    elif isinstance(x, str):
        part = Fraction(1, 2 ** draw.choice([0, 10, 30, 50]))
        x, size = Fraction(x), max(abs(Fraction(x)), Fraction(1, 2**60))
        holder[at] = str(
            x + size * draw.choice([1, -1]) * draw.choice([part, 2 * part, 1])
        )
    return other


def small_problems(saved):
    rng = np.random.default_rng(0)
    squares = np.round(8.0 * rng.standard_normal((8, 2)))
    for model, X, y in (
        (MaxMarginClassifier(), *separable(rng, n=8, d=2)),
        (MaxMarginClassifier(C=1.0), *overlapping(rng, n=8, d=2, k=3)),
        (MaxMarginClassifier(C=1.0), *overlapping(rng, n=8, d=2)),
        (MaxMarginClassifier(), *overlapping(rng, n=8, d=2)),
        (MaxMarginClassifier(C=2.0, loss="hinge"), *overlapping(rng, n=8, d=2, k=3)),
        *(
            (copy.deepcopy(model), *data_for(kind, rng, 8))
            for model, kind in CASES[10:]
        ),
        (
            MaxMarginRegressor(C=np.inf, epsilon=0.25),
            squares,
            np.round(squares[:, 0] ** 2),
        ),
    ):
        kernel = "precomputed" if rng.random() < 0.3 else "linear"
        X = X @ X.T if kernel == "precomputed" else X
        yield saved(model.set_params(kernel=kernel), X, y), X, y


@pytest.mark.parametrize("number", [100, slow(6_000)])
def test_changed_proofs_are_refused_or_true(number, saved):
    draw, accepted = random.Random(0), 0
    problems = [*small_problems(saved)]
    for i in range(number):
        true, X, y = problems[i % len(problems)]
        other = changed(true, draw)
        wrong = wrong_with(other, X, y)
        if json.dumps(other) == json.dumps(true):
            assert wrong == []
        elif wrong == []:
            accepted += 1
            assert not false_claims(other, table_of(other, X, y)[0]), other
    assert accepted < 0.6 * number


def test_the_lone_program_needs_nothing():
    lines = Path(verify_alone.__file__).read_text().splitlines()
    imported = {
        line.split()[1] for line in lines if line.startswith(("import", "from"))
    }
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)
    assert "check" in runpy.run_path(verify_alone.__file__)


def test_files_of_before_are_refused(rng, saved):
    X, y = separable(rng, n=20)
    proof = {**saved(MaxMarginClassifier(), X, y), "format": "marginsvm proof 2"}
    (refusal,) = wrong_with(proof, X, y)
    assert (
        "expected format as save_proof writes it: One of ('marginsvm proof 3'"
        in refusal
    )
    assert "'marginsvm proof 2'" in refusal


def test_what_cannot_be_saved_is_refused(rng, saved, tmp_path):
    X, y = separable(rng, n=20)
    for model, of, match in (
        (MaxMarginClassifier(kernel="rbf"), y, "kernel='rbf'"),
        (DualLpPerceptron(p=1.5, random_state=0), y, "p=1.5"),
        (PerceptronVonNeumann(normalize=True), y, "normalize=True"),
        (MaxMarginClassifier(C=1.0, monotonic_cst=[1, 0, 0, 0, 0]), y, "monotonic_cst"),
        (DualLpRegressor(C=1.0, random_state=0), X[:, 0], "regressors"),
    ):
        with pytest.raises(ValueError, match=match):
            saved(model, X, of)
    with pytest.raises(ValueError, match="y is missing"):
        save_proof(fit(MaxMarginRegressor(), X, X[:, 0]), tmp_path / "proof", X)
    clf = make_pipeline(StandardScaler(), MaxMarginClassifier()).fit(X, y)
    Z = clf[:-1].transform(X)
    assert wrong_with(save_proof(clf, tmp_path / "proof", X, y), Z, y) == []
    with pytest.raises(ValueError, match="does not hold"):
        save_proof(clf, tmp_path / "proof", 2.0 * X, y)
