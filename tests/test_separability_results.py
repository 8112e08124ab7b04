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


def glm(frame, sm, family, y, X, **options):
    return sm.GLM(y, frame[X], family=getattr(sm.families, family)(), **options)


def ordered_classes(frame, sm):
    model = pytest.importorskip("statsmodels.miscmodels.ordinal_model").OrderedModel
    y = pd.Series(np.where(frame.mark == 1, "c", np.array(["a", "b", "c"])[frame.index % 3]))
    y = y.astype(pd.CategoricalDtype(["b", "a", "c"], ordered=True))
    return model(y, frame[["a", "mark"]], distr="logit")


def classes(frame):
    return np.where(frame.event == 0, "none", np.where(frame.index % 2, "mild", "severe"))


def choices(frame, sm):
    conditional = pytest.importorskip("statsmodels.discrete.conditional_models").ConditionalLogit
    return conditional(frame.event, frame[["a", "mark"]], groups=np.arange(80) // 4)


MARK, ZERO, OFFSET = ["one", "a", "mark"], ["one", "a", "zero"], {"offset": np.full(80, 0.5)}
TIMES = {"status": np.ones(80)}
MODELS = {  # what is fitted; the names of coefficients and those that are infinite
    "Logit": (lambda f, sm: sm.Logit(f.event, f[MARK]), MARK, {"mark": "+inf"}),
    "Probit": (lambda f, sm: sm.Probit(f.event, f[MARK]), MARK, {"mark": "+inf"}),
    "Binomial": (lambda f, sm: glm(f, sm, "Binomial", f.event, MARK), MARK, {"mark": "+inf"}),
    "Poisson": (lambda f, sm: sm.Poisson(2 * f.event, f[ZERO], **OFFSET), ZERO, {"zero": "-inf"}),
    "NegativeBinomial": (
        lambda f, sm: sm.NegativeBinomial(2 * f.event, f[ZERO], **OFFSET),
        ZERO,
        {"zero": "-inf"},
    ),
    "Poisson, GLM": (
        lambda f, sm: glm(f, sm, "Poisson", 2 * f.event, ZERO, **OFFSET),
        ZERO,
        {"zero": "-inf"},
    ),
    "MNLogit": (lambda f, sm: sm.MNLogit(classes(f), f[MARK]), None, {"none: mark": "-inf"}),
    "OrderedModel": (ordered_classes, ["b|a", "a|c", "a", "mark"], {"mark": "+inf"}),
    "PHReg": (
        lambda f, sm: sm.PHReg(f.time, f[["a", "mark"]], strata=f.centre, **TIMES),
        ["a", "mark"],
        {"mark": "+inf"},
    ),
    "ConditionalLogit": (choices, ["a", "mark"], {"mark": "+inf"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_statsmodels(name, frame, sm):
    build, names, expected = MODELS[name]
    model = quietly(lambda: build(frame, sm))
    few = {} if "GLM" in name or name == "Binomial" else {"disp": 0, "method": "bfgs", "maxiter": 5}
    fit = quietly(lambda: model.fit(**few))
    report = check_separability(fit)
    assert report.kind == "quasi-complete"
    assert infinite(report) == expected
    assert names in (None, [c.name for c in report.coefficients])
    assert ("offset changes nothing" in repr(report)) == (names is ZERO)
    if names is MARK:
        np.testing.assert_array_equal(report.separated, frame.mark == 1)
        exog, endog = fit.model.exog, np.asarray(fit.model.endog)
        if name == "Binomial":
            endog = np.column_stack([endog, 1 - endog])
        assert check_separability_proof(report, exog, endog, exact=True)
        rows, columns = report.remainder(exog)
        assert columns.tolist() == [0, 1]
        assert rows.sum() == (frame.mark == 0).sum()


def test_trials_of_a_glm(frame, sm):
    y = np.column_stack([2 * frame.event, 2 - 2 * frame.event])
    used = frame.index > 2
    model = glm(frame, sm, "Binomial", y, MARK, freq_weights=1.0 * used)
    report = check_separability(quietly(model.fit))
    assert infinite(report) == {"mark": "+inf"}
    np.testing.assert_array_equal(report.used, used)


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
