"""Perceptrons: the theorems of Ramdas and Pena, of Hanashiro and Abernethy, and the baselines."""

from functools import partial

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit, overlapping, separable
from helpers.games import (
    excessive_gap,
    game,
    known,
    normalized,
    optimum,
    rounds,
    section_3,
    smoothed,
    unit_rows,
)
from helpers.hard import chain, each_hard, lopsided, small, thin, within
from helpers.oracle import best_margin
from helpers.pairwise import pairwise
from scipy.optimize import nnls
from scipy.spatial import ConvexHull
from scipy.special import softmax
from sklearn.model_selection import GridSearchCV

from marginsvm import (
    BatchPerceptron,
    KernelPerceptron,
    LpPerceptron,
    NormalizedKernelPerceptron,
    OptimisticPerceptron,
    PerceptronVonNeumann,
    SmoothedKernelPerceptron,
    VonNeumannClassifier,
    check_certificate,
)
from marginsvm.problem.adapter import GramAdapter, LinearAdapter
from marginsvm.problem.rows import make_rows


def unit(X, y):
    return known(X, y, normalize=True)


KINDS = {
    "lopsided": lopsided,
    "lopsided, 3 classes": partial(lopsided, k=3, n=45),
    "a twentieth": partial(lopsided, gamma=0.05),
    "thin": thin,
    "chain": chain,
    "overlapping": partial(overlapping, n=60),
    "overlapping, 3 classes": partial(overlapping, k=3, n=45),
}


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_lemmas_4_and_5_and_theorem_1(balanced, kind, rng):
    """By Lemma 5, |p_k|^2 <= rho^2 + 8 ln n / ((k + 1)(k + 2)): a proof if nothing separates."""
    data, _, rho = known(*KINDS[kind](rng), balanced=balanced, normalize=True)
    rho *= rho > 1e-9

    def entropy(q):
        return np.sum(q[q > 0] * np.log(q[q > 0] / data.rows.prior))

    enough, last, most = 2 * np.sqrt(2 * np.log(data.n_rows)) / max(rho, 1e-12), 0, 0.0
    for state in rounds(SmoothedKernelPerceptron(), data, min(int(enough) + 20, 300)):
        at = smoothed(state)
        assert excessive_gap(data, at.alpha, at.p, at.mu, at.answer, entropy) <= 1e-12
        assert data.norm(at.p) >= rho * (1 - 1e-5) - 1e-12
        most = max(most, (data.norm(at.p) ** 2 - rho**2) * (at.k + 1) * (at.k + 2))
        for weights in (at.alpha.coef, at.p.coef):
            assert weights.min() >= 0
            np.testing.assert_allclose(weights.sum(), 1.0)
        if not balanced:  # Lemma 4: the answer to alpha is the maximiser in L_mu
            margins, q = data.margins(at.alpha), at.answer.coef
            smooth = -(margins[q > 0] @ q[q > 0]) - at.mu * entropy(q)
            assert smooth >= -margins.min() - at.mu * np.log(data.n_rows) - 1e-12
            assert smooth <= -margins.min() + 1e-12
        if at.min_margin <= 0:
            last = at.k
    within(
        most, 8 * np.log(data.n_rows), "excess of the squared norm times (k + 1)(k + 2)"
    )
    if "overlapping" not in kind:
        assert last > 10 or balanced  # the statement can fail
        within(last, enough, "the last round without a separator")


def test_smoothed_perceptron_is_algorithm_4s(rng):
    X, y = separable(rng, n=40)
    linear, A, _ = unit(X, y)
    G, n = A @ A.T, len(A)
    lengths = np.linalg.norm(X, axis=1)
    kernel = GramAdapter(lambda a, b: a @ b.T, X, linear.rows, scale=1.0 / lengths)
    for data in (linear, kernel):
        alpha, mu = np.full(n, 1.0 / n), 2.0
        p = softmax(-G @ alpha / mu)
        for k, state in enumerate(rounds(SmoothedKernelPerceptron(), data, 60)):
            at = smoothed(state)
            np.testing.assert_allclose(at.alpha.coef, alpha, atol=1e-12)
            np.testing.assert_allclose(at.p.coef, p, atol=1e-12)
            np.testing.assert_allclose(at.mu, mu)
            theta = 2 / (k + 3)
            alpha = (1 - theta) * (alpha + theta * p) + theta**2 * softmax(
                -G @ alpha / mu
            )
            mu = (1 - theta) * mu
            p = (1 - theta) * p + theta * softmax(-G @ alpha / mu)


