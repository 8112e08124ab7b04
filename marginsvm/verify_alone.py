"""Check a proof of marginsvm without rounding, by nothing but Python's standard library.

    python verify_alone.py PROOF DATA

PROOF is a file by ``marginsvm.save_proof``. DATA is what the model was fitted to, as .npy or CSV:
a line for each example, with its features (or its line of the kernel matrix) and its class last.

A row is an example of a class c held against another class j. Its value is ``f_c - f_j`` (of two
classes, the decision value with the sign of the class). The margin of a predictor w is its
smallest value over ``|w|``; with C, it is ``1 / sqrt(|w|^2 + 2 C sum xi^2)``, where slack xi lifts
the values to 1 (hinge loss: ``2 C sum xi``, one xi for each example). Weights q >= 0 on the rows,
in which all classes weigh the same where the intercept is free, prove that no margin is above
``|A'q| / sum q``: the margin of w is at most its average value ``<w, A'q>``, for ``|w| = 1``.
"""

# mypy: disable-error-code="no-untyped-def"
import ast
import csv
import hashlib
import json
import struct
import sys
from array import array
from fractions import Fraction
from pathlib import Path


def read(path):
    """Features as floats, and labels as texts."""
    if not str(path).endswith(".npy"):
        lines = [line for line in csv.reader(Path(path).read_text().splitlines()) if line]
        return [[float(x) for x in line[:-1]] for line in lines], [line[-1] for line in lines]
    raw = Path(path).read_bytes()
    first = 10 if raw[6] == 1 else 12
    start = first + int.from_bytes(raw[8:first], "little")
    header = ast.literal_eval(raw[first:start].decode())
    (n, d), kind = header["shape"], {"<f8": "d", "<f4": "f"}[header["descr"]]
    numbers, (down, right) = array(kind, raw[start:]), (1, n) if header["fortran_order"] else (d, 1)
    numbers.byteswap() if sys.byteorder == "big" else None
    table = [[numbers[i * down + j * right] for j in range(d)] for i in range(n)]
    return [line[:-1] for line in table], [repr(line[-1]) for line in table]


def code_of(label, classes):
    """Index of the class that a label names, as a text or as a number; None: none of them."""

    def number(text):
        try:
            return float(text)
        except ValueError:
            return text

    found = [c for c, name in enumerate(classes) if label == name or number(label) == number(name)]
    return found[0] if found else None


def digest(X, codes):
    """Hash of all features, as little-endian float64, each line followed by its class."""
    found = hashlib.sha256(f"{len(X)} {len(X[0])}\n".encode())
    for row, c in zip(X, codes, strict=True):
        found.update(struct.pack(f"<{len(row)}dq", *row, -1 if c is None else c))
    return found.hexdigest()


def dyadic(pair):
    """A number of the file: [m, e] is m * 2**e."""
    m, e = pair
    if not (isinstance(m, int) and isinstance(e, int) and abs(e) < 5000):
        raise ValueError(f"{pair} is no number")
    return Fraction(m) * Fraction(2) ** e


def dot(a, b):
    """Sum of products."""
    return sum(x * y for x, y in zip(a, b, strict=True))


