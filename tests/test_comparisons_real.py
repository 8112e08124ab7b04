"""Survival data of the literature: what the report says, and what all pairs say."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.comparison_cases import pairs_of
from helpers.limit_cases import newton, terms_of_choices, terms_of_cox
from test_comparisons import statuses

from marginsvm import check_separability, check_separability_proof

TUTORIAL = Path(__file__).parents[1] / "examples" / "tutorial_survival.py"


def leukaemia():
    """Freireich's trial of 6-MP: treatment, log WBC; weeks, relapse."""
    text = TUTORIAL.read_text()
    groups = [
        np.array(re.search(f'{name} = """(.*?)"""', text, re.DOTALL)[1].split(), float)
        for name in ("TREATED", "PLACEBO")
    ]
    table = np.concatenate(groups).reshape(-1, 3)
    return np.column_stack([np.repeat([1.0, 0.0], 21), table[:, 2]]), table[:, :2]


def test_the_leukaemia_trial_has_the_estimate_of_the_books():
    """1.294 and 1.604 with Breslow's ties (Kleinbaum and Klein, Survival Analysis)."""
    X, y = leukaemia()
    report = check_separability(X, y, family="cox")
    assert (report.kind, report.reason) == ("overlap", "")
    same, early = np.zeros(42), np.full(42, -1.0)
    w = newton(terms_of_cox(X, y, same, early), 2, 0.0)
    np.testing.assert_allclose(w, [-1.294, 1.604], atol=5e-4)
    new, columns = report.remainder(X)
    assert len(np.unique(new)) == 1
    assert columns.tolist() == [0, 1]


@pytest.mark.parametrize("week", range(1, 6))
def test_no_relapse_on_treatment_so_far(week):
    """Up to the fifth week; the limit of log WBC is that within the groups."""
    X, y = leukaemia()
    y = np.column_stack([np.minimum(y[:, 0], week), y[:, 1] * (y[:, 0] <= week)])
    report = check_separability(X, y, family="cox")
    assert report.kind == "quasi-complete"
    assert statuses(report)[0] == "-inf"
    strata = report.remainder(X).strata
    assert not set(strata[:21]) & set(strata[21:])
    assert check_separability_proof(report, X, y, exact=True)
    if statuses(report)[1] != "finite":
        return
    new, columns = report.remainder(X)
    assert columns.tolist() == [1]
    early = np.full(42, -1.0)
    limit = newton(terms_of_cox(X[:, 1:], y, new, early), 1, 0.0)
    whole = newton(terms_of_cox(X, y, np.zeros(42), early), 2, 1e-9)
    np.testing.assert_allclose(whole[1], limit[0], atol=1e-4)


def of_lifelines():
    """Name, features, time and event, and further arguments of the package's data sets."""
    datasets = pytest.importorskip("lifelines.datasets")
    table = datasets.load_rossi()
    yield "rossi", table.drop(columns=["week", "arrest"]), table[["week", "arrest"]], {}
    table = datasets.load_larynx()
    yield "larynx", table.drop(columns=["time", "death"]), table[["time", "death"]], {}
    table = datasets.load_leukemia()
    yield "leukemia", table[["sex", "logWBC", "Rx"]], table[["t", "status"]], {}
    table = datasets.load_kidney_transplant()
    features = table.drop(columns=["time", "death"])
    yield "kidney", features, table[["time", "death"]], {"strata": table["age"] // 20}
    table = datasets.load_stanford_heart_transplants()
    table = table[table["start"] < table["stop"]]
    features = table[["age", "year", "surgery", "transplant"]]
    yield "heart", features, table[["stop", "event"]], {"entry": table["start"]}


def test_real_data_and_what_all_pairs_say():
    """The sets as they are, and the first of them, where some estimates do not exist."""
    kinds = []
    for name, X, y, more in of_lifelines():
        for n in (len(X), 60, 30, 15):
            rows = np.arange(min(n, len(X)))
            Z, times = X.to_numpy(float)[rows], y.to_numpy(float)[rows]
            some = {key: values.to_numpy()[rows] for key, values in more.items()}
            report = check_separability(Z, times, family="cox", **some)
            assert report.reason == "", name
            assert check_separability_proof(report, Z, times, exact=True), name
            kinds.append(report.kind)
            if len(rows) > 100:
                assert report.kind == "overlap"
                continue
            pairs = np.array(pairs_of("cox", times.tolist(), some))
            A = Z[pairs[:, 0]] - Z[pairs[:, 1]]
            labels = np.repeat([1, 0], len(A))
            other = check_separability(np.concatenate([A, -A]), labels, fit_intercept=False)
            assert (report.kind, statuses(report)) == (other.kind, statuses(other)), name
    assert {"overlap", "quasi-complete"} <= set(kinds)


def travel():
    """Greene's choices of 210 travellers among air, train, bus and car."""
    modechoice = pytest.importorskip("statsmodels.datasets").modechoice
    table = modechoice.load_pandas().data
    air, train, bus = (1.0 * (table["mode"] == mode) for mode in (1, 2, 3))
    X = np.column_stack([table["gc"], table["ttme"], table["hinc"] * air, air, train, bus])
    return X, table["choice"].to_numpy(float), table["individual"].to_numpy(int)


def test_the_choice_of_a_way_to_travel_has_the_estimate_of_the_book():
    """Greene, Econometric Analysis, 5th edition, table 21.11."""
    X, y, groups = travel()
    report = check_separability(X, y, family="conditional", groups=groups)
    assert (report.kind, report.reason) == ("overlap", "")
    assert check_separability_proof(report, X, y, exact=True)
    w = newton(terms_of_choices(X, y, groups), 6, 0.0)
    book = [-0.015501, -0.096125, 0.013287, 5.2074, 3.8690, 3.1632]
    np.testing.assert_allclose(w, book, rtol=5e-4)
    rows, columns = report.remainder(X)
    assert rows.all()
    assert columns.tolist() == list(range(6))


@pytest.mark.parametrize("mode", [3, 4, 5])
def test_a_way_to_travel_that_nobody_took(mode):
    """Its dummy goes to infinity, and the others tend to those of choices without it."""
    X, y, groups = travel()
    took = np.isin(groups, groups[(y == 1) & (X[:, mode] == 1)])
    X, y, groups = X[~took], y[~took], groups[~took]
    report = check_separability(X, y, family="conditional", groups=groups)
    assert report.kind == "quasi-complete"
    assert check_separability_proof(report, X, y, exact=True)
    expected = ["finite"] * 6
    expected[mode] = "-inf"
    if mode == 3:  # beside the income of those who fly: of both, the sum goes to minus infinity
        expected[2:4] = "inf", "inf"
    assert statuses(report) == expected
    rows, columns = report.remainder(X)
    np.testing.assert_array_equal(rows, X[:, mode] == 0)
    rest = newton(terms_of_choices(X[rows][:, columns], y[rows], groups[rows]), len(columns), 0.0)
    whole = newton(terms_of_choices(X, y, groups), 6, 1e-9)
    finite = [j for j, status in enumerate(expected) if status == "finite"]
    assert columns.tolist() == finite
    np.testing.assert_allclose(whole[finite], rest, atol=1e-4)
