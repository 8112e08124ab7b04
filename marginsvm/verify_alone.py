"""Check a proof without rounding, by Python alone: ``python verify_alone.py PROOF DATA``.

PROOF is a file by ``marginsvm.save_proof``; DATA what the model was fitted to, as .npy or CSV: a
line for each example, its features (or its line of the kernel matrix), then its class or targets.

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
"""

import ast
import csv
import hashlib
import json
import re
import struct
import sys
from fractions import Fraction
from math import inf
from pathlib import Path


def read(path):
    """Lines of numbers or, from CSV, of texts."""
    if not str(path).endswith(".npy"):
        return [
            line for line in csv.reader(Path(path).read_text().splitlines()) if line
        ]
    start = 10 + int.from_bytes((raw := Path(path).read_bytes())[8:10], "little")
    header = ast.literal_eval(raw[10:start].decode())
    (n, d), kind = header["shape"], {"<f8": "d", "<f4": "f"}[header["descr"]]
    numbers, by_columns = (
        struct.unpack(f"<{n * d}{kind}", raw[start:]),
        header["fortran_order"],
    )
    return [
        numbers[i::n] if by_columns else numbers[i * d : i * d + d] for i in range(n)
    ]


def table_of(proof, lines):
    """Numbers of each example, its class being the place of that in the file, and their hash."""
    if names := proof["classes"]:
        place, kind = {name: c for c, name in enumerate(names)}, type(names[0])
        lines = [[*line[:-1], place.get(kind(line[-1]), -1)] for line in lines]
    table = [[float(x) for x in line] for line in lines]
    numbers = [len(table), *(x for line in table for x in line)]
    return table, hashlib.sha256(struct.pack(f"<{len(numbers)}d", *numbers)).hexdigest()


