"""Newton's method on the dual: its model, its pivoting, and the fits that it ends."""

import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import fit, separable
from helpers.oracle import explicit_rows
from scipy.optimize import linprog

from marginsvm import DualLpPerceptron, DualLpRegressor, check_certificate
from marginsvm._rounding import LpNorm
from marginsvm.papers.dual_lp import Newton, working_set
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows

sys.path.append(str(Path(__file__).parents[1] / "examples" / "benchmarks"))
from _sets import raj_bach


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("p", [2.0, 1.3])
def test_a_step_never_makes_the_dual_smaller(p, C, rng):
    X, y = separable(rng, n=60, d=20)
    problem = LinearAdapter(X, make_rows(y, 2, balanced=False), C, LpNorm(p), 1.0)
    v, newton, values = problem.combine(rng.random(60)), Newton(), []
    for _ in range(30):
        v, newton = newton.step(problem, v, working_set(problem, v))
        values.append(v.mass - 0.5 * problem.norm(v) ** 2)
        assert np.all(v.coef >= 0.0)
    assert np.all(np.diff(values) >= -1e-12 * values[-1])
    low = problem.margins(v)[v.coef > 0.0]
    np.testing.assert_allclose(low, 1.0, atol=1e-7)  # complementary slackness: it converges
    assert problem.margins(v).min() > 1.0 - 1e-7


def nearly_dependent(rng, n=80, d=30):
    """Examples whose features differ in size by a thousand, with labels that they separate."""
    X = rng.standard_normal((n, d)) * np.logspace(0, -3, d)
    return X, X @ rng.standard_normal(d)


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_fits_end_where_coordinates_take_thousands_of_epochs(p, rng):
    X, score = nearly_dependent(rng)
    params = {"p": p, "random_state": 0, "max_iter": 500, "tol": 1e-6}
    clf = fit(DualLpPerceptron(**params), X, score > 0)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, score > 0, exact=True)
    assert fit(clf.set_params(restart=False), X, score > 0).status_ == "max_iter"
    reg = fit(DualLpRegressor(epsilon=0.01, **params), X, score)
    assert reg.status_ == "certified"
    assert check_certificate(reg, X, score, exact=True)
    assert fit(reg.set_params(restart=False), X, score).status_ == "max_iter"


def test_p_near_1_finds_the_l1_margin(rng):
    """Within a per cent, with no more features than examples, against a linear program."""
    X, y = separable(rng, n=20, d=300)
    A, d = explicit_rows(X, y)[0], X.shape[1]
    best = 1 / linprog(np.ones(2 * d), A_ub=-np.c_[A, -A], b_ub=-np.ones(len(A))).fun
    clf = fit(DualLpPerceptron(p=1.002, fit_intercept=False, random_state=0), X, y)
    assert clf.status_ == "certified"
    size = np.abs(clf.coef_.ravel())
    assert 0.99 * best <= (A @ clf.coef_.ravel()).min() / size.sum() <= best * (1 + 1e-9)
    assert np.searchsorted(np.cumsum(np.sort(size)[::-1]), 0.99 * size.sum()) < len(A)


@pytest.mark.parametrize("seed", [slow(s) for s in range(10)])
def test_the_sparse_norm_separates_the_papers_data_within_100_epochs(seed):
    X, y, *_ = raj_bach(seed, sparse=True)
    clf = DualLpPerceptron(p="sparse", stopping="separation", max_iter=100, random_state=seed)
    assert fit(clf.set_params(fit_intercept=False), X, y).status_ == "separated"