def test_a_round_is_one_product_with_the_gram_matrix(rng):
    X, y = separable(rng, n=60)
    for cls in (SmoothedKernelPerceptron, PerceptronVonNeumann, OptimisticPerceptron):
        clf = fit(cls(kernel="rbf", stopping="gap", tol=0.0, max_iter=50), X, y)
        assert clf.history_["n_passes"][-1] <= 50 + 4


# The iterated perceptron-von Neumann of Ramdas and Pena: its theorems, round by round.


@pairwise(balanced=[True, False], k=[2, 3], kind=[separable, overlapping])
def test_lemmas_8_and_9(balanced, k, kind, rng):
    """The same gap for the Euclidean distance; mu here is the paper's over n."""
    X, y = kind(rng, n=45, k=k)
    data = LinearAdapter(normalized(X), make_rows(y, k, balanced=balanced))
    for state in rounds(PerceptronVonNeumann(gamma_outer=2.0), data, 200):
        at, centre = smoothed(state.inner), state.q.coef

        def distance(q, centre=centre):
            return 0.5 * np.sum((q - centre) ** 2) / data.rows.prior

        assert excessive_gap(data, at.alpha, at.p, at.mu, at.answer, distance) <= 1e-12


@each_hard
def test_theorem_4_where_the_classes_are_separable(kind, rng):
    """The rounds of each call of SNKPVN, how many calls there are, and a separator in the last."""
    X, y = kind(rng)
    data, _, rho = unit(X, y)
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
    assert all(
        m <= 2 * np.sqrt(2 * len(X)) / d for m, d in zip(lengths, goals, strict=True)
    )


def test_goals_of_outer_rounds_are_algorithm_7s(rng):
    """A round of SNKPVN ends at a norm of ||q|| over gamma; the next begins there."""
    data = game(*overlapping(rng))
    for state in rounds(PerceptronVonNeumann(gamma_outer=4.0), data, 150):
        np.testing.assert_allclose(state.delta, data.norm(state.q) / 4.0)
    assert state.t >= 2


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


# What Ramdas and Pena state beside their theorems, of the margin: section 2.2 and section 3.


@pytest.mark.parametrize("margin", [0.3, 0.05])
def test_lemmas_1_to_3_where_a_separator_exists(margin, rng):
    """The largest margin gives the minimum of L, and a negative L a separator."""
    data, A, rho = unit(*separable(rng, n=40, d=4, margin=margin))

    def loss(w):
        return -(A @ w).min() + 0.5 * w @ w

    others, separators = rng.standard_normal((200, 4)), 0
    assert min(map(loss, np.vstack([others, rho * others]))) >= -0.5 * rho**2
    for state in rounds(SmoothedKernelPerceptron(), data, 400):
        alpha = smoothed(state).alpha
        w, size = A.T @ alpha.coef, np.abs(alpha.coef).sum()
        assert data.norm(alpha) <= size * (1 + 1e-12)  # Lemma 2
        assert size <= np.sqrt(len(A)) * np.linalg.norm(alpha.coef) * (1 + 1e-12)
        assert loss(w) >= -0.5 * rho**2 * (1 + 1e-5)
        if loss(w) < 0:
            assert (A @ w).min() > 0
            separators += 1
    assert separators > 0
    assert loss(w) <= -0.45 * rho**2  # on its way to the minimum


