"""The theorems of Hanashiro and Abernethy, and of Ramdas and Pena, round by round."""

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import fit, overlapping, separable
from oracle import best_margin, normalized_rows
from sklearn.datasets import load_iris

from marginsvm import (
    KernelPerceptron,
    NormalizedKernelPerceptron,
    OptimisticPerceptron,
    PerceptronVonNeumann,
    SmoothedKernelPerceptron,
    VonNeumannClassifier,
    check_certificate,
    check_separability,
)
from marginsvm.kernel_matrix import GramAdapter, LinearAdapter, make_rows, normalized, of_normalized
from marginsvm.kernel_matrix.responses import euclidean, worst_row


def rounds(estimator, data, n):
    state = estimator._algorithm().start(data)
    for _ in range(n):
        state = estimator._algorithm().step(data, state)
        yield state


def section_3(n):
    """Hanashiro, eq. (2)."""
    X = np.array([[(-1.0) ** i * (j < i) for j in range(1, n + 1)] for i in range(1, n + 1)])
    X += np.diag([(-1.0) ** (i + 1) for i in range(1, n + 1)])
    return X, [(-1) ** (i + 1) for i in range(1, n + 1)]


def unit_rows(X, y):
    """Signed rows of norm 1, spelled out."""
    return np.where(y == np.max(y), 1.0, -1.0)[:, None] * X / np.linalg.norm(X, axis=1)[:, None]


# Hanashiro and Abernethy.


@pytest.mark.parametrize(
    ("n", "expected"),
    list(enumerate([2, 7, 19, 45, 103, 227, 489, 1040, 2198, 4613, 9642], start=2)),
)
def test_rounds_on_the_data_of_section_3(n, expected):
    clf = OptimisticPerceptron(stopping="separation", fit_intercept=False)
    clf.fit(*section_3(n))
    assert clf.status_ == "separated"
    assert clf.n_iter_ == expected


@pytest.mark.parametrize("n", range(2, 8))
def test_mistakes_of_rosenblatts_perceptron_on_the_data_of_section_3(n):
    clf = KernelPerceptron(fit_intercept=False).fit(*section_3(n))
    assert clf.n_mistakes_ == (4**n - 1) // 3


def mistakes_in_turn(A, sign, most):
    """How often each row of ``A = sign * X`` is added by a perceptron, spelled out.

    ``sign`` is None without an intercept. With one, a row is added by halves with the worst
    row of the other class, if the two together are misclassified.
    """
    w, added, start, n = np.zeros(A.shape[1]), np.zeros(len(A)), 0, len(A)
    for _ in range(most):
        margins = A @ w
        partner = np.arange(n)
        if sign is not None:
            worst = {s: int(np.where(sign == s, margins, np.inf).argmin()) for s in (-1.0, 1.0)}
            partner = np.array([worst[-s] for s in sign])
        turns = np.roll(np.arange(n), -start)
        wrong = [r for r in turns if margins[r] + margins[partner[r]] <= 0.0]
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
    params = {"kernel": kernel, "gamma": 1.0, "degree": 1, "fit_intercept": fit_intercept}
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
    expected = mistakes_in_turn(np.where(y == 1, 1.0, -1.0)[:, None] * X, None, 10_000).sum()
    clf = KernelPerceptron(fit_intercept=False, tol=0.0).fit(X, y)
    assert (clf.status_, clf.n_mistakes_) == ("separated", expected)


def test_the_learner_is_algorithm_1s(rng):
    """Lines 5 to 9 spelled out on explicit rows."""
    X, y = separable(rng, n=40)
    A = np.where(y == 1, 1.0, -1.0)[:, None] * X
    r = 1.3 * np.linalg.norm(X, axis=1).max()
    data = LinearAdapter(X, make_rows(y, 2, balanced=False))
    p = np.full(len(A), 1.0 / len(A))
    x = before = A.T @ p
    w, output = 0.0, 0.0
    for state in rounds(OptimisticPerceptron(r=r), data, 50):
        w = w + 2 * x - before
        output = output + w
        p = p * np.exp(-(A @ w) / r**2)
        p = p / p.sum()
        before, x = x, A.T @ p
        np.testing.assert_allclose(state.W.image * data.radius, output, rtol=1e-9)
        np.testing.assert_allclose(state.last.coef, p, rtol=1e-8)
        np.testing.assert_allclose(state.W.mass, state.t * (state.t + 1) / 2)


