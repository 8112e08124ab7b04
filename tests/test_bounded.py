"""Bounds of programs hold in fractions; and no error term can be left out.

Each case has data on which rounding is as large as it can be beside what is bounded. It holds with
all error terms, and with the one that it is named after replaced by 0 it does not.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import fit, needs_more_digits
from helpers.plain_examples import (
    NAMES,
    PlainExamples,
    in_both,
    in_fractions,
    programs,
    some_alpha,
)
from scipy.optimize import LinearConstraint, minimize, nnls

from marginsvm import MomentumMarginClassifier
from marginsvm._rounding import (
    LONG,
    PAIRWISE,
    Extended,
    chained,
    exact_inner,
    exact_sum,
    product,
)
from marginsvm.certificate import bounded, overlap
from marginsvm.certificate import exact_algebra as algebra
from marginsvm.certificate.bounded import (
    Floats,
    Rationals,
    balanced,
    best_multiple,
    dual,
    lowest_values,
    primal,
)
from marginsvm.certificate.exact_examples import ExactFeatures, KernelMatrix
from marginsvm.certificate.overlap import of_few_columns, refuted
from marginsvm.certificate.publication import prove, published, published_weights
from marginsvm.problem.design import Design
from marginsvm.problem.gram import Gram
from marginsvm.problem.programs import classification, regression
from marginsvm.solvers.interior_point import interior_point
from marginsvm.solvers.solution import Solution
from marginsvm.solvers.solve import solve

FLOATS, EXACT = Floats(), Rationals()


def both(make, X, *arrays, kernel=False, C=np.inf, **numbers):
    """The same program in floats and in fractions, without an intercept or with one of no mean."""
    numbers = {"weight": np.ones(len(X)), **numbers}
    floats = KernelMatrix(X, None, 0.0, FLOATS) if kernel else Design.of(X)
    exact = (
        KernelMatrix(X, None, 0, EXACT) if kernel else ExactFeatures(X, centred=False)
    )
    fractions = [EXACT.array(a) if a.dtype == float else a for a in arrays]
    given = {name: EXACT.array(v) if np.ndim(v) else v for name, v in numbers.items()}
    return make(floats, *arrays, C=C, **numbers), make(
        exact, *fractions, C=EXACT.number(C), **given
    )


def primals(qps, w, b=0.0):
    b = np.full(len(w), b)
    return primal(qps[0], w, b, FLOATS), primal(
        qps[1], EXACT.array(w), EXACT.array(b), EXACT
    )


def duals(qps, alpha):
    return dual(qps[0], alpha, FLOATS), dual(qps[1], EXACT.array(alpha), EXACT)


def labels(examples, codes, k=2, **given):
    return classification(examples, codes, k, **given)


def scores(rng):
    """Terms of scores cancel."""
    codes, big = np.arange(8) % 2, rng.uniform(-1e3, 1e3, (8, 3))
    small = (
        1e-13 * rng.uniform(1.0, 2.0, (8, 3)) * np.where(codes == 1, 1.0, -1.0)[:, None]
    )
    qps = both(labels, np.hstack([big, small - big]), codes, intercept=False)
    found, exact = primals(qps, np.ones((1, 6)))
    return found.margin <= exact.margin and found.separation <= exact.separation


def square(rng):
    """Terms of a squared norm cancel: a kernel matrix of examples that are nearly the same."""
    X = np.round(rng.uniform(1.0, 2.0, 3) * 2**10) + np.round(4 * rng.random((6, 3)))
    qps = both(labels, X @ X.T, np.arange(6) % 2, kernel=True, C=1.0)
    w = np.append(rng.uniform(-1.0, 1.0, 6), 0.0)[None]
    w[0, 0] -= w[0].sum()
    found, exact = primals(qps, w)
    return found.norm >= exact.norm


def length(rng):
    """Norms are rounded."""
    X = rng.standard_normal((4, 3))
    found, exact = primals(
        both(labels, X, np.arange(4) % 2, intercept=False, C=1.0), X[:1]
    )
    return found.norm >= exact.norm


def image(rng):
    """Weights that prove next to nothing: what is left is the rounding of their sum."""
    X, q = rng.standard_normal((9, 2)), rng.uniform(0.5, 1.0, 9)
    X[0] = -(q[1:] @ X[1:]) / q[0]
    found, exact = duals(both(labels, X, np.ones(9, int), intercept=False), q)
    return found.margin_bound >= exact.margin_bound


def targets(rng):
    """Ends of tubes are sums, of which the last one cancels."""
    y, shift, one = rng.uniform(1.1, 1.101, 1), 0.1, EXACT.array(np.ones(1))
    low, high = (y - shift) - 1.0, (y - shift) + 1.0
    qp = regression(Design.of(np.ones((1, 1))), low, high, intercept=False)
    ends = [EXACT.array(y) - Fraction(shift) + sign for sign in (-1, 1)]
    exact = regression(
        ExactFeatures(np.ones((1, 1))), *ends, weight=one, intercept=False
    )
    found, true = primals((qp, exact), low[None])
    return found.violation >= true.violation


def gain(rng):
    """Gains of both signs cancel."""
    y = rng.uniform(-1.0, 1.0, 50)
    qps = both(regression, np.ones((50, 1)), y, y, intercept=False, C=1.0)
    found, exact = duals(qps, rng.random(100))
    return found.gain <= exact.gain


def cost(rng):
    """Equal terms, whose products, quotients and sums are all rounded down."""
    holds = []
    for _ in range(20):
        n, C = int(rng.integers(3, 60)), float(rng.uniform(1.0, 2.0))
        weight = np.full(n, rng.uniform(1.0, 2.0))
        qps = both(labels, np.zeros((n, 1)), np.arange(n) % 2, C=C, weight=weight)
        found, exact = primals(qps, np.zeros((1, 1)))
        holds.append(found.objective >= exact.objective)
    return all(holds)


def imbalance(rng):
    """Weights of one class, on an example at the mean."""
    X = Design.of(np.array([[-2.0], [0.0], [2.0]]), np.zeros(1))
    qp = classification(X, np.arange(3) // 2, 2)
    return dual(qp, np.array([0.0, 1.0, 0.0]), FLOATS).margin_bound >= 1.0


def excess(rng):
    """Weights above the upper bounds of a share."""
    X, codes = np.array([[1.0], [3.0], [-1.0], [-3.0]]), np.array([1, 1, 0, 0])
    # the mean of all: 2
    qp = classification(Design.of(X, np.zeros(1)), codes, 2, nu=1.0)
    return dual(qp, np.array([0.5, 0.0, 0.5, 0.0]), FLOATS).margin_bound >= 2.0


CASES = {  # by what is left out: the case, and what stands in its place
    "error_of_scores": (scores, np.zeros((8, 1))),
    "error_of_square": (square, 0),
    "error_of_length": (length, 0),
    "error_of_combined": (image, np.zeros(1)),
    "error_of_targets": (targets, 0),
    "error_of_gain": (gain, 0),
    "error_of_cost": (cost, 0),
    "imbalance": (imbalance, 0),
    "cost_of_imbalance": (imbalance, (0, 0)),
    "cost_of_excess": (excess, 0),
}


def holds_for_all(case, number=40):
    return all(case(np.random.default_rng(seed)) for seed in range(number))


@pytest.mark.parametrize("name", CASES)
def test_no_error_term_can_be_left_out(name, monkeypatch):
    case, none = CASES[name]
    assert holds_for_all(case)
    holder = Floats if name == "error_of_length" else bounded
    monkeypatch.setattr(holder, name, lambda *given: none)
    assert not holds_for_all(case)


def test_the_norm_of_weights_near_a_known_predictor_is_bounded_by_its_norm(rng):
    """Their difference counts, and its rounding does: a third of weights is rounded."""
    short = []
    for _ in range(60):
        X, codes = rng.integers(-9, 9, (7, 3)), np.arange(7) % 2
        K = X @ X.T
        qp = labels(Gram(None, K.astype(float)), codes, C=1.0, intercept=False)

        def square(w, K=K):
            w = EXACT.array(w)
            return (w @ K * w).sum()

        alpha = rng.random(7)
        w = qp.rows.coefficients(alpha / 3.0).T
        alpha[0] += 1e-12
        v = qp.rows.coefficients(alpha).T
        near = w, float(square(w)) ** 0.5 * (1.0 + 1e-15)
        assert Fraction(dual(qp, alpha, FLOATS, near).length) ** 2 >= square(v)
        assert bounded.length_by_another(qp, v, near, FLOATS) is not None
        assert bounded.length_by_another(qp, v + 1e-3, near, FLOATS) is None
        t = np.abs(v).sum() / np.abs(w).sum()
        short.append(Fraction(t * near[1]) ** 2 < square(v))
    assert any(short)


def test_intercepts_of_classes_are_linked_by_rows(monkeypatch):
    """With k classes, k - 1 of them: if imbalance cost no more than with two, it would be false."""
    monkeypatch.setattr(bounded, "ORIGINS", 1)
    k, weight, rows = 4, 1000.0 ** -np.arange(4), np.flatnonzero(~np.eye(4, dtype=bool))
    examples = Design.of(np.zeros((k, 1)), np.zeros(1))
    qp = classification(examples, np.arange(k), k, C=1.0, weight=weight)

    def objective(b):
        return primal(qp, np.zeros((k, 1)), np.append(b, 0.0), FLOATS).objective

    best = minimize(
        objective, np.zeros(k - 1), method="BFGS", options={"gtol": 1e-12}
    ).fun
    ridge = np.repeat(qp.ridge.ravel(), k - 1)
    F = np.zeros((k, k * (k - 1)))
    F[rows // k, np.arange(len(rows))], F[rows % k, np.arange(len(rows))] = 1.0, -1.0
    # most that weights seem to prove if imbalance costs its size: 1'a - |F a|_1 - ridge a^2/2
    price = LinearConstraint(
        np.block([[F, -np.eye(k)], [-F, -np.eye(k)]]), -np.inf, 0.0
    )
    found = minimize(
        lambda z: -z[:-k].sum() + z[-k:].sum() + 0.5 * ridge @ z[:-k] ** 2,
        np.zeros(len(rows) + k),
        jac=lambda z: np.append(-1.0 + ridge * z[:-k], np.ones(k)),
        bounds=[(0.0, None)] * (len(rows) + k),
        constraints=price,
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    alpha = np.zeros((k, k))
    alpha.flat[rows] = found.x[: len(rows)]
    assert dual(qp, alpha, FLOATS).objective() <= best
    size = qp.largest_target
    monkeypatch.setattr(
        bounded, "cost_of_imbalance", lambda qp, off, numbers: (size * off, 0)
    )
    assert dual(qp, alpha, FLOATS).objective() > best


@needs_more_digits
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_extended_precision_is_rounded_too(form, monkeypatch):
    """Combinations of several classes that cancel: without its error some are too short."""

    def case(rng):
        X, codes = 1e5 + rng.standard_normal((6, 2)), np.arange(6) % 3
        (r, c), E = np.nonzero(np.arange(3) != codes[:, None]), np.eye(3)
        rows = [np.kron(E[codes[i]] - E[j], X[i]) for i, j in zip(r, c, strict=True)]
        q = nnls(
            np.vstack([np.array(rows).T, np.ones(len(rows))]),
            np.append(np.zeros(6), 1.0),
        )[0]
        alpha = np.zeros((6, 3))
        alpha[r, c] = q + 1e-12 * rng.random(len(q))
        floats, fractions = both(labels, X, codes, k=3, intercept=False)
        found, exact = duals(
            (replace(floats, examples=Design.of(form(X))), fractions), alpha
        )
        return found.margin_bound >= exact.margin_bound

    assert holds_for_all(case, 60)
    extended = Design.combine_extended
    for careless in (
        lambda self, V: (extended(self, V)[0], np.zeros(1)),
        # of rounded weights
        lambda self, V: extended(self, V.astype(float).astype(Extended)),
    ):
        monkeypatch.setattr(Design, "combine_extended", careless)
        assert not holds_for_all(case, 60)


@pytest.mark.parametrize(
    ("name", "p"),
    [*((name, 2.0) for name in NAMES), ("hard", 1.5), ("squared", 1.5), ("tube", 1.5)],
)
def test_bounds_of_any_points_hold_in_fractions(name, p):
    """In units of six decades, with weights that balance and that do not; duality is weak."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 3)) * 10.0 ** rng.integers(-3, 4, 3)
        X += 10.0 ** rng.integers(0, 5)
        y, m = rng.standard_normal(12), rng.uniform(0.5, 2.0, 12)
        qps = qp, fractions = in_both(name, X, y, m, p)
        w = qp.project(rng.standard_normal((qp.k, 3)) / X.std(axis=0))
        b, width = (
            rng.standard_normal(qp.k) * qp.intercept,
            rng.random(max(qp.level, 0)),
        )
        moved = 0
        if qp.intercept:
            moved = ExactFeatures(qp.examples.centre[None]).scores(EXACT.array(w))[0]
        shifted = (EXACT.array(b) + moved).astype(float)
        found = primal(qp, w, np.append(shifted, width), FLOATS)
        value = primal(
            fractions, EXACT.array(w), EXACT.array(np.append(b, width)), EXACT
        )
        assert found.objective >= value.objective
        assert found.violation >= value.violation
        # below 0, they are vacuous
        if qp.by_margins and (p == 2.0 or value.margin > 0):
            assert found.margin <= value.margin
        alpha = some_alpha(qp, rng)
        for q in (alpha, balanced(qp, qp.feasible(alpha))):
            found, bound = duals(qps, q)
            if qp.game:
                assert found.margin_bound >= bound.margin_bound >= value.margin
                continue
            # as the predictor needs it
            widened = max(value.violation, 0) if qp.hard else 0
            assert (
                found.objective(widened) <= bound.objective(widened) <= value.objective
            )


