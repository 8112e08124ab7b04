"""Problems whose proofs are saved, and what is false of a file, by an oracle of other code."""

import json

import numpy as np
from scipy.optimize import linprog

from helpers.estimators import fit
from helpers.oracle import least_value
from marginsvm import (
    DualLpPerceptron,
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    save_proof,
    verify_alone,
)
from marginsvm.certificate.proof_files import lines_of, verify


def number(text):
    return np.inf if text is None else float(verify_alone.number(text))


class Stated:
    """What a file asks for, of a table of features and classes (as places) or targets."""

    def __init__(self, proof, table, wider=0.0):
        self.of, self.slack, self.k = proof["of"], proof["slack"], len(proof["classes"])
        self.C, self.nu, self.epsilon = (
            number(proof[name]) for name in ("C", "nu", "epsilon")
        )
        self.epsilon += wider
        if self.of == "targets" and self.slack == "share":  # a tube has no share
            self.slack = "none"
        weight = np.array([number(x) for x in proof["example_weights"]])
        kept, table = np.flatnonzero(weight > 0), np.array(table)
        n_last = {"classes": 1, "targets": len(proof["coef"])}.get(self.of, 0)
        X, self.last = np.split(table[kept], [table.shape[1] - n_last], axis=1)
        if proof["kernel"] == "precomputed":
            values, Q = np.linalg.eigh(X[:, kept])
            X = Q * np.sqrt(np.where(values > 1e-12 * values.max(), values, 0.0))
        self.m, self.intercept = weight[kept], proof["intercept"] == "free"
        constant = 1.0 if self.intercept else number(proof["intercept"])
        self.X = np.column_stack([X, np.full(len(X), constant)]) if constant else X

    def rows(self, o):
        """Rows on ``(w, b)``, the example of each, and their lower ends."""
        X, (n, d) = self.X, self.X.shape
        if self.of == "targets":
            y, e = self.last[:, o], self.epsilon
            return (
                np.vstack([X, -X]),
                np.tile(np.arange(n), 2),
                np.concatenate([y - e, -y - e]),
            )
        if self.k < 3:
            sign = 2 * self.last[:, 0] - 1 if self.k else np.ones(n)
            return X * sign[:, None], np.arange(n), np.ones(n)
        own = self.last[:, 0].astype(int)
        of, other = np.nonzero(np.arange(self.k) != own[:, None])
        rows, r = np.zeros((len(of), self.k, d)), np.arange(len(of))
        rows[r, own[of]], rows[r, other] = X[of], -X[of]
        return rows.reshape(len(of), -1), of, np.ones(len(of))

    def objective(self, o=0):
        A, of, low = self.rows(o)
        n, size, scores = len(self.m), A.shape[1], self.k if self.k > 2 else 1
        penalty = np.ones((scores, size // scores))
        penalty[:, -1] -= self.intercept
        H, zero = np.diag(penalty.ravel()), np.zeros(size)
        if self.slack == "none":
            return least_value(H, zero, -A, -low)
        if self.slack == "square":
            price = self.C * self.m[of] / (2 if self.k > 2 else 1)
            H = np.diag(np.append(penalty.ravel(), 2 * price))
            return least_value(
                H, np.zeros(len(H)), -np.hstack([A, np.eye(len(A))]), -low
            )
        # slack of each example, and the width of a tube, or the height that a share reaches
        extra = 1 if self.nu else 0
        price = self.C * self.m  # 0 of a share
        G = np.hstack([A, of[:, None] == np.arange(n), np.zeros((len(A), extra))])
        G = np.vstack([G, np.eye(size + n + extra)[size:]])
        h = np.concatenate([low, np.zeros(n + extra)])
        if self.slack == "size":
            G[: len(A), size + n :] = 1.0
        else:
            mass = self.nu * self.m.sum()
            if self.intercept:
                others = (2 * self.m[self.last[:, 0] != j].sum() for j in range(self.k))
                mass = min([mass, *others])
            G[: len(A), size + n] = -1.0
            h[: len(A)] = 0.0
            G[-1, size : size + n] = -self.m / mass
            h[-1] = 1.0
        c = np.concatenate([zero, price, [self.nu * price.sum()] * extra])
        return least_value(np.pad(H, (0, n + extra)), c, -G, -h)

    def fits(self, o=0):
        A, _, low = self.rows(o)
        return linprog(np.zeros(A.shape[1]), -A, -low, bounds=(None, None)).status == 0


def false_claims(proof, table, rtol=1e-6):
    """Which claims of a file are false of the problem that it states, as far as floats tell."""
    stated, claims, wrong = Stated(proof, table), proof["claims"], []
    outputs = range(len(proof["coef"]) if stated.of == "targets" else 1)
    for o, *claimed in zip(outputs, claims["reached"], claims["bound"], strict=True):
        reached, bound = map(number, claimed)
        low = high = stated.objective(o)
        if stated.of != "targets":  # margins
            reached, bound = bound, reached
            low = high = np.inf if low == 0 else 1.0 / np.sqrt(2.0 * low)
        elif stated.slack == "none":
            high = Stated(proof, table, number(claims["violation"])).objective(o)
        if bound > low * (1 + rtol) + rtol or reached < high * (1 - rtol) - rtol:
            wrong.append(claimed)
    if claims["feasible"] is not None and claims["feasible"] != all(
        map(stated.fits, outputs)
    ):
        wrong.append("feasible")
    return wrong


LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
CASES = [  # and the number of targets; 0: there is one class; -2 and -3: so many of them
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
    *(
        (MaxMarginRegressor(C=0.7, loss=loss), outputs)
        for loss in LOSSES
        for outputs in (1, 2)
    ),
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


def table_of(proof, X, y=None):
    """The data as the checker reads them, and their hash."""
    names = [x if isinstance(x, str) else float(x) for x in proof["classes"]]
    return verify_alone.table_of(names, lines_of(proof["of"], X, y))


def wrong_with(proof, X, y=None):
    """What is found wrong; nothing but a refusal is raised."""
    try:
        return verify(proof, X, y)
    except verify_alone.RefusedError as refusal:
        return [str(refusal)]


def save(path, model, X, y=None, weight=None):
    """Fit a model and save its proof, as it is in the file."""
    fit(model, X, *(() if y is None else (y,)), sample_weight=weight)
    proof = save_proof(model, path, X, y, weight)
    assert json.loads(path.read_text()) == proof
    assert wrong_with(proof, X, y) == []
    return proof
