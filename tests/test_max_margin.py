"""The exact solver where exactness is hard, against oracles that share no code."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.estimators import MORE_DIGITS, certified, confirmed, fit, separable
from helpers.oracle import best_margin, explicit_rows
from helpers.pairwise import pairwise
from helpers.tables import Table
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginsvm import MaxMarginClassifier, MaxMarginOutlierDetector, MaxMarginRegressor
from marginsvm.solvers import newton, solve

LOSSES = ["hinge", "squared_hinge"]
FORMS = [np.asarray, sp.csr_array]

KINDS = {
    "plain": lambda rng, X: X,
    "one feature": lambda rng, X: X[:, :1],
    "many features": lambda rng, X: np.hstack([X, rng.standard_normal((len(X), 80))]),
    "duplicates": lambda rng, X: X[rng.integers(0, 1 + len(X) // 3, len(X))],
    "zeros": lambda rng, X: X * (rng.random((len(X), 1)) < 0.9),
    "sparse": lambda rng, X: X * (rng.random(X.shape) < 0.2),
    "integers": lambda rng, X: np.round(X),
    "scaled": lambda rng, X: X * 10.0 ** rng.integers(-3, 4, X.shape[1]),
    "low rank": lambda rng, X: X[:, [0, -1]] @ rng.standard_normal((2, X.shape[1])),
}


def problem(kind, seed, k):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(max(4, 2 * k), 60), rng.integers(1, 12)
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    apart = rng.choice([0.0, 1.0, 4.0]) * rng.standard_normal((k, d))
    return KINDS[kind](rng, rng.standard_normal((n, d)) + apart[y]), y


def is_separable(X, y, fit_intercept):
    A, T, _ = explicit_rows(X - fit_intercept * X.mean(axis=0), y)
    M = np.hstack([A / (np.abs(A).max() or 1.0), T[:, : T.shape[1] * fit_intercept]])
    return (
        linprog(np.zeros(M.shape[1]), -M, -np.ones(len(M)), bounds=(None, None)).status
        == 0
    )


@pairwise(kind=list(KINDS), fit_intercept=[True, slow(False)], k=[2, slow(3)])
def test_certified_or_proved_not_separable(kind, fit_intercept, k):
    for seed in range(8):
        X, y = problem(kind, seed, k)
        truth = is_separable(X, y, fit_intercept)
        clf = MaxMarginClassifier(fit_intercept=fit_intercept, max_iter=50)
        certified(clf, X, y, ends=("certified" if truth else "no_margin",))
        # the floats of a product are of low rank up to rounding only, which no proof can leave out
        unknown = kind == "low rank" and not truth and clf.separable_ is None
        assert clf.separable_ is truth or unknown
        if truth:
            assert clf.gap_ <= 1e-6
            if kind != "scaled":
                best = best_margin(X, y, fit_intercept=fit_intercept)
                np.testing.assert_allclose(clf.margin_, best, rtol=1e-5)
        elif kind != "low rank":
            rank = min(X.shape) * (1 if k == 2 else k)
            assert clf.certificate_.weights.nnz <= rank + k


def test_agrees_with_svc(rng):
    for _ in range(5):
        X, y = separable(rng, n=300, d=20, margin=0.1)
        peer = SVC(kernel="linear", C=np.inf, tol=1e-10).fit(X, y)
        clf = MaxMarginClassifier().fit(X, y)
        np.testing.assert_allclose(
            clf.margin_, 1.0 / np.linalg.norm(peer.coef_), rtol=1e-7
        )
        np.testing.assert_allclose(
            clf.coef_, peer.coef_, atol=1e-6 * np.abs(peer.coef_).max()
        )
        np.testing.assert_allclose(clf.intercept_, peer.intercept_, atol=1e-6)
        assert set(clf.support_) == set(peer.support_)


REAL = [
    "golub_leukemia",
    "colon_alon",
    "arcene",
    "musk1",
    "sonar",
    "mushrooms",
    "tng_basehock",
]
REAL += ["rcv1_ccat_small", "usps 0 1", "usps 3 5", "mnist 0 1"]


def real_set(z, *pair):
    if "indptr" in z:
        X = sp.csr_matrix(
            (z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])
        )
        return X.astype(float), z["y"]
    X, y = (z[name] if name in z else z[f"{name}_train"] for name in "Xy")
    keep = np.isin(y, [int(c) for c in pair]) if pair else slice(None)
    return X[keep].astype(float), y[keep]


@pytest.mark.slow
@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_real_sets_are_certified(name, standardised, shared_data):
    name, *pair = name.split()
    X, y = real_set(shared_data(name), *pair)
    if standardised:
        X = StandardScaler(with_mean=not sp.issparse(X)).fit_transform(X)
    assert certified(MaxMarginClassifier(), X, y).gap_ <= 1e-6


def classes(seed, n=40, d=3, k=2, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    return np.round(
        rng.standard_normal((n, d)) + shift * rng.standard_normal((k, d))[y], 2
    ), y


hard = Table(MaxMarginClassifier)


@hard(margin=[1e-5, 1e-7, 1e-9] if MORE_DIGITS else [1e-5, 1e-7])
def a_tiny_margin(margin):
    X = np.random.default_rng(0).standard_normal((200, 3))
    X /= np.linalg.norm(X, axis=1).max()
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y, 1, -1) * margin - X[:, 0] * 0.999999999 * (
        np.abs(X[:, 0]) < 1e-1
    )
    return X, y


@hard()
def features_in_other_units():
    rng = np.random.default_rng(0)
    X, y = (
        rng.standard_normal((100, 4)) * [1e-8, 1.0, 1e4, 1e8],
        rng.integers(0, 2, 100),
    )
    X[:, 3] += 6e8 * y
    return X, y


@hard(C=[1.0])
def many_features():
    """Newton takes cheap steps."""
    X, y = make_classification(900, 260, n_informative=30, random_state=0)
    return X.astype(np.float32), y


@hard(seed=[0, 1], C=[1e4, 1e6], max_iter=[60])
def nearly_as_many_features_as_examples(seed):
    """They are nearly separable: Newton's steps are short, and it hands over."""
    rng = np.random.default_rng(seed)
    return sp.random_array((600, 500), density=0.02, rng=rng), rng.integers(0, 2, 600)


