"""Users read attributes: they say what the certificate says, and other ones are refused."""

import pickle

import numpy as np
import pytest
from helpers.claiming import attributes, changed, claim, is_found, refused
from helpers.estimators import ESTIMATORS, fit, make, overlapping, separable
from helpers.hostile import hostile_problem, truthful
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    DualLpRegressor,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    check_certificate,
)

exactly_or_not = pytest.mark.parametrize("exact", [False, True])


def near_a_feature(rng, n):
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] + 0.05 * rng.standard_normal(n)


def test_attributes_read_the_certificate(rng):
    X, y = separable(rng)
    clf = MaxMarginClassifier().fit(X, y)
    other = {
        "margin": 0.1,
        "margin_bound": 0.2,
        "separable": None,
        "status": "max_iter",
    }
    claim(clf, **other)
    assert {name: getattr(clf, f"{name}_") for name in other} == other
    assert clf.gap_ == 0.5
    assert not hasattr(MaxMarginClassifier(), "margin_")
    with pytest.raises(AttributeError):
        clf.margin_ = 0.3
    reg = DualLpRegressor(random_state=0, epsilon=0.5).fit(X, X[:, 0])
    claim(reg, norm=7.0, norm_bound=2.0, violation=3.0)
    assert (reg.norm_, reg.norm_bound_, reg.violation_) == (7.0, 2.0, 3.0)


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_the_history_ends_with_what_is_certified(cls, C, rng):
    """In one row for each iteration; a warm start goes on from what was not certified."""
    X, y = overlapping(rng, n=30)
    params = {"C": C, "max_iter": 7, "tol": 0.0, "random_state": 0}
    clf = fit(make(cls, **params, warm_start=True), X, y)
    for _ in range(2):
        history = clf.history_
        assert history["margin"][-1] == clf.margin_
        assert history["margin_bound"][-1] == clf.margin_bound_
        assert history["n_iter"][-1] == clf.n_iter_
        assert (np.diff(history["n_iter"]) > 0).all()
        before, clf = history, fit(clf.set_params(max_iter=9), X, y)
    whole = fit(make(cls, **{**params, "max_iter": 9}), X, y).history_
    for name in ("margin", "margin_bound"):
        n = min(len(before[name]), len(whole[name])) - 1
        np.testing.assert_array_equal(before[name][:n], whole[name][:n])


@pytest.mark.parametrize(
    ("estimator", "ends"),
    [
        (MaxMarginClassifier(), ("margin", "margin_bound")),
        (MaxMarginRegressor(C=1), ("objective_bound", "objective")),
    ],
)
def test_bounds_move_outward_from_units_to_units(estimator, ends, rng, monkeypatch):
    """Were their rounding 2^-10, each bound would move by about so much."""
    X, y = near_a_feature(rng, 20)
    y = X[:, 0] > 0 if ends[0] == "margin" else y
    close = fit(estimator, 3 * X, y).certificate_
    monkeypatch.setattr("marginsvm.estimators.results.FEW", 2.0**-10)
    wide = fit(estimator, 3 * X, y).certificate_
    lower, upper = ends
    assert getattr(wide, lower) <= getattr(close, lower) * (1 - 2.0**-11)
    assert getattr(wide, upper) >= getattr(close, upper) * (1 + 2.0**-11)


def test_the_attack_is_repelled():
    """Two hostile problems for each estimator, each attribute with a value that is drawn."""
    for seed in range(2 * len(ESTIMATORS)):
        X, y, fit_intercept = hostile_problem(seed)
        cls = ESTIMATORS[seed % len(ESTIMATORS)]
        _, clf = truthful(cls, X, y, fit_intercept, max_iter=60)
        assert is_found(clf, X, y, rng=np.random.default_rng(seed)), (seed, cls)


@exactly_or_not
def test_each_attribute_is_read(exact, rng):
    """Also where the certificate is that of norms; nu is of the weights."""
    Z, z = near_a_feature(rng, 12)
    for params in ({"epsilon": 0.1}, {"C": 1.0}, {"epsilon": 0.01}):
        reg = fit(DualLpRegressor(random_state=0, max_iter=500, **params), Z, z)
        assert is_found(reg, Z, z, exact=exact)
    X, y = overlapping(rng)
    weight = rng.choice([0.0, 1.0, 0.3, 7.0], len(y))
    for kernel in ("linear", "rbf")[: 1 if exact else 2]:
        clf = MaxMarginClassifier(
            C=0.3, loss="hinge", kernel=kernel, class_weight="balanced"
        )
        clf.fit(X, y, weight)
        assert "nu_" in attributes(clf)
        assert is_found(clf, X, y, weight, exact=exact, rng=rng)
    squared = MaxMarginClassifier(C=0.3).fit(X, y)
    squared.nu_ = clf.nu_
    assert "nu_" in check_certificate(squared, X, y, exact=exact).reason


