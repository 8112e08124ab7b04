"""Arrays of other libraries: the same results where they are, and proofs that hold."""

import pickle
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import over, slow, some_slow
from helpers.estimators import (
    ESTIMATORS,
    fit,
    make,
    overlapping,
    parameters,
    quiet,
    separable,
)
from helpers.hostile import hostile_problem, truthful
from helpers.pairwise import pairwise
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import _array_api, get_tags
from sklearn.utils._array_api import get_namespace
from test_arbitrary_data import gram, inspect, is_ours, survives

import marginsvm
from marginsvm import (
    DualLpRegressor,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MomentumMarginClassifier,
    SmoothedKernelPerceptron,
    check_certificate,
    check_separability,
    margin_path,
)
from marginsvm.problem import matrix
from marginsvm.problem.matrix import on_host, with_attributes_on_host

if not hasattr(_array_api, "move_estimator_to"):
    pytest.skip(
        "arrays of other libraries are tested from scikit-learn 1.9 on",
        allow_module_level=True,
    )

ROUNDS = 60
RTOL = 1e-9  # of bounds: sums are in float64, and only their order differs

ON_DEVICES = [cls for cls in ESTIMATORS if get_tags(cls()).array_api_support]
ON_HOSTS = [cls for cls in ESTIMATORS if cls not in ON_DEVICES]


def strict(array, device="device1"):
    """The same numbers in array-api-strict, which does nothing that the standard does not say."""
    xp = pytest.importorskip(
        "array_api_strict", reason="pip install marginsvm[test-all]"
    )
    return xp.asarray(np.array(array), device=xp.Device(device))


def torch(array, dtype=None):
    """The same numbers in torch, on the CPU."""
    xp = pytest.importorskip(
        "torch", reason="torch is no dependency of the tests: too large"
    )
    there = xp.asarray(np.array(array))
    return (
        there
        if dtype is None or array.dtype.kind != "f"
        else there.to(getattr(xp, dtype))
    )


LIBRARIES = {"array_api_strict": strict, "torch": torch}


@contextmanager
def dispatching():
    """Within it, scikit-learn dispatches; it wants SciPy's environment variable to be set."""
    with pytest.MonkeyPatch.context() as patch:
        # scikit-learn looks for it when it is switched on
        patch.setenv("SCIPY_ARRAY_API", "1")
        with config_context(array_api_dispatch=True):
            yield


each_on_devices = over(ON_DEVICES)
in_each_library = pytest.mark.parametrize("there", LIBRARIES.values(), ids=LIBRARIES)


def fitted_there(estimator, there, X, y, **arrays):
    with dispatching(), quiet():
        return estimator.fit(
            there(X), there(y), **{name: there(a) for name, a in arrays.items()}
        )


def fitted_alike(estimator, there, X, y, rtol=RTOL, **arrays):
    """A fit there, which agrees with that of NumPy."""
    reference = fit(clone(estimator), X, y, **arrays)
    fitted_there(estimator, there, X, y, **arrays)
    assert_same(estimator, reference, X, y, rtol, **arrays)
    return estimator, reference


def assert_same(estimator, reference, X, y, rtol=RTOL, **arrays):
    """The same answers up to rounding, and a certificate that holds; nan and nan are the same."""
    assert estimator.status_ == reference.status_
    assert estimator.separable_ is reference.separable_
    np.testing.assert_array_equal(estimator.classes_, reference.classes_)
    scale = reference.certificate_.radius
    for name in ("margin_", "margin_bound_"):
        ours, theirs = getattr(estimator, name), getattr(reference, name)
        if reference.status_ == "certified":
            np.testing.assert_allclose(
                ours, theirs, rtol=rtol, atol=rtol * scale, err_msg=name
            )
    check = check_certificate(estimator, X, y, **arrays)
    assert check, check.reason


def test_the_estimators_that_the_docs_name_are_supported():
    named = {MaxMarginClassifier, MomentumMarginClassifier, SmoothedKernelPerceptron}
    named |= {marginsvm.OptimisticPerceptron, marginsvm.BatchPerceptron}
    assert named <= {*ON_DEVICES}
    assert marginsvm.DualLpPerceptron in ON_HOSTS


