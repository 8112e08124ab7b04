"""Soft margins by inner products of all examples, against working sets of rows and SVC."""

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit
from helpers.pairwise import pairwise
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from marginsvm import MaxMarginClassifier, check_certificate
from marginsvm.algorithms.exact import newton_systems
from marginsvm.algorithms.exact.method import best_bounds
from marginsvm.algorithms.exact.multipliers import Multipliers
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.stage import Stage
from marginsvm.algorithms.exact.systems.gram import ByProducts
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.algorithms.exact.working_set import WorkingSet
from marginsvm.kernel_matrix import GramAdapter, about_the_mean, make_rows

pytestmark = pytest.mark.usefixtures("as_within_a_fit")
TOL = 1e-8


def classes(rng, n=400, k=3, d=5):
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    return rng.standard_normal((n, d)) + rng.standard_normal((k, d))[y], y


def gram_problem(X, y, k, balanced=True, C=1.0, weights=None, gamma=0.2):
    rows = make_rows(y, k, balanced=balanced, weights=weights)
    return GramAdapter(lambda A, B: rbf_kernel(A, B, gamma), X, rows, C, whole=False)


def by_products(problem):
    return Multipliers.start(problem, ByProducts.of(problem))


def bounds(problem, state, rounds=30):
    """The best of the bounds of some rounds."""
    known = 0.0, np.inf
    for _ in range(rounds):
        state, _ = state.advance(problem, TOL)
        known = best_bounds(problem, state.candidates, known)
    return known


@pairwise(
    k=[2, 3, slow(5)],
    balanced=[True, False],
    C=[0.1, 3.0],
    kind=["plain", "duplicates", "weights"],
)
def test_agrees_with_a_working_set_of_rows(k, balanced, C, kind, rng):
    X, y = classes(rng, n=500, k=k)
    if kind == "duplicates":  # a singular Gram matrix, with contradictions
        X[250:] = X[:250]
    weights = rng.uniform(0.2, 5.0, len(y)) if kind == "weights" else None
    problem = gram_problem(X, y, k, balanced, C, weights)
    lower, upper = bounds(problem, by_products(problem), rounds=100)
    low, high = bounds(problem, WorkingSet.start(problem))
    np.testing.assert_allclose(lower, upper, rtol=2 * TOL)
    np.testing.assert_allclose([lower, upper], [low, high], rtol=2 * TOL)


@pytest.mark.parametrize("shape", ["zero", "one", "indefinite"])
def test_gram_matrices_of_low_rank(shape, rng):
    """The rounds end."""
    X, y = classes(rng, n=300, k=3)
    x = rng.standard_normal(300)
    K = {"zero": np.zeros((300, 300)), "one": np.outer(x, x), "indefinite": -rbf_kernel(X)}[shape]
    rows = make_rows(y, 3, balanced=True)
    part = GramAdapter(None, about_the_mean(K, rows), rows, 1.0)
    newton = Newton.start(part, Slack(np.full((300, 1), 0.5)), ByProducts.of(part))
    for _ in range(5):
        newton, _ = newton.advance(part, 0.0)
        assert np.isfinite(newton.w.coef).all()
    assert abs(newton.gap) < 1e-12 * newton.objective or shape == "indefinite"


@pytest.mark.parametrize("k", [2, 4])
def test_a_soft_margin_is_that_of_a_linear_problem(k, rng):
    """A linear kernel against Newton's method in feature space, which shares no code."""
    X, y = classes(rng, n=900, k=k, d=4)
    C = 0.05
    linear = MaxMarginClassifier(C=C, tol=1e-7).fit(X, y)
    problem = GramAdapter(lambda A, B: A @ B.T, X, make_rows(y, k, balanced=True), C, whole=False)
    lower, upper = bounds(problem, by_products(problem), rounds=100)
    found = np.array([lower, upper]) * problem.radius * problem.rows.unit
    np.testing.assert_allclose(found, [linear.margin_, linear.margin_bound_], rtol=3e-7)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fits_are_certified(kernel, fit_intercept, rng):
    X, y = classes(rng, n=700, k=4)
    data = rbf_kernel(X, gamma=0.2) if kernel == "precomputed" else X
    clf = MaxMarginClassifier(
        C=1.0, kernel=kernel, gamma=0.2, fit_intercept=fit_intercept, tol=1e-6
    )
    clf.fit(data, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, data, y)


