"""Models that are saved and loaded, or turned into those of scikit-learn."""

import io
import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import WITH_THE_TOY, each, slow, some_slow
from helpers.estimators import (
    ENDLESS,
    ESTIMATORS,
    fit,
    make,
    overlapping,
    parameters,
    separable,
)
from helpers.pairwise import pairwise
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM

import marginsvm
from marginsvm import (
    DualLpRegressor,
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    NesterovSchedule,
    PowerSchedule,
    check_certificate,
)
from marginsvm.kernels import two_layer_relu_ntk

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs" / "user_guide.rst"

# What skops must be told to trust beside the estimator; fits to be gone on with, more of ours.
FINISHED = {
    "marginsvm.certificate.certificate.Certificate",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",  # support vectors of such an X
}


def product(A, B):
    return np.asarray(A @ B.T)


SCHEDULES = {"step": PowerSchedule(0.25), "momentum": NesterovSchedule(delay=2.0)}


def problems(cls, rng):
    if cls is MomentumMarginClassifier:
        yield {"kernel": "linear", **SCHEDULES}, *separable(rng)
    for k in (2, 3):
        X, y = separable(rng, k=k)
        yield {"kernel": "linear", "normalize": True}, X, y
        yield {"kernel": "linear"}, sp.csr_array(np.where(np.abs(X) < 0.3, 0.0, X)), y
        if "kernel" in parameters(cls):
            yield {"kernel": "rbf", "normalize": True}, X, y
            yield {"kernel": "rbf"}, sp.csr_matrix(X), y
            yield {"kernel": "precomputed", "normalize": False}, X @ X.T, y
            yield {"kernel": product}, X, y
            yield {"kernel": two_layer_relu_ntk(8)}, X, y


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return joblib.load(file)


def with_skops():
    pytest.importorskip("skops", reason="pip install marginsvm[test-all]")
    import skops.io

    return skops


def loads_skops(data):
    skops = with_skops()
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def by_skops(model):
    return loads_skops(with_skops().io.dumps(model))


def assert_equal_models(model, other, X, y):
    np.testing.assert_array_equal(
        model.decision_function(X), other.decision_function(X)
    )
    check, expected = (check_certificate(m, X, y) for m in (model, other))
    assert check
    assert (check.margin, check.margin_bound) == (
        expected.margin,
        expected.margin_bound,
    )
    assert str(model.certificate_) == str(other.certificate_)
    difference = model.certificate_.weights - other.certificate_.weights
    assert difference.count_nonzero() == 0


@pairwise(
    cls=some_slow(WITH_THE_TOY), copied=[by_pickle, slow(by_joblib), slow(by_skops)]
)
def test_round_trips(cls, copied, rng):
    for params, X, y in problems(cls, rng):
        unfitted = copied(make(cls, max_iter=8, **params, **ENDLESS))
        with pytest.raises(NotFittedError):
            unfitted.predict(X)
        model = fit(make(cls, max_iter=8, **params, **ENDLESS), X, y)
        assert_equal_models(copied(model), model, X, y)
        assert_equal_models(fit(unfitted, X, y), model, X, y)
        assert not hasattr(clone(copied(model)), "certificate_")


@pairwise(
    cls=some_slow(ESTIMATORS), copied=[by_pickle, slow(by_joblib), slow(by_skops)]
)
def test_round_trips_of_fits_to_be_gone_on_with(cls, copied, rng):
    for kernel in ("linear", *(("rbf",) if "kernel" in parameters(cls) else ())):
        X, y = overlapping(rng, k=3)
        params = {"C": 1.0, "kernel": kernel, "warm_start": True, **ENDLESS}
        part = fit(make(cls, max_iter=9, **params), X, y)
        copy = copied(part)
        for model in (part, copy):
            fit(model.set_params(max_iter=20), X, y)
        whole = fit(make(cls, max_iter=20, **params), X, y)
        assert copy.n_iter_ == part.n_iter_
        assert part.n_iter_ == whole.n_iter_ or cls is MaxMarginClassifier
        assert_equal_models(copy, part, X, y)


def untrusted(model):
    skops = with_skops()
    return set(skops.io.get_untrusted_types(data=skops.io.dumps(model)))


def name_of(cls):
    return f"{cls.__module__}.{cls.__name__}"


