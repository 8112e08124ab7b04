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
from helpers.estimators import DETECTORS, ESTIMATORS, REGRESSORS, fit, make, overlapping, separable
from numpy.linalg import norm
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    DualLpPerceptron,
    DualLpRegressor,
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    PerceptronVonNeumann,
    check_certificate,
    save_proof,
    verify_alone,
)
from marginsvm.certificate.proof_files import lines_of, verify
from marginsvm.verify import main

# The least objective of the problem that a proof file states, by code that shares nothing with it.


def least(H, c, G, h):
    """Least ``x H x / 2 + c x`` where ``G x >= h``, by Mehrotra's method."""
    scale = np.abs(G).max(axis=1)
    G, h = G / scale[:, None], h / scale
    if linprog(np.zeros(len(c)), -G, -h, bounds=(None, None)).status == 2:
        return np.inf
    x, s, z = np.zeros(len(c)), np.ones(len(h)), np.ones(len(h))
    for _ in range(100):
        dual, primal, mu = H @ x + c - G.T @ z, G @ x - h - s, s @ z / len(h)
        size, wrong = 1.0 + abs(0.5 * x @ H @ x + c @ x), max(map(norm, (dual, primal)))
        if (s @ z < 1e-11 * size and wrong < 1e-11 * size) or (z / s).max() > 1e20:
            break
        system = dual, primal, H + G.T @ ((z / s)[:, None] * G) + 1e-13 * np.eye(len(c))
        _, ds, dz = _step(*system, G, s, z, 0.0)
        near = (s + _length(s, ds) * ds) @ (z + _length(z, dz) * dz) / len(h)
        dx, ds, dz = _step(*system, G, s, z, (near / mu) ** 3 * mu - ds * dz)
        a, b = 0.995 * _length(s, ds), 0.995 * _length(z, dz)
        x, s, z = x + a * dx, s + a * ds, z + b * dz
    known = s @ z < 1e-7 * size and wrong * (1.0 + norm(x) + norm(z)) < 1e-7 * size
    return 0.5 * x @ H @ x + c @ x if known else np.nan


def _step(dual, primal, K, G, s, z, target):
    """Newton's step to where the products of s and z are as they are to be."""
    dx = np.linalg.lstsq(K, -dual - G.T @ ((z * (s + primal) - target) / s))[0]
    ds = G @ dx + primal
    return dx, ds, (target - z * ds) / s - z


def _length(v, dv):
    return min(1.0, *(-v[dv < 0] / dv[dv < 0]), 1.0)