@hard(C=[100.0, 1000.0], max_iter=[60])
def clouds_that_a_large_cost_separates():
    """The first step leaves no row with slack, and none of the next may creep back."""
    rng, y = np.random.default_rng(0), np.arange(1200) % 20
    means = 2.0 * rng.standard_normal((20, 40))
    return means[y] + rng.standard_normal((1200, 40)), y


@hard(k=[2, 3], shift=[0.0, 1000.0], form=FORMS, ends="no_margin")
def more_rows_alike_than_a_corral_has_room_for(k, shift):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((567, 5)) * (rng.random((567, 5)) < 0.05) + shift
    return X, rng.integers(0, k, 567)


@hard(
    C=[np.inf, 1.0, 1e4],
    fit_intercept=[True, False],
    nnz_per_row=[0, 0.5, 5],
    ends=lambda C, **_: "no_margin" if np.isinf(C) else "certified",
)
def zero_rows_of_long_sparse_data(nnz_per_row):
    """And rows that are alike, with opposite labels."""
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 500), density=nnz_per_row / 500, format="csr", rng=rng)
    X.data[:] = 1.0
    return X, rng.integers(0, 2, 600)


@hard(C=[100.0, 1e4, 1e8], tol=[1e-2, 1e-6], fit_intercept=[True, False])
def long_rows():
    """Slack of the size of the gap would cost more than the predictor: a longer one needs none."""
    X = sp.random_array(
        (600, 3000), density=0.01, format="csr", rng=np.random.default_rng(0)
    )
    return X, np.arange(600) % 2


# Where the platform has no more digits, a smaller C has as few left.
@hard(exact=True, C=[50.0 if MORE_DIGITS else 1.0])
def many_examples_far_from_the_origin():
    """Sums over examples about their mean lose no digits to it, however many they are."""
    rng = np.random.default_rng(2)
    return 1e9 + 1e6 * rng.standard_normal((1000, 100)), rng.integers(0, 2, 1000)