@pytest.mark.parametrize("kind", [lopsided, chain])
def test_the_normalized_perceptron_converges_to_the_largest_margin(kind, rng):
    """The remark after Algorithm 3: four times the rounds, clearly less of a shortfall."""
    data, _, rho = unit(*kind(rng))
    short = {}
    for k, state in enumerate(
        rounds(NormalizedKernelPerceptron(), data, 4000), start=1
    ):
        if k in (1000, 4000):
            short[k] = 1 - state.p.weights.min_margin / data.norm(state.w) / rho
    print(f"shortfall of the margin: {short}")
    assert -1e-5 <= short[4000] < 0.6 * short[1000]
    assert short[4000] < 0.1


# Where nothing separates: section 5.2 and section 6.


def surrounding(rng, d, n=24):
    """Rows of norm 1 whose hull has the origin inside, as data; and the ball's radius."""
    while True:
        X, y = rng.standard_normal((n, d)), np.arange(n) % 2
        # of the nearest facet
        radius = -ConvexHull(unit_rows(X, y)).equations[:, -1].max()
        if radius > 0.05:
            return X, y, radius


def distance_to_witnesses(A, q):
    """Least |q - w|_2 over w in the simplex with A'w = 0."""
    stiff = 1e5
    blocks = np.vstack([np.eye(len(A)), stiff * A.T, stiff * np.ones((1, len(A)))])
    w = nnls(blocks, np.r_[q, np.zeros(A.shape[1]), stiff])[0]
    assert np.linalg.norm(A.T @ w) < 1e-6
    return np.linalg.norm(q - w)


def smooth_loss(A, state):
    """``L^q_mu(alpha)``, mu, and ``w = A' alpha``; mu here is the paper's over n."""
    at = smoothed(state.inner)
    mu, w, p = len(A) * at.mu, A.T @ at.alpha.coef, at.answer.coef
    return (
        -(A @ w) @ p - 0.5 * mu * np.sum((p - state.q.coef) ** 2) + 0.5 * w @ w,
        mu,
        w,
    )


