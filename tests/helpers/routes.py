"""Small problems for every rule of the exact solver's portfolio, and the routes of their fits.

    cd tests && python -m helpers.routes

prints the table of routes and passes that ``test_routes`` holds them to.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from helpers.estimators import fit
from marginsvm import MaxMarginClassifier, MaxMarginOutlierDetector, MaxMarginRegressor
from marginsvm.algorithms.exact.portfolio import FIRST
from marginsvm.algorithms.exact.shape import Shape
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.certify.spec import ProblemSpec
from marginsvm.estimator.interval_set import interval_set
from marginsvm.estimator.one_class import one_class_set
from marginsvm.estimator.training_set import training_set

READ = {
    MaxMarginClassifier: lambda clf, X, y: training_set(clf, X, y, None),
    MaxMarginRegressor: lambda reg, X, y: interval_set(reg, X, y, None),
    MaxMarginOutlierDetector: lambda detector, X, y: one_class_set(detector, X, None),
}


def gauss(n, d, k=2, apart=1.0, seed=0):
    """Normal clouds, each moved along an axis of its own."""
    rng, y = np.random.default_rng(seed), np.arange(n) % k
    X = rng.standard_normal((n, d))
    X[np.arange(n), y] += apart
    return X, y


def clouds(n, d, k, apart=2.0, seed=0):
    """Normal clouds about normal centres."""
    rng, y = np.random.default_rng(seed), np.arange(n) % k
    return apart * rng.standard_normal((k, d))[y] + rng.standard_normal((n, d)), y


def text(n, d, k=2, apart=1.0, density=0.02, seed=0, constant=0.0):
    """Sparse examples with a word for each class, and maybe a word that all have."""
    rng, y = np.random.default_rng(seed), np.arange(n) % k
    X = sp.random_array((n, d), density=density, rng=rng).toarray()
    X[np.arange(n), y] += apart
    if constant:
        X[:, -1] = constant
    return sp.csr_array(X), y


def in_units(X, y, spread=1.5, seed=9):
    """The same with columns in units of their own."""
    return X * np.exp(spread * np.random.default_rng(seed).standard_normal(X.shape[1])), y


def in_decades(n, d, decades=4.0, seed=0):
    """Two classes that a linear function of columns tells apart, in units of eight decades."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.argmax(X @ rng.standard_normal((d, 2)), axis=1)
    return X * 10.0 ** np.linspace(-decades, decades, d), y


def near_copies(n=80, unit=3e7, seed=1):
    """Columns in large units that differ by 1, as seconds of beginnings and ends, and others."""
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((n, 6)), rng.standard_normal(n)
    y = np.where(X[:, 1] + X[:, -1] + noise > 0.0, 1, 0)
    X[:, :3] += unit * rng.standard_normal((n, 1))
    return X, y


@dataclass(frozen=True)
class Case:
    """A fit and the portfolio that it chooses from."""

    data: tuple
    params: dict = field(default_factory=dict)
    numbers: dict = field(default_factory=dict)
    estimator: type = MaxMarginClassifier

    def classifier(self):
        clf = self.estimator(**self.params, warm_start=True)
        clf._portfolio = Portfolio(**self.numbers)
        return clf

    def fitted(self):
        return fit(self.classifier(), *self.data)

    def first_rule(self):
        """The rule that chooses the first method."""
        clf = self.classifier()
        training = READ[self.estimator](clf, *self.data)
        problem = training.problem(ProblemSpec.of(clf), clf._algorithm().requires)
        shape = Shape.of(problem)
        return next(rule for rule in FIRST if rule.applies(shape, clf._portfolio))