@hard(
    exact=True,
    k=[2, 3, 7],
    shape=[(60, 100, 1e8), (80, 120, 3e7)],
    loss=LOSSES,
    C=[10.0],
    ends=lambda k, **_: "certified" if k == 2 else "certified or stalled",
)
def means_far_from_0(k, shape):
    """Intercepts of 1e9 lose 7 of 16 digits, but what the published numbers prove has them all."""
    (n, d, far), rng = shape, np.random.default_rng(k)
    return rng.standard_normal((n, d)) + far * rng.standard_normal(d), np.arange(n) % k


@hard(k=[2, 3], C=[10.0 if MORE_DIGITS else 1e-6], tol=[1e-3], fit_intercept=[False])
def weights_that_cancel(k):
    """In units of 1e9, many make up a predictor that is nothing beside their last digits."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 80))
    y = (
        X @ rng.standard_normal((80, k)) + 9.0 * rng.standard_normal((6000, k))
    ).argmax(axis=1)
    return 1e9 * X, y


def dummies(rng, n, *numbers):
    return [np.eye(most)[rng.integers(0, most, n)] for most in numbers]


@hard(
    size=[(20, 2), (40, 5), (1500, 2), (1500, 3)],
    loss=LOSSES,
    C=[1e-9, 0.01, 100.0],
    tol=[1e-6 if MORE_DIGITS else 1e-3],
    form=FORMS,
    ends=lambda size, C, **_: (
        "certified" if size[0] > 40 or C == 1e-9 else "certified or stalled"
    ),
)
def dummies_beside_times(size):
    """Each example has its time, so far from 0 that sums of it lose their digits."""
    (n, k), rng = size, np.random.default_rng(sum(size))
    times = 1.7e9 + rng.integers(0, 3e7, n), 1.7e12 + rng.random(n) * 1e9
    X = np.column_stack([*dummies(rng, n, 20, 20, 20), *times])
    y = (X @ rng.standard_normal((62, k)) / X.std(axis=0).clip(0.1)[-1]).argmax(axis=1)
    y = np.where(rng.random(n) < 0.7, y, rng.integers(0, k, n))
    y[:k] = np.arange(k)
    return X, y


@hard(C=[1e-3, 1.0, 1e2, 1e4, 1e6], loss=LOSSES)
def raw_units():
    return load_breast_cancer(return_X_y=True)


@hard(fit_intercept=[True, False], max_iter=[110], ends="no_margin or stalled")
def quasi_separated_classes():
    """Some examples are on the boundary of every separator."""
    X = [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0], [2.0, 3.0], [-3.0, 1.0]]
    return np.array(X), [0, 1, 1, 0, 1, 0]


@hard(
    C=[1e-6, 1.0, 1e4],
    loss=LOSSES,
    ends=lambda C, **_: "certified" if C == 1e-6 else "certified or stalled",
)
def few_examples_with_a_date():
    """Inner products of examples have few digits for the features in small units."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((46, 79))
    X[:, 0] = 1.5e9 + rng.integers(0, 10**8, 46)
    return X, rng.integers(0, 2, 46)


@hard(
    k=[2, 3], shape=[(40, 60), (120, 20)], loss=LOSSES, C=[1e3], fit_intercept=[False]
)
def far_without_an_intercept(k, shape):
    X, y = classes(6, *shape, k=k)
    return X + 10.0 ** np.random.default_rng(1).uniform(0, 6, shape[1]), y


@hard(
    seed=range(3),
    form=FORMS,
    loss=LOSSES,
    C=[1e-5, 1.0, 1e3],
    tol=[1e-5],
    ends=lambda C, **_: "certified" if C == 1e-5 else "certified or stalled",
)
def columns_that_nearly_are_copies(seed):
    """As seconds of beginnings and ends: their squares have no digits for what they differ in."""
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((80, 6)), rng.standard_normal(80)
    y = np.where(X[:, 1] + X[:, -1] + noise > 0.0, 1, 0)
    X[:, :3] += 1e7 * rng.standard_normal((80, 1))
    return X, y


