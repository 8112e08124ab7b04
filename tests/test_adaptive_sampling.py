"""Algorithm 2 against the plain recursion, its theorem, and the columns it goes by."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit, separable
from helpers.games import flat, known, rounds
from helpers.hard import lopsided
from helpers.oracle import explicit_rows
from scipy.special import logsumexp, softmax
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from threadpoolctl import threadpool_limits

from marginsvm import (
    AdaptiveSamplingKernelClassifier,
    BatchPerceptron,
    _compiling,
    theory_draws,
)
from marginsvm.kernels import two_layer_relu_ntk
from marginsvm.papers import adaptive_sampling, draws
from marginsvm.papers.adaptive_sampling import Draws
from marginsvm.problem import responses
from marginsvm.problem.adapter import GramAdapter
from marginsvm.problem.column_cache import ColumnCache, ColumnPlan
from marginsvm.problem.rows import make_rows
from marginsvm.schedules import (
    NesterovSchedule,
    PowerSchedule,
    each_of,
    momentum_at,
    step_at,
    theory_step,
)

SCHEDULES = {
    "nesterov": (lambda t: 1.0, lambda t: t / (t + 1)),
    "zero": (lambda t: 0.3, lambda t: 0.0),
    "small": (lambda t: 1.0, lambda t: 0.01),
    "decaying": (lambda t: (t + 1) ** -0.5, lambda t: 0.5),
    "random": (
        lambda t: np.random.RandomState(t).rand(),
        lambda t: (t % 7 > 0) * np.random.RandomState(t + 999).rand(),
    ),
    "one": (lambda t: 1.0, lambda t: 1.0),
}


PLAN = ColumnPlan(1.0, 1)


def problem(rng, k, n=60, d=7, C=np.inf, balanced=False, weights=None):
    y = rng.permutation(np.arange(n) % k)
    X = rng.standard_normal((n, d)) + 2 * rng.standard_normal((k, d))[y]
    rows = make_rows(y, k, balanced=balanced, weights=weights)
    return X, y, GramAdapter(None, X @ X.T, rows, C, plan=PLAN)


def draw_one_by_one(monkeypatch):
    """A step is one draw."""
    monkeypatch.setattr(
        adaptive_sampling.AdaptiveSampling, "n_rounds", lambda self, n: 1
    )


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(
    ("k", "C", "balanced"),
    [
        slow(2, np.inf, False),
        slow(2, 1.0, True),
        slow(4, np.inf, False),
        slow(4, 1.0, False),
        (4, 1.0, True),
    ],
)
def test_iterates_are_the_plain_recursion(name, k, C, balanced, rng, monkeypatch):
    """Draws are read off the coefficients, one at a time; g and w then follow plainly."""
    draw_one_by_one(monkeypatch)
    X, y, data = problem(rng, k, C=C, balanced=balanced)
    A = explicit_rows(X, y, C=C)[0] * data.rows.square**0.5 / data.radius
    G = A @ A.T
    used = np.flatnonzero(np.isfinite(data.margins(data.zeros()).ravel()))
    step, momentum = SCHEDULES[name]
    params = {"step": step, "momentum": momentum, "max_iter": 300, "random_state": 0}
    clf, q_g, q_w = (
        AdaptiveSamplingKernelClassifier(**params),
        np.zeros(len(G)),
        np.zeros(len(G)),
    )
    for t, state in enumerate(rounds(clf, data, 300)):
        theta, beta = step(t), momentum(t)
        (_, new_g), (_, new_w) = table(data, state)
        new_g, new_w = new_g[used], new_w[used]
        a = new_g / beta - q_g if beta > 0 else (new_w - q_w) / theta
        scale = max(1.0, np.abs(q_w).max())
        np.testing.assert_allclose(a.sum(), 1.0, atol=1e-8 * scale / max(beta, 1e-3))
        a = np.round(a * 12) / 12  # shares of cycles: 1, 1/2, 1/3, 1/4
        q_g = beta * (q_g + a)
        q_w = q_w + theta * (q_g + a)
        scale = max(1.0, np.abs(G @ q_w).max())
        for (scores, coef), q in zip(table(data, state), (q_g, q_w), strict=True):
            np.testing.assert_allclose(coef[used], q, atol=1e-8 * scale)
            np.testing.assert_allclose(scores[used], G @ q, atol=1e-8 * scale)


@pytest.mark.parametrize("k", [2, 3])
def test_many_draws_in_a_step_are_as_many_steps(k, rng, monkeypatch):
    """Of the same numbers, each from the q of its own round, with its own step and momentum."""
    _, _, data = problem(rng, k, C=1.0, balanced=True)
    clf, found = AdaptiveSamplingKernelClassifier(random_state=0), []
    assert clf._algorithm().schedules(10)[1](3) == 0.75  # Nesterov's, by default
    for size in (1, 20):
        monkeypatch.setattr(
            adaptive_sampling.AdaptiveSampling, "n_rounds", lambda *_, size=size: size
        )
        *_, state = rounds(clf, data, 40 // size)
        found.append(state)
    assert found[0].t == found[1].t == 40
    for one, other in zip(table(data, found[0]), table(data, found[1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "schedule",
    [
        PowerSchedule(scale=0.3),
        PowerSchedule(0.5),
        PowerSchedule(0.3, scale=2),
        NesterovSchedule(),
        NesterovSchedule(delay=3),
    ],
)
def test_schedules_of_many_rounds_have_the_bits_of_single_ones(schedule):
    rounds = range(7, 3000)
    many = each_of(lambda value, t: value(t), schedule, rounds)
    np.testing.assert_array_equal(many, [schedule(t) for t in rounds])


def test_own_schedules_are_called_once_a_draw():
    """Also those that inherit from one of ours, and an error names the first round."""

    class Own(PowerSchedule):
        def __call__(self, t):
            asked.append(t)
            return 1.0 if t < 30 else -1.0

    asked = []
    each_of(step_at, Own(), range(4, 9))
    assert asked == [4, 5, 6, 7, 8]
    with pytest.raises(ValueError, match=r"step must be .* -1.0 at iteration 30"):
        each_of(step_at, Own(), range(20, 40))
    with pytest.raises(ValueError, match=r"momentum must lie .* 2.0 at iteration 3"):
        each_of(momentum_at, PowerSchedule(scale=2.0), range(3, 9))


def table(data, state):
    """(margins, coefficients) of g and of w, over all the rows."""
    for F, q in ((state.g, state.c_g), (state.w, state.c_w)):
        vector = Draws(data).vector(F, q)
        yield data.margins(vector).ravel(), vector.coef.ravel()


@pytest.mark.slow
def test_rounding_does_not_drift(rng):
    X, y = separable(rng, k=3)
    data = GramAdapter(None, X @ X.T, make_rows(y, 3, balanced=True), 1.0, plan=PLAN)
    algorithm = AdaptiveSamplingKernelClassifier(
        max_iter=5_000, random_state=0
    )._algorithm()
    *_, state = rounds(algorithm, data, 100)
    assert state.t == 5_000
    for candidate in algorithm.candidates(data, state):
        again = data.refresh(candidate.vector)
        scale = again.largest_entry()
        np.testing.assert_allclose(
            flat(candidate.vector), flat(again), atol=1e-9 * scale
        )


def drawn_at(data, w, u):
    """What is drawn with each row of uniform numbers, from the same w: steps of length 0."""
    k, nothing = data.rows.n_classes, np.zeros(len(u))
    draws, offsets = Draws(data), None if k == 2 else np.zeros(k)
    before = w.copy()
    found = draws.play(w, np.zeros_like(w), offsets, 0, u, nothing, nothing)
    np.testing.assert_array_equal(w, before)
    return found, draws.order


@pytest.mark.parametrize("k", [2, slow(3), 5])
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("weighted", [True, slow(False)])
def test_draws_follow_the_softmax(k, balanced, weighted, rng):
    """Over a fine grid of quantiles, the average draw is the package's own response."""
    weights = rng.random(60) + 0.1 if weighted else None
    _, _, data = problem(rng, k, balanced=balanced, weights=weights)
    *_, state = rounds(
        AdaptiveSamplingKernelClassifier(max_iter=5, random_state=0), data, 5
    )
    _, (margins, _) = table(data, state)
    q = responses.softmax(data.rows, margins.reshape(data.rows.shape)).q
    for grid in (
        np.repeat((np.arange(20_000) + 0.5) / 20_000, 1 + k).reshape(-1, 1 + k),
        rng.random((20_000, 1 + k)),
    ):
        found, order = drawn_at(data, state.w, grid)
        counts = np.zeros(q.shape)
        for a in range(found.sizes.max()):
            some = found.sizes > a
            i, c, j = found.rows[some, a].T
            np.testing.assert_array_equal(data.rows.codes[order[i]], c)
            at = (order[i],) if k == 2 else (order[i], j)
            np.add.at(counts, at, 1.0 / found.sizes[some])
        for size in np.unique(found.sizes) if balanced and k > 2 else ():  # cycles
            rows = found.rows[found.sizes == size, :size, 1:]
            np.testing.assert_array_equal(*np.sort(rows, axis=1).transpose(2, 0, 1))
        shares = by_group(data, counts / len(grid)), by_group(data, q)
        np.testing.assert_allclose(*shares, atol=0.02)
    np.testing.assert_allclose(counts / len(grid), q, atol=0.02)


