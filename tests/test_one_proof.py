"""A margin is one over a norm: the one proof of any predictor and weights, in rationals."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from marginsvm.certificate.numbers import Rationals
from marginsvm.certificate.reading import Data, Reading


def read(estimator, X, y, weight=None, bounds=None):
    """The programs of an estimator and its data, in rationals."""
    return Reading(estimator, Data.of(estimator, X, y, weight, bounds), Rationals())


def proved(reading, q):
    """What the predictor and weights prove, of all programs."""
    numbers = reading.numbers
    duals = [part.dual(np.asarray(q, float), numbers) for part in reading.parts]
    return [part.primal(numbers) for part in reading.parts], duals


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


def of_classes(rng):
    """A problem of classes with some predictor, and weights, in rationals."""
    n, d, k = int(rng.integers(4, 8)), int(rng.integers(1, 4)), int(rng.choice([2, 2, 3]))
    X, y = dyadic(rng, (n, d)), np.append(np.arange(k), rng.integers(0, k, n - k))
    params = linear(rng, d, 1 if k == 2 else k, nu=None)
    params["loss"] = str(rng.choice(["squared_hinge", "hinge"]))
    if rng.integers(3) == 0:
        params.update(C=np.inf, nu=0.25)
    if params["intercept_scaling"] is None:
        params["p"] = 2.0  # only then is an intercept free
    clf = fitted(ClassifierMixin, **params, classes_=np.arange(k), class_weight=None)
    q = np.maximum(dyadic(rng, (n, 1 if k == 2 else k)), 0.0)
    if k > 2:
        q[np.arange(n), y] = 0.0
    return read(clf, X, y, rng.choice([1.0, 0.5, 3.0], n)), q


@given(st.integers(0, 2**32 - 1))
def test_no_margin_is_above_what_weights_prove(seed):
    reading, q = of_classes(np.random.default_rng(seed))
    (primal,), (dual,) = proved(reading, q)
    assert max(primal.margin, 0) <= reading.margin_bound(dual)


@given(st.integers(0, 2**32 - 1))
def test_no_norm_is_below_what_weights_prove(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(1, 8)), int(rng.integers(1, 4)), int(rng.choice([1, 1, 3]))
    X, y = dyadic(rng, (n, d)), dyadic(rng, (n, k))
    params = linear(rng, d, k, epsilon=0.125)
    if params["intercept_scaling"] is None:
        params["p"] = 2.0
    if np.isfinite(params["C"]):
        params["loss"] = str(rng.choice(["epsilon_insensitive", "squared"]))
    reg, bounds = fitted(RegressorMixin, **params), None
    if rng.integers(2):
        bounds = np.stack([y - 1.0, np.where(y > 1.0, np.inf, y + 0.5)], axis=-1)
    reading = read(reg, X, y, rng.choice([1.0, 0.5, 3.0], n), bounds)
    primals, duals = proved(reading, dyadic(rng, (n, k)))
    delta = max(primal.violation for primal in primals) if np.isinf(reg.C) else 0
    for primal, dual in zip(primals, duals, strict=True):
        assert dual.objective(delta) <= primal.objective


@given(st.integers(0, 2**32 - 1))
def test_a_margin_is_one_over_a_norm(seed):
    """Two classes as a tube without an upper end: by rows of either kind."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    X, y = dyadic(rng, (n, d)), np.append([0, 1], rng.integers(0, 2, n - 2))
    sign, weight = 2.0 * y - 1.0, rng.choice([1.0, 0.5, 3.0], n)
    params = linear(rng, d, 1, fit_intercept=False, intercept_=np.zeros(1), epsilon=0.0)
    clf = fitted(ClassifierMixin, **params, classes_=np.arange(2), class_weight=None)
    bounds = np.stack([np.ones(n), np.full(n, np.inf)], axis=-1)
    classes = read(clf, X, y, weight)
    tube = read(fitted(RegressorMixin, **params), sign[:, None] * X, y, weight, bounds)
    q = np.maximum(dyadic(rng, (n, 1)), 0.0)
    ((margin,), (of_margin,)), ((norm,), (of_norm,)) = proved(classes, q), proved(tube, q)
    assert of_norm.length == of_margin.length
    assert (norm.violation > 0) == (margin.separation < 1)
    if np.isfinite(clf.C):
        assert of_norm.gain == of_margin.gain
        assert norm.objective == margin.objective
        assert of_norm.objective() == of_margin.objective()
    elif q.any() and of_norm.length > 0:
        off = 2 * of_norm.objective() * of_margin.margin_bound**2 - 1
        assert abs(off) < Fraction(1, 10**50)


LINE = {"fit_intercept": False, "intercept_scaling": None, "normalize": False, "p": 2.0}


def test_weights_above_the_price_of_slack_prove_nothing():
    """Of two opposite examples, with C = 1 / 4, the best w is 1 / 2, and its objective 3 / 8."""
    params = {**LINE, "coef_": [[0.5]], "intercept_": [0.0], "C": 0.25, "loss": "hinge"}
    clf = fitted(ClassifierMixin, **params, classes_=np.arange(2), class_weight=None)
    clf.coef_ = np.array(clf.coef_)
    reading = read(clf, np.array([[1.0], [-1.0]]), [1, 0])
    (primal,), (dual,) = proved(reading, np.full((2, 1), 0.5))
    assert abs(primal.objective - Fraction(3, 8)) < Fraction(1, 10**50)
    assert abs(dual.objective() - Fraction(3, 8)) < Fraction(1, 10**50)


def test_wider_intervals_allow_shorter_predictors():
    """A score of 1 where 2 +- 1 / 8 is asked for: 7 / 8 too low, and as short as that allows."""
    params = {**LINE, "coef_": np.ones(1), "intercept_": 0.0, "C": np.inf, "epsilon": 0.125}
    reading = read(fitted(RegressorMixin, **params), np.ones((1, 1)), [2.0])
    (primal,), (dual,) = proved(reading, np.ones((1, 1)))
    assert primal.violation == Fraction(7, 8)
    for bound, best in ((primal.objective, 1), (dual.objective(), Fraction(15, 8) ** 2)):
        assert abs(2 * bound - best) < Fraction(1, 10**50)
    assert abs(2 * dual.objective(primal.violation) - 1) < Fraction(1, 10**50)


def test_one_weight_proves_nothing_where_the_intercept_is_free():
    """The constant 2 fits, and has norm 0; weights that are not balanced must pay for it."""
    params = {**LINE, "coef_": np.zeros(1), "intercept_": 2.0, "C": np.inf, "epsilon": 0.125}
    reg = fitted(RegressorMixin, **{**params, "fit_intercept": True})
    reading = read(reg, np.ones((1, 1)), [2.0])
    (primal,), (dual,) = proved(reading, np.ones((1, 1)))
    assert (primal.norm, primal.violation) == (0, 0)
    assert dual.objective() == 0
