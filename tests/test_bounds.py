"""Bounds as functions of a problem and a vector, case by case."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.estimators import fit, problem_of
from helpers.oracle import best_margin

from marginsvm import (
    AcceleratedPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    check_certificate,
)
from marginsvm.certify.bounds import lower_bound, rounding_error, upper_bound
from marginsvm.certify.distribution import balanced_exactly, imbalance
from marginsvm.certify.overlapping import overlap_is_proved
from marginsvm.data.centred import CentredExamples
from marginsvm.kernel_matrix import GramAdapter, LinearAdapter, make_rows
from marginsvm.rows import Vector


def pair(X, k=2, C=np.inf, balanced=True):
    """The same examples, by their features and by their products."""
    codes = np.arange(len(X)) % k
    rows = make_rows(codes, k, balanced=balanced)
    return codes, (LinearAdapter(X, rows, C), GramAdapter(None, X @ X.T, rows, C))


def separable(k=2, n=24, d=4):
    rng = np.random.default_rng(1)
    return rng.uniform(-0.4, 0.4, (n, d)) + 2.0 * np.eye(k, d)[np.arange(n) % k]


@pytest.mark.parametrize("C", [np.inf, 2.0])
@pytest.mark.parametrize("k", [2, 3])
def test_bounds_hold_and_meet_at_the_solution(k, C):
    X = separable(k)
    codes, problems = pair(X, k, C)
    for problem in problems:
        best = best_margin(X, codes, C=C) / problem.radius / problem.rows.unit
        w = problem.zeros()
        for t in range(400):
            q = problem.respond(w, 1.0 / (t + 1)).vector
            w = (t * w + 2.0 * q) / (t + 2)
            if t % 100 == 0:
                slack = 1e-9 * best
                assert lower_bound(problem, w).margin <= best + slack
                assert upper_bound(problem, w) >= best - slack
        assert lower_bound(problem, w).separates
        assert problem.distribution(w).weights().sum() == pytest.approx(1.0, rel=1e-14)


def test_margins_that_are_known_are_not_computed_again():
    problem = pair(separable())[1][0]
    w = problem.respond(problem.zeros()).vector
    fresh, margins = lower_bound(problem, w), problem.margins(w, precise=True)
    before = problem.work.passes
    known = lower_bound(problem, w, margins=margins)
    assert problem.work.passes == before
    assert known.margin == fresh.margin
    np.testing.assert_array_equal(known.coef, fresh.coef)


def test_a_margin_near_rounding_is_sharpened_in_extended_precision():
    codes = np.arange(24) % 2
    thin = np.linspace(1.0, 2.0, 24) * 1e-13  # in radii
    X = np.where(codes == 1, 1.0, -1.0)[:, None] * np.column_stack([thin, np.tile([1, -1], 12)])
    rows = make_rows(codes, 2, balanced=False)
    bounds = []
    for rounding_rtol in (np.inf, 0.0):
        problem = LinearAdapter(X, rows, rounding_rtol=rounding_rtol)
        w = Vector(np.array([1.0, 0.0]), np.zeros(24))
        bounds.append(lower_bound(problem, w).margin)
    quick, sharp = bounds
    assert 0.0 < quick < (1.0 - 1e-3) * 1e-13
    assert (1.0 - 1e-5) * 1e-13 < sharp <= 1e-13 * (1.0 + 1e-15)
    assert rounding_error(problem, w) > 1e-16


def test_without_a_separator_nothing_positive_is_claimed():
    X = np.repeat(separable()[::2], 2, axis=0)  # each example is in both classes
    for problem in pair(X)[1]:
        w = problem.respond(problem.zeros(), 0.1).vector
        assert lower_bound(problem, problem.row(0)).margin <= 0.0
        assert not lower_bound(problem, w).separates
        zero = lower_bound(problem, problem.zeros())
        assert (zero.margin, zero.separates) == (0.0, False)
        assert overlap_is_proved(problem, w)
        assert len(problem.overlap_checks) == 1
        assert upper_bound(problem, w) <= problem.errors.vanishing


def test_a_soft_margin_does_not_say_that_the_examples_are_separated():
    X = np.repeat(separable()[::2], 2, axis=0)
    for problem in pair(X, C=1.0)[1]:
        w = problem.respond(problem.zeros(), 0.1).vector
        predictor = lower_bound(problem, w)
        assert predictor.margin > 0.0
        assert not predictor.separates


@pytest.mark.parametrize("n", [30, 3000])
@pytest.mark.parametrize("k", [2, 3])
def test_imbalance_is_no_less_than_in_fractions(k, n):
    """Beside weights that balance, one of 1e-25: it is not lost."""
    rng, codes = np.random.default_rng(n), np.sort(np.arange(n + 1) % k)
    rows, others = make_rows(codes, k, balanced=True), codes[:, None] != np.arange(k)
    balanced = np.where(others, 0.1, 0.0)
    balanced[5] *= 1e-24
    for weights in (balanced, others * 2.0 ** -rng.uniform(0, 90, (n + 1, k))):
        own = [sum(map(Fraction, line)) for line in weights.tolist()]
        V = np.where(others, -1, 1) * np.where(others, [list(map(Fraction, w)) for w in weights], 0)
        V = np.where(others, V, np.array(own)[:, None])
        exact = float(abs(V.sum(axis=0)).sum()) / (2.0 if k == 2 else np.sqrt(2.0))
        found = imbalance(rows, weights if k > 2 else weights.sum(axis=1))
        assert exact <= found * (1.0 + 1e-15)
        assert found <= exact * (1.0 + 1e-14)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_weights_of_many_rows_are_made_to_balance(k, rng):
    """In their last digits, and whether or not rows connect all classes."""
    n = 4000
    codes = np.arange(n) % k
    rows = make_rows(codes, k, balanced=True)
    q = rng.random(rows.shape)
    if k > 2:
        q[codes[:, None] == np.arange(k)] = 0.0
    if k == 7:  # two parts of classes
        q[(codes[:, None] < 3) != (np.arange(k) < 3)] = 0.0
    total = rows.group_sum(q)
    q = q * rows.expand(1.0 / np.where(total > 0.0, total, 1.0))
    q /= q.sum()
    assert 0.0 < imbalance(rows, q) < 1e-13
    even = balanced_exactly(rows, q)
    assert imbalance(rows, even) <= 1e-30
    assert 0.0 < np.abs(even - q).sum() < 1e-13
    assert np.array_equal(even > 0.0, q > 0.0)


KINDS = {
    "hard": {},
    "squared hinge": {"C": 0.3},
    "hinge": {"C": 0.3, "loss": "hinge"},
    "hinge, hardly any slack paid": {"C": 1e-3, "loss": "hinge"},
    "share": {"nu": 0.3},
}


@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_predictor_is_above_what_any_weights_prove(kind, uneven, rng):
    """Also weights that are not balanced, that exceed their caps, or that are far from the best."""
    params = KINDS[kind]
    cls = MomentumMarginClassifier if "nu" in params else MaxMarginClassifier
    for _ in range(5):
        X = rng.standard_normal((20, 2))
        y = (np.arange(20) % 5 == 0 if uneven else np.arange(20) % 2).astype(int)
        X[y == 1, 0] += 8.0 if kind == "hard" else 3.0
        clf = fit(cls(tol=1e-3, **params), X, y)
        data = problem_of(clf, X, y)
        best = clf.margin_ / (data.radius * data.rows.unit)
        q = clf.certificate_.weights.toarray().ravel()
        some = np.eye(20)[rng.permutation(20)[:4]]
        tilted = q * np.where(y == 1, 1.0 + rng.uniform(-0.5, 0.5, (9, 1)), 1.0)
        peaked = q * rng.uniform(0.0, 3.0, (9, 20)) ** 3 + 1e-3
        for c in (0, 1):
            peaked[:, y == c] /= peaked[:, y == c].sum(axis=1)[:, None]
        assert best > 0.0
        for weights in (np.ones(20), *some, *tilted, *peaked):
            assert best <= upper_bound(data, data.combine(weights, precise=True))


@pytest.mark.parametrize("apart", [1e-8, 3e-9, 1e-10])
def test_kernel_values_that_round_to_one_prove_no_smaller_bound(apart):
    """Two examples whose images differ by less than the values of the kernel can tell."""
    clf = fit(MaxMarginClassifier(kernel="rbf", gamma=1.0), [[0.0], [apart]], [0, 1])
    less = -np.expm1(-(apart**2))  # 1 minus the kernel's value, which is 1 in float64
    assert clf.margin_bound_ >= np.sqrt(0.5 * less)
    assert clf.separable_ is None


@pytest.mark.parametrize("unit", [1.0, 1e150])
@pytest.mark.parametrize(
    "cls", [AcceleratedPerceptron, MomentumMarginClassifier, OptimisticPerceptron]
)
def test_lower_bounds_have_the_best_intercept(cls, unit):
    """That of a response is the model's where nothing separates: with it, rounds take hundreds."""
    clf = fit(cls(C=1.0), unit * np.array([[3.0], [0.0]]), [0, 1], sample_weight=[1, 2])
    assert clf.status_ == "certified"
    assert clf.n_iter_ <= 5


def test_errors_are_small_beside_slack(rng, monkeypatch):
    """Where slack is nearly all of a proof's length, ``A^T q`` needs no more digits."""
    taken = []
    image = CentredExamples.extended_image

    def counted(self, few, V, features):
        taken.append(len(few))
        return image(self, few, V, features)

    monkeypatch.setattr(CentredExamples, "extended_image", counted)
    X, y = rng.standard_normal((2000, 5)), rng.integers(0, 2, 2000)
    clf = MaxMarginClassifier(C=1e3).fit(X, y)
    assert clf.status_ == "certified"
    assert not taken
    assert check_certificate(clf, X, y, exact=True)
