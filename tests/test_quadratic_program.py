"""The one quadratic program: duality, its products, and other solvers' optima."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers.plain_examples import PlainExamples, in_fractions
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

from marginsvm.problem.quadratic_program import classification, one_class, regression


def programs(rng, n=12, d=3):
    X = PlainExamples(rng.standard_normal((n, d)))
    two, three = np.arange(n) % 2, np.arange(n) % 3
    y, m = rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    low, high = np.where(np.arange(n) % 4 == 0, -np.inf, y - 0.1), y + 0.1
    yield "hinge", classification(X, two, 2, C=2.0, loss="hinge", weight=m)
    yield "squared", classification(X, two, 2, C=2.0, weight=m)
    yield "hard", classification(X, two, 2)
    yield "nu", classification(X, two, 2, nu=0.7, weight=m)
    yield "signs", classification(X, two, 2, C=2.0, signs=np.array([1.0, -1.0, 0.0]))
    yield "no intercept", classification(X, two, 2, C=2.0, intercept=False)
    yield "Crammer-Singer", classification(X, three, 3, C=2.0, loss="hinge", weight=m)
    yield "squared, 3 classes", classification(X, three, 3, C=2.0, weight=m)
    yield "hard, 3 classes", classification(X, three, 3)
    yield "nu, 3 classes", classification(X, three, 3, nu=0.7)
    yield "tube", regression(X, y - 0.1, y + 0.1, C=2.0, weight=m)
    yield "squared tube", regression(X, low, high, C=2.0, loss="squared_epsilon_insensitive")
    yield "hard tube", regression(X, y - 5, y + 5)
    yield "nu tube", regression(X, y, y, C=2.0, nu=0.4)
    yield "one class", one_class(X, 0.3, m)


NAMES = [name for name, _ in programs(np.random.default_rng(0))]


@pytest.fixture(params=NAMES)
def qp(request, rng):
    return dict(programs(rng))[request.param]


def some_alpha(qp, rng):
    alpha = rng.uniform(0.0, 1.0, qp.shape)
    if qp.codes is not None:
        alpha[np.arange(len(alpha)), qp.codes] = 0.0
    return alpha


def test_products_are_adjoint(qp, rng):
    """<alpha, A w + F f> = <A'alpha, w> + <F'alpha, f> on the rows."""
    alpha, f = some_alpha(qp, rng), rng.standard_normal(qp.n_free)
    w = rng.standard_normal((qp.k, qp.examples.d))
    left = (alpha * qp.matvec(w, f)).sum()
    right = (qp.rmatvec(alpha) * w).sum() + qp.balance(alpha) @ f
    assert left == pytest.approx(right, rel=1e-12)


def test_gram_is_that_of_the_products(qp, rng):
    i = rng.choice(np.flatnonzero(np.ravel(np.broadcast_to(qp.upper, qp.shape))), 5)
    for r in i:
        e = np.zeros(qp.shape)
        e.flat[r] = 1.0
        assert qp.gram(i, i)[list(i).index(r)] == pytest.approx(
            qp.differences(qp.examples.scores(qp.rmatvec(e))).ravel()[i], abs=1e-12
        )


def test_weak_duality_up_to_what_does_not_balance(qp, rng):
    """P(w, f) - D(alpha) >= f'(g - F'alpha), for any alpha within its bounds."""
    for _ in range(20):
        alpha = some_alpha(qp, rng) * rng.uniform(0.0, 0.3)
        alpha = np.minimum(alpha, np.broadcast_to(qp.upper, qp.shape))
        if qp.cap is not None:
            alpha *= np.minimum(1.0, qp.cap / alpha.sum(axis=1))[:, None]
        f = rng.standard_normal(qp.n_free)
        w = qp.project(rng.standard_normal((qp.k, qp.examples.d)))
        least = qp.dual(alpha) + f @ (qp.g - qp.balance(alpha))
        assert qp.primal(w, f) >= least - 1e-9


def test_values_are_the_same_in_fractions(qp, rng):
    names = ("sign", "target", "ridge", "upper", "cap")
    exact = replace(
        qp,
        examples=PlainExamples.in_fractions(qp.examples.X),
        **{s: in_fractions(v) for s in names if (v := getattr(qp, s)) is not None},
    )
    w, f = rng.standard_normal((qp.k, qp.examples.d)), rng.standard_normal(qp.n_free)
    alpha = some_alpha(qp, rng)
    for one, other in (
        (qp.primal(w, f), exact.primal(in_fractions(w), in_fractions(f))),
        (qp.dual(alpha), exact.dual(in_fractions(alpha))),
    ):
        assert float(other) == pytest.approx(one, rel=1e-12)


def optimum(qp, model, coef, intercept, alpha, *, rel):
    w = np.atleast_2d(coef)
    P, D = qp.primal(w, np.atleast_1d(intercept)), qp.dual(alpha)
    assert pytest.approx(D, rel=rel) == P
    assert qp.gap(P, D) < rel


def test_svc_is_optimal(rng):
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    model = SVC(kernel="linear", C=2.0, tol=1e-8).fit(X, y)
    alpha = np.zeros(40)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    qp = classification(PlainExamples(X), y, 2, C=2.0, loss="hinge")
    optimum(qp, model, model.coef_, model.intercept_, alpha, rel=1e-6)


def test_linear_svc_is_optimal(rng):
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    model = LinearSVC(C=2.0, tol=1e-12, fit_intercept=False, max_iter=10**6).fit(X, y)
    qp = classification(PlainExamples(X), y, 2, C=2.0, intercept=False)
    r = np.maximum(1 - qp.matvec(model.coef_, np.zeros(0)), 0.0)
    optimum(qp, model, model.coef_, [], r / qp.ridge, rel=1e-6)


def test_svr_is_optimal(rng):
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    model = SVR(kernel="linear", C=2.0, epsilon=0.1, tol=1e-8).fit(X, y)
    beta = np.zeros(30)
    beta[model.support_] = model.dual_coef_[0]
    qp = regression(PlainExamples(X), y - 0.1, y + 0.1, C=2.0)
    alpha = np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)])
    optimum(qp, model, model.coef_, model.intercept_, alpha, rel=1e-6)


def test_nu_svc_is_optimal(rng):
    """libsvm scales so that margin support vectors have decision values of 1 and -1."""
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    X[y == 1] += 2.0
    model = NuSVC(kernel="linear", nu=0.5, tol=1e-8).fit(X, y)
    alpha = np.zeros(40)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    qp = classification(PlainExamples(X), y, 2, nu=0.5)
    f = np.append(model.intercept_, 1.0) / alpha.sum()
    P, D = qp.primal(model.coef_ / alpha.sum(), f), qp.dual(alpha / alpha.sum())
    assert pytest.approx(D, rel=1e-6) == P
    assert qp.gap(P, D) < 1e-6


def test_one_class_svm_has_the_level_of_the_game(rng):
    X = rng.standard_normal((40, 2)) + 3.0
    model = OneClassSVM(kernel="linear", nu=0.25, tol=1e-8).fit(X)
    qp = one_class(PlainExamples(X), 0.25)
    alpha = np.zeros(40)
    alpha[model.support_] = model.dual_coef_[0] / model.dual_coef_.sum()
    w = qp.rmatvec(alpha)
    rho = np.array([model.offset_[0] / model.dual_coef_.sum()])
    assert qp.gap(qp.primal(w, rho), qp.dual(alpha)) < 1e-6


def test_feasible_weights_are(qp, rng):
    """Within their bounds and balanced, whatever they were."""
    for size in (1e-3, 1.0, 10.0):
        alpha = qp.feasible(some_alpha(qp, rng) * size)
        assert (alpha >= 0).all()
        assert (alpha <= np.broadcast_to(qp.upper, qp.shape) * (1 + 1e-12)).all()
        if qp.cap is not None and not qp.level:
            assert (alpha.sum(axis=1) <= qp.cap * (1 + 1e-12)).all()
        assert qp.balance(alpha) == pytest.approx(qp.g, abs=1e-9 * max(alpha.sum(), 1e-9))


def test_feasible_weights_stay(qp, rng):
    alpha = qp.feasible(some_alpha(qp, rng))
    assert qp.feasible(alpha) == pytest.approx(alpha, abs=1e-9)


def test_free_unknowns_are_the_best(qp, rng):
    """No others near them have a smaller primal value."""
    if qp.codes is not None and not qp.level:
        pytest.skip("intercepts of several classes are the solver's")
    w = qp.project(rng.standard_normal((qp.k, qp.examples.d)) * 0.1)
    f = rng.standard_normal(qp.n_free)
    best = qp.best_f(qp.examples.scores(w), f)
    P = qp.primal(w, best)
    assert qp.primal(w, f) >= P
    for j in [qp.n_free - 1] if qp.codes is not None else range(qp.n_free):
        for step in (1e-3, -1e-3, 0.3, -0.3):
            assert qp.primal(w, best + step * np.eye(qp.n_free)[j]) >= P - 1e-12


def test_fractions_stay_fractions(rng):
    """Constructors and both values round nothing: no float comes in between."""
    X, m = rng.standard_normal((8, 2)), in_fractions(rng.uniform(0.5, 2.0, 8))
    exact, codes, half = PlainExamples.in_fractions(X), np.arange(8) % 3, Fraction(1, 3)
    y = in_fractions(rng.standard_normal((8, 2)))
    made = [
        *(classification(exact, codes % k, k, C=half, weight=m) for k in (2, 3)),
        *(classification(exact, codes % k, k, C=half, loss="hinge", weight=m) for k in (2, 3)),
        *(classification(exact, codes % k, k, nu=half, weight=m) for k in (2, 3)),
        regression(exact, y[:, 0] - 1, y[:, 0] + 1, C=half, weight=m),
        regression(exact, y[:, 0], y[:, 0], C=half, nu=half, weight=m),
        regression(exact, y - 1, y + 1, C=half, loss="squared_epsilon_insensitive", weight=m),
        one_class(exact, half, m),
    ]
    for qp in made:
        w, f = in_fractions(rng.standard_normal((qp.k, 2))), in_fractions(rng.random(qp.n_free))
        alpha = in_fractions(some_alpha(qp, rng))
        assert isinstance(qp.dual(alpha), Fraction)
        assert isinstance(qp.primal(w, f), Fraction)


def test_outputs_are_problems_with_one_norm(rng):
    X, y = PlainExamples(rng.standard_normal((9, 3))), rng.standard_normal((9, 2))
    both = regression(X, y - 0.1, y + 0.1, C=2.0)
    w, b, alpha = rng.standard_normal((2, 3)), rng.standard_normal(2), rng.random(both.shape)
    parts = [regression(X, y[:, o] - 0.1, y[:, o] + 0.1, C=2.0) for o in (0, 1)]
    rows = [both.output == o for o in (0, 1)]
    P = [qp.primal(w[[o]], b[[o]]) for o, qp in enumerate(parts)]
    D = [qp.dual(alpha[some]) for some, qp in zip(rows, parts, strict=True)]
    assert both.primal(w, b) == pytest.approx(sum(P))
    assert both.dual(alpha) == pytest.approx(sum(D))
    assert both.balance(alpha) == pytest.approx(
        [qp.balance(alpha[some])[0] for some, qp in zip(rows, parts, strict=True)]
    )
