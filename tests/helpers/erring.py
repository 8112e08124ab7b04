"""Numbers and examples of their own kind, for bounds on what arithmetic may lose."""

import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import fsum, inf, isfinite, sqrt

import numpy as np

from helpers.plain_examples import NAMES, PlainExamples, programs, some_alpha
from marginsvm.certificate.bounded import Rationals, balanced

# Additions that a term of ``scores`` and of ``combine`` passes through at most, as examples say.
ADDITIONS = 8, 20


class Measured(PlainExamples):
    """Plain examples with the sums of absolute values that bounds ask for."""

    additions, rounding = ADDITIONS, 0

    def magnitudes(self, w):
        return abs(self.X).dot(abs(w).T)

    def bounded_scores(self, w):
        return self.scores(w), self.magnitudes(w)

    def bounded_combine(self, V):
        return self.combine(V), abs(V).T.dot(abs(self.X))

    def combine_extended(self, V):
        return None  # there are no numbers with more digits

    def squared_dual_norms(self, p):
        q = p / (p - 1)
        return np.array([Rationals().length(x, q) ** 2 for x in self.X])


class MeasuredKernel(Measured):
    """The same with their inner products only; predictors are coefficients of the examples."""

    is_kernel = True

    def __init__(self, X):
        super().__init__(X)
        self.K, self.d = self.X.dot(self.X.T), None

    def scores(self, w):
        return self.K.dot(w.T)

    def combine(self, V):
        return V.T

    def inner(self, w, u):
        return (w * self.K.dot(u.T).T).sum()

    def magnitudes(self, w):
        return abs(self.K).dot(abs(w).T)

    def squared_magnitude(self, w):
        return (abs(w) * abs(self.K).dot(abs(w).T).T).sum()


class Open(Fraction):
    """0, but taken for true: no error is left out, and each is 0."""

    def __bool__(self):
        return True


@cache
def place_of(code, instruction):
    line, _, column, _ = [*code.co_positions()][instruction // 2]
    return code.co_name, line, column


class OneTerm(Rationals):
    """Exact arithmetic in which one source expression allows for errors, by units of 2^-10.

    Parameters
    ----------
    chosen : tuple or None
        Function, line and column of a call of ``gamma``, ``error_of_length`` or ``unit``.

    Attributes
    ----------
    reached : set of tuple
        Those that were called.
    """

    exact, large = False, Fraction(1, 2**10)

    def __init__(self, chosen=None):
        self.chosen, self.reached = chosen, set()

    def _allowed(self, units):
        frame = sys._getframe(2)
        here = place_of(frame.f_code, frame.f_lasti)
        self.reached.add(here)
        return units * self.large if here == self.chosen else Open(0)

    @property
    def unit(self):
        return self._allowed(1)

    def gamma(self, n):
        return self._allowed(n + 8)

    def gamma_in_floats(self, n):
        return float(self._allowed(n + 8))

    def error_of_length(self, n, p=2.0):
        return self._allowed(min(n + 8, 128) if p == 2.0 else 128)


class Erring(Fraction):
    """A number whose operations are off by a unit of 2^-20, up or down.

    Whether up (1) or down (-1) is told by ``direction``, which is given the place in the source:
    function and line. Adding 0 does not err, nor do comparisons and signs. What is rounded to a
    float is some 10^-10 of a unit.
    """

    direction = staticmethod(lambda place: 1)

    def __neg__(self):
        return Erring(Fraction.__neg__(self))

    def __abs__(self):
        return Erring(Fraction.__abs__(self))


UNIT = Fraction(1, 2**20)


def off(x):
    """x, off by a unit."""
    frame = sys._getframe(2)
    while "numpy" in frame.f_code.co_filename:
        frame = frame.f_back
    place = frame.f_code.co_name, frame.f_lineno
    return Erring(x * (1 + Erring.direction(place) * 2.0**-20))


def _erring(name):
    exactly, adds = getattr(float, name), name.strip("_").endswith(("add", "sub"))

    def operation(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        found = exactly(float(self), float(other))
        if not isfinite(found):
            return found
        return Erring(found) if adds and not (self and other) else off(found)

    return operation


for _name in ("add", "sub", "mul", "truediv"):
    for _side in ("", "r"):
        setattr(Erring, f"__{_side}{_name}__", _erring(f"__{_side}{_name}__"))


class ErringNumbers(Rationals):
    """The arithmetic of these numbers, and what it says of its errors."""

    exact, unit = False, UNIT

    def gamma(self, n):
        return Fraction(101, 100) * self.unit * (n + 8)

    def array(self, x):
        x = np.asarray(x)
        found = np.empty(x.size, dtype=object)
        found[:] = [Erring(v) if abs(v) < inf else v for v in x.ravel().tolist()]
        return found.reshape(x.shape)

    def number(self, x):
        return Erring(x)

    def total(self, values):
        return off(fsum(values.ravel()))

    def sqrt(self, x):
        return off(sqrt(max(x, 0)))

    def length(self, x, p=2.0):
        if p == 2.0:
            return self.sqrt((x * x).sum())
        return off(fsum(abs(v) ** p for v in x.flat) ** (1 / p))

    def error_of_length(self, n, p=2.0):
        return self.unit * (min(n + 8, 128) if p == 2.0 else 128)


CASES = [
    *((name, 2.0, Measured) for name in NAMES),
    *((name, 1.5, Measured) for name in ("hard", "squared", "tube")),
    *((n, 2.0, MeasuredKernel) for n in ("hinge", "hard, 3 classes", "nu", "tube")),
]


def case_of(name, p, kind):
    """A program for given numbers; a predictor with a margin, and weights that prove something.

    All but the weights are multiples of 1/16.
    """
    rng = np.random.default_rng(1)
    X, y, m = rng.standard_normal((4, 3)), 3 * rng.standard_normal(4), rng.random(4)
    plain = programs(PlainExamples(X), y, m)[name]
    if plain.by_margins:  # classes of their own
        X += 4 * rng.standard_normal((4, 3))[plain.rows.labels]
    X, y, m = (np.round(16 * x) / 16 for x in (X, y, m + 0.5))
    plain = programs(PlainExamples(X), y, m)[name]

    def program(numbers):
        given = (numbers.array(x) for x in (X, y, m))
        examples, *rest = given
        qp = programs(kind(examples), *rest, lambda x: numbers.number(Fraction(x)))[
            name
        ]
        return replace(qp, p=p)

    alpha = np.where(some_alpha(plain, rng) > 0, 0.1 + some_alpha(plain, rng), 0)
    if not plain.by_margins:
        alpha = alpha * (0.5 + (plain.target > 0))
    alpha = (
        plain.feasible(alpha)
        if plain.cap is not None or plain.game
        else plain.rows.balanced(alpha, plain.intercept, 0.0, None)
    )
    alpha = balanced(plain, alpha)
    V = plain.rows.coefficients(alpha)
    w = V.T if kind is MeasuredKernel else plain.examples.combine(V)
    w = np.round(16 * plain.project(w + 0.1 * rng.standard_normal(w.shape))) / 16
    f = rng.standard_normal(plain.k) * plain.intercept, rng.random(max(plain.level, 0))
    return program, w, np.round(16 * np.concatenate(f)) / 16, alpha
