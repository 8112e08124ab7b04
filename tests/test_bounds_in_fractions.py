"""Published bounds hold for the published numbers, whatever these are, in fractions.

Examples, predictors and weights are taken as the floats that they are, and all sums of them are
computed in fractions. Fits end after some rounds, far from any solution, on examples that make
rounding as large as it can be beside what is bounded: terms that cancel, means far from 0, margins
of the size of rounding.
"""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import fit, parameters
from helpers.pairwise import pairwise

from marginsvm import (
    AcceleratedPerceptron,
    BatchPerceptron,
    DualLpPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
)


def exactly(X):
    return [[Fraction(x) for x in row] for row in np.atleast_2d(X).tolist()]


def squared(x):
    return sum(v * v for v in x)


class Published:
    """What a fit to two classes says, in fractions."""

    def __init__(self, clf, X, y, weight=None):
        X = X.toarray() if sp.issparse(X) else X
        sign = [1 if label == clf.classes_[1] else -1 for label in np.asarray(y)]
        self.rows = [[s * x for x in row] for s, row in zip(sign, exactly(X), strict=True)]
        (self.w,), self.b = exactly(clf.coef_), Fraction(float(clf.intercept_[0]))
        self.sign, self.intercept = sign, clf.fit_intercept
        self.q = [Fraction(v) for v in clf.certificate_.weights.toarray().ravel().tolist()]
        self.lower, self.upper = Fraction(clf.margin_), Fraction(clf.margin_bound_)
        self.C = None if np.isinf(clf.C) else Fraction(clf.C)
        self.m = [Fraction(1)] * len(sign) if weight is None else list(map(Fraction, weight))
        params = clf.get_params()
        self.hinge = params.get("loss") == "hinge"
        self.nu = None if params.get("nu") is None else Fraction(clf.nu)

    @property
    def values(self):
        """``y_i (w.x_i + b)``."""
        along = (sum(v * x for v, x in zip(self.w, row, strict=True)) for row in self.rows)
        return [value + s * self.b for value, s in zip(along, self.sign, strict=True)]

    def predictor_has_its_margin(self):
        length = squared(self.w)
        if self.C is not None:  # at the published scale, a margin is 1 / sqrt(2 P)
            slack = [max(1 - value, Fraction(0)) for value in self.values]
            costs = slack if self.hinge else [x * x for x in slack]
            P = length / 2 + self.C * sum(m * x for m, x in zip(self.m, costs, strict=True))
            return self.lower <= 0 or self.lower**2 * 2 * P <= 1
        top = min(self.values) if self.nu is None else self.mean_of_the_worst_share()
        return self.lower <= 0 or (top > 0 and self.lower**2 * length <= top**2)

    def mean_of_the_worst_share(self):
        left, mean = Fraction(1), Fraction(0)
        for value, m in sorted(zip(self.values, self.m, strict=True)):
            taken = min(left, m / (self.nu * sum(self.m)))
            left, mean = left - taken, mean + taken * value
        return mean

    def weights_prove_their_bound(self):
        mass, q = sum(self.q), self.q
        assert min(q) >= 0
        assert abs(mass - 1) < 1e-11
        if self.intercept:
            assert sum(s * v for s, v in zip(self.sign, q, strict=True)) == 0
        columns = zip(*self.rows, strict=True)
        image = [sum(v * x for v, x in zip(q, column, strict=True)) for column in columns]
        length = squared(image)
        if self.C is not None and not self.hinge:
            length += sum(v * v / (2 * self.C * m) for v, m in zip(q, self.m, strict=True) if v)
        if self.nu is not None:
            share = [m / (self.nu * sum(self.m)) for m in self.m]
            assert all(v <= cap * mass for v, cap in zip(q, share, strict=True))
        if self.C is None or not self.hinge:
            return (self.upper * mass) ** 2 >= length
        caps = [self.C * m / v for v, m in zip(q, self.m, strict=True) if v]
        t = min([*caps, mass / length] if length else caps)
        return self.upper**2 * 2 * (t * mass - t * t * length / 2) >= 1


