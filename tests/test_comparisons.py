"""Cox's regression and choices: pairs of subjects, which are never written out."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.comparison_cases import answer_of, pairs_of, rows_are
from helpers.limit_cases import chosen, newton, terms_of_choices, terms_of_cox

from marginsvm import check_separability, check_separability_proof
from marginsvm.separation import families
from marginsvm.separation.families import FAMILIES


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))]
)
def test_every_answer_is_that_of_rationals(block):
    answers = [answer_of(seed)[0] for seed in range(100 * block, 100 * block + 100)]
    assert not [wrong for wrong in answers if wrong not in ([], ["undecided"])]
    assert sum(wrong == ["undecided"] for wrong in answers) <= 1


def statuses(report):
    return [c.status for c in report.coefficients]


def closure(n, winner, rival, equality):
    """Who is above whom, through others."""
    above = np.zeros((n, n), bool)
    above[winner, rival] = True
    above[rival[equality], winner[equality]] = True
    for _ in range(8):
        above |= (above.astype(int) @ above) > 0
    np.fill_diagonal(above, False)
    return above


@pytest.mark.parametrize("seed", range(40))
def test_few_pairs_say_what_all_pairs_say(seed):
    """With ties, strata and late entries: the same by transitivity, and no others."""
    rng = np.random.default_rng(seed)
    n = 40
    time = rng.integers(1, 12, n) + rng.choice([0.0, 0.5])
    event, strata = rng.random(n) < 0.6, rng.integers(0, rng.integers(1, 4), n)
    entry = time - rng.integers(1, 12, n) if seed % 2 else np.full(n, -np.inf)
    more = {"strata": strata, "entry": entry} if seed % 2 else {"strata": strata}
    y = np.column_stack([time, event]).astype(float)
    every = np.array(pairs_of("cox", y.tolist(), {"strata": strata, "entry": entry})).T
    data = families.Data(None, y, np.arange(n), n, [], False, more)
    winner, rival, equality, since, until, _ = FAMILIES["cox"].pairs(data)
    some = closure(n, winner, rival, equality)
    np.testing.assert_array_equal(some, closure(n, *every, np.zeros(len(every[0]), bool)))
    assert set(zip(winner, rival, strict=True)) <= set(zip(*every, strict=True))
    if seed % 2 == 0:
        assert len(winner) < 2 * n
    times = np.unique(np.column_stack([strata, time])[event], axis=0)
    for i, j, a, b in zip(winner, rival, since, until, strict=True):
        both = [k for k, (s, t) in enumerate(times) if s == strata[i] and entry[i] < t <= time[i]]
        risk = [k for k in both if entry[j] < times[k][1] <= time[j]]
        assert set(range(a, b + 1)) <= set(risk)


def test_long_entries_are_not_written_out(monkeypatch):
    """Many who stay long, and many events of others who have only just entered."""
    n = 40
    time = np.r_[np.arange(1.0, n + 1), np.full(n, 100.0)]
    entry = np.r_[np.arange(n) + 0.5, np.zeros(n)]
    y, X = np.column_stack([time, np.arange(2 * n) < n]), np.arange(2.0 * n)[:, None]
    report = check_separability(X, y, family="cox", entry=entry)
    assert report.kind == "complete"
    monkeypatch.setattr(families, "_MOST_PAIRS", 1000)
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
    time = np.ceil(8 * rng.exponential(np.exp(-0.5 * X[:, 0]))) if seed % 2 else rng.random(n)
    event = rng.random(n) < 0.7
    X[:, 1] = rng.random(n) < 0.1
    event[X[:, 1] > 0] = False
    more = {}
    if seed % 3:
        more["strata"] = rng.integers(0, 2, n)
    if seed % 4 > 1:
        more["entry"] = time * rng.choice([0.0, 0.5], n)
    return X, np.column_stack([time, event]), more


@pytest.mark.parametrize("seed", range(8))
def test_all_pairs_at_once_say_the_same(seed):
    """Rows of all pairs are those of a logistic regression without an intercept."""
    X, y, more = survival(seed)
    report = check_separability(X, y, family="cox", **more)
    pairs = np.array(pairs_of("cox", y.tolist(), more))
    A = X[pairs[:, 0]] - X[pairs[:, 1]]
    both, labels = np.concatenate([A, -A]), np.repeat([1, 0], len(A))
    other = check_separability(both, labels, fit_intercept=False)
    assert (report.kind, statuses(report)) == (other.kind, statuses(other))
    apart = set(map(tuple, pairs[other.separated[: len(A)]].tolist()))
    assert rows_are(report, X, set(map(tuple, pairs.tolist())), apart, len(X))
    assert report.kind == "quasi-complete"
    assert check_separability_proof(report, X, y)
    assert check_separability_proof(report, X, y, exact=True)


@pytest.mark.parametrize("seed", range(4))
def test_what_changes_nothing(seed):
    X, y, more = survival(seed)
    report = check_separability(X, y, family="cox", **more)

    def same(X, y, **more):
        other = check_separability(X, y, family="cox", **more)
        assert (other.kind, statuses(other)) == (report.kind, statuses(report))
        np.testing.assert_array_equal(other.separated[-len(report.separated) :], report.separated)
        return other

    same(sp.csr_array(X), y, **more)
    same(X * 2.0 ** np.array([40, -40, 0, 3]) + [0, 2.0**-30, 0, 1e7], y, **more)
    same(X, y, **more | {"offset": np.ones(len(y))})
    later = {"entry": np.exp(more["entry"])} if "entry" in more else {}
    same(X, np.column_stack([np.exp(y[:, 0]), y[:, 1]]), **more | later)
    named = {"names": ["died", "time"], "formats": [bool, float]}
    table = np.zeros(len(y), dtype=named)
    table["died"], table["time"] = y[:, 1] > 0, y[:, 0]
    same(X, table, **more)
    same(X, pd.DataFrame(y, columns=["time", "event"]), **more)
    strata = more.get("strata", np.zeros(len(y), int))
    words = np.array(["one", "two"])[strata]
    same(X, y, **more | {"strata": np.column_stack([words, words])})
    same(X, y, **{"entry": np.zeros(len(y))} | more)
    twice = {name: np.concatenate([v[:5], v]) for name, v in more.items()}
    weight = np.r_[np.zeros(5), np.ones(len(y))]
    doubled = same(np.r_[X[:5] + 9, X], np.r_[y[:5], y], sample_weight=weight, **twice)
    assert not doubled.separated[:5].any()


@pytest.mark.parametrize("seed", range(4))
def test_choices_of_one_are_cox_models_of_one_event(seed):
    X, y, groups = chosen(seed)
    one = np.flatnonzero(np.bincount(groups, y) == 1)
    some = np.isin(groups, one)
    X, y, groups = X[some], y[some], groups[some]
    report = check_separability(X, y, family="conditional", groups=groups)
    times = np.column_stack([2 - y, y])
    cox = check_separability(X, times, family="cox", strata=groups)
    assert (report.kind, statuses(report)) == (cox.kind, statuses(cox))
    np.testing.assert_array_equal(report.separated, cox.separated)
    assert statuses(report) == ["finite", "-inf", "finite"]
    assert check_separability_proof(report, X, y, exact=True)


def test_groups_with_none_or_all_chosen_do_not_count():
    X, y, groups = chosen(0)
    report = check_separability(X, y, family="conditional", groups=groups)
    share = np.bincount(groups, y)[groups]
    counts = (share > 0) & (share < 5)
    assert not counts.all()
    rest = check_separability(X[counts], y[counts], family="conditional", groups=groups[counts])
    assert (report.kind, statuses(report)) == (rest.kind, statuses(rest))
    np.testing.assert_array_equal(report.separated[counts], rest.separated)
    assert not report.separated[~counts].any()
    kept = report.remainder(X).rows
    assert not kept[~counts].any()
    np.testing.assert_array_equal(kept[counts], rest.remainder(X[counts]).rows)


def test_two_groups_one_after_the_other():
    """The rest is not a fit to one of the groups, nor one to all without the infinite column."""
    rng = np.random.default_rng(5)
    late, x = np.repeat([0.0, 1.0], 40), rng.standard_normal(80).round(1)
    time = rng.exponential(np.exp(-0.3 * x)) + 50 * late
    X, y = np.column_stack([late, x]), np.column_stack([time, np.ones(80)])
    report = check_separability(X, y, family="cox")
    assert statuses(report) == ["-inf", "finite"]
    new, columns = report.remainder(X)
    np.testing.assert_array_equal(new == new[0], late == 0)
    assert columns.tolist() == [1]
    early = np.full(80, -1.0)
    limit = newton(terms_of_cox(X[:, 1:], y, new, early), 1, 0.0)[0]
    zero = np.zeros(80)
    path = newton(terms_of_cox(X, y, zero, early), 2, 1e-9)[1]
    without = newton(terms_of_cox(X[:, 1:], y, zero, early), 1, 0.0)[0]
    assert abs(path - limit) < 1e-4
    assert abs(without - limit) > 1e-2


def test_an_event_of_nobody_else_says_nothing():
    X = np.array([[1.0], [2.0], [2.0]])
    report = check_separability(X, [[1.0, 1], [0.5, 0], [0.5, 0]], family="cox")
    assert (report.kind, statuses(report)) == ("overlap", ["not identified"])
    assert report.remainder(X).columns.tolist() == []
    report = check_separability(X, [0, 0, 0], family="conditional", groups=[0, 0, 1])
    assert (report.kind, statuses(report)) == ("overlap", ["not identified"])
    assert check_separability_proof(report, X, [0, 0, 0], exact=True)


def test_decimals_that_differences_round():
    """0.1 + 0.2 is not 0.3: rows are those of the floats."""
    x = np.array([0.1, 0.2, 0.3, 0.7, 1.1, 2.2, 3.3])
    X, y = np.column_stack([x, x**2]), np.column_stack([x, np.ones(7)])
    report = check_separability(X, y, family="cox")
    assert report.kind == "complete"
    assert check_separability_proof(report, X, y, exact=True)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 6)).round(2)
    Z[:, 2] = np.arange(200) < 9
    y = np.column_stack([rng.random(200), np.arange(200) >= 9])
    report = check_separability(Z, y, family="cox")
    assert (report.kind, report.reason, statuses(report)[2]) == ("quasi-complete", "", "-inf")
    assert check_separability_proof(report, Z, y, exact=True)


LIES = {
    "kind": lambda r: replace(r, kind="overlap"),
    "statuses": lambda r: replace(
        r, coefficients=tuple(c._replace(status="finite") for c in r.coefficients)
    ),
    "sign": lambda r: replace(
        r, coefficients=tuple(c._replace(status=c.status.replace("-", "+")) for c in r.coefficients)
    ),
    "rows": lambda r: replace(r, separated_rows=~r.separated_rows),
    "direction": lambda r: replace(r, direction=r.direction._replace(coef=-r.direction.coef)),
    "pairs": lambda r: replace(r, pairs=~r.pairs),
    "fewer pairs": lambda r: replace(r, pairs=r.pairs[1:]),
    "weights": lambda r: replace(r, overlap_weights=r.overlap_weights * 0.0),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("exact", [False, True])
def test_lies_are_refuted(lie, exact):
    X, y, more = survival(2)
    report = check_separability(X, y, family="cox", **more)
    assert statuses(report) == ["finite", "-inf", "finite", "finite"]
    assert check_separability_proof(report, X, y, exact=exact)
    told = LIES[lie](report)
    if lie == "sign" and not exact:  # which are not looked at
        return
    check = check_separability_proof(told, X, y, exact=exact)
    assert not check
    assert check.reason


@pytest.mark.parametrize("exact", [False, True])
def test_a_report_of_other_subjects_is_refuted(exact):
    """Whoever has the mark has no event; one more of it, or one with an event."""
    X, y, more = survival(1)
    report = check_separability(X, y, family="cox", **more)
    assert check_separability_proof(report, X, y, exact=True)
    pairs = np.array(pairs_of("cox", y.tolist(), more))
    for i in np.unique(pairs[:, 0])[:10]:
        other = X.copy()
        other[i, 1] = 1.0
        if check_separability(other, y, family="cox", **more).coefficients != report.coefficients:
            check = check_separability_proof(report, other, y, exact=exact)
            assert not check
            assert check.reason
    for i in np.flatnonzero(X[:, 1])[:10]:
        died = y.copy()
        died[i, 1] = 1.0
        if check_separability(X, died, family="cox", **more).coefficients != report.coefficients:
            assert not check_separability_proof(report, X, died, exact=exact)


def test_more_subjects_than_pairs_that_are_needed():
    """20,000 subjects: a mark that 10 have, none of them with an event."""
    rng = np.random.default_rng(0)
    n = 20_000
    X = rng.standard_normal((n, 8))
    X[:, 3] = np.isin(np.arange(n), rng.choice(n, 10, replace=False))
    time = rng.exponential(np.exp(-X[:, 0]))
    event = (rng.random(n) < 0.5) & (X[:, 3] == 0)
    y = np.column_stack([time, event])
    more = {"strata": rng.integers(0, 5, n), "entry": 0.9 * time * rng.random(n)}
    report = check_separability(X, y, family="cox", **more)
    assert (report.kind, report.reason) == ("quasi-complete", "")
    assert [j for j, s in enumerate(statuses(report)) if s != "finite"] == [3]
    assert report.overlap_weights.nnz < 2000
    strata = report.remainder(X).strata
    i = int(np.flatnonzero(report.separated)[0])
    assert X[strata == strata[i], 3].sum() == 0
    assert check_separability_proof(report, X, y, exact=True)
    assert check_separability_proof(report, X, y)


@pytest.mark.parametrize(
    ("y", "more", "message"),
    [
        ([1, 2, 3], {}, "y must have two columns, time and event"),
        ([[1, 2], [1, 0], [2, 1]], {}, "the second column of y, the events, must hold 1 and 0"),
        ([[1, np.nan], [1, 0], [2, 1]], {}, "y contains NaN"),
        ([[1, 1], [1, 0], [2, 1]], {"entry": [0, 1, 0]}, "entry must be before time.* example 1"),
        ([[1, 1], [1, 0], [2, 1]], {"entry": [0, 0]}, "inconsistent numbers of samples"),
        ([[1, 1], [1, 0], [2, 1]], {"strata": [0, 0]}, "strata must have 3 entries"),
        ([[1, 1], [1, 0], [2, 1]], {"strata": [0, np.nan, 1]}, "strata contains NaN"),
        ([[1, 1], [1, 0], [2, 1]], {"groups": [0, 0, 0]}, "groups is for family 'conditional'"),
    ],
)
def test_bad_times_are_named(y, more, message):
    with pytest.raises(ValueError, match=message):
        check_separability([[0.0], [1.0], [2.0]], y, family="cox", **more)


@pytest.mark.parametrize(
    ("y", "more", "message"),
    [
        ([0, 1, 1], {}, "groups is missing"),
        ([0, 1, 2], {"groups": [0, 0, 0]}, "y must hold 1 for alternatives that were chosen"),
        ([0, 1, 1], {"groups": [0, 0]}, "groups must have 3 entries"),
        ([0, 1, 1], {"groups": [0, 0, 0], "strata": [0, 0, 0]}, "strata is for family 'cox'"),
    ],
)
def test_bad_choices_are_named(y, more, message):
    with pytest.raises(ValueError, match=message):
        check_separability([[0.0], [1.0], [2.0]], y, family="conditional", **more)


def test_a_structured_array_of_other_fields_is_named():
    y = np.zeros(3, dtype=[("time", float), ("entry", float)])
    with pytest.raises(ValueError, match="two fields: an event"):
        check_separability([[0.0], [1.0], [2.0]], y, family="cox")


def test_a_sign_that_one_pair_of_many_decides():
    """A direction of the other sign, among the pairs of a working set, is held against all."""
    rng = np.random.default_rng(1)
    n = 5000
    X = np.column_stack([np.zeros((n, 2)), rng.standard_normal((n, 2))])
    marked = rng.choice(np.arange(1, n), 400, replace=False)
    X[marked, :2] = 1.0, 1.0
    X[marked[::2], 1] = 1.25
    event = rng.random(n) < 0.5
    event[marked] = False
    y = np.column_stack([rng.random(n), event])
    y[marked, 0] += 1.0
    report = check_separability(X, y, family="cox")
    assert statuses(report) == ["inf", "inf", "finite", "finite"]
    assert check_separability_proof(report, X, y, exact=True)
    other = X.copy()
    other[marked[0], :2] = 1.0, -0.75
    decided = check_separability(other, y, family="cox")
    assert statuses(decided) == ["-inf", "inf", "finite", "finite"]
    assert check_separability_proof(decided, other, y, exact=True)
    stale = replace(report, pairs=np.zeros(len(report.pairs), bool))
    assert not check_separability_proof(stale, X, y, exact=True)


def test_a_pair_that_floats_overlook():
    """Beside a score of 2^45, all others look the same: one of 400 comes too early."""
    n = 400
    x = np.arange(n, 0, -1.0)
    y = np.column_stack([np.arange(n), np.ones(n)])
    X = np.append(x, -(2.0**45))[:, None]
    y = np.vstack([y, [n + 1.0, 0.0]])
    report = check_separability(X, y, family="cox")
    assert (report.kind, statuses(report)) == ("complete", ["+inf"])
    X[[200, 201]] = X[[201, 200]]
    report = check_separability(X, y, family="cox")
    assert (report.kind, statuses(report)) == ("overlap", ["finite"])
    assert check_separability_proof(report, X, y, exact=True)


def test_pairs_that_are_not_compared_prove_nothing():
    """An overlap by pairs of subjects one of whom was not at risk."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0, 1], [2, 1], [3, 0]])
    report = check_separability(X, y, family="cox")
    assert report.kind == "complete"
    other = check_separability(X, y[[1, 0, 2]], family="cox")
    assert other.kind == "overlap"
    assert not check_separability_proof(other, X, y, exact=True)
    assert not check_separability_proof(other, X, y)


