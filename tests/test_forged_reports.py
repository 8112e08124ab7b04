"""Forged reports of separation: a field that is false is refused, whatever it holds."""

import random
from dataclasses import fields, replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import comparison_cases
from helpers.battery import slow
from helpers.separation import conditions, rank
from helpers.separation_cases import ALL, problem

from marginsvm import check_separability, check_separability_proof
from marginsvm.separation import program
from marginsvm.separation.families import Direction
from marginsvm.separation.report import Coefficient, Separability

NAMES = [field.name for field in fields(Separability)]
STRANGE = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        1.5,
        np.nan,
        np.inf,
        "",
        "nan",
        "overlap",
        "complete",
    ),
    *("quasi-complete", "binomial", "pairs", "poisson", (), [], {}, ("x0",), ("x0", 1)),
    *(
        np.zeros(0),
        np.zeros(3),
        np.zeros((1, 1), bool),
        np.array([["a"]]),
        1j,
        object(),
    ),
    Direction(np.zeros((1, 1)), np.zeros(1)),
    Direction(None, None),
    sp.csr_array((1, 1)),
]


def problems(seeds):
    """Reports of each family, with their data, and the rows of their conditions or None."""
    for kind in [*ALL, *comparison_cases.ALL]:
        for seed in seeds:
            if kind in ALL:
                X, y, options, weight = problem(seed, kind)
            else:
                X, y, family, more, weight = comparison_cases.problem(seed, kind)
                options = {"family": family, **more}
            report = check_separability(X, y, sample_weight=weight, **options)
            if report.exact:
                yield report, X, y, weight, options, kind in ALL


def arrays(x, draw):
    """The array with other numbers, another shape or another type; and times a factor."""
    x = np.asarray(x)
    flat = x.ravel().copy()
    if x.size:
        at = draw.randrange(x.size)
        flat[at] = (
            ~flat[at] if x.dtype == bool else draw.choice([-1, 0, 1, 2]) - flat[at]
        )
    yield flat.reshape(x.shape)
    yield x[:-1]
    yield np.concatenate([x, x])
    yield x[..., None]
    yield x.astype(float) if x.dtype == bool else x > 0
    yield ~x if x.dtype == bool else -x
    yield 0 * x
    if x.dtype != bool:
        yield np.full(x.shape, np.nan)
        yield np.full(x.shape, np.inf)
        yield x + 1


def others(name, value, draw):
    """Values of a field that are false, or none of it."""
    yield from STRANGE
    if isinstance(value, np.ndarray):
        yield from arrays(value, draw)
    if isinstance(value, Direction):
        for at in (0, 1):
            for other in arrays(value[at], draw):
                yield value._replace(**{value._fields[at]: other})
    if isinstance(value, sp.csr_array):
        for other in arrays(value.data, draw):
            if other.shape == value.data.shape:
                yield sp.csr_array((other, value.indices, value.indptr), value.shape)
        for at in ("indices", "indptr"):
            wrong = value.copy()
            setattr(wrong, at, getattr(wrong, at) + draw.choice([-1, 1, 10**6]))
            yield wrong
        yield sp.vstack([value, value], format="csr")
        yield value.toarray()
    if name == "coefficients":
        yield value[::-1] if value != value[::-1] else value[1:]
        yield (*value, Coefficient("another", "finite"))
        yield tuple(c._replace(name=c.name + "a") for c in value)
        yield tuple(Coefficient(c.name, 1.0) for c in value)
        yield tuple(c._replace(status="infinite") for c in value)
    if name == "given":
        yield MappingProxyType({**value, "another": 1})
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
        n = len(value["y"]) if value["y"] is not None else 3
        yield {**value, "sample_weight": (np.arange(n) > 0) * 1.0}
        yield {**value, "fit_intercept": not value["fit_intercept"]}
        if value["y"] is not None and len(set(np.ravel(value["y"]).tolist())) > 1:
            yield {**value, "y": np.roll(value["y"], 1, axis=0)}


def is_same(value, other):
    """Whether a change changes nothing."""
    if type(value) is not type(other):
        return False
    if isinstance(value, np.ndarray):
        return value.dtype == other.dtype and np.array_equal(value, other)
    if isinstance(value, Direction):
        return all(map(is_same, value, other))
    if isinstance(value, sp.csr_array | dict):
        return value is other
    return value == other