def by_group(data, q):
    """Sums over the groups (c, j)."""
    k, y = data.rows.n_classes, data.rows.codes
    sums = np.array([q[y == c].sum(axis=0) for c in range(k)])
    return sums.reshape(k, -1) * (1.0 - np.eye(k))


@pytest.mark.parametrize("n", [2, 5, 600, 5_000])
def test_quantiles(n, rng):
    """Of few weights and of many, as by one running sum; never of a weight that is 0."""
    weights = np.ones(2 * n)
    weights[:n] = rng.random(n) * (rng.random(n) < 0.3)
    weights[n // 2], weights[n - 1] = 1.0, 0.0
    rows = make_rows(np.arange(2 * n) // n, 2, balanced=True)
    X = rng.standard_normal((2 * n, 2))
    data = GramAdapter(linear_kernel, X, rows, plan=ColumnPlan(100.0, 1))
    rows.weights = weights
    u = np.r_[0.0, rng.random(100), 1.0]
    found, _ = drawn_at(data, np.zeros((1, 2 * n)), np.repeat(u[:, None], 3, axis=1))
    i, running = found.rows[:, 0, 0], weights[:n].cumsum()
    assert np.all(weights[i] > 0)
    at, rounding = u * running[-1], 1e-9 * running[-1]
    np.testing.assert_array_less(running[i] - weights[i], at + rounding)
    np.testing.assert_array_less(at, running[i] + rounding)


def test_cycles_of_a_table_that_is_not_balanced_end(monkeypatch):
    """What iterationing leaves is followed to its dead end, and dropped."""
    monkeypatch.setattr(_compiling, "njit", None)
    source = Path(draws.__file__).read_text()
    plain = {"__name__": "plain"}  # parts cannot be called once they are compiled
    exec(source, plain)

    def cycle_at(share, u):
        q = plain["Response"].room(np.arange(len(share) + 1), len(share))
        q.share[:] = share
        size = plain["cycle"](q, u)
        return q.path[: size + 1].tolist()

    assert cycle_at([[0.0, 0.5], [0.5 - 1e-16, 0.0]], 1 - 1e-16) == [0, 1, 0]
    chain = [[0.0, 0.5, 0.0], [0.0, 0.0, 0.1], [0.4, 0.0, 0.0]]
    assert cycle_at(chain, 0.9) == [0, 1, 2, 0]


@pytest.mark.parametrize("u", [0.0, 1 - 2**-53])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("balanced", [True, False])
def test_extreme_uniforms_and_scores_give_valid_rows(u, spread, balanced, rng):
    _, _, data = problem(rng, 5, n=300, balanced=balanced)
    w = spread * rng.standard_normal((5, 300))
    found, order = drawn_at(data, w, np.full((1, 6), u))
    i, c, j = found.rows[0, : found.sizes[0]].T
    assert np.all(data.rows.codes[order[i]] == c)
    assert np.all(c != j)
    assert not balanced or set(c) == set(j)


def columns_of(X, y):
    """A game by columns of its Gram matrix, its rows written out, and its best margin."""
    data, A, best = known(X, y)
    return GramAdapter(None, X @ X.T, data.rows, plan=PLAN), A, best


def test_theorem_4_1(rng):
    """With the theorem's T, at least 1 - delta of 20 runs reach the margin less epsilon."""
    data, _, gamma = columns_of(*lopsided(rng, n=20, gamma=0.6))
    delta, epsilon, found = 0.2, 0.8 * gamma, []
    T = theory_draws(epsilon, delta, margin=gamma, n_samples=20)
    for seed in range(20):
        clf = AdaptiveSamplingKernelClassifier(
            schedule="theory", max_iter=T, random_state=seed
        )
        assert clf._algorithm().schedules(20)[0](0) == theory_step(20, T)
        *_, state = rounds(clf, data, 100)
        assert state.t == T
        w = next(clf._algorithm().candidates(data, state)).vector
        found.append(data.margins(w).min() / data.norm(w))
        assert data.norm(w) >= gamma * np.sqrt(T * np.log(20)) * (1 - 1e-6)  # Lemma D.2
    reached = np.mean(np.array(found) >= gamma - epsilon)
    print(f"T = {T}, gamma {gamma:.3f}: {reached:.1%} of the runs within epsilon")
    print(
        f"margins of {min(found) / gamma:.1%} to {max(found) / gamma:.1%} of the best"
    )
    assert reached >= 1 - delta


def test_lemmas_d_1_and_d_2(rng, monkeypatch):
    """Bounds on psi and on |w_t|, each with probability 1 - delta / 2, for any number of draws."""
    draw_one_by_one(monkeypatch)
    data, A, least = columns_of(*lopsided(rng, n=20, gamma=0.5))
    T, delta, log_n, low, long = 200, 0.2, np.log(20), [], []
    theta = theory_step(20, T)
    for seed in range(20):
        clf = AdaptiveSamplingKernelClassifier(
            schedule="theory", max_iter=T, random_state=seed
        )
        m, squares, lengths = np.zeros(20), 0.0, 0.0
        for state in rounds(clf, data, T):
            length = np.linalg.norm(A.T @ softmax(-m))
            squares, lengths = squares + theta * length**2, lengths + theta * length
            _, (m, coef) = table(data, state)
        lowest = squares - 2 * log_n - np.sqrt(8 * np.log(2 / delta) * log_n)
        low.append(-logsumexp(-m) - lowest)
        long.append(lengths + np.sqrt(8 * log_n / delta) - np.linalg.norm(A.T @ coef))
        assert np.linalg.norm(A.T @ coef) >= least * np.sqrt(T * log_n) * (1 - 1e-6)
    print(
        f"D.1: room of {min(low):.2f} to {max(low):.2f}; D.2: {min(long):.2f} to {max(long):.2f}"
    )
    assert np.mean(np.array(low) >= 0) >= 1 - delta / 2
    assert np.mean(np.array(long) >= 0) >= 1 - delta / 2


def test_draws_of_theorem_4_1_as_printed():
    """The formula written out; units; and more than two classes by the reduction."""
    n, gamma, epsilon, delta = 50, 0.3, 0.1, 0.05
    first = (32 * np.log(n) + 64 * np.log(2 / delta)) / (gamma**2 * epsilon**2)
    T = theory_draws(epsilon, delta, margin=gamma, n_samples=n)
    assert np.ceil(first) == T
    assert (
        theory_draws(8 * epsilon, delta, margin=8 * gamma, n_samples=n, radius=8.0) == T
    )
    assert theory_draws(epsilon, 1e-6, margin=gamma, n_samples=n) == np.ceil(
        32 / 1e-6 / epsilon**2
    )
    three = theory_draws(epsilon, delta, margin=gamma, n_samples=n, n_classes=3)
    root = np.sqrt(2)
    assert three == theory_draws(
        epsilon / root, delta, margin=gamma / root, n_samples=2 * n
    )
    for wrong in ({"delta": 1.0}, {"epsilon": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            theory_draws(
                **{"epsilon": epsilon, "delta": delta, **wrong},
                margin=gamma,
                n_samples=n,
            )


KERNELS = {"linear": linear_kernel, "rbf": rbf_kernel, "poly": polynomial_kernel}
KERNELS["ntk"] = two_layer_relu_ntk(16)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_column_has_the_same_bits_in_every_batch(name, dtype, rng):
    X = rng.standard_normal((2 * 4096 + 77, 30)).astype(dtype)
    rows, ids = (
        make_rows(np.arange(len(X)) % 2, 2, balanced=False),
        rng.permutation(500)[:16],
    )
    prepared = KERNELS[name].prepare(X) if name == "ntk" else X
    data = GramAdapter(KERNELS[name], prepared, rows, np.inf, plan=ColumnPlan(10.0, 16))
    reference = data.examples.values(ids)
    assert reference.dtype == dtype
    np.testing.assert_allclose(
        reference, KERNELS[name](X[ids], X), rtol=1e-4, atol=1e-4
    )
    for threads in (1, 2):
        order, others = rng.permutation(16), rng.integers(0, len(X), 16)
        mixed = np.where(np.arange(16) % 3 == 0, ids[order], others)
        with threadpool_limits(threads):
            np.testing.assert_array_equal(
                data.examples.values(ids[order]), reference[order]
            )
            np.testing.assert_array_equal(
                data.examples.values(mixed)[::3], reference[order][::3]
            )
            same = data.examples.values(np.repeat(ids[3], 16))
        np.testing.assert_array_equal(same, reference[[3] * 16])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linear", "rbf", two_layer_relu_ntk(16)])
@pytest.mark.parametrize("fit_intercept", [True, slow(False)])
def test_same_seed_same_model_whatever_the_cache(kernel, fit_intercept, rng):
    X, y = separable(rng, n=400, d=8, k=3)
    params = {
        "kernel": kernel,
        "fit_intercept": fit_intercept,
        "max_iter": 300,
        "tol": 0.0,
    }

    def model(**more):
        return fit(
            AdaptiveSamplingKernelClassifier(**{**params, "random_state": 0, **more}),
            X,
            y,
        )

    reference = model()
    F = reference.decision_function(X)
    evaluations = []
    for size in (0.0, 0.05, 0.3, 100.0):
        clf = model(cache_size=size)
        np.testing.assert_array_equal(clf.decision_function(X), F)
        np.testing.assert_array_equal(
            clf.history_["margin"], reference.history_["margin"]
        )
        evaluations.append(clf.n_kernel_evaluations_)
        assert 0.0 <= clf.cache_hit_rate_ < 1.0
    assert evaluations == sorted(evaluations, reverse=True)
    with threadpool_limits(1):
        np.testing.assert_array_equal(model().decision_function(X), F)
    assert np.any(model(random_state=1).decision_function(X) != F)


def cache_of(capacity, width):
    """A cache of as many columns of 100 numbers, and what it computes at a time."""
    asked = []

    def compute(ids):
        asked.append(ids.tolist())
        return np.repeat(ids[:, None], 100, 1).astype(np.float32)

    return ColumnCache(
        compute, 100, np.dtype(np.float32), capacity * 400 / 2**20, width, 2
    ), asked


def test_least_recently_used_goes_first():
    cache, asked = cache_of(3, 1)
    assert len(cache.columns) == 3
    for i in (1, 2, 3, 1, 4, 2, 1):
        cache.fetch(np.array([i]))
        np.testing.assert_array_equal(cache.columns[cache.slot[i]], i)
    assert asked == [[1], [2], [3], [4], [2]]  # 4 pushes out 2, not 1; 2 pushes out 3
    for part, columns in cache.take(np.array([1, 50])):
        np.testing.assert_array_equal(columns, np.repeat(part[:, None], 100, 1))
    assert cache.slot[50] == -1


def test_guesses_grow_while_they_are_used():
    cache, asked = cache_of(1000, 4)
    allowed = []

    def likely(most):
        allowed.append(most)
        return np.arange(20, 20 + min(most, 5))

    cache.fetch(np.array([7]), likely)
    assert asked == [[7, 20, 21, 22], [23, 24, 23, 24]]  # products of one width
    cache.fetch(np.array([20, 21]), likely)  # nothing is missing
    cache.fetch(np.array([8]), likely)
    assert allowed == [16, 15]  # five guesses, of which two are used
    cache.fetch(np.array([9]))
    assert asked[-1] == [9, 9, 9, 9]


@pytest.mark.slow
def test_memory_is_bounded(rng):
    """Beyond X: the cache, and some arrays of N x k; never the N x N matrix."""
    N, k, cache = 6000, 3, 8.0
    X, y = separable(rng, n=N, d=20, k=k)
    X = X.astype(np.float32)
    clf = AdaptiveSamplingKernelClassifier(
        kernel="rbf",
        fit_intercept=False,
        max_iter=200,
        cache_size=cache,
        random_state=0,
    )
    fit(clf, X[:100], y[:100])
    tracemalloc.start()
    fit(clf, X, y)
    peak = tracemalloc.get_traced_memory()[1]
    clf.predict(X)
    predicted = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"{peak / 2**20:.1f} MB, cache {cache} MB, N k floats {N * k * 8 / 2**20:.2f} MB"
    )
    assert peak < cache * 2**20 + 60 * N * k * 8
    assert predicted < cache * 2**20 + 2**26
    assert clf.n_kernel_evaluations_ < 0.2 * N * N


@pytest.mark.slow
def test_order_of_figure_3(shared_data):
    """Momentum is ahead of the batch perceptron, the theory's schedule far behind both."""
    z = shared_data("mnist")
    X, y = (
        z["X_test"][:2000].reshape(2000, -1).astype(np.float32) / 255,
        z["y_test"][:2000],
    )
    K = two_layer_relu_ntk(128)(X)
    params = {
        "kernel": "precomputed",
        "fit_intercept": False,
        "max_iter": 1500,
        "tol": 0.0,
    }
    perceptron = fit(BatchPerceptron(**params), K, y).margin_
    sampling = AdaptiveSamplingKernelClassifier(random_state=0, **params)
    momentum = fit(sampling, K, y).margin_
    theory = fit(sampling.set_params(schedule="theory"), K, y).margin_
    assert theory < perceptron < momentum
