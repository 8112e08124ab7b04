"""A margin is one over a norm: one proof, in rationals, against those of margins and of norms."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from marginsvm.certify.checker.numbers import Rationals
from marginsvm.certify.checker.posed import Problem
from marginsvm.certify.checker.problem import Problem as OfMargins
from marginsvm.certify.checker.regression import NormProblem


def fitted(kind, **attributes):
    """What the check reads of a fitted estimator."""
    estimator = type("Fitted", (kind, BaseEstimator), {})()
    vars(estimator).update(attributes)
    return estimator


def dyadic(rng, shape):
    """Numbers with few digits, of which many are equal, 0 or of another size."""
    x = rng.integers(-6, 7, shape) / 2.0 ** rng.integers(0, 3, shape)
    return x * np.where(rng.random(shape) < 0.1, 1024.0, 1.0)


def linear(rng, d, k, **others):
    intercept = bool(rng.integers(2))
    return {
        "coef_": dyadic(rng, (k, d)),
        "intercept_": dyadic(rng, k) * intercept,
        "C": float(rng.choice([np.inf, 0.25, 3.0])),
        "p": float(rng.choice([2.0, 2.0, 1.5])),
        "fit_intercept": intercept,
        "intercept_scaling": None if rng.integers(2) else 0.5,
        "normalize": False,
        **others,
    }


@given(st.integers(0, 2**32 - 1))
def test_margins_are_those_of_the_old_proof(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(4, 8)), int(rng.integers(1, 4)), int(rng.choice([2, 2, 3]))
    X, y = dyadic(rng, (n, d)), np.append(np.arange(k), rng.integers(0, k, n - k))
    loss = str(rng.choice(["squared_hinge", "hinge"]))
    clf = fitted(
        ClassifierMixin,
        **linear(rng, d, 1 if k == 2 else k, loss=loss, nu=None),
        classes_=np.arange(k),
        class_weight=None,
    )
    if rng.integers(3) == 0:
        clf.C, clf.nu = np.inf, 0.25
    if clf.fit_intercept and clf.intercept_scaling is None:
        clf.p = 2.0
    weight, numbers = rng.choice([1.0, 0.5, 3.0], n), Rationals()
    q = np.maximum(dyadic(rng, (n, 1 if k == 2 else k)), 0.0)
    weights = sp.csr_array(q)
    old = OfMargins(clf, X, y, weight, numbers)
    new = Problem.of(clf, X, y, weight, numbers)
    proof = new.proved(new.weights(weights))
    assert new.rounded(proof.margin, -1) == old.lower_bound()
    assert new.rounded(proof.margin_bound, 1) == old.upper_bound(weights)
    assert (new.separation(), new.radius, new.scale) == (old.separation(), old.radius, old.scale)
    if q.any():
        assert new.nu(new.weights(weights)) == old.nu(weights)


@given(st.integers(0, 2**32 - 1))
def test_norms_are_those_of_the_old_proof(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(1, 8)), int(rng.integers(1, 4)), int(rng.choice([1, 1, 3]))
    X, y = dyadic(rng, (n, d)), dyadic(rng, (n, k))
    reg = fitted(RegressorMixin, **linear(rng, d, k, epsilon=0.125, intercept_scaling=0.5))
    bounds = None
    if rng.integers(2):
        bounds = np.stack([y - 1.0, np.where(y > 1.0, np.inf, y + 0.5)], axis=-1)
    weight, numbers = rng.choice([1.0, 0.5, 3.0], n), Rationals()
    old = NormProblem(reg, X, y, weight, bounds, numbers)
    new = Problem.of(reg, X, y, weight, numbers, bounds)
    q = dyadic(rng, (n, k))
    proof, allowed = new.proved(q), 1 + numbers.rounding_error
    length, gain = old.length_and_gain(q)
    assert (proof.norm * allowed, proof.violation) == (old.norm(), old.violation())
    assert proof.gain == gain
    if gain != 0:
        assert proof.length * allowed == length
    if gain > 0 and length > 0:
        assert proof.norm_bound() / allowed == gain / length
    assert new.size_of_values() == old.scale
    assert new.violation_of_zero() == float(old.violation(of_zero=True))


@given(st.integers(0, 2**32 - 1))
def test_a_margin_is_one_over_a_norm(seed):
    """Two classes as a tube without an upper end: by rows of either kind."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    X, y = dyadic(rng, (n, d)), np.append([0, 1], rng.integers(0, 2, n - 2))
    sign, weight, numbers = 2.0 * y - 1.0, rng.choice([1.0, 0.5, 3.0], n), Rationals()
    params = linear(rng, d, 1, fit_intercept=False, intercept_=np.zeros(1), epsilon=0.0)
    clf = fitted(ClassifierMixin, **params, classes_=np.arange(2), class_weight=None)
    bounds = np.stack([np.ones(n), np.full(n, np.inf)], axis=-1)
    of_classes = Problem.of(clf, X, y, weight, numbers)
    of_tube = Problem.of(
        fitted(RegressorMixin, **params), sign[:, None] * X, y, weight, numbers, bounds
    )
    q = np.maximum(dyadic(rng, (n, 1)), 0.0)
    margins, norms = of_classes.proved(q), of_tube.proved(q)
    assert norms.length == margins.length
    assert norms.gain == margins.gain
    assert (norms.violation > 0) == (of_classes.separation() < 1)
    if q.any() and margins.length > 0:
        assert 1 / norms.norm_bound() == margins.margin_bound
    if np.isfinite(clf.C):
        assert 1 / norms.norm == margins.margin
