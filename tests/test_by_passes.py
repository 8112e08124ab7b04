"""The exact solver by passes: its operators against formulas, its methods against each other."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import fit, overlapping
from helpers.portfolios import ONLY_PASSES
from numpy.testing import assert_allclose

from marginsvm import MaxMarginClassifier, check_certificate
from marginsvm.algorithms.exact.ascent import Ascent
from marginsvm.algorithms.exact.multipliers import Multipliers, is_steep
from marginsvm.algorithms.exact.newton import Newton
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.stage import Stage
from marginsvm.algorithms.exact.systems.features import Direct, Iterative
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.data.few_pairs import FewPairs
from marginsvm.kernel_matrix import LinearAdapter, make_rows
from marginsvm.kernel_matrix.capabilities import curvature
from marginsvm.rows import Vector

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
forms = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
classes = pytest.mark.parametrize("k", [2, 4])
either = pytest.mark.parametrize("balanced", [True, False])


def problem_of(rng, k, form=np.asarray, balanced=True, C=1.0, n=80, shift=0.0):
    X = rng.standard_normal((n, 7)) * (rng.random((n, 7)) < 0.6) + shift
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    X[:, 0] += y
    return LinearAdapter(form(X), make_rows(y, k, balanced=balanced), C)


def dense_rows(problem):
    """Rows of A, written out over images and the intercept, one for each flat index."""
    shape = problem.zeros().image.shape
    extended = (*shape[:-1], shape[-1] + problem.rows.balanced)
    A = np.empty((int(np.prod(problem.rows.shape)), int(np.prod(extended))))
    for j, unit in enumerate(np.eye(A.shape[1])):
        Z = unit.reshape(extended)
        F = problem.scores(Vector(Z[..., : shape[-1]].copy(), np.zeros(problem.rows.shape)))
        F = F + Z[..., -1] if problem.rows.balanced else F
        A[:, j] = problem.rows.moves(F).ravel()
    return A, extended


@forms
@classes
@either
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_curvature_is_that_of_the_rows(form, k, balanced, shift, rng):
    problem = problem_of(rng, k, form, balanced, shift=shift)
    weight = rng.random(problem.rows.shape) * (rng.random(problem.rows.shape) < 0.4)
    if k > 2:
        weight[np.arange(len(weight)), problem.rows.codes] = 0.0
    A, shape = dense_rows(problem)
    H = A.T @ (weight.ravel()[:, None] * A)
    operator, Z = curvature(problem, weight), rng.standard_normal(shape)
    size = np.abs(H).max()
    far = 1e-12 if shift == 0.0 or form is np.asarray else 1e-6  # sparse: sums about the origin
    assert_allclose(operator(Z).ravel(), H @ Z.ravel(), rtol=0, atol=10 * far * size)
    assert_allclose(operator.diagonal().ravel(), np.diag(H), rtol=0, atol=far * size)
    assert_allclose(operator.dense(), H, rtol=0, atol=far * size)


@either
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("pairs", [0, 1, 12])
def test_curvature_of_few_pairs_is_that_of_the_rows(pairs, dtype, balanced, rng, monkeypatch):
    monkeypatch.setattr("marginsvm.data.few_pairs._GATHERED", 20)  # two at a time
    problem = problem_of(rng, 20, lambda X: X.astype(dtype), balanced)
    weight = np.zeros(problem.rows.shape)
    at = rng.choice(problem.rows.n_examples, pairs)
    weight[at, (problem.rows.codes[at] + rng.integers(1, 20, pairs)) % 20] = rng.random(pairs)
    assert FewPairs.suit(weight)
    assert not FewPairs.suit(weight + 1.0)
    A, shape = dense_rows(problem)
    Z, more = rng.standard_normal(shape), rng.random(problem.rows.shape) < 0.5
    for some in (weight, weight + more):
        some[np.arange(len(some)), problem.rows.codes] = 0.0
        expected = A.T @ (some.ravel() * (A @ Z.ravel()))
        found = curvature(problem, some)(Z).ravel()
        far = 1e-12 if dtype is np.float64 else 1e-5
        assert_allclose(found, expected, rtol=0, atol=far * np.abs(expected).max(initial=1.0))


@classes
@either
def test_curvature_reads_no_example_without_weight(k, balanced, rng):
    problem = problem_of(rng, k, balanced=balanced)
    weight = np.zeros(problem.rows.shape)
    weight[:8] = 1.0
    operator, before = curvature(problem, weight), problem.work.passes
    operator(np.ones(dense_rows(problem)[1]))
    spent = problem.work.passes - before
    assert spent >= 0.1
    before = problem.work.passes
    operator(np.ones(dense_rows(problem)[1]))
    assert problem.work.passes - before - spent == pytest.approx(0.0)


@classes
def test_an_iterate_has_the_margins_of_its_intercepts(k, rng):
    """Of shorter steps than whole ones, too, which a large C asks for."""
    problem = problem_of(rng, k, C=1e4)
    newton = Newton.start(problem, Slack(problem.slack), Direct())
    for _ in range(8):
        newton, _ = newton.advance(problem, 0.0)
        margins = problem.rows.margins(problem.scores(newton.w) + newton.b)
        assert_allclose(newton.margins, margins, rtol=1e-9, atol=1e-9)


def solved(problem, method, rounds=25):
    """The best bounds of some rounds of a method, and of those that take over from it."""
    lower, upper, state = -np.inf, np.inf, Stage.of(method)
    for _ in range(rounds):
        state = state.advance(problem, 1e-10, Portfolio())
        for candidate in state.candidates:
            norm = problem.norm(candidate.vector)
            if candidate.min_margin is not None:
                lower = max(lower, candidate.min_margin / norm)
            if candidate.mass > 0:
                upper = min(upper, norm / candidate.mass)
    return lower, upper


@either
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_many_classes_on_sparse_rows_by_every_method(balanced, C, rng):
    problem = problem_of(rng, 5, sp.csr_array, balanced, C, n=150)
    slack = Slack(problem.slack)
    bounds = [
        solved(problem, Newton.start(problem, slack, system)) for system in (Direct(), Iterative())
    ]
    bounds += [solved(problem, Ascent(), 40)]
    if is_steep(problem):
        bounds += [solved(problem, Multipliers.start(problem, Iterative()), 60)]
    for lower, upper in bounds:
        assert_allclose(lower, upper, rtol=1e-8)
        assert_allclose(upper, bounds[0][1], rtol=1e-8)


@forms
@classes
def test_multipliers_end_at_the_hard_margin(form, k, rng):
    X = rng.standard_normal((80, 60))
    y = np.append(np.arange(k), rng.integers(0, k, 80 - k))
    problem = LinearAdapter(form(X), make_rows(y, k, balanced=True))
    lower, upper = solved(problem, Multipliers.start(problem, Iterative()), 150)
    exact = MaxMarginClassifier().fit(X, y)
    assert exact.status_ == "certified"
    margin = exact.margin_ / (problem.radius * problem.rows.unit)
    assert_allclose(lower, margin, rtol=1e-3)
    assert_allclose(upper, margin, rtol=1e-3)


@forms
def test_multipliers_show_that_nothing_separates(form, rng):
    X, y = overlapping(rng, n=400, d=5)
    problem = LinearAdapter(form(X), make_rows((y > 0).astype(int), 2, balanced=True))
    state = Multipliers.start(problem, Iterative())
    for _ in range(40):
        state, _ = state.advance(problem, 1e-10)
    separator, proof = state.candidates
    assert separator.min_margin <= 0.0
    assert problem.norm(proof.vector) < 1e-9 * proof.mass


def text_like(rng, k, n=300, d=40):
    X = sp.random_array((n, d), density=0.2, rng=rng, format="csr")
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    return sp.csr_array(X + sp.csr_array((np.ones(n), (np.arange(n), y)), shape=(n, d))), y


@pytest.mark.parametrize("where", ["memory", "blocks"])
@pytest.mark.parametrize("C", [0.3, 30.0, np.inf])
@forms
@classes
def test_passes_give_what_working_sets_give(k, form, C, where, rng, monkeypatch):
    X, y = text_like(rng, k)
    X = X.toarray() if form is np.asarray else X
    known = fit(MaxMarginClassifier(C=C), X, y)
    monkeypatch.setattr(MaxMarginClassifier, "_portfolio", ONLY_PASSES)
    clf = MaxMarginClassifier(C=C, tol=1e-5)
    if where == "blocks":
        clf.fit_blocks([(X[:110], y[:110]), (X[110:], y[110:])])
    else:
        clf.fit(X, y)
    assert clf.status_ == known.status_ == "certified"
    assert_allclose(clf.margin_, known.margin_, rtol=2e-5)
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("C", [1.0, np.inf])
@forms
@classes
def test_passes_over_float32_reach_the_default_tolerance(k, form, C, rng, monkeypatch):
    X, y = text_like(rng, k)
    X = (X.toarray() if form is np.asarray else X).astype(np.float32)
    monkeypatch.setattr(MaxMarginClassifier, "_portfolio", ONLY_PASSES)
    clf = fit(MaxMarginClassifier(C=C), X, y)
    assert clf.status_ == "certified"
    assert clf.gap_ <= 1e-6
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("k", [2, 5])
def test_what_cannot_fit_says_so_before_it_starts(k, rng, monkeypatch):
    X, y = rng.standard_normal((60, 7)), np.arange(60) % k
    monkeypatch.setattr("marginsvm.algorithms.exact.memory_needed.installed", lambda: 1000)
    with pytest.raises(MemoryError, match="60 examples, 7 features") as error:
        MaxMarginClassifier(C=1.0).fit(X, y)
    assert ("OneVsRestClassifier" in str(error.value)) == (k > 2)
    monkeypatch.setattr("marginsvm.algorithms.exact.memory_needed.installed", lambda: None)
    assert MaxMarginClassifier(C=1.0).fit(X, y).status_ == "certified"


@pytest.mark.parametrize("C", [100.0, 1000.0])
def test_clouds_that_a_large_c_separates_take_few_rounds(C, rng):
    """The first step leaves no row with slack, and none of the next may creep back."""
    means, y = 2.0 * rng.standard_normal((20, 40)), np.arange(1200) % 20
    X = means[y] + rng.standard_normal((1200, 40))
    clf = fit(MaxMarginClassifier(C=C), X, y)
    assert clf.status_ == "certified"
    assert clf.n_iter_ < 60
    assert check_certificate(clf, X, y)
