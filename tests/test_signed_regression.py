"""Signs of coefficients of regressions (``monotonic_cst``), beside solvers that share no code."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import certified, confirmed, fit
from scipy.optimize import linprog, lsq_linear
from sklearn.base import clone

from marginsvm import MaxMarginRegressor, check_certificate

ENDS = {-1: (None, 0.0), 0: (None, None), 1: (0.0, None)}


def problems(n_problems, seed=0, *, n=25):
    """Random examples, targets, and signs of which some bind."""
    rng = np.random.default_rng(seed)
    for _ in range(n_problems):
        d = int(rng.integers(1, 6))
        X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
        y = X @ w + 0.5 * rng.standard_normal(n) + 3.0
        yield X, y, rng.integers(-1, 2, d)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_signs_are_kept(loss, C):
    """The best value of such programs is tested in test_solvers.py."""
    for X, y, signs in problems(5):
        reg = MaxMarginRegressor(C=C, epsilon=0.2, loss=loss, monotonic_cst=signs)
        assert np.all(certified(reg, X, y, exact=True).coef_ * signs >= 0.0)


def test_with_a_share_and_a_large_cost_it_is_a_linear_program():
    """The least sum of the worst distances, of which each unit may have a part."""
    for X, y, signs in problems(6, seed=1):
        (n, d), nu, C = X.shape, 0.3, 1e7
        reg = fit(MaxMarginRegressor(C=C, nu=nu, monotonic_cst=signs), X, y)
        confirmed(reg, X, y, exact=True)
        one = np.ones((n, 1))
        A = -np.block([[X, one, one, np.eye(n)], [-X, -one, one, np.eye(n)]])
        cost = np.concatenate([np.zeros(d + 1), [nu * n], np.ones(n)])
        ends = [ENDS[s] for s in signs.tolist()] + [ENDS[0]] + [ENDS[1]] * (n + 1)
        least = linprog(cost, A, np.append(-y, y), bounds=ends).fun
        assert reg.objective_ / C == pytest.approx(least, rel=1e-5)


def test_ridge_without_a_tube_is_a_bounded_least_squares():
    X, y, _ = next(problems(1, n=60))
    signs = np.ones(X.shape[1], int)
    params = {"C": 2.0, "epsilon": 0.0, "loss": "squared_epsilon_insensitive"}
    reg = MaxMarginRegressor(**params, fit_intercept=False, tol=1e-10, monotonic_cst=signs)
    reg.fit(X, y)
    both = np.vstack([X, 0.5 * np.eye(X.shape[1])])  # |w|^2 / 4, as the slack costs 2
    other = lsq_linear(both, np.append(y, np.zeros(X.shape[1])), (0.0, np.inf), tol=1e-14)
    np.testing.assert_allclose(reg.coef_, other.x, atol=1e-5)


@pytest.mark.parametrize("epsilon", [0.05, 10.0])
def test_hard_tubes(epsilon):
    """What no signed predictor fits is proved, in integers."""
    for X, y, _ in problems(6, seed=2, n=8):
        signs = np.where(np.arange(X.shape[1]) % 2, 1, -1)
        one, eye = np.ones((8, 1)), np.append(y, -y) + epsilon
        ends = [ENDS[s] for s in signs.tolist()] + [ENDS[0]]
        A = np.block([[X, one], [-X, -one]])
        fits = linprog(np.zeros(X.shape[1] + 1), A, eye, bounds=ends).status == 0
        reg = MaxMarginRegressor(C=np.inf, epsilon=epsilon, monotonic_cst=signs)
        certified(reg, X, y, ends=("certified" if fits else "infeasible",), exact=True)
        if not fits:  # without signs, these weights prove less
            free = clone(reg).set_params(monotonic_cst=None)
            vars(free).update({k: v for k, v in vars(reg).items() if k.endswith("_")})
            unsigned = linprog(np.zeros(X.shape[1] + 1), A, eye, bounds=[ENDS[0]] * len(ends))
            assert unsigned.status == 2 or not check_certificate(free, X, y, exact=True)


def test_signs_that_hold_anyway_change_nothing(rng):
    X, y, _ = next(problems(1))
    reg = MaxMarginRegressor().fit(X, y)
    signed = MaxMarginRegressor(monotonic_cst=np.sign(reg.coef_).astype(int)).fit(X, y)
    assert signed.objective_ == pytest.approx(reg.objective_, rel=2e-6)
    none = MaxMarginRegressor(monotonic_cst=[0] * X.shape[1]).fit(X, y)
    np.testing.assert_array_equal(none.coef_, reg.coef_)


@pytest.mark.parametrize("nu", [None, 0.4])
def test_outputs_sparse_examples_and_names(rng, nu):
    pandas = pytest.importorskip("pandas")
    X = rng.standard_normal((40, 3))
    Y = X @ rng.standard_normal((3, 2)) + rng.standard_normal((40, 2))
    signs = np.array([1, -1, 0])
    reg = MaxMarginRegressor(nu=nu, monotonic_cst=signs).fit(X, Y)
    assert np.all(reg.coef_ * signs >= 0.0)
    assert (np.abs(reg.coef_) < 1e-5).any()  # a sign binds
    confirmed(reg, X, Y, exact=True)
    for j in range(2):
        one = MaxMarginRegressor(nu=nu, monotonic_cst=signs).fit(X, Y[:, j])
        assert reg.objective_[j] == pytest.approx(one.objective_, rel=2e-6)
    sparse = MaxMarginRegressor(nu=nu, monotonic_cst=signs).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.objective_, reg.objective_, rtol=2e-6)
    named = MaxMarginRegressor(nu=nu, monotonic_cst={"a": 1, "b": -1})
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    np.testing.assert_allclose(named.fit(frame, Y).objective_, reg.objective_, rtol=2e-6)
    confirmed(named, frame, Y)


def test_wrong_signs_and_bounds_of_other_signs_are_refused():
    X, y, _ = next(problems(1))
    signs = -np.sign(MaxMarginRegressor().fit(X, y).coef_).astype(int)
    reg = MaxMarginRegressor(monotonic_cst=signs).fit(X, y)
    false = pickle.loads(pickle.dumps(reg)).set_params(monotonic_cst=-signs)
    assert check_certificate(reg, X, y, exact=True)
    assert not check_certificate(false, X, y, exact=True)
    free = MaxMarginRegressor().fit(X, y).set_params(monotonic_cst=signs)
    assert "sign that monotonic_cst does not allow" in check_certificate(free, X, y).reason


@pytest.mark.parametrize("cst", [[1, 2, 0], [1], {"a": 1}])
def test_signs_that_do_not_fit_are_refused(rng, cst):
    X, y = rng.standard_normal((9, 3)), rng.standard_normal(9)
    with pytest.raises(ValueError, match="monotonic_cst"):
        MaxMarginRegressor(monotonic_cst=cst).fit(X, y)
    with pytest.raises(ValueError, match="constrains the coefficients of features"):
        MaxMarginRegressor(kernel="rbf", monotonic_cst=[1, 0, 0]).fit(X, y)
