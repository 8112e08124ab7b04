"""Systems that are definite but for rounding: of the preconditioners and of Newton's method."""

import numpy as np
import pytest
from scipy.linalg.lapack import dpotrs

from marginsvm.algorithms.exact.definite import cholesky
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.algorithms.exact.systems.features import Direct
from marginsvm.algorithms.exact.systems.free import FreeRows
from marginsvm.algorithms.exact.systems.system import Equation
from marginsvm.kernel_matrix import GramAdapter, LinearAdapter, make_rows
from marginsvm.rows import Predictor

TWO = make_rows(np.array([0, 1]), 2, balanced=False)
HUGE = 2.0**66  # beside it, float64 does not hold the 1 that makes systems definite


def test_a_definite_matrix_gets_its_own_factor():
    A = np.random.default_rng(0).normal(size=(6, 4))
    M = A.T @ A + np.eye(4)
    assert np.allclose(np.triu(cholesky(np.asfortranarray(M))), np.linalg.cholesky(M).T)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("a", [[1.0, 1.0, 1.0], [1.0, -1.0, 1e-9], [3.0, 0.1, 0.7]])
def test_a_singular_system_is_solved_as_far_as_it_has_a_solution(a, order):
    a = np.array(a)
    M = np.array(HUGE * np.outer(a, a) + np.diag([0.0, 0.0, 1.0]), order=order)
    right = M @ np.array([1.0, 2.0, 3.0])
    x = dpotrs(cholesky(M.copy(order=order)), right, lower=0)[0]
    assert np.abs(M @ x - right).max() <= 1e-6 * np.abs(right).max()
    assert right @ x > 0.0


@pytest.mark.parametrize("M", [np.full((2, 2), np.inf), np.full((2, 2), np.nan), np.zeros((2, 2))])
def test_a_matrix_of_no_use_leaves_steepest_descent(M):
    assert np.array_equal(cholesky(M), np.eye(2))


def test_newtons_direction_by_features_where_two_of_them_are_equal():
    problem = LinearAdapter(np.array([[1.0, 1.0], [-1.0, -1.0]]), TWO, C=1.0)
    r = np.array([1.0, 1.0])
    r = Predictor(r, np.zeros(2))
    z, _, _ = Direct().direction(problem, Equation(np.full(2, HUGE), r))
    assert z.image == pytest.approx(
        r.image / (2.0 * HUGE), rel=1e-6
    )  # H = HUGE [1 1; 1 1] in radii


def test_newtons_direction_by_the_rows_where_two_of_them_are_equal():
    K = np.array([[1.0, -1.0], [-1.0, 1.0]])  # the same row twice, as labels differ
    problem = GramAdapter(None, K, TWO, HUGE).with_hinge_loss()
    w = problem.combine(np.ones(2))
    z, _, _ = FreeRows().direction(problem, Equation(np.full(2, HUGE), w))
    assert problem.scores(z) == pytest.approx([-1.0 / HUGE, 1.0 / HUGE], rel=1e-6)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_what_is_free_and_the_features_lead_in_the_same_direction(k, balanced, rng):
    """Of many classes, with some examples whose rows have reached the cap that they share."""
    y = np.append(np.arange(k), rng.integers(0, k, 40))
    rows = make_rows(y, k, balanced=balanced)
    problem = LinearAdapter(rng.standard_normal((len(y), 5)), rows)
    margins = rows.margins(0.5 * rng.standard_normal(rows.score_shape))
    each = rows.per_example(y).shape
    slack = Slack(0.0, 0.3 + rng.random(each), soft=0.2 + rng.random(each), shared=k > 2)
    weight, linked = slack.curvature(margins, slack.weights(margins))
    assert (linked is not None) == (k > 2)
    r = problem.combine(rng.standard_normal(rows.shape) * np.isfinite(margins))
    equation = Equation(weight, r, linked)
    z, b, _ = Direct().direction(problem, equation)
    found, shift, _ = FreeRows().direction(problem, equation)
    np.testing.assert_allclose(found.image, z.image, atol=1e-11)
    of_found, of_z = (rows.moves(np.broadcast_to(t, rows.score_shape)) for t in (shift, b))
    np.testing.assert_allclose(of_found, of_z, atol=1e-11)
