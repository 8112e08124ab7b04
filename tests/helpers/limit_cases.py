"""Random regressions without an estimate: limits of their penalty paths, and of their remainders.

For the tests, and for ``examples/benchmarks/separation.py``.
"""

from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from marginsvm import check_separability

RIDGES = 1e-5, 1e-7, 1e-9  # the limit is approached like the ridge's logarithm at worst
STEP = 1e-100  # of derivatives along imaginary steps, which do not cancel


class Case(NamedTuple):
    """What is compared: the finite coefficients of penalised fits, and those of the remainder."""

    report: object
    path: list
    limit: np.ndarray
    remainder: object

    @property
    def finite(self):
        return np.array([c.status == "finite" for c in self.report.coefficients])

    def away(self):
        """How far the finite coefficients of each penalised fit are from their limits."""
        return [np.abs(w - self.limit)[self.finite].max(initial=0.0) for w in self.path]


def expit(u):
    return 1 / (1 + np.exp(-u))


def maximum(slope, p, ridge):
    """Newton's method on a concave likelihood less a penalty: by its slope, as steps shorten it."""
    w = np.zeros(p)

    def penalised(w):
        return slope(w) - ridge * w

    with np.errstate(all="ignore"):
        for _ in range(300):
            g, t = penalised(w), 1.0
            H = [penalised(w + 1j * STEP * e).imag / STEP for e in np.eye(p)]
            step = -np.linalg.solve(np.reshape(H, (p, p)), g)
            most = np.linalg.norm(g) * (1 + 1e-13)
            while t > 1e-10 and not np.linalg.norm(penalised(w + t * step)) <= most:
                t *= 0.5
            w = w + t * step
            if np.abs(t * step).max(initial=0.0) < 1e-11:
                break
    return w


def estimate(family, X, y, offset, ridge, dispersion=0.5):
    """Of generalised linear models: y are counts, or successes and failures."""

    def slope(w):
        eta = X @ w + offset
        if family == "poisson":
            return X.T @ (y - np.exp(eta))
        if family == "negative_binomial":
            return X.T @ (y - (y + 1 / dispersion) * expit(eta + np.log(dispersion)))
        return X.T @ (y[:, 0] - y.sum(axis=1) * expit(eta))

    return maximum(slope, X.shape[1], ridge)


def case(report, remainder, fit, whole, rest, places):
    """Penalised fits to the whole data, and one to the rest, of coefficients at some places."""
    limit = np.full(len(report.coefficients), np.nan)
    limit[places] = fit(*rest, RIDGES[-1] / 1000)
    return Case(report, [fit(*whole, ridge) for ridge in RIDGES], limit, remainder)


def of_groups(seed, form=np.asarray):
    """Binomial, trials and counts: dummies of groups, some of which have one outcome.

    Negative binomial counts have a given dispersion and an offset.
    """
    rng = np.random.default_rng(seed)
    n, groups = 150, int(rng.integers(3, 6))
    group = rng.integers(0, groups, n)
    X = np.column_stack(
        [np.eye(groups)[group][:, 1:], rng.integers(-2, 3, n), rng.random(n) < 0.4]
    )
    score = 0.4 * X[:, -2] + 0.8 * X[:, -1] - 0.5
    some = rng.random(groups) < 0.5
    some[rng.integers(groups)] = False
    family, offset = (
        ["binomial", "trials", "poisson", "negative_binomial"][seed % 4],
        np.zeros(n),
    )
    more = {"family": family} if seed % 4 > 1 else {}
    if family == "negative_binomial":
        offset = more["offset"] = rng.normal(size=n)
        score += offset + np.log(rng.gamma(2.0, 0.5, n))
    if more:
        y = given = rng.poisson(np.exp(score)) * ~some[group]
    else:
        trials = rng.integers(1, 4, n) if family == "trials" else np.ones(n, int)
        success = rng.binomial(trials, expit(score)) * ~some[group]
        y = np.column_stack([success, trials - success])
        given = success if family == "binomial" else y
    report = check_separability(form(X), given, **more)
    rows, columns = remainder = report.remainder(form(X))
    whole, kept = np.column_stack([np.ones(n), X]), np.append(0, 1 + columns)
    rest = whole[rows][:, kept], y[rows], offset[rows]
    return case(
        report, remainder, partial(estimate, family), (whole, y, offset), rest, kept
    )