def number(text):
    """A number of the file: a text such as 3/10 or -2."""
    if re.fullmatch(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?", text):
        return Fraction(text)
    raise ValueError(f"{text!r} is no number")


def dot(a, b, least=-inf):
    """Sum of products; squares of norms are at least 0, if a kernel matrix is one."""
    if (found := sum(x * y for x, y in zip(a, b, strict=True))) < least:
        raise ValueError("the kernel matrix is none of inner products")
    return found


def rows_of(proof, last, k):
    """Rows of examples, by the column of their weights: signs of scores, and both ends."""
    if proof["of"] == "targets":
        e, lines = number(proof["epsilon"]), [map(Fraction, line) for line in last]
        return [
            {o: ({o: 1}, y - e, y + e) for o, y in enumerate(line)} for line in lines
        ]
    codes = [int(c) for (c,) in last] if k else [1 for _ in last]
    if k < 3:  # two classes, or one
        return [{0: ({0: 2 * c - 1}, 1, inf)} for c in codes]
    return [{j: ({c: 1, j: -1}, 1, inf) for j in range(k) if j != c} for c in codes]


class Problem:
    """What the model was fitted to: the examples of positive weight, and what slack costs."""

    def __init__(self, proof, table):
        weight, k = [number(x) for x in proof["example_weights"]], len(proof["classes"])
        self.kept, self.tubes = (
            [i for i, m in enumerate(weight) if m > 0],
            proof["of"] == "targets",
        )
        self.m, self.scores = [weight[i] for i in self.kept], range(len(proof["coef"]))
        self.given = {"precomputed": True, "linear": False}[proof["kernel"]]
        d = len(table[0]) - (len(self.scores) if self.tubes else k > 0)
        used, last = (
            self.kept if self.given else range(d),
            [table[i][d:] for i in self.kept],
        )
        self.X = [[Fraction(table[i][j]) for j in used] for i in self.kept]
        self.W = [[number(w[j]) for j in used] for w in proof["coef"]]
        self.b, self.width = (
            [number(x) for x in proof[x]] for x in ("intercept_", "epsilon_")
        )
        self.free = (
            proof["intercept"] == "free"
        )  # else the value of a constant feature; 0: none
        self.unit = Fraction(0) if self.free else number(proof["intercept"])
        C, nu, self.slack = number(proof["C"]), number(proof["nu"]), proof["slack"]
        self.price = [C * m / (1 + (k > 2 and self.slack == "square")) for m in self.m]
        self.most, self.size = nu * sum(self.price), nu * sum(self.m) or min(self.m)
        self.rows = rows_of(proof, last, k)
        others = (
            zip(self.m, last, [[c]] * len(last)) for c in range(k if self.free else 0)
        )
        self.size = min(
            [self.size, *(2 * sum(m for m, x, c in z if x != c) for z in others)]
        )
        words = [
            ("none", 0, 0),
            ("square", 1, 0),
            ("size", 1, 0),
            ("size", 1, 1),
            ("share", 0, 1),
        ]
        fits = (self.slack, C > 0, nu > 0) in words[: 4 if self.tubes else None]
        fits &= min(C, nu, 1 - nu) >= 0 and (self.tubes or C * nu == 0)
        fits &= proof["of"] in (["classes"] if k else ["targets", "one class"])
        fits &= (e := number(proof["epsilon"])) == 0 or (self.tubes and e > nu == 0)
        fits &= len(weight) == len(table) and (
            self.free or self.unit != 0 or not any(self.b)
        )
        fits &= self.tubes or len(self.scores) == (k if k > 2 else 1)
        fits &= k == 0 or (k > 1 and {c for (c,) in last} == {*range(k)})
        if not fits or (self.given and [[*x] for x in zip(*self.X)] != self.X):
            raise ValueError(
                "the kernel matrix is not symmetric" if fits else "this is no problem"
            )

    def predictor(self, o):
        """P of the predictor, its smallest value, and how far values are from their intervals."""
        used, worst, away = [o] if self.tubes else self.scores, [], []
        F = {s: [dot(x, self.W[s]) for x in self.X] for s in used}
        P = sum(dot(F[s] if self.given else self.W[s], self.W[s], 0) for s in used) / 2
        P += sum((self.b[s] / self.unit) ** 2 / 2 for s in used if self.unit)
        for i, of_columns in enumerate(self.rows):
            rows = [row for j, row in of_columns.items() if j == o or not self.tubes]
            values = [
                sum(x * (F[s][i] + self.b[s]) for s, x in row.items())
                for row, _, _ in rows
            ]
            worst.append((min(values), self.m[i]))
            away.append(
                [max(low - v, v - high, 0) for v, (_, low, high) in zip(values, rows)]
            )
        if self.slack == "square":
            P += sum(price * dot(xi, xi) for price, xi in zip(self.price, away))
        elif self.slack == "size":
            width = self.width[o] if self.most else 0
            P += (
                dot(self.price, [max(*xi, width) - width for xi in away])
                + self.most * width
            )
        elif not self.tubes:
            left, mean = self.size, 0
            for value, m in sorted(worst):
                mean, left = (
                    mean + min(m, left) * value / self.size,
                    left - min(m, left),
                )
            P = P / mean**2 if mean > 0 else inf
        return P, min(worst)[0], max(map(max, away))

    def bound(self, q):
        """No P is smaller; infinite: no w has its values where they are to be."""
        gain, square, V = 0, 0, [[0 for _ in self.scores] for _ in q]
        for i, line in enumerate(q):
            for j, x in line.items():
                row, low, high = self.rows[i][j]
                gain += x * (low if x > 0 else high)
                square += x * x / (2 * self.price[i]) if self.slack == "square" else 0
                for s, sign in row.items():
                    V[i][s] += sign * x
        for v in zip(*V):
            image = [dot(v, column) for column in zip(*self.X)]
            square += (
                dot(image, v if self.given else image, 0) + (self.unit * sum(v)) ** 2
            )
        of = [sum(map(abs, line.values())) for line in q]
        above = self.slack == "share" and self.size * max(
            x / m for x, m in zip(of, self.m)
        ) > sum(of)
        if above or gain <= 0 or (self.free and any(map(sum, zip(*V)))):
            return 0
        limits = [
            price / x for price, x in zip(self.price, of) if x and self.slack == "size"
        ]
        limits += [self.most / sum(of)] if self.most else []
        s = min([*limits, gain / square if square else inf])
        return inf if s == inf else s * gain - s * s * square / 2


def check(proof, lines):
    """What is wrong with a proof of these data; an empty list: all that it claims is true."""
    table, sha256 = table_of(proof, lines)
    if (proof["format"], proof["sha256"]) != ("marginsvm proof 3", sha256):
        raise ValueError(
            "this is another kind of file (save it again), or a proof of other data"
        )
    problem, claims, wrong = Problem(proof, table), proof["claims"], []
    q = [[{} for _ in problem.kept] for _ in (problem.scores if problem.tubes else [0])]
    for i, j, x in proof["weights"]:
        q[j if problem.tubes else 0][problem.kept.index(i)][j] = number(x)
    found, bounds = (
        [problem.predictor(o) for o in range(len(q))],
        [*map(problem.bound, q)],
    )
    claimed = zip(claims["reached"], claims["bound"], strict=True)
    for (P, _, away), bound, pair in zip(found, bounds, claimed, strict=True):
        reached, limit = (inf if x is None else number(x) for x in pair)
        if problem.tubes:
            shown, proved = (
                reached >= P and away <= number(claims["violation"]),
                limit <= bound,
            )
        else:
            shown = reached <= 0 or 2 * P * reached**2 <= 1
            proved = limit >= 0 and (bound == inf or 2 * bound * limit**2 >= 1)
        wrong += ["the predictor is not as good as is claimed"] * (not shown)
        wrong += ["the weights do not prove the bound that is claimed"] * (not proved)
    fits = all(away == 0 if problem.tubes else worst > 0 for _, worst, away in found)
    if not {None: True, True: fits, False: inf in bounds}[claims["feasible"]]:
        wrong.append("it is not shown whether a predictor fits without slack")
    return wrong


def main(proof, data):
    """Print what is found; the exit status."""
    try:
        stated = json.loads(Path(proof).read_text())
        wrong = check(stated, read(data))
        text = ("{} <= best margin <= {}", "P = {}, the least >= {}")[
            stated["of"] == "targets"
        ]
        ends = (stated["claims"][name] for name in ("reached", "bound"))
        ends = ([float(number(x)) if x else inf for x in end] for end in ends)
        true = "; ".join(map(text.format, *ends))
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
    ) as error:
        wrong = [f"the files cannot be understood: {error!r}"]
    print("REFUSED: " + "; ".join(wrong) if wrong else "TRUE: " + true)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
