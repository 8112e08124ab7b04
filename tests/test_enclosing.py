"""Bounds enclose the exact ones in an arithmetic whose operations are all off by a unit.

A unit is 2^-20. Operations err up, down, at random, and each line of the source in the direction
that is worst for the value that is looked at, while the others stay.
"""

import random

import pytest
from helpers.erring import CASES, Erring, ErringNumbers, case_of

from marginsvm.certificate import bounded
from marginsvm.certificate.bounded import Rationals, dual, primal

EXACT, NUMBERS = Rationals(), ErringNumbers()


def values(qp, point, numbers):
    """What is published, by name, as upper bounds; margins below 0 say nothing."""
    w, f, alpha = map(numbers.array, point)
    x, q = primal(qp, w, f, numbers), dual(qp, alpha, numbers)
    found = {
        "objective": x.objective,
        "norm": x.norm,
        "violation": x.violation,
        "separation": -x.separation,
        "gain": -q.gain,
        "length": q.length,
        "ridge": q.ridge,
        "multiple": -q.multiple,
        "least objective": -q.objective(),
        "margin bound": q.margin_bound,
    }
    if qp.by_margins:
        found["margin"] = -max(x.margin, 0)
    return found


def directed(monkeypatch, direction):
    monkeypatch.setattr(Erring, "direction", staticmethod(direction))


@pytest.fixture(autouse=True)
def no_more_digits(monkeypatch):
    monkeypatch.setattr(bounded, "Extended", object)


@pytest.mark.parametrize(("name", "p", "kind"), CASES)
def test_bounds_enclose_the_exact_ones(name, p, kind, monkeypatch):
    program, *point = case_of(name, p, kind)
    exact, draw = values(program(EXACT), point, EXACT), random.Random(1)

    def enclosed(direction, qp=None):
        directed(monkeypatch, direction)
        found = values(qp or program(NUMBERS), point, NUMBERS)
        assert not [name for name in exact if not found[name] >= exact[name]]
        return found

    enclosed(lambda place: draw.choice([-1, 1]))
    enclosed(lambda place: 1)
    enclosed(lambda place: -1)
    qp, places = program(NUMBERS), {}
    down = enclosed(lambda place: places.setdefault(place, -1), qp)
    higher = dict.fromkeys(exact, frozenset())  # lines that are worse where they err up
    for place in places:
        up = enclosed(lambda here, place=place: 1 if here == place else -1, qp)
        for name in exact:
            if up[name] < down[name]:
                higher[name] |= {place}
    for lines in set(higher.values()):
        names = [name for name in exact if higher[name] == lines]
        worst = enclosed(lambda place, lines=lines: 1 if place in lines else -1, qp)
        assert all(worst[name] <= down[name] for name in names)


def test_errors_that_are_not_allowed_for_are_seen(monkeypatch):
    """With a sixteenth of what the numbers say of their errors, bounds do not enclose."""
    directed(monkeypatch, lambda place: -1)
    program, *point = case_of(*CASES[0])
    exact = values(program(EXACT), point, EXACT)
    less = ErringNumbers()
    less.unit = NUMBERS.unit / 16
    found = values(program(less), point, less)
    assert any(found[name] < exact[name] for name in exact)
