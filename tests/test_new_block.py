"""A new kind of block is one file: two methods, a shape and a dtype, and every pass reads it."""

import numpy as np
import pytest
from helpers.int8_block import Int8Block, Int8Blocks
from numpy.testing import assert_allclose

from marginsvm import (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    SmoothedKernelPerceptron,
)
from marginsvm.data.block import Block
from marginsvm.fit import Stopping
from marginsvm.fit.play import play
from marginsvm.kernel_matrix import LinearAdapter, make_rows
from marginsvm.papers.momentum import Momentum


@pytest.fixture
def rounded(rng):
    """A block of int8, its numbers as an array, and labels that a hyperplane separates."""
    X = rng.standard_normal((300, 6)) + 3.0 * rng.random(6)
    block = Int8Block.of(X)
    X = block.toarray()
    score = X @ rng.standard_normal(6)
    far = np.abs(score - np.median(score)) > 0.2
    return block[far], X[far], (score > np.median(score))[far] * 1


def test_it_needs_two_methods():
    assert Block.__abstractmethods__ == {"__getitem__", "toarray"}


@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_a_momentum_fit_in_memory(rounded, C):
    block, X, y = rounded
    found = []
    for examples in (block, X):
        problem = LinearAdapter(examples, make_rows(y, 2, balanced=True), C)
        progress = play(Momentum(), problem, Stopping("gap", 1e-3, 40, 1e-3)).progress
        found.append((progress.history, progress.proof.vector.image, problem.work.passes))
    (history, image, passes), (expected, expected_image, expected_passes) = found
    assert_allclose(image, expected_image, rtol=1e-9, atol=1e-12)
    assert len(history) == len(expected)
    assert passes == expected_passes


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        MomentumMarginClassifier(C=1.0, tol=0.1),
        MomentumMarginClassifier(C=1.0, tol=0.1, fit_intercept=False),
        SmoothedKernelPerceptron(tol=0.1, normalize=True),
        MaxMarginClassifier(C=1.0),
    ],
    ids=str,
)
def test_fit_blocks_gives_the_fit_of_the_same_numbers(rounded, estimator):
    block, X, y = rounded
    parts = [slice(0, 90), slice(90, 91), slice(91, len(X))]
    ours = Int8Blocks([(X[part], y[part]) for part in parts], block.scales)
    theirs = [(X[part], y[part]) for part in parts]
    found, expected = (vars(estimator.fit_blocks(s)).copy() for s in (ours, theirs))
    assert found["n_iter_"] == expected["n_iter_"]
    assert found["status_"] == expected["status_"]
    for name in ("coef_", "intercept_", "margin_", "margin_bound_"):
        assert_allclose(found[name], expected[name], rtol=1e-6)