def check_theorem_3(X, y, balanced, n_rounds):
    """The average's unnormalised margin falls short of the best by (1 + 2 r^2 ln n) / 2T."""
    data = LinearAdapter(X, make_rows(y, int(y.max()) + 1, balanced=balanced))
    best = best_margin(X, y, fit_intercept=balanced) / data.rows.unit
    r = data.radius
    for state in rounds(OptimisticPerceptron(), data, n_rounds):
        bound = (1 + 2 * r**2 * np.log(data.n_rows)) / (2 * state.t)
        # in units of the radius: an average of norm 1 in the user's is one of norm r here
        deficit = best - state.seen.min_margin * r**2 / state.t
        assert deficit <= bound + 1e-9
        if bound < best:
            assert state.seen.min_margin > 0


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_hanashiro_theorem_3(balanced, k, rng):
    X, y = separable(rng, n=48, k=k)
    check_theorem_3(X, y, balanced, 300)


def test_hanashiro_theorem_3_on_iris():
    X, y = load_iris(return_X_y=True)
    check_theorem_3(X[:100], y[:100], True, 500)
    check_theorem_3(X[50:], y[50:] - 1, True, 500)


def test_a_radius_that_is_none_is_refused(rng):
    X, y = separable(rng)
    with pytest.raises(ValueError, match="must bound the norms"):
        OptimisticPerceptron(r=0.1).fit(X, y)


# Ramdas and Pena.


def excessive_gap(data, alpha, p, mu, answer, distance):
    """``L_mu(alpha) + ||p||^2 / 2``; the answer to alpha is the maximiser in L_mu."""
    margins, q = data.margins(alpha), answer.vector.coef
    inside = q > 0
    L = -np.sum(margins[inside] * q[inside]) - mu * distance(q) + 0.5 * data.norm(alpha) ** 2
    return L + 0.5 * data.norm(p) ** 2


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", [separable, overlapping])
def test_lemma_5_and_theorem_1(balanced, k, kind, rng):
    X, y = kind(rng, n=45, k=k)
    data = LinearAdapter(normalized(X), make_rows(y, k, balanced=balanced))
    prior = data.rows.prior
    seen = X / np.linalg.norm(X, axis=1)[:, None]
    rho = best_margin(seen, y, fit_intercept=balanced) / data.radius / data.rows.unit

    def entropy(q):
        return np.sum(q[q > 0] * np.log(q[q > 0] / prior))

    for state in rounds(SmoothedKernelPerceptron(), data, 200):
        gap = excessive_gap(data, state.alpha, state.p, state.mu, state.answer, entropy)
        assert gap <= 1e-12
        assert data.norm(state.p) >= rho * (1 - 1e-5)
        if state.k > 2 * np.sqrt(2 * np.log(data.n_rows)) / max(rho, 1e-12):
            assert state.answer.weights.min_margin > 0
        np.testing.assert_allclose(state.mu, 4 / (state.k + 1) / (state.k + 2))


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", [separable, overlapping])
def test_lemmas_8_and_9(balanced, k, kind, rng):
    """The same gap for the Euclidean distance; mu here is the paper's over n."""
    X, y = kind(rng, n=45, k=k)
    data = LinearAdapter(normalized(X), make_rows(y, k, balanced=balanced))
    for state in rounds(PerceptronVonNeumann(gamma_outer=2.0), data, 200):
        inner, centre = state.inner, state.q.coef

        def distance(q, centre=centre):
            return 0.5 * np.sum((q - centre) ** 2) / data.rows.prior

        gap = excessive_gap(data, inner.alpha, inner.p, inner.mu, inner.answer, distance)
        assert gap <= 1e-12