@pairwise(
    cls=some_slow(ON_DEVICES), there=LIBRARIES, k=[2, 3], data=[separable, overlapping]
)
def test_results_are_those_of_numpy(cls, there, k, data, rng):
    X, y = data(rng, k=k)
    for C in (np.inf, 1.0):
        estimator = make(cls, C=C, max_iter=ROUNDS)
        reference = fit(clone(estimator), X, y)
        assert_same(fitted_there(estimator, there, X, y), reference, there(X), there(y))
        scores, labels = reference.decision_function(X), reference.predict(X)
        with dispatching():
            there_scores = estimator.decision_function(there(X))
            there_labels = estimator.predict(there(X))
            assert get_namespace(there_scores) == get_namespace(there(X))
        if reference.status_ == "certified":
            np.testing.assert_allclose(
                on_host(there_scores), scores, rtol=1e-4, atol=1e-4
            )
            np.testing.assert_array_equal(on_host(there_labels), labels)


@each_on_devices
@in_each_library
def test_fitted_arrays_are_where_the_examples_are(cls, there, rng):
    X, y = separable(rng)
    for kernel in ("linear", "rbf") if "kernel" in parameters(cls) else ("linear",):
        reference = fit(make(cls, kernel=kernel, max_iter=3), X, y)
        estimator = fitted_there(make(cls, kernel=kernel, max_iter=3), there, X, y)
        arrays = {
            n for n, value in vars(reference).items() if isinstance(value, np.ndarray)
        }
        with dispatching():
            for name in arrays - {"classes_"}:
                found = getattr(estimator, name)
                assert get_namespace(found) == get_namespace(there(X)), name
                assert found.device == there(X).device, name
                assert on_host(found).dtype == getattr(reference, name).dtype, name
        assert isinstance(estimator.margin_, float)
        assert isinstance(estimator.history_["margin"], np.ndarray)


@in_each_library
def test_all_else_refuses_them(there, rng):
    X, y = separable(rng)
    tensors, words = (
        (there(X), there(y * 1.0)),
        "computes with NumPy, but X is an array of",
    )
    single = r"{} .*array of \w+ on the device.*convert X to NumPy"
    refusals = [
        (make(cls).fit, tensors, single.format(cls.__name__)) for cls in ON_HOSTS
    ]
    refusals += [
        (cls().fit, tensors, words) for cls in (MaxMarginClassifierCV, DualLpRegressor)
    ]
    callable_kernel = MaxMarginClassifier(kernel=lambda A, B: A @ B.T)
    for call, data, message in (
        *refusals,
        (check_separability, (there(X), y), words),
        (
            MomentumMarginClassifier().fit_blocks,
            ([(there(X), y)],),
            "block 0: Momentum.* computes",
        ),
        (callable_kernel.fit, tensors, "callable kernel is given arrays of NumPy"),
    ):
        with dispatching(), pytest.raises(TypeError, match=message):
            call(*data)


UNFIT = {
    "has no float64": lambda X: strict(X.astype(np.float32), device="no_float64"),
    r"sparse.*to_dense\(\)": lambda X: torch(X).to_sparse(),
}


@pytest.mark.parametrize("message", UNFIT)
def test_sparse_tensors_and_devices_without_float64_are_refused(message, rng):
    X, y = separable(rng)
    with dispatching(), pytest.raises(TypeError, match=message):
        MaxMarginClassifier().fit(UNFIT[message](X), y)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_tensors_that_record_gradients(kernel, rng):
    X, y = separable(rng)
    there = torch(X @ X.T if kernel == "precomputed" else X).requires_grad_()
    with dispatching(), quiet():
        estimator = MaxMarginClassifier(kernel=kernel).fit(there, y)
        assert not estimator.decision_function(there).requires_grad
    assert check_certificate(estimator, there, y)
    # without the dispatch, tensors are like arrays
    estimator = MaxMarginClassifier().fit(torch(X), torch(y))
    assert isinstance(estimator.coef_, np.ndarray)
    assert estimator.margin_ == MaxMarginClassifier().fit(X, y).margin_


