"""The kinds of separation: published answers, linear programs, and models that others fit."""

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.separation_cases import problem, proved, statuses
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from marginsvm import SeparationDisplay, check_separability, check_separability_proof
from marginsvm.separation import program


def konis(A):
    """Rows that can be positive at once: max sum of s, 0 <= s <= 1, A w >= s (Konis, 2007)."""
    n, d = A.shape
    solution = linprog(
        np.concatenate([np.zeros(d), -np.ones(n)]),
        A_ub=np.hstack([-A, np.eye(n)]),
        b_ub=np.zeros(n),
        bounds=[(None, None)] * d + [(0, 1)] * n,
    )
    return solution.x[d:] > 0.5


def groups(seed, n=60):
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 12, n)
    X = np.column_stack([np.eye(12)[levels], rng.integers(-5, 6, (n, 2))])
    y = (rng.random(n) < np.linspace(0.05, 0.95, 12)[levels]).astype(int)
    y[:2] = 0, 1
    return X, y


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_groups_against_a_linear_program(seed):
    X, y = groups(seed)
    A = np.column_stack([np.ones(len(X)), X]) * np.where(y == 1, 1.0, -1.0)[:, None]
    np.testing.assert_array_equal(proved(X, y).separated, konis(A))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_units_order_and_repetition_change_nothing(seed):
    rng = np.random.default_rng(seed)
    X, y = groups(seed, 40) if seed % 2 else problem(seed, "binomial", units=False)[:2]
    X = X[:, 1:] if seed % 2 else X
    report = check_separability(X, y)
    if "not identified" in statuses(report):
        X = X[:, [s != "not identified" for s in statuses(report)[1:]]]
        report = check_separability(X, y)
    units = 10.0 ** rng.uniform(-8, 8, X.shape[1])
    columns, rows = rng.permutation(X.shape[1]), rng.permutation(len(X))
    rows = np.concatenate([rows, rng.integers(0, len(X), 10)])
    Z = (X * units)[:, columns][rows]
    other = check_separability(
        np.column_stack([Z, Z @ rng.integers(-1, 2, Z.shape[1])]), y[rows]
    )
    assert other.kind == report.kind, other.reason
    np.testing.assert_array_equal(other.separated, report.separated[rows])
    names = [0, *(1 + columns)]
    assert statuses(other)[:-1] == [statuses(report)[j] for j in names]
    assert statuses(other)[-1] == "not identified"


@pytest.fixture
def table():
    folder = Path(os.environ.get("MARGINSVM_DATA", "")) / "separation"
    if not os.environ.get("MARGINSVM_DATA") or not folder.is_dir():
        pytest.skip(
            "MARGINSVM_DATA does not name a folder with the tables of separation/"
        )
    return lambda name: pd.read_csv(folder / f"{name}.csv")


def with_dummies(data):
    parts = [data[[c for c in data if c.startswith("x")]]]
    parts += [pd.get_dummies(data[c], prefix=c) for c in data if c.startswith("id")]
    return pd.concat(parts, axis=1).astype(float)


@pytest.mark.parametrize(
    "number", ["01", "02", "05", "07", "09", "10", "12", "14", "16"]
)
@pytest.mark.parametrize("family", ["poisson", "poisson, sparse", "negative_binomial"])
def test_the_labelled_sets_of_ppmlhdfe(number, family, table, monkeypatch):
    data = table(f"poisson_{number}")
    X, (family, *sparse) = with_dummies(data), family.split(", ")
    if sparse:
        monkeypatch.setattr(program, "DENSE", -1)
        X = sp.csr_array(X.to_numpy())
    report = proved(X, data.y, family=family)
    assert report.family == family
    assert (
        "Firth: brglm2 in R" in " ".join(repr(report).split())
        or not report.separated.any()
    )
    np.testing.assert_array_equal(report.separated, data.separated == 1)
    assert report.kind == ("quasi-complete" if data.separated.any() else "overlap")