@pytest.mark.parametrize("k", [2, 3, 7])
def test_weights_of_many_rows_are_made_to_balance(k, rng):
    """In their last digits, and whether or not rows connect all classes."""
    n = 4000
    codes = np.arange(n) % k
    qp = classification(Design.of(np.zeros((n, 1))), codes, k)
    alpha = some_alpha(qp, rng)
    if k == 7:  # two parts of classes
        alpha[(codes[:, None] < 3) != (np.arange(k) < 3)] = 0.0
    alpha = qp.feasible(alpha)
    even = balanced(qp, alpha)
    assert bounded.imbalance(qp, even, FLOATS) <= 1e-22
    assert np.abs(even - alpha).max() < 1e-15
    assert even.min() >= 0.0


@pytest.mark.parametrize(
    "given", [{"C": 2.0}, {"C": 2.0, "loss": "hinge"}, {}, {"nu": 0.4}]
)
@pytest.mark.parametrize("k", [2, 3])
def test_the_best_multiple_of_a_predictor_is_the_best(k, given, rng):
    X, codes = rng.standard_normal((30, 3)), np.arange(30) % k
    X[:, 0] += codes
    qp = classification(Design.of(X, X.mean(axis=0)), codes, k, **given)
    w = np.zeros((1 if k == 2 else k, 3))
    w[:, 0] = 1.0 if k == 2 else np.arange(k) - 1.0
    b = -w[:, 0] * X[:, 0].mean()
    found = primal(qp, w, b, FLOATS)
    t = best_multiple(qp, found.norm, lowest_values(qp, w, b, FLOATS))
    if qp.game:
        assert primal(qp, t * w, t * b, FLOATS).margin == pytest.approx(found.margin)
    else:
        best = primal(qp, t * w, t * b, FLOATS).objective
        others = [
            primal(qp, s * w, s * b, FLOATS).objective
            for s in t * np.linspace(0.2, 3, 200)
        ]
        assert best <= min(others) * (1 + 1e-12)


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e6, 1e9])
def test_what_is_published_has_no_slack_by_rounding(offset, rng):
    """A margin of 1 - 2^-53 would cost C 2^-53: the predictor is scaled until it is at least 1.

    The intercept that is published is rounded as well, by more the farther the examples are.
    """
    codes, w = np.arange(20) % 2, np.array([[1.0, 0.01, 0.0]])
    short = []
    for _ in range(20):
        X = rng.standard_normal((20, 3))
        X[:, 0] += 8.0 * codes - 4.0
        X += offset
        examples = Design.of(X, X.mean(axis=0))
        qp = classification(examples, codes, 2, C=1e13, loss="hinge")
        found = published(qp, w * rng.uniform(0.5, 1.5), np.array([0.01]))
        size = abs(float(found.intercept[0])) if offset else 1.0
        short.append(float(found.primal.violation) / (FLOATS.unit * size))
    assert np.mean(short) <= 0.2  # some intercept is rounded by more


