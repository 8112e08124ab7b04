"""Cox's regression and choices: pairs of subjects, which are never written out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.battery import over_seeds
from helpers.comparison_cases import pairs_of
from helpers.limit_cases import newton, terms_of_choices
from helpers.separation_cases import lies, proved, statuses

from marginsvm import check_separability, check_separability_proof
from marginsvm.separation import families
from marginsvm.separation.arguments import Arguments


def says(report):
    return report.kind, statuses(report)


@over_seeds(40)
def test_pairs_are_compared_at_times_of_risk(seed):
    """With ties, strata and late entries, both are at risk at each event time in between."""
    rng, n = np.random.default_rng(seed), 40
    time = rng.integers(1, 12, n) + rng.choice([0.0, 0.5])
    event, strata = rng.random(n) < 0.6, rng.integers(0, rng.integers(1, 4), n)
    entry = time - rng.integers(1, 12, n) if seed % 2 else np.full(n, -np.inf)
    more = {"strata": strata, "entry": entry} if seed % 2 else {"strata": strata}
    y = np.column_stack([time, event]).astype(float)
    data = Arguments(None, y, np.arange(n), n, [], False, more)
    winner, rival, _, since, until, _ = families.FAMILIES["cox"].pairs(data)
    assert set(zip(winner, rival, strict=True)) <= set(
        pairs_of("cox", y.tolist(), more)
    )
    times = np.unique(np.column_stack([strata, time])[event], axis=0)
    for i, j, a, b in zip(winner, rival, since, until, strict=True):
        for s, t in times[a : b + 1]:
            assert s == strata[i] == strata[j]
            assert max(entry[i], entry[j]) < t <= min(time[i], time[j])


def test_long_entries_are_not_written_out(monkeypatch):
    """Many who stay long, and many events of others who have only just entered."""
    n = 40
    time = np.append(np.arange(1.0, n + 1), np.full(n, 100.0))
    entry = np.append(np.arange(n) + 0.5, np.zeros(n))
    y, X = np.column_stack([time, np.arange(2 * n) < n]), np.arange(2.0 * n)[:, None]
    assert check_separability(X, y, family="cox", entry=entry).kind == "complete"
    monkeypatch.setattr(families, "MOST_PAIRS", 1000)
    report = check_separability(X, y, family="cox", entry=entry)
    assert report.kind == "undecided"
    assert "too many comparisons" in repr(report)
    y, groups = np.r_[np.ones(n), np.zeros(n)], np.zeros(2 * n)
    report = check_separability(X, y, family="conditional", groups=groups)
    assert "too many comparisons" in report.reason


def survival(seed, n=120, d=4):
    """Times with ties, strata and late entries; a mark that nobody with an event has."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, -1] = rng.integers(-2, 3, n)
    time = (
        np.ceil(8 * rng.exponential(np.exp(-0.5 * X[:, 0])))
        if seed % 2
        else rng.random(n)
    )
    event = rng.random(n) < 0.7
    X[:, 1] = rng.random(n) < 0.1
    event[X[:, 1] > 0] = False
    more = {}
    if seed % 3:
        more["strata"] = rng.integers(0, 2, n)
    if seed % 4 > 1:
        more["entry"] = time * rng.choice([0.0, 0.5], n)
    return X, np.column_stack([time, event]), more


@pytest.mark.parametrize("seed", range(4))
def test_what_changes_nothing(seed):
    X, y, more = survival(seed)
    report, n = check_separability(X, y, family="cox", **more), len(X)
    strata = np.array(["one", "two"])[more.get("strata", np.zeros(n, int))]
    later = {"entry": np.exp(more["entry"])} if "entry" in more else {}
    named = np.zeros(n, dtype={"names": ["died", "time"], "formats": [bool, float]})
    named["died"], named["time"] = y[:, 1] > 0, y[:, 0]
    others = {name: np.concatenate([v[:5], v]) for name, v in more.items()}
    others["sample_weight"] = np.r_[np.zeros(5), np.ones(n)]
    units = 2.0 ** np.array([40, -40, 0, 3])
    for Z, z, given in (
        (sp.csr_array(X), y, more),
        (X * units + [0, 2.0**-30, 0, 1e7], y, more),
        (X, y, more | {"offset": np.ones(n)}),
        (X, np.column_stack([np.exp(y[:, 0]), y[:, 1]]), more | later),
        (X, named, more),
        (X, pd.DataFrame(y, columns=["time", "event"]), more),
        (X, y, more | {"strata": np.column_stack([strata, strata])}),
        (X, y, {"entry": np.zeros(n)} | more),
        (np.r_[X[:5] + 9, X], np.r_[y[:5], y], others),
    ):
        other = check_separability(Z, z, family="cox", **given)
        assert says(other) == says(report)
        np.testing.assert_array_equal(other.separated[-n:], report.separated)
        assert not other.separated[:-n].any()