def test_endometrial_cancer(table):
    data = table("endometrial")
    report = proved(data[["NV", "PI", "EH"]], data.HG)
    assert report.kind == "quasi-complete"
    assert dict(report.coefficients)["NV"] == "+inf"
    assert statuses(report).count("finite") == 3
    np.testing.assert_array_equal(report.separated, data.NV == 1)
    text = repr(report)
    assert text.startswith("Quasi-complete separation: 13 of 79 examples")
    assert "Infinite, for HG = 1: NV." in text


def test_lizards(table):
    data = table("lizards")
    X = pd.get_dummies(data[["height", "diameter", "light", "time"]], drop_first=True)
    report = proved(X, data[["grahami", "opalinus"]])
    assert report.estimate_exists is True
    assert set(statuses(report)) == {"finite"}


def standardised(X, y):
    return (X - X.mean(axis=0)) / X.std(axis=0), y


IRIS, CANCER = load_iris(return_X_y=True), load_breast_cancer(return_X_y=True)
KNOWN = {
    "setosa, versicolor": ((IRIS[0][:100], IRIS[1][:100]), "complete", 100),
    "versicolor, virginica": ((IRIS[0][50:], IRIS[1][50:]), "overlap", 0),
    "iris": (IRIS, "quasi-complete", 50),
    "breast cancer": (CANCER, "complete", 569),
    "breast cancer, standardised": (standardised(*CANCER), "complete", 569),
    "wine": (load_wine(return_X_y=True), "complete", 178),
}


RNG = np.random.default_rng(0)
HARD = {
    "identifiers": RNG.integers(0, 10**12, 100).astype(float),
    "nanoseconds since 1970": 1.7e18 + RNG.integers(0, 10**16, 100),
    "a column next to the intercept": 1e15 + np.arange(100.0),
    "a constant": np.full(100, 3.0),
    "1e-150": 1e-150 * RNG.standard_normal(100),
}
for name, column in HARD.items():
    beside = (
        np.column_stack([RNG.standard_normal(100), column]),
        RNG.integers(0, 2, 100),
    )
    KNOWN[name] = beside, "overlap", 0
for size in ((5000, 100), (20_000, 9)):
    random_labels = RNG.standard_normal(size), RNG.integers(0, 2, size[0])
    KNOWN[f"random labels {size}"] = random_labels, "overlap", 0


@pytest.mark.parametrize(("data", "kind", "n_separated"), KNOWN.values(), ids=KNOWN)
def test_sets_that_everybody_knows_and_hard_columns(data, kind, n_separated):
    report = proved(*data)
    assert (report.kind, report.separated.sum(), report.exact) == (
        kind,
        n_separated,
        True,
    )
    assert report.separable is (kind == "complete")


def test_names_and_tables():
    X = pd.DataFrame({"dose": [0.0, 1.0, 2.0, 1.0], "copy": [0.0, 2.0, 4.0, 2.0]})
    report = check_separability(X, ["no", "no", "yes", "yes"])
    frame = report.to_frame()
    assert list(frame.index) == ["(intercept)", "dose", "copy"]
    assert list(frame["status"]) == ["-inf", "+inf", "not identified"]
    assert frame["direction"]["dose"] > 0 == frame["direction"]["copy"]
    assert "copy         not identified" in repr(report)
    named = check_separability(X.to_numpy(), [0, 0, 1, 1], feature_names=["a", "b"])
    assert [c.name for c in named.coefficients] == ["(intercept)", "a", "b"]
    many = check_separability(X, ["a", "b", "c", "c"], fit_intercept=False)
    assert [c.name for c in many.coefficients] == [
        "b: dose",
        "b: copy",
        "c: dose",
        "c: copy",
    ]


