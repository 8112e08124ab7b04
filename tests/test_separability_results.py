"""check_separability of models that other packages have fitted."""

import warnings

import numpy as np
import pandas as pd
import pytest

from marginsvm import check_separability, check_separability_proof


@pytest.fixture
def frame(rng):
    """A mark that only some with an event have, who come first; and one of those without."""
    a = rng.integers(-2, 3, 80)
    event = (a + rng.logistic(size=80) > 0).astype(int)
    mark = np.where(event == 1, rng.random(80) < 0.3, 0)
    out = pd.DataFrame({"a": a, "mark": mark}).astype(float)
    time = np.where(mark == 1, rng.permutation(80) + 1, rng.permutation(80) + 101) * 1.0
    zero = np.where(event == 0, np.cumsum(event == 0) % 2, 1.0 - event)
    more = {"event": event, "one": 1.0, "zero": zero, "time": time, "centre": np.arange(80) % 2}
    return out.assign(**more)


def quietly(work):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def infinite(report):
    return {c.name: c.status for c in report.coefficients if c.status != "finite"}


@pytest.fixture
def sm():
    return quietly(lambda: pytest.importorskip("statsmodels.api"))


FEW_STEPS = {"disp": 0, "method": "bfgs", "maxiter": 5}


def fitted(sm, name, y, X, **options):
    if name == "GLM":
        return quietly(sm.GLM(y, X, **options).fit)
    model = getattr(sm, name)(y, X, **options)
    return quietly(lambda: model.fit(**FEW_STEPS))


@pytest.mark.parametrize("name", ["Logit", "Probit", "GLM"])
def test_two_outcomes(name, frame, sm):
    options = {"family": sm.families.Binomial()} if name == "GLM" else {}
    fit = fitted(sm, name, frame.event, frame[["one", "a", "mark"]], **options)
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
    used = frame.index > 2
    options = {"family": sm.families.Binomial(), "freq_weights": 1.0 * used}
    report = check_separability(fitted(sm, "GLM", y, frame[["one", "a", "mark"]], **options))
    assert infinite(report) == {"mark": "+inf"}
    np.testing.assert_array_equal(report.used, used)


@pytest.mark.parametrize("name", ["Poisson", "NegativeBinomial", "GLM"])
def test_counts(name, frame, sm):
    options = {"family": sm.families.Poisson()} if name == "GLM" else {}
    X, offset = frame[["one", "a", "zero"]], np.full(80, 0.5)
    report = check_separability(fitted(sm, name, 2 * frame.event, X, offset=offset, **options))
    assert infinite(report) == {"zero": "-inf"}
    assert "offset changes nothing" in repr(report)


def many_classes(frame, sm):
    y = np.where(frame.event == 0, "none", np.where(frame.index % 2, "mild", "severe"))
    return sm.MNLogit(y, frame[["one", "a", "mark"]])


def ordered_classes(frame, sm):
    model = pytest.importorskip("statsmodels.miscmodels.ordinal_model").OrderedModel
    y = pd.Series(np.where(frame.mark == 1, "c", np.array(["a", "b", "c"])[frame.index % 3]))
    y = y.astype(pd.CategoricalDtype(["b", "a", "c"], ordered=True))
    return model(y, frame[["a", "mark"]], distr="logit")


def survival(frame, sm):
    ones = np.ones(80)
    return sm.PHReg(frame.time, frame[["a", "mark"]], status=ones, strata=frame.centre)


@pytest.mark.parametrize(
    ("build", "names", "expected"),
    [
        (many_classes, None, {"none: mark": "-inf"}),
        (ordered_classes, ["b|a", "a|c", "a", "mark"], {"mark": "+inf"}),
        (survival, ["a", "mark"], {"mark": "+inf"}),
    ],
)
def test_classes_and_times(build, names, expected, frame, sm):
    model = quietly(lambda: build(frame, sm))
    report = check_separability(quietly(lambda: model.fit(**FEW_STEPS)))
    assert report.kind == "quasi-complete"
    assert infinite(report) == expected
    assert names in (None, [c.name for c in report.coefficients])


def test_choices(frame, sm):
    conditional = pytest.importorskip("statsmodels.discrete.conditional_models").ConditionalLogit
    groups, X = np.arange(80) // 4, frame[["a", "mark"]]
    model = quietly(lambda: conditional(frame.event, X, groups=groups))
    report = check_separability(quietly(lambda: model.fit(disp=0, maxiter=5)))
    direct = check_separability(X, frame.event, family="conditional", groups=groups)
    assert report.coefficients == direct.coefficients
    assert "mark" in infinite(report)


def test_lifelines(frame):
    fitter = quietly(lambda: pytest.importorskip("lifelines")).CoxPHFitter
    d = frame[["a", "mark", "time", "centre"]].assign(event=1, weight=1.0, begin=0.0)
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