def test_smoothed_perceptron_is_algorithm_4s(rng):
    X, y = separable(rng, n=40)
    A = unit_rows(X, y)
    G = A @ A.T
    n = len(A)

    def p_mu(alpha, mu):
        e = np.exp(-G @ alpha / mu)
        return e / e.sum()

    for data in (
        LinearAdapter(normalized(X), make_rows(y, 2, balanced=False)),
        GramAdapter(
            of_normalized(lambda a, b: a @ b.T), normalized(X), make_rows(y, 2, balanced=False)
        ),
    ):
        alpha, mu = np.full(n, 1.0 / n), 2.0
        p = p_mu(alpha, mu)
        for state in rounds(SmoothedKernelPerceptron(), data, 60):
            theta = 2 / (state.k - 1 + 3)
            alpha = (1 - theta) * (alpha + theta * p) + theta**2 * p_mu(alpha, mu)
            mu = (1 - theta) * mu
            p = (1 - theta) * p + theta * p_mu(alpha, mu)
            np.testing.assert_allclose(state.alpha.coef, alpha, atol=1e-12)
            np.testing.assert_allclose(state.p.coef, p, atol=1e-12)


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


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("mu", [1e-4, 0.1, 10.0])
def test_euclidean_response_minimises_over_the_balanced_simplex(k, balanced, mu, rng):
    weights = rng.uniform(0.5, 3.0, 40)
    codes = np.r_[np.arange(k), rng.integers(0, k, 40 - k)]
    rows = make_rows(codes, k, balanced=balanced, weights=weights)
    margins = rows.margins(rng.standard_normal(rows.score_shape))
    inside = np.isfinite(margins)
    q = euclidean(rows, margins, mu).q
    gradient = np.where(inside, np.where(inside, margins, 0) + mu * (q / rows.prior - 1), np.inf)
    best = worst_row(rows, gradient)  # the minimiser of a linear function
    assert best.min_margin >= np.sum(gradient[inside] * q[inside]) - 1e-9


def test_normalized_kernel_perceptron_is_algorithm_3s(rng):
    X, y = separable(rng, n=40)
    A = unit_rows(X, y)
    G = A @ A.T
    alpha = np.zeros(len(A))
    data = LinearAdapter(normalized(X), make_rows(y, 2, balanced=False))
    for k, state in enumerate(rounds(NormalizedKernelPerceptron(), data, 60)):
        theta = 1 / (k + 1)
        alpha = (1 - theta) * alpha + theta * np.eye(len(A))[np.argmin(G @ alpha)]
        np.testing.assert_allclose(state.w.coef / (k + 1), alpha, atol=1e-12)


def test_von_neumann_is_algorithm_5s(rng):
    X, y = overlapping(rng, n=40)
    A = unit_rows(X, y)
    p = np.full(len(A), 1.0 / len(A))
    data = LinearAdapter(normalized(X), make_rows(y, 2, balanced=False))
    for state in rounds(VonNeumannClassifier(), data, 60):
        w = A.T @ p
        j = np.argmin(A @ w)
        lam = np.linspace(0, 1, 10_001)[:, None]
        exact = lam[np.argmin(np.linalg.norm((1 - lam) * w + lam * A[j], axis=1)), 0]
        before, p = p, state.p.coef.copy()
        theta = (p[j] - before[j]) / (1 - before[j])
        np.testing.assert_allclose(theta, exact, atol=2e-4)
        np.testing.assert_allclose(p, (1 - theta) * before + theta * np.eye(len(A))[j], atol=1e-12)


def test_theorem_4_where_the_classes_are_separable(rng):
    for margin in (0.5, 0.1, 0.02):
        X, y = separable(rng, n=60, margin=margin)
        unit = X / np.linalg.norm(X, axis=1)[:, None]
        rho = best_margin(unit, y, fit_intercept=False)
        params = {"fit_intercept": False, "normalize": True, "gamma_outer": 2.0}
        clf = PerceptronVonNeumann(**params).fit(X, y)
        assert clf.separable_ is True
        assert clf.n_outer_ <= np.log2(1 / rho) + 1
        assert clf.n_iter_ <= clf.n_outer_ * 2 * np.sqrt(2 * len(X)) / rho


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
        if data.norm(state.inner.p) < epsilon:
            break
    assert data.norm(state.inner.p) < epsilon
    assert np.all(np.diff(np.log2(goals)) <= -1 + 1e-9)  # eq. (15)
    assert len(goals) <= np.log2(1 / epsilon) + 1
    # Lemma 9: 2 sqrt(2 n) / delta, whatever rho is
    assert all(m <= 2 * np.sqrt(2 * len(X)) / d for m, d in zip(lengths, goals, strict=True))


