"""Users' lives, for every estimator."""

import warnings
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from helpers.battery import each, each_and_toy
from helpers.estimators import (
    ENDLESS,
    AtRound,
    fit,
    make,
    overlapping,
    quiet,
    separable,
)
from helpers.fresh import python
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

from marginsvm import (
    CostCurveDisplay,
    MarginPathDisplay,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    audit,
    check_certificate,
    cross_val_many,
    fit_many,
    margin_path,
    save_proof,
)


@pytest.fixture
def plots():
    yield
    plt.close("all")


@each_and_toy
def test_pipelines_and_searches(cls, rng):
    X, y = separable(rng, n=90)
    with quiet():
        pipeline = make_pipeline(StandardScaler(), make(cls, max_iter=50))
        assert cross_val_score(pipeline, X, y).mean() > 0.9
        grid = {f"{cls.__name__.lower()}__tol": [1e-1, 1e-3]}
        assert GridSearchCV(pipeline, grid).fit(X, y).best_score_ > 0.9
        calibrated = CalibratedClassifierCV(make(cls, max_iter=50)).fit(X, y)
        assert calibrated.predict_proba(X).shape == (90, 2)


@each
def test_certificates_and_displays_of_pipelines_and_searches(cls, rng, plots):
    X, y = separable(rng, n=90)
    scaled = StandardScaler().fit_transform(X)
    alone = fit(make(cls, max_iter=50), scaled, y)
    expected = check_certificate(alone, scaled, y)
    pipeline = make_pipeline(StandardScaler(), make(cls, max_iter=50))
    nested = make_pipeline(
        make_pipeline(StandardScaler(), "passthrough"), pipeline[-1:]
    )
    grid = {f"{cls.__name__.lower()}__verbose": [False]}
    search = GridSearchCV(pipeline, grid, cv=2)
    for estimator in (pipeline, nested, search, make_pipeline(clone(search))):
        with pytest.raises(NotFittedError):
            check_certificate(estimator, X, y)
        check = check_certificate(fit(estimator, X, y), X, y)
        assert check
        assert (check.margin, check.margin_bound) == (
            expected.margin,
            expected.margin_bound,
        )
        assert (
            MarginPathDisplay.from_estimator(estimator).line_.get_label()
            == cls.__name__
        )
    display = MarginPathDisplay.from_estimator(alone, x="n_iter")
    assert display.ax_.get_xlabel() == "iterations"
    with pytest.raises(ValueError, match="seconds"):
        display.plot(x="time")


def test_what_holds_no_certificate_is_refused(rng):
    X, y = separable(rng)
    clf = MomentumMarginClassifier()
    unfit = GridSearchCV(clf, {"tol": [0.1]}, refit=False).fit(X, y)
    for other in (
        StandardScaler().fit(X),
        CalibratedClassifierCV(clf).fit(X, y),
        unfit,
    ):
        with pytest.raises(TypeError, match="pass a fitted estimator of marginsvm"):
            check_certificate(other, X, y)
        with pytest.raises(TypeError, match="pipeline"):
            MarginPathDisplay.from_estimator(other)
    with pytest.raises(NotFittedError):
        MarginPathDisplay.from_estimator(clf)


@each
def test_data_frames(cls, rng):
    X, y = separable(rng)
    frame = pd.DataFrame(X, columns=list("abcde"))
    labels = pd.Series(np.where(y == 1, "yes", "no"))
    estimator = fit(make(cls, max_iter=50), frame, labels)
    assert list(estimator.feature_names_in_) == list("abcde")
    assert set(estimator.predict(frame)) <= {"yes", "no"}
    array = fit(make(cls, max_iter=50), X, y)
    np.testing.assert_allclose(estimator.coef_, array.coef_, rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame.rename(columns=str.upper))


@each
def test_metadata_routing(cls, rng):
    X, y = separable(rng)
    with sklearn.config_context(enable_metadata_routing=True), quiet():
        routed = make(cls, max_iter=30).set_fit_request(sample_weight=True)
        routed.set_score_request(sample_weight=True)
        search = GridSearchCV(routed, {"tol": [1e-2]}, cv=2)
        search.fit(X, y, sample_weight=np.ones(len(y)))
    assert search.best_score_ > 0.5


@pytest.mark.callbacks
@each_and_toy
def test_callbacks_stop_a_fit(cls, rng):
    X, y, params = *overlapping(rng), {"C": 1.0, **ENDLESS}
    # exchanges solve the squared hinge loss in one round
    if cls is MaxMarginClassifier:
        params["loss"] = "hinge"
    callback, seen = (
        AtRound(3, lambda: seen.append(callback.found[2].score(X, y)) is None),
        [],
    )
    estimator = make(cls, **params).set_callbacks(callback).fit(X, y)
    assert estimator.status_ == "stopped"
    assert estimator.n_iter_ == 3
    assert len(seen) == 1
    assert check_certificate(estimator, X, y)
    search = GridSearchCV(make(cls, **params), {"fit_intercept": [True, False]}, cv=2)
    search.set_callbacks(AtRound(4)).fit(X, y)
    assert search.best_estimator_.n_iter_ == 4