def test_rounding_is_not_taken_for_separation():
    """Points on a line up to rounding, with a class on either side of it in the last digit."""
    t = np.linspace(0.1, 0.9, 9)
    X, y = np.column_stack([t, t / 3.0]), np.arange(9) % 2
    X[:, 1] += 1e-16 * np.where(y == 1, 1.0, -1.0)
    report = check_separability(X, y)
    assert report.kind != "complete"
    assert not report.separated.any()


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize(("every", "against"), [(25, 0), (25, 6), (5, 0)])
def test_some_of_many_rows_are_enough(every, against, family, monkeypatch, rng):
    """A mark: all that have it with the outcome that it stands for, or all but six."""
    monkeypatch.setattr(program, "FEW", 100)
    X, mark = rng.integers(-3, 4, (3000, 3)) * 1.0, np.arange(3000) % every == 0
    X[:, 0] = rng.standard_normal(3000)
    y = rng.integers(0, 3, 3000 if family == "poisson" else (3000, 2))
    y[mark] = 0 if family == "poisson" else (2, 0)
    y[np.flatnonzero(mark)[:against]] = 2 if family == "poisson" else (1, 1)
    report = proved(
        np.column_stack([X, mark * rng.random(3000)]), y, exact=[False], family=family
    )
    np.testing.assert_array_equal(report.separated, mark & (against == 0))
    sign = "finite" if against else "-inf" if family == "poisson" else "+inf"
    assert statuses(report) == ["finite"] * 4 + [sign]


def test_the_picture_of_a_report():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [2.0, 2.0]])
    report = check_separability(X, ["a", "a", "b", "b"])
    display = SeparationDisplay.from_report(report)
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == [
        "(intercept)",
        "x0",
        "x1",
    ]
    assert {t.get_text() for t in display.ax_.texts} >= {"infinite, of either sign"}
    other = SeparationDisplay.from_report(
        report, X, ["a", "a", "b", "b"], ax=display.ax_
    )
    assert other.figure_ is display.figure_
    (rings,) = (line for line in other.ax_.lines if line.get_label() == "separated")
    np.testing.assert_array_equal(rings.get_xydata(), X[[0, 3]])
    with pytest.raises(ValueError, match="two features"):
        SeparationDisplay.from_report(report, X[:, :1], [0, 0, 1, 1])


def test_columns_that_r_would_leave_out_are_named(rng):
    """Beside a constant, 2^40 leaves 1e-12 of a column: it is kept, and named."""
    x = rng.integers(-3, 4, (40, 1)) + 2.0**40
    report = check_separability(x, x[:, 0] > 2.0**40)
    assert (report.kind, statuses(report)) == ("complete", ["-inf", "+inf"])
    assert report.nearly_collinear == ("x0",)
    assert "R would leave out x0" in repr(report)
    other = check_separability(x - 2.0**40, x[:, 0] > 2.0**40)
    assert other.nearly_collinear == ()
    assert "R would" not in repr(other)


def test_signs_of_many_coefficients_are_those_of_single_rows():
    """Levels of a factor of which all counts are 0: too many for combinations of rows."""
    X, y = (
        np.eye(160)[np.repeat(np.arange(160), 2)],
        np.repeat(np.arange(160) % 4 == 0, 2) * 1,
    )
    report = check_separability(X, y, family="poisson", fit_intercept=False)
    assert statuses(report) == ["finite", "-inf", "-inf", "-inf"] * 40
    assert (report.kind, report.reason) == ("quasi-complete", "")


def test_separation_by_the_last_digits_is_decided_in_integers():
    """A part of 1e-13 of a column tells the classes apart, which is far above its rounding."""
    t = np.linspace(0, 1, 40)
    y = np.arange(40) % 2
    X = np.column_stack([t, t + 1e-13 * np.where(y == 1, 1, -1)])
    report = proved(X, y, exact=[True])
    assert (report.kind, report.separable) == ("complete", True)


def test_more_features_than_examples(rng):
    X, y = rng.standard_normal((20, 500)), np.arange(20) % 2
    report = proved(X, y)
    assert report.kind == "complete"
    assert statuses(report).count("not identified") == 481


