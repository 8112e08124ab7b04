"""Models that are saved and loaded: the same bits, and who wrote them."""

import io
import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import WITH_THE_TOY, each, slow, some_slow
from helpers.estimators import ENDLESS, ESTIMATORS, fit, make, overlapping, parameters, separable
from helpers.pairwise import pairwise
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError

import marginsvm
from marginsvm import (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    NesterovSchedule,
    PowerSchedule,
    check_certificate,
)
from marginsvm.kernels import two_layer_relu_ntk

DOCS = Path(__file__).parent.parent / "docs" / "user_guide.rst"

# What skops must be told to trust beside the estimator; fits to be gone on with, more of ours.
FINISHED = {
    "marginsvm.certificate.certificate.Certificate",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",  # support vectors of such an X
}


def product(A, B):
    """A user's own kernel: loaded by its name, as functions are."""
    return np.asarray(A @ B.T)


SCHEDULES = {"step": PowerSchedule(0.25), "momentum": NesterovSchedule(delay=2.0)}


def problems(cls, rng):
    """Parameters and data: all forms that a model may take."""
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
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))
    check, expected = (check_certificate(m, X, y) for m in (model, other))
    assert check
    assert (check.margin, check.margin_bound) == (expected.margin, expected.margin_bound)
    assert str(model.certificate_) == str(other.certificate_)
    difference = model.certificate_.weights - other.certificate_.weights
    assert difference.count_nonzero() == 0


@pairwise(cls=some_slow(WITH_THE_TOY), copied=[by_pickle, slow(by_joblib), slow(by_skops)])
def test_round_trips(cls, copied, rng):
    for params, X, y in problems(cls, rng):
        unfitted = copied(make(cls, max_iter=8, **params, **ENDLESS))
        with pytest.raises(NotFittedError):
            unfitted.predict(X)
        model = fit(make(cls, max_iter=8, **params, **ENDLESS), X, y)
        assert_equal_models(copied(model), model, X, y)
        assert_equal_models(fit(unfitted, X, y), model, X, y)
        assert not hasattr(clone(copied(model)), "certificate_")


@pairwise(cls=some_slow(ESTIMATORS), copied=[by_pickle, slow(by_joblib), slow(by_skops)])
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
        assert all(name.startswith("marginsvm.") for name in pending - FINISHED - theirs)


@pytest.mark.parametrize("skops", [False, True])
def test_models_say_who_wrote_them(skops, rng, monkeypatch):
    X, y = separable(rng)
    model = fit(MomentumMarginClassifier(max_iter=8), X, y)
    dumped = with_skops().io.dumps if skops else pickle.dumps
    monkeypatch.setattr("marginsvm.estimators.results.__version__", "0.0.1")
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
