"""Different ways to say the same thing give the same fit, and no more than it claims is true."""

import pickle
from copy import copy
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import WITH_THE_TOY, each_and_toy, over, slow, some_slow
from helpers.claiming import refused
from helpers.estimators import (
    ENDLESS,
    certified,
    confirmed,
    draws,
    fit,
    make,
    overlapping,
    parameters,
    separable,
)
from helpers.pairwise import pairwise
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.metrics.pairwise import rbf_kernel

import marginsvm
from marginsvm import (
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    check_certificate,
)

WITH_KERNELS = [cls for cls in WITH_THE_TOY if "kernel" in parameters(cls)]
# They go round by round. The exact solver may take another method for other forms, see EXACT.
BY_ROUNDS = [cls for cls in WITH_THE_TOY if cls is not MaxMarginClassifier]


def assert_same(a, b, *, rtol=1e-7, X=None):
    assert a.n_iter_ == b.n_iter_
    assert a.status_ == b.status_
    scale = abs(a.margin_bound_)
    np.testing.assert_allclose(
        a.margin_bound_, b.margin_bound_, rtol=rtol, atol=rtol * scale
    )
    np.testing.assert_allclose(a.margin_, b.margin_, rtol=rtol, atol=rtol * scale)
    if X is not None:
        Fa, Fb = a.decision_function(X), b.decision_function(X)
        np.testing.assert_allclose(
            Fa, Fb, rtol=1e-6, atol=100 * rtol * np.abs(Fa).max()
        )


def assert_same_optimum(a, b):
    """Bounds that agree; predictors as close as certified gaps say (strong convexity)."""
    assert max(a.margin_, b.margin_) <= min(a.margin_bound_, b.margin_bound_) * (
        1 + 1e-9
    )
    if a.status_ == b.status_ == "certified" and hasattr(a, "coef_"):
        apart = np.sqrt(2 * max(a.gap_, b.gap_)) / min(a.margin_, b.margin_)
        assert np.linalg.norm(a.coef_ - b.coef_) <= 2 * apart


@pairwise(
    cls=some_slow(BY_ROUNDS),
    k=[2, slow(4)],
    C=[np.inf, 1.0],
    fit_intercept=[True, slow(False)],
)
def test_containers(cls, k, C, fit_intercept, rng, tmp_path):
    X, y = separable(rng, n=64, k=k)
    X[np.abs(X) < 0.3] = 0.0
    estimator = make(cls, max_iter=30, C=C, fit_intercept=fit_intercept)
    dense = fit(estimator, X, y)
    joblib.dump(X, tmp_path / "X")
    mapped = joblib.load(tmp_path / "X", mmap_mode="r")
    for same in (
        np.asfortranarray(X),
        sp.csr_matrix(X),
        sp.csr_array(X),
        sp.coo_array(X),
        mapped,
    ):
        again = fit(make(cls, **estimator.get_params()), same, y)
        assert_same(dense, again, X=X)


@pairwise(
    cls=some_slow([cls for cls in WITH_KERNELS if cls in BY_ROUNDS]),
    normalize=[False, slow(True)],
    k=[2, slow(3)],
    C=[np.inf, 2.0],
    fit_intercept=[True, False],
)
def test_linear_kernels(cls, normalize, k, C, fit_intercept, rng):
    """Of the rows as given; and divided by their norms, where that can be asked for."""
    X, y = separable(rng, k=k)
    K = X @ X.T
    if normalize and "normalize" in parameters(cls):
        K = K / np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
        # the constant is the largest norm, which is 1 where K is all there is
        if fit_intercept:
            X = X / np.linalg.norm(X, axis=1)[:, None]
    params = {
        "max_iter": 25,
        "C": C,
        "fit_intercept": fit_intercept,
        "normalize": normalize,
    }
    linear = fit(make(cls, **params), X, y)
    precomputed = fit(make(cls, kernel="precomputed", **params), K, y)
    called = fit(make(cls, kernel=lambda A, B: A @ B.T, **params), X, y)
    named = fit(make(cls, kernel="poly", degree=1, gamma=1.0, **params), X, y)
    for other in (precomputed, called, named):
        assert_same(linear, other, rtol=1e-6)
    F = linear.decision_function(X)
    tolerance = 1e-5 * np.abs(F).max()
    np.testing.assert_allclose(precomputed.decision_function(K), F, atol=tolerance)
    np.testing.assert_allclose(called.decision_function(X), F, atol=tolerance)


