"""How a fit ends: its status agrees with its gap, and no margin is called none for its size."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each
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
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from marginsvm import (
    AdaptiveSamplingKernelClassifier,
    DualLpPerceptron,
    MaxMarginClassifier,
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


@pairwise(
    cls={cls.__name__: cls for cls in ALL},
    of={f"{kind}-{C}": (KINDS[kind], C) for kind in KINDS for C in (np.inf, 1.0, 1e-3)},
    tol=[0.3, 1e-2, 1e-4],
)
def test_statuses_and_gaps_agree(cls, of, tol, rng):
    kind, C = of
    X, y = kind(rng)
    params = {"C": C, "tol": tol, "stopping": "gap", "momentum": 0.0, "accelerated": False}
    for max_iter in (3, 15, 40, 100):
        estimator = make(cls, max_iter=max_iter, **params)
        assert agree(fit(estimator, X, *() if cls in DETECTORS else (y,)))


@pytest.mark.callbacks
@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_a_fit_is_not_called_stopped_that_has_reached_tol(cls, rng):
    X, y = overlapping(rng)
    for n in (2, 15, 60):
        estimator = make(cls, C=1.0, tol=0.1, accelerated=False).set_callbacks(AtRound(n))
        assert agree(fit(estimator, X, *() if cls in DETECTORS else (y,)))


@pytest.mark.parametrize("max_iter", [60, 200])
def test_a_fit_ends_where_its_confirmed_bounds_meet(max_iter):
    """The predictor of a round is better with the slack that it needs than with that of its row."""
    X, y = load_breast_cancer(return_X_y=True)
    params = {"C": 1.0, "tol": 1e-3, "random_state": 0, "accelerated": False}
    clf = DualLpPerceptron(max_iter=max_iter, **params).fit(StandardScaler().fit_transform(X), y)
    assert clf.status_ == "certified"
    assert clf.n_iter_ <= 60
    assert clf.gap_ > 1e-7


# No margin.


def thin(rng, n=80, d=4):
    """Two classes whose best margin is a ten-thousandth of the radius."""
    X = rng.uniform(-1.0, 1.0, (n, d))
    y = np.arange(n) % 2
    X[:, 0] = 2e-4 * (2 * y - 1) * (1.0 + rng.random(n))
    X[:2, 0], X[:2, 1:] = [-2e-4, 2e-4], 0.0
    return X, y


@each
@pytest.mark.parametrize("kind", [thin, overlapping])
def test_no_margin_is_said_with_a_proof_whatever_tol_is(cls, kind, rng):
    X, y = kind(rng)
    for tol in (0.5, 1e-2):
        clf = fit(make(cls, tol=tol, max_iter=300, stopping="gap"), X, y)
        assert kind is overlapping or clf.status_ != "no_margin"
        assert kind is overlapping or clf.separable_ is not False
        assert clf.status_ != "no_margin" or clf.separable_ is False
        assert check_certificate(clf, X, y)


def test_a_few_draws_are_no_proof(rng):
    """Text with a few long documents: its margin is a thousandth of the radius."""
    length = np.where(np.arange(200) < 4, 50.0, 1.0)
    X = sp.random_array((200, 5000), density=0.01, rng=rng, format="csr")
    X, y = sp.diags_array(length) @ X, np.arange(200) % 2
    clf = fit(AdaptiveSamplingKernelClassifier(max_iter=300, random_state=0), X, y)
    assert clf.status_ == "max_iter"
    assert MaxMarginClassifier().fit(X, y).separable_ is True


# What a fit leaves where nothing separates: cheap proofs, and the limit of the soft margins.


def labelled(rng, k, n=700, d=30):
    """Examples that a predictor without intercept separates."""
    X = rng.standard_normal((n, d))
    return X, np.argmax(X @ rng.standard_normal((d, k)), axis=1)


def with_a_contradiction(rng, kind, k, n=700):
    X, y = labelled(rng, k, n)
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


@pairwise(kind=["equal", "opposite", "zero"], k=[2, 3])
def test_equal_examples_are_equal_for_every_kernel(kind, k, rng):
    """The origin of its features is not that of the examples."""
    X, y = with_a_contradiction(rng, kind, k, n=200)
    clf = fit(MaxMarginClassifier(kernel="rbf", fit_intercept=kind == "equal"), X, y)
    assert clf.separable_ is (kind != "equal")
    assert kind != "equal" or clf.certificate_.weights.nnz == 2
    assert check_certificate(clf, X, y)


def test_separable_classes_with_copies_stay_separable(rng):
    """Copies have equal fingerprints, too, but their rows do not cancel."""
    X, y = labelled(rng, 3)
    X, y = np.vstack([X, X[:50]]), np.append(y, y[:50])
    for A in (X, sp.csr_array(X)):
        assert MaxMarginClassifier().fit(A, y).separable_ is True


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
    Z, peer = StandardScaler().fit_transform(X), LinearSVC(C=1e6, dual=False, tol=1e-8)
    least = squared_slack(peer.fit(Z, y, weight), Z, y, weight)
    assert squared_slack(clf, X, y, weight) <= 1.02 * least


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_more_than_two_classes_have_such_a_model(kernel, rng):
    X, y = overlapping(rng, n=600, d=4, k=4)
    X[np.arange(600), y] += 2.5
    X[0], y[0] = X[1], (y[1] + 1) % 4  # so that no kernel separates them either
    clf = fit(MaxMarginClassifier(kernel=kernel, gamma=0.1), X, y)
    assert clf.separable_ is False
    assert clf.score(X, y) > 0.85
