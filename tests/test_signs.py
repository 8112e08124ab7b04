"""Signs of coefficients (``monotonic_cst``): beside solvers that share nothing with ours."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.claiming import refused
from helpers.estimators import overlapping, separable
from scipy.optimize import linprog, minimize, nnls

from marginsvm import (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    check_certificate,
    fit_many,
    save_proof,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def problems(n_problems, seed=0, *, n=30):
    """Random examples in different units, labels that signed predictors may give, and signs."""
    rng = np.random.default_rng(seed)
    for _ in range(n_problems):
        d = int(rng.integers(1, 6))
        X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d)
        signs = rng.integers(-1, 2, d)
        w = rng.standard_normal(d) / np.abs(X).max(axis=0)
        w = np.where(rng.random(d) < 0.7, np.where(signs == 0, 1.0, signs) * np.abs(w), w)
        scores = X @ w + 0.3 * rng.standard_normal()
        y = (scores + rng.choice([0.0, 0.2]) * rng.standard_normal(n) > np.median(scores)) * 1
        yield X, y, signs


def bounds_of(signs):
    ends = {-1: (None, 0.0), 0: (None, None), 1: (0.0, None)}
    return [ends[s] for s in signs.tolist()]


def separated(X, y, signs, intercept=True):
    """Whether signed predictors separate the classes, by a linear program."""
    A = -np.where(y == 1, 1.0, -1.0)[:, None] * X / np.abs(X).max(axis=0)
    A = np.column_stack([A, -np.where(y == 1, 1.0, -1.0) * intercept])
    ends = [*bounds_of(signs), (None, None)]
    return linprog(np.zeros(A.shape[1]), A, -np.ones(len(y)), bounds=ends).status == 0


@pytest.mark.parametrize("intercept", [True, False])
def test_separability_is_that_of_a_linear_program(intercept):
    answers = []
    for X, y, signs in problems(60):
        clf = MaxMarginClassifier(monotonic_cst=signs, fit_intercept=intercept).fit(X, y)
        answers.append(clf.separable_)
        assert clf.separable_ is separated(X, y, signs, intercept)
        assert check_certificate(clf, X, y)
        assert np.all(clf.coef_ * signs >= 0.0)
    assert 10 < sum(answers) < 50


def test_no_intercept_is_nnls():
    """The nearest point of the hull of the rows and the cone of the signs."""
    found = 0
    for X, y, signs in problems(40, seed=1, n=12):
        rows = np.where(y == 1, 1.0, -1.0)[:, None] * X
        of_signs = np.diag(signs.astype(float))[signs != 0] * np.abs(X).max()
        both = np.vstack([rows, of_signs]) / np.abs(X).max()
        sums = np.append(np.ones(len(rows)), np.zeros(len(of_signs)))
        u = nnls(np.vstack([both.T, sums]), np.append(np.zeros(X.shape[1]), 1.0))[0]
        best = np.linalg.norm(u @ both) / (u @ sums) * np.abs(X).max()
        clf = MaxMarginClassifier(monotonic_cst=signs, fit_intercept=False).fit(X, y)
        radius = clf.certificate_.radius
        assert clf.margin_bound_ >= best - 1e-7 * radius
        assert max(clf.margin_, 0.0) <= best + 1e-7 * radius
        if clf.status_ == "certified":
            found += 1
            assert clf.margin_ == pytest.approx(best, rel=2e-6, abs=1e-8 * radius)
    assert found > 10


def least_objective(X, y, signs, C, loss):
    """By SLSQP with slack variables, in scaled units of the features."""
    s, unit, (n, d) = np.where(y == 1, 1.0, -1.0), np.abs(X).max(axis=0), X.shape
    A = np.column_stack([s[:, None] * X / unit, s, np.eye(n)])
    ends = [*bounds_of(signs), (None, None), *[(0.0, None)] * n]
    weight, power = np.append(1.0 / unit**2, np.zeros(1 + n)), 1 if loss == "hinge" else 2

    def value(v):
        slack, slope = v[d + 1 :], weight * v
        slope[d + 1 :] = C * power * slack ** (power - 1)
        return 0.5 * weight @ v**2 + C * (slack**power).sum(), slope

    found = minimize(
        value,
        np.concatenate([np.zeros(d + 1), np.ones(n)]),
        jac=True,
        method="SLSQP",
        bounds=ends,
        constraints={"type": "ineq", "fun": lambda v: A @ v - 1.0, "jac": lambda v: A},
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return found.fun if found.success else np.nan


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_soft_margins_are_those_of_other_solvers(loss):
    compared = 0
    for i, (X, y, signs) in enumerate(problems(15, seed=2, n=20)):
        C = 10.0 ** (i % 3 - 1)
        clf = MaxMarginClassifier(C=C, loss=loss, monotonic_cst=signs).fit(X, y)
        assert clf.status_ == "certified"
        assert check_certificate(clf, X, y, exact=True)
        best = least_objective(X, y, signs, C, loss)
        if np.isfinite(best):
            compared += 1
            # what the other has found is feasible, so that it is not below the least
            assert 0.5 / clf.margin_bound_**2 <= best * (1.0 + 1e-9)
            assert 0.5 / clf.margin_**2 <= best * (1.0 + 1e-5)
    assert compared >= 8  # others end without success, on other problems with other kernels of BLAS


def test_signs_that_hold_anyway_change_nothing(rng):
    X, y = separable(rng)
    clf = MaxMarginClassifier().fit(X, y)
    signed = MaxMarginClassifier(monotonic_cst=np.sign(clf.coef_[0]).astype(int)).fit(X, y)
    assert signed.margin_ == pytest.approx(clf.margin_, rel=2e-6)
    better = signed.margin_bound_ * (1.0 - 1e-3)
    refused(signed, "the weights prove", X, y, margin_bound=better)
    none = MaxMarginClassifier(monotonic_cst=[0] * X.shape[1]).fit(X, y)
    np.testing.assert_array_equal(none.coef_, clf.coef_)


def test_forms_of_signs_and_data(rng):
    """By names, sparse, weighted, and with the classes swapped."""
    pandas = pytest.importorskip("pandas")
    X, y = overlapping(rng, n=60)
    signs = np.array([1, -1, 0])
    clf = MaxMarginClassifier(C=0.5, monotonic_cst=signs).fit(X, y)
    named = MaxMarginClassifier(C=0.5, monotonic_cst={"a": 1, "b": -1})
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    np.testing.assert_allclose(named.fit(frame, y).coef_, clf.coef_, atol=1e-9)
    assert check_certificate(named, frame, y)
    sparse = MaxMarginClassifier(C=0.5, monotonic_cst=signs).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, clf.coef_, atol=1e-4)
    swapped = MaxMarginClassifier(C=0.5, monotonic_cst=-signs).fit(X, 1 - y)
    np.testing.assert_allclose(swapped.coef_, -clf.coef_, atol=1e-4)
    twice = MaxMarginClassifier(C=0.5, monotonic_cst=signs).fit(X, y, np.full(60, 2.0))
    copies = MaxMarginClassifier(C=0.5, monotonic_cst=signs)
    copies.fit(np.vstack([X, X]), np.append(y, y))
    assert twice.margin_ == pytest.approx(copies.margin_, rel=2e-6)


def test_false_claims_are_refused(rng):
    """A coefficient of the other sign, a better bound, and a proof for other signs."""
    X, y = separable(rng)
    free = MaxMarginClassifier().fit(X, y)
    signs = -np.sign(free.coef_[0]).astype(int)
    signs[1:] = 0
    clf = MaxMarginClassifier(monotonic_cst=signs).fit(X, y)
    for exact in (False, True):
        assert check_certificate(clf, X, y, exact=exact)
        for other in (np.zeros_like(signs), -signs):
            clf.monotonic_cst = other
            assert not check_certificate(clf, X, y, exact=exact)
        clf.monotonic_cst = signs
        better = clf.margin_bound_ - 1e-6 * clf.certificate_.radius
        refused(clf, "the weights prove", X, y, exact=exact, margin_bound=better)
        free.monotonic_cst = signs
        assert "monotonic_cst" in check_certificate(free, X, y, exact=exact).reason
        free.monotonic_cst = None


def test_a_proof_of_overlap_needs_its_signs():
    """Under these signs nothing separates; without them, or with others, something does."""
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]]), np.array([0, 0, 1, 1])
    clf = MaxMarginClassifier(monotonic_cst=[-1, -1]).fit(X, y)
    assert clf.separable_ is False
    assert check_certificate(clf, X, y, exact=True)
    clf.monotonic_cst = [1, -1]
    assert "separable is False" in check_certificate(clf, X, y, exact=True).reason
    assert MaxMarginClassifier(monotonic_cst=[1, -1]).fit(X, y).separable_ is True


def test_a_warm_start_knows_the_signs(rng):
    X, y = overlapping(rng, n=60)
    clf = MaxMarginClassifier(C=1.0, warm_start=True).fit(X, y)
    signs = -np.sign(clf.coef_[0]).astype(int)
    clf.set_params(monotonic_cst=signs).fit(X, y)
    anew = MaxMarginClassifier(C=1.0, monotonic_cst=signs).fit(X, y)
    assert clf.margin_ == pytest.approx(anew.margin_, rel=2e-6)
    assert check_certificate(clf, X, y)


def test_what_cannot_have_signs_is_refused(rng, tmp_path):
    X, y = overlapping(rng, n=60)
    signed = partial(MaxMarginClassifier, monotonic_cst=[1, 0, 0])
    for message, refused_work in {
        "use kernel='linear'": lambda: signed(kernel="rbf").fit(X, y),
        "y has 3: use sklearn": lambda: signed().fit(X, np.arange(60) % 3),
        "examples in memory": lambda: signed().fit_blocks([(X, y)]),
        "shape": lambda: signed(monotonic_cst=[1, 0]).fit(X, y),
        "feature names": lambda: signed(monotonic_cst={"a": 1}).fit(X, y),
        "fit one by one": lambda: fit_many(signed(), X, y),
        "monotonic_cst": lambda: save_proof(signed(C=1.0).fit(X, y), tmp_path / "p.json", X, y),
    }.items():
        with pytest.raises(ValueError, match=message):
            refused_work()
    assert "monotonic_cst" not in MomentumMarginClassifier().get_params()