@each_and_toy
def test_float32_stays_close(cls, rng):
    X, y = separable(rng)
    X = X.astype(np.float32)
    single, double = (
        fit(make(cls, max_iter=50), Z, y) for Z in (X, X.astype(np.float64))
    )
    atol = 1e-3 * double.margin_bound_
    np.testing.assert_allclose(single.margin_, double.margin_, rtol=0, atol=atol)
    np.testing.assert_allclose(
        single.margin_bound_, double.margin_bound_, rtol=0, atol=atol
    )


@pytest.mark.parametrize("C", [np.inf, slow(1.0)])
@over(BY_ROUNDS)
def test_weighted_examples_are_copies_in_any_order(cls, C, rng):
    if cls()._algorithm().requires.in_order:
        pytest.skip("visits the examples in their order")
    X, y = overlapping(rng, k=3) if np.isfinite(C) else separable(rng, k=3)
    weight, order = rng.integers(0, 4, len(y)), rng.permutation(len(y))
    weight[:3] = 1
    # the bounds of random fits agree after many rounds
    max_iter, ends = (
        (3000, assert_same_optimum) if draws(cls) else (30, partial(assert_same, X=X))
    )
    estimator = make(cls, max_iter=max_iter, C=C)
    weighted = fit(clone(estimator), X, y, weight)
    ends(weighted, fit(clone(estimator), X[order], y[order], weight[order]))
    ends(
        weighted,
        fit(clone(estimator), np.repeat(X, weight, axis=0), np.repeat(y, weight)),
    )