class Stated:
    """What a file asks for, of a table of features and classes (as places) or targets."""

    def __init__(self, proof, table, wider=0.0):
        def number(text):
            return float(verify_alone.number(text))

        weight = np.array([number(x) for x in proof["example_weights"]])
        kept, n_scores = np.flatnonzero(weight > 0), len(proof["coef"])
        n_last = {"classes": 1, "targets": n_scores}.get(proof["of"], 0)
        table = np.array(table)
        d = table.shape[1] - n_last
        self.last, X = table[kept, d:], table[kept, :d]
        if proof["kernel"] == "precomputed":
            values, Q = np.linalg.eigh(X[:, kept])
            X = Q * np.sqrt(np.where(values > 1e-12 * values.max(), values, 0.0))
        self.intercept = proof["intercept"] == "free"
        constant = 0.0 if self.intercept else number(proof["intercept"])
        self.X = np.column_stack([X, np.full(len(X), constant)]) if constant else X
        self.m, self.k, self.of, self.slack = (
            weight[kept],
            len(proof["classes"]),
            *(proof[x] for x in ("of", "slack")),
        )
        self.C, self.nu, self.epsilon = (number(proof[x]) for x in ("C", "nu", "epsilon"))
        self.epsilon += wider
        if self.of == "targets" and self.slack == "share":  # a tube has no share
            self.slack = "none"

    def _rows(self, o):
        """Rows on ``(w, b)``, the example of each, and their lower ends."""
        X = np.column_stack([self.X, np.ones(len(self.X))]) if self.intercept else self.X
        n, d = X.shape
        if self.of == "targets":
            y, e = self.last[:, o], self.epsilon
            return np.vstack([X, -X]), np.tile(np.arange(n), 2), np.concatenate([y - e, -y - e])
        if self.k < 3:
            sign = 2 * self.last[:, 0] - 1 if self.k else np.ones(n)
            return X * sign[:, None], np.arange(n), np.ones(n)
        rows, of = [], []
        for i, c in enumerate(self.last[:, 0].astype(int)):
            for j in set(range(self.k)) - {c}:
                row = np.zeros((self.k, d))
                row[c], row[j] = X[i], -X[i]
                rows.append(row.ravel())
                of.append(i)
        return np.array(rows), np.array(of), np.ones(len(rows))

    def objective(self, o=0):
        """The least P."""
        A, of, low = self._rows(o)
        n, size = len(self.m), A.shape[1]
        of_example = 1.0 * (of[:, None] == np.arange(n))
        scores = self.k if self.k > 2 else 1
        penalty = np.ones((scores, size // scores))
        if self.intercept:
            penalty[:, -1] = 0.0
        H, zero = np.diag(penalty.ravel()), np.zeros(size)
        if self.slack == "none":
            return least(H, zero, A, low)
        if self.slack == "square":
            price = self.C * self.m[of] / (2 if self.k > 2 else 1)
            H = np.block(
                [[H, np.zeros((size, len(A)))], [np.zeros((len(A), size)), np.diag(2 * price)]]
            )
            return least(H, np.zeros(len(H)), np.hstack([A, np.eye(len(A))]), low)
        # slack of each example, and the width of a tube, or the height that a share reaches
        extra = 1 if self.nu else 0
        price = self.C * self.m  # 0 of a share
        G = np.hstack([A, of_example, np.zeros((len(A), extra))])
        G = np.vstack([G, np.eye(size + n + extra)[size:]])
        h = np.concatenate([low, np.zeros(n + extra)])
        c = np.concatenate([zero, price, [self.nu * price.sum()] * extra])
        if self.slack == "size":
            G[: len(A), size + n :] = 1.0
        else:
            mass = self.nu * self.m.sum()
            if self.intercept:
                for j in range(self.k):
                    mass = min(mass, 2 * self.m[self.last[:, 0] != j].sum())
            G[: len(A), size + n] = -1.0
            h[: len(A)] = 0.0
            G[-1, size : size + n] = -self.m / mass
            h[-1] = 1.0
        H = np.pad(H, (0, n + extra))
        return least(H, c, G, h)

    def fits(self, o=0):
        """Whether some predictor needs no slack."""
        A, _, low = self._rows(o)
        return linprog(np.zeros(A.shape[1]), -A, -low, bounds=(None, None)).status == 0


def false_claims(proof, table, rtol=1e-6):
    """Which claims of a file are false of the problem that it states, as far as floats tell."""
    stated, claims = Stated(proof, table), proof["claims"]

    def number(text):
        return np.inf if text is None else float(verify_alone.number(text))

    wrong, outputs = [], range(len(proof["coef"]) if stated.of == "targets" else 1)
    for o, *claimed in zip(outputs, claims["reached"], claims["bound"], strict=True):
        reached, bound = map(number, claimed)
        P = stated.objective(o)
        if stated.of != "targets":
            best = np.inf if P == 0 else 1.0 / np.sqrt(2.0 * P)
            wrong += ["reached"] * bool(reached > best * (1 + rtol) + rtol)
            wrong += ["bound"] * bool(bound < best * (1 - rtol) - rtol)
            continue
        wrong += ["bound"] * bool(bound > P * (1 + rtol) + rtol)
        if stated.slack == "none":
            P = Stated(proof, table, number(claims["violation"])).objective(o)
        wrong += ["reached"] * bool(reached < P * (1 - rtol) - rtol)
    if claims["feasible"] is not None and claims["feasible"] != all(map(stated.fits, outputs)):
        wrong.append("feasible")
    return wrong


# The files.


UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def wrong_with(proof, X, y=None):
    """What is found wrong; a file that cannot be understood is wrong as well."""
    try:
        return verify(proof, X, y)
    except UNREADABLE as error:
        return [repr(error)]


def more(text, by=1):
    return str(Fraction(text) + by)


CASES = [
    (MaxMarginClassifier(), -2),
    (MaxMarginClassifier(fit_intercept=False), -3),
    (MaxMarginClassifier(C=0.7), -2),
    (MaxMarginClassifier(C=0.7), -3),
    (MaxMarginClassifier(C=0.7, loss="hinge"), -2),
    (MaxMarginClassifier(C=0.7, loss="hinge"), -3),
    (MaxMarginClassifier(C=2.0, class_weight="balanced"), -3),
    (MomentumMarginClassifier(max_iter=30), -3),
    (DualLpPerceptron(C=1.0, random_state=0, max_iter=50), -3),
    (DualLpPerceptron(random_state=0, fit_intercept=False, max_iter=50), -2),
]


LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
OTHERS = [  # and the number of targets; 0: there is one class; -2 and -3: so many of them
    *((MaxMarginRegressor(C=0.7, loss=loss), outputs) for loss in LOSSES for outputs in (1, 2)),
    (MaxMarginRegressor(C=3.0, fit_intercept=False), 2),
    (MaxMarginRegressor(C=np.inf, epsilon=1.75), 2),
    (MaxMarginRegressor(C=np.inf, epsilon=1.75, fit_intercept=False), 1),
    (MaxMarginRegressor(C=2.0, nu=0.4), 2),
    (MaxMarginRegressor(C=2.0, nu=1.0, fit_intercept=False), 1),
    (MaxMarginOutlierDetector(nu=0.3), 0),
    (MaxMarginOutlierDetector(nu=1.0), 0),
    (MaxMarginOutlierDetector(nu=None), 0),
    (MomentumMarginClassifier(nu=0.6, max_iter=100), -2),
    (MomentumMarginClassifier(nu=1.0, max_iter=100), -3),
    (MomentumMarginClassifier(nu=0.2, max_iter=100, fit_intercept=False), -3),
    (DualLpPerceptron(C=1.0, intercept_scaling=2.0, random_state=0, max_iter=50), -2),
]


def data_for(kind, rng, n, apart=2.0):
    """Examples on one side of the origin, in whole sixteenths, and their targets or classes."""
    X = np.round(16.0 * (rng.standard_normal((n, 3)) + 3.0)) / 16.0
    if kind > 0:
        y = X @ rng.standard_normal((3, kind)) + 0.5 * rng.standard_normal((n, kind))
        return X, y[:, 0] if kind == 1 else y
    if kind < 0:
        y = np.arange(n) % -kind
        return X + apart * np.eye(3)[y], y
    return X, None


def numbers(proof):
    """The claims, as floats."""
    claims = (proof["claims"][name] for name in ("reached", "bound"))
    return [[float(verify_alone.number(x)) for x in claim] for claim in claims]


def test_weights_that_no_float_holds_are_verified(tmp_path):
    """Exact weights of an overlap, some with numerators of more than 1,024 bits."""
    X, y = np.random.default_rng(2).standard_normal((55, 7)), np.arange(55) % 4
    model = fit(MaxMarginClassifier(), X, y)
    proof = save_proof(model, tmp_path / "proof.json", X, y)
    weights = [verify_alone.number(x) for _, _, x in proof["weights"]]
    assert (model.status_, max(x.numerator.bit_length() for x in weights) > 1024) == (
        "no_margin",
        1,
    )
    assert verify_alone.check(proof, lines_of("classes", X, y)) == []


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("case", range(len(CASES + OTHERS)))
def test_true_proofs_are_accepted(case, kernel, rng, tmp_path):
    """They are near the claims of the fit, an oracle agrees, and lies are refused."""
    model, kind = copy.deepcopy((CASES + OTHERS)[case])
    hard = np.isinf(getattr(model, "C", 1.0))
    X, y = data_for(kind, rng, 24, apart=9.0 if hard and not getattr(model, "nu", None) else 2.0)
    given = X if kernel == "linear" else X @ X.T
    weight = rng.choice([0.0, 1.0, 0.25], 24)
    weight[:6] = 1.0
    y = np.array(["a", "b", "c"])[y] if kind < 0 else y
    labels = () if y is None else (y,)
    fit(model.set_params(kernel=kernel), given, *labels, sample_weight=weight)
    path = tmp_path / "proof.json"
    proof = save_proof(model, path, given, y, weight)
    assert json.loads(path.read_text()) == proof
    assert wrong_with(proof, given, y) == []
    assert not false_claims(proof, verify_alone.table_of(proof, lines_of(proof["of"], given, y))[0])
    found = numbers(proof)
    if kind > 0:
        wanted = np.atleast_1d(model.objective_), np.atleast_1d(model.objective_bound_)
    else:
        wanted = [model.margin_], [model.margin_bound_]
    assert_allclose(found, wanted, rtol=1e-10)
    # bounds of hard tubes are those of tubes that are as wide as the predictor needs
    for name, stronger, size in (("reached", -1, 9), ("bound", 1, 4 if kind > 0 and hard else 9)):
        for o, pair in enumerate(proof["claims"][name]):
            factor = 1 + stronger * (1 if kind > 0 else -1) * Fraction(1, 10**size)
            value = factor * verify_alone.number(pair)
            lie = copy.deepcopy(proof)
            lie["claims"][name][o] = str(value)
            assert value == 0 or wrong_with(lie, given, y), name


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("intercept", [True, False])
def test_files_prove_that_nothing_fits(kernel, intercept, rng, tmp_path):
    """By integers under which all examples cancel, and targets do not; of one of two outputs."""
    X = np.round(8.0 * rng.standard_normal((20, 2)))
    y = np.round(np.column_stack([X[:, 0], 8.0 * rng.standard_normal(20)]))
    given = X if kernel == "linear" else X @ X.T
    reg = MaxMarginRegressor(C=np.inf, kernel=kernel, fit_intercept=intercept)
    reg = fit(reg, given, y)
    assert reg.feasible_ is False
    proof = save_proof(reg, tmp_path / "proof.json", given, y)
    assert proof["claims"]["feasible"] is False
    assert proof["claims"]["bound"] == ["0", None]
    assert wrong_with(proof, given, y) == []
    near = copy.deepcopy(proof)
    near["weights"][0][2] = more(near["weights"][0][2])
    assert wrong_with(near, given, y)
    near["claims"]["bound"] = ["0", "0"]
    assert "shown" in "; ".join(wrong_with(near, given, y))
    opposite = copy.deepcopy(proof)  # all cancel, but the targets have no gain
    for weight in opposite["weights"]:
        weight[2] = str(-Fraction(weight[2]))
    assert wrong_with(opposite, given, y)


def test_files_prove_that_a_hull_holds_the_origin(rng, tmp_path):
    X = np.round(8.0 * rng.standard_normal((20, 2)))
    detector = fit(MaxMarginOutlierDetector(kernel="linear", nu=None), X)
    proof = save_proof(detector, tmp_path / "proof.json", X)
    assert proof["claims"] == {"feasible": False, "reached": ["0"], "bound": ["0"]}
    assert wrong_with(proof, X) == []


@pytest.mark.parametrize("cls", [*ESTIMATORS, *REGRESSORS, *DETECTORS])
def test_each_estimator_saves_a_proof_or_says_why_not(cls, rng, tmp_path):
    X, y = separable(rng, n=20, d=2)
    model = make(cls, p=2, kernel="linear", max_iter=20, normalize=False)
    labels = () if cls in DETECTORS else (y,)
    fit(model, X, *labels)
    if cls is DualLpRegressor:
        with pytest.raises(ValueError, match="MaxMarginRegressor"):
            save_proof(model, tmp_path / "proof", X, y)
        return
    proof = save_proof(model, tmp_path / "proof", X, *labels)
    assert wrong_with(proof, X, *labels) == []


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
    claims = {"feasible": False, "reached": ["0"], "bound": ["0"]}
    assert proof["claims"] == claims
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert wrong_with(proof, given, y) == []
    near = copy.deepcopy(proof)
    near["weights"][0][2] = more(near["weights"][0][2])
    assert wrong_with(near, given, y)
    near["claims"]["bound"] = ["1024"]
    assert "shown" in "; ".join(wrong_with(near, given, y))
    soft = {**copy.deepcopy(proof), "C": "1", "slack": "square"}
    soft["claims"]["bound"] = ["1024"]
    assert "shown" in "; ".join(wrong_with(soft, given, y))


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
    proof.write_text("{}")
    assert main([str(proof), str(tmp_path / "c.npy")]) == 1
    assert main([str(tmp_path / "none.json"), str(tmp_path / "c.npy")]) == 1
    assert "No such file" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), ([], 2), (["proof.json"], 2)])
