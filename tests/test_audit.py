"""Audits of other programs' models: what these are worth, beside the bounds on the best."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import overlapping, separable
from sklearn.datasets import load_iris
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginOutlierDetector,
    SmoothedKernelPerceptron,
    audit,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TIGHT = {"tol": 1e-10, "max_iter": 10**6, "random_state": 0}


def only(model, X, y=None, weight=None):
    """What is said of the only problem of a model."""
    (judged,) = audit(model, X, y, weight).problems
    return judged


def holds(judged):
    return {claim.name: claim.holds for claim in judged.claims}


def cost(model, X, y, weight, norm):
    """The objective spelled out, of two classes."""
    missing = np.maximum(
        0.0, 1.0 - np.where(y == 1, 1, -1) * model.decision_function(X)
    )
    losses = missing**2 if getattr(model, "loss", "") == "squared_hinge" else missing
    return 0.5 * norm + model.C * weight @ losses


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_objective_is_the_models(rng, loss):
    X, y = overlapping(rng, n=60)
    weight = rng.uniform(0.5, 2.0, len(y))
    model = LinearSVC(C=0.7, loss=loss, **TIGHT).fit(X, y, weight)
    judged, expected = (
        only(model, X, y, weight),
        cost(model, X, y, weight, np.sum(model.coef_**2)),
    )
    assert judged.objective.value == pytest.approx(expected, rel=1e-12)
    assert 0.0 < judged.objective.lower <= judged.objective.upper
    kernel = SVC(C=0.7, gamma=0.5, tol=1e-9).fit(X, y, weight)
    judged, dual = only(kernel, X, y, weight), kernel.dual_coef_
    norm = (dual @ rbf_kernel(kernel.support_vectors_, gamma=0.5) @ dual.T).item()
    expected = cost(kernel, X, y, weight, norm)
    assert judged.objective.value == pytest.approx(expected, rel=1e-12)
    assert judged.objective.short[1] < 1e-5


def its_own_best(model, X, y, weight=None):
    """Largest excess of a model over the least in its own problem, as claimed of the tolerance."""
    claims = [
        c for judged in audit(model, X, y, weight).problems for c in judged.claims
    ]
    shares = [
        c.text.split("(by ")[1].split(" %")[0] for c in claims if c.name == "tolerance"
    ]
    return max(float(share) / 100.0 for share in shares)


def test_a_penalty_of_the_intercept_is_counted(rng):
    """Another intercept is worse in the problem that penalises it by what is spelled out here."""
    X, y = overlapping(rng, n=60)
    X, weight = X + 2.0, np.ones(60)
    model = LinearSVC(loss="hinge", intercept_scaling=2.0, **TIGHT).fit(X, y)

    def penalised():
        norm = np.sum(model.coef_**2) + np.sum((model.intercept_ / 2.0) ** 2)
        return cost(model, X, y, weight, norm)

    least = penalised()
    model.intercept_ = model.intercept_ - 1.0
    assert its_own_best(model, X, y) == pytest.approx(
        penalised() / least - 1.0, rel=1e-2
    )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(C=0.5, **TIGHT),
        LinearSVC(C=0.5, loss="hinge", class_weight={"a": 3.0}, **TIGHT),
        LinearSVC(C=0.5, class_weight="balanced", intercept_scaling=4.0, **TIGHT),
        LinearSVC(C=0.5, fit_intercept=False, **TIGHT),
        LinearSVC(C=0.5, multi_class="crammer_singer", **TIGHT),
        SVC(C=2.0, tol=1e-9),
        SVC(C=2.0, tol=1e-9, kernel="linear", class_weight="balanced"),
        SVC(C=2.0, tol=1e-9, kernel="poly", degree=2, coef0=1.0, gamma="auto"),
        SVC(C=2.0, tol=1e-9, kernel=laplacian_kernel),
    ],
    ids=lambda model: type(model).__name__,
)
def test_problems_are_the_models_own(rng, model, k):
    """What is solved to ten digits falls short by nothing in its own problem, whichever it is."""
    X, y = overlapping(rng, n=45, k=k)
    y, weight = np.array(["a", "b", "c"])[y], rng.uniform(0.5, 2.0, len(y))
    # with one, SVC's support_ is of other examples
    if not callable(getattr(model, "kernel", "")):
        weight[::7] = 0.0
    forms = (
        (X, sp.csr_matrix(X))
        if getattr(model, "kernel", "linear") == "linear"
        else (X,)
    )
    for Z in forms:
        assert its_own_best(model.fit(Z, y, weight), Z, y, weight) < 1e-5


def test_pairs_of_libsvm_and_matrices(rng):
    """The predictors of the pairs are those of decision_function; their matrices are judged too."""
    X, y = overlapping(rng, n=60, k=3)
    model = SVC(decision_function_shape="ovo", C=3.0, tol=1e-9).fit(X, y)
    K = rbf_kernel(X, gamma=model._gamma)
    again = audit(SVC(kernel="precomputed", C=3.0, tol=1e-9).fit(K, y), K, y)
    for one, other in zip(audit(model, X, y).problems, again.problems, strict=True):
        assert one.name == other.name
        assert one.objective.short[1] < 1e-5
        assert one.objective.value == pytest.approx(other.objective.value, rel=1e-6)
        Z, z = (
            table[np.isin(y, [*map(int, one.name.split(" against "))])]
            for table in (X, y)
        )
        two = SVC(C=3.0, gamma=model._gamma, tol=1e-9).fit(Z, z)
        alone = only(two, Z, z)
        assert one.objective.value == pytest.approx(alone.objective.value, rel=1e-6)
        assert one.n_errors == alone.n_errors == (two.predict(Z) != z).sum()


@pytest.mark.parametrize(
    ("model", "exact"),
    [
        (SGDClassifier(), SVC()),
        (SGDRegressor(loss="epsilon_insensitive", epsilon=0.2), SVR(epsilon=0.2)),
    ],
)
def test_sgd_has_the_cost_of_its_alpha(model, exact, rng):
    """The predictor of libsvm is the best for C = 1 / (alpha n); SGD's own is worse."""
    X, y = overlapping(rng, n=80)
    model.set_params(alpha=0.01, random_state=0, max_iter=3).fit(X, y)
    own = only(model, X, y)
    best = exact.set_params(kernel="linear", C=1.0 / (0.01 * 80), tol=1e-9).fit(X, y)
    model.coef_ = best.coef_.reshape(model.coef_.shape)
    model.intercept_ = best.intercept_
    assert only(model, X, y).objective.short[1] < 1e-5 < own.objective.short[0]
    assert not holds(own)["iterations"]
    assert not holds(own)["tolerance"]