@pytest.mark.callbacks
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_bars(n_jobs, rng, capsys):
    from sklearn.callback import ProgressBar

    pytest.importorskip("rich", reason="pip install marginsvm[test-all]")
    model = MomentumMarginClassifier(max_iter=5)
    search = GridSearchCV(model, {"tol": [1e-2]}, cv=2, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # also in the workers, which inherit the filter
        search.set_callbacks(ProgressBar()).fit(*separable(rng))
    assert "MomentumMarginClassifier" in capsys.readouterr().out


@pytest.mark.callbacks
@each_and_toy
def test_progress_bars_know_how_many_rounds_may_come(cls, rng):
    """The next fit, too, which goes on from between two bounds."""
    counts = []

    class Counting(AtRound):
        def on_fit_task_end(self, estimator, context, **known):
            if context.task_name == "iteration":
                counts[-1][0] += 1
            else:
                counts[-1][1] = context.max_subtasks

    X, y = overlapping(rng)
    params = {"C": 1.0, "warm_start": True, "random_state": 0, **ENDLESS}
    estimator = make(cls, **params).set_callbacks(Counting(0))
    for max_iter in (67, 90):
        counts.append([0, None])
        fit(estimator.set_params(max_iter=max_iter), X, y)
        done, said = counts[-1]
        assert done == said or estimator.status_ != "max_iter"
        assert done <= said
    every = cls is MaxMarginClassifier or estimator._stopping().goal == "separation"
    assert counts[0][0] < 67 or every


def test_import_is_light():
    code = (
        "import time, sys, sklearn.base, sklearn.utils.validation, sklearn.metrics.pairwise;"
        "before = set(sys.modules); t = time.perf_counter();"
        "import marginsvm; print(time.perf_counter() - t);"
        "heavy = {'numba', 'matplotlib', 'pandas', 'sklearn.linear_model', 'sklearn.datasets',"
        "    'sklearn.model_selection'} & (set(sys.modules) - before);"
        "marginsvm.MaxMarginClassifier().fit([[0.0], [1.0]], [0, 1]);"
        "print(sorted(heavy | {'torch', 'cupy', 'array_api_strict'} & set(sys.modules)))"
    )
    seconds, heavy = python("-c", code).splitlines()
    assert heavy == "[]"
    assert float(seconds) > 0  # printed for the eye; timings are not asserted


@pytest.mark.slow
def test_before_scikit_learn_1_9_fits_are_the_same_and_callbacks_are_refused():
    code = (
        "import sys, warnings, sklearn.pipeline, sklearn.linear_model, sklearn.datasets\n"
        "sys.modules['sklearn.callback'] = None  # as if this scikit-learn had none\n"
        "from marginsvm import MaxMarginClassifier as Classifier\n"
        "X, y = sklearn.datasets.load_iris(return_X_y=True)\n"
        "print(Classifier().fit(X[:100], y[:100]).set_callbacks().certificate_)\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    Classifier(max_iter=1).fit(X, y)\n"
        "print([warning.filename for warning in caught])\n"
        "try:\n    Classifier().set_callbacks(print)\n"
        "except ImportError as error:\n    print(error)"
    )
    certificate, warned, refused = python("-c", code).splitlines()
    X, y = load_iris(return_X_y=True)
    assert certificate == str(MaxMarginClassifier().fit(X[:100], y[:100]).certificate_)
    assert warned == "['<string>']"
    assert "pip install -U 'scikit-learn>=1.9'" in refused


@each
def test_coefficients_may_be_made_sparse(cls, rng):
    X, y = separable(rng, k=3)
    clf = fit(make(cls, max_iter=30), X, y)
    dense, F = clf.coef_, clf.decision_function(X)
    assert sp.issparse(clf.sparsify().coef_)
    for form in (np.asarray, sp.csr_array):
        np.testing.assert_allclose(
            clf.decision_function(form(X)), F, rtol=1e-12, atol=1e-12
        )
    assert check_certificate(clf, X, y)
    np.testing.assert_array_equal(clf.densify().coef_, dense)


SEARCHES = {
    "grid": partial(GridSearchCV, n_jobs=2),
    "random": partial(RandomizedSearchCV, n_iter=2, random_state=0),
    "halving": partial(HalvingRandomSearchCV, n_candidates=3, random_state=0),
}


@pytest.fixture(scope="module")
def cancer():
    """Ten measurements with names, in very different units; the labels are words."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:240, :10], pd.Series(np.where(y == 1, "benign", "malignant"))[:240]


@pytest.mark.parametrize("kind", SEARCHES)
def test_searches_over_pipelines_of_frames(kind, cancer, plots):
    """Frames between the steps; the certificate and the picture are of the best."""
    X, y = cancer
    pipeline = make_pipeline(StandardScaler(), MaxMarginClassifier()).set_output(
        transform="pandas"
    )
    grid = {"maxmarginclassifier__C": [0.01, 0.1, 1.0]}
    search = SEARCHES[kind](pipeline, grid, cv=3, error_score="raise").fit(X, y)
    best = search.best_estimator_
    assert search.best_score_ > 0.7  # halving begins with a few examples
    assert best[-1].feature_names_in_.tolist() == X.columns.tolist()
    assert set(search.predict(X)) == {"benign", "malignant"}
    assert (
        check_certificate(search, X, y).margin == check_certificate(best, X, y).margin
    )
    assert (
        MarginPathDisplay.from_estimator(search).line_.get_label()
        == "MaxMarginClassifier"
    )


def test_choices_of_the_cost_within_pipelines_and_searches(cancer, plots):
    X, y = cancer
    scaled = make_column_transformer(
        (StandardScaler(), X.columns[:5]), remainder=MinMaxScaler()
    )
    chosen = MaxMarginClassifierCV(Cs=3, cv=3, n_jobs=2)
    pipeline = make_pipeline(scaled, chosen).set_output(transform="pandas")
    within = GridSearchCV(
        pipeline, {"maxmarginclassifiercv__fit_intercept": [True, False]}, cv=2
    )
    outer = cross_validate(clone(pipeline), X, y, cv=2, n_jobs=2, return_estimator=True)
    assert outer["test_score"].min() > 0.85
    for fitted in (pipeline.fit(X, y), within.fit(X, y)):
        assert check_certificate(fitted, X, y)
        assert len(CostCurveDisplay.from_estimator(fitted).line_.get_xdata()) == 3
        assert MarginPathDisplay.from_estimator(fitted).line_ is not None
    assert all(one[-1].scores_.shape == (3, 3) for one in outer["estimator"])


@pytest.mark.callbacks
def test_callbacks_of_searches_see_each_round(cancer):
    from sklearn.callback import ScoringMonitor

    X, y = cancer
    monitor = ScoringMonitor(scoring="accuracy")
    model = MomentumMarginClassifier(max_iter=3, C=1.0).set_callbacks(monitor)
    search = GridSearchCV(model, {"tol": [1e-3]}, cv=2)
    fit(search, StandardScaler().fit_transform(X), y)
    rounds = [
        line for line in monitor.get_logs().data if line["task_name"] == "iteration"
    ]
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


AS_COLUMNS = {
    "array": lambda y: y[:, None],
    "frame": lambda y: pd.DataFrame({"answer": y}),
    "list": lambda y: y[:, None].tolist(),
    "text": lambda y: np.array(["no", "yes"])[y][:, None],
}


@pytest.mark.parametrize("form", AS_COLUMNS)
def test_labels_in_a_column_are_what_scikit_learn_makes_of_them(form, tmp_path, rng):
    """One warning each, and what the labels in one dimension give."""
    X, y = overlapping(rng)
    column = AS_COLUMNS[form](y)
    y = np.ravel(column)
    clf = MaxMarginClassifier(C=1.0).fit(X, y)
    svc, path = LinearSVC().fit(X, y), tmp_path / "proof.json"
    asks = {
        "fit": lambda y: clone(clf).fit(X, y).coef_,
        "fit_blocks": lambda y: clone(clf).fit_blocks([(X, y)]).coef_,
        "cross-validation": lambda y: (
            MaxMarginClassifierCV(Cs=[1.0], cv=2).fit(X, y).coef_
        ),
        "path": lambda y: margin_path(X, y, Cs=2).margins,
        "many": lambda y: fit_many(clf, X, y).coef,
        "folds of many": lambda y: cross_val_many(clf, X, y, cv=3).accuracy,
        "check": lambda y: check_certificate(clf, X, y),
        "exact check": lambda y: check_certificate(clf, X, y, exact=True),
        "blocks": lambda y: check_certificate(clf, [(X[:9], y[:9]), (X[9:], y[9:])]),
        "proof": lambda y: save_proof(clf, path, X, y),
        "audit": lambda y: repr(audit(svc, X, y)),
    }
    for name, ask in asks.items():
        expected = ask(y)
        with pytest.warns(DataConversionWarning, match="column-vector") as caught:
            found = ask(column)
        assert len(caught) == 1, name
        np.testing.assert_equal(found, expected, err_msg=name)


def test_targets_in_a_column_are_one_output(tmp_path, rng):
    X = rng.standard_normal((30, 2))
    y = pd.DataFrame({"y": X[:, 0] + 0.1 * rng.standard_normal(30)})
    reg = MaxMarginRegressor().fit(X, y)
    assert reg.coef_.shape == (1, 2)
    assert check_certificate(reg, X, y)
    assert save_proof(reg, tmp_path / "proof.json", X, y)["of"] == "targets"
    with pytest.warns(DataConversionWarning):
        assert "above it" in repr(audit(reg, X, y))
