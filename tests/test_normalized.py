"""``normalize=True``: what is published is true of X, or says what it is true of."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import is_quick, over, slow
from helpers.claiming import refused
from helpers.estimators import (
    ESTIMATORS,
    certified,
    confirmed,
    fit,
    make,
    parameters,
    quiet,
    separable,
)
from helpers.oracle import best_margin, best_margin_of, normalized_rows
from helpers.pairwise import pairwise
from sklearn.base import clone

from marginsvm import PerceptronVonNeumann, SmoothedKernelPerceptron, check_certificate

NORMALIZING = [cls for cls in ESTIMATORS if "normalize" in parameters(cls)]
each_normalizing = over(NORMALIZING)


def data_sets(rng):
    """Separable by a hyperplane, with a margin above 1e-4 of the longest example's norm."""
    X, y = separable(rng, n=24, d=3)
    yield "plain", X, y
    yield "three classes", *separable(rng, n=24, d=3, k=3)
    line = np.sort(rng.uniform(1.0, 5.0, 20))
    line[10:] += 0.3
    yield "one-dimensional, positive", line[:, None], (np.arange(20) >= 10).astype(int)
    yield "all positive", X - X.min() + 0.5, y
    yield "far from the origin", X + 100.0 * rng.standard_normal(3), y
    yield (
        "of all lengths",
        X * np.geomspace(1e-2, 1.0, 24)[rng.permutation(24), None],
        y,
    )
    zeros = np.where(y[:, None] == 1, X, 0.0)
    yield "zeros", zeros, y


# A kernel matrix gives the same as the rows (test_equalities.py): one estimator of a kind.
OF = [
    (cls, *kind)
    for cls in ESTIMATORS
    for kind in ((False, "linear"), (True, "linear"), (False, "precomputed"))
    if "normalize" in parameters(cls) or not kind[0]
    if ("kernel" in parameters(cls) and is_quick(cls)) or kind[1] == "linear"
]


@pairwise(
    of={
        f"{cls.__name__}-{'divided' * normalize}-{kernel}": (cls, normalize, kernel)
        if is_quick(cls) and kernel == "linear"
        else slow((cls, normalize, kernel))
        for cls, normalize, kernel in OF
    },
    fit_intercept=[True, slow(False)],
)
def test_separable_data_is_never_called_inseparable(of, fit_intercept, rng):
    """The bounds bracket the best margin of what they name."""
    cls, normalize, kernel = of
    for name, examples, y in data_sets(rng):
        # Without rounding: rounded matrices of rank below n may have negative eigenvalues.
        X = np.round(examples * 2.0**14) / 2.0**14
        params = {
            "normalize": normalize,
            "fit_intercept": fit_intercept,
            "kernel": kernel,
        }
        clf, given = (
            make(cls, max_iter=300, **params),
            X if kernel == "linear" else X @ X.T,
        )
        fit(clf, given, y)
        rows = "X"
        if normalize:
            rows = "(x, " if fit_intercept else "x / ||x||"
        assert clf.certificate_.of.startswith(rows), name
        best, radius = best_margin_of(clf, X, y), clf.certificate_.radius
        assert clf.margin_ <= best + 1e-6 * radius, name
        assert best <= clf.margin_bound_ + 1e-6 * radius, name
        possible = best_margin(X, y, fit_intercept=fit_intercept)
        if possible > 1e-4 * np.linalg.norm(X, axis=1).max():
            assert clf.separable_ is not False, f"{name}: {clf.certificate_}"
        else:
            assert not fit_intercept, f"{name}: the data set is not what it should be"
            assert clf.separable_ is not True, f"{name}: {clf.certificate_}"
        for exact in (False, True):
            confirmed(clf, given, y, exact=exact)


