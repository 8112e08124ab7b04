"""Signs of coefficients (``monotonic_cst``): beside solvers that share nothing with ours."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.claiming import refused
from helpers.estimators import certified, fit, overlapping
from scipy.optimize import linprog, nnls
from sklearn.base import clone, is_regressor

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    check_certificate,
    fit_many,
    save_proof,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SQUARED = "squared_epsilon_insensitive"
SOFT = {
    "hinge": MaxMarginClassifier(C=0.5, loss="hinge"),
    "squared hinge": MaxMarginClassifier(C=0.5),
    "tube": MaxMarginRegressor(epsilon=0.2),
    "squared tube": MaxMarginRegressor(epsilon=0.2, loss=SQUARED),
    "share": MaxMarginRegressor(nu=0.4),
}
each_soft = pytest.mark.parametrize("model", SOFT.values(), ids=SOFT)


def problems(n_problems, seed=0, *, n=30):
    """Random examples in different units, labels that signed predictors may give, and signs."""
    rng = np.random.default_rng(seed)
    for _ in range(n_problems):
        d = int(rng.integers(1, 6))
        X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d)
        signs = rng.integers(-1, 2, d)
        w = rng.standard_normal(d) / np.abs(X).max(axis=0)
        w = np.where(
            rng.random(d) < 0.7, np.where(signs == 0, 1.0, signs) * np.abs(w), w
        )
        scores = X @ w + 0.3 * rng.standard_normal()
        y = (
            scores + rng.choice([0.0, 0.2]) * rng.standard_normal(n) > np.median(scores)
        ) * 1
        yield X, y, signs


def targets(X, seed=0):
    rng, (n, d) = np.random.default_rng(seed), X.shape
    return (
        X / X.std(axis=0) @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) + 3.0
    )


def outcomes(model, rng, n=60):
    X, y = overlapping(rng, n=n)
    return X, targets(X) if is_regressor(model) else y


def signed(model, signs, *data, exact=False):
    return certified(clone(model).set_params(monotonic_cst=signs), *data, exact=exact)


def value(model):
    return model.objective_ if is_regressor(model) else model.margin_


def opposite(model):
    return -np.sign(model.coef_.ravel()).astype(int)


def fits(A, low, signs):
    """Whether ``A (w, b) >= low`` has a solution with these signs of w, by a linear program."""
    ends = [
        {-1: (None, 0.0), 0: (None, None), 1: (0.0, None)}[s] for s in signs.tolist()
    ]
    return (
        linprog(np.zeros(A.shape[1]), -A, -low, bounds=[*ends, (None, None)]).status
        == 0
    )


@pytest.mark.parametrize("intercept", [True, False])
def test_separability_is_that_of_a_linear_program(intercept):
    answers = []
    for X, y, signs in problems(60):
        clf = MaxMarginClassifier(monotonic_cst=signs, fit_intercept=intercept).fit(
            X, y
        )
        answers.append(clf.separable_)
        side = np.where(y == 1, 1.0, -1.0)
        A = np.column_stack([X / np.abs(X).max(axis=0), np.full(len(X), intercept)])
        assert clf.separable_ is fits(side[:, None] * A, np.ones(len(X)), signs)
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


@each_soft
def test_signs_are_kept(model):
    """The best value of such programs is tested in test_solvers.py."""
    for i, (X, y, signs) in enumerate(problems(15, seed=2, n=20)):
        data = X, targets(X, i) if is_regressor(model) else y
        soft = clone(model).set_params(C=10.0 ** (i % 3 - 1))
        assert np.all(signed(soft, signs, *data, exact=True).coef_ * signs >= 0.0)


@pytest.mark.parametrize("epsilon", [0.05, 10.0])
def test_hard_tubes(epsilon):
    """What no signed predictor fits is proved, in integers."""
    for X, _, _ in problems(6, seed=2, n=8):
        y, signs = targets(X), np.where(np.arange(X.shape[1]) % 2, 1, -1)
        half = np.column_stack([X / np.abs(X).max(axis=0), np.ones(8)])
        tube = np.vstack([half, -half]), np.append(y, -y) - epsilon
        ends = "certified" if fits(*tube, signs) else "infeasible"
        reg = MaxMarginRegressor(C=np.inf, epsilon=epsilon, monotonic_cst=signs)
        certified(reg, X, y, ends=(ends,), exact=True)
        if ends == "infeasible":  # without signs, these weights prove less
            reg.monotonic_cst = None
            assert not fits(*tube, 0 * signs) or not check_certificate(
                reg, X, y, exact=True
            )


@each_soft
def test_signs_that_hold_anyway_change_nothing(model, rng):
    X, y = outcomes(model, rng)
    free = clone(model).fit(X, y)
    assert value(signed(model, -opposite(free), X, y)) == pytest.approx(
        value(free), rel=2e-6
    )
    np.testing.assert_array_equal(
        signed(model, [0] * X.shape[1], X, y).coef_, free.coef_
    )


@each_soft
def test_forms_of_signs_and_data(model, rng):
    """By names, sparse, weighted, with the classes swapped, and of several outputs."""
    pandas = pytest.importorskip("pandas")
    (X, y), signs = outcomes(model, rng), np.array([1, -1, 0])
    one = signed(model, signs, X, y, exact=True)
    # a sign binds
    assert (np.abs(signed(model, opposite(one), X, y).coef_) < 1e-5).any()
    frame, names = pandas.DataFrame(X, columns=["a", "b", "c"]), {"a": 1, "b": -1}
    # all up to the gap: last digits hang on the layout of X and on the processor
    named = signed(model, names, frame, y)
    np.testing.assert_allclose(named.coef_, one.coef_, atol=1e-4)
    sparse = signed(model, signs, sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, one.coef_, atol=1e-4)
    swapped = signed(model, -signs, X, -y if is_regressor(model) else 1 - y)
    np.testing.assert_allclose(swapped.coef_, -one.coef_, atol=1e-4)
    twice = signed(model, signs, X, y, np.full(60, 2.0))
    copies = signed(model, signs, np.vstack([X, X]), np.append(y, y))
    assert value(twice) == pytest.approx(value(copies), rel=2e-6)
    if is_regressor(model):
        other = targets(X, 1)
        several = signed(model, signs, X, np.column_stack([y, other]), exact=True)
        apart = [value(one), value(signed(model, signs, X, other))]
        np.testing.assert_allclose(several.objective_, apart, rtol=2e-6)


@each_soft
@pytest.mark.parametrize("exact", [False, True])
def test_false_claims_are_refused(model, exact, rng):
    """A coefficient of the other sign, a better bound, and a proof for other signs."""
    X, y = outcomes(model, rng)
    free = clone(model).fit(X, y)
    signs = opposite(free) * [1, 0, 0]
    found = signed(model, signs, X, y, exact=exact)
    for other in (np.zeros_like(signs), -signs):
        false = clone(model)
        vars(false).update(vars(found) | {"monotonic_cst": other})
        assert not check_certificate(false, X, y, exact=exact)
    name, words, off = (
        "margin_bound",
        "the weights prove",
        -1e-6 * found.certificate_.radius,
    )
    if is_regressor(model):
        off = (1e-9 if exact else 1e-4) * found.objective_
        name, words = "objective_bound", "objective_bound_ is"
    better = getattr(found, f"{name}_") + off
    refused(found, words, X, y, exact=exact, **{name: better})
    free.monotonic_cst = signs
    reason = check_certificate(free, X, y, exact=exact).reason
    assert "sign that monotonic_cst does not allow" in reason


def test_a_proof_of_overlap_needs_its_signs():
    """Under these signs nothing separates; without them, or with others, something does."""
    X, y = (
        np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]]),
        np.array([0, 0, 1, 1]),
    )
    clf = MaxMarginClassifier(monotonic_cst=[-1, -1]).fit(X, y)
    assert clf.separable_ is False
    assert check_certificate(clf, X, y, exact=True)
    clf.monotonic_cst = [1, -1]
    assert "separable is False" in check_certificate(clf, X, y, exact=True).reason
    assert MaxMarginClassifier(monotonic_cst=[1, -1]).fit(X, y).separable_ is True


@each_soft
def test_a_warm_start_knows_the_signs(model, rng):
    X, y = outcomes(model, rng)
    going = clone(model).set_params(warm_start=True).fit(X, y)
    signs = opposite(going)
    certified(going.set_params(monotonic_cst=signs), X, y)
    assert value(going) == pytest.approx(value(signed(model, signs, X, y)), rel=2e-6)


def test_what_cannot_have_signs_is_refused(rng, tmp_path):
    X, y = overlapping(rng, n=60)
    clf = partial(MaxMarginClassifier, monotonic_cst=[1, 0, 0])
    for message, refused_work in {
        "use kernel='linear'": lambda: clf(kernel="rbf").fit(X, y),
        "y has 3: use sklearn": lambda: clf().fit(X, np.arange(60) % 3),
        "examples in memory": lambda: clf().fit_blocks([(X, y)]),
        "shape": lambda: clf(monotonic_cst=[1, 0]).fit(X, y),
        "feature names": lambda: clf(monotonic_cst={"a": 1}).fit(X, y),
        "fit one by one": lambda: fit_many(clf(), X, y),
        "monotonic_cst": lambda: save_proof(
            clf(C=1.0).fit(X, y), tmp_path / "p.json", X, y
        ),
    }.items():
        with pytest.raises(ValueError, match=message):
            refused_work()
    for cst in ([1, 2, 0], [1], {"a": 1}):
        with pytest.raises(ValueError, match="monotonic_cst"):
            fit(MaxMarginRegressor(monotonic_cst=cst), X, y)
    with pytest.raises(ValueError, match="constrains the coefficients of features"):
        MaxMarginRegressor(kernel="rbf", monotonic_cst=[1, 0, 0]).fit(X, y)
    assert "monotonic_cst" not in MomentumMarginClassifier().get_params()