@pairwise(cls=some_slow(WITH_KERNELS), form=[np.asarray, sp.csr_array])
def test_integer_weights_are_copies_for_gamma_too(cls, form, rng):
    X, y = overlapping(rng)
    weight = rng.integers(0, 4, len(y))
    weight[:2] = 1
    estimator = make(cls, max_iter=2, C=1.0, kernel="rbf")
    weighted = fit(clone(estimator), form(X), y, sample_weight=weight)
    copies = fit(estimator, form(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    np.testing.assert_allclose(weighted._gamma, copies._gamma, rtol=1e-12)


@each_and_toy
def test_scale_rotation_and_shift(cls, rng):
    X, y = separable(rng)
    Q = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))[0]
    a = fit(make(cls, max_iter=30, normalize=False), X, y)
    # a penalised intercept minds
    shift = 0.0 if "intercept_scaling" in parameters(cls) else 5e3
    scaled = make(cls, intercept_scaling=1e3, max_iter=30, normalize=False)
    b = fit(scaled, 1e3 * X @ Q + shift, y)
    assert a.n_iter_ == b.n_iter_
    np.testing.assert_allclose(1e3 * a.margin_, b.margin_, rtol=1e-6)
    np.testing.assert_allclose(1e3 * a.margin_bound_, b.margin_bound_, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@over(BY_ROUNDS)
def test_stop_and_resume(cls, kernel, rng):
    X, y = overlapping(rng, k=3)
    params = {"kernel": kernel, "C": 1.0, "random_state": 0, **ENDLESS}
    whole = fit(make(cls, max_iter=40, **params), X, y)
    parts = fit(make(cls, max_iter=25, warm_start=True, **params), X, y)
    assert parts.n_iter_ == 25
    fit(parts.set_params(max_iter=40), X, y)
    assert parts.n_iter_ == whole.n_iter_
    # columns of a kernel come in other batches in the second fit, and sums in another order
    close = {"rtol": 1e-12, "atol": 0.0 if kernel == "linear" else 1e-12}
    np.testing.assert_allclose(parts.margin_, whole.margin_, **close)
    np.testing.assert_allclose(parts.margin_bound_, whole.margin_bound_, **close)
    # steps then end elsewhere, as far apart as predictors whose bounds agree to 1e-12 may be: 1e-6
    scores = close if kernel == "linear" else {"rtol": 0.0, "atol": 1e-9}
    np.testing.assert_allclose(
        parts.decision_function(X), whole.decision_function(X), **scores
    )
    for column in ("n_iter", "n_passes", "margin", "margin_bound"):
        np.testing.assert_allclose(
            parts.history_[column], whole.history_[column], **close
        )


LONG = {
    "momentum": ("MomentumMarginClassifier", {}),
    "logistic": ("MomentumMarginClassifier", {"loss": "logistic"}),
    "nu": ("MomentumMarginClassifier", {"nu": 0.2, "C": np.inf}),
    "optimistic": ("OptimisticPerceptron", {}),
    "p": ("OptimisticPerceptron", {"p": 1.5}),
    "mirror prox": ("AcceleratedPerceptron", {"play": "mirror_prox"}),
    "smoothed": ("SmoothedKernelPerceptron", {"normalize": True}),
    "batch": ("BatchPerceptron", {}),
    "dual lp": ("DualLpPerceptron", {"random_state": 0}),
    "adaptive": ("AdaptiveSamplingKernelClassifier", {"random_state": 0}),
}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", LONG)
def test_a_long_fit_goes_on_bit_for_bit(kind, k, rng):
    """Stopped between two computations of bounds, and pickled there."""
    (name, params), (X, y) = LONG[kind], overlapping(rng, n=60, k=k)
    params = {"C": 1.0, "warm_start": True, **ENDLESS, **params}
    whole = fit(make(getattr(marginsvm, name), **params, max_iter=150), X, y)
    parts = make(getattr(marginsvm, name), **params)
    for max_iter in (67, 101, 150):
        parts = fit(
            pickle.loads(pickle.dumps(parts.set_params(max_iter=max_iter))), X, y
        )
        assert parts.n_iter_ == parts.history_["n_iter"][-1] == max_iter
    for found in ("margin_", "margin_bound_", "coef_", "intercept_"):
        if hasattr(whole, found):
            np.testing.assert_array_equal(getattr(parts, found), getattr(whole, found))
    for column in ("n_iter", "n_passes", "margin", "margin_bound"):
        np.testing.assert_array_equal(parts.history_[column], whole.history_[column])


@each_and_toy
def test_fits_keep_apart(cls, rng):
    """From copies, and from other fits to the same data."""
    X, y = overlapping(rng)
    first = fit(make(cls, max_iter=5, C=1.0, warm_start=True, **ENDLESS), X, y)
    before = pickle.dumps(vars(first))
    fit(copy(first).set_params(max_iter=9), X, y)
    fit(make(cls, max_iter=8, C=1.0, **ENDLESS), X, y)
    assert pickle.dumps(vars(first)) == before
    fit(first.set_params(max_iter=7), X, y)
    if cls is MaxMarginClassifier:
        assert_same_optimum(first, fit(make(cls, C=1.0), X, y))
        return
    np.testing.assert_array_equal(first.history_["n_iter"], np.arange(1, 8))
    alone = fit(make(cls, max_iter=7, C=1.0, **ENDLESS), X, y)
    np.testing.assert_array_equal(first.history_["margin"], alone.history_["margin"])


def assert_refused_or_true(estimator, X, y):
    message = ""
    try:
        fit(estimator, X, y)
    except ValueError as error:
        message = str(error)
    assert (
        "continues the previous fit" in message
        if message
        else confirmed(estimator, X, y)
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@each_and_toy
def test_going_on_with_a_finished_fit(cls, kernel, rng):
    """Nothing more to do; other data of that shape is refused, or what is claimed holds for it."""
    X, y = separable(rng)
    estimator = fit(
        make(cls, kernel=kernel, tol=0.1, max_iter=400, warm_start=True), X, y
    )
    before = copy(estimator)
    fit(estimator, X, y)
    assert estimator.status_ == before.status_
    if cls is MaxMarginClassifier:
        assert_same_optimum(estimator, before)
    else:
        for name in ("n_iter_", "margin_", "margin_bound_"):
            assert getattr(estimator, name) == getattr(before, name)
    assert_refused_or_true(estimator, rng.permutation(X), y)
    with pytest.raises(ValueError, match="warm_start"):
        fit(estimator.set_params(max_iter=409), X[:20], y[:20])
    # where only an example without weight has moved
    params = {
        "fit_intercept": False,
        "kernel": kernel,
        "max_iter": 50,
        "warm_start": True,
    }
    estimator = fit(make(cls, **params), X, y)
    X[estimator.certificate_.weights.toarray().ravel().argmin()] *= -0.5
    assert_refused_or_true(estimator, X, y)


@pairwise(
    cls=some_slow(WITH_THE_TOY),
    kernel=[slow("linear"), "rbf"],
    stopped_at=[1, slow(200)],
)
def test_another_problem_is_a_fit_of_its_own(cls, kernel, stopped_at, rng):
    """No bound of the old one is claimed: from a hard margin to soft ones, with other weights."""
    X, y = separable(rng, k=3)
    clf = make(cls, warm_start=True, kernel=kernel, tol=1e-2, max_iter=stopped_at)
    fit(clf, X, y).set_params(max_iter=200)
    changes = [{"C": C} for C in (10.0, np.inf) if "C" in parameters(cls)]
    changes += [{"class_weight": weight} for weight in ({1: 0.1}, None)]
    for change, weight in [
        *((change, None) for change in changes),
        ({}, 1.0 + (y == 2)),
    ]:
        fit(clf.set_params(**change), X, y, weight)
        anew = fit(clone(clf).set_params(warm_start=False), X, y, weight)
        confirmed(clf, X, y, weight)
        if cls is MaxMarginClassifier:
            assert_same_optimum(clf, anew)
            continue
        assert_same(clf, anew, rtol=1e-12)
        for column in ("n_iter", "n_passes", "margin", "margin_bound"):
            np.testing.assert_allclose(
                clf.history_[column], anew.history_[column], rtol=1e-9
            )
    with pytest.raises(ValueError, match="another shape"):
        fit(clf.set_params(tol=1e-3), X[1:], y[1:])


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
    # no whole number of examples: one offset
    "one class": MaxMarginOutlierDetector(nu=0.23),
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
        "triplets": (kernel, sp.coo_array(X)),
        "fortran": (kernel, np.asfortranarray(X)),
        "float32": (kernel, X.astype(np.float32)),
        "precomputed": ("precomputed", K),
        "callable": (
            lambda A, B: A @ B.T if kernel == "linear" else rbf_kernel(A, B, 0.2),
            X,
        ),
    }
    for form, (given_kernel, Z) in forms.items():
        other = certified(given(name, **params | {"kernel": given_kernel}), Z, y)
        assert value(other) == pytest.approx(value(dense), rel=3e-6), form
        assert getattr(other, "nu_", 1) == pytest.approx(
            getattr(dense, "nu_", 1), rel=1e-2
        ), form
        np.testing.assert_allclose(
            scores(other, Z), scores(dense, X), atol=2e-2, err_msg=form
        )
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
    changes = (
        [{price: 0.6}, {price: 0.3}] if not name.startswith(("hard", "hull")) else []
    )
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
    refused(
        model, "", X, y, weight, exact=exact, weights=sp.csr_array(q / np.abs(q).sum())
    )
    for price in ("C", "nu"):
        at = getattr(model, price, None)
        if at is not None and np.isfinite(at):
            model.set_params(**{price: 1.01 * at})
            assert not check_certificate(model, X, y, weight, exact=exact)
            model.set_params(**{price: at})


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "cls", [MaxMarginClassifier, marginsvm.MomentumMarginClassifier]
)
def test_warm_starts_refuse_another_intercept(cls, k, intercept, rng):
    """Also on centred examples, where A'alpha is the same with and without one."""
    X, y = overlapping(rng, n=60, k=k)
    X = X - X.mean(axis=0)
    clf = cls(C=1.0, warm_start=True, fit_intercept=intercept)
    fit(clf, X, y).set_params(fit_intercept=not intercept)
    with pytest.raises(ValueError, match="another kernel, p or intercept"):
        clf.fit(X, y)
