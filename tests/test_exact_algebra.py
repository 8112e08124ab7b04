"""Algebra in integers and with error bounds: what is proved is true, by rationals."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.rational import has_solution, is_separable
from helpers.separation import rank as rank_of
from scipy.optimize import nnls

from marginsvm.certificate import exact_algebra as exact

LONG = 3**40  # no float


def fractions(M):
    return [[Fraction(v) for v in row] for row in np.asarray(M).tolist()]


def rank(M):
    return rank_of(fractions(M))


def matrix(rng, n, d, kind):
    """Integers of low rank; small, long, or not nearly of the rank that floats see."""
    M = rng.integers(-3, 4, (n, d)).astype(object)
    if d > 2:
        M[:, -1] = M[:, :-1] @ rng.integers(-2, 3, d - 1)
    if kind == "short":
        return M.astype(np.int64)
    return M * LONG + rng.integers(-1, 2, (n, d)).astype(object)


@pytest.mark.parametrize("kind", ["short", "long"])
@pytest.mark.parametrize("seed", range(20))
def test_ranks_and_null_spaces(kind, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 7))
    M = matrix(rng, n, d, kind)
    rows, cols = exact.independent(M)
    assert len(rows) == len(cols) == rank(M)
    assert all(rank(M[:, :j]) > rank(M[:, : j - 1]) for j in cols + 1)
    N, free = exact.null_space(M)
    assert len(N) == d - rank(M)
    assert not (M.astype(object) @ N.T).any()
    np.testing.assert_array_equal(N[:, free] != 0, np.eye(len(N), dtype=bool))
    near = exact.floats(N)[0].T
    again = exact.null_space(M, near @ rng.standard_normal((len(N), len(N))))
    assert again is not None
    assert len(again[0]) == len(N)
    assert not (M.astype(object) @ again[0].T).any()


@pytest.mark.parametrize("seed", range(10))
def test_equations_are_solved(seed):
    rng = np.random.default_rng(seed)
    B, right = rng.integers(-9, 10, (5, 5)), rng.integers(-9, 10, (5, 2))
    if seed % 3 == 0:
        B[4] = B[0] - 2 * B[1]
        assert exact.solve(B, right) is None
        assert not exact.is_regular(B.astype(float))
        return
    D, Y = exact.solve(B, right)
    assert D > 0
    np.testing.assert_array_equal(B.astype(object) @ Y, D * right.astype(object))
    assert exact.is_regular(B.astype(float))


def balanced(rng, m, n, kind):
    """Equations that positive weights solve, up to rounding; of integers exactly."""
    if kind == "floats":
        A, q = rng.standard_normal((m, n)), rng.uniform(0.1, 1.0, n)
        A[:, -1] = -(A[:, :-1] @ q[:-1]) / q[-1]
        return A, q
    q = rng.integers(1, 9, n)
    A = rng.integers(-5, 6, (m, n)) * q[-1]
    A[:, -1] = -(A[:, :-1] @ q[:-1]) // q[-1]
    return (A.astype(object) * LONG if kind == "long" else A), q.astype(float)


@pytest.mark.parametrize("kind", ["floats", "integers", "long"])
@pytest.mark.parametrize("seed", range(20))
def test_positive_weights_solve_the_equations(kind, seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 6))
    A, q = balanced(rng, m, m + int(rng.integers(1, 5)), kind)
    if seed % 2:
        A = np.concatenate([A, A[:1] * 2])
    q = q * (1 + 1e-12 * rng.standard_normal(len(q)))
    weights = exact.positive_weights(A, q, integers_wanted=True)
    assert weights is not None
    assert min(weights) > 0
    M = exact.rows_of_integers(A) if kind == "floats" else A.astype(object)
    assert not (M @ np.array(weights, dtype=object)).any()
    assert exact.positive_weights(A, q) is not None
    assert exact.positive_weights(np.abs(A) + (A == 0), q) is None


@pytest.mark.parametrize("integers_wanted", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_gains_are_positive_in_sum_and_decide_nothing_else(seed, integers_wanted):
    rng = np.random.default_rng(seed)
    A, q = balanced(rng, 3, 6, "floats")
    if seed % 2:  # nearly dependent: last digits decide which weights are found
        A[2] = A[0] + 1e-16 * A[2]
        A[2, -1] = -(A[2, :-1] @ q[:-1]) / q[-1]
    weights = exact.positive_weights(A, q, integers_wanted=True)
    gains = rng.standard_normal(6)
    gains += (1e-9 - gains @ q) / q.sum()  # by rounding, next to 10^-9

    def found(gains):
        of = {"gains": gains, "integers_wanted": integers_wanted}
        return exact.positive_weights(A, q, **of)

    assert (found(np.ones(6)) is None) == (weights is None)
    if integers_wanted and weights is not None:
        parts = zip(exact.integers(gains), weights, strict=True)
        exactly = sum(g * x for g, x in parts)
        assert (found(gains) is not None) == (exactly > 0)
        assert (found(-gains) is not None) == (exactly < 0)
        assert found(1e-9 * np.ones(6)) == weights
    assert found(0.0 * gains) is None


@pytest.mark.parametrize("seed", range(30))
def test_weights_proved_by_error_bounds_exist(seed):
    """The last column makes them thin, or leaves none."""
    rng = np.random.default_rng(seed)
    A, q = balanced(rng, 3, 5, "floats")
    q[rng.integers(5)] = 0.0
    q += 10.0 ** -int(rng.integers(5, 18))
    A[:, -1] = -(A[:, :-1] @ q[:-1]) / q[-1]
    if exact.solution_is_near(A, q):
        assert has_solution(
            fractions(np.vstack([A, np.ones(5)])), fractions([[0, 0, 0, 1]])[0]
        )


def test_an_error_of_the_numbers_is_allowed_for():
    """The second row is between the others by little, if its numbers are as they are."""
    thin, share = 2.0**-30, 17 / 16
    M = np.array([[1.0, -1.0, 1.0], [1.0, -(1.0 + thin), 1.0 + share * thin]])
    q = np.array([1.0 - 1.0 / share, 1.0, 1.0 / share])
    assert exact.solution_is_near(M, q)
    assert exact.solution_is_near(M, q, 2.0**-45 * abs(M))
    assert not exact.solution_is_near(M, q, 2.0**-36)


def test_errors_of_the_numbers_count_at_both_ends():
    """Within them, the first weight may be negative, or rows dependent; and not far within."""
    A, q = np.array([[1.0, -1.0, 1.0 - 2.0**-10]]), np.array([2.0**-10, 1.0, 1.0])
    assert exact.solution_is_near(A, q, 2.0**-12)
    assert not exact.solution_is_near(A, q, 2.0**-9)
    assert exact.is_regular(np.eye(2), 0.24)  # row sums of errors are below 1/2
    assert not exact.is_regular(np.eye(2), 0.5)


def test_sums_are_rounded_in_proofs_by_floats(monkeypatch):
    """If floats had six digits, few sums would be a proof."""
    monkeypatch.setattr(exact, "UNIT", 2.0**-6)
    of_one, of_two = (1.01 * (n + 4) / 64 for n in (1, 2))
    for size, proved in ((1.0, True), (2.0, False)):
        B = np.array([[1.0, size], [0.0, 1.0]])
        assert (of_two * (2 + 2 * size) < 0.5) == proved
        assert exact.is_regular(B) == proved
    change = 1.01 * (1 + of_one * (1 + 2 / 64)) / (1 - 2 * of_one)
    for share, proved in ((1.0 - 1e-4, False), (1.0 + 1e-4, True)):
        first = share * change  # the weights leave a rest of 1 beside it
        assert (
            exact.solution_is_near(
                np.array([[1.0, -1.0]]), np.array([first, first - 1.0])
            )
            == proved
        )


@pytest.mark.parametrize("seed", range(40))
def test_rounding_alone_makes_no_weight_positive(seed):
    """With the other weights as they are, the first one is 0 or negative, by little."""
    rng = np.random.default_rng(seed)
    (a, p), q = rng.uniform(0.5, 1.0, (2, 2)), rng.uniform(0.5, 1.0)
    a = np.append(a[0], np.nextafter(a[0] * p[0] / q, 0.0))
    lost = Fraction(a[0]) * Fraction(p[0]) - Fraction(a[1]) * Fraction(q)
    rest = float(lost)
    rest = rest if rest <= lost else np.nextafter(rest, 0.0)
    A = np.array([[1.0, a[0], -a[1], -1.0]])
    first = float(np.finfo(exact.Extended).eps) * rng.uniform(0.1, 1.0)
    weights = np.array([first, p[0], q, rest])
    assert min(weights) > 0
    assert Fraction(rest) <= lost
    assert not exact.solution_is_near(A, weights)


@pytest.mark.parametrize("seed", range(20))
def test_farkas_alternative(seed):
    rng = np.random.default_rng(seed)
    M, b = rng.integers(-3, 4, (5, 3)), rng.integers(-3, 4, 3)
    q, v = exact.combination(M, b)
    assert (v is None) == has_solution(fractions(M.T), fractions([b])[0])
    if v is None:
        total = M.T.astype(object) @ q
        k = next(
            (Fraction(t, int(x)) for t, x in zip(total, b, strict=True) if x),
            Fraction(1),
        )
        assert k > 0
        assert list(total) == [k * int(x) for x in b]
        assert min(q) >= 0
    else:
        assert (M.astype(object) @ v >= 0).all()
        assert b.astype(object) @ v < 0


def test_products_of_integers_are_exact():
    A, B = np.array([[2**30, 3]]), np.array([[2**30], [1]])
    assert exact.multiplied(A, B)[0, 0] == 2**60 + 3
    assert exact.multiplied(np.array([[5, -7]]), np.array([[1], [2]])).dtype == np.int64
    F, e = exact.floats(np.array([[3 * 2**2000, 2**2000 + 1]], dtype=object))
    assert np.ldexp(F[0, 0], int(e[0, 0]) - 1998) == 12.0


def test_long_eliminations_are_not_begun(rng):
    A, q = balanced(rng, 150, 152, "floats")
    assert exact.positive_weights(A, q) is not None
    assert exact.positive_weights(A, q, integers_wanted=True) is None
    assert exact.null_space(rng.integers(-9, 10, (150, 152))) is None


def test_what_is_too_long_is_refused_before_integers_are_made(rng, monkeypatch):
    """More equations than weights, or dependent ones: floats alone prove nothing."""
    tall, q = balanced(rng, 152, 150, "floats")
    wide = np.vstack([tall[:120], tall[:80] + tall[1:81]])[:, :140]
    for name in ("rows_of_integers", "independent"):
        monkeypatch.setattr(exact, name, None)
    assert exact.positive_weights(tall, q) is None
    assert exact.positive_weights(wide, q[:140]) is None


def nothing_fits(X, S, q, **given):
    return exact.refuting_weights(X, S, q, **given) is not None


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_classes_that_overlap(k, intercept, form):
    """Weights of the nearest point of random points, against the simplex method in rationals."""
    proved = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = (
            rng.integers(-2, 3, (9, 2)).astype(float) + 2.0**30 * (seed % 2),
            np.arange(9) % k,
        )
        example, other = np.nonzero(np.arange(k) != y[:, None])
        S = np.eye(k)[y[example]] - np.eye(k)[other]
        S = S[:, :1] if k == 2 else S
        x = np.column_stack(
            [X[example] - 2.0**30 * (seed % 2 * intercept), np.ones(len(S))]
        )
        x = x if intercept else x[:, :2]
        A = np.einsum("rk,rd->rkd", S[:, : k - 1], x).reshape(len(S), -1)
        M = np.vstack([A.T / abs(A).max(), np.ones(len(A))])
        q = nnls(M, np.append(np.zeros(A.shape[1]), 1.0))[0]
        claimed = nothing_fits(form(X)[example], S, q, intercept=intercept)
        overlap = not is_separable(X, y, fit_intercept=intercept)
        assert overlap if claimed else not (overlap and seed % 2 == 0), seed
        proved += claimed
    assert proved >= 3


def test_intervals_that_nothing_fits_and_that_something_fits(rng):
    """Values at 0, 1 and 2: at most 1.5, at least 0, at most 1.5; or with ends moved by 2.5."""
    X, S = np.array([[0.0], [1.0], [2.0]]), np.array([[-1.0], [1.0], [-1.0]])
    # -f(0) >= -1.5 and so on
    q, gains = (np.array([1.0, 2.0, 1.0]), np.array([-1.5, 0.0, -1.5]))
    assert not nothing_fits(X, S, q, intercept=True, gains=gains)
    assert nothing_fits(X, S, q, intercept=True, gains=gains + 2.5)
    for _ in range(20):
        X, S = (
            rng.integers(-3, 4, (6, 2)).astype(float),
            rng.choice([-1.0, 1.0], (6, 1)),
        )
        gains = S[:, 0] * (X @ rng.integers(-2, 3, 2) + 1.0)
        assert not nothing_fits(X, S, rng.random(6), intercept=True, gains=gains)


def test_signs_of_coefficients_are_rows():
    X, S, q = np.array([[1.0], [2.0]]), np.array([[-1.0], [1.0]]), np.array([1.0, 1.0])
    for signs, refuted in ((None, False), ([1], False), ([-1], True)):
        given = {} if signs is None else {"signs": np.array(signs)}
        assert nothing_fits(X, S, q, intercept=True, **given) is refuted


def test_floats_near_a_proof_are_none():
    """Two points that are one but for the last digit: their weights prove nothing."""
    x, S, q = 1.0 / 3.0, np.array([[1.0], [-1.0]]), np.array([0.5, 0.5])
    for other, truth in ((x, True), (np.nextafter(x, 1.0), False)):
        assert nothing_fits(np.array([[x], [other]]), S, q, intercept=True) is truth


def test_a_proof_must_leave_no_feature_out():
    """The weights balance the first feature; the second one separates, by 1e-300."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1e-300], [-1.0, 1e-300]])
    q, S = np.full(4, 0.25), np.array([[-1.0], [-1.0], [1.0], [1.0]])
    assert not nothing_fits(X, S, q, intercept=True)
    assert nothing_fits(X[:, :1], S, q, intercept=True)
    assert not nothing_fits(X, S, q, intercept=False)
