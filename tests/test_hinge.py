"""The hinge loss, solved with a certificate; soft margins with kernels; caps on many classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import over_seeds, slow
from helpers.claiming import refused
from helpers.estimators import certified, confirmed, fit, overlapping
from helpers.games import imbalance, worst_mean
from helpers.oracle import explicit_rows
from helpers.pairwise import pairwise
from helpers.tables import Table
from scipy.optimize import LinearConstraint, minimize
from scipy.special import xlogy
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import SVC, LinearSVC

from marginsvm import (
    AcceleratedPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    check_certificate,
)
from marginsvm.extend import softmax
from marginsvm.problem.rows import make_rows, share_caps

LOSSES = ["hinge", "squared_hinge"]


def hinge(C, **params):
    return MaxMarginClassifier(loss="hinge", C=C, **params)


def data(seed, n=40, d=3, shift=0.7, kind="plain"):
    """X, y, and weights or None."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1, -1)
    y[:2] = 1, -1
    X = np.round(rng.standard_normal((n, d)) * 2.0 ** rng.integers(-2, 3, d), 2)
    X += shift * y[:, None]
    some = rng.integers(0, n, n)
    if kind == "duplicates":
        X, y = np.vstack([X, X[some]]), np.append(y, y[some])
    elif kind == "dependent columns":
        X = np.column_stack([X, np.eye(3)[some % 3], X[:, 0] - 2.0 * X[:, 1]])
    return X, y, rng.integers(1, 4, n).astype(float) if kind == "weights" else None


def objectives(model, X, y, weight=None):
    """P of a model of ours or of scikit-learn, with its own and with the best intercept."""
    weight, own = (
        np.ones(len(y)) if weight is None else weight,
        np.ravel(model.intercept_)[0],
    )
    scores = model.decision_function(X) - own
    if hasattr(model, "coef_"):
        square = np.sum(model.coef_**2)
    else:
        square = model.dual_coef_[0] @ scores[model.support_]
    slack = [
        weight @ np.maximum(0.0, 1.0 - y * (scores + b)) for b in [own, *(y - scores)]
    ]
    return 0.5 * square + model.C * slack[0], 0.5 * square + model.C * min(slack)


CASES = {
    kind: ({"kind": kind}, {})
    for kind in ("duplicates", "dependent columns", "weights")
}
CASES |= {
    "plain": ({}, {}),
    "long": ({"n": 90, "d": 400}, {}),
    "rbf": ({"n": 150, "shift": 0.3}, {"kernel": "rbf"}),
    "rbf, weights": ({"n": 150, "kind": "weights"}, {"kernel": "rbf", "gamma": 0.2}),
    "through 0": ({}, {"fit_intercept": False}),
}


@pairwise(case=CASES, C=[1e-3, 0.1, 10.0, 1e3])
@over_seeds(3)
def test_it_is_the_problem_of_svc(seed, case, C):
    kind, params = case
    (X, y, weight), params = data(seed, **kind), {"kernel": "linear", "C": C, **params}
    clf = certified(hinge(tol=5e-7, **params), X, y, weight)
    if "fit_intercept" in params:
        peer = LinearSVC(
            loss="hinge", C=C, fit_intercept=False, tol=1e-9, max_iter=10**5
        )
        best, _ = objectives(fit(peer, X, y), X, y)
        assert clf.intercept_[0] == 0.0
    else:  # libsvm's own intercept costs 5e-4 at C = 1e4
        peer = fit(SVC(tol=1e-11, max_iter=10**6, **params), X, y, weight)
        _, best = objectives(peer, X, y, weight)
    own, _ = objectives(clf, X, y, weight)
    assert own <= best * (1 + 1e-6)
    assert np.isclose(clf.margin_, 1.0 / np.sqrt(2.0 * own), rtol=1e-9)
    assert clf.margin_bound_ >= (1.0 - 1e-9) / np.sqrt(2.0 * best)
    caps = C * (np.ones(len(y)) if weight is None else weight)[clf.support_]
    shares = np.abs(clf.dual_coef_[0]) / caps
    assert 0.0 < shares.max() <= 1.0 + 1e-5  # up to the gap
    if "kernel" in case[1] and C <= 10.0:
        assert np.allclose(
            clf.decision_function(X), peer.decision_function(X), atol=5e-3
        )
    elif C <= 10.0:
        assert np.allclose(
            clf.dual_coef_ @ X[clf.support_], clf.coef_, rtol=0, atol=2e-3
        )