def newton(terms, ridge):
    """Maximise a sum of log(softmax): terms are tables of alternatives, of which the first wins."""
    terms = terms or [np.zeros((1, 0))]
    S = np.zeros((len(terms), max(map(len, terms)), terms[0].shape[1]))
    allowed = np.zeros(S.shape[:2], bool)
    for table, known, Z in zip(S, allowed, terms, strict=True):
        table[: len(Z)], known[: len(Z)] = Z - Z[0], True

    def slope(w):
        e = np.where(allowed, S @ w, -np.inf)
        e = np.exp(e - e.real.max(axis=1, keepdims=True))
        return -np.einsum("ij,ijk->k", e / e.sum(axis=1, keepdims=True), S)

    return maximum(slope, S.shape[2], ridge)


def ordinal(X, lower, upper, k, ridge):
    """Cumulative logits of categories between bounds; thresholds first, which start in order."""
    eye = np.eye(k - 1)
    high = np.hstack([np.vstack([eye, 0 * eye[:1]])[upper], -X])
    low = np.hstack([np.vstack([0 * eye[:1], eye])[lower], -X])
    first, last = lower == 0, upper == k - 1
    begin = np.append(np.arange(k - 1.0), np.zeros(X.shape[1]))

    def slope(w):
        u, v = high @ (begin + w), low @ (begin + w)
        gap = np.where(first | last, 0.0, 1 / (np.exp(u - v) - 1))
        up, down = (
            np.where(last, 0.0, expit(-u) + gap),
            np.where(first, 0.0, expit(v) + gap),
        )
        return high.T @ up - low.T @ down

    return begin + maximum(slope, len(begin), ridge)


def of_categories(seed):
    """Ordinal: dummies of groups, some of which end in the last category or never in the first."""
    rng = np.random.default_rng(seed)
    n, k = 150, 3 + seed % 2
    group = rng.integers(0, 4, n)
    X = np.column_stack([np.eye(4)[group][:, 1:], rng.integers(-2, 3, n)])
    score = 0.5 * X[:, -1] + 0.3 * (group == 1) + rng.logistic(size=n)
    y = np.digitize(score, np.arange(k - 1) - 0.8)
    y = np.where(group == 2, k - 1, y)
    y = np.where((group == 3) & (seed % 3 > 0), 0, y)
    report = check_separability(X, y, family="ordinal")
    rows, lower, upper, columns = remainder = report.remainder(X)
    rest = X[rows][:, columns], lower[rows], upper[rows], k
    places = np.append(np.arange(k - 1), k - 1 + columns)
    return case(report, remainder, ordinal, (X, y, y, k), rest, places)


def terms_of_wins(X, y):
    """A draw is half a win for each; the strength of the first item is 0."""
    both, wins = np.concatenate([X, X[:, ::-1]]), np.concatenate([2 * y, 2 - 2 * y])
    return [
        table[:, 1:] for table in np.eye(7)[np.repeat(both, wins.astype(int), axis=0)]
    ]


def of_wins(seed):
    """A strong division, a weak one, and what they played against each other."""
    rng = np.random.default_rng(seed)
    n, items = 160, 7
    X = rng.integers(0, items, (n, 2))
    X = X[X[:, 0] != X[:, 1]]
    strength = np.linspace(-0.5, 0.5, items)[rng.permutation(items)]
    gap = strength[X[:, 0]] - strength[X[:, 1]]
    y = (rng.random(len(X)) < expit(gap)).astype(float)
    y[rng.random(len(X)) < 0.2] = 0.5
    first, second = (X < 3).T
    y = np.where(first & ~second, 1.0, np.where(second & ~first, 0.0, y))
    report = check_separability(X, y, family="pairs")
    kept = report.remainder(X)
    return compared(report, kept, terms_of_wins(X, y), terms_of_wins(X[kept], y[kept]))


def terms_of_rankings(rankings):
    places = [(ranking, i) for ranking in rankings for i in range(len(ranking) - 1)]
    return [np.eye(7)[ranking[i:], 1:] for ranking, i in places]


def of_rankings(seed):
    """Plackett and Luce; three items are ranked before all others."""
    rng = np.random.default_rng(seed)
    strength = np.where(np.arange(7) < 3, 50.0, 0.0) + rng.normal(size=7) / 2
    rankings = []
    for _ in range(60):
        some = rng.permutation(7)[: rng.integers(2, 6)]
        order = np.argsort(-strength[some] - rng.gumbel(size=len(some)))
        rankings.append(some[order].tolist())
    report = check_separability(rankings, family="pairs")
    kept = report.remainder(rankings)
    return compared(report, kept, terms_of_rankings(rankings), terms_of_rankings(kept))


