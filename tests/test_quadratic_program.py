"""The one quadratic program: duality, its products, and other solvers' optima."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.plain_examples import NAMES, PlainExamples, in_fractions, programs, some_alpha
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

from marginsvm.problem.quadratic_program import classification, one_class, regression


def drawn(rng, n=12, d=3):
    return rng.standard_normal((n, d)), rng.standard_normal(n), rng.uniform(0.5, 2.0, n)


@pytest.fixture(params=NAMES)
def qp(request, rng):
    X, y, m = drawn(rng)
    return programs(PlainExamples(X), y, m)[request.param]


def some_predictor(qp, rng):
    return rng.standard_normal((qp.k, qp.examples.d)), rng.standard_normal(qp.n_free)


def test_products_are_adjoint(qp, rng):
    """<alpha, A w + F f> = <A'alpha, w> + <F'alpha, f> on the rows."""
    alpha, (w, f) = some_alpha(qp, rng), some_predictor(qp, rng)
    left = (alpha * qp.matvec(w, f)).sum()
    right = (qp.rmatvec(alpha) * w).sum() + qp.balance(alpha) @ f
    assert left == pytest.approx(right, rel=1e-12)


def test_gram_is_that_of_the_products(qp, rng):
    i = rng.choice(np.flatnonzero(np.ravel(np.broadcast_to(qp.upper, qp.shape))), 5)
    for place, r in enumerate(i):
        e = np.zeros(qp.shape)
        e.flat[r] = 1.0
        products = qp.differences(qp.examples.scores(qp.rmatvec(e))).ravel()[i]
        assert qp.gram(i, i)[place] == pytest.approx(products, abs=1e-12)


def test_weak_duality_up_to_what_does_not_balance(qp, rng):
    """P(w, f) - D(alpha) >= f'(g - F'alpha), for any alpha within its bounds."""
    for _ in range(20):
        alpha = some_alpha(qp, rng) * rng.uniform(0.0, 0.3)
        alpha = np.minimum(alpha, np.broadcast_to(qp.upper, qp.shape))
        if qp.cap is not None:
            alpha *= np.minimum(1.0, qp.cap / alpha.sum(axis=1))[:, None]
        w, f = some_predictor(qp, rng)
        least = qp.dual(alpha) + f @ (qp.g - qp.balance(alpha))
        assert qp.primal(qp.project(w), f) >= least - 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_values_of_fractions_are_fractions_and_the_same(name, rng):
    """No float comes in between, from the constructors on."""
    X, y, m = drawn(rng)
    qp = programs(PlainExamples(X), y, m)[name]
    given = PlainExamples.in_fractions(X), in_fractions(y), in_fractions(m), Fraction
    exact, (w, f), alpha = programs(*given)[name], some_predictor(qp, rng), some_alpha(qp, rng)
    for value, fraction in (
        (qp.primal(w, f), exact.primal(in_fractions(w), in_fractions(f))),
        (qp.dual(alpha), exact.dual(in_fractions(alpha))),
    ):
        assert isinstance(fraction, Fraction) or value == np.inf
        assert float(fraction) == pytest.approx(value, rel=1e-12)


# Optima of other solvers.


def of_support(model, n):
    """All signed weights of a model of libsvm."""
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta


def is_optimal(qp, w, f, alpha):
    P, D = qp.primal(np.atleast_2d(w), np.atleast_1d(f)), qp.dual(alpha)
    assert pytest.approx(D, rel=1e-6) == P
    assert qp.gap(P, D) < 1e-6


def test_svc_and_linear_svc_are_optimal(rng):
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    model = SVC(kernel="linear", C=2.0, tol=1e-8).fit(X, y)
    qp = classification(PlainExamples(X), y, 2, C=2.0, loss="hinge")
    is_optimal(qp, model.coef_, model.intercept_, np.abs(of_support(model, 40)))
    model = LinearSVC(C=2.0, tol=1e-12, fit_intercept=False, max_iter=10**6).fit(X, y)
    qp = classification(PlainExamples(X), y, 2, C=2.0, intercept=False)
    r = np.maximum(1 - qp.matvec(model.coef_, np.zeros(0)), 0.0)
    is_optimal(qp, model.coef_, [], r / qp.ridge)


def test_svr_is_optimal(rng):
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    model = SVR(kernel="linear", C=2.0, epsilon=0.1, tol=1e-8).fit(X, y)
    beta, qp = of_support(model, 30), regression(PlainExamples(X), y - 0.1, y + 0.1, C=2.0)
    alpha = np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)])
    is_optimal(qp, model.coef_, model.intercept_, alpha)


def test_nu_svc_is_optimal(rng):
    """libsvm scales so that margin support vectors have decision values of 1 and -1."""
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    X[y == 1] += 2.0
    model = NuSVC(kernel="linear", nu=0.5, tol=1e-8).fit(X, y)
    alpha, qp = np.abs(of_support(model, 40)), classification(PlainExamples(X), y, 2, nu=0.5)
    mass = alpha.sum()
    is_optimal(qp, model.coef_ / mass, np.append(model.intercept_, 1.0) / mass, alpha / mass)


def test_one_class_svm_has_the_level_of_the_game(rng):
    X = rng.standard_normal((40, 2)) + 3.0
    model = OneClassSVM(kernel="linear", nu=0.25, tol=1e-8).fit(X)
    qp, alpha = one_class(PlainExamples(X), 0.25), of_support(model, 40)
    mass = alpha.sum()
    w = qp.rmatvec(alpha / mass)
    assert qp.gap(qp.primal(w, model.offset_ / mass), qp.dual(alpha / mass)) < 1e-6


# Weights and free unknowns.


def test_feasible_weights_are_and_stay(qp, rng):
    """Within their bounds and balanced, whatever they were."""
    for size in (1e-3, 1.0, 10.0):
        alpha = qp.feasible(some_alpha(qp, rng) * size)
        assert (alpha >= 0).all()
        assert (alpha <= np.broadcast_to(qp.upper, qp.shape) * (1 + 1e-12)).all()
        if qp.cap is not None and not qp.level:
            assert (alpha.sum(axis=1) <= qp.cap * (1 + 1e-12)).all()
        assert qp.balance(alpha) == pytest.approx(qp.g, abs=1e-9 * max(alpha.sum(), 1e-9))
        assert qp.feasible(alpha) == pytest.approx(alpha, abs=1e-9)


def test_free_unknowns_are_the_best(qp, rng):
    """No others near them have a smaller primal value."""
    if qp.codes is not None and not qp.level:
        pytest.skip("intercepts of several classes are the solver's")
    w, f = some_predictor(qp, rng)
    w = qp.project(0.1 * w)
    best = qp.best_f(qp.examples.scores(w), f)
    P = qp.primal(w, best)
    assert qp.primal(w, f) >= P
    for j in [qp.n_free - 1] if qp.codes is not None else range(qp.n_free):
        for step in (1e-3, -1e-3, 0.3, -0.3):
            assert qp.primal(w, best + step * np.eye(qp.n_free)[j]) >= P - 1e-12


def test_outputs_are_problems_with_one_norm(rng):
    X, y = PlainExamples(rng.standard_normal((9, 3))), rng.standard_normal((9, 2))
    both = regression(X, y - 0.1, y + 0.1, C=2.0)
    w, b, alpha = rng.standard_normal((2, 3)), rng.standard_normal(2), rng.random(both.shape)
    parts = [regression(X, y[:, o] - 0.1, y[:, o] + 0.1, C=2.0) for o in (0, 1)]
    of = [(qp, alpha[both.output == o]) for o, qp in enumerate(parts)]
    primals = [qp.primal(w[[o]], b[[o]]) for o, qp in enumerate(parts)]
    assert both.primal(w, b) == pytest.approx(sum(primals))
    assert both.dual(alpha) == pytest.approx(sum(qp.dual(some) for qp, some in of))
    assert both.balance(alpha) == pytest.approx([qp.balance(some)[0] for qp, some in of])