def certified(problem, stage, portfolio, tol):
    """The stage at which the bounds are near each other."""
    for _ in range(40):
        stage = stage.advance(problem, tol, portfolio)
        lower, upper = best_bounds(problem, stage.candidates)
        if lower >= (1.0 - tol) * upper:
            return stage
    pytest.fail(f"from {lower} to {upper} after 40 rounds")


def test_a_working_set_of_rows_is_followed_where_it_is_outgrown(rng):
    small = Portfolio(compiled=False, room=150, side_rows=100, side_last=100)
    X, y = classes(rng, n=400)
    problem = gram_problem(X, y, 3)
    stage = Stage.first(problem, small)
    assert isinstance(stage.method, WorkingSet)
    stage = certified(problem, stage, small, TOL)
    assert isinstance(stage.method, Multipliers)
    assert bounds(problem, stage.method) == pytest.approx(
        bounds(problem, WorkingSet.start(problem)), rel=2 * TOL
    )


def test_little_slack_is_solved_for_by_softer_margins_on_the_way(monkeypatch):
    """Newton's method alone left a gap of 1 after 19 rounds."""
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(MaxMarginClassifier, "_portfolio", Portfolio(compiled=False, room=100))
    clf = fit(MaxMarginClassifier(C=1e4, kernel="rbf"), X[:250], y[:250])
    assert clf.status_ == "certified"


@pytest.mark.parametrize("k", [2, 3])
def test_interior_points_solve_what_no_working_set_holds(k, rng, monkeypatch):
    """They certify within a round what does not go beyond their own memory."""
    monkeypatch.setattr(newton_systems, "_BYTES_OF_PRODUCTS", np.inf)
    portfolio = Portfolio(compiled=False, few_left=100, room=100, side_rows=500)
    monkeypatch.setattr(MaxMarginClassifier, "_portfolio", portfolio)
    X, y = classes(rng, n=600, k=k)
    clf = fit(MaxMarginClassifier(C=0.01, kernel="rbf", gamma=0.2), X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)


def test_a_fit_that_continues_is_one_fit(rng, monkeypatch):
    # systems in float32 enlarge what rounds differ by; interior points, which follow, do not
    to_the_end = Portfolio(compiled=False, room=150, patience=2, long_patience=2, nearer=0.0)
    monkeypatch.setattr(MaxMarginClassifier, "_portfolio", to_the_end)
    X, y = classes(rng, n=900, k=3)
    kw = {"C": 1.0, "kernel": "rbf", "tol": 1e-9}
    whole = MaxMarginClassifier(**kw).fit(X, y)
    assert whole.n_iter_ > 2
    part = fit(MaxMarginClassifier(**kw, max_iter=2, warm_start=True), X, y)
    part.set_params(max_iter=200).fit(X, y)
    assert part.n_iter_ == whole.n_iter_
    scores, of_whole = (fitted.decision_function(X) for fitted in (part, whole))
    np.testing.assert_allclose(scores, of_whole, rtol=0, atol=1e-11 * np.abs(of_whole).max())


def test_rows_that_do_not_fit_are_named_by_the_warning(rng, monkeypatch):
    """A hard margin with a kernel of short reach: nearly all rows and examples carry weight."""
    rooms = Portfolio(room_left=120, side_last=1000, compiled=False)
    monkeypatch.setattr(MaxMarginClassifier, "_portfolio", rooms)
    X, y = rng.standard_normal((510, 6)), np.arange(510) % 5  # too many for interior points
    clf = MaxMarginClassifier(kernel="rbf", gamma=5.0, cache_size=1.0)
    with pytest.warns(ConvergenceWarning, match="More than 120 rows.*fit in memory"):
        clf.fit(X, y)
    assert clf.status_ == "stalled"
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("compiled", [True, False])
def test_hard_margins_of_many_classes_whose_rows_nearly_all_carry_weight(
    rng, monkeypatch, compiled
):
    """More rows than a working set holds: by one example at a time, or by products."""
    monkeypatch.setattr(MaxMarginClassifier, "_portfolio", Portfolio(compiled=compiled))
    X, y = rng.standard_normal((400, 30)), np.arange(400) % 40
    clf = MaxMarginClassifier(kernel="rbf", gamma=0.2, tol=1e-3).fit(X, y)
    assert clf.status_ == "certified"
    assert clf.certificate_.weights.nnz > Portfolio().room_left
    assert check_certificate(clf, X, y)