def of_classes(seed):
    """Multinomial: groups that rule out a class, or two."""
    rng = np.random.default_rng(seed)
    group, z = np.repeat(np.arange(4), 40), rng.integers(-2, 3, 160)
    possible = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1]], bool)[group]
    score = np.outer(z, [0.0, 0.4, -0.3]) + rng.gumbel(size=(160, 3))
    y = np.where(possible, score, -np.inf).argmax(axis=1)
    X = np.column_stack([np.eye(4)[group][:, 1:], z])
    report = check_separability(X, y)
    allowed = report.remainder(X)
    whole = [choices_of(*row) for row in zip(X, y, allowed | True, strict=True)]
    rest = [choices_of(*row) for row in zip(X, y, allowed, strict=True)]
    return compared(report, (allowed, possible), whole, rest)


def choices_of(x, label, allowed):
    """Scores of three classes, of which the example's own is the first; that of class 0 is 0."""
    order = [label, *np.flatnonzero(allowed & (np.arange(3) != label))]
    return np.kron(np.eye(3)[order, 1:], np.append(1.0, x))


def terms_of_cox(X, y, strata, entry):
    """Breslow's likelihood."""
    out = []
    for i in np.flatnonzero(y[:, 1]):
        t = y[i, 0]
        risk = (entry < t) & (t <= y[:, 0]) & (strata == strata[i])
        risk[i] = False
        out.append(np.concatenate([X[[i]], X[risk]]))
    return out


def terms_of_choices(X, y, groups):
    """One of all sets of as many alternatives as were chosen."""
    out = []
    for g in np.unique(groups):
        some = np.flatnonzero(groups == g)
        chosen = tuple(some[y[some] > 0])
        sets = [chosen, *(c for c in combinations(some, len(chosen)) if c != chosen)]
        out.append(np.array([X[list(c)].sum(axis=0) for c in sets]))
    return out


def of_times(seed):
    """Cox: groups of which some have no event, or all of theirs before the others."""
    rng = np.random.default_rng(seed)
    n = 90
    group = rng.integers(0, 4, n)
    X = np.column_stack(
        [np.eye(4)[group][:, 1:], rng.integers(-2, 3, n), rng.random(n) < 0.4]
    )
    time = rng.exponential(np.exp(-0.4 * X[:, -2]))
    if seed % 2:
        time = np.ceil(4 * time)
    event = rng.random(n) < 0.8
    if seed % 3:
        event[group == 1] = False
    if seed % 3 < 2:
        time[group > 1] += 100.0  # everybody of groups 0 and 1 is done by then
    strata = rng.integers(0, 2, n) if seed % 4 < 2 else np.zeros(n, int)
    entry = time * rng.choice([0.0, 0.5], n) if seed % 5 < 2 else np.full(n, -1.0)
    y = np.column_stack([time, event])
    report = check_separability(X, y, family="cox", strata=strata, entry=entry)
    new, columns = report.remainder(X)
    whole, rest = (
        terms_of_cox(X, y, strata, entry),
        terms_of_cox(X[:, columns], y, new, entry),
    )
    return compared(report, columns, whole, rest, columns)


def of_choices(seed, n_groups=25, size=5):
    """Conditional: one or more of each group are chosen; one feature that no chosen one has."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    X = rng.integers(-2, 3, (len(groups), 3)).astype(float)
    y = np.zeros(len(groups))
    for g in range(n_groups):
        m = int(rng.integers(0, size + 1)) if g < 3 else int(rng.integers(1, 1 + 2))
        y[rng.choice(np.flatnonzero(groups == g), m, replace=False)] = 1
    X[:, 1] = (rng.random(len(groups)) < 0.2) & (y == 0)
    report = check_separability(X, y, family="conditional", groups=groups)
    rows, columns = report.remainder(X)
    rest = terms_of_choices(X[rows][:, columns], y[rows], groups[rows])
    return compared(report, columns, terms_of_choices(X, y, groups), rest, columns)


def compared(report, remainder, whole, rest, columns=slice(None)):
    """Of comparisons: the likelihood of all of them, and of those in the remainder."""
    return case(report, remainder, newton, (whole,), (rest,), columns)


CASES = {
    "binomial": lambda seed: of_groups(4 * seed),
    "trials": lambda seed: of_groups(4 * seed + 1),
    "poisson": lambda seed: of_groups(4 * seed + 2),
    "negative_binomial": lambda seed: of_groups(4 * seed + 3),
    "multinomial": of_classes,
    "ordinal": of_categories,
    "pairs": of_wins,
    "rankings": of_rankings,
    "cox": of_times,
    "conditional": of_choices,
}
