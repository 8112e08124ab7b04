"""Soft margins with kernels by pairs of weights on columns in float32, and their bounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import fit, overlapping, problem_of
from helpers.pairwise import pairwise
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginsvm import MaxMarginClassifier, check_certificate
from marginsvm._rounding import UNIT, Extended
from marginsvm.algorithms.compiled.classes import ascend_classes
from marginsvm.algorithms.exact.candidates import relative_gap
from marginsvm.algorithms.exact.climb_of_classes import ClimbOfClasses
from marginsvm.algorithms.exact.pairs import OneByOne, Pairs, dual_of
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.certify.bounds import lower_bound
from marginsvm.certify.own_slack import with_least_slack
from marginsvm.estimator import kernel_function
from marginsvm.estimator.kernel_function import KernelFunction
from marginsvm.kernel_matrix.responses.balancing import balanced
from marginsvm.kernel_matrix.single import Formula, PreparedSingle

pytestmark = pytest.mark.usefixtures("as_within_a_fit")


def rbf_problem(X, y, weight=None, **params):
    clf = MaxMarginClassifier(**{"C": 1.0, "kernel": "rbf", **params})
    return problem_of(clf, X, y, weight)


def begun(problem):
    return (Pairs if problem.rows.n_classes == 2 else OneByOne).start(problem)


def climbed(problem, tol=1e-4):
    start = begun(problem)
    climb = start.climb(dual_of(problem), start.u, start.f, start.work)
    climb.run(tol)
    return climb


def several(rng, n=600, k=4):
    """Overlapping classes of different sizes."""
    y = rng.choice(k, n, p=np.arange(1, k + 1) / sum(range(1, k + 1)))
    return rng.standard_normal((n, 5)) + 1.5 * rng.standard_normal((k, 5))[y], y


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("form", ["plain", "far", "dates", "float32", "sparse"])
def test_gaussian_kernels_in_float32_have_the_error_that_is_said(form, spread, rng):
    X = spread * rng.standard_normal((200, 30))
    X += {"far": 1e4, "dates": 1.6e9}.get(form, 0.0)
    X = X.astype(np.float32) if form == "float32" else X
    X = sp.csr_matrix(X * (rng.random(X.shape) < 0.3)) if form == "sparse" else X
    prepared, some = PreparedSingle(Formula(0.05), X), np.arange(0, 200, 3)
    found = np.empty((len(some), 200), np.float32)
    prepared.columns(some, found)
    values = KernelFunction("rbf", 0.05, 3, 0.0, {})(X[some], X).astype(np.float64)
    off = np.abs(found - values) - 1e-37
    assert np.all(off <= prepared.error(some) * found)
    assert spread > 1.0 or prepared.error(some).max() < 1e-3


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_polynomials_in_float32(degree, sparse, rng):
    X = rng.standard_normal((100, 7))
    X = sp.csr_matrix(X * (rng.random(X.shape) < 0.5)) if sparse else X
    prepared = PreparedSingle(Formula.named("poly", 0.2, degree, 1.0), X)
    found = np.empty((5, 100), np.float32)
    prepared.columns(np.arange(5), found)
    values = pairwise_kernels(X[:5], X, metric="poly", gamma=0.2, degree=degree, coef0=1.0)
    np.testing.assert_allclose(found, values, atol=1e-4)
    assert np.isinf(prepared.error(np.arange(5))).all()  # nothing is said
    assert Formula.named("poly", 0.2, 2.5, 1.0) is None


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("data", [overlapping, several])
def test_margins_that_are_not_computed_in_float64_are_below_what_they_are(data, loss, C, rng):
    X, y = data(rng, n=600)
    problem = rbf_problem(X, y, C=C, loss=loss)
    evaluations = problem.work.kernel_evaluations
    separator = begun(problem).proved(problem, climbed(problem), 0.0)[0]
    assert problem.work.kernel_evaluations > evaluations
    exact = problem.margins(problem.refresh(separator.vector), precise=True)
    rounding = 1e-12 * np.abs(exact[np.isfinite(exact)]).max()
    assert np.all(separator.margins <= exact + rounding)
    assert np.any(separator.margins < exact - 1e-9)  # of some rows, float32 says enough


@pairwise(
    loss=["hinge", "squared_hinge"],
    C=[0.1, 100.0],
    kernel=["rbf", "poly", "precomputed", "callable"],
    fit_intercept=[True, False],
    kind=["plain", "weights", "duplicates", "float32"],
)
def test_certified_fits(loss, C, kernel, fit_intercept, kind, rng):
    X, y = overlapping(rng, n=700)
    if kind == "duplicates":
        X[350:] = X[:350]
    X = X.astype(np.float32) if kind == "float32" else X
    weight = rng.uniform(0.2, 3.0, len(y)) if kind == "weights" else None
    params = {"C": C, "loss": loss, "fit_intercept": fit_intercept, "tol": 1e-4}
    params["kernel"] = rbf_kernel if kernel == "callable" else kernel
    data = rbf_kernel(X) if kernel == "precomputed" else X
    clf = fit(MaxMarginClassifier(**params), data, y, sample_weight=weight)
    assert clf.status_ == "certified" or kind == "float32"  # whose kernel values are rounded
    assert check_certificate(clf, data, y, sample_weight=weight)
    if loss == "hinge" and fit_intercept and kernel == "rbf" and kind != "weights":
        peer = SVC(C=C, tol=1e-6).fit(X, y)
        v, K = peer.dual_coef_[0], rbf_kernel(peer.support_vectors_, gamma=peer._gamma)
        dual = np.abs(v).sum() - 0.5 * v @ K @ v
        assert clf.margin_ <= (1.0 + 1e-4) / np.sqrt(2.0 * dual)
        assert clf.margin_bound_ >= (1.0 - 1e-4) / np.sqrt(2.0 * dual)


@pairwise(
    loss=["hinge", "squared_hinge"],
    C=[0.1, 100.0],
    kernel=["rbf", "poly", "precomputed", "callable"],
    fit_intercept=[True, False],
    kind=["plain", "weights", "duplicates"],
    k=[3, 6],
)
def test_certified_fits_of_several_classes(loss, C, kernel, fit_intercept, kind, k, rng):
    X, y = several(rng, k=k)
    if kind == "duplicates":
        X[300:] = X[:300]
    weight = rng.uniform(0.2, 3.0, len(y)) if kind == "weights" else None
    params = {"C": C, "loss": loss, "fit_intercept": fit_intercept, "tol": 1e-3}
    params["kernel"] = rbf_kernel if kernel == "callable" else kernel
    data = rbf_kernel(X) if kernel == "precomputed" else X
    clf = fit(MaxMarginClassifier(**params), data, y, sample_weight=weight)
    assert clf.status_ == "certified" or kernel == "poly"
    assert check_certificate(clf, data, y, sample_weight=weight)
    if k == 3 and clf.status_ == "certified":
        other = MaxMarginClassifier(**params)  # interior points, or Newton's method
        other._portfolio = Portfolio(compiled=False)
        other.fit(data, y, sample_weight=weight)
        assert clf.margin_ <= other.margin_bound_ * (1.0 + 1e-9)
        assert clf.margin_bound_ >= other.margin_ * (1.0 - 1e-9)


def test_the_weights_of_one_example_are_the_best(rng):
    """No change of two of them, or of one, would prove more."""
    for trial in range(50):
        k, cap, slack = 5, [np.inf, 0.7][trial % 2], [0.3, 0.0][trial % 2]
        F, K, own = rng.standard_normal((k, 1)), np.ones((1, 1), np.float32), np.zeros(1, int)
        u, f, none = np.zeros((1, k)), F.copy(), np.zeros(k)
        caps, slacks = np.full(1, cap), np.full(1, slack)
        ascend_classes(K, np.zeros(1), own, caps, slacks, 0.0, 1e-9, 100, u, f, none, none.copy())

        def value(v, F=F, slack=slack):
            V = np.append(v[1:].sum(), -v[1:]) * np.sqrt(0.5)
            return v.sum() - V @ F[:, 0] - 0.5 * V @ V - 0.5 * slack * v @ v

        best = value(u[0])
        assert u[0].sum() <= cap + 1e-9
        for i in range(1, k):
            for j in range(k):  # from one to another, or to none
                for t in (1e-4, -1e-4):
                    v = u[0].copy()
                    v[i] += t
                    v[j] -= t if j else 0.0
                    if v.min() >= 0.0 and v.sum() <= cap:
                        assert value(v) <= best + 1e-9


def ascended(K, y, k, cap):
    """Weights, scores and intercepts, and how many steps these took."""
    n, mean = len(y), K.mean(axis=0, dtype=float)
    u, f, b, excess = np.zeros((n, k)), np.zeros((k, n)), np.zeros(k), np.zeros(k)
    price = 0.05 * float(np.diagonal(K).mean() - mean.mean()) + 1.0 / (0.03 * n * cap)
    caps, none = np.full(n, cap), np.zeros(n)
    steps, off = ascend_classes(K, mean, y, caps, none, price, 1e-4, 10**5, u, f, b, excess)
    assert off <= 1e-4
    assert np.abs(excess).max() <= 1e-4 / price
    return u, f, b, excess, steps


@pytest.mark.parametrize("k", [3, 6])
@pytest.mark.parametrize("cap", [0.01, 0.1, 100.0])
def test_classes_without_slack_come_into_balance(k, cap, rng):
    """Intercepts that only follow the balance after each pass would oscillate."""
    X, y = several(rng, n=300, k=k)
    K, n = rbf_kernel(X, gamma=0.2).astype(np.float32), len(y)
    u, f, b, excess, _ = ascended(K, y, k, cap)
    V = -np.sqrt(0.5) * u
    V[np.arange(n), y] = np.sqrt(0.5) * u.sum(axis=1)
    np.testing.assert_allclose(V.sum(axis=0), excess, atol=1e-9 * n * cap)
    np.testing.assert_allclose(f, (K.astype(float) @ V).T, atol=1e-9 * max(1.0, u.sum()))
    scores = f.T + b
    short = 1.0 - np.sqrt(0.5) * (scores[np.arange(n), y][:, None] - scores)
    short[np.arange(n), y] = 0.0
    slack = cap * np.maximum(short.max(axis=1), 0.0).sum()
    assert abs(float(np.vdot(V.T, f)) + slack - u.sum()) <= 1e-3 * u.sum()  # both objectives


def test_a_constant_in_the_kernel_makes_no_steps_shorter(rng):
    X, y = several(rng, n=300, k=3)
    K = rbf_kernel(X, gamma=0.2)
    steps = [ascended((K + more).astype(np.float32), y, 3, 1.0)[-1] for more in (0.0, 20.0)]
    assert steps[1] <= 1.5 * steps[0]


@pytest.mark.parametrize("C", [1e-3, 15.0])
def test_nearly_constant_kernels_of_several_classes_are_certified(C, rng):
    """Raw units: most of the kernel is a constant, which balanced weights do not see."""
    X = rng.standard_normal((600, 16)) * np.logspace(-3, 3, 16)
    scores = X @ rng.standard_normal((16, 6)) / X.std() + rng.standard_normal((600, 6))
    y, gamma = scores.argmax(axis=1), 1.0 / (16 * X.std())
    clf = fit(
        MaxMarginClassifier(C=C, loss="hinge", kernel="laplacian", gamma=gamma, tol=1e-4), X, y
    )
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize(("gamma", "C"), [(1e-5, 10.0), (1e-4, 1.0), (1.5625e-4, 0.5)])
def test_intercepts_do_not_run_away(gamma, C):
    """Nearly all weights are at their caps, and jump between them as intercepts move."""
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    train = [*StratifiedKFold(5).split(X, y)][3][0]
    clf = MaxMarginClassifier(kernel="rbf", gamma=gamma, C=C, loss="hinge", tol=1e-3)
    assert fit(clf, X[train], y[train]).status_ == "certified"


def test_weights_are_balanced_by_small_changes(rng):
    X, y = several(rng)
    problem = rbf_problem(X, y, loss="hinge")
    climb = climbed(problem, tol=1e-2)
    assert isinstance(climb, ClimbOfClasses)
    before = climb.u.copy()
    assert np.abs(climb._excess()).max() > 1e-9
    climb.u = balanced(problem.rows, climb.u)
    assert np.abs(climb._excess()).max() < 1e-10
    np.testing.assert_allclose(climb.u, before, rtol=0.05)


def test_bounds_have_the_best_intercepts_of_balanced_weights(rng):
    X, y = several(rng)
    problem = rbf_problem(X, y)
    climb = climbed(problem)
    climb.b = climb.b + 0.1 * rng.standard_normal(4)
    assert relative_gap(problem, begun(problem).proved(problem, climb, 1e-4)) <= 1e-4


def test_predictors_keep_the_intercepts_of_their_bounds(rng):
    """The intercept at which the worst example is best costs as much slack as that one is off."""
    X, y = several(rng)
    problem = rbf_problem(X, y, C=10.0)
    separator = begun(problem).proved(problem, climbed(problem, tol=3e-2), 1e-4)[0]
    published = lower_bound(problem, separator.vector, separator.offsets, separator.margins)
    assert published.margin == pytest.approx(1.0 / separator.norm, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_columns_that_are_dropped_are_computed_again(loss, rng):
    X, y = overlapping(rng, n=900)
    whole = climbed(rbf_problem(X, y, loss=loss))
    part = climbed(rbf_problem(X, y, loss=loss, cache_size=2.0))
    few = np.count_nonzero(whole.u)
    assert (part.columns.room, part.columns.side) == (226, 400) < (few - 400, few - 400)
    assert part.columns.nbytes <= 2.0 * 2**20
    assert whole.gap <= 1e-4
    assert part.gap <= 1e-4
    # predictors of these gaps are 2 sqrt(2 gap) of their norm apart at most, and rows are no longer
    # than the radius
    norm = np.sqrt(2.0 * whole.u.sum())
    assert np.abs(part.f - whole.f).max() <= 2.0 * np.sqrt(2.0 * 1e-4) * norm


def test_values_of_a_working_set_are_those_of_its_examples(rng):
    X, y = overlapping(rng, n=700)
    columns = rbf_problem(X, y, cache_size=3.0).single
    assert columns.room < 600
    K = rbf_kernel(X, gamma=1.0 / (X.shape[1] * X.var()))
    first, kept = rng.permutation(700)[:300], np.arange(0, 300, 2)
    for examples in (first, first[kept], np.r_[first[kept], first[1::2]], first[::-1], first[:9]):
        found = columns.among(examples, 2.0, 1.0)
        np.testing.assert_allclose(found, 2.0 * K[np.ix_(examples, examples)] + 1.0, rtol=1e-5)


def test_memory_is_for_one_kind_of_columns_at_a_time(rng):
    X, y = overlapping(rng, n=700)
    some = np.arange(600)
    for cache_size in (3.0, 4.5):  # too little for columns in float64, and enough
        values = rbf_problem(X, y, cache_size=cache_size)._values
        values.single.among(some[:300], 1.0, 0.0)
        assert values.single.nbytes > 1e6
        values.values(some, some)
        assert values._single.nbytes == 0
        assert (values._kept.nbytes > 0) == (cache_size == 4.5)


def test_a_support_that_outgrows_its_memory_is_told(rng):
    X, y = overlapping(rng, n=3200)
    y = rng.permutation(y)  # nothing to be learnt: all have slack
    model = {"C": 1.0, "kernel": "rbf", "gamma": 1.0, "loss": "squared_hinge"}
    clf = MaxMarginClassifier(**model, cache_size=4.0, tol=1e-11)
    with pytest.warns(ConvergenceWarning, match=r"cache_size=4 MB holds the kernel values of 512"):
        clf.fit(X, y)
    assert clf.status_ == "stalled"
    assert clf.margin_ <= clf.margin_bound_


def test_memory_that_does_not_hold_a_beginning_is_refused(rng):
    X, y = overlapping(rng, n=900)
    with pytest.raises(ValueError, match=r"cache_size=1 MB does not hold 128 kernel columns"):
        MaxMarginClassifier(C=1.0, kernel="rbf", cache_size=1.0).fit(X, y)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_examples_are_converted_in_parts(offset, rng, monkeypatch):
    X = (rng.standard_normal((900, 40)) + offset).astype(np.float32)
    kernel = KernelFunction("rbf", 0.05, 3, 0.0, {}, widens=True)
    whole = kernel(X, X[:300])
    monkeypatch.setattr("marginsvm.estimator.kernel_function._CONVERTED", 128 * 40)
    sizes, original = [], kernel_function.pairwise_kernels

    def seen(A, B, **params):
        sizes.append(max(len(A), len(B)))
        return original(A, B, **params)

    monkeypatch.setattr(kernel_function, "pairwise_kernels", seen)
    np.testing.assert_allclose(kernel(X, X[:300]), whole, rtol=1e-12)
    assert max(sizes) == 128


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_slack_is_no_more_than_a_predictor_needs(C, rng):
    margins, s, length = rng.uniform(-1.0, 2.0, 50), np.full(50, 0.5 / C), 1.3

    def objective(t):
        return 0.5 * (t * length) ** 2 + np.sum(np.maximum(1.0 - t * margins, 0.0) ** 2 / (2.0 * s))

    best = minimize_scalar(objective, bounds=(1e-6, 100.0), method="bounded").fun
    bound, common = with_least_slack(length, margins, s)
    assert bound == pytest.approx(1.0 / np.sqrt(2.0 * best), rel=1e-6)
    assert bound <= 1.0 / np.sqrt(2.0 * objective(1.0 / common))


def test_bounds_of_other_examples_are_not_taken_over(rng):
    """Examples that differ little may be told apart by nothing but what is computed anew."""
    X, y = overlapping(rng, n=500)
    X += 1.5 * y[:, None]
    params = {"C": 1.0, "kernel": "rbf", "gamma": 0.5, "warm_start": True, "tol": 1e-6}
    clf = MaxMarginClassifier(**params).fit(X, y)
    other = X + 1e-4 * rng.standard_normal(X.shape)
    assert check_certificate(clf.fit(other, y), other, y)
    with pytest.raises(ValueError, match="other classes, intervals or values"):
        clf.fit(3.0 * X, y)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_kernels_that_float32_cannot_hold_end(k, offset, rng):
    """Of rank one in float64, with negative eigenvalues in float32; or above its numbers."""
    x = np.where(rng.random(1200) < 0.3, rng.standard_normal(1200), 0.0) + offset
    X, y = x[:, None], rng.integers(0, k, 1200)
    clf = fit(MaxMarginClassifier(kernel="poly", C=25.0, gamma=3.0, max_iter=5), X, y)
    assert clf.status_ in ("certified", "stalled", "max_iter")
    assert np.isfinite(clf.decision_function(X)).all()
    assert check_certificate(clf, X, y)


def test_rounds_mend_what_float32_has_rounded(rng):
    """Their scores are taken from float64 after the first bounds: 1e-5 was left without."""
    X = rng.standard_normal((600, 6))
    scores = X @ rng.standard_normal((6, 10)) + rng.standard_normal((600, 10))
    y = scores.argmax(axis=1)
    clf = MaxMarginClassifier(kernel="rbf", C=100.0, loss="hinge").fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y).valid


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("gamma", [1e-8, 1e-10])
def test_rounds_that_diverge_leave_a_fit_to_other_methods(k, loss, gamma, rng):
    """In float32 all values of the kernel are 1, but for rounding: some have no best weights."""
    X, y = rng.standard_normal((600, 4)), np.arange(600) % k
    C = 1e6 if np.finfo(Extended).eps < UNIT else 1e3  # where the platform has no more digits
    clf = MaxMarginClassifier(C=C, kernel="rbf", gamma=gamma, loss=loss, tol=1e-5).fit(X, y)
    assert clf.status_ == "certified"
    assert check_certificate(clf, X, y)
