"""How a fit ends: its status agrees with its gap, and no margin is called none for its size."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each
from helpers.estimators import DETECTORS, ESTIMATORS, REGRESSORS, fit, make, overlapping, separable
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    AdaptiveSamplingKernelClassifier,
    DualLpPerceptron,
    MomentumMarginClassifier,
    check_certificate,
)

ALL = [*ESTIMATORS, *REGRESSORS, *DETECTORS]
KINDS = {"overlapping": overlapping, "separable": separable}


def agree(estimator):
    """Whether a fit that ended short is short of tol, and one that is certified is not."""
    gap, tol = estimator.gap_, estimator.tol
    if estimator.status_ in ("max_iter", "stopped", "stalled"):
        # the gap of a hard tube is that of one that is wider by violation_
        return gap > tol or getattr(estimator, "violation_", 0.0) > 0.0
    return estimator.status_ != "certified" or gap <= tol


@pytest.fixture(scope="module")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [np.inf, 1.0, 1e-3])
def test_statuses_and_gaps_agree(cls, kind, C, rng):
    X, y = KINDS[kind](rng)
    for tol in (0.3, 1e-2, 1e-4):
        for max_iter in (3, 15, 40, 100):
            params = {"C": C, "tol": tol, "max_iter": max_iter, "accelerated": False}
            estimator = make(cls, stopping="gap", momentum=0.0, **params)
            assert agree(fit(estimator, X, *() if cls in DETECTORS else (y,)))


class StopAfter:
    """A callback that tells a fit to stop."""

    max_propagation_depth = None

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    on_fit_task_begin = teardown = setup

    def on_fit_task_end(self, estimator, context, **found):
        return context.task_name == "round" and context.task_id + 1 == self.n


@pytest.mark.callbacks
@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_a_fit_is_not_called_stopped_that_has_reached_tol(cls, rng):
    X, y = overlapping(rng)
    for n in (2, 15, 60):
        estimator = make(cls, C=1.0, tol=0.1, accelerated=False).set_callbacks(StopAfter(n))
        assert agree(fit(estimator, X, *() if cls in DETECTORS else (y,)))


@pytest.mark.parametrize("max_iter", [60, 120, 200])
def test_a_fit_ends_where_its_confirmed_bounds_meet(max_iter, breast_cancer):
    """The predictor of a round is better with the slack that it needs than with that of its row."""
    params = {"tol": 1e-3, "random_state": 0, "accelerated": False}
    clf = DualLpPerceptron(C=1.0, max_iter=max_iter, **params).fit(*breast_cancer)
    assert clf.status_ == "certified"
    assert clf.n_iter_ <= 60
    assert clf.gap_ > 1e-7


def test_the_last_round_is_looked_at(breast_cancer):
    X, y = (part[: 2 * len(part) // 3] for part in breast_cancer)
    clf = MomentumMarginClassifier(C=1e-4, momentum=0.0, tol=1e-2, max_iter=1000)
    assert agree(fit(clf, X, y))


# No margin.


def thin(rng, n=80, d=4):
    """Two classes whose best margin is a ten-thousandth of the radius."""
    X = rng.uniform(-1.0, 1.0, (n, d))
    y = np.arange(n) % 2
    X[:, 0] = 2e-4 * (2 * y - 1) * (1.0 + rng.random(n))
    X[:2, 0], X[:2, 1:] = [-2e-4, 2e-4], 0.0
    return X, y


@each
@pytest.mark.parametrize("tol", [0.5, 1e-2])
def test_a_thin_margin_is_not_called_none(cls, tol, rng):
    X, y = thin(rng)
    clf = fit(make(cls, tol=tol, max_iter=300, stopping="gap"), X, y)
    assert clf.status_ != "no_margin"
    assert clf.separable_ is not False


@each
def test_an_overlap_is_proved_whatever_tol_is(cls, rng):
    X, y = overlapping(rng)
    for tol in (0.5, 1e-4):
        clf = fit(make(cls, tol=tol, max_iter=300, stopping="gap"), X, y)
        if clf.status_ == "no_margin":
            assert clf.separable_ is False
            assert check_certificate(clf, X, y)


def test_breast_cancer_is_not_called_inseparable(breast_cancer):
    """Its best margin is 7e-5 of the radius."""
    clf = fit(DualLpPerceptron(random_state=0, max_iter=200), *breast_cancer)
    assert clf.status_ != "no_margin"
    assert DualLpPerceptron(random_state=0, tol=1e-6).fit(*breast_cancer).separable_


def test_a_few_draws_are_no_proof(rng):
    """Text with a few long documents: its margin is a thousandth of the radius."""
    length = np.where(np.arange(400) < 4, 50.0, 1.0)
    X = sp.random_array((400, 5000), density=0.01, rng=rng, format="csr")
    X, y = sp.diags_array(length) @ X, np.arange(400) % 2
    clf = fit(AdaptiveSamplingKernelClassifier(max_iter=300, random_state=0), X, y)
    assert clf.status_ == "max_iter"