OF_ALL = {"one_class": True, "of": "another", "radius": np.nan, "nu": 0.5}
OBJECTIVES = {"objective": 1.0, "objective_bound": 1.0}
OF_NORMS = {"violation": 1.0, "widened_bound": 1.0, "violation_of_zero": 1.0}
OF_OTHERS = [
    (model, name, value)
    for model, fields in (
        (MaxMarginClassifier(), OF_ALL | OBJECTIVES | OF_NORMS),
        (DualLpRegressor(), OF_ALL | OBJECTIVES),
        (MaxMarginRegressor(), OF_ALL),
    )
    for name, value in fields.items()
]


@pytest.mark.parametrize(("model", "name", "value"), OF_OTHERS, ids=str)
def test_fields_of_other_kinds_of_fits_are_refused(model, name, value, rng):
    X, y = separable(rng, n=20)
    clf = fit(clone(model), X, y.astype(float))
    assert check_certificate(clf, X, y.astype(float))
    refused(clf, name, X, y.astype(float), **{name: value})


@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, None, "1"])
def test_a_radius_is_a_positive_number(radius, rng):
    X, y = separable(rng, n=20)
    refused(MaxMarginClassifier().fit(X, y), "radius", X, y, radius=radius)


def test_a_search_publishes_what_it_has_found(rng):
    """Its own attributes are read, the predictor and C among them, and those of the best one."""
    X, y = overlapping(rng)
    search = MaxMarginClassifierCV(Cs=3, cv=3, loss="hinge").fit(X, y)
    assert attributes(search) == ["nu_", "C_"]
    assert is_found(search, X, y)
    assert is_found(search.best_estimator_, X, y, holder=search)
    pipeline = make_pipeline(StandardScaler(), MaxMarginClassifierCV(Cs=2, cv=3))
    within = GridSearchCV(
        pipeline, {"maxmarginclassifiercv__fit_intercept": [True]}, cv=2
    )
    within.fit(X, y)
    assert is_found(within.best_estimator_[-1], X, y, holder=within, rng=rng)
    copied = pickle.loads(pickle.dumps(search))
    copied.best_estimator_ = pickle.loads(pickle.dumps(copied.best_estimator_))
    assert check_certificate(copied, X, y)
    for name in ("coef_", "intercept_", "certificate_", "dual_coef_"):
        for other in (1.5 * search.intercept_, None):
            copied = pickle.loads(pickle.dumps(search))
            setattr(copied, name, other)
            check = check_certificate(copied, X, y)
            assert not check
            assert name in check.reason


@exactly_or_not
def test_a_certificate_of_other_things_is_refused(exact, rng):
    X, y = near_a_feature(rng, 20)
    reg = fit(DualLpRegressor(random_state=0, epsilon=0.2), X, y)
    true, others = reg.certificate_, [None, "0.5", np.array([0.1]), [1.0]]
    lies = dict.fromkeys(
        ("norm", "norm_bound", "violation", "status", "weights"), others
    )
    lies["feasible"] = [1, 0, "True", [True], np.True_]
    for name, other in ((name, other) for name, some in lies.items() for other in some):
        reg.certificate_ = changed(true, **{name: other})
        check = check_certificate(reg, X, y, exact=exact)
        assert not check, (name, other)
        assert check.reason
    claim(reg, true)
    assert check_certificate(reg, X, y, exact=exact)


ABSENT = [
    (MaxMarginClassifier(C=1.0), "predict_proba", "CalibratedClassifierCV"),
    (MomentumMarginClassifier(), "predict_log_proba", "CalibratedClassifierCV"),
    (MaxMarginClassifierCV(), "probA_", "CalibratedClassifierCV"),
    (MaxMarginClassifier(kernel="rbf"), "coef_", "decision_function"),
    (MaxMarginRegressor(kernel="rbf", C=1.0), "coef_", "dual_coef_"),
    (MaxMarginOutlierDetector(kernel="rbf", nu=0.5), "fit_status_", "status_"),
    (MaxMarginClassifier(), "class_weight_", "compute_class_weight"),
]


@pytest.mark.parametrize(("model", "name", "way"), ABSENT, ids=lambda x: str(x)[:40])
def test_what_scikit_learn_has_and_this_has_not_names_the_way(model, name, way, rng):
    X, y = separable(rng, n=20)
    fitted = clone(model).fit(X, y)
    with pytest.raises(AttributeError, match=f"has no {name}: .*{way}"):
        getattr(fitted, name)
    for est in (fitted, pickle.loads(pickle.dumps(fitted)), clone(fitted)):
        assert not hasattr(est, name)
        assert name not in dir(est)
    with pytest.raises(AttributeError, match="has no attribute 'margins_'"):
        fitted.margins_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'certificate_'"):
        clone(model).status_  # noqa: B018