@pytest.mark.parametrize("name", ["hinge", "squared", "squared tube"])
def test_bounds_do_not_depend_on_the_scale_of_weights(name, rng):
    X, y, m = rng.standard_normal((12, 3)), rng.standard_normal(12), np.ones(12)
    qp = in_both(name, X, y, m)[0]
    alpha = balanced(qp, qp.rows.balanced(some_alpha(qp, rng), True, 0.0, None))
    alpha = alpha * (0.1 + (np.broadcast_to(qp.target, qp.shape) > 0))
    alpha = balanced(qp, qp.rows.balanced(alpha, True, 0.0, None))
    least = dual(qp, alpha, FLOATS).objective()
    assert least > 0
    for scale in (1e-100, 1e100):
        found = dual(qp, scale * alpha, FLOATS).objective()
        assert found == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("rounded", [False, True])
def test_a_tube_whose_ends_are_rounded_is_not_refuted_by_their_rounding(rounded):
    """Two equal examples, of which one end is above the other by a last digit."""
    low, high = np.array([-np.inf, 1.0 + 2.0**-52]), np.array([1.0, np.inf])
    qp = regression(Design.of(np.ones((2, 1))), low, high, rounded=rounded)
    assert (refuted(qp, np.ones(2)) is None) == rounded