def test_a_certain_choice_leaves_the_group():
    """Alternatives of the mark are never chosen, and others of the first group always."""
    x = np.array([0.0, 0, 1, 1, 0, 0, 0, 1])
    X = np.column_stack([x, [1.0, 2, 1, 3, 1, 2, 3, 2]])
    y, groups = [1, 1, 0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1]
    report = check_separability(X, y, family="conditional", groups=groups)
    assert statuses(report) == ["-inf", "finite"]
    rows, columns = report.remainder(X)
    assert np.flatnonzero(rows).tolist() == [4, 5, 6]
    assert columns.tolist() == [1]
    assert report.separated.tolist() == [True, True, False, False, True, False, True, False]


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("part", [1, 3])
def test_sums_of_decimals_and_of_thirds(offset, part):
    """Decimals are what they are meant to be; thirds have been rounded, as has their sum."""
    rng = np.random.default_rng(0)
    x = rng.random((200, 2)).round(2) / part
    X = np.column_stack([x[:, 0] + offset, x[:, 1], offset + x.sum(axis=1)])
    y = np.column_stack([rng.random(200), rng.random(200) < 0.6])
    report = check_separability(X, y, family="cox")
    assert (report.kind, statuses(report)) == ("overlap", ["finite", "finite", "not identified"])
    assert report.exact == (part == 1)
    assert report.reason.startswith("This holds up to the rounding of X" if part == 3 else "")
    assert report.remainder(X).columns.tolist() == [0, 1]
    assert check_separability_proof(report, X, y)
    check = check_separability_proof(report, X, y, exact=True)
    assert bool(check) == (part == 1)
    assert part == 1 or "only up to rounding" in check.reason


def test_more_columns_than_subjects():
    n = 100
    X, y = np.random.default_rng(0).standard_normal((n, 1000)), np.ones((n, 2))
    y[:, 0] = np.arange(n)
    report = check_separability(X, y, family="cox")
    assert report.kind == "complete"
    assert report.separable is True
    assert statuses(report).count("not identified") == 1000 - (n - 1)
    sparse = sp.csr_array((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, 1000))
    report = check_separability(sparse, y, family="cox")
    assert report.kind == "complete"
    assert check_separability_proof(report, sparse, y)


# Survival data of the literature: what the report says, and what all pairs say.


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