def test_a_fit_of_ours_falls_short_by_its_gap(rng):
    """Its objective is the one that its certificate states."""
    X, y = overlapping(rng, n=50, k=3)
    for settings in ({}, {"kernel": "rbf"}, {"loss": "hinge"}):
        clf = MaxMarginClassifier(C=2.0, **settings).fit(X, y)
        judged = only(clf, X, y)
        assert judged.objective.value == pytest.approx(0.5 / clf.margin_**2, rel=1e-7)
        assert judged.objective.short[1] < 1e-5
    X, y = separable(rng)
    clf = MaxMarginClassifier().fit(X, y)
    judged = only(clf, X, y)
    assert (judged.objective, judged.separable) == (None, True)
    assert judged.margin.value == pytest.approx(clf.margin_, rel=1e-7)


def test_other_losses_are_judged_by_their_margins(rng):
    X, y = (table[:100] for table in load_iris(return_X_y=True))
    for model in (LogisticRegression(), Perceptron(), LinearSVC(penalty="l1", C=100.0)):
        judged = only(model.fit(X, y), X, y)
        assert judged.objective is None
        assert 0.0 < judged.margin.value < judged.margin.lower
    X, y = overlapping(rng, n=50)
    judged = only(LogisticRegression().fit(X, y), X, y)
    assert (judged.margin, judged.separable) == (None, False)
    assert "cannot be separated" in str(judged.lines())


