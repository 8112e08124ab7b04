"""How a fit ends: its status agrees with its gap, and no margin is called none for its size."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each, slow
from helpers.estimators import (
    DETECTORS,
    ESTIMATORS,
    REGRESSORS,
    AtRound,
    fit,
    make,
    overlapping,
    separable,
)
from helpers.pairwise import pairwise
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    AdaptiveSamplingKernelClassifier,
    DualLpPerceptron,
    MaxMarginClassifier,
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


@pytest.mark.callbacks
@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_a_fit_is_not_called_stopped_that_has_reached_tol(cls, rng):
    X, y = overlapping(rng)
    for n in (2, 15, 60):
        estimator = make(cls, C=1.0, tol=0.1, accelerated=False).set_callbacks(AtRound(n))
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


# What a fit leaves where nothing separates: cheap proofs, and the limit of the soft margins.


def labelled(rng, k, n=700, d=30):
    """Examples that a predictor without intercept separates."""
    X = rng.standard_normal((n, d))
    return X, np.argmax(X @ rng.standard_normal((d, k)), axis=1)


def with_a_contradiction(rng, kind, k):
    X, y = labelled(rng, k)
    if kind == "equal":
        X[-1], y[-1] = X[0], (y[0] + 1) % k
    elif kind == "opposite":
        X[-1], y[-1] = -X[0], y[0]
    else:
        X[-1] = 0.0
    return X, y


FORMS = {"dense": lambda X: X, "float32": lambda X: X.astype(np.float32), "CSR": sp.csr_array}


@pairwise(
    of={
        "equal": ("equal", True),
        "equal, through 0": ("equal", False),
        "opposite": ("opposite", False),
        "zero": ("zero", False),
    },
    k=[2, 3],
    form=list(FORMS),
)
def test_rows_that_cancel_are_a_proof_at_once(of, k, form, rng):
    kind, fit_intercept = of
    X, y = with_a_contradiction(rng, kind, k)
    X = FORMS[form](X)
    clf = fit(MaxMarginClassifier(fit_intercept=fit_intercept), X, y)
    tried = form == "CSR" and k == 2 and kind != "equal"  # by coordinate descent, before
    assert (clf.status_, clf.separable_, clf.n_iter_) == ("no_margin", False, 1 + tried)
    assert clf.certificate_.weights.nnz == (1 if kind == "zero" else 2)
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("k", [2, slow(3)])
def test_equal_examples_are_equal_for_every_kernel(k, rng):
    X, y = with_a_contradiction(rng, "equal", k)
    clf = fit(MaxMarginClassifier(kernel="rbf"), X, y)
    assert (clf.separable_, clf.certificate_.weights.nnz) == (False, 2)
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("kind", ["opposite", "zero"])
def test_the_origin_of_a_kernel_is_not_that_of_the_features(kind, rng):
    X, y = with_a_contradiction(rng, kind, 2)
    clf = fit(MaxMarginClassifier(kernel="rbf", fit_intercept=False), X, y)
    assert clf.separable_ is True


def test_separable_classes_with_copies_stay_separable(rng):
    """Copies have equal fingerprints, too, but their rows do not cancel."""
    X, y = labelled(rng, 3)
    X, y = np.vstack([X, X[:50]]), np.append(y, y[:50])
    for A in (X, sp.csr_array(X)):
        assert MaxMarginClassifier().fit(A, y).separable_ is True


def least_squared_slack(X, y, weight):
    """Sum of squared slacks of the best predictor, by L-BFGS on standardised features."""
    Z = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    signs = 2.0 * y - 1.0

    def slack(w):
        xi = np.maximum(1.0 - signs * (Z @ w), 0.0)
        return weight @ xi**2, -2.0 * (weight * xi * signs) @ Z

    options = {"maxiter": 10_000, "ftol": 1e-14, "gtol": 1e-8}
    start = np.zeros(Z.shape[1])
    return minimize(slack, start, jac=True, method="L-BFGS-B", options=options).fun


def squared_slack(clf, X, y, weight):
    """Sum of squared slacks of a predictor, at its best scale."""
    m = (2.0 * y - 1.0) * clf.decision_function(X)

    def slack(log_scale):
        return weight @ np.maximum(1.0 - np.exp(log_scale) * m, 0.0) ** 2

    return min(slack(s) for s in np.linspace(-12.0, 12.0, 2401))


@pytest.mark.parametrize("units", [1.0, 1.5e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_has_the_least_squared_slack(weighted, units, rng):
    """Also where a feature is ten thousand times longer than the others that count."""
    X, y = overlapping(rng, n=1500, d=6)
    X += 0.4 * y[:, None]
    X[:, 0] *= units
    weight = rng.integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    clf = fit(MaxMarginClassifier(), X, y, sample_weight=weight)
    assert clf.separable_ is False
    least = least_squared_slack(X, y, weight)
    assert squared_slack(clf, X, y, weight) <= 1.02 * least


def test_units_of_features_do_not_decide_over_the_model(rng):
    X, y = overlapping(rng, n=2000, d=8)
    X += 0.5 * y[:, None]
    units = np.geomspace(1.0, 1e4, 8)
    scores = [fit(MaxMarginClassifier(), A, y).score(A, y) for A in (X, X * units)]
    assert scores[1] >= scores[0] - 0.01 > 0.75


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_more_than_two_classes_have_such_a_model(kernel, rng):
    X, y = overlapping(rng, n=600, d=4, k=4)
    X[np.arange(600), y] += 2.5
    X[0], y[0] = X[1], (y[1] + 1) % 4  # so that no kernel separates them either
    clf = fit(MaxMarginClassifier(kernel=kernel, gamma=0.1), X, y)
    assert clf.separable_ is False
    assert clf.score(X, y) > 0.85