def test_the_command_says_what_it_takes(arguments, status, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert ended.value.code == status
    assert "python -m marginsvm.verify [-h] PROOF DATA" in said.out + said.err


def test_targets_on_the_command_line(tmp_path, capsys):
    """Several columns of them, of which no predictor may fit, and of an outlier detector none."""
    X = np.arange(12.0).reshape(6, 2) % 5.0
    y = np.column_stack([X[:, 0], np.arange(6.0) ** 2])
    alone, table = Path(verify_alone.__file__), tmp_path / "d.csv"
    soft, hard = MaxMarginRegressor(), MaxMarginRegressor(C=np.inf, epsilon=0.0)
    detector = MaxMarginOutlierDetector(kernel="linear")
    for model, last in ((soft, y), (hard, y), (detector, np.empty((6, 0)))):
        labels = () if model is detector else (last,)
        fit(model, X, *labels)
        save_proof(model, tmp_path / "proof.json", X, *labels)
        lines = [",".join(map(repr, line)) for line in np.hstack([X, last]).tolist()]
        table.write_text("\n".join(lines))
        assert main([str(tmp_path / "proof.json"), str(table)]) == 0
        said = capsys.readouterr().out
        given = [sys.executable, "-I", "-S", str(alone), str(tmp_path / "proof.json"), str(table)]
        ran = subprocess.run(given, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (0, said), ran.stderr
        if model is soft:
            text = f"TRUE: P = {soft.objective_[0]!r}, the least >= {soft.objective_bound_[0]!r}; "
            assert said.startswith(text.replace("np.float64(", "").replace(")", ""))
        elif model is hard:
            assert "the least >= inf" in said
        else:
            assert "<= best margin <=" in said


def test_predictions_that_miss_a_hard_tube_are_said_to(rng, tmp_path):
    X, y = data_for(2, rng, 24)
    reg = fit(MaxMarginRegressor(C=np.inf, epsilon=1.75), X, y)
    proof = save_proof(reg, tmp_path / "proof.json", X, y)
    assert wrong_with(proof, X, y) == []
    proof["epsilon"] = "1"  # narrower, so that predictions miss it
    proof["claims"] |= {"feasible": None, "bound": ["0", "0"]}
    assert "predictor" in "".join(wrong_with(proof, X, y))
    proof["claims"]["violation"] = "3/4"
    assert wrong_with(proof, X, y) == []
    proof["claims"]["feasible"] = True
    assert "shown" in "".join(wrong_with(proof, X, y))


def test_weights_keep_to_what_the_problem_says(tmp_path):
    """They balance and, of a share, keep their caps: one example alone proves too much."""
    cases = (
        (MaxMarginClassifier(), [[0.25], [3.0]], [0, 1], 1.375),
        (
            MaxMarginOutlierDetector(kernel="linear", nu=0.5),
            [[0.25], [5.0], [5.0], [5.0]],
            None,
            2.625,
        ),
    )
    for model, X, y, best in cases:
        fit(model, np.array(X), *(() if y is None else (y,)))
        proof = save_proof(model, tmp_path / "proof.json", np.array(X), y)
        assert_allclose(numbers(proof), best)
        for weight in proof["weights"]:
            weight[2] = str(7 * Fraction(weight[2]))  # multiples prove the same
        assert wrong_with(proof, X, y) == []
        proof["claims"] |= {"reached": ["0"], "bound": ["1/4"]}
        proof["weights"] = [[0, 0, "1"]]
        assert "weights" in "".join(wrong_with(proof, X, y))


def test_a_matrix_of_no_inner_products_proves_nothing(tmp_path):
    """Where a combination has a negative square, or the matrix is not symmetric."""
    K, y = np.ones((2, 2)), [0, 1]
    clf = fit(MaxMarginClassifier(kernel="precomputed"), K, y)
    proof = save_proof(clf, tmp_path / "proof.json", K, y)
    assert proof["claims"]["feasible"] is False
    assert wrong_with(proof, K, y) == []
    for places in ([(0, 1), (1, 0)], [(0, 1)]):
        other = K.copy()
        for place in places:
            other[place] += 2.0**-52
        lines = lines_of("classes", other, y)
        proof["sha256"] = verify_alone.table_of(proof, lines)[1]
        assert wrong_with(proof, other, y)


def test_a_predictor_of_negative_square_is_worth_nothing(tmp_path):
    """Else its norm would be taken as 0, and any margin could be claimed."""
    K, y = np.eye(3), [0, 1, 1]
    clf = fit(MaxMarginClassifier(kernel="precomputed"), K, y)
    proof = save_proof(clf, tmp_path / "proof.json", K, y)
    proof["weights"], proof["intercept_"] = [[0, 0, "1"], [2, 0, "1"]], ["0"]
    proof["claims"] |= {"reached": ["1/1024"], "bound": ["1"]}
    proof["coef"] = [["-1", "1", "1"]]
    assert wrong_with(proof, K, y) == []
    K[0, 1] = K[1, 0] = 1.0 + 2.0**-52
    proof["sha256"] = verify_alone.table_of(proof, lines_of("classes", K, y))[1]
    proof["coef"] = [[str(2**60), str(-(2**60)), "256"]]  # scores of -256, 256 and 256
    assert wrong_with(proof, K, y)


@pytest.mark.parametrize("k", [2, 3])
def test_a_negative_square_is_made_good_by_no_other(k, tmp_path):
    """Not by that of a penalised intercept, of slack, or of the scores of another class."""
    K, y = np.eye(3), [0, 1, k - 1]
    model = DualLpPerceptron(C=1.0, intercept_scaling=2.0, kernel="precomputed", random_state=0)
    proof = save_proof(fit(model, K, y), tmp_path / "proof.json", K, y)
    proof["coef"] = [["1", "-1", "0"], ["0", "0", "2"], ["0"] * 3]
    proof["claims"] |= {"reached": ["0"], "bound": ["512"], "feasible": None}
    if k == 2:
        proof["coef"], proof["weights"] = [["0"] * 3], [[0, 0, "1"], [1, 0, "2"]]
    proof["intercept_"] = ["0"] * len(proof["coef"])
    assert wrong_with(proof, K, y) == []
    K[0, 1] = K[1, 0] = 2.0
    proof["sha256"] = verify_alone.table_of(proof, lines_of("classes", K, y))[1]
    assert "inner products" in str(wrong_with(proof, K, y))


def test_exact_checks_say_what_files_say_of_a_matrix_of_no_inner_products():
    """A rounded matrix of low rank: its claims are those of inner products, which it has not."""
    K, y = np.ones((2, 2)), [0, 1]
    clf = fit(MaxMarginClassifier(kernel="precomputed"), K, y)
    assert check_certificate(clf, K, y, exact=True)
    K[0, 1] = K[1, 0] = 1.0 + 2.0**-52
    found = check_certificate(clf, K, y, exact=True)
    assert not found
    assert "none of inner products" in found.reason
    assert "exact=False" in found.reason
    K[0, 1] = 1.0
    assert "not symmetric" in check_certificate(clf, K, y, exact=True).reason


def test_the_lone_program_is_short_and_needs_nothing():
    text = Path(verify_alone.__file__).read_text()
    assert len(text.splitlines()) <= 200
    imported = {
        line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))
    }
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)
    assert "check" in runpy.run_path(verify_alone.__file__)


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
PLACES = [
    "weights",
    "weights",
    "coef",
    "intercept_",
    "claims",
    "claims",
    "words",
    "example_weights",
]


