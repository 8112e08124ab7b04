"""What a fit publishes of a solver's points, and what that proves."""

from dataclasses import replace

import numpy as np
import pytest
from test_quadratic_program import programs

from marginsvm.certificate.bounded import Rationals, dual, primal
from marginsvm.certificate.examples import ExactFeatures
from marginsvm.certificate.proof import prove, refuted
from marginsvm.problem.design import Design
from marginsvm.problem.kernels import Gram
from marginsvm.problem.quadratic_program import classification, one_class, regression
from marginsvm.solvers.interior_point import interior_point
from marginsvm.solvers.solution import Progress
from marginsvm.solvers.solve import solve

EXACT = Rationals()
NAMES = [name for name, _ in programs(np.random.default_rng(0))]


def solved(qp, tol=1e-8):
    found = Progress(qp, tol, 100)
    for _ in solve(found, None, [interior_point]):
        pass
    return found.w, found.f, found.alpha


def exactly(qp, X):
    """The same program in fractions, in the user's units: radius 1."""
    names = ("sign", "target", "ridge", "upper", "cap")
    arrays = {name: EXACT.array(v) for name in names if (v := getattr(qp, name)) is not None}
    numbers = {"total": EXACT.number(qp.total) if qp.level > 0 else qp.total}
    return replace(qp, examples=ExactFeatures(X, centred=qp.intercept), **arrays, **numbers)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_is_proved_and_near_the_best(name, rng):
    plain = dict(programs(rng, n=24))[name]
    X = plain.examples.X + 3.0
    if plain.game and plain.intercept:  # what has margins
        X[:, 0] += 6.0 * (plain.codes if plain.codes is not None else plain.sign)
        X[:, 1] += 6.0 * (plain.codes == 1) if plain.codes is not None else 0.0
    qp = replace(plain, examples=Design.of(X, X.mean(axis=0) if plain.intercept else None))
    proof = prove(qp, *solved(qp))
    assert proof.gap <= 1e-7
    assert proof.alpha.sum() == pytest.approx(float(name != "hard tube"))  # w = 0 fits
    exact = exactly(qp, X)
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
        qp = classification(gram, codes, 2, **given)
        assert prove(qp, *solved(qp)).gap <= 1e-6


def test_a_share_of_all_examples_keeps_to_its_bounds(rng):
    """Where no weight can give way, they are the sample weights."""
    X, m = rng.standard_normal((9, 2)) + 4.0, rng.uniform(0.5, 2.0, 9)
    qp = one_class(Design.of(X), 1.0, m)
    proof = prove(qp, *solved(qp))
    assert proof.gap <= 1e-6


def test_a_predictor_of_signs_has_them(rng):
    X, codes = rng.standard_normal((30, 3)), np.arange(30) % 2
    qp = classification(Design.of(X), codes, 2, C=1.0, intercept=False, signs=np.array([1, -1, 0]))
    proof = prove(qp, np.array([[-1.0, 1.0, 1.0]]), np.zeros(0), np.ones(30))
    assert proof.predictor.coef[0, 0] >= 0.0 >= proof.predictor.coef[0, 1]


def refuting(qp, alpha):
    """The weights that are found to refute a program, checked by plain sums."""
    q = refuted(qp, alpha)
    if q is not None:
        image = np.abs(qp.rmatvec(q)).sum() + np.abs(qp.balance(q)[: qp.n_intercepts]).sum()
        assert image <= 1e-8 * q.sum()
    return q is not None


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_overlap_is_proved_from_rough_weights(k, intercept, rng):
    X, codes = rng.standard_normal((60, 3)), np.arange(60) % k
    for shift in (0.0, 1e6):
        qp = classification(Design.of(X + shift, X.mean(axis=0) + shift), codes, k, intercept=True)
        if not intercept:
            qp = classification(Design.of(X), codes, k, intercept=False)
        alpha = rng.uniform(0.5, 1.5, qp.shape)
        if k > 2:
            alpha[np.arange(60), codes] = 0.0
        assert refuting(qp, qp.feasible(alpha))
    X[:, 0] += 20.0 * codes
    qp = classification(Design.of(X, X.mean(axis=0)), codes, k)
    alpha = np.ones(qp.shape)
    if k > 2:
        alpha[np.arange(60), codes] = 0.0
    assert not refuting(qp, qp.feasible(alpha))


def test_equal_examples_of_two_classes(rng):
    X, codes = rng.standard_normal((30, 40)), np.arange(30) % 3
    X[7], codes[7], codes[20] = X[20], 0, 1
    for examples in (
        Design.of(X),
        Gram(lambda X, Y, **p: np.exp(-((X[:, None] - Y) ** 2).sum(-1)), X),
    ):
        qp = classification(examples, codes, 3)
        alpha = np.ones(qp.shape)
        alpha[np.arange(30), codes] = 0.0
        assert refuted(qp, alpha) is not None
        codes = codes.copy()
        codes[7] = 1
        assert refuted(classification(examples, codes, 3), alpha) is None
        codes[7] = 0


@pytest.mark.parametrize("intercept", [True, False])
def test_tubes_that_nothing_fits(intercept, rng):
    X, y = rng.standard_normal((50, 4)), rng.standard_normal(50)
    qp = regression(Design.of(X), y - 0.1, y + 0.1, intercept=intercept)
    assert refuted(qp, np.ones(qp.shape)) is not None
    w = np.array([1.0, -2.0, 0.5, 0.0])
    qp = regression(Design.of(X), X @ w - 0.1, X @ w + 0.1, intercept=intercept)
    assert refuted(qp, np.ones(qp.shape)) is None
