"""Searches, pipelines, data frames and callbacks together, as people combine them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.estimators import quiet
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from marginsvm import (
    CostCurveDisplay,
    MarginPathDisplay,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MomentumMarginClassifier,
    check_certificate,
)

COSTS = [0.01, 0.1, 1.0]
SEARCHES = {
    "grid": lambda model, grid, **kw: GridSearchCV(model, grid, **kw),
    "random": lambda model, grid, **kw: RandomizedSearchCV(
        model, grid, n_iter=2, random_state=0, **kw
    ),
    "halving": lambda model, grid, **kw: HalvingGridSearchCV(model, grid, random_state=0, **kw),
    "random halving": lambda model, grid, **kw: HalvingRandomSearchCV(
        model, grid, n_candidates=3, random_state=0, **kw
    ),
}
each_search = pytest.mark.parametrize("kind", SEARCHES)


@pytest.fixture(scope="module")
def cancer():
    """Ten measurements with names, in very different units; the labels are words."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:240, :10], pd.Series(np.where(y == 1, "benign", "malignant"))[:240]


@pytest.fixture
def plots():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@each_search
def test_searches_over_pipelines_of_frames(kind, cancer, plots):
    """Two jobs, frames between the steps; the certificate and the picture are of the best."""
    X, y = cancer
    pipeline = make_pipeline(StandardScaler(), MaxMarginClassifier()).set_output(transform="pandas")
    grid = {"maxmarginclassifier__C": COSTS}
    search = SEARCHES[kind](pipeline, grid, n_jobs=2, cv=3, error_score="raise").fit(X, y)
    best = search.best_estimator_
    assert search.best_score_ > 0.7  # halving begins with a few examples
    assert best[-1].feature_names_in_.tolist() == X.columns.tolist()
    assert set(search.predict(X)) == {"benign", "malignant"}
    assert check_certificate(search, X, y)
    assert check_certificate(search, X, y).margin == check_certificate(best, X, y).margin
    assert MarginPathDisplay.from_estimator(search).line_.get_label() == "MaxMarginClassifier"


@each_search
def test_searches_within_pipelines(kind, cancer, plots):
    X, y = cancer
    search = SEARCHES[kind](MaxMarginClassifier(kernel="rbf"), {"C": COSTS}, cv=3)
    pipeline = make_pipeline(MinMaxScaler(), search).fit(X, y)
    assert pipeline.score(X, y) > 0.85
    assert check_certificate(pipeline, X, y)
    assert MarginPathDisplay.from_estimator(pipeline).line_ is not None


def test_choices_of_the_cost_within_pipelines_and_searches(cancer, plots):
    X, y = cancer
    scaled = make_column_transformer((StandardScaler(), X.columns[:5]), remainder=MinMaxScaler())
    chosen = MaxMarginClassifierCV(Cs=3, cv=3, n_jobs=2)
    pipeline = make_pipeline(scaled, chosen).set_output(transform="pandas")
    within = GridSearchCV(pipeline, {"maxmarginclassifiercv__fit_intercept": [True, False]}, cv=2)
    outer = cross_validate(clone(pipeline), X, y, cv=2, n_jobs=2, return_estimator=True)
    assert outer["test_score"].min() > 0.85
    for fitted in (pipeline.fit(X, y), within.fit(X, y)):
        assert check_certificate(fitted, X, y)
        assert len(CostCurveDisplay.from_estimator(fitted).line_.get_xdata()) == 3
        assert MarginPathDisplay.from_estimator(fitted).line_ is not None
    assert all(one[-1].scores_.shape == (3, 3) for one in outer["estimator"])


def test_frames_and_arrays_give_the_same_model(cancer):
    X, y = cancer
    X = StandardScaler().set_output(transform="pandas").fit_transform(X)
    frame = MaxMarginClassifierCV(Cs=3).fit(X, y)
    array = MaxMarginClassifierCV(Cs=3).fit(X.to_numpy(), y.to_numpy())
    np.testing.assert_array_equal(frame.coef_, array.coef_)
    assert frame.feature_names_in_.tolist() == X.columns.tolist()
    with pytest.raises(ValueError, match="feature names"):
        frame.predict(X.rename(columns=str.upper))


def test_raw_measurements_are_certified(cancer):
    X, y = cancer
    assert MaxMarginClassifier(C=7.58).fit(X, y).status_ == "certified"


def test_outputs_named_by_the_steps(cancer):
    """Names that a step makes up reach the classifier."""
    X, y = cancer
    steps = make_pipeline(StandardScaler(), PCA(3), MaxMarginClassifierCV(Cs=2))
    with quiet():
        fitted = steps.set_output(transform="pandas").fit(X, y)
    assert fitted[-1].feature_names_in_.tolist() == ["pca0", "pca1", "pca2"]


@pytest.mark.callbacks
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_of_searches_see_each_round(n_jobs, cancer):
    from sklearn.callback import ScoringMonitor

    X, y = cancer
    monitor = ScoringMonitor(scoring="accuracy")
    model = MomentumMarginClassifier(max_iter=3, C=1.0).set_callbacks(monitor)
    search = GridSearchCV(model, {"tol": [1e-3]}, cv=2, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # also in the workers, which inherit the filter
        search.fit(StandardScaler().fit_transform(X), y)
    rounds = [line for line in monitor.get_logs().data if line["task_name"] == "round"]
    assert len(rounds) == 3 * 3  # two folds, and all examples
    assert min(line["accuracy"] for line in rounds) > 0.5


def test_estimators_of_several_problems_say_what_to_pass():
    X, y = load_iris(return_X_y=True)
    for kind in (OneVsOneClassifier, OneVsRestClassifier):
        several = kind(MaxMarginClassifier(C=1.0)).fit(X, y)
        for ask in (
            lambda them: check_certificate(them, X, y),
            MarginPathDisplay.from_estimator,
            CostCurveDisplay.from_estimator,
        ):
            with pytest.raises(TypeError, match="pass one of estimators_"):
                ask(several)
    ovo = OneVsOneClassifier(MaxMarginClassifier(C=1.0, loss="hinge")).fit(X, y)
    first = y < 2
    assert check_certificate(ovo.estimators_[0], X[first], y[first])