@over_seeds(8)
def test_bounds_hold_in_all_rounds(seed):
    X, y, weight = data(seed, shift=[0.0, 2.0][seed % 2], kind="weights")
    C = 10.0 ** (seed - 3)
    peer = fit(SVC(kernel="linear", C=C, tol=1e-11, max_iter=10**6), X, y, weight)
    _, best = objectives(peer, X, y, weight)
    for rounds in (1, 2, 4, 8):
        clf = fit(hinge(C, max_iter=rounds), X, y, weight)
        own, _ = objectives(clf, X, y, weight)
        assert clf.margin_ <= (1 + 1e-9) / np.sqrt(2.0 * own)
        # libsvm may be above it
        assert clf.margin_bound_ >= (1 - 1e-9) / np.sqrt(2.0 * best)
        for exact in (False, True):
            confirmed(clf, X, y, weight, exact=exact)


def test_nu_is_that_of_svc():
    X, y, _ = data(1, n=60, shift=0.3)
    clf = hinge(0.5, tol=1e-10).fit(X, y)
    assert np.isclose(clf.nu_, np.abs(clf.dual_coef_).sum() / (0.5 * len(y)), rtol=1e-5)
    slack = 1.0 - y * clf.decision_function(X)
    assert np.mean(slack > 1e-4) <= clf.nu_ <= np.mean(slack > -1e-4)


def test_predictors_may_be_zero():
    X, y = np.array([[1.0, 1], [-1, -1], [1, -1], [-1, 1]]), np.array([1, 1, -1, -1])
    clf = certified(hinge(1.0), X, y, exact=True)
    assert np.allclose(clf.coef_, 0.0)
    assert np.isclose(clf.margin_, np.sqrt(1 / 8))


def test_without_slack_both_losses_are_one():
    X, y, _ = data(0, shift=8.0)
    hard, squared = hinge(np.inf).fit(X, y), MaxMarginClassifier().fit(X, y)
    assert np.array_equal(hard.coef_, squared.coef_)
    assert hard.margin_ == squared.margin_
    assert hinge(1e3).fit(X, y).separable_ is True


@pytest.mark.parametrize(("n", "d", "n_classes"), [(24, 27, 2), slow(150, 55, 12)])
@over_seeds(3)
def test_a_cost_beyond_what_matters_leaves_the_hard_margin(seed, n, d, n_classes):
    rng = np.random.default_rng(seed)
    X, y = 1e6 * rng.standard_normal((n, d)), np.arange(n) % n_classes
    hard = MaxMarginClassifier(tol=1e-7).fit(X, y)
    for C in (1e3, 1e6, 1e12):
        assert np.isclose(certified(hinge(C), X, y).margin_, hard.margin_, rtol=1e-5)


def test_separation_ends_a_fit():
    X, y, _ = data(0, shift=8.0)
    clf = certified(hinge(1.0, stopping="separation"), X, y, ends=("separated",))
    assert np.all(y * clf.decision_function(X) > 0)


@pytest.mark.slow
def test_more_classes_than_interior_points_can_hold():
    X = np.random.default_rng(0).standard_normal((700, 600))
    certified(hinge(1e-3), X, np.arange(700) % 5)


