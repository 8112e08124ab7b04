"""Check a proof without rounding, by Python alone: ``python verify_alone.py PROOF DATA``.

PROOF is a file by ``marginsvm.save_proof``; DATA what the model was fitted to, as .npy, or as CSV
without a header: a line for each example, its features (or its line of the kernel matrix), then its
class or targets. It prints TRUE, what is proved and of which problem; or REFUSED, and why.

All are one problem: the least ``P = |w|^2 / 2 + (what slack costs)``, where the values on the rows
are in intervals, but for slack. A row of classes is an example of class c held against class j; its
value ``f_c - f_j`` is to be 1 or more (two classes: the decision value with the sign of the class;
outliers: without offset). Each target is a problem, and each example a row, whose prediction is to
be in ``[y - epsilon, y + epsilon]``. Slack xi of an example of weight m costs ``C m xi`` ("size":
the largest of its rows; a width that a share nu finds costs ``C nu M``, M being the sum of all m)
or ``C m xi^2`` ("square"; half of it for each row of k classes). Without slack, targets may be
missed by a violation, and w of classes is scaled: to a worst value of 1 ("none") or a mean of 1 of
the worst values of the share nu M ("share"; with an intercept no class has more than half of it). A
margin is ``1 / sqrt(2 P)``. Weights q on the rows prove that P is at least ``gain - |A'q|^2 / 2``;
the gain is the sum of the ends times q, upper ones where q < 0. They balance if the intercept is
free. The costs of slack limit them; those of a share nu M are at most m.

Data are doubles and become fractions at once: no float is in a sum, a product or a comparison. None
stands for infinity, as the upper end of a row of classes, or as P where nothing fits.
"""

import csv
import hashlib
import io
import json
import re
import struct
import sys
from decimal import ROUND_CEILING as UP
from decimal import ROUND_FLOOR as DOWN
from decimal import Context
from fractions import Fraction
from itertools import chain
from math import isfinite
from operator import index
from pathlib import Path
from reprlib import repr as shown


class RefusedError(ValueError):
    """A sentence on what was expected, and what was found."""


FAULTS = (  # what Python raises where something is not what it is to be
    ArithmeticError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    csv.Error,
    struct.error,
)


def expect(holds, wanted, found):
    """Refuse the files, unless something holds."""
    if not holds:
        raise RefusedError(f"expected {wanted}, found {found}")


# The parts of a file. Each function reads one kind of part; its first line says what it wants.

NUMBER = re.compile(r"-?[0-9]{1,4000}(/0*[1-9][0-9]{0,3999})?")


def number(text):
    """A number, as a text such as 3/10 or -2."""
    return Fraction(NUMBER.fullmatch(text)[0])


def size(text):
    """A number, as a text such as 3/10, not negative."""
    found = number(text)
    if found < 0:
        raise ValueError
    return found


def number_or_null(text):
    """A number, as a text such as 3/10 or -2, or null for infinity."""
    return None if text is None else number(text)


def size_or_null(text):
    """A number, as a text such as 3/10, not negative, or null for infinity."""
    return None if text is None else size(text)


def intercept(text):
    """The word free, or the value of a constant feature as a text; 0: there is none."""
    return None if text == "free" else number(text)


def weight(entry):
    """An example, a column, and a number as a text such as 3/10 or -2."""
    i, j, text = entry
    return index(i), index(j), number(text)


def name(x):
    """A text, or a number."""
    return x if isinstance(x, str) else float(x)


def later(part):
    """What is read later."""
    return part


def one_of(*words):
    """One of these words."""

    def read_word(found):
        return words[words.index(found)]

    read_word.__doc__ = f"One of {words}."
    return read_word


def list_of(entry):
    """A list with entries of one kind."""

    def read_list(values):
        return [entry(value) for value in list.copy(values)]

    read_list.__doc__ = f"A list. Each of its entries: {entry.__doc__}"
    return read_list


