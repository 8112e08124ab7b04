"""What is separated, in rationals, by code that shares nothing with the package."""

from fractions import Fraction

from helpers.rational import has_solution


def conditions(X, y, *, family="binomial", fit_intercept=True):
    """Rows ``a w >= 0`` and ``e w = 0``, as ``(row, is_equality, example, other)``."""
    X = [[Fraction(1)] * fit_intercept + [Fraction(v) for v in map(float, x)] for x in X]
    rows = []
    if family == "multinomial":
        classes = sorted(set(y))
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            for j, other in enumerate(classes):
                if other != label:
                    row = [
                        ((c == label) - (c == other)) * value for c in classes[1:] for value in x
                    ]
                    rows.append((row, False, i, j))
        return rows
    if family == "poisson":
        y = [(v, 1) for v in y]
    elif not hasattr(y[0], "__len__"):
        y = [(int(v == max(y)), int(v != max(y))) for v in y]
    for i, (x, (successes, failures)) in enumerate(zip(X, y, strict=True)):
        if successes or failures:
            sign = 1 if successes else -1
            rows.append(([sign * v for v in x], bool(successes and failures), i, 0))
    return rows


def columns_of(rows):
    """Columns of the conditions on weights: those of equalities may have any sign."""
    out = []
    for row, equality, *_ in rows:
        out.append(row)
        if equality:
            out.append([-v for v in row])
    return out


def is_combination(rows, target):
    """Whether q >= 0, and any sign for equalities, has ``A^T q = target``."""
    columns = columns_of(rows)
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
    return truth_of(conditions(X, y, **options))


def truth_of(rows):
    """The same of conditions."""
    A = [row for row, *_ in rows]
    d = len(A[0])
    kept = []
    for j in range(d):
        if rank([[row[c] for c in [*kept, j]] for row in A]) > len(kept):
            kept.append(j)
    rows = [([row[c] for c in kept], *rest) for row, *rest in rows]
    separated = [
        not equality and not is_combination(rows, [-v for v in row]) for row, equality, *_ in rows
    ]
    fixed = [row for (row, *_), s in zip(rows, separated, strict=True) if not s]
    statuses = ["not identified"] * d
    for place, j in enumerate(kept):
        unit = [Fraction(int(i == place)) for i in range(len(kept))]
        if rank([*fixed, unit]) == rank(fixed):
            statuses[j] = "finite"
            continue
        down = not is_combination(rows, unit)  # else w_j >= 0 in the whole cone
        up = not is_combination(rows, [-v for v in unit])
        statuses[j] = {(True, False): "+inf", (False, True): "-inf", (True, True): "inf"}[up, down]
    kind = "overlap" if not any(separated) else "complete" if all(separated) else "quasi-complete"
    where = [(i, j) for (_, _, i, j), s in zip(rows, separated, strict=True) if s]
    return kind, where, statuses