@pytest.mark.parametrize("intercept", [True, False])
def test_working_sets_of_a_kernel(intercept):
    """More examples than a first working set holds, of which many have slack."""
    X, y, weight = data(9, n=900, shift=0.4, kind="weights")
    params = {"kernel": "rbf", "gamma": 0.2, "C": 0.5}
    clf = certified(hinge(**params, fit_intercept=intercept, tol=1e-8), X, y, weight)
    assert len(clf.support_) > 400
    assert np.abs(clf.dual_coef_[0] / weight[clf.support_]).max() <= 0.5 * (1 + 1e-5)
    if intercept:
        peer = SVC(**params, tol=1e-9).fit(X, y, weight)
        assert np.allclose(
            clf.decision_function(X), peer.decision_function(X), atol=1e-3
        )


@over_seeds(5)
def test_few_examples_far_from_their_mean(seed):
    """The best intercept of a predictor depends on its scale, and few weights are free."""
    rng = np.random.default_rng(seed)
    X = np.round(1000.0 * rng.standard_normal((7, 1)), 3) + 100.0
    certified(hinge(0.01), X, [1, -1, 1, 1, 1, 1, 1], 3.0 * rng.random(7), exact=True)


@pytest.mark.parametrize("C", [0.02, 0.1, 1.0, 10.0])
def test_weights_make_up_the_predictor_that_is_found_before_them(C):
    """By symmetry, the difference of the means is the best direction from the first round on."""
    X = np.array([[-2.0, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]])
    clf = hinge(C).fit(X, [1, 1, 1, 2, 2, 2])
    assert np.allclose(clf.dual_coef_ @ X[clf.support_], clf.coef_, rtol=2e-3)
    assert np.abs(clf.dual_coef_).max() <= C


def test_a_working_set_that_other_examples_would_balance():
    """With a C of next to nothing, the larger class has slack or not by the intercept alone."""
    X, C = np.random.default_rng(1).standard_normal((111, 119)), 1e-10
    clf = certified(hinge(C), X, np.where(np.arange(111) < 56, -1, 1))
    # all weights of the smaller class are at their caps
    np.testing.assert_allclose(0.5 / clf.margin_**2, 2.0 * C * 55, rtol=1e-6)


@pytest.mark.parametrize("C", [1e2, 1e4])
def test_kernels_at_a_large_cost(C):
    """Weights range over many orders: what steps by pairs leave is solved by Newton's method."""
    X, y, _ = data(3, n=400, d=5, shift=0.3)
    assert certified(hinge(C, kernel="rbf", gamma=0.05), X, y).n_iter_ <= 60


def several(rng, n=600, k=4):
    """Overlapping classes of different sizes."""
    y = rng.choice(k, n, p=np.arange(1, k + 1) / sum(range(1, k + 1)))
    return rng.standard_normal((n, 5)) + 1.5 * rng.standard_normal((k, 5))[y], y


@pairwise(
    loss=LOSSES,
    C=[0.1, 100.0],
    kernel=["rbf", "poly", "precomputed", "callable"],
    fit_intercept=[True, False],
    kind=["plain", "weights", "duplicates", "float32"],
    k=[2, 3, 6],
)
def test_certified_fits(loss, C, kernel, fit_intercept, kind, k, rng):
    X, y = overlapping(rng, n=700) if k == 2 else several(rng, k=k)
    if kind == "duplicates":
        X[300:600] = X[:300]
    X = X.astype(np.float32) if kind == "float32" else X
    weight = rng.uniform(0.2, 3.0, len(y)) if kind == "weights" else None
    params = {
        "C": C,
        "loss": loss,
        "fit_intercept": fit_intercept,
        "tol": 1e-4 if k == 2 else 1e-3,
    }
    params["kernel"] = rbf_kernel if kernel == "callable" else kernel
    data = rbf_kernel(X) if kernel == "precomputed" else X
    rounded = kind == "float32" or (k > 2 and kernel == "poly")  # whose values are
    ends = ("certified", "stalled", "max_iter") if rounded else ("certified",)
    certified(MaxMarginClassifier(**params), data, y, weight, ends=ends)


hard = Table(MaxMarginClassifier)