@pytest.mark.parametrize("seed", range(8))
def test_two_sets_of_dummies_dense_and_sparse(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, levels = int(rng.integers(200, 500)), rng.integers(3, 30, 2)
    ids = [rng.integers(0, k, n) for k in levels]
    X = np.column_stack(
        [rng.standard_normal((n, 2)).round(1), *map(np.eye(30).__getitem__, ids)]
    )
    score = (
        X[:, :2].sum(axis=1) + sum(2.0 * rng.standard_normal(30)[i] for i in ids) - 1.0
    )
    y = (
        rng.poisson(np.exp(score))
        if seed % 2
        else (rng.logistic(size=n) < score).astype(int)
    )
    family = "poisson" if seed % 2 else "binomial"
    dense = proved(X, y, exact=[False], family=family)
    monkeypatch.setattr(program, "DENSE", -1)
    sparse = proved(sp.csr_array(X), y, exact=[False], family=family)
    assert sparse.kind == dense.kind != "undecided"
    np.testing.assert_array_equal(sparse.separated, dense.separated)
    for one, other in zip(statuses(sparse), statuses(dense), strict=True):
        # signs that take more than one example stay open there
        assert one in (other, "inf")


def test_an_offset_changes_nothing_and_the_report_says_so():
    x, y = np.array([[0.0], [1.0], [1.0], [2.0]]), [0, 1, 1, 0]
    plain, shifted = (
        check_separability(x, y, family="poisson", offset=offset)
        for offset in (None, [0.0, 5.0, -3.0, 1.0])
    )
    assert shifted.coefficients == plain.coefficients
    assert "The offset changes nothing" in repr(shifted)
    assert "offset" not in repr(plain)


@pytest.fixture
def frame(rng):
    """A mark that only some with an event have, who come first; and one of those without."""
    a = rng.integers(-2, 3, 80)
    event = (a + rng.logistic(size=80) > 0).astype(int)
    mark = np.where(event == 1, rng.random(80) < 0.3, 0)
    out = pd.DataFrame({"a": a, "mark": mark}).astype(float)
    time = np.where(mark == 1, rng.permutation(80) + 1, rng.permutation(80) + 101) * 1.0
    zero = np.where(event == 0, np.cumsum(event == 0) % 2, 1.0 - event)
    more = {
        "event": event,
        "one": 1.0,
        "zero": zero,
        "time": time,
        "centre": np.arange(80) % 2,
    }
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
    y = pd.Series(
        np.where(frame.mark == 1, "c", np.array(["a", "b", "c"])[frame.index % 3])
    )
    y = y.astype(pd.CategoricalDtype(["b", "a", "c"], ordered=True))
    return model(y, frame[["a", "mark"]], distr="logit")


def classes(frame):
    return np.where(
        frame.event == 0, "none", np.where(frame.index % 2, "mild", "severe")
    )


def choices(frame, sm):
    conditional = pytest.importorskip(
        "statsmodels.discrete.conditional_models"
    ).ConditionalLogit
    return conditional(frame.event, frame[["a", "mark"]], groups=np.arange(80) // 4)


MARK, ZEROS, OFFSET = (
    ["one", "a", "mark"],
    ["one", "a", "zero"],
    {"offset": np.full(80, 0.5)},
)
TIMES = {"status": np.ones(80)}
MODELS = {  # what is fitted; the names of coefficients and those that are infinite
    "Logit": (lambda f, sm: sm.Logit(f.event, f[MARK]), MARK, {"mark": "+inf"}),
    "Probit": (lambda f, sm: sm.Probit(f.event, f[MARK]), MARK, {"mark": "+inf"}),
    "Binomial": (
        lambda f, sm: glm(f, sm, "Binomial", f.event, MARK),
        MARK,
        {"mark": "+inf"},
    ),
    "Poisson": (
        lambda f, sm: sm.Poisson(2 * f.event, f[ZEROS], **OFFSET),
        ZEROS,
        {"zero": "-inf"},
    ),
    "NegativeBinomial": (
        lambda f, sm: sm.NegativeBinomial(2 * f.event, f[ZEROS], **OFFSET),
        ZEROS,
        {"zero": "-inf"},
    ),
    "Poisson, GLM": (
        lambda f, sm: glm(f, sm, "Poisson", 2 * f.event, ZEROS, **OFFSET),
        ZEROS,
        {"zero": "-inf"},
    ),
    "MNLogit": (
        lambda f, sm: sm.MNLogit(classes(f), f[MARK]),
        None,
        {"none: mark": "-inf"},
    ),
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
    few = (
        {}
        if "GLM" in name or name == "Binomial"
        else {"disp": 0, "method": "bfgs", "maxiter": 5}
    )
    fit = quietly(lambda: model.fit(**few))
    report = check_separability(fit)
    assert report.kind == "quasi-complete"
    assert infinite(report) == expected
    assert names in (None, [c.name for c in report.coefficients])
    assert ("offset changes nothing" in repr(report)) == (names is ZEROS)
    if names is MARK:
        np.testing.assert_array_equal(report.separated, frame.mark == 1)
        exog, endog = fit.model.exog, np.asarray(fit.model.endog)
        if name == "Binomial":
            endog = np.column_stack([endog, 1 - endog])
        assert check_separability_proof(report, exog, endog, exact=True)
        rows, columns = report.remainder(exog)
        assert columns.tolist() == [0, 1]
        assert rows.sum() == (frame.mark == 0).sum()


def of_formulaic(formula, frame, sm):
    reason = "pip install marginsvm[test-all]"
    formulaic = pytest.importorskip("formulaic", reason=reason)
    return formulaic.model_matrix(formula, frame)


def of_patsy(formula, frame, sm):
    return pytest.importorskip("patsy").dmatrix(formula, frame)


def of_statsmodels(formula, frame, sm):
    return sm.add_constant(frame[formula.split(" + ")])


def of_frame(formula, frame, sm):
    """The constant comes last, and is not 1."""
    return frame[formula.split(" + ")].assign(const=0.1)


def of_csr(formula, frame, sm):
    return sp.csr_array(of_statsmodels(formula, frame, sm).to_numpy(float))


@pytest.mark.parametrize(
    "form", [of_formulaic, of_patsy, of_statsmodels, of_frame, of_csr]
)
@pytest.mark.parametrize(
    ("family", "formula"), [("Logit", "a + mark"), ("Poisson", "a + zero")]
)
def test_a_constant_column_is_the_intercept(form, family, formula, frame, sm):
    """No other is added, so that the advised fit is the limit of the fit to all."""
    X, y = form(formula, frame, sm), 1 + (family == "Poisson")
    y, model = y * frame.event.to_numpy(), getattr(sm, family)
    asked = {"family": None if family == "Logit" else "poisson"}
    report = check_separability(X, y, **asked)
    without = check_separability(X, y, fit_intercept=False, **asked)
    assert report.coefficients == without.coefficients
    np.testing.assert_array_equal(report.direction.coef, without.direction.coef)
    np.testing.assert_array_equal(report.separated, without.separated)
    rows, columns = report.remainder(X)
    np.testing.assert_array_equal(rows, without.remainder(X).rows)
    np.testing.assert_array_equal(columns, without.remainder(X).columns)
    assert f"{report.constant} is constant: it is the intercept" in repr(report)
    assert without.constant is None
    assert check_separability_proof(report, X, y, exact=True)
    assert not check_separability_proof(replace(report, constant="a"), X, y)
    table = np.asarray(X.toarray() if sp.issparse(X) else X, float)
    fit = {"disp": 0, "maxiter": 25}
    whole = quietly(lambda: model(y, table).fit(**fit))
    advised = model(y[rows], table[rows][:, columns]).fit(**fit)
    assert len(columns) == 2
    np.testing.assert_allclose(advised.params, whole.params[columns], rtol=1e-6)


def test_a_constant_among_the_examples_that_count_is_the_intercept():
    X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [2.0, 4.0]])
    y, weight = [0, 1, 0, 1, 1], [1, 1, 1, 1, 0]
    assert check_separability(X, y, sample_weight=weight).constant == "x0"
    assert check_separability(X, y).constant is None
    both = np.column_stack([X[:4], np.zeros(4), np.full(4, 5.0)])
    report = check_separability(both, y[:4])
    assert (report.constant, report.fit_intercept) == ("x0", False)
    unidentified = [c.name for c in report.coefficients if c.status == "not identified"]
    assert unidentified == ["x2", "x3"]


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
            d,
            "time",
            "event",
            strata=["centre"],
            weights_col="weight",
            entry_col="begin",
        )
    )
    assert infinite(check_separability(fit, d)) == {"mark": "+inf"}
    plain = quietly(lambda: fitter(penalizer=0.1).fit(d[["a", "mark", "time"]], "time"))
    assert infinite(check_separability(plain, d[["a", "mark", "time"]])) == {
        "mark": "+inf"
    }
    with pytest.raises(ValueError, match="lifelines keeps no data"):
        check_separability(fit)