@hard(loss=["hinge"], C=[1e-3, 1.0, 1e6], class_weight=["balanced"])
def thin_margins_of_many_examples():
    """A predictor that grows from near 0 passes thousands of rows; one from far out does not."""
    X = np.random.default_rng(0).uniform(0.0, 1e5, (20_000, 5)).round(2)
    return X, X[:, 0] > 5e4


@hard.each
def test_hard_data(data, estimator, ends, exact):
    X, y = data()
    clf = certified(estimator, X, y, ends=ends)
    if exact:
        check = confirmed(clf, X, y, exact=True)
        assert clf.margin_ <= check.lower <= check.upper <= clf.margin_bound_
    assert clf.status_ != "certified" or clf.gap_ <= clf.tol
    assert clf.status_ != "certified" or np.isfinite(clf.C) or clf.separable_


@pairwise(
    kind=[*KINDS, "separable", "thin"],
    form=[np.asarray, slow(sp.csr_matrix), slow(np.float32)],
    C=[np.inf, slow(1.0), slow(100.0)],
)
def test_many_rows_of_all_kinds(kind, form, C, rng):
    """More than 500, from which other methods than a working set may begin."""
    for d, k, shift in [(1, 2, 0.0), (5, 3, 1000.0), (60, 2, 5.0), (700, 2, 0.0)]:
        X, w = rng.standard_normal((510, d)), rng.standard_normal(d)
        y = rng.integers(0, k, len(X))
        if kind in KINDS:
            X = KINDS[kind](rng, X)
        else:
            y = X @ w > 0
            X += np.outer(np.where(y, 1.0, -1.0), w) * (
                1e-4 if kind == "thin" else 1 / np.sqrt(w @ w)
            )
        ends = ("certified",) if np.isfinite(C) else ("certified", "no_margin")
        certified(MaxMarginClassifier(C=C), form(X + shift), y, ends=ends)


def test_one_feature(rng):
    """Any w > 0 has the largest margin; the support still is that of the exact weights."""
    X = rng.standard_normal((2000, 1))
    clf = MaxMarginClassifier().fit(X, X[:, 0] > 0.3)
    inner, outer = X[X < 0.3].max(), X[X > 0.3].min()
    assert clf.margin_ == pytest.approx(0.5 * (outer - inner))
    assert set(X[clf.support_, 0]) == {inner, outer}


@pytest.mark.parametrize(
    "form", [pytest.param(np.asarray, marks=pytest.mark.slow), sp.csr_array]
)
# scikit-learn's
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater")
def test_as_many_classes_as_examples(form, rng):
    """Systems of the rows with weight would cost more than to go on without them."""
    X, y = form(rng.standard_normal((70, 9))), np.arange(70)
    clf = certified(MaxMarginClassifier(), X, y)
    assert clf.certificate_.weights.nnz > 250  # each class has an example
    assert clf.score(X, y) == 1.0


