"""Some combinations of parameters in which every two values meet, instead of all combinations.

A fault that needs three particular values at once may be missed; one that needs two is not. (Most
need one or two: D. R. Kuhn, D. R. Wallace, A. M. Gallo, Software Fault Interactions and
Implications for Software Testing, IEEE Transactions on Software Engineering 30(6), 2004.)
"""

from itertools import combinations, product

import pytest

ParameterSet = type(pytest.param())


def pairwise(**values):
    """A mark like several of ``parametrize``, one for each name, but with fewer cases.

    Parameters
    ----------
    **values : sequence or dict
        The values of a parameter; of a dict, the keys are their names in the report. Every two
        that are not marked slow meet in a case that is not slow.
    """
    columns = [_named(some) for some in values.values()]
    cases = [
        pytest.param(
            *(column[i][1].values[0] for column, i in zip(columns, row, strict=True)),
            marks=[
                m
                for column, i in zip(columns, row, strict=True)
                for m in column[i][1].marks
            ],
            id="-".join(column[i][0] for column, i in zip(columns, row, strict=True)),
        )
        for row in _rows(columns)
    ]
    return pytest.mark.parametrize(list(values), cases)


def _named(values):
    """Pairs of a name and a set of parameters, those without marks first."""
    pairs = (
        values.items()
        if isinstance(values, dict)
        else ((None, value) for value in values)
    )
    named = []
    for i, (name, value) in enumerate(pairs):
        given = value if isinstance(value, ParameterSet) else pytest.param(value)
        (plain,) = given.values
        shown = (
            plain
            if isinstance(plain, str | int | float | bool | type(None))
            else f"{i}"
        )
        named.append(
            (str(name or given.id or getattr(plain, "__name__", shown)), given)
        )
    return sorted(named, key=lambda pair: bool(pair[1].marks))


def _rows(columns):
    """Rows of indices that cover all pairs: first those of the unmarked values among themselves."""
    unmarked = [
        [i for i, (_, given) in enumerate(c) if not given.marks] for c in columns
    ]
    rows = covering(unmarked)
    return rows + covering([range(len(column)) for column in columns], rows)


def covering(choices, given=()):
    """Rows, one of each choices, in which every two of different choices meet; greedily."""
    if len(choices) == 1:
        return [(i,) for i in choices[0] if (i,) not in given]

    def pairs(row):
        return set(combinations(enumerate(row), 2))

    rows, wanted = [], set()
    for (a, some), (b, others) in combinations(enumerate(choices), 2):
        wanted |= {((a, i), (b, j)) for i, j in product(some, others)}
    wanted -= set().union(*map(pairs, given))
    while wanted:
        # around the first pair, each other value makes the most pairs
        row = dict(min(wanted))
        for place, values in enumerate(choices):
            if place not in row:
                met = [
                    {tuple(sorted([(place, v), x])) for x in row.items()}
                    for v in values
                ]
                row[place] = values[
                    max(range(len(values)), key=lambda i: len(met[i] & wanted))
                ]
        rows.append(tuple(row[place] for place in range(len(choices))))
        wanted -= pairs(rows[-1])
    return rows
