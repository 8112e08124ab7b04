"""Every two values meet in some case, and what is slow costs the quick run nothing."""

from itertools import combinations, product

from helpers.battery import slow
from helpers.pairwise import pairwise

VALUES = {
    "a": [1, 2, slow(3)],
    "b": ["x", "y"],
    "c": {"on": True, "off": slow(False)},
    "d": [0],
}


def test_every_two_values_meet():
    def pairs(rows):
        return {
            (p, row[p], q, row[q]) for row in rows for p, q in combinations(range(4), 2)
        }

    (mark,) = pairwise(**VALUES).mark.args[1:]
    everything = product([1, 2, 3], ["x", "y"], [True, False], [0])
    assert pairs(case.values for case in mark) == pairs(everything)
    quick = [case for case in mark if not case.marks]
    assert pairs(case.values for case in quick) == pairs(
        product([1, 2], ["x", "y"], [True], [0])
    )
    assert all(3 in case.values or False in case.values for case in mark if case.marks)
    assert len(mark) < 12
    assert len({case.id for case in mark}) == len(mark)