def test_a_round_is_one_product_with_the_gram_matrix(rng):
    X, y = separable(rng, n=60)
    for cls in (SmoothedKernelPerceptron, PerceptronVonNeumann, OptimisticPerceptron):
        clf = fit(cls(kernel="rbf", stopping="gap", tol=0.0, max_iter=50), X, y)
        assert clf.history_["n_passes"][-1] <= 50 + 4


# Separable or not.


def nothing_separates(name):
    rng = np.random.default_rng(0)
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return X[50:], y[50:]
    if name == "noisy":
        X = rng.standard_normal((300, 5))
        return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1, -1)
    X = rng.standard_normal((200, 10))
    y = (X[:, 0] > 0).astype(int)
    X[1], y[0], y[1] = X[0], 0, 1
    return X, y if name == "duplicates" else y + (np.arange(200) % 7 == 6)


@pytest.mark.parametrize("name", ["iris", "noisy", "duplicates", "three classes"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_not_separable_with_a_proof(name, fit_intercept, kernel):
    X, y = nothing_separates(name)
    if kernel == "poly" and name != "duplicates":
        pytest.skip("a polynomial may separate it")
    clf = fit(PerceptronVonNeumann(fit_intercept=fit_intercept, kernel=kernel), X, y)
    assert clf.separable_ is False
    assert clf.status_ == "no_margin"
    assert clf.margin_bound_ <= 1e-6 * clf.certificate_.radius
    assert check_certificate(clf, X, y)
    answer = check_separability(X, y, fit_intercept=fit_intercept, kernel=kernel)
    assert answer.separable is False
    assert answer.coef is None
    assert check_certificate(answer.estimator, X, y)
    np.testing.assert_allclose(answer.weights.sum(), 1.0)
    assert repr(answer).startswith("Not separable")


def test_proof_spelled_out():
    """The weights make the class means of the examples meet."""
    X, y = nothing_separates("iris")
    q = check_separability(X, y).weights.toarray().ravel()
    first, second = q[y == 1], q[y == 2]
    np.testing.assert_allclose([first.sum(), second.sum()], 0.5, atol=1e-12)
    np.testing.assert_allclose(first @ X[y == 1], second @ X[y == 2], atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_separable_with_a_separator(kernel, rng):
    X, y = separable(rng, k=3)
    answer = check_separability(X, y, kernel=kernel)
    assert answer.separable is True
    assert answer.weights is None
    assert 0 < answer.margin <= answer.margin_bound
    assert answer.estimator.score(X, y) == 1.0
    assert repr(answer).startswith("Separable")
    if kernel == "linear":
        F = X @ answer.coef.T + answer.intercept
        assert np.all(F.argmax(axis=1) == y)


def test_an_open_question_stays_open(rng):
    """Floats of a product of low rank are of full rank, but for this only their rounding counts."""
    X = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 6))
    answer = check_separability(X, rng.integers(0, 2, 200))
    assert answer.separable is None
    assert answer.weights is None
    assert repr(answer).startswith("Undecided")


# Normalised rows.


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_normalized_rows_are_those_of_normalized_data(k, sparse, fit_intercept, rng):
    X, y = separable(rng, k=k)
    X[5] = 0.0
    X[np.abs(X) < 0.2] = 0.0
    unit = normalized_rows(X, fit_intercept=fit_intercept)
    given = sp.csr_array(X) if sparse else X
    params = {"max_iter": 50, "tol": 0.0}
    inside = SmoothedKernelPerceptron(normalize=True, fit_intercept=fit_intercept, **params)
    outside = fit(SmoothedKernelPerceptron(fit_intercept=False, **params), unit, y)
    coef = fit(inside, given, y).coef_
    if fit_intercept:
        coef = np.hstack([coef, inside.intercept_[:, None] / inside.constant_])
    np.testing.assert_allclose(coef, outside.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(inside.margin_bound_, outside.margin_bound_)
    F = outside.decision_function(unit)
    np.testing.assert_allclose(inside.decision_function(given), F, rtol=1e-8, atol=1e-10)


def test_a_zero_row_proves_that_nothing_separates_without_an_intercept(rng):
    X, y = separable(rng)
    X[3] = 0.0
    clf = fit(PerceptronVonNeumann(fit_intercept=False, stopping="gap", max_iter=2000), X, y)
    assert clf.margin_ <= 0
    assert clf.separable_ is not True
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_normalized_kernels_and_float32(fit_intercept, rng):
    X, y = separable(rng)
    params = {"kernel": "poly", "degree": 2, "coef0": 1.0, "max_iter": 40, "tol": 0.0}
    params |= {"normalize": True, "fit_intercept": fit_intercept}
    clf = fit(SmoothedKernelPerceptron(**params), X, y)
    assert check_certificate(clf, X, y)
    K = (clf._gamma * X @ X.T + 1.0) ** 2
    squared = np.diagonal(K)
    constant = np.sqrt(squared.max()) if fit_intercept else 0.0
    np.testing.assert_allclose(clf.constant_, constant)
    F = K[:, clf.support_] @ clf.dual_coef_[0] + clf.intercept_
    F /= np.sqrt(squared + constant**2)
    np.testing.assert_allclose(np.abs(F).min(), 1.0, rtol=1e-9)
    np.testing.assert_allclose(clf.decision_function(X), F, rtol=1e-9)
    single = fit(SmoothedKernelPerceptron(**params), X.astype(np.float32), y)
    assert check_certificate(single, X.astype(np.float32), y, rtol=1e-5)
    np.testing.assert_allclose(single.decision_function(X), F, rtol=1e-3, atol=1e-3)


def test_a_precomputed_kernel_must_be_normalized_before(rng):
    X, y = separable(rng)
    with pytest.raises(ValueError, match="normalize=False"):
        SmoothedKernelPerceptron(kernel="precomputed", normalize=True).fit(X @ X.T, y)
    X[7] = 0.0  # with an intercept, its norm of 0 would have to be known in prediction
    K = normalized_rows(X, fit_intercept=False) @ normalized_rows(X, fit_intercept=False).T
    with pytest.raises(ValueError, match="its diagonal goes from 0 to 1"):
        SmoothedKernelPerceptron(kernel="precomputed", normalize=True).fit(K, y)
    params = {"kernel": "precomputed", "normalize": True, "fit_intercept": False}
    clf = fit(PerceptronVonNeumann(**params), K, y)
    assert clf.separable_ is False
    assert check_certificate(clf, K, y, exact=True)


# Real data: counted by a prototype that shares no code.


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
    data = shared_data("mnist")
    chosen = np.isin(data["y_test"], pair)
    X, y = data["X_test"][chosen].astype(float), data["y_test"][chosen]
    clf = cls(stopping="separation", fit_intercept=False, normalize=True)
    if cls is PerceptronVonNeumann:
        clf.set_params(gamma_outer=2.0)
    clf.fit(X, y)
    assert clf.separable_ is True
    assert abs(clf.n_iter_ - expected) <= 1 + expected // 100
    assert check_certificate(clf, X, y)


def test_theorems_on_mnist(shared_data):
    data = shared_data("mnist")
    chosen = np.flatnonzero(np.isin(data["y_test"], (0, 1)))[:400]
    X, y = data["X_test"][chosen].astype(float), data["y_test"][chosen]
    rows = LinearAdapter(normalized(X), make_rows(y, 2, balanced=False))

    def entropy(q):
        return np.sum(q[q > 0] * np.log(q[q > 0] * len(X)))

    certified = SmoothedKernelPerceptron(fit_intercept=False, normalize=True).fit(X, y)
    for state in rounds(SmoothedKernelPerceptron(), rows, 100):
        gap = excessive_gap(rows, state.alpha, state.p, state.mu, state.answer, entropy)
        assert gap <= 1e-12
        if state.k > 2 * np.sqrt(2 * np.log(len(X))) / certified.margin_:
            assert state.answer.weights.min_margin > 0


@pytest.mark.parametrize("name", ["tng_basehock", "arcene"])
def test_separability_of_text_and_genes(name, shared_data):
    z = shared_data(name)
    if "data" in z:
        X = sp.csr_array((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
        y = z["y"]
    else:
        X, y = z["X_train"], z["y_train"]
    answer = check_separability(X.astype(float), y)
    assert answer.separable is True
    assert check_certificate(answer.estimator, X.astype(float), y)