class Truth:
    """What is true of the rows of a report, in fractions."""

    def __init__(self, report, X, y, weight, options):
        kept = range(len(X)) if weight is None else np.flatnonzero(weight > 0).tolist()
        some = [X[i] if options["family"] == "pairs" else X[i].tolist() for i in kept]
        y = None if y is None else y[[*kept]].tolist()
        rows = conditions(some, y, **options)
        self.rows = [row for row, *_ in rows]
        self.equality = [equality for _, equality, *_ in rows]
        self.places = [(kept[i], j) for *_, i, j in rows]
        self.separated = [report.separated_rows[at] for at in self.places]
        self.report = report

    def values(self, w):
        """Values of the rows in a direction, relative to the largest term."""
        w = [Fraction(float(x)) for x in w]
        terms = [[a * x for a, x in zip(row, w, strict=True)] for row in self.rows]
        size = max(abs(x) for each in terms for x in each) or 1
        return [sum(each) / size for each in terms]

    def allows(self, name, other):
        """Whether another direction, or other weights, prove the same."""
        if name == "direction":
            family = self.report._family
            w = family.flat(*other, self.report.fit_intercept)
            values = [*zip(self.values(w), self.separated, strict=True)]
            return all(v > 0 if s else abs(v) < 1e-9 for v, s in values)
        q = [Fraction(float(other[at])) for at in self.places]
        at = [i for i, x in enumerate(q) if x > 0 or self.equality[i]]
        if any(x < 0 for x, e in zip(q, self.equality, strict=True) if not e):
            return False
        if any(x for x, s in zip(q, self.separated, strict=True) if s):
            return False
        columns = list(zip(*self.rows, strict=True))
        terms = [[a * x for a, x in zip(c, q, strict=True)] for c in columns]
        if any(abs(sum(t)) > sum(map(abs, t)) * Fraction(1, 10**8) for t in terms):
            return False
        overlap = [r for r, s in zip(self.rows, self.separated, strict=True) if not s]
        return rank([self.rows[i] for i in at]) == rank(overlap)


def forged(report, draw):
    """Another report, the name of the field that is changed, and its value."""
    name = draw.choice(NAMES)
    value = getattr(report, name)
    other = draw.choice([*others(name, value, draw)])
    return name, value, other


@pytest.mark.parametrize("number", [400, slow(4_000)])
def test_forged_reports_are_refused(number):
    """With or without rounding; nothing but a refusal is raised."""
    draw, told, accepted = random.Random(0), 0, 0
    true = [*problems(range(4) if number == 400 else range(20))]
    for i in range(number):
        report, X, y, weight, options, in_fractions = true[i % len(true)]
        name, value, other = forged(report, draw)
        if is_same(value, other):
            continue
        told += 1
        for exact in (True, False):
            if not holds(replace(report, **{name: other}), X, y, weight, exact):
                continue
            accepted += 1
            if name == "tail":
                assert other is None or not (np.abs(other) > np.abs(value)).any()
            elif name == "given":  # what has no influence on the rows
                assert set(other) == set(value)
            elif name == "family":  # the same is true of another regression
                given = {**options, "family": other, "sample_weight": weight}
                own = check_separability(X, y, **given)
                assert (own.kind, own.exact) == (report.kind, True)
                assert own.coefficients == report.coefficients
            elif name == "coefficients":  # signs, without ``exact``
                assert not exact
                assert [c.name for c in other] == [c.name for c in value]
            else:
                assert name in ("direction", "overlap_weights"), (name, other)
                if in_fractions:
                    assert Truth(report, X, y, weight, options).allows(name, other)
    assert told > 0.9 * number
    assert accepted < 0.1 * number


def holds(report, X, y, weight, exact):
    """Whether a report is accepted; that it is undecided is said by an error."""
    try:
        check = check_separability_proof(report, X, y, weight, exact=exact)
    except ValueError:
        return False
    assert check or check.reason
    return bool(check)