@in_each_library
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (MaxMarginClassifier, {"C": 1.0}),
        (MaxMarginClassifier, {"C": 1.0, "loss": "hinge"}),
        (MaxMarginClassifier, {}),
        (MomentumMarginClassifier, {"tol": 0.05}),
        (marginsvm.AcceleratedPerceptron, {"p": 1.3, "tol": 0.05}),
        (
            SmoothedKernelPerceptron,
            {"normalize": True, "fit_intercept": False, "tol": 0.05},
        ),
        (SmoothedKernelPerceptron, {"normalize": True, "tol": 0.05}),
    ],
)
def test_parameters_and_examples_far_from_the_origin(there, offset, cls, params, rng):
    X, y = separable(rng, n=200)
    X = X + offset * (not params.get("normalize", False))
    fitted_alike(cls(**params), there, X, y, rtol=1e-8)


@in_each_library
@pytest.mark.parametrize(
    "kernel", ["rbf", "poly", "laplacian", "cosine", "precomputed"]
)
def test_kernels(there, kernel, rng):
    X, y = separable(rng, k=3)
    K = X @ X.T if kernel == "precomputed" else X
    exact = MaxMarginClassifier(kernel=kernel, C=1.0)
    estimator, reference = fitted_alike(exact, there, K, y, rtol=1e-8)
    assert check_certificate(estimator, there(K), there(y))
    with dispatching():
        scores = on_host(estimator.decision_function(there(K)))
    np.testing.assert_allclose(
        scores, reference.decision_function(K), rtol=1e-6, atol=1e-6
    )
    divided = SmoothedKernelPerceptron(kernel="rbf", normalize=True, max_iter=20)
    fitted_alike(divided, there, X, y)


@in_each_library
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_equal_examples_of_two_classes_prove_an_overlap(there, kernel, rng):
    X, y = separable(rng, n=100)
    X[0], y[0] = X[1], 1 - y[1]
    estimator, _ = fitted_alike(MaxMarginClassifier(kernel=kernel), there, X, y)
    assert estimator.separable_ is False


@in_each_library
@pytest.mark.parametrize("cls", [MaxMarginClassifier, MomentumMarginClassifier])
def test_weights_on_the_device(there, cls, rng):
    X, y = overlapping(rng)
    weight = rng.integers(0, 3, len(y)).astype(float)
    clf = cls(C=1.0, max_iter=ROUNDS)
    estimator, _ = fitted_alike(clf, there, X, y, sample_weight=weight)
    assert check_certificate(estimator, there(X), there(y), there(weight))


def test_labels_may_be_text_and_elsewhere(rng):
    X, y = separable(rng, k=3)
    named = np.array(["a", "b", "c"])[y]
    with dispatching():
        estimator = MaxMarginClassifier().fit(strict(X), named)
        labels = estimator.predict(strict(X))
        assert isinstance(labels, np.ndarray)
        np.testing.assert_array_equal(labels, named)
        estimator.fit(strict(X), torch(y))
        assert type(estimator.predict(strict(X))) is type(strict(X))


def test_a_path_of_soft_margins(rng):
    (X, y), costs = overlapping(rng, n=200), [0.1, 1.0, 10.0]
    with dispatching():
        path = margin_path(strict(X), strict(y), Cs=costs)
    np.testing.assert_allclose(
        path.margins, margin_path(X, y, Cs=costs).margins, rtol=1e-6
    )