def test_floats_allow_for_the_units_that_bounds_are_promised_by():
    """``gamma`` and ``error_of_length`` are large numbers in the tests of outward rounding."""
    for n in (0, 1, 4, 64, 128, 1000):
        assert FLOATS.gamma(n) >= (n + 8) * 2.0**-53
        assert FLOATS.error_of_length(n) >= min(n + 8, 128) * 2.0**-53
        assert FLOATS.error_of_length(n, 1.5) >= 128 * 2.0**-53


def test_weights_within_upper_bounds_of_a_share_are_published_as_they_are(rng):
    """Others are brought within them, and no bound pays for an excess."""
    X, codes = rng.standard_normal((12, 3)), np.arange(12) % 2
    qp = classification(Design.of(X, X.mean(axis=0)), codes, 2, nu=0.7)
    within = balanced(qp, qp.feasible(some_alpha(qp, rng) ** 8))
    assert (within == qp.upper).any()
    np.testing.assert_allclose(published_weights(qp, within), within, rtol=1e-15)
    for _ in range(10):
        alpha = published_weights(qp, some_alpha(qp, rng) ** 8)
        caps, sums = bounded.caps_of(qp, alpha)
        assert (sums <= caps).all()
        assert bounded.cost_of_excess(qp, alpha, FLOATS) == 0.0
        assert bounded.imbalance(qp, alpha, FLOATS) <= 8.0 * FLOATS.unit
        assert alpha.sum() == pytest.approx(1.0, abs=1e-12)


