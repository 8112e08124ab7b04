"""The finite coefficients of ordinal regressions, pairs and rankings: limits of a penalty path."""

import numpy as np
import pytest

from marginsvm import check_separability

RIDGES = 1e-5, 1e-7, 1e-9
STEP = 1e-100  # of derivatives along imaginary steps, which do not cancel


def maximum(value, slope, p, ridge):
    """Newton's method on a concave log-likelihood with a penalty, from 0."""
    w = np.zeros(p)

    def penalised(w):
        return value(w) - ridge / 2 * w @ w

    for _ in range(300):
        g = slope(w) - ridge * w
        H = np.column_stack([slope(w + 1j * STEP * e).imag / STEP for e in np.eye(p)])
        step = np.linalg.solve(ridge * np.eye(p) - H, g)
        t, now = 1.0, penalised(w)
        while t > 1e-10 and not penalised(w + t * step) >= now - 1e-13 * abs(now):
            t *= 0.5
        w = w + t * step
        if np.abs(t * step).max() < 1e-10:
            break
    return w


def expit(u):
    return 1 / (1 + np.exp(-u))


def choices(S, own, allowed, ridge):
    """Of alternatives with scores S w, of which one is chosen among those that are allowed."""
    n = np.arange(len(S))

    def scores(w):
        return np.where(allowed, S @ w, -np.inf)

    def value(w):
        s = scores(w)
        top = s.max(axis=1)
        return (s[n, own] - top - np.log(np.exp(s - top[:, None]).sum(axis=1))).sum()

    def slope(w):
        s = S @ w
        e = np.where(
            allowed, np.exp(s - np.where(allowed, s.real, -np.inf).max(axis=1)[:, None]), 0
        )
        share = e / e.sum(axis=1, keepdims=True)
        return S[n, own].sum(axis=0) - np.einsum("ij,ijk->k", share, S)

    return maximum(value, slope, S.shape[2], ridge)


def ordinal(X, lower, upper, k, ridge):
    """Cumulative logits of categories between bounds; thresholds first, which start in order."""
    eye = np.eye(k - 1)
    high = np.hstack([np.vstack([eye, 0 * eye[:1]])[upper], -X])
    low = np.hstack([np.vstack([0 * eye[:1], eye])[lower], -X])
    first, last = lower == 0, upper == k - 1
    begin = np.append(np.arange(k - 1.0), np.zeros(X.shape[1]))

    def value(w):
        u, v = high @ (begin + w), low @ (begin + w)
        with np.errstate(all="ignore"):
            gap = np.where(first | last, 0.0, np.log(-np.expm1(v - u)))
        of_high = np.where(last, 0.0, -np.logaddexp(0, -u))
        of_low = np.where(first, 0.0, -np.logaddexp(0, v))
        return (of_high + of_low + gap).sum()

    def slope(w):
        u, v = high @ (begin + w), low @ (begin + w)
        with np.errstate(all="ignore"):
            gap = np.where(first | last, 0.0, 1 / (np.exp(u - v) - 1))
        return high.T @ np.where(last, 0.0, expit(-u) + gap) - low.T @ np.where(
            first, 0.0, expit(v) + gap
        )

    return begin + maximum(value, slope, len(begin), ridge)


def follows(path, limit, finite):
    """Whether the finite coefficients of a path of fits come near their limits."""
    away = [np.abs(w - limit)[finite].max() for w in path]
    assert away[-1] < 1e-4, away
    assert away[-1] <= away[0] + 1e-6


def groups(seed):
    """Dummies of groups, some of which end in the last category or never in the first."""
    rng = np.random.default_rng(seed)
    n, k = 150, 3 + seed % 2
    group = rng.integers(0, 4, n)
    X = np.column_stack([np.eye(4)[group][:, 1:], rng.integers(-2, 3, n)])
    score = 0.5 * X[:, -1] + 0.3 * (group == 1) + rng.logistic(size=n)
    y = np.digitize(score, np.arange(k - 1) - 0.8)
    y = np.where(group == 2, k - 1, y)
    y = np.where((group == 3) & (seed % 3 > 0), 0, y)
    return X, y, k