@hard(C=[1e-3, 15.0], loss=["hinge"], kernel=["laplacian"], gamma=[2.3e-4], tol=[1e-4])
def a_nearly_constant_kernel():
    """Raw units: most of the kernel is a constant, which balanced weights do not see."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 16)) * np.logspace(-3, 3, 16)
    scores = X @ rng.standard_normal((16, 6)) / X.std() + rng.standard_normal((600, 6))
    return X, scores.argmax(axis=1)


WIDE = {"kernel": ["rbf"], "loss": ["hinge"], "tol": [1e-3]}


@hard(**WIDE, gamma=[1e-5], C=[10.0])
@hard(**WIDE, gamma=[1e-4], C=[1.0])
@hard(**WIDE, gamma=[1.5625e-4], C=[0.5])
def weights_at_their_caps():
    """They jump between them as intercepts move, which must not run away."""
    X, y = load_digits(return_X_y=True)
    train = [*StratifiedKFold(5).split(X, y)][3][0]
    return StandardScaler().fit_transform(X)[train], y[train]


def without_rule(n):
    """Nothing to be learnt: all have slack."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 3)), rng.integers(0, 2, n)


little_memory = {"kernel": ["rbf"], "C": [1.0], "cache_size": [1.0, 4.0]}
hard(**little_memory, n=[900])(without_rule)
hard(**little_memory, n=[3200], gamma=[1.0], quick=False)(without_rule)


@hard(
    offset=[0.0, 1e9],
    kernel=["poly"],
    C=[25.0],
    gamma=[3.0],
    max_iter=[5],
    ends="certified or stalled or max_iter",
)
def kernels_that_float32_cannot_hold(offset):
    """Of rank one in float64, with negative eigenvalues in float32; or above its numbers."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(1200) < 0.3, rng.standard_normal(1200), 0.0) + offset
    return x[:, None], rng.integers(0, 2, 1200)


@hard(kernel=["rbf"], C=[100.0], loss=["hinge"])
def what_float32_has_rounded():
    """Scores of rounds are taken from float64 after the first bounds: 1e-5 was left without."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 6))
    scores = X @ rng.standard_normal((6, 10)) + rng.standard_normal((600, 10))
    return X, scores.argmax(axis=1)


