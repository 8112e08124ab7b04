"""What is separated, in rationals, by code that shares nothing with the package."""

from fractions import Fraction
from itertools import pairwise

from helpers.rational import has_solution, scores


def conditions(X, y, *, family="binomial", fit_intercept=True):
    """Rows ``a w >= 0`` and ``e w = 0``, as ``(row, is_equality, example, other)``."""
    if family == "pairs":
        return wins(X, y)
    if family == "multinomial":
        return scores(X, y, fit_intercept=fit_intercept)
    X = [
        [Fraction(1)] * (fit_intercept and family != "ordinal")
        + [Fraction(v) for v in map(float, x)]
        for x in X
    ]
    rows = []
    if family == "ordinal":
        return halves(X, y)
    if family in ("poisson", "negative_binomial"):
        y = [(v, 1) for v in y]
    elif not hasattr(y[0], "__len__"):
        y = [(int(v == max(y)), int(v != max(y))) for v in y]
    for i, (x, (successes, failures)) in enumerate(zip(X, y, strict=True)):
        if successes or failures:
            sign = 1 if successes else -1
            rows.append(([sign * v for v in x], bool(successes and failures), i, 0))
    return rows


def halves(X, y):
    """Of ordered categories: ``y <= c`` and ``y >= c``; thresholds first."""
    classes, rows = sorted(set(y)), []
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        j = classes.index(label)
        for half, sign, threshold in ((0, 1, j), (1, -1, j - 1)):
            if 0 <= threshold < len(classes) - 1:
                theta = [
                    Fraction(sign * (t == threshold)) for t in range(len(classes) - 1)
                ]
                rows.append(([*theta, *(-sign * v for v in x)], False, i, half))
    return rows


def wins(X, y):
    """Of pairs, or of rankings if y is None; the strength of the first item is 0."""
    if y is None:
        pairs = [
            (i, j, pair) for i, x in enumerate(X) for j, pair in enumerate(turns(x))
        ]
        X, y = [pair for *_, pair in pairs], [1] * len(pairs)
        places = [(i, j) for i, j, _ in pairs]
    else:
        places = [(i, 0) for i in range(len(X))]
    items, rows = sorted({v for x in X for v in x}), []
    for (a, b), score, (i, j) in zip(X, y, places, strict=True):
        sign = 1 if score else -1
        row = [Fraction(sign * ((c == a) - (c == b))) for c in items[1:]]
        rows.append((row, score == 0.5, i, j))
    return rows


def turns(ranking):
    rest = ranking[-1] if isinstance(ranking[-1], set) else ()
    ranked = [v for v in ranking if not isinstance(v, set)]
    return [*pairwise(ranked), *((ranked[-1], v) for v in sorted(rest))]


def is_combination(rows, target):
    """Whether q >= 0, and any sign for equalities, has ``A^T q = target``."""
    columns = [row for row, *_ in rows]
    columns += [[-v for v in row] for row, equality, *_ in rows if equality]
    if not columns or not target:
        return not any(target)
    return has_solution([list(line) for line in zip(*columns, strict=True)], target)


def rank(rows):
    rows, found = [list(row) for row in rows], 0
    width = len(rows[0]) if rows else 0
    for j in range(width):
        pivot = next((i for i in range(found, len(rows)) if rows[i][j]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for i in range(found + 1, len(rows)):
            if rows[i][j]:
                f = rows[i][j] / rows[found][j]
                rows[i] = [a - f * b for a, b in zip(rows[i], rows[found], strict=True)]
        found += 1
    return found


def truth(X, y, **options):
    """Kind, which rows are separated, and the status of every coefficient."""
    return truth_of(
        conditions(X, y, **options), estimable=options.get("family") == "pairs"
    )


def truth_of(rows, *, estimable=False):
    """The same of conditions.

    Not identified are columns that are combinations of those before them; or, if ``estimable``,
    coefficients that no combination of rows determines.
    """
    A, kept = [row for row, *_ in rows], []
    d = len(A[0])
    for j in range(d):
        if estimable or rank([[row[c] for c in [*kept, j]] for row in A]) > len(kept):
            kept.append(j)
    rows = [([row[c] for c in kept], *rest) for row, *rest in rows]
    separated = [
        not equality and not is_combination(rows, [-v for v in row])
        for row, equality, *_ in rows
    ]
    A = [row for row, *_ in rows]
    fixed = [row for row, s in zip(A, separated, strict=True) if not s]
    statuses = ["not identified"] * d
    for place, j in enumerate(kept):
        unit = [Fraction(int(i == place)) for i in range(len(kept))]
        if rank([*fixed, unit]) == rank(fixed):
            statuses[j] = "finite"
        elif rank([*A, unit]) == rank(A):
            signs = tuple(is_combination(rows, [s * v for v in unit]) for s in (1, -1))
            statuses[j] = {(1, 0): "+inf", (0, 1): "-inf", (0, 0): "inf"}[signs]
    kind = (
        "overlap"
        if not any(separated)
        else "complete"
        if all(separated)
        else "quasi-complete"
    )
    where = [(i, j) for (_, _, i, j), s in zip(rows, separated, strict=True) if s]
    return kind, where, statuses