FIELDS = {
    "format": one_of("marginsvm proof 3"),
    "of": one_of("classes", "targets", "one class"),
    "classes": list_of(name),
    "kernel": one_of("linear", "precomputed"),
    "slack": one_of("none", "square", "size", "share"),
    "C": size,
    "nu": size,
    "epsilon": size,
    "intercept": intercept,
    "example_weights": list_of(size),
    "coef": list_of(list_of(number)),
    "intercept_": list_of(number),
    "epsilon_": list_of(size),
    "sha256": later,
    "weights": list_of(weight),
    "claims": later,
}
CLAIMS = {
    "reached": list_of(number_or_null),
    "bound": list_of(size_or_null),
    "feasible": one_of(True, False, None),
}
LOSSES = {  # of which values, with which slack, C and nu
    "margins none": "hard margin",
    "margins square C": "squared hinge loss with C = {C}",
    "margins size C": "hinge loss with C = {C}",
    "margins share nu": "mean of the smallest margins, of the share nu = {nu}",
    "targets none": "hard tubes with epsilon = {epsilon}",
    "targets square C": "squared loss beyond epsilon = {epsilon}, with C = {C}",
    "targets size C": "loss beyond epsilon = {epsilon}, with C = {C}",
    "targets size C nu": "loss beyond the epsilon that nu = {nu} finds, with C = {C}",
}


def parts_of(table, fields):
    """The parts of a file; there are no others."""
    fits = isinstance(table, dict) and {*table} == {*fields}
    expect(fits, f"a table of {', '.join(fields)}, and no more", shown(table))
    found = {}
    for name, read_part in fields.items():
        try:
            found[name] = read_part(table[name])
        except FAULTS as error:
            raise RefusedError(
                f"expected {name} as save_proof writes it: {read_part.__doc__} "
                f"Found: {shown(table[name])}"
            ) from error
    return found


# The data.

TABLE = "a table as CSV in UTF-8, or .npy of floats, integers or bools (version 1)"
NPY = re.compile(
    rb"\x93NUMPY\x01[\s\S]{3}{'descr': '([<>|])(f[248]|[iu][1248]|b1)', "
    rb"'fortran_order': (\w+), "
    rb"'shape': \((\d{1,15}), (\d{1,15})\), } *\n"
)
KINDS = "f8d f4f f2e b1? i8q i4i i2h i1b u8Q u4I u2H u1B"  # of NumPy, then of struct


def lines_of_npy(raw):
    """Lines of numbers."""
    header = NPY.match(raw)
    if not header:
        raise ValueError(f"the header {raw[10:90]}")
    order, kind, by_columns, n, d = (part.decode() for part in header.groups())
    n = int(n)
    d = int(d)
    letter = KINDS[KINDS.index(kind) + 2]
    numbers = raw[header.end() :]
    numbers = struct.unpack(f"{order.replace('|', '<')}{n * d}{letter}", numbers)
    if by_columns == "True":
        return [numbers[i::n] for i in range(n)]
    return [numbers[i * d : i * d + d] for i in range(n)]


def lines_of_csv(raw):
    """Lines of texts."""
    text = io.StringIO(raw.decode("utf-8-sig"), newline="")
    return [line for line in csv.reader(text) if line]


def read(path, parse, wanted):
    """What a file holds."""
    try:
        return parse(Path(path).read_bytes())
    except FAULTS as error:
        raise RefusedError(f"expected {wanted} in {path}, found: {error}") from error


def table_of(names, lines):
    """Doubles of each example, its class being the place of that in the file, and their hash."""
    place = {name: c for c, name in enumerate(names)}
    table = []
    for i, line in enumerate(lines, 1):
        try:
            row = [float(x) for x in (line[:-1] if names else line)]
            if names:
                row.append(place.get(type(names[0])(line[-1]), -1))
        except FAULTS as error:
            raise RefusedError(
                f"expected numbers in line {i} (without a header), found: {error}"
            ) from error
        if len(line) != len(lines[0]) or not all(map(isfinite, row)):
            raise RefusedError(
                f"expected {len(lines[0])} columns of finite numbers in line {i}, "
                f"found {len(line)}: {shown(line)}"
            )
        table.append(row)
    numbers = [len(table), *chain(*table)]
    return table, hashlib.sha256(struct.pack(f"<{len(numbers)}d", *numbers)).hexdigest()


