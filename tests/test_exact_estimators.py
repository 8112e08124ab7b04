"""What holds of all exact fits: forms of data, weights, units, going on, and false claims."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.claiming import refused
from helpers.estimators import certified, confirmed, fit, separable
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.metrics.pairwise import rbf_kernel

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    check_certificate,
)

SQUARED = "squared_epsilon_insensitive"
EXACT = {
    "hard": MaxMarginClassifier(),
    "squared": MaxMarginClassifier(C=0.5),
    "hinge": MaxMarginClassifier(C=0.5, loss="hinge"),
    "hard, 3 classes": MaxMarginClassifier(),
    "squared, 3 classes": MaxMarginClassifier(C=0.5),
    "hinge, 3 classes": MaxMarginClassifier(C=0.5, loss="hinge"),
    "tube": MaxMarginRegressor(C=0.5),
    "squared tube": MaxMarginRegressor(C=0.5, loss=SQUARED),
    "share": MaxMarginRegressor(C=0.5, nu=0.4),
    "hull": MaxMarginOutlierDetector(nu=None),
    "one class": MaxMarginOutlierDetector(nu=0.23),  # no whole number of examples: one offset
}


def data(name, rng, n=60, d=4):
    """X, which float32 holds, and y, or None for detectors."""
    X, y = separable(rng, n=n, d=d, k=3 if "classes" in name else 2)
    X[:, 2:] *= rng.random((n, d - 2)) < 0.5
    X = X.astype(np.float32).astype(float)
    if is_regressor(EXACT[name]):
        y = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    elif is_outlier_detector(EXACT[name]):
        X, y = X + np.float32(1.5), None
    return X, y


def given(name, **params):
    return clone(EXACT[name]).set_params(**params)


def value(model):
    """The objective: its certified gap is the relative error."""
    return model.objective_ if is_regressor(model) else 0.5 / model.margin_**2


def scores(model, X):
    return model.predict(X) if is_regressor(model) else model.decision_function(X)


each_kernel = pytest.mark.parametrize("kernel", ["linear", "rbf"])
each_exact = pytest.mark.parametrize("name", EXACT)


@each_exact
@each_kernel
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_forms_of_the_same_data(name, kernel, fit_intercept, rng):
    X, y = data(name, rng, n=300 if "classes" in name else 60)
    params = {"kernel": kernel, "gamma": 0.2, "tol": 1e-8}
    if not name.startswith(("hard", "hull", "one class")):
        params["fit_intercept"] = fit_intercept
    dense = certified(given(name, **params), X, y)
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.2)
    forms = {
        "csr": (kernel, sp.csr_array(X)),
        "float32": (kernel, X.astype(np.float32)),
        "precomputed": ("precomputed", K),
        "callable": (lambda A, B: A @ B.T if kernel == "linear" else rbf_kernel(A, B, 0.2), X),
    }
    for form, (given_kernel, Z) in forms.items():
        other = certified(given(name, **params | {"kernel": given_kernel}), Z, y)
        assert value(other) == pytest.approx(value(dense), rel=3e-6), form
        assert getattr(other, "nu_", 1) == pytest.approx(getattr(dense, "nu_", 1), rel=1e-2), form
        np.testing.assert_allclose(scores(other, Z), scores(dense, X), atol=2e-2, err_msg=form)
    if is_classifier(dense) and kernel == "linear":
        for Z in (X, sp.csr_array(X), X.astype(np.float32)):
            blocks = [(Z[:25], y[:25]), (Z[25:], y[25:])]
            other = given(name, **params).fit_blocks(blocks)
            confirmed(other, blocks)
            assert value(other) == pytest.approx(value(dense), rel=3e-6)


@each_exact
@each_kernel
def test_weights_are_copies(name, kernel, rng):
    X, y = data(name, rng)
    weight = rng.integers(0, 4, len(X))
    weight[:3] = 1
    copied = [None if a is None else np.repeat(a, weight, axis=0) for a in (X, y)]
    params = {"kernel": kernel, "gamma": 0.3, "tol": 1e-8}
    weighted = certified(given(name, **params), X, y, weight)
    copies = certified(given(name, **params), *copied)
    assert value(weighted) == pytest.approx(value(copies), rel=3e-6)
    np.testing.assert_allclose(scores(weighted, X), scores(copies, X), atol=1e-2)
    assert name.startswith(("hard", "hull")) or not check_certificate(weighted, X, y)
    with pytest.raises(ValueError, match=r"[wW]eights"):
        weighted.fit(X, y, sample_weight=np.zeros(len(X)))


@each_exact
@pytest.mark.parametrize("unit", [1e-8, 1e12])
def test_units(name, unit, rng):
    X, y = data(name, rng)
    one = given(name, kernel="linear").fit(X, y)
    price = {"C": one.C / unit**2} if hasattr(one, "C") else {}
    other = certified(given(name, kernel="linear", **price), unit * X, y, exact=True)
    assert value(other) * unit**2 == pytest.approx(value(one), rel=3e-6)


@each_exact
@each_kernel
def test_going_on(name, kernel, rng):
    """After a first round, and from the solution of another problem."""
    X, y = data(name, rng, n=600)
    params = {"kernel": kernel, "gamma": 0.3}
    model = fit(given(name, warm_start=True, max_iter=1, **params), X, y)
    price = "nu" if getattr(model, "nu", None) else "C"
    changes = [{price: 0.6}, {price: 0.3}] if not name.startswith(("hard", "hull")) else []
    changes += [{"loss": "squared_hinge"}] * name.startswith("hinge")
    for change in [{"max_iter": 200}, *changes]:
        model = certified(pickle.loads(pickle.dumps(model)).set_params(**change), X, y)
        anew = clone(model).set_params(warm_start=False).fit(X, y)
        assert value(model) == pytest.approx(value(anew), rel=3e-6)


@each_exact
@pytest.mark.parametrize("exact", [False, True])
def test_false_claims_are_refused(name, exact, rng):
    X, y = data(name, rng)
    weight = rng.integers(1, 4, len(X)).astype(float)
    model = certified(given(name, kernel="linear"), X, y, weight, exact=exact)
    far = 1e-9 if exact else 1e-4
    norms = {"objective": "objective_ is", "objective_bound": "objective_bound_ is"}
    margins = {"margin_bound": "the weights prove", "margin": "predictor's margin"}
    bounds = norms if is_regressor(model) else margins  # too small, and too large
    for (bound, words), off in zip(bounds.items(), (-far, far), strict=True):
        false = {bound: getattr(model.certificate_, bound) * (1.0 + off)}
        refused(model, words, X, y, weight, exact=exact, **false)
    q = model.certificate_.weights.toarray()
    q[np.argmax(np.abs(q).sum(axis=1))] *= 3.0  # off balance, or above its cap
    refused(model, "", X, y, weight, exact=exact, weights=sp.csr_array(q / np.abs(q).sum()))
    for price in ("C", "nu"):
        at = getattr(model, price, None)
        if at is not None and np.isfinite(at):
            model.set_params(**{price: 1.01 * at})
            assert not check_certificate(model, X, y, weight, exact=exact)
            model.set_params(**{price: at})
