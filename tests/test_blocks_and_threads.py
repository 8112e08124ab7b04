"""Where and how the examples are kept changes no fit.

In memory or in blocks, dense or sparse, in pieces on several threads, by products or by compiled
loops: the bounds and the predictor are the same up to rounding.
"""

from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.pairwise import pairwise
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from marginsvm import (
    AcceleratedPerceptron,
    BatchPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    VonNeumannClassifier,
    check_certificate,
)


def single(X):
    return X.astype(np.float32)


FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "float32": single,
    "CSR": sp.csr_array,
    "CSR, float32": lambda X: sp.csr_array(single(X)),
}
CUTS = {"one": [60], "an example each": [1] * 60, "uneven": [7, 0, 1, 30, 22], "halves": [30, 30]}
ESTIMATORS = {
    "momentum": MomentumMarginClassifier(max_iter=25),
    "logistic": MomentumMarginClassifier(loss="logistic", C=1.0, max_iter=25),
    "a share": MomentumMarginClassifier(nu=0.4, max_iter=25),
    "optimistic": OptimisticPerceptron(C=1.0, max_iter=25),
    "p-norm": AcceleratedPerceptron(p=1.5, max_iter=25),
    "worst rows": BatchPerceptron(max_iter=25),
    "normalized": SmoothedKernelPerceptron(normalize=True, max_iter=25),
    "von Neumann": VonNeumannClassifier(max_iter=25),
    "exact": MaxMarginClassifier(),
    "exact, soft": MaxMarginClassifier(C=1.0),
}


def examples(rng, k, where, n=60):
    """Some zeros, a column of zeros and ones, and a mean that may be far from the origin."""
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    X = rng.standard_normal((n, 5)) + 3.0 * np.eye(k, 5)[y]
    X[np.abs(X) < 0.3] = 0.0
    X[:, 4] = rng.integers(0, 2, n)
    return X + {"near": 0.0, "off": 5.0, "far": 1e4}[where] * (X != 0.0), y


def in_blocks(X, y, sizes, weight=None):
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    every = (X, y) if weight is None else (X, y, weight)
    return [tuple(a[part] for a in every) for part in parts]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pairwise(
    estimator=ESTIMATORS,
    form=FORMS,
    sizes={name: slow(cut) if len(cut) > 10 else cut for name, cut in CUTS.items()},
    k=[2, 3],
    where=["near", "off", "far"],
    fit_intercept=[True, False],
    weighted=[False, True],
)
def test_blocks_give_the_fit_of_memory(estimator, form, sizes, k, where, fit_intercept, weighted):
    rng = np.random.default_rng(0)
    X, y = examples(rng, k, where)
    X, weight = form(X), rng.integers(0, 4, 60).astype(float) if weighted else None
    if weighted:
        weight[:k] = 1.0
    estimator = estimator.set_params(fit_intercept=fit_intercept)
    memory = copy(estimator.fit(X, y, sample_weight=weight))
    source = in_blocks(X, y, sizes, weight)
    blocks = estimator.fit_blocks(source)
    assert check_certificate(blocks, source)
    exact = isinstance(estimator, MaxMarginClassifier)
    rtol = {"near": 1e-9, "off": 1e-9, "far": 1e-6}[where]
    rtol = 1e-3 if X.dtype == np.float32 else 2e-6 if exact else rtol
    size = abs(memory.margin_bound_)
    assert_allclose(blocks.margin_, memory.margin_, rtol=rtol, atol=rtol * size)
    rounded = 1e-12 * memory.certificate_.radius  # where nothing separates
    assert_allclose(blocks.margin_bound_, memory.margin_bound_, rtol=rtol, atol=rounded)
    if not exact and X.dtype == np.float64:
        assert blocks.n_iter_ == memory.n_iter_
        scale = np.abs(memory.coef_).max()
        assert_allclose(blocks.coef_, memory.coef_, rtol=0, atol=1e2 * rtol * scale)


def many(rng):
    """More examples than fit into a processor's cache, 34 MB: compiled loops may pass over them."""
    X, y = rng.standard_normal((17_000, 250)), np.arange(17_000) % 2
    X[np.arange(17_000), y] += 3.0
    return X, y


def in_memory_and_in_halves(X, y, **params):
    half, clf = len(y) // 2, MomentumMarginClassifier(tol=0.0, **params)
    memory = copy(clf.fit(X, y))
    clf.fit_blocks([(X[:half], y[:half]), (X[half:], y[half:])])
    return memory, clf


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_do_not_depend_on_the_number_of_threads(rng):
    X, y = many(rng)
    memory, blocks = in_memory_and_in_halves(X, y, C=1.0, max_iter=3)
    assert_allclose(blocks.coef_, memory.coef_, rtol=1e-8, atol=1e-12)
    assert_allclose(blocks.margin_bound_, memory.margin_bound_, rtol=1e-9)
    for n_threads in (2, 4):
        with threadpool_limits(n_threads):
            clf = MomentumMarginClassifier(C=1.0, max_iter=3, tol=0.0).fit(X, y)
        for name in ("coef_", "margin_", "margin_bound_"):
            assert_array_equal(getattr(clf, name), getattr(memory, name))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exponents_may_rise_by_thousands(rng):
    """From one part of a pass to the next and within one; sums so far then count for nothing."""
    X, y = many(rng)
    order = np.argsort(-X[:, 0] - X[:, 1])
    memory, blocks = in_memory_and_in_halves(
        X[order], y[order], step=1e4, momentum=None, max_iter=2
    )
    assert np.isfinite(memory.coef_).all()
    scale = np.abs(memory.coef_).max()
    assert_allclose(blocks.coef_, memory.coef_, rtol=0, atol=1e-7 * scale)