@pytest.mark.parametrize(
    "model",
    [
        LinearSVR(C=2.0, epsilon=0.2, **TIGHT),
        LinearSVR(
            C=2.0, epsilon=0.2, loss="squared_epsilon_insensitive", dual=True, **TIGHT
        ),
        LinearSVR(C=2.0, epsilon=0.1, intercept_scaling=3.0, **TIGHT),
        LinearSVR(C=2.0, fit_intercept=False, epsilon=0.1, **TIGHT),
        SVR(kernel="linear", C=2.0, epsilon=0.2, tol=1e-9),
        NuSVR(kernel="linear", C=2.0, nu=0.3, tol=1e-9),
    ],
    ids=lambda model: type(model).__name__,
)
def test_regressors(rng, model):
    """What is solved to ten digits falls short by nothing in its own problem."""
    X, weight = rng.standard_normal((50, 3)), rng.uniform(0.5, 2.0, 50)
    y = X @ [1.0, -0.5, 0.0] + 1.0 + 0.5 * rng.standard_normal(50)
    weight[::9] = 0.0
    model.fit(X, y, weight)
    assert its_own_best(model, X, y, weight) < 1e-5
    judged, distances = only(model, X, y, weight), np.abs(model.predict(X) - y)
    widths, of_width = [getattr(model, "epsilon", None)], 0.0
    # the best of widths, of which many are ends but for rounding
    if isinstance(model, NuSVR):
        widths, of_width = distances, 2.0 * 0.3 * weight.sum()
    else:
        assert judged.n_errors == np.count_nonzero(
            (distances > model.epsilon)[weight > 0.0]
        )
    power = 2 if getattr(model, "loss", "")[:2] == "sq" else 1
    expected = 0.5 * np.sum(model.coef_**2) + min(
        2.0 * weight @ np.maximum(distances - width, 0.0) ** power + of_width * width
        for width in widths
    )
    assert judged.objective.value == pytest.approx(expected, rel=1e-9)
    assert "outside of the tube" in str(judged.lines())


@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed", "callable"])
@pytest.mark.parametrize("Model", [SVR, NuSVR])
def test_regressors_with_kernels(rng, kernel, Model):
    """What is solved to ten digits falls short by nothing; what was stopped early does."""
    X, weight = rng.standard_normal((50, 3)), rng.uniform(0.5, 2.0, 50)
    y = np.sin(2.0 * X[:, 0]) + 0.2 * rng.standard_normal(50)
    params = {"kernel": rbf_kernel if kernel == "callable" else kernel, "C": 2.0}
    if kernel == "precomputed":
        X = X @ X.T
        X = 0.5 * (X + X.T)
    model = Model(**params, tol=1e-9).fit(X, y, weight)
    judged = only(model, X, y, weight)
    assert judged.objective.short[1] < 1e-5
    assert f"{kernel} kernel" in judged.problem
    assert ("nu = 0.5" in judged.problem) == (Model is NuSVR)
    early = Model(**params, max_iter=5).fit(X, y, weight)
    assert only(early, X, y, weight).objective.short[0] > 1e-3
    if kernel != "precomputed":  # whose matrix says nothing of the order
        with pytest.raises(
            ValueError, match=r"fitted to other examples|not the examples"
        ):
            audit(model, X[::-1], y, weight)


