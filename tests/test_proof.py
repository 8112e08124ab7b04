"""What a fit publishes of a solver's points, and what that proves."""

import numpy as np
import pytest
from helpers.plain_examples import NAMES, PlainExamples, in_both, programs, some_alpha

from marginsvm.certificate.bounded import Rationals, dual, primal
from marginsvm.certificate.proof import prove, refuted
from marginsvm.problem.design import Design
from marginsvm.problem.kernels import Gram
from marginsvm.problem.quadratic_program import classification, one_class, regression
from marginsvm.solvers.interior_point import interior_point
from marginsvm.solvers.solution import Solution
from marginsvm.solvers.solve import solve

EXACT = Rationals()


def proof_of(qp, tol=1e-8):
    """Of what a solver finds."""
    found = Solution(qp, tol, 100)
    for _ in solve(found, None, [interior_point]):
        pass
    return prove(qp, found.w, found.f, found.alpha)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_is_proved_and_near_the_best(name, rng):
    X, y, m = rng.standard_normal((24, 3)) + 3.0, rng.standard_normal(24), rng.uniform(0.5, 2.0, 24)
    plain = programs(PlainExamples(X), y, m)[name]
    if plain.game and plain.intercept:  # what has margins
        X[:, 0] += 6.0 * (plain.codes if plain.codes is not None else plain.sign)
        X[:, 1] += 6.0 * (plain.codes == 1) if plain.codes is not None else 0.0
    qp, exact = in_both(name, X, y, m)
    proof = proof_of(qp)
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


@pytest.mark.parametrize("n", [40, 300])
def test_proofs_of_kernels(n, rng):
    X, codes = rng.standard_normal((n, 2)), np.arange(n) % 2
    X[:, 0] += 2.0 * codes
    gram = Gram(None, (X @ X.T + 1.0) ** 2)
    for given in ({"C": 1.0}, {"C": 1.0, "loss": "hinge"}, {"nu": 0.5}):
        assert proof_of(classification(gram, codes, 2, **given)).gap <= 1e-6


def test_a_share_of_all_examples_keeps_to_its_bounds(rng):
    """Where no weight can give way, they are the sample weights."""
    X, m = rng.standard_normal((9, 2)) + 4.0, rng.uniform(0.5, 2.0, 9)
    assert proof_of(one_class(Design.of(X), 1.0, m)).gap <= 1e-6


def test_a_predictor_of_signs_has_them(rng):
    X, codes = rng.standard_normal((30, 3)), np.arange(30) % 2
    qp = classification(Design.of(X), codes, 2, C=1.0, intercept=False, signs=np.array([1, -1, 0]))
    proof = prove(qp, np.array([[-1.0, 1.0, 1.0]]), np.zeros(0), np.ones(30))
    assert proof.predictor.coef[0, 0] >= 0.0 >= proof.predictor.coef[0, 1]


# That nothing fits.


def is_refuted(qp, alpha):
    """Whether weights near these refute a program; if so, plain sums confirm them."""
    q = refuted(qp, alpha)
    if q is not None:
        image = np.abs(qp.rmatvec(q)).sum() + np.abs(qp.balance(q)[: qp.n_intercepts]).sum()
        assert image <= 1e-8 * q.sum()
    return q is not None


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
        assert is_refuted(qp, alpha) == (shift is not apart)


def test_equal_examples_of_two_classes(rng):
    X, codes = rng.standard_normal((30, 40)), np.arange(30) % 3
    X[7] = X[20]
    rbf = Gram(lambda X, Y, **p: np.exp(-((X[:, None] - Y) ** 2).sum(-1)), X)
    for examples in (Design.of(X), rbf):
        for codes[7], codes[20] in ((0, 1), (1, 1)):
            qp = classification(examples, codes.copy(), 3)
            q = refuted(qp, np.where(qp.upper > 0, 1.0, 0.0))
            assert (q is None) == (codes[7] == codes[20])


@pytest.mark.parametrize("intercept", [True, False])
def test_tubes_that_nothing_fits(intercept, rng):
    X, y = rng.standard_normal((50, 4)), rng.standard_normal(50)
    for centre, fits in ((y, False), (X @ [1.0, -2.0, 0.5, 0.0], True)):
        qp = regression(Design.of(X), centre - 0.1, centre + 0.1, intercept=intercept)
        assert (refuted(qp, np.ones(qp.shape)) is None) == fits