# Bounds on rounding errors hold: the sums that they are of, against fractions.


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


LENGTHS = [1, 7, 255, 256, 257, 1000, 2**14 + 3, 2**20]


def of(x):
    """A number of any precision as a fraction."""
    return Fraction(*map(int, x.as_integer_ratio()))


def alike(n):
    """Equal terms, whose roundings add up, in fractions and as numbers."""
    for c in (0.1, 1 / 3, 0.7, 1e-3 * np.pi):
        yield np.full(n, c), np.ones(n), n * Fraction(c)


def crumbs(n, unit=2.0**-53):
    """A 1 and, for each lane of the processor, terms that it swallows one after the other."""
    for lanes in (1, 4, 16, 64):
        x = np.full(n, 0.99 * unit)
        x[:lanes] = 1.0
        ones = min(lanes, n)
        yield x, np.ones(n), ones + (n - ones) * Fraction(0.99 * unit)


def mixed(n):
    """Terms of all sizes and either sign, of which the absolute values count."""
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n)) * 2.0 ** rng.integers(-8, 8, (2, n))
    few = min(n, 2000)  # fractions of more would take seconds
    a[few:] = 0.0
    yield a, b, dot(map(Fraction, a[:few]), map(Fraction, b[:few]))


def error(found, a, b, exact):
    """Relative to the sum of the absolute values of the terms."""
    return abs(of(found) - exact) / (
        of(np.abs(a) @ np.abs(b)) * (1 - Fraction(1, 10**6))
    )


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("terms", [alike, crumbs, mixed])
def test_products_in_chains_are_as_precise_as_is_said(terms, n):
    for a, b, exact in terms(n):
        assert error(product(a[None], b[:, None])[0, 0], a, b, exact) <= chained(n)
        long = product(a[None], b[:, None], LONG)[0, 0]
        assert error(long, a, b, exact) <= chained(n, LONG)


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_contiguous_numbers_are_added_in_pairs(n):
    """``PAIRWISE`` allows for them, and for the few operations of a square root of squares."""
    for a, b, exact in [*alike(n), *mixed(n)]:
        assert error(np.sum(a * b), a, b, exact) <= PAIRWISE
    for a, _, _ in alike(n):
        squares = n * Fraction(a[0]) ** 2
        length = of(np.sqrt(np.sum(a * a)))
        assert abs(length**2 - squares) <= 2 * Fraction(PAIRWISE) * squares


