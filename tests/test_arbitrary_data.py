"""Certificates under attack: arbitrary small data, arbitrary parameters, every estimator.

A run takes seconds. For the long attack, choose a profile by the environment variable
``MARGINSVM_ATTACK``: the number of examples each estimator must survive, drawn anew in
every run::

    MARGINSVM_ATTACK=5000 python -m pytest tests/test_arbitrary_data.py -n 2
"""

import os
import runpy
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each, each_and_toy, in_blocks, slow, some_slow
from helpers.estimators import (
    ESTIMATORS,
    fit,
    make,
    needs_more_digits,
    overlapping,
    parameters,
    separable,
)
from helpers.oracle import best_margin_of
from helpers.pairwise import pairwise
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from marginsvm import (
    DualLpPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    PerceptronVonNeumann,
    PrimalMirrorDescent,
    SmoothedKernelPerceptron,
    check_certificate,
)

EXAMPLES = int(os.environ.get("MARGINSVM_ATTACK", "0"))
ORDINARY = st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 1e-3, 1 / 3])
WILD = st.one_of(
    ORDINARY, st.sampled_from([5e-324, -1e-310, 1e-150, 1e-20, 1e20, -1e150])
)
SCALES = [1.0, 1.0, 1e-8, 1e8, 1e-150, 1e150, 1e-30, 1e30, 1e-300, 1e300, 1e-316]


@st.composite
def containers(draw, X):
    """The same numbers as another kind of array."""
    dtype, (n, d) = (
        draw(st.sampled_from([np.float64, np.float64, np.float32, np.int64])),
        X.shape,
    )
    if np.abs(X).max() < (1e18 if dtype == np.int64 else 1e38):
        X = X.astype(dtype)
    kind = draw(
        st.sampled_from(["C", "F", "list", "csr", "zeros", "unsorted", "duplicates"])
    )
    if kind in "CF":
        return np.asarray(X, order=kind)
    if kind == "list":
        return X.tolist()
    S = sp.csr_array(X)
    # every entry is stored, zeros too, or each in two parts
    if kind in ("zeros", "duplicates"):
        parts = 1 + (kind == "duplicates")
        values = (np.repeat(X.ravel(), parts) / parts).astype(X.dtype)
        columns = np.tile(np.repeat(np.arange(d), parts), n)
        S = sp.csr_array((values, columns, np.arange(n + 1) * parts * d), (n, d))
        S.has_canonical_format = kind == "zeros"
    if kind == "unsorted":
        S = S[:, ::-1]
        S.indices = d - 1 - S.indices  # as it was, but from right to left
        S.has_sorted_indices = False
    return S


