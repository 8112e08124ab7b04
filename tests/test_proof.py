"""The one quadratic program: feasible points, and what a fit publishes of a solver's points."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.plain_examples import (
    NAMES,
    PlainExamples,
    in_both,
    in_fractions,
    programs,
    some_alpha,
)

from marginsvm.certificate.bounded import Rationals, dual, primal
from marginsvm.certificate.proof import prove, refuted
from marginsvm.problem.design import Design
from marginsvm.problem.quadratic_program import classification
from marginsvm.solvers.interior_point import interior_point
from marginsvm.solvers.solution import Solution
from marginsvm.solvers.solve import solve

EXACT = Rationals()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_is_proved_and_near_the_best(name, rng):
    X, y, m = rng.standard_normal((24, 3)) + 3.0, rng.standard_normal(24), rng.uniform(0.5, 2.0, 24)
    plain = programs(PlainExamples(X), y, m)[name]
    if plain.game and plain.intercept:  # what has margins
        X[:, 0] += 6.0 * (plain.codes if plain.codes is not None else plain.sign)
        X[:, 1] += 6.0 * (plain.codes == 1) if plain.codes is not None else 0.0
    qp, exact = in_both(name, X, y, m)
    found = Solution(qp, 1e-8, 100)
    for _ in solve(found, None, [interior_point]):
        pass
    proof = prove(qp, found.w, found.f, found.alpha)
    assert proof.gap <= 1e-7
    assert proof.alpha.sum() == pytest.approx(float(name != "hard tube"))  # w = 0 fits
    f = np.append(proof.predictor.intercept, proof.predictor.f[-1:] if qp.level > 0 else [])
    w = primal(exact, EXACT.array(proof.predictor.coef), EXACT.array(f), EXACT)
    q = dual(exact, EXACT.array(proof.alpha), EXACT)
    assert w.objective <= proof.primal.objective
    if qp.by_margins:
        assert proof.margin <= w.margin
    if qp.game:
        assert q.margin_bound <= proof.margin_bound
    else:
        assert proof.dual.objective() <= q.objective()


# Weights and free unknowns.


def drawn(rng):
    return rng.standard_normal((12, 3)), rng.standard_normal(12), rng.uniform(0.5, 2.0, 12)


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
    exact, (w, f), alpha = programs(*given)[name], some_predictor(qp, rng), some_alpha(qp, rng)
    for value, fraction in (
        (qp.primal(w, f), exact.primal(in_fractions(w), in_fractions(f))),
        (qp.dual(alpha), exact.dual(in_fractions(alpha))),
    ):
        assert isinstance(fraction, Fraction) or value == np.inf
        assert float(fraction) == pytest.approx(value, rel=1e-12)


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
            image = np.abs(qp.rmatvec(q)).sum() + np.abs(qp.balance(q)[: qp.n_intercepts]).sum()
            assert image <= 1e-8 * q.sum()