@pytest.mark.parametrize("seed", range(12))
def test_an_ordinal_limit(seed):
    X, y, k = groups(seed)
    report = check_separability(X, y, family="ordinal")
    rows, lower, upper, columns = report.remainder(X)
    finite = np.array([c.status == "finite" for c in report.coefficients])
    assert finite.any()
    assert not finite.all()
    path = [ordinal(X, y, y, k, ridge) for ridge in RIDGES]
    kept = np.append(np.arange(k - 1), k - 1 + columns)
    limit = np.full(len(finite), np.nan)
    limit[kept] = ordinal(X[rows][:, columns], lower[rows], upper[rows], k, 1e-12)
    follows(path, limit, finite)


def test_an_ordinal_limit_of_halves():
    """Low or mid without the mark, mid or high with it, and another feature."""
    rng = np.random.default_rng(5)
    mark, z = np.repeat([0.0, 1.0], 60), rng.integers(-1, 2, 120)
    y = mark.astype(int) + (rng.random(120) < expit(0.7 * z))
    X = np.column_stack([mark, z])
    report = check_separability(X, y, family="ordinal")
    assert [c.status for c in report.coefficients] == ["finite", "+inf", "+inf", "finite"]
    rows, lower, upper, columns = report.remainder(X)
    path = [ordinal(X, y, y, 3, ridge)[[0, 3]] for ridge in RIDGES]
    rest = ordinal(X[rows][:, columns], lower[rows], upper[rows], 3, 1e-12)
    # The other threshold and the mark grow together: what is left of them is their difference.
    limit = rest[[0, 2 + columns.tolist().index(1)]]
    follows(path, limit, np.ones(2, bool))


def season(seed, drawn):
    """A strong division, a weak one, and what they played against each other."""
    rng = np.random.default_rng(seed)
    n, items = 160, 7
    X = rng.integers(0, items, (n, 2))
    X = X[X[:, 0] != X[:, 1]]
    strength = np.linspace(-0.5, 0.5, items)[rng.permutation(items)]
    gap = strength[X[:, 0]] - strength[X[:, 1]]
    y = (rng.random(len(X)) < expit(gap)).astype(float)
    y[rng.random(len(X)) < drawn] = 0.5
    first, second = (X < 3).T
    return X, np.where(first & ~second, 1.0, np.where(second & ~first, 0.0, y))


def strengths(X):
    """How scores of two items hang on the strengths of all but the first."""
    return np.eye(7)[X][:, :, 1:]


@pytest.mark.parametrize("seed", range(6))
def test_a_limit_of_pairs(seed):
    X, y = season(seed, 0.2)
    report = check_separability(X, y, family="pairs")
    finite = np.array([c.status == "finite" for c in report.coefficients])
    assert finite.tolist() == [True] * 2 + [False] * 4

    def fit(some, ridge):  # draws are half a win for each
        both = np.concatenate([X[some], X[some][:, ::-1]])
        weight = np.concatenate([y[some], 1 - y[some]])
        both = np.repeat(both, (2 * weight).astype(int), axis=0)
        own = np.zeros(len(both), int)
        return choices(strengths(both), own, np.ones((len(both), 2), bool), ridge)

    kept = report.remainder(X)
    np.testing.assert_array_equal(kept, (X < 3).all(axis=1) | (X >= 3).all(axis=1))
    follows([fit(np.ones(len(X), bool), r) for r in RIDGES], fit(kept, 1e-12), finite)


@pytest.mark.parametrize("seed", range(6))
def test_a_limit_of_draws_that_are_estimated(seed):
    """Davidson's model."""
    X, y = season(seed, 0.2)
    report = check_separability(X, y, family="pairs", draws="estimated")
    finite = np.array([c.status == "finite" for c in report.coefficients])
    assert finite[-1]
    assert not finite.all()
    d = (strengths(X)[:, 0] - strengths(X)[:, 1]) / 2
    kappa = np.zeros((len(X), 3, 1))
    kappa[:, 1] = 1.0
    S = np.concatenate([np.stack([d, 0 * d, -d], axis=1), kappa], axis=2)
    own = (2 - 2 * y).astype(int)
    allowed = report.remainder(X)
    path = [choices(S, own, np.ones((len(X), 3), bool), ridge) for ridge in RIDGES]
    some = allowed.any(axis=1)
    follows(path, choices(S[some], own[some], allowed[some], 1e-12), finite)