@each_normalizing
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_units_do_not_matter(cls, kernel, fit_intercept, rng):
    X, y = separable(rng)
    params = {
        "normalize": True,
        "fit_intercept": fit_intercept,
        "max_iter": 40,
        "tol": 0.0,
    }
    params |= {
        "kernel": kernel,
        "degree": 3,
        "coef0": 0.0,
        "gamma": 1.0,
        "stopping": "gap",
    }
    once = fit(make(cls, **params), X, y)
    for unit in (1e-6, 3.0, 2.0**40):
        other = fit(make(cls, **params), unit * X, y)
        power = 3 if kernel == "poly" else 1
        np.testing.assert_allclose(other.constant_, once.constant_ * unit**power)
        np.testing.assert_allclose(other.margin_, once.margin_, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(other.margin_bound_, once.margin_bound_, rtol=1e-7)
        F = once.decision_function(X)
        tolerance = 1e-6 * np.abs(F).max()
        np.testing.assert_allclose(other.decision_function(unit * X), F, atol=tolerance)


KERNELS = {
    "linear": lambda A, B: A @ B.T,
    "rbf": lambda A, B: np.exp(-0.3 * ((A[:, None] - B) ** 2).sum(axis=2)),
    "poly": lambda A, B: (0.3 * A @ B.T + 1.0) ** 2,
}


@each_normalizing
@pytest.mark.parametrize("kernel", [slow("linear"), "rbf", "poly"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_decisions_are_those_of_the_boundary_over_the_norm(
    cls, kernel, fit_intercept, rng
):
    X, y = separable(rng, n=40)
    new, k = rng.standard_normal((15, X.shape[1])), KERNELS[kernel]
    params = {
        "kernel": kernel,
        "gamma": 0.3,
        "degree": 2,
        "coef0": 1.0,
        "max_iter": 400,
    }
    params |= {"normalize": True, "fit_intercept": fit_intercept}
    clf = pickle.loads(pickle.dumps(fit(make(cls, **params), X, y)))
    assert clf.separable_
    confirmed(clf, X, y)
    constant = fit_intercept * np.sqrt(np.diagonal(k(X, X)).max())
    np.testing.assert_allclose(clf.constant_, constant)
    if kernel == "linear":
        F = new @ clf.coef_[0] + clf.intercept_
    else:
        F = k(new, X[clf.support_]) @ clf.dual_coef_[0] + clf.intercept_
    F = F / np.sqrt(np.diagonal(k(new, new)) + constant**2)
    np.testing.assert_allclose(clf.decision_function(new), F, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.abs(clf.decision_function(X)).min(), 1.0)
    single = fit(clone(clf), X.astype(np.float32), y)
    assert check_certificate(single, X.astype(np.float32), y, rtol=1e-5)
    if cls is SmoothedKernelPerceptron:  # no round depends on the last digits
        np.testing.assert_allclose(
            single.decision_function(new), F, rtol=1e-3, atol=1e-3
        )


@pytest.mark.slow
@each_normalizing
@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_weights_are_copies_and_blocks_are_parts(cls, C, rng):
    X, y = separable(rng)
    X[::7] *= 0.0 if np.isfinite(C) else 1.0
    weight = rng.integers(0, 3, len(y))
    weight[:2] = 1
    X[np.flatnonzero(weight == 0)[0]] *= 100.0  # the longest by far, but it is left out
    params = {"normalize": True, "C": C, "max_iter": 30, "tol": 0.0, "stopping": "gap"}
    whole = fit(make(cls, **params), X, y, sample_weight=weight)
    cuts = [slice(0, 7), slice(7, 40), slice(40, 60)]
    for container in (np.asarray, np.asfortranarray, sp.csr_array):
        parts = [(container(X[cut]), y[cut], weight[cut]) for cut in cuts]
        with quiet():
            blocks = make(cls, **params).fit_blocks(parts)
        np.testing.assert_allclose(blocks.constant_, whole.constant_, rtol=1e-14)
        np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(blocks.margin_bound_, whole.margin_bound_, rtol=1e-9)
        confirmed(blocks, parts)
    if not cls()._algorithm().requires.in_order:
        copies = fit(
            make(cls, **params), np.repeat(X, weight, axis=0), np.repeat(y, weight)
        )
        assert copies.constant_ == whole.constant_
        np.testing.assert_allclose(copies.margin_bound_, whole.margin_bound_, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("k", [2, 3])
def test_a_kernel_matrix_is_joined_by_the_constant(k, C, dtype, rng):
    """Its values are divided in floats: bounds that do not allow for that are wrong."""
    for width in (0.01, 0.1, 1.0, 10.0) * 5:
        X, y = rng.standard_normal((6, 2)), np.arange(6) % k
        K = np.exp(-width * ((X[:, None] - X) ** 2).sum(axis=2))
        K = (0.5 * (K + K.T)).astype(dtype)
        params = {"kernel": "precomputed", "normalize": True, "C": C, "max_iter": 300}
        clf = fit(PerceptronVonNeumann(stopping="gap", tol=1e-14, **params), K, y)
        assert clf.certificate_.of == "(x, 1) / ||(x, 1)||"
        confirmed(clf, K, y, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_norms_of_long_examples_keep_their_digits(container, fit_intercept, rng):
    """Sums of squares column by column had an error in proportion to the number of features."""
    X = rng.uniform(0.5, 1.0, (4, 1)) * np.full((4, 20_000), rng.uniform(0.1, 1.0))
    X[:2, :10_000] *= -rng.uniform(0.5, 1.0)
    params = {"normalize": True, "fit_intercept": fit_intercept, "tol": 1e-14}
    clf = PerceptronVonNeumann(stopping="gap", max_iter=200, **params)
    fit(clf, container(X), [0, 0, 1, 1])
    confirmed(clf, container(X), [0, 0, 1, 1], exact=True)


@each_normalizing
def test_squares_below_zero_count_as_zero(cls):
    """Found by the attack: fit and check disagreed about kernels that are no inner product."""
    X, y = np.eye(4)[[1, 0, 1, 1]] * [1.0, 0.0, 0.0, 0.0], [0, 1, 0, 0]
    params = {
        "kernel": "poly",
        "degree": 3,
        "coef0": -1.0,
        "normalize": True,
        "max_iter": 60,
    }
    confirmed(fit(make(cls, stopping="gap", **params), X, y), X, y)


@each_normalizing
def test_powers_beyond_float32_are_checked_in_float64(cls, rng):
    X, y = separable(rng)
    X, params = (
        (1e14 * X).astype(np.float32),
        {"kernel": "poly", "gamma": 1.0, "normalize": True},
    )
    confirmed(fit(make(cls, max_iter=50, **params), X, y), X, y)


def test_the_check_finds_another_constant_and_another_name(rng):
    X, y = separable(rng)
    clf = certified(PerceptronVonNeumann(normalize=True, stopping="gap"), X, y)
    refused(clf, "not of X", X, y, of="X")
    clf.constant_ *= 10.0
    refused(clf, "", X, y)
    X, y = np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 1.0], [1.0, 0.0]]), [0, 1, 0, 1]
    for normalize, rows in ((True, " on (x, 5) / ||(x, 5)||"), (False, "")):
        claim = fit(PerceptronVonNeumann(normalize=normalize), X, y).certificate_
        assert f"best margin{rows} <=" in str(claim)


@each_normalizing
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("separable", [False, True])
def test_four_numbers(cls, normalize, separable):
    """Once called inseparable, with an intercept fitted to rows that had all become 1; or zeros."""
    X, y = separable * np.array([[1.0], [3.0], [1.5], [4.0]]), [0, 1, 0, 1]
    assert make(cls).normalize is False  # by default, margins are those of X
    clf = fit(make(cls, normalize=normalize), X, y)
    assert clf.separable_ is separable
    confirmed(clf, X, y, exact=True)
    if separable:
        np.testing.assert_array_equal(clf.predict(X), y)
    elif normalize:
        assert clf.constant_ == 1.0


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_normalized_rows_are_those_of_normalized_data(k, sparse, fit_intercept, rng):
    X, y = separable(rng, k=k)
    X[5] = 0.0
    X[np.abs(X) < 0.2] = 0.0
    unit = normalized_rows(X, fit_intercept=fit_intercept)
    given = sp.csr_array(X) if sparse else X
    params = {"max_iter": 50, "tol": 0.0}
    inside = SmoothedKernelPerceptron(
        normalize=True, fit_intercept=fit_intercept, **params
    )
    outside = fit(SmoothedKernelPerceptron(fit_intercept=False, **params), unit, y)
    coef = fit(inside, given, y).coef_
    if fit_intercept:
        coef = np.hstack([coef, inside.intercept_[:, None] / inside.constant_])
    np.testing.assert_allclose(coef, outside.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(inside.margin_bound_, outside.margin_bound_)
    F = outside.decision_function(unit)
    np.testing.assert_allclose(
        inside.decision_function(given), F, rtol=1e-8, atol=1e-10
    )


def test_norms_that_overflow_and_kernels_of_rows_not_yet_divided_are_refused(rng):
    X, y = separable(rng)
    vast = np.array([[1.5e308, 1.5e308], [1.0, 0.0], [0.0, 1.0]])
    for fit_intercept in (False, True):
        with pytest.raises(ValueError, match="scale X"):
            SmoothedKernelPerceptron(normalize=True, fit_intercept=fit_intercept).fit(
                vast, y[:3]
            )
    with pytest.raises(ValueError, match="normalize=False"):
        SmoothedKernelPerceptron(kernel="precomputed", normalize=True).fit(X @ X.T, y)
    X[7] = 0.0  # with an intercept, its norm of 0 would have to be known in prediction
    K = (
        normalized_rows(X, fit_intercept=False)
        @ normalized_rows(X, fit_intercept=False).T
    )
    with pytest.raises(ValueError, match="its diagonal goes from 0 to 1"):
        SmoothedKernelPerceptron(kernel="precomputed", normalize=True).fit(K, y)
    params = {"kernel": "precomputed", "normalize": True, "fit_intercept": False}
    clf = fit(PerceptronVonNeumann(**params), K, y)
    assert clf.separable_ is False
    confirmed(clf, K, y, exact=True)