def cancelling(rng, size, margin, n=8, d=3):
    """Examples whose margins under (1, ..., 1) are of the given size, as terms cancel."""
    y = np.arange(n) % 2
    big = rng.uniform(-size, size, (n, d))
    small = margin * rng.uniform(1.0, 2.0, (n, d)) * np.where(y == 1, 1.0, -1.0)[:, None]
    return np.hstack([big, small - big]), y


def far(rng, distance, n=8):
    """Far from the origin, with a column of zeros and ones, which CSR does not store everywhere."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 4)) + 3.0 * y[:, None] + distance * rng.uniform(1.0, 2.0, 4)
    X[:, 1] = rng.integers(0, 2, n)
    return X, y


def plain(rng, unit, n=9):
    """Random ones, some of them twice."""
    X, y = rng.standard_normal((n, 3)), np.arange(n) % 2
    X[y == 1, 0] += 2.0
    X[-2:] = X[:2]
    return unit * X, y


HOSTILE = {
    "cancelling to 1e-9": (cancelling, 1e3, 1e-9),
    "cancelling to 1e-12": (cancelling, 1e3, 1e-12),
    "cancelling to 1e-14": (cancelling, 1e3, 1e-14),
    "cancelling, large": (cancelling, 1e9, 1e-6),
    "far": (far, 1e3),
    "farther": (far, 1e6),
    "farthest": (far, 1e9),
    "plain": (plain, 1.0),
    "in small units": (plain, 1e-12),
    "in large units": (plain, 1e15),
}
ESTIMATORS = [
    AcceleratedPerceptron,
    BatchPerceptron,
    DualLpPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
]
LOSSES = {
    "hard": {},
    "squared hinge": {"C": 3.0},
    "small C": {"C": 1e-3},
    "hinge": {"C": 3.0, "loss": "hinge"},
    "hinge, small C": {"C": 1e-3, "loss": "hinge"},
    "share": {"nu": 0.3},
    "large share": {"nu": 0.7},
}


@pairwise(
    cls=ESTIMATORS,
    data=HOSTILE,
    loss=LOSSES,
    rounds=[1, 4, 40],
    fit_intercept=[False, True],
    form=[np.asarray, sp.csr_array],
    weighted=[False, True],
)
def test_bounds_are_those_of_the_published_numbers(
    cls, data, loss, rounds, fit_intercept, form, weighted
):
    params = {name: value for name, value in loss.items() if name in parameters(cls)}
    if cls is not MaxMarginClassifier:
        params.pop("loss", None)
    if cls is DualLpPerceptron:
        fit_intercept = False  # or it is a feature like any other
    kind, *size = data
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = kind(rng, *size)
        if "C" in params:  # of the problem in its own units
            params["C"] = loss["C"] / float(np.square(X - X.mean(axis=0)).sum(axis=1).max())
        weight = rng.integers(1, 4, len(y)).astype(float) if weighted else None
        clf = cls(max_iter=rounds, fit_intercept=fit_intercept, **params)
        clf = fit(clf, form(X), y, sample_weight=weight)
        published = Published(clf, form(X), y, weight)
        assert published.predictor_has_its_margin(), seed
        assert published.weights_prove_their_bound(), seed
        assert clf.separable_ is not True or min(published.values) > 0


@pytest.mark.parametrize("margin", [1e-10, 1e-14])
def test_the_sign_of_a_margin_that_is_rounding(margin):
    """Nothing is said to separate that does not in fractions; and something is said."""
    separated = 0
    for seed in range(30):
        X, y = cancelling(np.random.default_rng(seed), 1e3, margin, n=2)
        clf = fit(MomentumMarginClassifier(fit_intercept=False, max_iter=3), X, y)
        assert clf.separable_ is not True or min(Published(clf, X, y).values) > 0
        separated += clf.separable_ is True
    assert separated > 20