def test_models_that_are_not_known(frame, sm):
    with pytest.raises(ValueError, match="a fitted OLS is not known; known are Logit"):
        check_separability(sm.OLS(frame.event, frame[["one", "a"]]).fit())
    gamma = sm.GLM(
        frame.a + 3.0, frame[["one"]], family=sm.families.Gamma(sm.families.links.Log())
    )
    with pytest.raises(ValueError, match="a GLM of the family Gamma"):
        check_separability(quietly(gamma.fit))


@pytest.fixture
def trial():
    """Nobody of the second arm has died; stages grow with the age."""
    died, age = [0, 1, 0, 1, 0, 0, 0, 0, 1, 0], [34, 51, 29, 40, 45, 38, 60, 33, 36, 44]
    arm, patients = np.repeat(["a", "b", "a"], [4, 4, 2]), [f"p{i}" for i in range(10)]
    return pd.DataFrame({"died": died, "arm": arm, "age": age}, index=patients)


def single(frame, sm):
    return sm.Logit.from_formula("died ~ arm + age", frame)


def rates(frame, sm):
    """A rate of a half must be fitted, and single trials as labels."""
    frame = frame.assign(died=frame.died.where(frame.age != 44, 0.5))
    return sm.GLM.from_formula("died ~ arm + age", frame, family=sm.families.Binomial())


