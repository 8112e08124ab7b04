"""What algorithms say of the vectors of their rounds: the images, masses and margins of these.

Published bounds are computed again from the vectors; a fit stops, and keeps the best of its rounds,
by what is said here.
"""

import numpy as np
import pytest
from helpers.estimators import ESTIMATORS, make, overlapping, problem_of, quiet, separable
from helpers.oracle import explicit_rows
from helpers.pairwise import pairwise
from toy_algorithm import DualFista

from marginsvm.fit import Candidate, Stopping
from marginsvm.fit.play import advance, begin
from marginsvm.rows import Predictor, Vector

ROUNDS = 25


@pairwise(cls=[*ESTIMATORS, DualFista], k=[2, 3], C=[np.inf, 1.0])
def test_candidates_are_what_is_said_of_them(cls, k, C, rng):
    """All are sums of rows spelled out; without an intercept, the margin is the smallest."""
    X, y = (separable if np.isinf(C) else overlapping)(rng, n=40, d=4, k=k)
    X[0] = 0.1 * X[y == y[0]].mean(axis=0)  # what is nearest to 0 on the way there is beyond it
    clf = make(cls, fit_intercept=False, normalize=False, C=C)
    problem = problem_of(clf, X, y)
    A = explicit_rows(X, y, C=problem.C)[0] / problem.radius
    rows = problem.rows.flat_indices()
    algorithm, stopping = clf._algorithm(), Stopping(tol=0.0, max_iter=ROUNDS)
    seen, said = begin(algorithm, problem), 0
    with quiet():
        while seen.n_iter < ROUNDS and not seen.settled:
            seen = advance(algorithm, problem, stopping, seen)
            for candidate in algorithm.candidates(problem, seen.state):
                said += holds(candidate, A, rows)
    assert said >= 2


def holds(candidate, A, rows):
    """How many things are said of a candidate, all of which are true."""
    vector, n_features = candidate.vector, candidate.vector.image.size
    c, long = vector.coef.ravel()[rows], A.T @ vector.coef.ravel()[rows]
    size, said = max(np.abs(c).sum(), np.abs(vector.image).max(), 1e-300), 0
    if candidate.mass > 0.0:
        np.testing.assert_allclose(candidate.mass, c.sum(), rtol=1e-9)
        np.testing.assert_allclose(vector.image.ravel(), long[:n_features], atol=1e-9 * size)
        assert c.min() >= -1e-12 * size
        said += 1
    if candidate.min_margin is not None:
        long[:n_features] = vector.image.ravel()  # a predictor need not be a sum of rows
        np.testing.assert_allclose(candidate.min_margin, (A @ long).min(), atol=1e-9 * size)
        said += 1
    return said


def test_only_combinations_of_rows_give_upper_bounds():
    a, b = Vector(np.ones(2), np.ones(3)), Predictor(np.ones(2), np.ones(3))
    assert type(a - 2.0 * a) is Vector
    assert type(a + b) is type(b - a) is Predictor
    assert Candidate(a + a, mass=6.0).combination.mass == 6.0
    with pytest.raises(AssertionError):
        _ = Candidate(a + b, mass=6.0).combination