def changed(proof, draw):
    """The proof with one of its numbers or words changed."""
    other = copy.deepcopy(proof)
    place = draw.choice(PLACES)
    if place == "words":
        name = draw.choice([*WORDS])
        other[name] = draw.choice(WORDS[name])
        return other
    if place == "claims":
        place = draw.choice([*other["claims"]])
        if place == "feasible":
            other["claims"][place] = draw.choice([True, False, None])
            return other
        other, row = other, other["claims"][place]
    else:
        row = other[place]
    holder, at = [row], 0
    while isinstance(holder[at], list) and holder[at]:
        holder, at = holder[at], draw.randrange(len(holder[at]))
    x = holder[at]
    if isinstance(x, int):  # an example or a column
        holder[at] += draw.choice([1, -1])
    elif x is None or draw.random() < 0.05:
        holder[at] = draw.choice([None, "0", "1"])
    elif isinstance(x, str):
        part = Fraction(1, 2 ** draw.choice([0, 10, 30, 50]))
        x, size = Fraction(x), max(abs(Fraction(x)), Fraction(1, 2**60))
        holder[at] = str(x + size * draw.choice([1, -1]) * draw.choice([part, 2 * part, 1]))
    return other


def small_problems(tmp_path):
    """Proofs of each kind, and their data."""
    rng, found = np.random.default_rng(0), []
    for k, C, apart in ((2, np.inf, True), (3, 1.0, False), (2, 1.0, False), (2, np.inf, False)):
        X, y = (separable if apart else overlapping)(rng, n=8, d=2, k=k)
        found.append((MaxMarginClassifier(C=C), X, y))
    found.append((MaxMarginClassifier(C=2.0, loss="hinge"), *overlapping(rng, n=8, d=2, k=3)))
    found += [(copy.deepcopy(model), *data_for(kind, rng, 8)) for model, kind in OTHERS]
    X = np.round(8.0 * rng.standard_normal((8, 2)))
    found.append((MaxMarginRegressor(C=np.inf, epsilon=0.25), X, np.round(X[:, 0] ** 2)))
    for model, X, y in found:
        kernel = "precomputed" if rng.random() < 0.3 else "linear"
        X = X @ X.T if kernel == "precomputed" else X
        fit(model.set_params(kernel=kernel), X, *(() if y is None else (y,)))
        yield save_proof(model, tmp_path / "proof", X, y), X, y


