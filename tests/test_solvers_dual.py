"""SMO and dual coordinate descent, against clarabel's optima, libsvm and liblinear."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.plain_examples import PlainExamples
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from test_solvers import TOL, check, optimum, programs, solved

from marginsvm.problem.kernels import Gram, Kernel
from marginsvm.problem.quadratic_program import classification, one_class, regression
from marginsvm.solvers.dual_cd import dual_cd
from marginsvm.solvers.smo import smo
from marginsvm.solvers.solve import solve

SOFT = (
    "hinge", "hinge without intercept", "squared", "squared tube", "ends", "Crammer-Singer",
    "squared, classes", "classes, no intercept",
)  # fmt: skip


class DenseExamples(PlainExamples):
    @property
    def points(self):
        return self.X


class SparseExamples(DenseExamples):
    """The same as a CSR matrix, from which products subtract the mean."""

    sparse = True

    def __init__(self, X):
        self.mean = X.mean(axis=0)
        self.csr = sp.csr_array(X)
        super().__init__(X - self.mean)

    def rows(self, i):
        return self.csr[i]


SIZES = [(30, 3), (12, 20), (60, 8)]
KINDS = [DenseExamples, SparseExamples]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
@pytest.mark.parametrize("name", SOFT)
def test_coordinate_descent_solves_soft_programs(name, kind, size):
    for seed in range(3):
        qp = dict(programs(np.random.default_rng(seed), *size, kind))[name]
        if kind is DenseExamples or qp.intercept:  # only with an intercept, a mean is subtracted
            check(qp, qp.examples.X, solved(dual_cd, qp, 1e-4), 1e-4)


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["hard", "hard, classes", "hard, overlap", "tube"])
def test_coordinate_descent_encloses_what_it_hands_over(name, kind):
    for seed in range(5):
        qp = dict(programs(np.random.default_rng(seed), 40, 5, kind))[name]
        encloses(qp, solved(dual_cd, qp, 1e-4))


def encloses(qp, found):
    """The values are on either side of the optimum, wherever a solver has ended."""
    best, game = optimum(qp, qp.examples.points), float(qp.game)
    P = qp.primal(found.w, found.f - 1e-13 * game * (np.arange(len(found.f)) == len(found.f) - 1))
    assert qp.dual(qp.feasible(found.alpha)) <= best + 1e-9 * abs(best) + 1e-9
    assert best <= P + 1e-9 * abs(best) + 1e-9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_coordinate_descent_finds_the_predictor_of_liblinear(rng, loss):
    X = rng.normal(size=(200, 6)) / 3.0
    y = (X[:, 0] + 0.2 * rng.normal(size=200) > 0).astype(int)
    qp = classification(DenseExamples(X), y, 2, C=2.0, loss=loss, intercept=False)
    found = solved(dual_cd, qp, 1e-8)
    svc = LinearSVC(C=2.0, loss=loss, fit_intercept=False, dual=True, tol=1e-10, max_iter=10**6)
    np.testing.assert_allclose(found.w, svc.fit(X, y).coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_coordinate_descent_of_degenerate_examples(rng, loss, k):
    X = np.repeat(rng.integers(-1, 2, (15, 4)) / 4.0, 4, axis=0)  # copies, zeros, other labels
    X[::7] = 0.0
    y = np.append(np.arange(k), rng.integers(0, k, 60 - k))
    for C in (1e-3, 0.1, 100.0):
        qp = classification(DenseExamples(X), y, k, C=C, loss=loss)
        found = solved(dual_cd, qp, 1e-4)
        encloses(qp, found)
        assert C > 1.0 or found.status == "converged"


@pytest.mark.parametrize("k", [2, 3])
def test_coordinate_descent_goes_on_from_a_solution(rng, k):
    X = rng.normal(size=(100, 5)) / 4.0
    y = np.append(np.arange(k), rng.integers(0, k, 100 - k))
    qp = classification(DenseExamples(X), y, k, C=1.0, loss="hinge")
    first = solved(dual_cd, qp, 1e-6)
    again = solved(dual_cd, qp, 1e-4, start=first.alpha)
    assert again.n_iter < first.n_iter


class GivenKernel(Gram):
    """A matrix of inner products."""

    def __init__(self, points):
        self.points = points
        super().__init__(None, points @ points.T)


BY_SMO = (
    *SOFT, "nu", "one class", "one class, hard", "tube", "nu tube", "hard", "hard, classes",
)  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", BY_SMO)
def test_smo_solves_programs_of_kernels(name, size):
    for seed in range(3):
        qp = dict(programs(np.random.default_rng(seed), *size, GivenKernel))[name]
        found = solved(smo, qp, 1e-5)
        if qp.game and abs(optimum(qp, qp.examples.points)) < 1e-8:  # float32 has no such margin
            encloses(qp, found)
        else:
            check(qp, qp.examples.points, found, 1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("k", [2, 3])
def test_smo_of_degenerate_examples(rng, loss, k):
    X = np.repeat(rng.integers(-1, 2, (15, 4)) / 4.0, 4, axis=0)  # copies, zeros, other labels
    X[::7] = 0.0
    y = np.append(np.arange(k), rng.integers(0, k, 60 - k))
    for C in (1e-3, 0.1, 100.0):
        qp = classification(GivenKernel(X), y, k, C=C, loss=loss)
        check(qp, X, solved(smo, qp), TOL)


def test_smo_finds_the_values_of_libsvm(rng):
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300) > 0).astype(int)
    t, gram = X[:, 0] ** 2 + 0.1 * rng.normal(size=300), Gram(Kernel("rbf", gamma=0.5), X)
    svc = SVC(C=3.0, gamma=0.5, tol=1e-8).fit(X, y)
    found = solved(smo, classification(gram, y, 2, C=3.0, loss="hinge"), 1e-8)
    values = gram.scores(found.w)[:, 0] + found.f[0]
    np.testing.assert_allclose(values, svc.decision_function(X), atol=1e-3)
    svr = SVR(C=3.0, gamma=0.5, epsilon=0.1, tol=1e-8).fit(X, t)
    found = solved(smo, regression(gram, t - 0.1, t + 0.1, C=3.0), 1e-8)
    np.testing.assert_allclose(gram.scores(found.w)[:, 0] + found.f[0], svr.predict(X), atol=1e-3)
    one = OneClassSVM(nu=0.3, gamma=0.5, tol=1e-8).fit(X)
    found = solved(smo, one_class(gram, 0.3), 1e-8)
    values = gram.scores(found.w)[:, 0] * (0.3 * 300)  # libsvm's alpha sum to nu n
    np.testing.assert_allclose(values, one.score_samples(X), rtol=1e-3)


def test_smo_refines_what_float32_rounds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    qp, gaps = classification(Gram(Kernel("rbf", gamma=0.1), X), y, 2, C=1e3, loss="hinge"), []

    def monitor(now):  # asks for more until the proof in float64 is good enough
        if now.gap <= 1e-6:
            gaps.append(qp.gap(qp.primal(now.w, now.f), qp.dual(qp.feasible(now.alpha))))
        return None if gaps and gaps[-1] <= 1e-6 else 1e-7 if gaps else 1e-6

    assert smo(qp, None, 1e-6, 500, monitor).status in ("converged", "stopped")
    assert gaps[0] > 1e-6 >= gaps[-1]


@pytest.mark.parametrize("size", [0.01, 100.0])
def test_smo_works_in_any_cache(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=1500) > 0).astype(int)
    gram = Gram(Kernel("rbf", gamma=0.1), X, cache_size=size)
    found = solved(smo, classification(gram, y, 2, C=0.1, loss="hinge"), 1e-4)
    assert found.status == "converged"


@pytest.mark.parametrize("name", ["hinge", "nu", "tube", "one class", "Crammer-Singer", "hard"])
def test_smo_goes_on_from_a_solution(rng, name):
    qp = dict(programs(rng, 300, 5, GivenKernel))[name]
    first = solved(smo, qp, 1e-5)
    again = solved(smo, qp, 1e-4, start=first.alpha)
    assert again.status == "converged"
    assert again.n_iter < first.n_iter


@pytest.mark.parametrize("kind", [DenseExamples, SparseExamples, GivenKernel])
def test_the_choice_solves_every_program(kind):
    for size in SIZES:
        rng = np.random.default_rng(sum(size))
        for name, qp in programs(rng, *size, kind):
            if kind is SparseExamples and not qp.intercept:
                continue
            found = solved(solve, qp)
            encloses(qp, found)
            assert found.status == "converged", name


def test_the_choice_goes_on_with_another_method():
    """Coordinate descent stalls on long examples with a large C, and others begin at its alpha."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 200)) * np.geomspace(1.0, 1e3, 200)
    y = (X[:, -1] + 1e3 * rng.normal(size=60) > 0).astype(int)
    qp, calls = classification(SparseExamples(X / 2e4), y, 2, C=1e6, loss="hinge"), []

    def monitor(now):
        calls.append(now.gap)
        return None if now.gap <= TOL else TOL

    found = solve(qp, None, TOL, 300, monitor)
    assert found.status == "converged"
    assert found.n_iter == len(calls)
    assert dual_cd(qp, None, TOL, 300, lambda now: TOL).status == "stalled"
    assert solve(qp, None, TOL, 3, lambda now: TOL)[-2:] == (3, "max_iter")
