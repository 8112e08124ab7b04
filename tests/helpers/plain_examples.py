"""Examples as a plain array, of floats or of Fractions: what a quadratic program asks for."""

from fractions import Fraction

import numpy as np


class PlainExamples:
    radius, sparse, mean = 1, False, None

    def __init__(self, X):
        self.X = np.asarray(X)
        self.n, self.d = self.X.shape

    @classmethod
    def in_fractions(cls, X):
        return cls(in_fractions(X))

    def scores(self, w):
        return self.X.dot(w.T)

    def combine(self, V):
        return V.T.dot(self.X)

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

    def second_moments(self, v):
        Z = np.column_stack([self.X, np.ones(self.n)])
        return (Z * v[:, None]).T.dot(Z)


def in_fractions(x):
    x = np.asarray(x, dtype=np.float64)
    flat = [Fraction(v) if np.isfinite(v) else v for v in x.ravel().tolist()]
    return np.array([*flat, None], dtype=object)[:-1].reshape(x.shape)