THREE_KINDS = [
    ([[0.0], [1.0], [0.0], [1.0]], [0, 0, 1, 1]),
    ([[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]),
    ([[2.0], [-2.0], [-1.0], [-2.0]], [1, 0, 0, 0]),
]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("X", "y"), THREE_KINDS)
def test_every_field_is_compared(X, y, exact):
    report = check_separability(X, y)
    assert check_separability_proof(report, X, y, exact=exact)
    direction, tail = report.direction, report.tail
    for false in (
        {"separable": None},
        {"separable": not report.separable},
        {"exact": False},
        {"fit_intercept": False},
        {"constant": "x0"},
        {"used": ~report.used},
        {"used": report.used[1:]},
        {"reason": "This holds up to the rounding of X."},
        {"nearly_collinear": ("x0",)},
        {"separated_rows": report.separated_rows[:1]},
        {"pairs": ~report.pairs},
        {"coefficients": report.coefficients[::-1]},
        {"given": {**report.given, "y": y[::-1]}},
        {"given": {**report.given, "sample_weight": [1, 1, 1, 0]}},
        {"tail": tail + 1.0},
        {"direction": Direction(-np.ones((1, 1)), np.ones(1))},
        *([{"direction": None}] if direction else []),
        *([{"direction": None, "tail": direction.coef[0]}] if direction else []),
        *([{"direction": Direction(*(0 * w for w in direction))}] if direction else []),
        {
            "overlap_weights": None
            if report.overlap_weights is not None
            else sp.csr_array((4, 1))
        },
    ):
        check = check_separability_proof(replace(report, **false), X, y, exact=exact)
        assert not check, false
        assert check.reason


def test_a_low_part_is_no_direction():
    """What rounding takes from a direction is less than a unit in its last place."""
    X, y = np.array([[1.0, 0.1], [1.0, -0.1], [-1.0, 0.3]]), [1, 1, 0]
    report = check_separability(X, y, fit_intercept=False)
    assert report.kind == "complete"
    (w,), zero = report.direction.coef, np.zeros((1, 2))
    for coef, tail in (
        (zero, w),
        (zero, 2.0**-53 * w),
        (-report.direction.coef, 2 * w),
    ):
        lie = replace(report, direction=Direction(coef, np.zeros(1)), tail=tail)
        for exact in (True, False):
            assert not check_separability_proof(lie, X, y, exact=exact)


def test_a_direction_has_no_entry_where_there_is_no_coefficient():
    """In a column that is not identified, the reference class, or an intercept that is none."""
    X = np.array([[3.0, 3], [-1, -1], [-2, -2], [1, 1]])
    for y, options in (([0, 1, 1, 0], {}), ([0, 1, 2, 0], {"fit_intercept": False})):
        report = check_separability(X, y, **options)
        assert check_separability_proof(report, X, y, exact=True)
        for at in (0, 1):
            for i in range(report.direction[at].size):
                w = [*map(np.copy, report.direction)]
                if w[at].flat[i] == 0.0:
                    w[at].flat[i] = 1e-3
                    lie = replace(report, direction=Direction(*w))
                    assert not check_separability_proof(lie, X, y, exact=True), (at, i)


def test_columns_that_are_nearly_collinear_are_those_of_all_rows(monkeypatch):
    """In a sample of a few rows, one more is."""
    monkeypatch.setattr(program, "FEW", 4)
    monkeypatch.setattr(program, "A_COLUMN", 1)
    X, y, options, _ = problem(36, "poisson")
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    report = check_separability(X, y, **options)
    assert report.nearly_collinear == ()
    assert check_separability_proof(report, X, y, exact=True)


def test_other_outcomes_under_other_names_are_those_of_the_report():
    """Labels may be codes; then the names of the report are those of its own outcomes."""
    X, codes = np.array([[0.0], [1.0], [2.0], [0.5], [1.5]]), np.array([0, 1, 2, 1, 0])
    report = check_separability(X, np.array(["a", "b", "c"])[codes])
    assert check_separability_proof(report, X, codes, exact=True)
    assert not check_separability_proof(report, X, np.roll(codes, 1))


@pytest.mark.parametrize("exact", [True, False])
def test_a_row_that_is_to_be_fitted_exactly_is_not_separated(exact):
    """A proof for classes is none for counts: those above 0 must stay where they are."""
    X, y = [[2.0], [-2.0], [-1.0], [-2.0]], [1, 0, 0, 0]
    report = check_separability(X, y)
    assert (report.kind, check_separability(X, y, family="poisson").kind) == (
        "complete",
        "quasi-complete",
    )
    for family in ("poisson", "negative_binomial"):
        check = check_separability_proof(
            replace(report, family=family), X, y, exact=exact
        )
        assert "fitted exactly" in check.reason