def stages(frame, sm):
    stage = np.where(frame.arm == "b", "low", np.where(frame.died, "top", "mid"))
    y = pd.Series(stage, frame.index, name="stage")
    return sm.MNLogit(y, sm.add_constant(frame[["age"]]))


def deaths(frame, sm):
    return sm.Poisson.from_formula("died ~ arm + age", frame)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (single, "4 of 10 examples are predicted perfectly (p4, p5, p6, p7)"),
        (single, "Infinite, for died = 1: arm[T.b]."),
        (rates, "4 of 10 examples are predicted perfectly (p4, p5, p6, p7)"),
        (rates, "Infinite, for died: arm[T.b]."),
        (stages, "No separation"),
        (deaths, "perfectly (p4, p5, p6, p7)"),
        (deaths, "Infinite: arm[T.b]."),
    ],
)
def test_reports_of_statsmodels_name_outcome_rows_and_columns(build, said, trial, sm):
    model = build(trial, sm)
    fit = quietly(lambda: model.fit(maxiter=5))
    assert said in " ".join(repr(check_separability(fit)).split())
    assert repr(check_separability(model)) == repr(check_separability(fit))


def test_rows_and_columns_of_frames_have_their_names(trial):
    X = trial[["age"]].assign(b=1.0 * (trial.arm == "b"))
    for y in (trial.died, trial.died.to_numpy(), trial.died.tolist()):
        report = proved(X, y)
        assert "perfectly (p4, p5, p6, p7)" in repr(report)
        named = "died" if hasattr(y, "index") and not isinstance(y, list) else "y"
        assert f"Infinite, for {named} = 1: b." in repr(report)
    words = trial.died.map({0: "alive", 1: "dead"}).to_numpy()
    report = proved(X.to_numpy(), words)
    assert "perfectly (4, 5, 6, 7)" in repr(report)
    assert "Infinite, for y = dead: x1." in repr(report)
    three = np.where(X.b == 1, "z", words)
    assert "Infinite, against y = alive: " in repr(proved(X, three))