@st.composite
def problems(draw):
    """Duplicates, zeros, denormals, all scales, contradictory labels, constant features."""
    n, d = draw(st.integers(2, 12)), draw(st.integers(1, 4))
    k = draw(st.integers(2, min(6, n)))
    values = draw(st.sampled_from([ORDINARY, ORDINARY, WILD]))
    X = np.array(
        draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n))
    )
    labels = draw(st.lists(st.integers(0, k - 1), min_size=n - k, max_size=n - k))
    y = np.array([*range(k), *labels])
    if draw(st.booleans()):
        X = X + 3.0 * np.eye(k, d)[y]  # more often separable
    if draw(st.integers(0, 3)) == 0:
        X[:, 0] = draw(st.sampled_from([0.0, 1.0, 1e6, 1e12]))
    if draw(st.integers(0, 3)) == 0:
        X = X[np.arange(n) // 2]
    with np.errstate(over="ignore"):
        X = X * draw(st.sampled_from(SCALES))
    X = draw(containers(np.where(np.isfinite(X), X, 1e300)))
    weights = st.lists(
        st.sampled_from([0, 1, 2, 0.1, 1e-3, 50.0]), min_size=n, max_size=n
    )
    labels = draw(st.sampled_from([y, y - 3, np.array(list("abcdef"))[y]]))
    return X, labels, draw(st.none() | weights)


KERNELS = ["rbf", "poly", "sigmoid", "laplacian", "cosine", "precomputed"]
CHOICES = {
    "C": [np.inf, np.inf, np.inf, 1.0, 1e-3, 1e3, 1e-12, 1e12],
    "kernel": ["linear", "linear", "linear", *KERNELS],
    "gamma": ["scale", "auto", 0.0, 1e-3, 1.0, 1e3],
    "degree": [3, 1, 2, 0],
    "coef0": [0.0, 1.0, -1.0],
    "fit_intercept": [True, False],
    "normalize": [True, False],
    "intercept_scaling": [1.0, 1e-3, 1e3, 1e9],
    "loss": ["exponential", "logistic"],
    "step": ["constant", "inv_sqrt", 0.1, 30.0, lambda t: 1.0 + t],
    "momentum": ["nesterov", None, 0.5, 1.0],
    "gradient": ["normalized", "theory", "plain"],
    "norm": [None, None, "progressive", 1e-3, lambda t: 1.0 + t],
    "p": [2.0, "sparse", 1.5, 1.1, 1.01, 1.0001],
    "r": [1.0, 1.5, 10.0],
    "gamma_outer": [16.0, 1.1, 1e6],
    "epsilon": [1e-6, 1e-2, 1e-14],
    "schedule": ["momentum", "theory"],
    "cache_size": [200.0, 3.0],
    "accelerated": [True, False],
    "sampling": ["permutation", "uniform"],
    "restart": [True, False],
    "shrinking": [True, False],
    "average": [True, False],
    "stopping": ["gap", "separation"],
    "tol": [1e-3, 0.0, 1e-10, 0.5],
    "max_iter": [60, 1, 2, 7],
    "warm_start": [False, True],
    "random_state": [0, 1],
}


def options(cls):
    """Random parameters of an estimator, what they are named drawn from its signature."""
    named = {name: CHOICES[name] for name in parameters(cls) if name in CHOICES}
    if cls is MaxMarginClassifier:
        named["loss"] = ["squared_hinge", "hinge"]
    if "schedule" in named:
        named |= {name: ["schedule", *named[name]] for name in ("step", "momentum")}
    return st.fixed_dictionaries(
        {name: st.sampled_from(some) for name, some in named.items()}
    )


def is_ours(error):
    """Whether somebody raised this on purpose, in so many words."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    known = any(f"/{name}/" in last.filename for name in ("marginsvm", "sklearn"))
    return known and last.line.startswith("raise") and len(str(error)) > 20


def attacked(cls, problem, params):
    """Fit, or be refused in clear words; all that is claimed must hold."""
    X, y, weight = problem
    estimator = cls(**params)
    if params.get("kernel") == "precomputed":
        X = gram(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            estimator.fit(X, y, sample_weight=weight)
        except (ValueError, TypeError) as error:
            if not is_ours(error):
                raise
            note(f"refused: {error}")
            return
        inspect(estimator, X, y, weight)


def dense(X):
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def gram(X):
    X = dense(X) / (np.abs(dense(X)).max() or 1.0)
    return X @ X.T


def noisy(estimator, X):
    """Whether a kernel's values depend on how many are computed together: distances that cancel."""
    if getattr(estimator, "kernel", "linear") in ("linear", "precomputed"):
        return False
    rows = [estimator._kernel_matrix(X[i : i + 1], X) for i in range(X.shape[0])]
    K = estimator._kernel_matrix(X, X)
    return (
        np.abs(np.concatenate(rows) - K).max() + np.abs(K - K.T).max()
        > 1e-9 * np.abs(K).max()
    )


def inspect(estimator, X, y, weight):
    """All that must hold of a fit, whatever it was given."""
    claim, history = estimator.certificate_, estimator.history_
    for name, value in [*vars(estimator).items(), *history.items()]:
        if (
            isinstance(value, np.ndarray | float)
            and np.asarray(value).dtype.kind == "f"
        ):
            assert not np.isnan(value).any(), name
    assert estimator.n_iter_ <= estimator.max_iter
    assert np.isfinite([claim.margin, claim.margin_bound, claim.radius]).all()
    assert claim.margin <= claim.margin_bound
    counts = np.flatnonzero(np.ones(len(y)) if weight is None else weight)
    # others may be of any length
    seen = (X if sp.issparse(X) else np.asarray(X))[counts]
    assert np.isfinite(estimator.decision_function(seen)).all()
    assert set(estimator.predict(seen)) <= set(y)
    check = check_certificate(estimator, X, y, weight)
    assert check or noisy(estimator, seen), check.reason
    if getattr(estimator, "kernel", "linear") in ("linear", "precomputed"):
        check = check_certificate(estimator, X, y, weight, exact=True)
        assert check, f"exactly, {check.reason}, excess {check.excess}"
    euclidean = hasattr(estimator, "coef_") and getattr(estimator, "p", 2.0) == 2.0
    if euclidean and weight is None and getattr(estimator, "loss", "") != "hinge":
        Z = dense(X)
        best, scale = best_margin_of(estimator, Z, y), claim.radius + np.abs(Z).max()
        assert claim.margin <= best + 1e-6 * scale
        assert best <= claim.margin_bound + 1e-6 * scale
        assert np.all(history["margin"] <= best + 1e-5 * scale)
        assert np.all(best <= history["margin_bound"] + 1e-5 * scale)
        if np.isinf(getattr(estimator, "C", np.inf)) and best > 2e-3 * scale:
            assert estimator.separable_ in (True, None)


def survives(cls, number, attacked=attacked):
    """Attack an estimator by random problems and parameters."""

    @settings(
        max_examples=EXAMPLES or number,
        derandomize=not EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(problem=problems(), params=options(cls))
    def attack(problem, params):
        attacked(cls, problem, params)

    attack()


@each_and_toy
def test_attack(cls, request):
    survives(cls, 40 if request.config.getoption("all") else 20)


WITH_KERNELS = [cls for cls in ESTIMATORS if "kernel" in parameters(cls)]


@pairwise(cls=some_slow(ESTIMATORS), scale=[1e-300, 1e300, 1e-316])
def test_squares_that_overflow_or_vanish_are_refused(cls, scale, rng):
    X, y = separable(rng)
    params = {"fit_intercept": False, "normalize": False, "max_iter": 5}
    with pytest.raises(ValueError, match="scale X"):
        fit(make(cls, **params), X * scale, y)


@each
def test_the_largest_and_smallest_numbers_that_work(cls, rng):
    """Powers of two are exact, so that rounds are the same bit for bit."""
    X, y = separable(rng)
    for divided in [False, True] if "normalize" in parameters(cls) else [False]:
        params = {"max_iter": 20, "fit_intercept": False, "normalize": divided}
        once = fit(make(cls, **params), X, y)
        for scale in (2.0**-500, 2.0**500):
            estimator, unit = (
                fit(make(cls, **params), X * scale, y),
                1.0 if divided else scale,
            )
            for name in ("margin_", "margin_bound_"):
                expected = getattr(once, name) * unit
                np.testing.assert_allclose(
                    getattr(estimator, name), expected, rtol=1e-9
                )


def test_rows_of_all_lengths_are_normalised():
    X = np.array([[3e-280, 4e-280], [3e200, -4e200], [-3.0, 4.0], [0.0, -2.0]])
    y = np.array([1, 1, 0, 0])
    params = {"fit_intercept": False, "max_iter": 50}
    estimator = fit(SmoothedKernelPerceptron(normalize=True, **params), X, y)
    units = np.array([[0.6, 0.8], [0.6, -0.8], [-0.6, 0.8], [0.0, -1.0]])
    same = fit(SmoothedKernelPerceptron(**params), units, y)
    np.testing.assert_allclose(estimator.margin_, same.margin_, rtol=1e-9)
    with pytest.raises(ValueError, match=r"example 2 is 4\.94e-323"):
        estimator.fit([[1.0], [-1.0], [5e-323]], [0, 1, 1])
    joined = fit(SmoothedKernelPerceptron(normalize=True, max_iter=50), X, y)
    assert check_certificate(joined, X, y, exact=True)
    assert np.isfinite(joined.decision_function(X)).all()


def test_tiny_float32_features_in_sparse_data(rng):
    X, y = separable(rng)
    X = (X * 1e-25).astype(np.float32)  # squares vanish in float32
    dense, sparse = (
        fit(make(DualLpPerceptron, max_iter=20), Z, y) for Z in (X, sp.csr_array(X))
    )
    assert sparse.margin_ == dense.margin_


@pytest.mark.parametrize("kernel", ["poly", "rbf", "sigmoid", "laplacian"])
def test_kernel_values_that_overflow_are_refused(kernel, rng):
    """Squares in float64, cubes in float32; differences do not mind."""
    X, y = separable(rng)
    estimator = MomentumMarginClassifier(kernel=kernel, gamma=1.0, max_iter=5)
    for Z in (X * 1e200, sp.csr_array(X * 1e200), (X * 1e20).astype(np.float32)):
        try:
            fit(estimator, Z, y)
        except ValueError as error:
            assert "not finite on these examples: scale X" in str(error)  # noqa: PT017
        else:
            assert kernel != "poly" and (kernel != "rbf" or Z.dtype == np.float32)  # noqa: PT018
            assert np.isfinite(estimator.decision_function(X)).all()


@pairwise(cls=some_slow(WITH_KERNELS), kernel=["rbf", "poly", "laplacian"])
def test_examples_that_are_all_the_same_to_a_kernel(cls, kernel, rng):
    X, y = np.repeat(rng.standard_normal((1, 60)), 80, axis=0), rng.integers(0, 2, 80)
    # about their mean, K is rounding
    clf = fit(make(cls, kernel=kernel, max_iter=60), X, y)
    assert not clf.separable_
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("cls", WITH_KERNELS)
def test_kernel_values_that_are_integers(cls, rng):
    X = rng.integers(-3, 4, (40, 3)).astype(float)
    y = (X[:, 0] > 0).astype(int)
    clf = fit(
        make(cls, kernel=lambda A, B: np.rint(A @ B.T).astype(int), max_iter=30), X, y
    )
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("n", [550, slow(626)])
def test_kernel_values_of_float32_hide_small_bounds(n, rng):
    X, y = rng.standard_normal((n, 2)).astype(np.float32), rng.integers(0, 2, n)
    clf = fit(
        PerceptronVonNeumann(kernel="poly", fit_intercept=False, max_iter=100), X, y
    )
    # strips of K and all of it differ by more than 1e-6 would
    assert clf.separable_ is None
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_kernel_predictor_without_support_predicts(value):
    X, y = np.full((4, 2), value), np.arange(4) % 2
    estimator = fit(MomentumMarginClassifier(kernel="rbf"), X, y)
    assert not len(estimator.support_)
    assert estimator.decision_function(X).tolist() == [0.0] * 4


def test_kernels_of_sparse_data_with_duplicates_and_long_indices(rng):
    X, y = separable(rng, n=20)
    halves = sp.csr_array(np.hstack([X, X]) / 2)
    halves = sp.csr_array(
        (halves.data, halves.indices % X.shape[1], halves.indptr), X.shape
    )
    halves.indices, halves.indptr = (
        x.astype(np.int64) for x in (halves.indices, halves.indptr)
    )
    before = halves.data.copy()
    for kernel in ("laplacian", "rbf", "linear"):
        dense, sparse = (
            fit(MomentumMarginClassifier(kernel=kernel, max_iter=30), Z, y)
            for Z in (X, halves)
        )
        np.testing.assert_allclose(sparse.margin_, dense.margin_, rtol=1e-9)
        F = dense.decision_function(X)
        np.testing.assert_allclose(sparse.decision_function(halves), F, rtol=1e-7)
    np.testing.assert_array_equal(halves.data, before)  # the user's own


def test_a_diverging_fit_says_so(rng):
    """At its end, or in the middle of a round."""
    X = np.array([[0, -3], [0, -3], [2, 0], [0.5, 1], [2, 0], [2, 1e-3], [0.5, 0]])
    diverging = {
        "gradient": "plain",
        "step": 1e3,
        "momentum": 1.0,
        "fit_intercept": False,
    }
    in_a_round = {"gradient": "plain", "step": 30.0, "momentum": None, "tol": 0.0}
    for params, data, match in (
        ({**diverging, "max_iter": 50}, overlapping(rng), "smaller step"),
        (in_a_round, (X, [0, 1, 2, 3, 1, 0, 0]), "diverged in iterations? [0-9]"),
    ):
        with pytest.raises(ValueError, match=match):
            fit(MomentumMarginClassifier(**params), *data)


@pairwise(cls=some_slow(ESTIMATORS), value=[1e-8, 1.0, 1e12, 1e-150])
def test_examples_that_are_all_the_same_cannot_be_separated(cls, value):
    X, y = np.full((6, 1), value), np.arange(6) % 2
    estimator = fit(make(cls, max_iter=50), X, y)
    assert estimator.separable_ is False or "intercept_scaling" in parameters(cls)
    assert estimator.separable_ is not True
    assert check_certificate(estimator, X, y, exact=True)


@pytest.mark.parametrize("average", [True, False])
def test_rows_that_came_lately_must_be_more_than_rounding(average):
    """u had settled; its difference with itself was taken for a proof of no margin."""
    X, y = np.array([[0.0, -3.0], [2.0, 0.0]]) * 1e150, [0, 1]
    params = {
        "fit_intercept": False,
        "average": average,
        "max_iter": 60,
        "random_state": 1,
    }
    estimator = fit(PrimalMirrorDescent(**params), X, y)
    best = 6e150 / np.sqrt(13.0)
    assert (estimator.history_["margin_bound"] >= best).all()
    assert estimator.margin_bound_ < 1.1 * best


def test_examples_of_weight_zero_are_not_looked_at():
    X, y, weight = (
        np.array([[1.0], [-1.0], [1e200]]),
        np.array([0, 1, 0]),
        np.array([1, 1, 0]),
    )
    for kernel in ("poly", "sigmoid"):
        estimator = fit(MaxMarginClassifier(kernel=kernel), X, y, sample_weight=weight)
        assert check_certificate(estimator, X, y, weight)


SCRIPT = Path(__file__).parent.parent / "examples" / "benchmarks" / "hostile_fits.py"
HOSTILE = runpy.run_path(str(SCRIPT))


def fitted(seed, **params):
    """A fit, and its data; None where the problem is refused, or has no such parameters."""
    estimator, X, y, weight = HOSTILE["problem"](seed)
    if not set(params) <= set(estimator.get_params()):
        return None
    estimator.set_params(**params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(X, *(() if y is None else (y,)), sample_weight=weight)
        except ValueError:
            return None
    return estimator, X, y, weight


@in_blocks(2600, size=65)
def test_bounds_hold_in_rationals(seeds):
    for seed in seeds:
        if found := fitted(seed):
            assert not HOSTILE["wrong"](*found), seed


@needs_more_digits
@in_blocks(2000, size=100)
def test_bounds_hold_of_the_gaussian_kernel_itself(seeds):
    """Of its values by differences of the examples, in extended precision."""
    statuses = []
    for seed in seeds:
        gamma = ["scale", "auto", 0.01, 1.0, 30.0][seed % 5]
        if found := fitted(seed, kernel="rbf", gamma=gamma):
            assert not HOSTILE["wrong"](*found), seed
            statuses.append(found[0].status_)
    assert statuses.count("certified") > 0.5 * len(statuses) > 0.3 * len(seeds)


@pytest.mark.parametrize(
    "seeds",
    [
        range(60),
        slow(range(60, 100)),
        *(slow(range(seed, seed + 200)) for seed in range(10_000, 11_000, 200)),
    ],
)
def test_what_is_accepted_is_true(seeds):
    told = accepted = 0
    for seed in seeds:
        found = fitted(seed)
        if found is None or getattr(found[0], "kernel", "linear") not in (
            "linear",
            "precomputed",
        ):
            continue
        estimator, X, y, weight = found
        best = estimator.certificate_
        for what, claim in HOSTILE["lies"](estimator, np.random.default_rng(seed), 4):
            told += 1
            if check_certificate(estimator, X, y, weight, exact=True):
                accepted += 1
                assert not HOSTILE["contradicts"](claim, best), (seed, what)
    assert 0.2 * told < accepted < 0.8 * told