def line(n, d, seed=0):
    """A linear function of normal examples, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n)


def soft(C=1.0, **params):
    return {"C": C, **params}


CASES = {
    "signs": Case(gauss(600, 5), {"monotonic_cst": [1, -1, 1, 0, 0]}),
    "few rows": Case(gauss(60, 5, apart=6.0)),
    "few rows, overlap": Case(gauss(60, 3)),
    "few rows, soft": Case(gauss(60, 5), soft()),
    "few rows, soft, wide": Case(gauss(60, 100), soft()),
    "few rows, four classes": Case(gauss(120, 6, 4, 8.0)),
    "hinge, classes": Case(clouds(60, 4, 3), soft(loss="hinge")),
    "hinge, many classes": Case(clouds(800, 120, 9, 0.3), soft(0.01, loss="hinge")),
    "hinge, many classes, large C": Case(
        clouds(300, 10, 6, 1.0, seed=1), soft(100.0, loss="hinge"), {"inside": 0}
    ),
    "hinge, rbf": Case(gauss(200, 3), soft(loss="hinge", kernel="rbf")),
    "hinge, wide": Case(gauss(60, 100), soft(loss="hinge")),
    "hinge": Case(gauss(300, 10), soft(loss="hinge")),
    "hinge, long steps": Case(gauss(300, 10), soft(loss="hinge"), {"inside": 0}),
    "hinge, slow": Case(
        in_units(*gauss(300, 20), spread=6.0), soft(1e4, loss="hinge"), {"inside": 0}
    ),
    "hinge, rbf, last digits": Case(gauss(200, 3), soft(loss="hinge", kernel="rbf", tol=1e-11)),
    "hinge, rbf, not compiled": Case(
        gauss(200, 3), soft(loss="hinge", kernel="rbf"), {"compiled": False}
    ),
    "hinge, near copies": Case(near_copies(), soft(100.0, loss="hinge")),
    "rbf, soft": Case(gauss(600, 3), soft(kernel="rbf")),
    "rbf, hard": Case(gauss(600, 6, apart=3.0), {"kernel": "rbf"}),
    "rbf, three classes": Case(gauss(300, 3, 3), soft(kernel="rbf")),
    "rbf, three classes, hinge": Case(gauss(300, 3, 3), soft(loss="hinge", kernel="rbf", tol=1e-4)),
    "rbf, three classes, last digits": Case(gauss(300, 3, 3), soft(3.0, kernel="rbf", tol=1e-9)),
    "rbf, three classes, not compiled": Case(
        gauss(300, 3, 3), soft(kernel="rbf"), {"compiled": False}
    ),
    "rbf, outgrown": Case(gauss(300, 3, 3), soft(kernel="rbf"), {"compiled": False, "room": 150}),
    "rbf, hard, four classes": Case(gauss(400, 5, 4), {"kernel": "rbf", "tol": 1e-3}),
    "rbf, hard, outgrown": Case(
        (np.random.default_rng(0).standard_normal((150, 6)), np.arange(150) % 5),
        {"kernel": "rbf", "gamma": 5.0},
        {"room_left": 60, "compiled": False},
    ),
    "wide": Case(gauss(80, 100), {}, {"few_rows": 50}),
    "wide, twelve classes": Case(gauss(60, 100, 12), soft()),
    "soft": Case(gauss(600, 5), soft()),
    "soft, outgrown": Case(gauss(400, 5), soft(), {"room": 120, "inside": 0}),
    "soft, sparse": Case(text(600, 30, density=0.1), soft()),
    "soft, by passes": Case(text(600, 30, density=0.1), soft(), {"direct_sparse": 10}),
    "soft, three classes": Case(gauss(300, 5, 3), soft(), {"in_cache": 0}),
    "soft, factors of classes": Case(
        in_units(*gauss(600, 30, 5, 3.0)),
        soft(),
        {"direct": 100, "sample": 600},
    ),
    "soft, large C": Case(gauss(600, 20, apart=8.0), soft(1e4)),
    "soft, large C, dependent": Case(
        in_units(*gauss(1000, 60, apart=2.6, seed=2), spread=3.0), soft(1e6)
    ),
    "soft, large C, ten classes": Case(clouds(400, 40, 10), soft(1e3)),
    "soft, large C, six classes": Case(clouds(300, 10, 6, 1.0, seed=1), soft(100.0)),
    "soft, sparse, few and long": Case(text(600, 400), soft()),
    "soft, sparse, classes": Case(
        text(300, 40, 5, 0.3, 0.2, constant=10.0), soft(), {"direct": 100}
    ),
    "soft, sparse, classes, large C": Case(
        text(300, 40, 5, 0.3, 0.2), soft(100.0), {"direct": 100}
    ),
    "hinge, sparse, classes": Case(text(600, 400, 5), soft(3.0, loss="hinge")),
    "hard": Case(gauss(600, 5, apart=8.0)),
    "hard, half of the rows": Case(gauss(150, 60, apart=1.5)),
    "hard, half of the rows, thin": Case(in_decades(600, 200)),
    "hard, overlap": Case(gauss(600, 5)),
    "hard, three classes, overlap": Case(gauss(300, 5, 3)),
    "hard, outgrown": Case(gauss(2000, 150), {}, {"room": 150}),
    "hard, sparse, short": Case(text(600, 30, apart=3.0, density=0.1)),
    "hard, sparse, few and long": Case(text(600, 160, apart=0.1, density=0.05)),
    "hard, sparse": Case(text(600, 400), {}, {"few_long": 100}),
    "hard, sparse, classes": Case(text(600, 400, 5)),
    "hard, there and back": Case(
        text(800, 60, density=0.1),
        {},
        {"few_rows": 0, "room": 0, "few_long": 0, "few_left": 70, "room_left": 75},
    ),
    "tube": Case(line(100, 5), {}, {}, MaxMarginRegressor),
    "tube, rbf": Case(line(500, 5), {"kernel": "rbf"}, {}, MaxMarginRegressor),
    "tube, rbf, share": Case(line(500, 5), {"kernel": "rbf", "nu": 0.3}, {}, MaxMarginRegressor),
    "tube, polynomial": Case(
        line(500, 5), {"kernel": "poly", "degree": 2, "coef0": 1.0}, {}, MaxMarginRegressor
    ),
    "tube, rbf, large C": Case(
        line(100, 3), {"kernel": "rbf", "C": 1e3, "tol": 1e-7}, {}, MaxMarginRegressor
    ),
    "tube, wide": Case(line(20, 50), {"C": np.inf}, {}, MaxMarginRegressor),
    "tube, long steps": Case(line(300, 20), {}, {"inside": 0}, MaxMarginRegressor),
    "tube, share, long steps": Case(
        line(300, 20), {"nu": 0.3}, {"side_features": 0, "side_rows": 0}, MaxMarginRegressor
    ),
    "tube, squared, long steps": Case(
        line(300, 20), {"loss": "squared_epsilon_insensitive"}, {"inside": 0}, MaxMarginRegressor
    ),
    "one class": Case(gauss(100, 5), {"nu": 0.2}, {}, MaxMarginOutlierDetector),
    "one class, pairs": Case(gauss(600, 5), {"nu": 0.1}, {}, MaxMarginOutlierDetector),
    "one class, linear": Case(
        gauss(600, 5, apart=9.0), {"nu": 0.1, "kernel": "linear"}, {}, MaxMarginOutlierDetector
    ),
    "one class, linear, many numbers": Case(
        gauss(600, 150, apart=9.0), {"nu": 0.1, "kernel": "linear"}, {}, MaxMarginOutlierDetector
    ),
    "one class, hard": Case(gauss(100, 5), {"nu": None}, {}, MaxMarginOutlierDetector),
}


def main():
    for name, case in CASES.items():
        clf = case.fitted()
        route = ", ".join(f"{method} {rounds}" for method, rounds in clf.certificate_.route)
        passes = clf.history_["n_passes"][-1]
        print(f'    "{name}": ("{clf.status_}", "{route}", {passes:.1f}),')


if __name__ == "__main__":
    main()