@pytest.mark.parametrize("mode", [3, 4, 5])
def test_a_way_to_travel_that_nobody_took(mode):
    """Of Greene's 210 travellers: its dummy goes to infinity, the others to choices without it."""
    datasets = pytest.importorskip("statsmodels.datasets")
    table = datasets.modechoice.load_pandas().data
    air, train, bus = (1.0 * (table["mode"] == mode) for mode in (1, 2, 3))
    X = np.column_stack(
        [table["gc"], table["ttme"], table["hinc"] * air, air, train, bus]
    )
    y, groups = table["choice"].to_numpy(float), table["individual"].to_numpy(int)
    took = np.isin(groups, groups[(y == 1) & (X[:, mode] == 1)])
    X, y, groups = X[~took], y[~took], groups[~took]
    report = proved(X, y, family="conditional", groups=groups)
    expected = ["finite"] * 6
    expected[mode] = "-inf"
    # beside the income of those who fly: of both, the sum goes to minus infinity
    if mode == 3:
        expected[2:4] = "inf", "inf"
    assert says(report) == ("quasi-complete", expected)
    rows, columns = report.remainder(X)
    np.testing.assert_array_equal(rows, X[:, mode] == 0)
    assert columns.tolist() == [
        j for j, status in enumerate(expected) if status == "finite"
    ]
    rest = newton(terms_of_choices(X[rows][:, columns], y[rows], groups[rows]), 0.0)
    whole = newton(terms_of_choices(X, y, groups), 1e-9)
    np.testing.assert_allclose(whole[columns], rest, atol=1e-4)


def test_decimals_that_differences_round():
    """0.1 + 0.2 is not 0.3: rows are those of the floats."""
    x = np.array([0.1, 0.2, 0.3, 0.7, 1.1, 2.2, 3.3])
    X, y = np.column_stack([x, x**2]), np.column_stack([x, np.ones(7)])
    assert proved(X, y, family="cox").kind == "complete"
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 6)).round(2)
    Z[:, 2] = np.arange(200) < 9
    y = np.column_stack([rng.random(200), np.arange(200) >= 9])
    report = proved(Z, y, family="cox")
    assert (report.kind, report.reason, statuses(report)[2]) == (
        "quasi-complete",
        "",
        "-inf",
    )


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("part", [1, 3])
def test_sums_of_decimals_and_of_thirds(offset, part):
    """Decimals are what they are meant to be; thirds have been rounded, as has their sum."""
    rng = np.random.default_rng(0)
    x = rng.random((200, 2)).round(2) / part
    X = np.column_stack([x[:, 0] + offset, x[:, 1], offset + x.sum(axis=1)])
    y = np.column_stack([rng.random(200), rng.random(200) < 0.6])
    report = check_separability(X, y, family="cox")
    assert says(report) == ("overlap", ["finite", "finite", "not identified"])
    assert report.exact == (part == 1)
    assert report.reason.startswith(
        "This holds up to the rounding of X" if part == 3 else ""
    )
    assert report.remainder(X).columns.tolist() == [0, 1]
    assert check_separability_proof(report, X, y)
    check = check_separability_proof(report, X, y, exact=True)
    assert bool(check) == (part == 1)
    assert part == 1 or "only up to rounding" in check.reason


def test_a_pair_that_floats_overlook():
    """Beside a score of 2^45, all others look the same: one of 400 comes too early."""
    n = 400
    X = np.append(np.arange(n, 0, -1.0), -(2.0**45))[:, None]
    y = np.column_stack([np.append(np.arange(n), n + 1.0), np.arange(n + 1) < n])
    assert says(check_separability(X, y, family="cox")) == ("complete", ["+inf"])
    X[[200, 201]] = X[[201, 200]]
    assert says(proved(X, y, family="cox")) == ("overlap", ["finite"])


