"""What parameters may be, and what is said of those that may not."""

import numpy as np
import pytest
from helpers.estimators import fit, separable

from marginsvm import (
    AcceleratedPerceptron,
    AdaptiveSamplingKernelClassifier,
    DualLpPerceptron,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
)
from marginsvm.schedules import PowerSchedule

FIRST_ORDER = (
    MomentumMarginClassifier,
    AdaptiveSamplingKernelClassifier,
    OptimisticPerceptron,
    DualLpPerceptron,
    AcceleratedPerceptron,
    SmoothedKernelPerceptron,
)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"step": "fast"}, "step"),
        ({"step": -1.0}, "step"),
        ({"step": lambda t: 1 - t}, "gave 0.0 at round 1"),
        ({"step": None}, "'step'.*Got None"),
        ({"step": PowerSchedule}, r"PowerSchedule is a class.*such as PowerSchedule\(\)"),
        ({"momentum": 1.5}, "momentum"),
        ({"momentum": "none"}, "None.*Got 'none'"),
        ({"momentum": lambda t: -1.0}, "gave -1.0 at round 0"),
        ({"C": 0}, "'C'"),
        ({"C": -1}, "'C'"),
        ({"kernel": "gaussian"}, "rbf"),
        ({"kernel": "rbf", "kernel_params": {"foo": 1}}, r"\['foo'\].*parameters are \['gamma'\]"),
        ({"kernel": "poly", "kernel_params": {"n": 1}}, r"\['coef0', 'degree', 'gamma'\]"),
        ({"kernel_params": {"gamma": 1.0}}, "it has no parameters"),
        ({"loss": "hinge"}, "logistic"),
        ({"tol": -1}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_errors_say_what_to_do(params, text, rng):
    X, y = separable(rng)
    with pytest.raises(ValueError, match=text):
        MomentumMarginClassifier(**params).fit(X, y)


@pytest.mark.parametrize("of", FIRST_ORDER)
def test_first_order_estimators_ask_for_two_digits(of):
    assert of().tol == 1e-2


def test_kernel_params_stand_for_parameters(rng):
    X, y = separable(rng)
    a = fit(MomentumMarginClassifier(kernel="rbf", gamma=0.3, max_iter=9), X, y)
    b = fit(MomentumMarginClassifier(kernel="rbf", kernel_params={"gamma": 0.3}, max_iter=9), X, y)
    assert a.margin_bound_ == b.margin_bound_
    with pytest.raises(ValueError, match="it has no parameters"):
        MomentumMarginClassifier(kernel_params={"foo": 1}).fit_blocks([(X, y)])


def test_bad_kernels_are_refused(rng):
    X, y = separable(rng)
    clf = MomentumMarginClassifier(kernel="precomputed")
    with pytest.raises(ValueError, match="square"):
        clf.fit(X, y)
    K = X @ X.T
    K[0, 1] += 1.0
    with pytest.raises(ValueError, match="symmetric"):
        clf.fit(K, y)
    with pytest.raises(ValueError, match="1 class"):
        MomentumMarginClassifier().fit(X, np.zeros(len(X)))


def test_parts_of_what_has_none_cannot_be_set():
    clf = MomentumMarginClassifier(step="inv_sqrt")
    with pytest.raises(ValueError, match=r"step='inv_sqrt'.*marginsvm\.schedules"):
        clf.set_params(step__power=0.3)
    with pytest.raises(ValueError, match="kernel=None, which has none"):
        clf.set_params(kernel=None, kernel__width=3)
    clf.set_params(step=PowerSchedule(), step__power=0.3)
    assert clf.step.power == 0.3
    with pytest.raises(ValueError, match="Invalid parameter 'stepsize'"):
        clf.set_params(stepsize__power=0.3)
