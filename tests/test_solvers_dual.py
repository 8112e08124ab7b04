"""SMO and dual coordinate descent, against clarabel's optima, libsvm and liblinear."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.plain_examples import PlainExamples
from sklearn.svm import LinearSVC
from test_solvers import check, optimum, programs, solved

from marginsvm.problem.quadratic_program import classification
from marginsvm.solvers.dual_cd import dual_cd

SOFT = (
    "hinge", "hinge without intercept", "squared", "squared tube", "ends", "Crammer-Singer",
    "squared, classes", "classes, no intercept",
)  # fmt: skip


class SparseExamples(PlainExamples):
    """The same as a CSR matrix, from which products subtract the mean."""

    sparse = True

    def __init__(self, X):
        self.mean = X.mean(axis=0)
        self.csr = sp.csr_array(X)
        super().__init__(X - self.mean)

    def rows(self, i):
        return self.csr[i]


SIZES = [(30, 3), (12, 20), (60, 8)]
KINDS = [PlainExamples, SparseExamples]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
@pytest.mark.parametrize("name", SOFT)
def test_coordinate_descent_solves_soft_programs(name, kind, size):
    for seed in range(3):
        qp = dict(programs(np.random.default_rng(seed), *size, kind))[name]
        if kind is PlainExamples or qp.intercept:  # only with an intercept, a mean is subtracted
            check(qp, qp.examples.X, solved(dual_cd, qp, 1e-4), 1e-4)


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["hard", "hard, classes", "hard, overlap", "tube"])
def test_coordinate_descent_encloses_what_it_hands_over(name, kind):
    for seed in range(5):
        qp = dict(programs(np.random.default_rng(seed), 40, 5, kind))[name]
        encloses(qp, solved(dual_cd, qp, 1e-4))


def encloses(qp, found):
    """The values are on either side of the optimum, wherever a solver has ended."""
    best, game = optimum(qp, qp.examples.X), float(qp.game)
    P = qp.primal(found.w, found.f - 1e-13 * game * (np.arange(len(found.f)) == len(found.f) - 1))
    assert qp.dual(qp.feasible(found.alpha)) <= best + 1e-9 * abs(best) + 1e-12
    assert best <= P + 1e-9 * abs(best) + 1e-12


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_coordinate_descent_finds_the_predictor_of_liblinear(rng, loss):
    X = rng.normal(size=(200, 6)) / 3.0
    y = (X[:, 0] + 0.2 * rng.normal(size=200) > 0).astype(int)
    qp = classification(PlainExamples(X), y, 2, C=2.0, loss=loss, intercept=False)
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
        qp = classification(PlainExamples(X), y, k, C=C, loss=loss)
        found = solved(dual_cd, qp, 1e-4)
        encloses(qp, found)
        assert C > 1.0 or found.status == "converged"


@pytest.mark.parametrize("k", [2, 3])
def test_coordinate_descent_goes_on_from_a_solution(rng, k):
    X = rng.normal(size=(100, 5)) / 4.0
    y = np.append(np.arange(k), rng.integers(0, k, 100 - k))
    qp = classification(PlainExamples(X), y, k, C=1.0, loss="hinge")
    first = solved(dual_cd, qp, 1e-6)
    again = solved(dual_cd, qp, 1e-4, start=first.alpha)
    assert again.n_iter < first.n_iter