def stages(rankings):
    """The choices of rankings of at most five items: scores, and who is left."""
    S, left = [], []
    for ranking in rankings:
        for place in range(len(ranking) - 1):
            rest = ranking[place:]
            S.append(np.eye(7)[[*rest, *[0] * (5 - len(rest))]][:, 1:])
            left.append(np.arange(5) < len(rest))
    return np.array(S), np.zeros(len(S), int), np.array(left)


@pytest.mark.parametrize("seed", range(6))
def test_a_limit_of_rankings(seed):
    rng = np.random.default_rng(seed)
    strength = np.where(np.arange(7) < 3, 50.0, 0.0) + rng.normal(size=7) / 2
    rankings = []
    for _ in range(60):
        some = rng.permutation(7)[: rng.integers(2, 6)]
        order = np.argsort(-strength[some] - rng.gumbel(size=len(some)))
        rankings.append(some[order].tolist())
    report = check_separability(rankings, family="pairs")
    finite = np.array([c.status == "finite" for c in report.coefficients])
    assert finite.tolist() == [True] * 2 + [False] * 4
    kept = report.remainder(rankings)
    assert all(len({x < 3 for x in part}) == 1 for part in kept)
    path = [choices(*stages(rankings), ridge) for ridge in RIDGES]
    follows(path, choices(*stages(kept), 1e-12), finite)


@pytest.mark.parametrize("seed", range(6))
def test_a_multinomial_limit(seed):
    """Groups that rule out a class, or two; another feature has finite effects."""
    rng = np.random.default_rng(seed)
    group, z = np.repeat(np.arange(4), 40), rng.integers(-2, 3, 160)
    possible = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1]], bool)[group]
    score = np.outer(z, [0.0, 0.4, -0.3]) + rng.gumbel(size=(160, 3))
    y = np.where(possible, score, -np.inf).argmax(axis=1)
    X = np.column_stack([np.eye(4)[group][:, 1:], z])
    report = check_separability(X, y)
    finite = np.array([c.status == "finite" for c in report.coefficients])
    assert finite.any()
    assert not finite.all()
    allowed = report.remainder(X)
    np.testing.assert_array_equal(allowed, possible)
    features = np.column_stack([np.ones(160), X])
    blocks = np.eye(3)[:, 1:]
    S = np.einsum("kb,ij->ikbj", blocks, features).reshape(160, 3, -1)
    path = [choices(S, y, np.ones((160, 3), bool), ridge) for ridge in RIDGES]
    follows(path, choices(S, y, allowed, 1e-12), finite)


@pytest.mark.parametrize("seed", range(6))
def test_a_limit_of_negative_binomial_counts(seed):
    """Of a given dispersion, with an offset: groups without counts."""
    rng = np.random.default_rng(seed)
    group, z, offset = rng.integers(0, 4, 150), rng.integers(-2, 3, 150), rng.normal(size=150)
    mean = np.exp(0.3 * z + 0.2 * (group == 1) + offset) * (group != 2)
    y, dispersion = rng.poisson(mean * rng.gamma(2.0, 0.5, 150)), 0.5
    X = np.column_stack([np.eye(4)[group][:, 1:], z])
    report = check_separability(X, y, family="negative_binomial", offset=offset)
    finite = np.array([c.status == "finite" for c in report.coefficients])
    assert finite.tolist() == [True, True, False, True, True]
    rows, columns = report.remainder(X)

    def fit(some, columns, ridge):
        A, b = np.column_stack([np.ones(150), X[:, columns]])[some], offset[some]
        n, size = y[some], 1 / dispersion

        def value(w):
            eta = A @ w + b
            return (n * eta - (n + size) * np.logaddexp(0, eta + np.log(dispersion))).sum()

        def slope(w):
            return A.T @ (n - (n + size) * expit(A @ w + b + np.log(dispersion)))

        return maximum(value, slope, A.shape[1], ridge)

    limit = np.full(5, np.nan)
    limit[np.append(0, 1 + columns)] = fit(rows, columns, 1e-12)
    follows([fit(np.ones(150, bool), np.arange(4), r) for r in RIDGES], limit, finite)
