"""Programs of each kind, on examples as a plain array, of floats or of Fractions, and on others."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from marginsvm.certificate.bounded import Rationals
from marginsvm.certificate.exact_examples import ExactFeatures
from marginsvm.problem.design import Design
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.programs import classification, one_class, regression


class PlainExamples:
    """What a quadratic program asks for."""

    radius, sparse, mean, is_kernel = 1, False, None, False

    def __init__(self, X):
        self.X = np.asarray(X)
        self.n, self.d = self.X.shape
        self.width = self.d

    @classmethod
    def in_fractions(cls, X):
        return cls(in_fractions(X))

    def scores(self, w):
        return self.X.dot(w.T)

    def combine(self, V):
        return V.T.dot(self.X)

    def scores_and_combination(self, w, V):
        return self.scores(w), self.combine(V)

    def inner(self, w, u):
        return (w * u).sum()

    @property
    def squared_norms(self):
        return (self.X * self.X).sum(axis=1)

    def gram(self, i, j):
        return self.X[i].dot(self.X[j].T)

    def columns(self, i):
        return self.X[i].dot(self.X.T)

    def take(self, i):
        return type(self)(self.X[i])

    def rows(self, i):
        return self.X[i]

    def all_rows(self):
        return self.rows(slice(None)), 1.0

    def second_moments(self, v):
        Z = np.column_stack([self.X, np.ones(self.n)])
        return (Z * v[:, None]).T.dot(Z)


def in_fractions(x):
    x = np.asarray(x, dtype=np.float64)
    flat = [Fraction(v) if np.isfinite(v) else v for v in x.ravel().tolist()]
    return np.array([*flat, None], dtype=object)[:-1].reshape(x.shape)


def programs(examples, y, m, number=float):
    """A program of each kind, by name, with targets, sample weights and numbers of one type."""
    n, C, tenth = examples.n, number(2.0), number(0.1)
    low = np.where(np.arange(n) % 4 == 0, -np.inf, y - tenth)

    def of_classes(k, **given):
        return classification(examples, np.arange(n) % k, k, weight=m, **given)

    def tube(low, high, **given):
        return regression(examples, low, high, weight=m, **given)

    return {
        "hinge": of_classes(2, C=C, loss="hinge"),
        "squared": of_classes(2, C=C),
        "hard": of_classes(2),
        "nu": of_classes(2, nu=number(0.7)),
        "signs": of_classes(2, C=C, signs=np.array([1, -1, 0])),
        "no intercept": of_classes(2, C=C, intercept=False),
        "Crammer-Singer": of_classes(3, C=C, loss="hinge"),
        "squared, 3 classes": of_classes(3, C=C),
        "hard, 3 classes": of_classes(3),
        "nu, 3 classes": of_classes(3, nu=number(0.7)),
        "no intercept, 4 classes": of_classes(4, C=C, loss="hinge", intercept=False),
        "tube": tube(y - tenth, y + tenth, C=C),
        "squared tube": tube(low, y + tenth, C=C, loss="squared_epsilon_insensitive"),
        "hard tube": tube(y - 5, y + 5),
        "nu tube": tube(y, y, C=C, nu=number(0.4)),
        "one class": one_class(examples, number(0.3), m),
    }


NAMES = [*programs(PlainExamples(np.zeros((4, 3))), np.zeros(4), np.ones(4))]


def in_both(name, X, y, m, p=2.0):
    """A program in floats, about the mean if the intercept is free, and in fractions."""
    free, exact = programs(PlainExamples(X), y, m)[name].intercept, Rationals()
    design = Design.of(X, X.mean(axis=0) if free else None, norm=LpNorm(p))
    given = ExactFeatures(X, centred=free), exact.array(y), exact.array(m), exact.number
    return [
        replace(qp, p=p)
        for qp in (programs(design, y, m)[name], programs(*given)[name])
    ]


def some_alpha(qp, rng):
    """Weights between 0 and 1."""
    alpha = rng.uniform(0.0, 1.0, qp.shape)
    qp.rows.fill(alpha, 0.0)
    return alpha
