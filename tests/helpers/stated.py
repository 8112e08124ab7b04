"""The least objective of the problem that a proof file states, by code that shares nothing with it.

Problems of a few examples, in floats: linear programs by SciPy, quadratic ones by interior points.
"""

import numpy as np
from numpy.linalg import norm
from scipy.optimize import linprog

from marginsvm import verify_alone


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
