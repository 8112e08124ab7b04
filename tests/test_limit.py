"""What a fit leaves where nothing separates: cheap proofs, and the limit of the soft margins."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.estimators import fit, overlapping
from helpers.pairwise import pairwise
from scipy.optimize import minimize

from marginsvm import MaxMarginClassifier, check_certificate
from marginsvm.problem.adapter import GramAdapter, LinearAdapter
from marginsvm.problem.rows import make_rows


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


FORMS = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sp.csr_array,
}


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
    assert (clf.status_, clf.separable_, clf.n_iter_) == ("no_margin", False, 1)
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


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_a_softened_problem_is_that_of_a_soft_margin(kernel, k, rng):
    """But for the radius, which stays that of the hard margin."""
    X, y = overlapping(rng, n=40, k=k)
    weights = rng.integers(1, 4, 40).astype(float)
    rows = make_rows(y, k, balanced=True, weights=weights)
    C = 50.0
    if kernel:
        hard, soft = (GramAdapter(None, X @ X.T, rows, C=c) for c in (np.inf, C))
    else:
        hard, soft = (LinearAdapter(X, rows, C=c) for c in (np.inf, C))
    before = hard.work.passes
    softened = hard.softened(C)
    assert hard.work.passes == before
    assert (hard.slack, softened.C, softened.radius) == (None, C, hard.radius)
    q = np.where(np.isfinite(rows.margins(np.zeros(rows.score_shape))), rng.random(rows.shape), 0.0)
    lengths = [p.norm(p.combine(q)) * p.radius for p in (softened, soft)]
    assert lengths[0] == pytest.approx(lengths[1])
    margins = [p.margins(p.combine(q)) * p.radius**2 for p in (softened, soft)]
    assert np.allclose(*margins)


def warning_of(clf, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, y)
    (warning,) = caught
    return str(warning.message)


def test_the_warning_says_what_happened_what_is_left_and_what_to_do(rng):
    X, y = overlapping(rng, n=900, d=5)
    X += 0.5 * y[:, None]
    text = warning_of(MaxMarginClassifier(), X, y)
    facts = ["classes overlap: no predictor separates", "The model is the limit", "C < inf gives"]
    assert sorted(facts, key=text.index) == facts