@pytest.mark.parametrize("number", [100, slow(6_000)])
def test_changed_proofs_are_refused_or_true(number, tmp_path):
    """Whatever is accepted is true of the data, by an oracle that shares no code."""
    draw, accepted = random.Random(0), 0
    problems = [*small_problems(tmp_path)]
    for i in range(number):
        true, X, y = problems[i % len(problems)]
        other = changed(true, draw)
        wrong = wrong_with(other, X, y)
        if json.dumps(other) == json.dumps(true):
            assert wrong == []
        elif wrong == []:
            accepted += 1
            table = verify_alone.table_of(other, lines_of(other["of"], X, y))[0]
            assert not false_claims(other, table), other
    assert accepted < 0.6 * number


def test_files_of_before_are_refused(rng, tmp_path):
    X, y = separable(rng, n=20)
    proof = save_proof(fit(MaxMarginClassifier(), X, y), tmp_path / "proof", X, y)
    proof["format"] = "marginsvm proof 2"
    assert "another kind of file (save it again)" in wrong_with(proof, X, y)[0]


def test_what_cannot_be_saved_is_refused(rng, tmp_path):
    X, y = separable(rng, n=20)
    path = tmp_path / "proof"
    for clf, match in (
        (MaxMarginClassifier(kernel="rbf"), "kernel='rbf'"),
        (DualLpPerceptron(p=1.5, random_state=0), "p=1.5"),
        (PerceptronVonNeumann(normalize=True), "normalize=True"),
        (MaxMarginClassifier(C=1.0, monotonic_cst=[1, 0, 0, 0, 0]), "monotonic_cst"),
    ):
        with pytest.raises(ValueError, match=match):
            save_proof(fit(clf, X, y), path, X, y)
    reg = fit(DualLpRegressor(C=1.0, random_state=0), X, X[:, 0])
    with pytest.raises(ValueError, match="regressors"):
        save_proof(reg, path, X, X[:, 0])
    with pytest.raises(ValueError, match="y is missing"):
        save_proof(fit(MaxMarginRegressor(), X, X[:, 0]), path, X)
    clf = make_pipeline(StandardScaler(), MaxMarginClassifier()).fit(X, y)
    Z = clf[:-1].transform(X)
    assert wrong_with(save_proof(clf, path, X, y), Z, y) == []
    with pytest.raises(ValueError, match="does not hold"):
        save_proof(clf, path, 2.0 * X, y)
