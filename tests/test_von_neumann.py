"""The iterated perceptron-von Neumann of Ramdas and Pena: its theorems, round by round."""

import numpy as np
import pytest
from helpers.divided import normalized
from helpers.estimators import overlapping, separable
from helpers.games import excessive_gap, game, rounds, smoothed
from helpers.hard import each_hard, thin, within
from helpers.oracle import best_margin

from marginsvm import PerceptronVonNeumann
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.responses import euclidean
from marginsvm.problem.rows import make_rows


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", [separable, overlapping])
def test_lemmas_8_and_9(balanced, k, kind, rng):
    """The same gap for the Euclidean distance; mu here is the paper's over n."""
    X, y = kind(rng, n=45, k=k)
    data = LinearAdapter(normalized(X), make_rows(y, k, balanced=balanced))
    for state in rounds(PerceptronVonNeumann(gamma_outer=2.0), data, 200):
        at, centre = smoothed(state.inner), state.q.coef

        def distance(q, centre=centre):
            return 0.5 * np.sum((q - centre) ** 2) / data.rows.prior

        gap = excessive_gap(data, at.alpha, at.p, at.mu, at.answer, distance)
        assert gap <= 1e-12


def test_projection_is_ramdas(rng):
    """p_mu^q is the point of the simplex nearest to q - G alpha / mu."""
    n = 25
    rows = make_rows(np.arange(n) % 2, 2, balanced=False)
    for scale in (1e-3, 0.1, 10.0):
        q, Ga = rng.dirichlet(np.ones(n)), scale * rng.standard_normal(n)
        p = euclidean(rows, Ga, mu=1.0 / n, centre=q).q  # the paper's mu is 1
        v = q - Ga
        threshold = (v - p)[p > 0]
        np.testing.assert_allclose(threshold, threshold[0], atol=1e-12)
        assert np.all(v[p == 0] <= threshold[0] + 1e-12)


@each_hard
def test_theorem_4_where_the_classes_are_separable(kind, rng):
    """The rounds of each call of SNKPVN, how many calls there are, and a separator in the last."""
    X, y = kind(rng)
    data = game(normalized(X), y)
    rho = best_margin(X / np.linalg.norm(X, axis=1)[:, None], y, fit_intercept=False)
    calls = [0]
    for state in rounds(PerceptronVonNeumann(gamma_outer=2.0), data, 3000):
        calls += [0] * (state.t + 1 - len(calls))
        calls[-1] += 1
        if separates := state.inner.measured.min_margin > 0:
            break
    assert separates
    within(max(calls), 2 * np.sqrt(2 * len(X)) / rho, "rounds of the longest call")
    within(len(calls), np.log2(1 / rho) + 1, "calls")
    assert len(calls) > 1 or kind is thin
    params = {"fit_intercept": False, "normalize": True, "gamma_outer": 2.0}
    clf = PerceptronVonNeumann(**params).fit(X, y)
    assert (clf.separable_, clf.n_iter_, clf.n_outer_) == (True, sum(calls), len(calls))


def test_theorem_4_where_they_are_not(rng):
    X, y = overlapping(rng, n=80)
    epsilon = 1e-6
    data = LinearAdapter(normalized(X), make_rows(y, 2, balanced=False))
    clf = PerceptronVonNeumann(fit_intercept=False, gamma_outer=2.0, epsilon=epsilon)
    goals, lengths, last = [], [], None
    for state in rounds(clf, data, 2000):
        if state.t != last:
            goals.append(state.delta)
            lengths.append(0)
            last = state.t
        lengths[-1] += 1
        if (length := data.norm(smoothed(state.inner).p)) < epsilon:
            break
    assert length < epsilon
    assert np.all(np.diff(np.log2(goals)) <= -1 + 1e-9)  # eq. (15)
    assert len(goals) <= np.log2(1 / epsilon) + 1
    # Lemma 9: 2 sqrt(2 n) / delta, whatever rho is
    assert all(m <= 2 * np.sqrt(2 * len(X)) / d for m, d in zip(lengths, goals, strict=True))


def test_the_model_where_nothing_separates_sums_up_all_outer_rounds(rng):
    """Twice alpha over mu at the end of each outer round, and of the last inner one."""
    X, y = overlapping(rng, n=30)
    data = LinearAdapter(normalized(X), make_rows(y, 2, balanced=False))
    clf = PerceptronVonNeumann(gamma_outer=2.0)
    ended, before = data.zeros(), None
    for state in rounds(clf, data, 60):
        if before is not None and state.t > before.t:
            ended = ended + before.inner.W
        *_, model = clf._algorithm().candidates(data, state)
        expected = ended + state.inner.W
        np.testing.assert_allclose(model.vector.coef, expected.coef, rtol=1e-12)
        before = state
    assert model.fallback
    assert before.t >= 3