@hard(k=[2], loss=LOSSES, gamma=[1e-8], kernel=["rbf"], C=[1e3], tol=[1e-5])
@hard(
    k=[2, 5],
    loss=LOSSES,
    gamma=[1e-10],
    kernel=["rbf"],
    C=[1e3],
    tol=[1e-5],
    quick=False,
)
def values_that_are_1_in_float32(k):
    """But for rounding: some have no best weights, and rounds that diverge end elsewhere."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((600, 4)), np.arange(600) % k


@hard.each
def test_hard_data(data, estimator, ends, exact):
    X, y = data()
    clf = certified(estimator, X, y, ends=ends, exact=exact)
    assert np.isfinite(clf.decision_function(X)).all()


def test_bounds_of_other_examples_are_not_taken_over(rng):
    """Examples that differ little may be told apart by nothing but what is computed anew."""
    X, y = overlapping(rng, n=500)
    X += 1.5 * y[:, None]
    clf = MaxMarginClassifier(C=1.0, kernel="rbf", gamma=0.5, warm_start=True).fit(X, y)
    certified(clf, X + 1e-4 * rng.standard_normal(X.shape), y)
    with pytest.raises(ValueError, match="other classes, intervals or values"):
        clf.fit(3.0 * X, y)


def classes(seed, n=30, k=3, d=2, apart=1.5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.standard_normal((n, d)) + apart * rng.standard_normal((k, d))[y], y


def worst_values(clf, X, y):
    """For each example, the least difference of its own decision value to another."""
    F = clf.decision_function(X)
    own = np.arange(len(y)), y
    others = F.copy()
    others[own] = -np.inf
    return F[own] - others.max(axis=1)


def best_mean(X, y, caps, balanced):
    """The least norm of weighted rows, no example above its cap, by SLSQP: it shares no code."""
    A, B, unit = explicit_rows(X, y)
    ones = np.column_stack([np.ones(len(B)), B[:, :-1] if balanced else B[:, :0]])
    of_example = np.repeat(np.eye(len(y)), y.max(), axis=0)
    mass = np.eye(1, ones.shape[1])[0]  # 1, and 0 of each balance
    conditions = (
        LinearConstraint(ones.T, mass, mass),
        LinearConstraint(of_example.T, 0.0, caps),
    )

    def objective(q):
        return 0.5 * np.sum((q @ A) ** 2), A @ (q @ A)

    start, options = np.full(len(A), 1.0 / len(A)), {"ftol": 1e-15, "maxiter": 1000}
    bounds = [(0.0, None)] * len(A)
    found = minimize(
        objective,
        start,
        (),
        "SLSQP",
        True,
        bounds=bounds,
        constraints=conditions,
        options=options,
    )
    return float(np.linalg.norm(found.x @ A)) * unit


@pairwise(
    of={f"{k}-{seed}": (seed, k) for seed, k in [(0, 3), (1, 3), (2, 5), (3, 5)]},
    balanced=[True, False],
    mu=[0.003, 0.3, 5.0, 1e6],
)
def test_the_response_is_the_best_one(of, balanced, mu):
    seed, k = of
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(k), rng.integers(0, k, 50)]
    weights = None if seed % 2 else rng.integers(1, 4, len(codes)).astype(float)
    rows = make_rows(codes, k, balanced=balanced, weights=weights)
    caps = share_caps(rows, 0.5)
    margins = rows.margins(rng.standard_normal((len(codes), k)))
    found = softmax.below(caps).respond(rows, margins, mu)
    q, own = found.q, np.isinf(margins)
    of_example, prior = q.sum(axis=1), np.broadcast_to(rows.prior, q.shape)
    assert np.all(q >= 0.0)
    assert np.all(of_example <= caps * (1 + 1e-12))
    assert np.isclose(q.sum(), 1.0, rtol=1e-12)
    assert imbalance(rows, q) <= 1e-11
    # a convex objective is least where its slopes are equal on all rows of an example and on all
    # examples below their caps, and no larger on those at their caps
    shift = found.offsets[codes][:, None] - found.offsets if balanced else 0.0
    slope = np.where(
        own | (q < 1e-200), np.nan, margins + shift + mu * np.log(q / prior + 1e-300)
    )
    seen = ~np.isnan(slope).all(axis=1)
    slope, far = slope[seen], 1e-9 * max(mu, 1.0)
    assert np.all(np.nanmax(slope, axis=1) - np.nanmin(slope, axis=1) <= far)
    of_rows, free = np.nanmax(slope, axis=1), (of_example < caps * (1 - 1e-12))[seen]
    if free.any():
        assert np.ptp(of_rows[free]) <= far
        assert np.all(of_rows <= of_rows[free].max() + far)
    value = np.where(own, 0.0, q * np.where(own, 0.0, margins)).sum() / mu
    value += xlogy(q, q / prior).sum()
    assert np.isclose(-found.log_risk, value, rtol=1e-9, atol=1e-9)


def test_with_a_small_share_it_is_the_softmax():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 60)
    for balanced in (True, False):
        rows = make_rows(codes, 4, balanced=balanced)
        margins = rows.margins(rng.standard_normal((60, 4)))
        caps = share_caps(rows, 1e-9)
        one, other = (
            s.respond(rows, margins, 0.2) for s in (softmax.below(caps), softmax)
        )
        assert np.allclose(one.q, other.q, rtol=1e-9)
        for name in ("offsets", "log_risk", "gradient_mass"):
            assert np.allclose(
                getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12
            )


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(("nu", "k"), [(0.6, 3), slow(1.0, 3), slow(1.0, 4)])
def test_fits_bracket_the_best_mean(nu, k, balanced):
    X, y = classes(0, n=10 * k, k=k, apart=2.5)
    m = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    best = best_mean(X, y, m / (nu * m.sum()), balanced)
    for cls in (MomentumMarginClassifier, OptimisticPerceptron, AcceleratedPerceptron):
        clf = cls(nu=nu, tol=1e-2, max_iter=300, fit_intercept=balanced)
        ends = ("certified", *["max_iter"] * (cls is OptimisticPerceptron))
        certified(clf, X, y, m, ends=ends, exact=True)
        assert clf.margin_ <= best * (1 + 1e-6)
        assert clf.margin_bound_ >= best * (1 - 1e-6)
        own = worst_mean(worst_values(clf, X, y), nu, m) / np.linalg.norm(clf.coef_)
        assert np.isclose(clf.margin_, own, rtol=1e-8)


def test_false_claims_are_refused():
    X, y = classes(3, n=60, apart=2.5)
    clf = certified(MomentumMarginClassifier(nu=0.4, tol=1e-2), X, y)
    refused(clf, "predictor's margin", X, y, margin=clf.margin_ * 1.001)
    refused(clf, "the weights prove", X, y, margin_bound=clf.margin_bound_ * 0.999)
    q = clf.certificate_.weights.toarray()
    # above the cap of an example, though no row alone is
    q[np.argsort(-q.sum(axis=1))[:3]] *= 3.0
    refused(clf, "the weights prove", X, y, weights=sp.csr_array(q / q.sum()))


def test_a_share_that_a_large_class_leaves_no_room_for():
    X, y = (
        np.random.default_rng(0).standard_normal((20, 2)),
        np.repeat([0, 1, 2], [14, 3, 3]),
    )
    message = r"all but the largest are 0\.3 of all examples.*nu <= 0\.6,"
    with pytest.raises(ValueError, match=message):
        MomentumMarginClassifier(nu=0.61).fit(X, y)
    clf = MomentumMarginClassifier(nu=0.6, tol=1e-2, max_iter=20)
    confirmed(fit(clf, X, y), X, y, exact=True)


def objective(clf, X, y, C, weight=1.0):
    slack = np.maximum(0.0, 1.0 - worst_values(clf, X, y))
    return 0.5 * np.sum(clf.coef_**2) + C * np.sum(weight * slack)


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("intercept", [False, True])
def test_it_is_the_problem_of_crammer_and_singer(k, C, intercept, rng):
    """With weights and an intercept, the best value is that of test_solvers.py."""
    X, y = classes(k, n=12 * k, k=k, d=3)
    weight = rng.integers(1, 4, len(y)).astype(float) if intercept else np.ones(len(y))
    clf = certified(hinge(C, fit_intercept=intercept), X, y, weight, exact=True)
    own = objective(clf, X, y, C, weight)
    assert np.isclose(clf.margin_, 1.0 / np.sqrt(2.0 * own), rtol=1e-7)
    if C <= 10.0 and not intercept:  # beyond, LinearSVC does not come near
        params = {"multi_class": "crammer_singer", "fit_intercept": False}
        peer = fit(LinearSVC(C=C, tol=1e-10, max_iter=10**6, **params), X, y)
        best = objective(peer, X, y, C)
        assert own <= best * (1 + 1e-6)
        assert clf.margin_bound_ >= (1 - 1e-9) / np.sqrt(2.0 * best)


def test_it_goes_on_from_two_classes():
    """Two classes are k = 2 with C / 2: a third class, which is out of reach, costs nothing."""
    (X, y), C = classes(0, n=40, k=2), 0.7
    two = hinge(2.0 * C).fit(X, y)
    far = (
        np.column_stack([np.r_[X, [[0.0, 0.0]]], 1e5 * (np.arange(41) == 40)]),
        np.r_[y, 2],
    )
    three = fit(hinge(C), *far)
    # w_0 - w_1 is the predictor of two classes; its squared length is twice that of both
    assert np.isclose(objective(three, *far, C), 0.5 * 0.5 / two.margin_**2, rtol=1e-3)


def test_attributes():
    X, y = classes(2, n=45)
    clf = hinge(0.5).fit(X, y)
    of_examples = clf.certificate_.weights.toarray().sum(axis=1)
    assert np.isclose(clf.nu_, 1.0 / (len(y) * of_examples.max()), rtol=1e-9)
    assert clf.dual_coef_.shape == (3, len(clf.support_))
    assert np.allclose(clf.dual_coef_ @ X[clf.support_], clf.coef_, atol=2e-3)


@pytest.mark.parametrize(
    ("n", "d", "C", "gamma"), [(45, 2, 0.5, 0.5), (300, 3, 1e4, "scale")]
)
def test_kernels_of_classes_that_overlap(n, d, C, gamma):
    X, y = classes(0, n=n, d=d, apart=1.0)
    clf = certified(hinge(C, kernel="rbf", gamma=gamma), X, y)
    assert np.isin(
        np.flatnonzero(clf.certificate_.weights.sum(axis=1)), clf.support_
    ).all()


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("form", [sp.csr_matrix, np.asarray], ids=["sparse", "dense"])
def test_an_empty_example_does_not_slow_coordinate_descent(rng, k, form):
    y = rng.integers(0, k, 800)
    X = sp.random_array((800, 1500), density=0.02, rng=rng).toarray()
    X[np.arange(800), y] += 0.3
    emptied = X.copy()
    emptied[7] = 0.0
    full, empty = (
        fit(hinge(0.1, fit_intercept=False), form(A), y) for A in (X, emptied)
    )
    assert empty.status_ == "certified"
    assert empty.n_iter_ <= full.n_iter_ + 2


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_without_slack_the_solution_is_that_of_every_larger_cost(k, kernel, rng):
    """It is published for them, with their own bounds, and no solver begins anew."""
    y = np.arange(90) % k
    X = rng.standard_normal((90, 4)) + 8.0 * np.eye(4)[y]
    clf = MaxMarginClassifier(loss="hinge", kernel=kernel, warm_start=True)
    found = []
    for C in (1e2, 1e4, 1e6, 1e8):
        clf.set_params(C=C).fit(X, y)
        assert clf.status_ == "certified"
        assert check_certificate(clf, X, y), C
        found.append((clf.margin_, clf.n_iter_))
    margins, n_iter = zip(*found, strict=True)
    np.testing.assert_allclose(margins, margins[0], rtol=2e-6)
    assert n_iter[1:] == (1, 1, 1)


@pytest.mark.parametrize("intercept", [True, False])
def test_equal_examples_of_both_classes_end_at_the_bound(intercept, rng):
    """An epoch of coordinate descent takes their alpha a step of 1 nearer to C."""
    X = normalize(sp.random_array((400, 3000), density=0.01, format="csr", rng=rng))
    y = rng.integers(0, 2, 400)
    X, y = sp.vstack([X, X[:20]], format="csr"), np.append(y, 1 - y[:20])
    clf = MaxMarginClassifier(loss="hinge", C=1e5, fit_intercept=intercept).fit(X, y)
    assert clf.status_ == "certified"
    assert clf.n_iter_ <= 10  # 80 to 125 without regard to them
    assert np.count_nonzero(np.abs(clf.dual_coef_) >= 1e5 * (1.0 - 1e-9)) >= 20


def test_equal_examples_of_both_classes_take_few_iterations(rng):
    """Their alpha is C in the end, however large C is: pairs, and three with two of one class."""
    X = sp.random_array((1000, 15_000), density=0.002, rng=rng, format="csr")
    y = np.where(X @ rng.standard_normal(15_000) > 0.0, 1, 0)
    X = sp.vstack([X, X[:8], X[:3]], format="csr")
    y = np.concatenate([y, 1 - y[:8], y[:3]])
    clf = MaxMarginClassifier(C=1e3, loss="hinge", fit_intercept=False).fit(X, y)
    assert clf.status_ == "certified"
    assert clf.n_iter_ <= 10