# What is proved.


def dot(a, b):
    """Sum of products."""
    return sum(x * y for x, y in zip(a, b))


def square_of(a, b):
    """The same, where it is the square of a norm, if a kernel matrix is one."""
    found = dot(a, b)
    expect(found >= 0, "a kernel matrix of inner products", "a negative square")
    return found


def is_at_most(x, y):
    """Whether ``x <= y``; None is infinite."""
    return y is None or (x is not None and x <= y)


def objective_of(margin):
    """P of a margin: so claims on margins are claims on P."""
    if margin is None:
        return 0
    return 1 / (2 * margin**2) if margin > 0 else None


class Problem:
    """What the model was fitted to, and all that the file says; its parts are attributes."""

    def __init__(self, proof, lines):
        vars(self).update(parts_of(proof, FIELDS))
        table, sha256 = table_of(self.classes, lines)
        self.n = len(self.example_weights)
        self.k = len(self.classes)
        expect(len(table) == self.n, f"{self.n} lines (without a header)", len(table))
        self.kept = [i for i, m in enumerate(self.example_weights) if m]
        expect(self.kept, "an example with weight", "none")
        self.m = [self.example_weights[i] for i in self.kept]
        self.tubes = self.of == "targets"
        self.given = self.kernel == "precomputed"
        self.free = self.intercept is None
        self.unit = self.intercept or 0
        self.read_data(table)
        expect(
            sha256 == self.sha256,
            f"data of the SHA-256 {shown(self.sha256)}: what the last step of a pipeline was "
            "fitted to, in the same order, float32 with all digits",
            f"other data, of {sha256}",
        )
        self.read_claims()

    def read_data(self, table):
        """Features, and the predictor for them."""
        n_scores = len(self.coef) or 1 if self.tubes else self.k if self.k > 2 else 1
        d = len(table[0]) - (n_scores if self.tubes else self.k > 0)
        sizes = [d] * n_scores, n_scores, n_scores * (self.tubes and self.nu > 0)
        found = [*map(len, self.coef)], len(self.intercept_), len(self.epsilon_)
        expect(
            found == sizes,
            f"{sizes} numbers in coef, intercept_ and epsilon_ for data of {len(table[0])} columns",
            found,
        )
        expect(d == self.n or not self.given, f"a kernel matrix of {self.n} columns", d)
        used = self.kept if self.given else range(d)
        unused = [w[j] for w in self.coef for j in {*range(d)} - {*used}]
        unused += [] if self.free or self.unit else self.intercept_
        expect(not any(unused), "coefficients 0 of what is not used", "others")
        self.scores = range(n_scores)
        self.W = [[w[j] for j in used] for w in self.coef]
        self.X = [[Fraction(table[i][j]) for j in used] for i in self.kept]
        fits = not self.given or [[*x] for x in zip(*self.X)] == self.X
        expect(fits, "a symmetric kernel matrix", "one that is not symmetric")
        last = [table[i][d:] for i in self.kept]
        self.read_rows(last)
        self.read_cost(last)

    def read_rows(self, last):
        """Rows by example and column, signs of scores and both ends, of classes or targets."""
        self.rows = {}
        for i, line in enumerate(last):
            if self.tubes:
                for o, y in enumerate(map(Fraction, line)):
                    self.rows[i, o] = {o: 1}, y - self.epsilon, y + self.epsilon
            elif self.k > 2:
                for j in {*range(self.k)} - {*line}:
                    self.rows[i, j] = {line[0]: 1, j: -1}, 1, None
            else:  # two classes, or one
                self.rows[i, 0] = {0: 2 * line[0] - 1 if line else 1}, 1, None
        codes = {c for line in last for c in line[: self.k]}
        fits = self.k > 1 if self.of == "classes" else self.k == 0
        expect(
            fits and codes == {*range(self.k)},
            f"{self.of} {shown(self.classes)}, each with examples of weight, and no others",
            f"labels at the places {codes} of these; -1: at none (.npy holds no texts)",
        )

    def read_cost(self, last):
        """The loss, with C, nu and epsilon that it takes, and what slack costs."""
        self.loss = (
            f"{'targets' if self.tubes else 'margins'} {self.slack}{' C' * (self.C > 0)}"
            f"{' nu' * (self.nu > 0)}{' above 1' * (self.nu > 1)}"
            f"{' epsilon' * (self.epsilon > 0 and (self.nu > 0 or not self.tubes))}"
        )
        expect(self.loss in LOSSES, f"one of {', '.join(LOSSES)}", self.loss)
        halves = 2 if self.k > 2 and self.slack == "square" else 1
        self.price = [self.C * m / halves for m in self.m]
        self.most = self.nu * sum(self.price)
        self.size = self.nu * sum(self.m) or min(self.m)
        for c in range(self.k if self.free else 0):
            others = [m for m, line in zip(self.m, last) if line != [c]]
            self.size = min(self.size, 2 * sum(others))

    def read_claims(self):
        """The weights q by rows, and the claims."""
        place = {i: at for at, i in enumerate(self.kept)}
        self.q = {(place.get(i), j): x for i, j, x in self.weights}
        fits = {*self.q} <= {*self.rows} and len(self.q) == len(self.weights)
        expect(fits, "one weight for a row of an example with weight", "others")
        fields = {**CLAIMS, "violation": size} if self.tubes else CLAIMS
        vars(self).update(parts_of(self.claims, fields))
        self.problems = self.scores if self.tubes else [0]
        sizes = [len(self.reached), len(self.bound)]
        wanted = f"{len(self.problems)} entries in reached and bound"
        expect(sizes == [len(self.problems)] * 2, wanted, sizes)

    def predictor(self, o):
        """P of the predictor, its smallest value, and how far values are from their intervals."""
        used = [o] if self.tubes else self.scores
        b = self.intercept_
        F = {s: [dot(x, self.W[s]) for x in self.X] for s in used}
        P = (
            sum(square_of(F[s] if self.given else self.W[s], self.W[s]) for s in used)
            / 2
        )
        P += sum((b[s] / self.unit) ** 2 / 2 for s in used if self.unit)
        worst = {}
        slack = {}
        for (i, j), (row, low, high) in self.rows.items():
            if self.tubes and j != o:
                continue
            value = sum(x * (F[s][i] + b[s]) for s, x in row.items())
            missed = max(low - value, 0 if high is None else value - high, 0)
            worst[i] = min(worst.get(i, value), value)
            slack[i] = max(slack.get(i, 0), missed)
            P += self.price[i] * missed**2 if self.slack == "square" else 0
        if self.slack == "size":
            width = self.epsilon_[o] if self.most else 0
            P += sum(self.price[i] * max(xi - width, 0) for i, xi in slack.items())
            P += self.most * width
        elif self.slack != "square" and not self.tubes:
            mean = 0
            left = self.size
            for i in sorted(worst, key=worst.get):
                part = min(self.m[i], left)
                mean += part * worst[i] / self.size
                left -= part
            P = P / mean**2 if mean > 0 else None
        return P, min(worst.values()), max(slack.values())

    def least(self, o):
        """No P is smaller; None: no w has its values where they are to be."""
        gain = 0
        square = 0
        of = [0 for _ in self.kept]
        V = [[0 for _ in self.kept] for _ in self.scores]
        for (i, j), x in self.q.items():
            if self.tubes and j != o:
                continue
            row, low, high = self.rows[i, j]
            end = high if x < 0 else low
            if end is None:
                return 0
            gain += x * end
            square += x * x / (2 * self.price[i]) if self.slack == "square" else 0
            of[i] += abs(x)
            for s, sign in row.items():
                V[s][i] += sign * x
        total = sum(of)
        above = any(self.size * x > total * m for x, m in zip(of, self.m))
        if self.slack == "share" and above:
            return 0
        if gain <= 0 or (self.free and any(map(sum, V))):
            return 0
        for v in V:
            image = [dot(v, column) for column in zip(*self.X)]
            square += square_of(image, v if self.given else image)
            square += (self.unit * sum(v)) ** 2
        multiples = [gain / square] if square else []
        multiples += [self.most / total] if self.most else []
        if self.slack == "size":
            multiples += [price / x for price, x in zip(self.price, of) if x]
        if not multiples:
            return None
        s = min(multiples)
        return s * gain - s * s * square / 2

    def wrong(self):
        """What is wrong with the claims."""
        wrong = []
        fits = []
        bounds = []
        for o, *ends in zip(self.problems, self.reached, self.bound):
            reached, limit = ends if self.tubes else map(objective_of, ends)
            P, worst, missed = self.predictor(o)
            least = self.least(o)
            if not is_at_most(P, reached):
                wrong.append(
                    f"the predictor has P = {near(P, UP)}, not {near(reached, DOWN)} or less"
                )
            if not is_at_most(limit, least):
                wrong.append(
                    f"the weights prove P >= {near(least, DOWN)}, not {near(limit, UP)} or more"
                )
            if self.tubes and missed > self.violation:
                wrong.append(
                    f"the predictor misses an interval by {near(missed, UP)}, "
                    f"not {near(self.violation, DOWN)} or less"
                )
            fits.append(missed == 0 if self.tubes else worst > 0)
            bounds.append(least)
        proved = {True: all(fits), False: None in bounds, None: True}
        if not proved[self.feasible]:
            wrong.append(f"it is not shown that feasible is {self.feasible}")
        return wrong

    def in_words(self):
        """What is claimed, and of which problem."""
        bounds = []
        for reached, limit in zip(self.reached, self.bound):
            of_P = f"the predictor's P <= {near(reached, UP)}, the least >= {near(limit, DOWN)}"
            of_margin = f"{near(reached, DOWN)} <= best margin <= {near(limit, UP)}"
            bounds.append(of_P if self.tubes else of_margin)
        used = {name: float(near(vars(self)[name])) for name in ("C", "nu", "epsilon")}
        return (
            f"{'; '.join(bounds)} ({LOSSES[self.loss].format_map(used)}; "
            f"{self.kernel} kernel{' (if of inner products)' * self.given}; "
            f"intercept: {'free' if self.free else near(self.unit) or 'none'}; "
            f"{len(self.kept)} of {self.n} examples have weight, "
            f"{float(near(min(self.m)))} to {float(near(max(self.m)))}; "
            f"{self.of}{': ' * (self.k > 0)}{', '.join(map(repr, self.classes))}; "
            f"{f'missed by {near(self.violation, UP)} at most; ' if self.tubes else ''}"
            f"{'fitted without slack' if self.tubes else 'separated'}: "
            f"{'not claimed' if self.feasible is None else self.feasible})"
        )


def check(proof, lines):
    """What is wrong with a proof of these data; an empty list: all that it claims is true."""
    return Problem(proof, lines).wrong()


# What is printed.


def near(x, rounding=None):
    """A number in 12 digits."""
    if x is None:
        return "infinity"
    return Context(prec=12, rounding=rounding).divide(x.numerator, x.denominator)


def main(proof, data):
    """Print what is found; the exit status."""
    try:
        stated = read(proof, json.loads, "a proof in JSON")
        parse = lines_of_npy if str(data).endswith(".npy") else lines_of_csv
        problem = Problem(stated, read(data, parse, TABLE))
        wrong = problem.wrong()
    except RefusedError as refusal:
        wrong = [str(refusal)]
    print(f"REFUSED: {'; '.join(wrong)}" if wrong else f"TRUE: {problem.in_words()}")
    return bool(wrong)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python verify_alone.py PROOF DATA")
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main(*sys.argv[1:]))