def test_an_exact_inner_product_is_rounded_once(rng):
    """Terms of 1e16 cancel, of which each product loses what is left."""
    a, b = rng.standard_normal((2, 300)) * 1e8
    added = -float(a @ b)
    exact = dot(map(Fraction, a), map(Fraction, b)) + Fraction(added)
    assert exact_inner(a, b, added) == float(exact)


@pytest.mark.parametrize("n", [3, 900, 70_000])
@pytest.mark.parametrize("exponents", [(0, 1), (-60, 60), (-1074, -1000), (800, 1000)])
def test_an_exact_sum_is_rounded_once(n, exponents, rng):
    """Half of the numbers cancel up to a rounding error, and some are 0 or subnormal."""
    x = np.ldexp(rng.standard_normal(n), rng.integers(*exponents, n))
    x[n // 2 :] = -x[: n - n // 2] * (1.0 + rng.integers(-1, 2, n - n // 2) * 2.0**-52)
    x[::7] = 0.0
    assert exact_sum(rng.permutation(x)) == math.fsum(x)
    assert exact_sum(x.reshape(-1, 1)) == math.fsum(x)
    assert exact_sum(np.append(x, np.inf)) == np.inf


@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_is_proved_and_near_the_best(name, rng):
    X, y, m = (
        rng.standard_normal((24, 3)) + 3.0,
        rng.standard_normal(24),
        rng.uniform(0.5, 2.0, 24),
    )
    plain = programs(PlainExamples(X), y, m)[name]
    if plain.game and plain.intercept:  # what has margins
        X[:, 0] += 6.0 * (plain.rows.codes if plain.several else plain.rows.sign)
        X[:, 1] += 6.0 * (plain.rows.codes == 1) if plain.several else 0.0
    qp, exact = in_both(name, X, y, m)
    found = Solution(qp, 1e-8, 100)
    for _ in solve(found, None, [interior_point]):
        pass
    proof = prove(qp, found.w, found.f, found.alpha)
    assert proof.gap <= 1e-7
    assert proof.alpha.sum() == pytest.approx(float(name != "hard tube"))  # w = 0 fits
    f = np.append(
        proof.predictor.intercept, proof.predictor.f[-1:] if qp.level > 0 else []
    )
    w = primal(exact, EXACT.array(proof.predictor.coef), EXACT.array(f), EXACT)
    q = dual(exact, EXACT.array(proof.alpha), EXACT)
    assert w.objective <= proof.primal.objective
    if qp.by_margins:
        assert proof.margin <= w.margin
    if qp.game:
        assert q.margin_bound <= proof.margin_bound
    else:
        least = proof.dual.objective()
        assert least <= q.objective()
        bound = Fraction(proof.margin_bound) if least > 0 else np.inf
        assert 2 * Fraction(float(least)) * bound**2 >= 1 or least <= 0


def drawn(rng):
    return (
        rng.standard_normal((12, 3)),
        rng.standard_normal(12),
        rng.uniform(0.5, 2.0, 12),
    )


@pytest.fixture(params=NAMES)
def qp(request, rng):
    X, y, m = drawn(rng)
    return programs(PlainExamples(X), y, m)[request.param]


def some_predictor(qp, rng):
    return rng.standard_normal((qp.k, qp.examples.d)), rng.standard_normal(qp.n_free)


@pytest.mark.parametrize("name", NAMES)
def test_values_of_fractions_are_fractions_and_the_same(name, rng):
    """No float comes in between, from the constructors on."""
    X, y, m = drawn(rng)
    qp = programs(PlainExamples(X), y, m)[name]
    given = PlainExamples.in_fractions(X), in_fractions(y), in_fractions(m), Fraction
    exact, (w, f), alpha = (
        programs(*given)[name],
        some_predictor(qp, rng),
        some_alpha(qp, rng),
    )
    for value, fraction in (
        (qp.primal(w, f), exact.primal(in_fractions(w), in_fractions(f))),
        (qp.dual(alpha), exact.dual(in_fractions(alpha))),
    ):
        assert isinstance(fraction, Fraction) or value == np.inf
        assert float(fraction) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("given", [{"intercept": True}, {"nu": 0.5, "C": 1.0}])
def test_outputs_with_one_norm_and_free_unknowns_are_refused(given):
    y, examples = np.zeros((6, 2)), PlainExamples(np.eye(6))
    given = {"intercept": False, **given}
    with pytest.raises(ValueError, match="2 outputs with one norm"):
        regression(examples, y - 0.1, y + 0.1, **given)
    assert regression(examples, y - 0.1, y + 0.1, intercept=False).k == 2


def test_feasible_weights_are_and_stay(qp, rng):
    """Within their bounds and balanced, whatever they were."""
    for size in (1e-3, 1.0, 10.0):
        alpha = qp.feasible(some_alpha(qp, rng) * size)
        assert (alpha >= 0).all()
        assert (alpha <= np.broadcast_to(qp.upper, qp.shape) * (1 + 1e-12)).all()
        if qp.cap is not None and not qp.level:
            assert (alpha.sum(axis=1) <= qp.cap * (1 + 1e-12)).all()
        assert qp.balance(alpha) == pytest.approx(
            qp.g, abs=1e-9 * max(alpha.sum(), 1e-9)
        )
        assert qp.feasible(alpha) == pytest.approx(alpha, abs=1e-9)


def test_free_unknowns_are_the_best(qp, rng):
    if qp.several and not qp.level:
        pytest.skip("intercepts of several classes are the solver's")
    w, f = some_predictor(qp, rng)
    w = qp.project(0.1 * w)
    best = qp.best_f(qp.examples.scores(w), f)
    P = qp.primal(w, best)
    assert qp.primal(w, f) >= P
    for j in [qp.n_free - 1] if qp.several else range(qp.n_free):
        for step in (1e-3, -1e-3, 0.3, -0.3):
            assert qp.primal(w, best + step * np.eye(qp.n_free)[j]) >= P - 1e-12


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_overlap_is_proved_from_rough_weights(k, intercept, rng):
    X, codes = rng.standard_normal((60, 3)), np.arange(60) % k
    apart = np.column_stack([20.0 * codes, np.zeros((60, 2))])
    for shift in (0.0, 1e6, apart) if intercept else (0.0,):
        Z = X + shift
        examples = Design.of(Z, Z.mean(axis=0) if intercept else None)
        qp = classification(examples, codes, k, intercept=intercept)
        alpha = qp.feasible((0.5 + some_alpha(qp, rng)) * (qp.upper > 0))
        q = refuted(qp, alpha)
        assert (q is None) == (shift is apart)
        if q is not None:  # plain sums confirm it
            image = (
                np.abs(qp.rmatvec(q)).sum()
                + np.abs(qp.balance(q)[: qp.n_intercepts]).sum()
            )
            assert image <= 1e-8 * q.sum()


@pytest.mark.parametrize("overlap", [True, False])
def test_least_squares_by_few_columns_are_those_of_all(overlap, rng):
    A = np.vstack([rng.standard_normal((8, 3000)) + 3.0 * (not overlap), np.ones(3000)])
    wanted, weight = np.eye(9)[8], rng.random(3000)
    best = np.linalg.norm(A @ nnls(A, wanted)[0] - wanted)
    q = of_few_columns(A, wanted, weight)
    assert (best < 1e-9) == overlap
    assert q.min() >= 0.0
    assert np.count_nonzero(q) <= 9
    length = np.linalg.norm(A @ q - wanted)
    assert length == pytest.approx(best, rel=0.02, abs=1e-9)
    assert of_few_columns(A, wanted, weight, most=20_000) is None


@pytest.mark.parametrize("shape", [(4000, 40), (300, 1500)])
@pytest.mark.parametrize("passes", [10.0, 100.0])
def test_a_proof_of_overlap_takes_no_more_than_so_many_passes(
    shape, passes, rng, monkeypatch
):
    """Counted in multiplications, of nonnegative least squares and of factorisations."""
    X, spent = rng.standard_normal(shape), 0.0

    def least_squares(A, b):
        nonlocal spent
        spent += 4 * len(A) ** 2 * A.shape[1]
        return nnls(A, b)

    def factorised(A):
        nonlocal spent
        spent += min(A.shape) ** 2 * max(A.shape)
        return independent_first(A)

    independent_first = algebra.independent_first
    monkeypatch.setattr(overlap, "nnls", least_squares)
    monkeypatch.setattr(algebra, "independent_first", factorised)
    qp = classification(Design.of(X), (X[:, 0] > 0.0).astype(int), 2, intercept=True)
    assert refuted(qp, np.full(shape[0], 1.0 / shape[0]), passes) is None
    assert spent <= max(overlap.FREE, passes * X.size) + overlap.FREE


def test_proofs_of_overlap_take_no_more_passes_than_the_rounds(rng, monkeypatch):
    allowed = []

    def none(qp, alpha, passes, total):
        allowed.append(passes)

    monkeypatch.setattr(overlap, "refuted", none)
    X = rng.standard_normal((300, 5))
    clf = fit(MomentumMarginClassifier(max_iter=700), X, rng.integers(0, 2, 300))
    assert len(allowed) > 3
    assert sum(allowed) <= clf.history_["n_passes"][-1]


def test_the_reach_of_rows_whose_squares_underflow(rng):
    X = 2e-152 * rng.standard_normal((40, 3))
    X[::2] *= 1e-10
    unit = max(math.hypot(*x) for x in X)
    reach = Design.of(X, radius=unit).reach
    for length, x in zip(reach, X, strict=True):
        assert Fraction(length) ** 2 * Fraction(unit) ** 2 * (
            1 + Fraction(2) ** -40
        ) >= sum(Fraction(number) ** 2 for number in x)


def test_coefficients_of_several_outputs_are_summed_pairwise(rng):
    """Where a constant feature takes their sum, and where a mean is subtracted late."""
    n = 10**6
    V = np.full((n, 3), 0.1 / n)
    A = Design.of(np.ones((n, 1)), constant=1.0)
    w, sizes = A.bounded_combine(V)
    error = bounded.error_of_combined(A, V, sizes, Floats())
    exact = n * Fraction(V[0, 0]) / Fraction(A.radius)
    assert np.all(abs(w[:, -1] - float(exact)) <= error)
