"""The optimistic perceptron: the theorems of Hanashiro and Abernethy, round by round."""

from functools import partial

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit, overlapping, separable
from helpers.games import game, known, optimum, rounds, section_3
from helpers.hard import chain, lopsided, thin, within
from scipy.special import softmax
from sklearn.model_selection import GridSearchCV

from marginsvm import KernelPerceptron, NormalizedKernelPerceptron, OptimisticPerceptron


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        *enumerate([2, 7, 19, 45, 103, 227, 489, 1040, 2198], start=2),
        slow(11, 4613),
        slow(12, 9642),
    ],
)
def test_rounds_on_the_data_of_section_3(n, expected):
    clf = OptimisticPerceptron(stopping="separation", fit_intercept=False)
    clf.fit(*section_3(n))
    assert clf.status_ == "separated"
    assert clf.n_iter_ == expected


def test_the_learner_is_algorithm_1s(rng):
    """Lines 5 to 9 spelled out on explicit rows."""
    data, A, _ = known(*separable(rng, n=40))
    r = 1.3  # a factor of the largest norm, as the estimator's
    p = np.full(len(A), 1.0 / len(A))
    x = before = A.T @ p
    w, output = 0.0, 0.0
    for state in rounds(OptimisticPerceptron(r=r), data, 50):
        w = w + 2 * x - before
        output = output + w
        p = softmax(np.log(p) - A @ w / r**2)
        before, x = x, A.T @ p
        np.testing.assert_allclose(state.W.image, output, rtol=1e-9)
        np.testing.assert_allclose(state.last.coef, p, rtol=1e-8)
        np.testing.assert_allclose(state.W.mass, state.t * (state.t + 1) / 2)


KINDS = {
    "lopsided": lopsided,
    "lopsided, 3 classes": partial(lopsided, k=3),
    "thin": thin,
    "chain": chain,
    "overlapping": overlapping,
    "overlapping, 3 classes": partial(overlapping, k=3),
}


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_hanashiro_theorem_3(balanced, kind, rng):
    """The average's unnormalised margin falls short of the best by (1 + 2 r^2 ln n) / 2T."""
    data, _, best = known(*KINDS[kind](rng), balanced=balanced)
    r, last = data.radius, 0
    best = max(best, 1e-12) * r
    enough = (1 + 2 * r**2 * np.log(data.n_rows)) / (2 * best)
    for state in rounds(OptimisticPerceptron(), data, min(int(enough) + 20, 1000)):
        bound = (1 + 2 * r**2 * np.log(data.n_rows)) / (2 * state.t)
        # in units of the radius: an average of norm 1 in the user's is one of norm r here
        deficit = best - state.measured.min_margin * r**2 / state.t
        assert deficit <= bound + 1e-9
        if state.measured.min_margin <= 0:
            last = state.t
    within(last, enough, "the last round without a separator")
    assert last > 10 or balanced


def test_r_is_a_factor_that_a_grid_can_search(rng):
    X, y = separable(rng)
    with pytest.raises(ValueError, match=r"'r'.*\[1\.0, inf\)"):
        OptimisticPerceptron(r=0.9).fit(X, y)
    search = GridSearchCV(OptimisticPerceptron(), {"r": [1.0, 2.0]}, cv=2).fit(1e6 * X, y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()


@pytest.mark.parametrize("n", [5, 8])
def test_regrets_of_hanashiro(n, rng):
    """Theorem 1 for unit vectors, the best among them, and Theorem 2; r = 1, eta = 1."""
    X, y = chain(rng, n)
    data, A, _ = known(X, y)
    star = A.T @ optimum(data, X, y, 2.0)
    others = np.vstack([star, rng.standard_normal((5, X.shape[1]))])
    units = others / np.linalg.norm(others, axis=1)[:, None]
    start = OptimisticPerceptron()._algorithm().start(data)
    W, p, gained, moved, played, used = start.W, start.last.coef, 0.0, 0.0, 0.0, 0.0
    for state in rounds(OptimisticPerceptron(), data, 200):
        w, W, before, p = state.W - W, state.W, p, state.last.coef
        gained += p @ data.margins(w)
        moved += np.abs(p - before).sum() ** 2
        played = played + A.T @ p
        regret, bound = (units @ played).max() - gained, 0.5 + 0.5 * moved
        assert regret <= bound + 1e-9
        assert gained - data.margins(W).min() <= np.log(len(A)) - 0.5 * moved + 1e-9
        used = max(used, regret / bound)
    within(used, 1.0, "share of Theorem 1's bound")


@pytest.mark.parametrize("n", [16, 100])
def test_one_row_an_update_takes_as_many_updates_as_novikoff_allows(n):
    """Section 1: 1 / gamma^2 updates are needed on orthonormal rows, where gamma^2 is 1 / n."""
    y = np.arange(n) % 2
    X = np.where(y == 1, 1.0, -1.0)[:, None] * np.eye(n)
    data = game(X, y)
    for t, state in enumerate(rounds(NormalizedKernelPerceptron(), data, n + 1), start=1):
        assert (data.margins(state.w).min() > 0) == (t >= n)
    assert fit(KernelPerceptron(fit_intercept=False), X, y).n_mistakes_ == n
    clf = OptimisticPerceptron(fit_intercept=False, stopping="separation")
    assert fit(clf, X, y).n_iter_ == 1


@pytest.mark.parametrize(("n", "share"), [(2, 1.25), (3, 1.75), (4, 1.93), (6, 2.00)])
def test_mistakes_a_pass_on_the_data_of_section_3(n, share, rng):
    """Hanashiro: approximately two a pass, however many examples."""
    visited, mistakes = [], (4**n - 1) // 3
    data = game(*chain(rng, n))
    for state in rounds(KernelPerceptron(), data, mistakes):
        visited.append(state.p.weights.visited)
    assert data.margins(state.w).min() > 0
    *visited, _ = visited  # no mistake any more
    passes = 2 + np.sum(np.diff([0, *visited]) <= 0)  # that of w = 0, at row 0, and the last
    np.testing.assert_allclose(mistakes / passes, share, atol=0.005)