@pytest.mark.slow
@each
def test_skops_need_trust_no_one_but_us(cls, rng):
    own = name_of(cls)
    for params, X, y in problems(cls, rng):
        params = {**params, **ENDLESS, "max_iter": 8}
        kernel = params["kernel"]
        theirs = {f"{__name__}.product"} if kernel is product else set()
        theirs |= {name_of(type(kernel))} if hasattr(kernel, "prepare") else set()
        theirs |= {name_of(type(params[name])) for name in SCHEDULES if name in params}
        assert untrusted(make(cls, **params)) == {own} | theirs
        assert untrusted(fit(make(cls, **params), X, y)) <= {own} | FINISHED | theirs
        pending = untrusted(fit(make(cls, warm_start=True, **params), X, y))
        assert all(
            name.startswith("marginsvm.") for name in pending - FINISHED - theirs
        )


@pytest.mark.parametrize("skops", [False, True])
def test_models_say_who_wrote_them(skops, rng, monkeypatch):
    X, y = separable(rng)
    model = fit(MomentumMarginClassifier(max_iter=8), X, y)
    dumped = with_skops().io.dumps if skops else pickle.dumps
    monkeypatch.setattr("marginsvm.estimators.predictions.__version__", "0.0.1")
    data = dumped(model)
    monkeypatch.undo()
    match = "marginsvm.MomentumMarginClassifier from version 0.0.1 when using version"
    with pytest.warns(InconsistentVersionWarning, match=match):
        other = loads_skops(data) if skops else pickle.loads(data)
    assert_equal_models(other, model, X, y)
    state = model.__getstate__()
    assert state.pop("_marginsvm_version") == marginsvm.__version__
    with pytest.warns(InconsistentVersionWarning, match="unknown"):
        MomentumMarginClassifier().__setstate__(state)


@pytest.mark.skipif(not DOCS.exists(), reason="not in the sources' folder")
def test_the_user_guide_names_what_to_trust():
    listed = DOCS.read_text()
    assert all(f"``{name}``" in listed for name in FINISHED | {name_of(PowerSchedule)})


def are_equal(model, estimator, X):
    """Decision values to 1e-9 of their size, and predictions; also after pickling."""
    for name in ("decision_function", "score_samples", "predict"):
        if not hasattr(estimator, name):
            continue
        expected = getattr(estimator, name)(X)
        for found in (model, pickle.loads(pickle.dumps(model))):
            values = getattr(found, name)(X)
            assert values.shape == expected.shape
            if name == "predict" and hasattr(estimator, "decision_function"):
                np.testing.assert_array_equal(values, expected)
                continue
            atol = 1e-9 * np.abs(expected).max()
            np.testing.assert_allclose(values, expected, rtol=0, atol=atol)


@each
def test_linear_classifiers(cls, rng):
    for k in (2, 3):
        X, y = overlapping(rng, k=k)
        clf = fit(make(cls, max_iter=20), X, np.array(["a", "b", "c"])[y])
        if getattr(clf, "normalize", False):
            with pytest.raises(ValueError, match="normalize=True"):
                clf.to_sklearn()
            continue
        model = clf.to_sklearn()
        assert isinstance(model, LinearSVC)
        are_equal(model, clf, rng.standard_normal((30, 3)))


def squares(A, B):
    return np.asarray(A @ B.T) ** 2


KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "poly", "kernel_params": {"degree": 3, "gamma": 0.1}},
    {"kernel": "laplacian"},
    {"kernel": squares},
]
MODELS = {
    "hinge": (MaxMarginClassifier(C=0.7, loss="hinge", max_iter=50), SVC),
    "squared hinge": (MaxMarginClassifier(C=0.7, max_iter=50), SVC),
    "tube": (MaxMarginRegressor(max_iter=50), SVR),
    "one class": (MaxMarginOutlierDetector(nu=0.2), OneClassSVM),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("params", KERNELS)
@pytest.mark.parametrize(("model", "kind"), MODELS.values(), ids=MODELS)
def test_kernels(model, kind, params, form, rng):
    X, y = overlapping(rng, n=80)
    X += 3.0 * (kind is OneClassSVM)  # else cubes have no margin
    y = {SVC: np.array(["yes", "no"])[y], SVR: X[:, 0] + y}.get(kind)
    ours = fit(clone(model).set_params(**params), form(X), *([] if y is None else [y]))
    theirs = ours.to_sklearn()
    assert isinstance(theirs, kind)
    are_equal(theirs, ours, form(rng.standard_normal((30, 3)) + X.mean(axis=0)))
    assert theirs.n_support_.sum() == len(ours.support_)
    assert (
        theirs.get_params().get("nu", 0.5) == getattr(ours, "nu", 0.5)
        or kind is not OneClassSVM
    )


@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_a_precomputed_kernel(C, rng):
    X, y = separable(rng, n=40)
    clf = fit(MaxMarginClassifier(kernel="precomputed", C=C), X @ X.T, y)
    are_equal(clf.to_sklearn(), clf, rng.standard_normal((9, 5)) @ X.T)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", "laplacian"])
def test_a_predictor_that_is_zero(kernel):
    clf = MomentumMarginClassifier(kernel=kernel, max_iter=5)
    fit(clf, np.ones((4, 4)), [0, 1, 0, 1])
    found = clf.to_sklearn().decision_function(np.eye(4))
    np.testing.assert_allclose(found, clf.decision_function(np.eye(4)), rtol=1e-12)


def test_it_is_the_predictor_that_svc_finds(rng):
    X, y = overlapping(rng, n=80)
    ours = (
        MaxMarginClassifier(C=1.0, loss="hinge", kernel="rbf", tol=1e-7)
        .fit(X, y)
        .to_sklearn()
    )
    theirs = SVC(C=1.0, kernel="rbf", tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)


def test_linear_regressors_and_detectors(rng):
    X = rng.standard_normal((20, 4)) + 2.0
    reg = fit(DualLpRegressor(C=1.0, epsilon=0.1, random_state=0), X, X[:, 0] + 1.0)
    assert isinstance(reg.to_sklearn(), LinearSVR)
    detector = fit(MaxMarginOutlierDetector(kernel="linear", nu=0.2), X)
    assert isinstance(detector.to_sklearn(), OneClassSVM)
    for model in (reg, detector):
        are_equal(model.to_sklearn(), model, rng.standard_normal((20, 4)))
    several = fit(DualLpRegressor(C=1.0, random_state=0), X, X[:, :2])
    with pytest.raises(ValueError, match="one output"):
        several.to_sklearn()


def test_what_has_none_is_refused(rng):
    X, y = overlapping(rng, k=3)
    with pytest.raises(NotFittedError):
        MaxMarginClassifier().to_sklearn()
    with pytest.raises(ValueError, match="only two classes"):
        fit(MaxMarginClassifier(C=1.0, kernel="rbf"), X, y).to_sklearn()

    def kernel(A, B):
        return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])

    words = fit(
        MaxMarginClassifier(C=1.0, kernel=kernel), ["ab", "cd", "ac"], [0, 1, 0]
    )
    with pytest.raises(ValueError, match="not objects"):
        words.to_sklearn()


def test_pickles_of_0_2_end_in_a_sentence():
    """They name modules of marginsvm.algorithms."""
    pickled = b"cmarginsvm.algorithms.momentum\nMomentumMarginClassifier\n."
    for load in (pickle.loads, lambda data: joblib.load(io.BytesIO(data))):
        with pytest.raises(ImportError, match=r"fitted with marginsvm 0\.2.*fit again"):
            load(pickled)


def test_pickles_of_the_release_candidate_are_read():
    """Written by 1.0.0rc1: models predict, their certificates hold; fits are begun anew."""
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 2.0], [4.0, 4.0]]), [0, 0, 1, 1]
    written = (ROOT / "tests/helpers/fits_of_1_0_0rc1.pickle").read_bytes()
    with pytest.warns(InconsistentVersionWarning, match="from version 1.0.0rc1"):
        exact, momentum = pickle.loads(written)
    for model in (exact, momentum):
        assert check_certificate(model, X, y)
        np.testing.assert_array_equal(model.predict(X), y)
    again = momentum.set_params(tol=1e-3).fit(X, y)
    anew = MomentumMarginClassifier(tol=1e-3).fit(X, y)
    assert again.n_iter_ == anew.n_iter_
    np.testing.assert_array_equal(again.coef_, anew.coef_)
