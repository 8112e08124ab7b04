"""The papers' settings: games without an estimator around them, and their rounds."""

from types import SimpleNamespace

import numpy as np

from helpers.estimators import fit
from helpers.oracle import best_margin, explicit_rows
from marginsvm import DualLpPerceptron
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.intercepts import differences
from marginsvm.problem.matrix import as_matrix
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.rows import make_rows


def rounds(player, data, n):
    """The states of an algorithm, or of an estimator's."""
    algorithm = player._algorithm() if hasattr(player, "_algorithm") else player
    state = algorithm.start(data)
    for _ in range(n):
        state = algorithm.step(data, state)
        yield state


def game(X, y, p=2.0):
    """Rows without an intercept, the longest of norm 1."""
    return LinearAdapter(X, make_rows(y, 2, balanced=False), norm=LpNorm(p))


def known(X, y, *, balanced=False, C=np.inf, normalize=False):
    """A game, its rows written out (without an intercept), and its best margin, in its units."""
    rows = make_rows(y, int(y.max()) + 1, balanced=balanced)
    data = LinearAdapter(normalized(X) if normalize else X, rows, C)
    X = X / np.linalg.norm(X, axis=1)[:, None] if normalize else X
    best = best_margin(X, y, fit_intercept=balanced, C=C) / data.radius
    return data, explicit_rows(X, y, C=C)[0] * rows.square**0.5 / data.radius, best


def written_out(data, X, y):
    return np.where(y == 1, 1.0, -1.0)[:, None] * X / data.radius


def smoothed(state):
    """A round of an accelerated play in the letters of Ramdas and Pena; mu over n, if Euclidean."""
    return SimpleNamespace(
        k=state.t - 1,
        mu=2.0 / state.weight,
        alpha=state.W / state.weight,
        p=state.total / state.weight,
        answer=state.last,  # p_{mu_k}(alpha_k)
        min_margin=state.measured.min_margin,
    )


def unit_rows(X, y):
    """Signed rows of norm 1, spelled out."""
    return (
        np.where(y == np.max(y), 1.0, -1.0)[:, None]
        * X
        / np.linalg.norm(X, axis=1)[:, None]
    )


def section_3(n):
    """Hanashiro, eq. (2)."""
    X = np.array(
        [[(-1.0) ** i * (j < i) for j in range(1, n + 1)] for i in range(1, n + 1)]
    )
    X += np.diag([(-1.0) ** (i + 1) for i in range(1, n + 1)])
    return X, [(-1) ** (i + 1) for i in range(1, n + 1)]


def theta(u, q):
    norm = np.linalg.norm(u, q)
    return (
        np.zeros_like(u)
        if norm == 0
        else norm ** (2 - q) * np.abs(u) ** (q - 1) * np.sign(u)
    )


def optimum(data, X, y, p):
    """Dual optimum alpha*, in units of the radius."""
    clf = DualLpPerceptron(
        p=p, fit_intercept=False, tol=1e-9, random_state=0, max_iter=200_000
    )
    fit(clf, X, y)
    return (
        clf.certificate_.weights.toarray().ravel()
        * (data.radius / clf.margin_bound_) ** 2
    )


def excessive_gap(data, alpha, p, mu, answer, distance):
    """``L_mu(alpha) + ||p||^2 / 2``; the answer to alpha is the maximiser in L_mu."""
    margins, q = data.margins(alpha), answer.coef
    inside = q > 0
    L = (
        -np.sum(margins[inside] * q[inside])
        - mu * distance(q)
        + 0.5 * data.norm(alpha) ** 2
    )
    return L + 0.5 * data.norm(p) ** 2


def flat(vector):
    """Image and coefficients, one behind the other."""
    return np.concatenate([vector.image.ravel(), vector.coef.ravel()])


def margin_of(problem, w):
    """The margin of a predictor under its best intercept (in radii)."""
    lowest = problem.rows.group_min(problem.margins(w, precise=True))
    least = (lowest + differences(problem.rows.best_offsets(lowest))).min()
    return least / problem.norm(w)


def imbalance(rows, q):
    """How far weights are from balanced ones, as a sum over classes."""
    return float(np.abs(rows.adjoint(q).sum(axis=0)).sum()) if rows.balanced else 0.0


def normalized(X, constant=0.0):
    return as_matrix(X).divided(constant)


def worst_mean(values, nu, weight=None):
    """Mean of the worst values of a share of the examples, by filling it."""
    weight = np.ones(len(values)) if weight is None else weight
    left, total = nu * weight.sum(), 0.0
    for i in np.argsort(values):
        total += values[i] * min(weight[i], left)
        left = max(left - weight[i], 0.0)
    return total / (nu * weight.sum())