def test_refusals(rng):
    X, y = overlapping(rng, n=60)
    three, model = np.arange(60) % 3, SVC().fit(X, y)
    wrong = LinearSVC().fit(X, y)
    wrong.decision_function = LinearSVC().fit(X[:, ::-1], y).decision_function
    normalized = SmoothedKernelPerceptron(normalize=True, max_iter=5).fit(X, y)
    for refused, given, match in (
        (model, (X[::-1], y[::-1]), "not the examples that the model was fitted to"),
        (model, (X, y + 1), "labels that the model was fitted to"),
        (wrong, (X, y), "do not give what it predicts"),
        (NuSVC(nu=0.3).fit(X, y), (X, y), "with nu"),
        (normalized, (X, y), "of normalised examples"),
        (
            LogisticRegression().fit(X, three),
            (X, three),
            "of 3 classes are held against which",
        ),
        (Ridge().fit(X, y), (X, y), "with the losses"),
        (MaxMarginOutlierDetector(nu=None).fit(X), (X,), "those with nu"),
    ):
        with pytest.raises(ValueError, match=match):
            audit(refused, *given)
    with pytest.raises(TypeError, match="intercept_"):
        audit(StandardScaler().fit(X), X, y)


def test_reports(rng):
    X, y = overlapping(rng, n=60, k=3)
    pipe = make_pipeline(
        StandardScaler(), GridSearchCV(LinearSVC(), {"C": [1.0]}, cv=2)
    )
    report = audit(pipe.fit(X, y), X, y)
    names = ["0 against the rest", "1 against the rest", "2 against the rest"]
    assert [judged.name for judged in report.problems] == names
    assert all(name in str(report) for name in names)
    assert [row["problem"][:18] for row in report.rows()] == names
    assert report.worst.short == max(judged.short for judged in report.problems)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(report.rows())
    assert frame["objective_short"].tolist() == [
        j.objective.short[1] for j in report.problems
    ]
    with pytest.raises(AttributeError):
        report.model = None


@pytest.mark.parametrize(
    "params", [{}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0}]
)
def test_one_class(params, rng):
    X, weight = rng.normal([3.0, 0.0, 0.0], 1.0, (80, 3)), rng.integers(0, 3, 80)
    for tol in (1e-10, 0.5):
        model = OneClassSVM(nu=0.2, tol=tol, **params).fit(X, sample_weight=weight)
        judged = only(model, X, weight=weight)
        assert judged.margin.value <= judged.margin.upper * (1 + 1e-9)
        assert (judged.margin.short[1] <= 3e-6) == (tol < 0.1)
        assert judged.n_errors == np.count_nonzero(
            model.decision_function(X[weight > 0]) < 0
        )
        assert judged.n_samples == np.count_nonzero(weight)


def test_claims_of_one_class(rng):
    X = rng.normal([3.0, 0.0, 0.0], 1.0, (80, 3))
    model = MaxMarginOutlierDetector(nu=0.2).fit(X).to_sklearn()
    assert audit(model, X).rows()[0]["share"]
    model._intercept_ -= 0.1
    model.offset_ = -model._intercept_
    assert not audit(model, X).rows()[0]["share"]
    with pytest.raises(ValueError, match="fitted to"):
        audit(model, X[::-1])


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_blocks_are_audited_where_they_lie(k, form, rng):
    X, y = rng.standard_normal((300, 5)), rng.integers(0, k, 300)
    X[:, 0] += 3.0 * y
    source = [(form(X[i : i + 60]), y[i : i + 60]) for i in range(0, 300, 60)]
    models = [LinearSVC(C=1.0, random_state=0), SVC(kernel="linear", C=0.1)]
    for model in models:
        model.fit(form(X), y)
        whole, parts = audit(model, form(X), y), audit(model, source)
        for one, other in zip(whole.rows(), parts.rows(), strict=True):
            assert one.keys() == other.keys()
            for name, value in one.items():
                same = value == other[name]
                assert same or value == pytest.approx(other[name], rel=1e-5), name
    with pytest.raises(ValueError, match="a kernel needs the examples in memory"):
        audit(SVC().fit(X, y), source)


@pytest.mark.parametrize("model", [LinearSVC(), SVC(), MaxMarginClassifier(C=1.0)])
def test_models_of_frames_are_audited_without_a_warning(model, rng):
    X, y = overlapping(rng, n=60)
    frame = pytest.importorskip("pandas").DataFrame(X).add_prefix("x")
    audit(model.fit(frame, y), frame, y)
    assert model.feature_names_in_[0] == "x0"