def test_names_of_patsy(trial):
    dmatrices = pytest.importorskip("patsy").dmatrices
    y, X = dmatrices("died ~ arm + age", trial)
    report = check_separability(X, y)
    assert [c.name for c in report.coefficients] == ["Intercept", "arm[T.b]", "age"]
    assert check_separability_proof(report, X, y, exact=True)


def test_words_as_categories_in_alphabetical_order_are_warned_of(trial):
    X, y = trial[["age"]], np.array(["low", "mid", "high"])[np.arange(10) % 3]
    with pytest.warns(UserWarning, match="alphabetical order, high < low < mid"):
        report = check_separability(X, y, family="ordinal")
    assert check_separability_proof(report, X, y)
    levels = pd.Categorical(y, ["low", "mid", "high"], ordered=True)
    report = proved(X, levels, family="ordinal")
    assert [c.name for c in report.coefficients] == ["low|mid", "mid|high", "age"]
    rest, codes = report.remainder(X), report.remainder(X.to_numpy())
    np.testing.assert_array_equal(rest.lower, codes.lower)
    np.testing.assert_array_equal(rest.lower[:3], [0, 1, 2])


def test_ordinal_reports_say_which_way_coefficients_go():
    report = check_separability([[0.0], [1.0], [2.0]], [1, 2, 3], family="ordinal")
    assert "Infinite, for higher categories: 1|2, 2|3, x0." in repr(report)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("family", "y"),
    [
        ("binomial", [0, 1, 0, 1]),
        ("multinomial", [0, 1, 2, 1]),
        ("ordinal", [0, 1, 2, 1]),
        ("poisson", [0, 1, 2, 1]),
        ("negative_binomial", [0, 1, 2, 1]),
        ("cox", [[1, 1], [2, 0], [3, 1], [4, 1]]),
        ("conditional", [1, 0, 0, 1]),
    ],
)
def test_a_model_without_columns_is_an_overlap(family, y, fit_intercept):
    more = {"groups": [0, 0, 1, 1]} if family == "conditional" else {}
    X = np.zeros((4, 0))
    report = check_separability(
        X, y, family=family, fit_intercept=fit_intercept, **more
    )
    assert (report.kind, report.exact) == ("overlap", True)
    assert check_separability_proof(report, X, y, exact=True)
    assert report.remainder(X) is not None


@pytest.mark.parametrize("k", [2, 3])
def test_many_rows_without_columns_are_an_overlap(k):
    X, y = np.zeros((3000, 0)), np.arange(3000) % k
    report = proved(X, y, fit_intercept=False)
    assert (report.kind, report.exact) == ("overlap", True)


def test_one_trial_each_in_two_columns(sm):
    won = np.array([0, 0, 0, 1, 1, 1])
    X = pd.DataFrame({"const": np.ones(6), "x": np.arange(6.0)})
    y = pd.DataFrame({"won": won, "lost": 1 - won})
    report = check_separability(sm.GLM(y, X, family=sm.families.Binomial()))
    assert "Infinite, for won = 1: const, x." in repr(report)


def test_control_characters_of_all_names_are_written_out():
    X = pd.DataFrame({"one\x1b": np.ones(4), "x": np.arange(4.0)})
    report = check_separability(X, pd.Series([0, 0, 1, 1], name="y\x1b"))
    assert "\\x1b is constant" in repr(report)
    assert "for y\\x1b = 1" in repr(report)
    assert "\x1b" not in repr(report)