@in_each_library
def test_pickles_warm_starts_and_moves_to_the_host(there, rng):
    X, y = overlapping(rng)
    params = {"C": 1.0, "tol": 0.0, "warm_start": True}
    once = fitted_there(MomentumMarginClassifier(max_iter=20, **params), there, X, y)
    twice = fitted_there(MomentumMarginClassifier(max_iter=9, **params), there, X, y)
    twice = pickle.loads(pickle.dumps(twice)).set_params(max_iter=20)
    fitted_there(twice, there, X, y)
    assert (twice.margin_, twice.margin_bound_) == (once.margin_, once.margin_bound_)
    np.testing.assert_array_equal(on_host(twice.coef_), on_host(once.coef_))
    with dispatching():
        moved = _array_api.move_estimator_to(once, _array_api.np_compat, "cpu")
        scores = on_host(once.decision_function(there(X)))
    np.testing.assert_allclose(moved.decision_function(X), scores, rtol=1e-12)
    assert check_certificate(moved, X, y)
    # outside of the dispatch, examples of NumPy are for NumPy, wherever the model is
    np.testing.assert_allclose(once.decision_function(X), scores, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_narrow_types(dtype, kernel, rng):
    X, y = separable(rng, n=200)
    narrow = torch(X, dtype)
    rounded = on_host(narrow).astype(np.float64)
    for cls in (MaxMarginClassifier, MomentumMarginClassifier):
        params = {"C": 1.0, "kernel": kernel, "tol": 1e-3}
        with dispatching(), quiet():
            estimator = cls(**params).fit(narrow, y)
            scores = on_host(estimator.decision_function(narrow))
        reference = fit(cls(**params), rounded, y)
        assert_same(estimator, reference, narrow, y, rtol=2e-3)
        np.testing.assert_allclose(
            scores, reference.decision_function(rounded), atol=0.05
        )
        if kernel == "linear":
            host = with_attributes_on_host(estimator)
            assert check_certificate(host, rounded, y, exact=True)


@in_each_library
def test_parts_and_blocks_change_rounding_only(there, rng, monkeypatch):
    X, y = overlapping(rng, n=300, d=7)
    momentum = MomentumMarginClassifier(C=1.0, tol=0.0, max_iter=ROUNDS)
    divided = SmoothedKernelPerceptron(normalize=True, max_iter=ROUNDS)
    cases = [MaxMarginClassifier(C=1.0), momentum, divided]
    whole = [fitted_there(case, there, X + 1e5, y) for case in cases]
    monkeypatch.setattr(matrix, "DEVICE_BLOCK_BYTES", 3000)
    for reference in whole:
        estimator = fitted_there(clone(reference), there, X + 1e5, y)
        assert_same(estimator, reference, X + 1e5, y)
        np.testing.assert_allclose(
            estimator.margin_bound_, reference.margin_bound_, rtol=1e-7
        )
    narrow = fitted_there(clone(momentum), there, X.astype(np.float32), y)
    assert check_certificate(narrow, X.astype(np.float32), y)


@pytest.mark.parametrize("C", [1.0, 1e3, np.inf])
@pytest.mark.parametrize(("d", "k"), [(20, 2), (20, 3), slow(1100, 2), slow(1100, 3)])
def test_newton_by_passes(k, C, d, rng):
    """More rows than a working set would take, and more features than a direct system would."""
    X, y = separable(rng, n=1500, d=d, k=k, margin=0.05)
    X = X + rng.standard_normal(X.shape)
    fitted_alike(MaxMarginClassifier(C=C, tol=1e-4), strict, X, y, rtol=2e-4)


@each_on_devices
@in_each_library
def test_hostile_units(cls, there):
    for seed in range(8):
        X, y, fit_intercept = hostile_problem(1000 * ON_DEVICES.index(cls) + seed)
        with dispatching():
            truthful(cls, X, y, fit_intercept, there=there, max_iter=ROUNDS)


def on_a_device(there, cls, problem, params):
    X, y, weight = problem
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    if params.get("kernel") == "precomputed":
        X = gram(X)
    estimator = cls(**params)
    try:
        with dispatching(), quiet(), np.errstate(all="ignore"):
            estimator.fit(there(X), y, sample_weight=weight)
    except (ValueError, TypeError) as error:
        if not is_ours(error):
            raise
        return
    exact = X.astype(np.float64)
    # the check computes kernels anew, also of vast numbers
    with np.errstate(over="ignore"):
        inspect(with_attributes_on_host(estimator), exact, y, weight)


@pytest.mark.slow
@each_on_devices
@in_each_library
def test_attack(cls, there):
    survives(cls, 40, partial(on_a_device, there))