def test_every_feature_has_a_support_vector():
    """Each row is there twice, from either class: the two share a weight of 1 / 300."""
    X, y = np.vstack([np.eye(300), -np.eye(300)]), np.repeat([0, 1], 300)
    clf = certified(MaxMarginClassifier(fit_intercept=False), X, y)
    weights = clf.certificate_.weights.toarray().reshape(2, 300).sum(axis=0)
    # as tol = 1e-6 allows
    np.testing.assert_allclose(weights, 1 / 300, atol=np.sqrt(2e-6 / 300))
    assert set(clf.support_ % 300) == set(range(300))
    np.testing.assert_allclose(clf.margin_, 1 / np.sqrt(300), rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.05, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_support_is_that_of_the_solution(seed, C, loss):
    """Weights of a point inside are all positive; the fit names those that the solution needs."""
    X, y = classes(seed, n=80)
    support = MaxMarginClassifier(C=C, loss=loss).fit(X, y).support_
    K = X @ X.T + np.eye(len(X)) / (2.0 * C) * (loss == "squared_hinge")
    svc = SVC(kernel="precomputed", C=C if loss == "hinge" else np.inf, tol=1e-9)
    known = svc.fit(K, y).support_
    assert len(np.setxor1d(support, known)) <= 2  # examples with next to no weight
    assert len(support) < len(y)


@pairwise(C=[np.inf, 1.0], fit_intercept=[True, False], n=[80, slow(900)], k=[2, 3])
def test_what_a_predictor_is_made_of(k, n, fit_intercept, C, rng):
    X, y = separable(rng, n=n, k=k)
    kernels = {"linear": X, "precomputed": X @ X.T, lambda A, B: A @ B.T: X}
    for kernel, data in kernels.items():
        clf = MaxMarginClassifier(C=C, fit_intercept=fit_intercept, kernel=kernel).fit(
            data, y
        )
        weights = np.asarray(clf.certificate_.weights.sum(axis=1)).ravel()
        np.testing.assert_array_equal(clf.support_, np.flatnonzero(weights > 0))
        np.testing.assert_array_equal(
            clf.n_support_, np.bincount(y[clf.support_], minlength=k)
        )
        assert 2 <= len(clf.support_) < len(y) or np.isfinite(C)
        # The objective is 1 / (2 margin^2). Half the squared distance is what its gap leaves, where
        # both are at their best scales; where they are not, at most as much again.
        left = (2.0 * np.sqrt(clf.gap_) + 1e-6) / clf.margin_
        if kernel == "linear":
            coef, of_linear = clf.coef_, left
        apart = left if kernel == "linear" else 2.0 * (of_linear + left)
        assert np.linalg.norm(clf.dual_coef_ @ X[clf.support_] - coef) <= apart


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.float32])
def test_what_is_not_finite_is_refused(bad, form, rng):
    """It is found by the pass that measures X, in an example of any place."""
    X, y = separable(rng, n=700)
    X[rng.integers(0, 700), 1] = bad
    wanted = "NaN" if np.isnan(bad) else "infinity|overflow|too large"
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=wanted) as error:
        MaxMarginClassifier().fit(form(X), y)
    if np.isnan(bad):  # with scikit-learn's advice on missing values
        assert "HistGradientBoosting" in str(error.value)


@pytest.mark.parametrize("kernel", ["poly", "rbf", "laplacian"])
@pytest.mark.parametrize("seed", range(3))
def test_certificates_of_kernels_of_examples_in_float32_hold(kernel, seed):
    """Values in float32 of so many features differ from one computation to the next by 1e-6."""
    X = np.random.default_rng(seed).standard_normal((10, 300)).astype(np.float32)
    y = np.arange(10) % 2
    for estimator in (
        MaxMarginClassifier(kernel=kernel),
        MaxMarginRegressor(kernel=kernel),
    ):
        confirmed(fit(estimator, X, y), X, y)
    confirmed(fit(MaxMarginOutlierDetector(kernel=kernel), X), X)


def test_kernels_ask_for_few_columns(rng):
    X, y = separable(rng, n=2000, d=3, margin=0.05)
    asked = []

    def kernel(A, B):
        asked.append(len(A) * len(B))
        return np.exp(-((A[:, None] - B) ** 2).sum(axis=2))

    assert MaxMarginClassifier(kernel=kernel).fit(X, y).status_ == "certified"
    assert sum(asked) < 0.7 * 2000**2


@pytest.mark.parametrize(
    ("k", "params"), [(2, {}), (3, {"loss": "hinge"}), (2, {"kernel": "rbf"})]
)
def test_long_data_start_from_a_sample(k, params, rng, monkeypatch):
    """Of kernels, coefficients of a sample are no start."""
    X, y = rng.standard_normal((800, 5)), rng.integers(0, k, 800)
    monkeypatch.setattr(newton, "SAMPLE", 50)
    monkeypatch.setattr(solve, "methods", lambda qp: [newton.newton])
    certified(MaxMarginClassifier(C=1.0, **params), X, y)