@pytest.mark.parametrize("d", [2, 3, 4])
def test_lemmas_7_and_9_and_theorem_4_with_the_margin(d, rng):
    """All that has |rho| in it: distance to the proofs, bound on L, lengths of inner loops."""
    X, y, radius = surrounding(rng, d)
    A, n = unit_rows(X, y), len(X)
    for q in [*rng.dirichlet(np.full(n, 0.1), 20), *np.eye(n)[:5]]:
        reach = np.sqrt(2) * min(1.0, np.linalg.norm(A.T @ q) / radius)
        assert distance_to_witnesses(A, q) <= reach + 1e-6
    gamma, epsilon = 2.0, 1e-7
    data = game(normalized(X), y)
    clf = PerceptronVonNeumann(gamma_outer=gamma, epsilon=epsilon, fit_intercept=False)
    lengths, limits, last = [], [], None
    for state in rounds(clf, data, 2000):
        at, q = smoothed(state.inner), state.q.coef
        if state.t != last:
            last, far = state.t, distance_to_witnesses(A, q)
            length = np.linalg.norm(A.T @ q)
            limits.append(
                2 * np.sqrt(n) / state.delta * min(np.sqrt(2), length / radius)
            )
            lengths.append(0)
        lengths[-1] += 1
        value, mu, _ = smooth_loss(A, state)
        assert value >= -0.5 * mu * (far + 1e-6) ** 2 - 1e-12  # Lemma 9
        if data.norm(at.p) < epsilon:
            break
    assert data.norm(at.p) < epsilon
    assert all(m <= limit for m, limit in zip(lengths, limits, strict=True))
    # |q| is below |rho| by then: sqrt(n) / |rho| decides
    later = lengths[len(lengths) // 2 :]
    assert max(later) <= 2 * np.sqrt(n) * gamma / radius


@each_hard
def test_lemma_8_where_a_separator_exists(kind, rng):
    """L^q_mu(alpha) >= L(alpha) - mu, and SNKPVN separates within 2 sqrt(2 n) / rho rounds."""
    data, A, rho = unit(*kind(rng))
    enough, last, endless = (
        2 * np.sqrt(2 * len(A)) / rho,
        0,
        PerceptronVonNeumann(gamma_outer=1e9),
    )
    for state in rounds(endless, data, int(enough) + 20):
        value, mu, w = smooth_loss(A, state)
        assert value >= -(A @ w).min() + 0.5 * w @ w - mu - 1e-12
        if (A @ w).min() <= 0:
            last = state.inner.t - 1
    assert last > 10
    within(last, enough, "the last round without a separator")


@each_hard
def test_mistakes_and_rounds_of_perceptrons(kind, rng):
    """Block and Novikoff: r^2 / gamma^2 for any misclassified rows, 1 / rho_2^2 on unit rows."""
    X, y = kind(rng)
    params = {"fit_intercept": False, "max_iter": 5000}
    r, gamma = np.linalg.norm(X, axis=1).max(), best_margin(X, y, fit_intercept=False)
    mistakes = fit(KernelPerceptron(**params), X, y).n_mistakes_
    within(mistakes, (r / gamma) ** 2, "mistakes of Rosenblatt's perceptron")
    params["stopping"] = "separation"
    batch = fit(BatchPerceptron(**params), X, y)
    within(batch.n_iter_, (r / gamma) ** 2, "rounds of the batch perceptron")
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    rho = best_margin(unit, y, fit_intercept=False)
    normalized_ones = [
        fit(cls(normalize=True, **params), X, y)
        for cls in (NormalizedKernelPerceptron, VonNeumannClassifier)
    ]
    for clf in normalized_ones:
        within(clf.n_iter_, 1 / rho**2, f"rounds of {type(clf).__name__}")
    assert all(clf.status_ == "separated" for clf in (batch, *normalized_ones))
    assert min(mistakes, batch.n_iter_, *(clf.n_iter_ for clf in normalized_ones)) > 2


@each_hard
@pytest.mark.parametrize("p", [2.0, 1.5, 1.2])
def test_mistakes_of_the_lp_perceptron(p, kind, rng):
    """Grove, Littlestone and Schuurmans: (q - 1) max |x|_q^2 / gamma^2, q - 1 = 1 / (p - 1)."""
    X, y = kind(rng)
    data, most = game(X, y, p), 0
    least = np.sqrt(optimum(data, X, y, p).sum())  # 1 / gamma in units of the radius
    for seed in range(3):
        clf = LpPerceptron(p=p, fit_intercept=False, random_state=seed)
        for state in rounds(clf, data, 300):
            if data.margins(state.u).min() > 0:
                break
        most = max(most, state.u.coef.sum())
    assert most > 10
    within(most, least**2 / (p - 1), "mistakes")


def test_von_neumann_where_nothing_separates(rng):
    """Dantzig: |w_k| <= epsilon within 1 / epsilon^2 rounds; Epelman and Freund: the factor
    sqrt(1 - rho^2) a round, hence (2 / rho^2) log(1 / epsilon) rounds."""
    X, y, radius = surrounding(rng, 3)
    data = game(normalized(X), y)
    before = np.linalg.norm(unit_rows(X, y).mean(axis=0))
    for k, state in enumerate(rounds(VonNeumannClassifier(), data, 300), start=1):
        norm = data.norm(state.p)
        assert norm <= 1 / np.sqrt(k)
        assert norm <= before * np.sqrt(1 - radius**2) + 1e-12
        before = norm
    assert norm < 1e-2


# The optimistic perceptron: the theorems of Hanashiro and Abernethy, round by round.


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
        np.testing.assert_allclose(state.W.image, output, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state.last.coef, p, rtol=1e-8)
        np.testing.assert_allclose(state.W.mass, state.t * (state.t + 1) / 2)


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
    """Below the paper's range, too: longer steps, and bounds that hold."""
    X, y = separable(rng)
    with pytest.raises(ValueError, match=r"'r'.*\[0\.001, inf\)"):
        OptimisticPerceptron(r=1e-4).fit(X, y)
    grid = {"r": [0.25, 0.5, 1.0, 2.0]}
    search = GridSearchCV(OptimisticPerceptron(), grid, cv=2).fit(1e6 * X, y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    short, paper = (OptimisticPerceptron(r=r).fit(X, y) for r in (0.5, 1.0))
    assert short.status_ == paper.status_ == "certified"
    assert short.margin_ <= paper.margin_bound_
    assert paper.margin_ <= short.margin_bound_
    assert short.n_iter_ < paper.n_iter_


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
    for t, state in enumerate(
        rounds(NormalizedKernelPerceptron(), data, n + 1), start=1
    ):
        assert (data.margins(state.w).min() > 0) == (t >= n)
    assert fit(KernelPerceptron(fit_intercept=False), X, y).n_mistakes_ == n
    clf = OptimisticPerceptron(fit_intercept=False, stopping="separation")
    assert fit(clf, X, y).n_iter_ == 1


def mnist(shared_data, part, pair):
    data = shared_data("mnist")
    y = data[f"y_{part}"]
    kept = np.isin(y, pair)
    return data[f"X_{part}"].reshape(len(y), -1)[kept].astype(float), y[kept]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "pair", "expected"),
    [
        (SmoothedKernelPerceptron, (0, 1), 15),
        (SmoothedKernelPerceptron, (3, 5), 196),
        (NormalizedKernelPerceptron, (0, 1), 21),
        (NormalizedKernelPerceptron, (3, 5), 1480),
        (PerceptronVonNeumann, (0, 1), 75),
        (PerceptronVonNeumann, (3, 5), 1164),
    ],
)
def test_rounds_on_mnist(cls, pair, expected, shared_data):
    """As many as a prototype counts that shares no code."""
    X, y = mnist(shared_data, "test", pair)
    clf = cls(stopping="separation", fit_intercept=False, normalize=True)
    if cls is PerceptronVonNeumann:
        clf.set_params(gamma_outer=2.0)
    clf.fit(X, y)
    assert clf.separable_ is True
    assert abs(clf.n_iter_ - expected) <= 1 + expected // 100
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("steps", ["constant", "cotter"])
def test_batch_perceptrons_add_the_worst_row(steps, rng):
    """Cotter's with steps of 1 / sqrt(t), projected to the unit ball; the average of all rounds."""
    data, A, _ = known(*separable(rng, n=40))
    w, total, outside = np.zeros(A.shape[1]), np.zeros(A.shape[1]), 0
    for t, state in enumerate(rounds(BatchPerceptron(steps=steps), data, 60), start=1):
        # at w = 0 all are equally bad
        row = A[np.argmin(A @ w)] if t > 1 else A.mean(axis=0)
        if steps == "cotter":
            w = w + row / np.sqrt(t)
            outside += np.linalg.norm(w) > 1.0
            w = w / max(1.0, np.linalg.norm(w))
        else:
            w = w + row
        total += w
        np.testing.assert_allclose(state.w.image, w, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            state.average.image, total / t, rtol=1e-10, atol=1e-12
        )
    assert outside > 10 or steps == "constant"


