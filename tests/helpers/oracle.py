"""The exact optimum of small problems, by code that shares nothing with the package."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize, nnls


def explicit_rows(X, y, *, C=np.inf, sample_weight=None):
    """All rows a_r, spelled out; multiclass in Ji's scaling."""
    X = np.asarray(X, dtype=float)
    classes, codes = np.unique(y, return_inverse=True)
    k = len(classes)
    weight = np.ones(len(X)) if sample_weight is None else sample_weight
    rows, groups, cost = [], [], []
    for x, c, m in zip(X, codes, weight, strict=True):
        if k == 2:
            rows.append((2 * c - 1) * x)
            groups.append([2 * c - 1])
            cost.append(C * m)
            continue
        for j in range(k):
            if j != c:
                e = np.zeros(k)
                e[c], e[j] = 1.0, -1.0
                rows.append(np.outer(e, x).ravel() / np.sqrt(2))
                groups.append(e)
                cost.append(C * m)
    A = np.array(rows)
    if np.isfinite(C):
        A = np.hstack([A, np.diag(1.0 / np.sqrt(2.0 * np.array(cost)))])
    return A, np.array(groups, dtype=float), (1.0 if k == 2 else np.sqrt(2.0))


def normalized_rows(X, *, fit_intercept):
    """``x / ||x||``; with an intercept ``(x, s) / ||(x, s)||``, s the largest norm."""
    X = np.asarray(X, dtype=float)
    if fit_intercept:
        X = X / (np.abs(X).max() or 1.0)  # no unit matters, and no square overflows
        X = np.hstack([X, np.full((len(X), 1), np.linalg.norm(X, axis=1).max() or 1.0)])
    top = np.abs(X).max(axis=1)[:, None]
    X = np.divide(X, top, where=top > 0, out=np.zeros_like(X))
    return X / np.where(top > 0, np.linalg.norm(X, axis=1)[:, None], 1.0)


def best_margin_of(estimator, X, y):
    """Exact optimum of the problem that an estimator with p = 2 is set to solve."""
    fit_intercept, C = estimator.fit_intercept, getattr(estimator, "C", np.inf)
    if getattr(estimator, "normalize", False):
        X, fit_intercept = normalized_rows(X, fit_intercept=fit_intercept), False
    # a feature like any other
    if fit_intercept and hasattr(estimator, "intercept_scaling"):
        constant = np.full((len(X), 1), estimator.intercept_scaling)
        X, fit_intercept = np.hstack([X, constant]), False
    return best_margin(X, y, fit_intercept=fit_intercept, C=C)


def best_margin(X, y, *, fit_intercept=True, C=np.inf, sample_weight=None):
    """Distance from the origin to the hull of the rows (balanced: a slice of it), exactly."""
    X = np.asarray(X, dtype=float)
    if fit_intercept:
        X = X - X.mean(axis=0)
    A, groups, unit = explicit_rows(X, y, C=C, sample_weight=sample_weight)
    scale = np.sqrt((A**2).sum(axis=1).max()) or 1.0
    A = A / scale
    # min |A^T u|^2 + (1^T u - 1)^2 over u >= 0 has the direction of the minimising q;
    # a stiff penalty holds the balance.
    blocks, right = [A.T, np.ones((1, len(A)))], np.zeros(A.shape[1] + 1)
    right[-1] = 1.0
    if fit_intercept:
        blocks.append(1e4 * groups.T)
        right = np.append(right, np.zeros(groups.shape[1]))
    u, _ = nnls(np.vstack(blocks), right, maxiter=100 * len(A))
    q = u / u.sum()
    return float(np.linalg.norm(A.T @ q)) * scale * unit


def best_margin_in_norm(X, y, p):
    """Best margin of two classes over ``|w|_p``, with a free intercept, by a general solver."""
    sign, d = np.where(y == np.max(y), 1.0, -1.0)[:, None], X.shape[1]
    A = sign * np.column_stack([X, np.ones(len(X))])
    # |w|_1, of the two parts of w and of the intercept
    length = np.r_[np.ones(2 * d), 0.0, 0.0]
    rows = np.hstack([A[:, :d], -A[:, :d], A[:, d:], -A[:, d:]])
    found = linprog(length, -rows, -np.ones(len(A)))
    if p == 1:
        return 1.0 / found.fun

    def power(v):
        size = np.abs(v[:-1])
        return np.sum(size**p), np.r_[p * size ** (p - 1.0) * np.sign(v[:-1]), 0.0]

    begin = 1.1 * np.r_[found.x[:d] - found.x[d : 2 * d], found.x[-2] - found.x[-1]]
    lines = {"type": "ineq", "fun": lambda v: A @ v - 1.0, "jac": lambda v: A}
    least = minimize(power, begin, jac=True, constraints=lines, options={"ftol": 1e-12})
    return float(least.fun ** (-1.0 / p))


def least_value(P, q, A, b, equalities=0):
    """Least ``x P x / 2 + q x`` where ``A x <= b``, the first rows equal; nan if not found."""
    clarabel = pytest.importorskip("clarabel", reason="pip install marginsvm[test-all]")
    settings, cones = (
        clarabel.DefaultSettings(),
        [clarabel.NonnegativeConeT(len(b) - equalities)],
    )
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.ZeroConeT(equalities), *cones]
    found = clarabel.DefaultSolver(
        sp.csc_matrix(P), q, sp.csc_matrix(A), b, cones, settings
    ).solve()
    values = {
        "Solved": found.obj_val,
        "AlmostSolved": found.obj_val,
        "PrimalInfeasible": np.inf,
    }
    return values.get(str(found.status), np.nan)