class Problem:
    """What the model was fitted to: the examples of positive weight, and what slack costs."""

    def __init__(self, proof, X, labels):
        codes = [code_of(label, proof["classes"]) for label in labels]
        if proof["format"] != "marginsvm proof 1" or digest(X, codes) != proof["sha256"]:
            raise ValueError("this is another kind of file, or a proof of other data")
        weight = [dyadic(x) for x in proof["example_weights"]]
        self.kept = [i for i, m in enumerate(weight) if m > 0]
        self.codes, self.k = [codes[i] for i in self.kept], len(proof["classes"])
        self.given = {"precomputed": True, "linear": False}[proof["kernel"]]
        self.X = [[Fraction(x) for x in X[i]] for i in self.kept]
        if self.given:
            self.X = [[row[j] for j in self.kept] for row in self.X]
        self.hinge = {"hinge": True, "squared_hinge": False}[proof["loss"]]
        C = dyadic(proof["C"]) if proof["C"] is not None else None
        self.cost = None if C is None else [C * weight[i] for i in self.kept]
        self.free = proof["intercept"] == "free"  # else the value of a constant feature; 0: none
        self.constant = Fraction(0) if self.free else dyadic(proof["intercept"])
        fits = len(weight) == len(X) and {*self.codes} == {*range(self.k)} and self.k > 1
        fits &= not self.given or [list(column) for column in zip(*self.X, strict=True)] == self.X
        if not fits or (C is not None and C <= 0):
            raise ValueError(
                "the classes, the kernel matrix, the weights of the examples or C are impossible"
            )

    def per_row(self, F):
        """Values of the rows of each example, from its scores."""
        if self.k == 2:
            return [[f[0] if c else -f[0]] for f, c in zip(F, self.codes, strict=True)]
        pairs = zip(F, self.codes, strict=True)
        return [[f[c] - f[j] for j in range(self.k) if j != c] for f, c in pairs]

    def values_and_square(self, W, b):
        """Values of a predictor on the rows, and its squared norm."""
        if (any(b) and not self.free and not self.constant) or len(W) != (1, self.k)[self.k > 2]:
            raise ValueError("this is no predictor of the problem")
        images = [[dot(x, w) for x in self.X] for w in W]
        square = sum(
            dot(image, w) if self.given else dot(w, w) for image, w in zip(images, W, strict=True)
        )
        if self.constant:
            square += dot(b, b) / self.constant**2
        lines = zip(*images, strict=True)
        return self.per_row(
            [[f + beta for f, beta in zip(line, b, strict=True)] for line in lines]
        ), square

    def has_margin(self, values, square, least):
        """Whether the margin of a predictor is no less than a number above 0."""
        if self.cost is None:
            worst = min(map(min, values))
            return worst > 0 and worst**2 >= least**2 * square
        for cost, line in zip(self.cost, values, strict=True):
            xi = [
                max(1 - value, 0) for value in line
            ]  # a row of k classes is sqrt(2) times as long
            square += 2 * cost * (max(xi) if self.hinge else dot(xi, xi) / (1 + (self.k > 2)))
        return least**2 * square <= 1

    def no_margin_above(self, q, most):
        """Whether weights prove that no margin is larger than a number."""
        mass = sum(map(sum, q))
        if min(map(min, q)) < 0 or mass <= 0 or most < 0:
            return False
        V = [[line[0] if c else -line[0]] for line, c in zip(q, self.codes, strict=True)]
        if self.k > 2:
            pairs = zip(q, self.codes, strict=True)
            V = [[sum(line) if j == c else -line[j] for j in range(self.k)] for line, c in pairs]
        square, columns = Fraction(0), [*zip(*V, strict=True)]
        for v in columns:
            square += (self.constant * sum(v)) ** 2
            image = [dot(v, column) for column in zip(*self.X, strict=True)]
            square += dot(image, v) if self.given else dot(image, image)
        if self.free and any(sum(v) != 0 for v in columns):
            return False  # the classes do not weigh the same
        if self.cost is None or not self.hinge:
            if self.cost is not None:
                terms = (dot(line, line) / cost for line, cost in zip(q, self.cost, strict=True))
                square += sum(terms) * (1 + (self.k > 2)) / 2
            return square <= (most * mass) ** 2
        sums = [sum(line) for line in q]  # the best multiple s that is below the costs
        s = min(cost / x for cost, x in zip(self.cost, sums, strict=True) if x > 0)
        s = min(s, mass / square) if square else s
        return most**2 * s * (2 * mass - s * square) >= 1


def check(proof, X, labels):
    """What is wrong with a proof of these data; an empty list: all that it claims is true."""
    problem, claims = Problem(proof, X, labels), proof["claims"]
    W, b = [[dyadic(x) for x in w] for w in proof["coef"]], [dyadic(x) for x in proof["intercept_"]]
    if problem.given:
        W = [[w[i] for i in problem.kept] for w in W]
    q = [[Fraction(0)] * (1, problem.k)[problem.k > 2] for _ in X]
    for i, j, *pair in proof["weights"]:
        q[i][j] = dyadic(pair)
    q = [q[i] for i in problem.kept]
    if problem.k > 2 and any(line[c] for line, c in zip(q, problem.codes, strict=True)):
        raise ValueError("an example is held against its own class")
    (values, square), least = problem.values_and_square(W, b), dyadic(claims["margin"])
    wrong = []
    if least > 0 and not problem.has_margin(values, square, least):
        wrong.append("the predictor has not the margin that is claimed")
    if not problem.no_margin_above(q, dyadic(claims["margin_bound"])):
        wrong.append("the weights do not prove the bound that is claimed")
    known, apart = claims["separable"], min(map(min, values)) > 0
    meet = problem.cost is None and problem.no_margin_above(q, 0)  # all rows cancel, exactly
    if not (known is None or (known is True and apart) or (known is False and meet)):
        wrong.append("it is not shown whether the classes can be separated")
    return wrong


if __name__ == "__main__":
    try:
        stated = json.loads(Path(sys.argv[1]).read_text())
        found, claims = check(stated, *read(sys.argv[2])), stated["claims"]
        lower, upper = (float(dyadic(claims[name])) for name in ("margin", "margin_bound"))
        true = f"TRUE: {lower!r} <= best margin <= {upper!r}"
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = [f"the files cannot be understood: {error!r}"]
    print("REFUSED: " + "; ".join(found) if found else true)
    sys.exit(bool(found))