@pytest.mark.parametrize("k", [2, 5])
def test_what_cannot_fit_says_so_before_it_starts(k, rng, monkeypatch):
    X, y = rng.standard_normal((60, 7)), np.arange(60) % k
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: 1000)
    with pytest.raises(MemoryError, match="60 examples, 7 features") as error:
        MaxMarginClassifier(C=1.0).fit(X, y)
    assert ("OneVsRestClassifier" in str(error.value)) == (k > 2)
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: None)
    assert MaxMarginClassifier(C=1.0).fit(X, y).status_ == "certified"


def test_signs_of_coefficients_need_memory_for_dense_rows(rng, monkeypatch):
    """Three matrices of 60 x 9 numbers; without signs, some numbers for each row do."""
    X, y = rng.standard_normal((60, 7)), np.arange(60) % 2
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: 8 * 3 * 60 * 9)
    clf = MaxMarginClassifier(C=1.0)
    assert clf.fit(X, y).status_ == "certified"
    with pytest.raises(MemoryError, match="60 examples, 7 features takes"):
        clf.set_params(monotonic_cst=[1] * 7).fit(X, y)


def test_intercepts_of_many_classes_take_no_singular_values(rng, monkeypatch):
    """They cost the cube of the number of classes as well, but some hundred times as much."""
    X, y = separable(rng, n=60, d=30, k=30)
    monkeypatch.setattr(
        np.linalg, "pinv", lambda *_: pytest.fail("a singular value decomposition")
    )
    assert MaxMarginClassifier().fit(X, y).status_ == "certified"


def test_history_has_a_line_a_round(rng):
    X, y = separable(rng, n=3000, d=300, margin=0.02)
    clf = MaxMarginClassifier().fit(X, y)
    assert clf.n_iter_ > 1
    np.testing.assert_array_equal(clf.history_["n_iter"], np.arange(1, clf.n_iter_ + 1))
    assert np.all(np.diff(clf.history_["margin_bound"][:-1]) <= 0)
    cut = fit(MaxMarginClassifier(max_iter=1), X, y)
    assert cut.status_ == "max_iter"
    assert (
        cut.margin_
        <= clf.margin_
        <= clf.margin_bound_
        <= cut.margin_bound_ * (1 + 1e-12)
    )


def test_stored_fits_do_not_hold_the_data(rng):
    X = rng.normal(size=(2000, 30))
    y = X[:, 0] + rng.normal(size=2000) > 0
    model = MaxMarginClassifier(C=1.0, loss="hinge", warm_start=True, max_iter=1)
    vectors = fit(model, X, y).support_vectors_.nbytes
    assert len(pickle.dumps(model)) - vectors < X.nbytes


def test_the_limit_of_a_container_is_the_memory(tmp_path, monkeypatch):
    machine = solve.installed.__wrapped__()
    for name, written in (("one", "max"), ("other", "12345\n")):
        (tmp_path / name).write_text(written)
    places = [tmp_path / "none", tmp_path / "one"]
    monkeypatch.setattr("marginsvm.solvers.solve.CONTAINERS", places)
    assert machine is None or solve.installed.__wrapped__() >= machine
    places.append(tmp_path / "other")
    assert solve.installed.__wrapped__() == 12345


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_few_support_vectors_take_few_iterations(sparse, fit_intercept, rng):
    """With the squared hinge loss and a large C, where classes nearly touch."""
    n, d = 1500, 150
    if sparse:
        X = sp.random_array((n, d), density=0.1, rng=rng, format="csr")
        X.data[:] = 1.0
        y = (X @ rng.standard_normal(d) > 0).astype(int)
    else:
        y = np.repeat([0, 1], n // 2)
        X = rng.standard_normal((n, d)) + 0.3 * (y[:, None] - 0.5)
    clf = MaxMarginClassifier(C=100.0, fit_intercept=fit_intercept).fit(X, y)
    assert clf.status_ == "certified"
    assert len(clf.support_) < 2 * d
    assert clf.n_iter_ <= 20