@each_hard
def test_the_margin_of_cotters_average(kind, rng):
    """At least gamma - 3 / sqrt(T): steps 1 / sqrt(t), gradients of norm 1, a ball of width 2."""
    data, _, gamma = known(*small(kind, rng))
    short = 0.0
    for state in rounds(BatchPerceptron(steps="cotter"), data, int(6 / gamma**2)):
        if state.t & (state.t - 1) == 0:  # sometimes
            margin = data.margins(state.average).min()
            short = max(short, (gamma - margin) * np.sqrt(state.t))
    within(
        short, 3.0, "shortfall of the average's margin, times the root of the rounds"
    )
    assert margin > 0


def test_normalized_kernel_perceptron_is_algorithm_3s(rng):
    data, A, _ = known(*separable(rng, n=40), normalize=True)
    alpha = np.zeros(len(A))
    for k, state in enumerate(rounds(NormalizedKernelPerceptron(), data, 60)):
        theta = 1 / (k + 1)
        alpha = (1 - theta) * alpha + theta * np.eye(len(A))[
            np.argmin(A @ (A.T @ alpha))
        ]
        np.testing.assert_allclose(state.w.coef / (k + 1), alpha, atol=1e-12)
        assert state.w.coef.min() >= 0  # the second remark: alpha stays in the simplex
        np.testing.assert_allclose(state.w.coef.sum(), k + 1)


