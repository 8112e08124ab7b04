"""check_separability of models that other packages have fitted."""

import warnings

import numpy as np
import pandas as pd
import pytest

from marginsvm import check_separability, check_separability_proof


@pytest.fixture
def frame(rng):
    """A feature, and a mark that only some of those with an event have."""
    a = rng.integers(-2, 3, 80)
    event = (a + rng.logistic(size=80) > 0).astype(int)
    mark = np.where(event == 1, rng.random(80) < 0.3, 0)
    out = pd.DataFrame({"a": a, "mark": mark}).astype(float)
    return out.assign(event=event, one=1.0)


def quietly(fit):
    """A fit that does not converge says so in many ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


def infinite(report):
    return {c.name: c.status for c in report.coefficients if c.status != "finite"}


@pytest.fixture
def sm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("statsmodels.api")


@pytest.mark.parametrize("name", ["Logit", "Probit", "GLM"])
def test_two_outcomes(name, frame, sm):
    options = {"family": sm.families.Binomial()} if name == "GLM" else {}
    model = getattr(sm, name)(frame.event, frame[["one", "a", "mark"]], **options)
    fit = quietly(lambda: model.fit(**({} if name == "GLM" else {"disp": 0, "method": "bfgs"})))
    report = check_separability(fit)
    assert infinite(report) == {"mark": "+inf"}
    assert [c.name for c in report.coefficients] == ["one", "a", "mark"]
    np.testing.assert_array_equal(report.separated, frame.mark == 1)
    exog, endog = fit.model.exog, np.asarray(fit.model.endog)
    if name == "GLM":
        endog = np.column_stack([endog, 1 - endog])
    assert check_separability_proof(report, exog, endog, exact=True)
    rows, columns = report.remainder(exog)
    assert columns.tolist() == [0, 1]
    assert rows.sum() == (frame.mark == 0).sum()


def test_trials_of_a_glm(frame, sm):
    y = np.column_stack([2 * frame.event, 2 - 2 * frame.event])
    weights = np.where(frame.index < 3, 0.0, 1.0)
    model = sm.GLM(y, frame[["one", "a", "mark"]], sm.families.Binomial(), freq_weights=weights)
    report = check_separability(quietly(model.fit))
    assert infinite(report) == {"mark": "+inf"}
    assert not report.used[:3].any()
    assert report.used[3:].all()


@pytest.mark.parametrize("name", ["Poisson", "NegativeBinomial", "GLM"])
def test_counts(name, frame, sm):
    counts = frame.event * 2
    X, offset = frame[["one", "a"]].assign(mark=1.0 - frame.event), np.full(80, 0.5)
    X.loc[frame.event == 0, "mark"] = np.arange((frame.event == 0).sum()) % 2
    options = {"family": sm.families.Poisson()} if name == "GLM" else {}
    model = getattr(sm, name)(counts, X, offset=offset, **options)
    fit = quietly(lambda: model.fit(**({} if name == "GLM" else {"disp": 0, "maxiter": 5})))
    report = check_separability(fit)
    assert infinite(report) == {"mark": "-inf"}
    assert "offset changes nothing" in repr(report)


def test_many_classes(frame, sm):
    y = np.where(frame.event == 0, "none", np.where(frame.index % 2, "mild", "severe"))
    fit = quietly(lambda: sm.MNLogit(y, frame[["one", "a", "mark"]]).fit(disp=0, method="bfgs"))
    report = check_separability(fit)
    assert report.kind == "quasi-complete"
    assert infinite(report) == {"none: mark": "-inf"}


def test_ordered_classes(frame, sm):
    ordered = pytest.importorskip("statsmodels.miscmodels.ordinal_model").OrderedModel
    y = pd.Series(np.where(frame.mark == 1, "c", np.array(["a", "b", "c"])[frame.index % 3]))
    y = y.astype(pd.CategoricalDtype(["b", "a", "c"], ordered=True))
    model = quietly(lambda: ordered(y, frame[["a", "mark"]], distr="logit"))
    report = check_separability(quietly(lambda: model.fit(disp=0, method="bfgs", maxiter=5)))
    assert [c.name for c in report.coefficients] == ["b|a", "a|c", "a", "mark"]
    assert infinite(report) == {"mark": "+inf"}


def test_choices(frame, sm):
    conditional = pytest.importorskip("statsmodels.discrete.conditional_models").ConditionalLogit
    groups = np.arange(80) // 4
    model = quietly(lambda: conditional(frame.event, frame[["a", "mark"]], groups=groups))
    report = check_separability(quietly(lambda: model.fit(disp=0, maxiter=5)))
    direct = check_separability(
        frame[["a", "mark"]], frame.event, family="conditional", groups=groups
    )
    assert report.coefficients == direct.coefficients
    assert "mark" in infinite(report)


def times(frame, rng):
    """Those with the mark are the first of their strata to have their events."""
    time = np.where(frame.mark == 1, rng.permutation(80) + 1, rng.permutation(80) + 101)
    return frame.assign(time=time.astype(float), event=1, centre=np.arange(80) % 2).drop(
        columns="one"
    )


def test_survival(frame, sm, rng):
    d = times(frame, rng)
    model = sm.PHReg(d.time, d[["a", "mark"]], status=d.event, strata=d.centre)
    report = check_separability(quietly(model.fit))
    assert report.family == "cox"
    assert infinite(report) == {"mark": "+inf"}


def test_lifelines(frame, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitter = pytest.importorskip("lifelines").CoxPHFitter
    d = times(frame, rng).assign(weight=1.0, begin=0.0)
    fit = quietly(
        lambda: fitter(penalizer=0.1).fit(
            d, "time", "event", strata=["centre"], weights_col="weight", entry_col="begin"
        )
    )
    assert infinite(check_separability(fit, d)) == {"mark": "+inf"}
    plain = quietly(lambda: fitter(penalizer=0.1).fit(d[["a", "mark", "time"]], "time"))
    assert infinite(check_separability(plain, d[["a", "mark", "time"]])) == {"mark": "+inf"}
    with pytest.raises(ValueError, match="lifelines keeps no data"):
        check_separability(fit)


def test_models_that_are_not_known(frame, sm):
    with pytest.raises(ValueError, match="a fitted OLS is not known; known are Logit"):
        check_separability(sm.OLS(frame.event, frame[["one", "a"]]).fit())
    gamma = sm.GLM(frame.a + 3.0, frame[["one"]], family=sm.families.Gamma(sm.families.links.Log()))
    with pytest.raises(ValueError, match="a GLM of the family Gamma"):
        check_separability(quietly(gamma.fit))