def test_a_sign_that_one_pair_of_many_decides():
    """A direction of the other sign, among the pairs of a working set, is held against all."""
    rng, n = np.random.default_rng(1), 5000
    X = np.column_stack([np.zeros((n, 2)), rng.standard_normal((n, 2))])
    marked = rng.choice(np.arange(1, n), 400, replace=False)
    X[marked, :2] = 1.0, 1.0
    X[marked[::2], 1] = 1.25
    event = rng.random(n) < 0.5
    event[marked] = False
    y = np.column_stack([rng.random(n), event])
    y[marked, 0] += 1.0
    other = X.copy()
    other[marked[0], :2] = 1.0, -0.75
    for Z, first in ((X, "inf"), (other, "-inf")):
        report = proved(Z, y, family="cox")
        assert statuses(report) == [first, "inf", "finite", "finite"]
    stale = replace(report, pairs=np.zeros(len(report.pairs), bool))
    assert not check_separability_proof(stale, other, y, exact=True)


def test_more_subjects_than_pairs_that_are_needed():
    """20,000 subjects: a mark that 10 have, none of them with an event."""
    rng, n = np.random.default_rng(0), 20_000
    X = rng.standard_normal((n, 8))
    X[:, 3] = np.isin(np.arange(n), rng.choice(n, 10, replace=False))
    time = rng.exponential(np.exp(-X[:, 0]))
    y = np.column_stack([time, (rng.random(n) < 0.5) & (X[:, 3] == 0)])
    more = {"strata": rng.integers(0, 5, n), "entry": 0.9 * time * rng.random(n)}
    report = proved(X, y, family="cox", **more)
    assert (report.kind, report.reason) == ("quasi-complete", "")
    assert [j for j, s in enumerate(statuses(report)) if s != "finite"] == [3]
    assert report.overlap_weights.nnz < 2000
    strata = report.remainder(X).strata
    i = int(np.flatnonzero(report.separated)[0])
    assert X[strata == strata[i], 3].sum() == 0


def test_more_columns_than_subjects():
    n = 100
    y = np.column_stack([np.arange(n), np.ones(n)])
    X = np.random.default_rng(0).standard_normal((n, 300))
    report = check_separability(X, y, family="cox")
    assert (report.kind, report.separable) == ("complete", True)
    assert statuses(report).count("not identified") == 300 - (n - 1)
    sparse = sp.csr_array((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, 1000))
    assert proved(sparse, y, exact=[False], family="cox").kind == "complete"


@pytest.mark.parametrize("exact", [False, True])
def test_lies_are_refuted(exact):
    X, y, more = survival(2)
    report = proved(X, y, family="cox", **more)
    assert statuses(report) == ["finite", "-inf", "finite", "finite"]
    pairs = [replace(report, pairs=some) for some in (~report.pairs, report.pairs[1:])]
    for lie in pairs + [lie for lie, hidden in lies(report) if exact or not hidden]:
        check = check_separability_proof(lie, X, y, exact=exact)
        assert not check
        assert check.reason


@pytest.mark.parametrize("exact", [False, True])
def test_a_report_of_other_subjects_is_refuted(exact):
    """Whoever has the mark has no event; one more of it, or one with an event."""
    X, y, more = survival(1)
    report = proved(X, y, family="cox", **more)
    winners = np.unique([i for i, _ in pairs_of("cox", y.tolist(), more)])
    for table, rows, column in ((X, winners, 1), (y, np.flatnonzero(X[:, 1]), 1)):
        for i in rows[:10]:
            table[i, column], before = 1.0, table[i, column]
            other = check_separability(X, y, family="cox", **more)
            if other.coefficients != report.coefficients:
                check = check_separability_proof(report, X, y, exact=exact)
                assert not check
                assert check.reason
            table[i, column] = before


@pytest.mark.parametrize("exact", [False, True])
def test_pairs_that_are_not_compared_prove_nothing(exact):
    """An overlap by pairs of subjects one of whom was not at risk."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0, 1], [2, 1], [3, 0]])
    assert check_separability(X, y, family="cox").kind == "complete"
    other = check_separability(X, y[[1, 0, 2]], family="cox")
    assert other.kind == "overlap"
    assert not check_separability_proof(other, X, y, exact=exact)