def test_von_neumann_is_algorithm_5s(rng):
    data, A, _ = known(*overlapping(rng, n=40), normalize=True)
    p = np.full(len(A), 1.0 / len(A))
    for state in rounds(VonNeumannClassifier(), data, 60):
        w = A.T @ p
        j = np.argmin(A @ w)
        lam = np.linspace(0, 1, 10_001)[:, None]
        exact = lam[np.argmin(np.linalg.norm((1 - lam) * w + lam * A[j], axis=1)), 0]
        before, p = p, state.p.coef.copy()
        theta = (p[j] - before[j]) / (1 - before[j])
        np.testing.assert_allclose(theta, exact, atol=2e-4)
        np.testing.assert_allclose(
            p, (1 - theta) * before + theta * np.eye(len(A))[j], atol=1e-12
        )


@pytest.mark.parametrize("n", [*range(2, 7), slow(7)])
def test_mistakes_of_rosenblatts_perceptron_on_the_data_of_section_3(n):
    clf = KernelPerceptron(fit_intercept=False).fit(*section_3(n))
    assert clf.n_mistakes_ == (4**n - 1) // 3


def mistakes_in_turn(A, sign, most):
    """How often each row of ``A = sign * X`` is added by a perceptron, spelled out."""
    w, added, start, n = np.zeros(A.shape[1]), np.zeros(len(A)), 0, len(A)
    for _ in range(most):
        margins = A @ w
        partner = np.arange(n)
        if sign is not None:
            lowest = {
                s: int(np.where(sign == s, margins, np.inf).argmin())
                for s in (-1.0, 1.0)
            }
            partner = np.array([lowest[-s] for s in sign])
        order = np.roll(np.arange(n), -start)
        wrong = [r for r in order if margins[r] + margins[partner[r]] <= 0.0]
        if not wrong:
            break
        both = [wrong[0], partner[wrong[0]]]
        w += 0.5 * A[both].sum(axis=0)
        np.add.at(added, both, 0.5)
        start = (wrong[0] + 1) % n
    return added


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_rosenblatts_perceptron_visits_rows_in_turn(kernel, fit_intercept, rng):
    X, y = overlapping(rng, n=30, d=4)
    X, sign = X / np.linalg.norm(X, axis=1).max(), np.where(y == 1, 1.0, -1.0)
    params = {
        "kernel": kernel,
        "gamma": 1.0,
        "degree": 1,
        "fit_intercept": fit_intercept,
    }
    clf = fit(KernelPerceptron(max_iter=200, warm_start=True, **params), X, y)
    expected = mistakes_in_turn(sign[:, None] * X, sign if fit_intercept else None, 200)
    assert clf.n_mistakes_ == expected.sum() == 200
    np.testing.assert_array_equal(clf._progress.state.w.coef, expected)
    assert (expected > 0).sum() > 10


def test_rosenblatts_perceptron_tells_thin_margins_from_none(rng):
    clf = KernelPerceptron(fit_intercept=False).fit([[1.0], [-5e-11]], [1, -1])
    assert (clf.status_, clf.n_mistakes_) == ("separated", 1)
    X, y = separable(rng, n=20, d=4)
    X[::3] *= 1e-10
    expected = mistakes_in_turn(
        np.where(y == 1, 1.0, -1.0)[:, None] * X, None, 10_000
    ).sum()
    clf = KernelPerceptron(fit_intercept=False, tol=0.0).fit(X, y)
    assert (clf.status_, clf.n_mistakes_) == ("separated", expected)
