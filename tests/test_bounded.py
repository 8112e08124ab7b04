"""Bounds hold for published numbers, in fractions; and no error term can be left out.

Each case has data on which rounding is as large as it can be beside what is bounded. It holds with
all error terms, and with the one that it is named after replaced by 0 it does not.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import fit, needs_more_digits, parameters
from helpers.pairwise import pairwise
from scipy.optimize import LinearConstraint, minimize, nnls

from marginsvm import (
    AcceleratedPerceptron,
    BatchPerceptron,
    DualLpPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
)
from marginsvm._rounding import (
    FEW,
    LONG,
    PAIRWISE,
    Extended,
    chained,
    exact_inner,
    inner,
    product,
    summed,
)
from marginsvm.certificate import bounded
from marginsvm.certificate.bounded import (
    Floats,
    Rationals,
    balanced,
    best_multiple,
    dual,
    lowest_values,
    primal,
)
from marginsvm.certificate.examples import ExactFeatures, KernelMatrix
from marginsvm.problem.design import Design
from marginsvm.problem.quadratic_program import classification, one_class, regression

FLOATS, EXACT = Floats(), Rationals()


def both(make, X, *arrays, centred=False, kernel=False, **numbers):
    """The same program in floats and in fractions."""
    mean = X.mean(axis=0) if centred else None
    numbers = {"weight": np.ones(len(X)), **numbers}
    floats = KernelMatrix(X, None, 0.0, FLOATS) if kernel else Design.of(X, mean)
    exact = KernelMatrix(X, None, 0, EXACT) if kernel else ExactFeatures(X, centred=centred)
    qp = make(floats, *arrays, **numbers)
    fractions = [EXACT.array(a) if a.dtype == float else a for a in arrays]
    given = {name: EXACT.array(v) if np.ndim(v) else v for name, v in numbers.items()}
    given |= {name: EXACT.number(numbers[name]) for name in ("C", "nu") if name in numbers}
    return qp, make(exact, *fractions, **given)


def worth(qps, w, b):
    return primal(qps[0], w, b, FLOATS), primal(qps[1], EXACT.array(w), EXACT.array(b), EXACT)


def proof(qps, alpha):
    return dual(qps[0], alpha, FLOATS), dual(qps[1], EXACT.array(alpha), EXACT)


def labels(examples, codes, k=2, **given):
    return classification(examples, codes, k, **given)


def scores(rng):
    """Terms of scores cancel."""
    codes, big = np.arange(8) % 2, rng.uniform(-1e3, 1e3, (8, 3))
    small = 1e-13 * rng.uniform(1.0, 2.0, (8, 3)) * np.where(codes == 1, 1.0, -1.0)[:, None]
    qps = both(labels, np.hstack([big, small - big]), codes, intercept=False)
    found, exact = worth(qps, np.ones((1, 6)), np.zeros(1))
    return found.margin <= exact.margin and found.separation <= exact.separation


def square(rng):
    """Terms of a squared norm cancel: a kernel matrix of examples that are nearly the same."""
    X = np.round(rng.uniform(1.0, 2.0, 3) * 2**10) + np.round(4 * rng.random((6, 3)))
    K, codes = X @ X.T, np.arange(6) % 2
    qps = both(labels, K, codes, kernel=True, C=1.0)
    w = np.append(rng.uniform(-1.0, 1.0, 6), 0.0)[None]
    w[0, 0] -= w[0].sum()
    found, exact = worth(qps, w, np.zeros(1))
    return found.norm >= exact.norm


def image(rng):
    """Weights that prove next to nothing: what is left is the rounding of their sum."""
    X = rng.standard_normal((9, 2))
    q = rng.uniform(0.5, 1.0, 9)
    codes = np.ones(9, int)
    X[0] = -(q[1:] @ X[1:]) / q[0]
    found, exact = proof(both(labels, X, codes, intercept=False), q)
    return found.margin_bound >= exact.margin_bound


def targets(rng):
    """Ends of tubes are sums, of which the last one cancels."""
    y, shift, one = rng.uniform(1.1, 1.101, 1), 0.1, EXACT.array(np.ones(1))
    low, high = (y - shift) - 1.0, (y - shift) + 1.0
    qp = regression(Design.of(np.ones((1, 1))), low, high, intercept=False)
    ends = [EXACT.array(y) - Fraction(shift) + sign for sign in (-1, 1)]
    exact = regression(ExactFeatures(np.ones((1, 1))), *ends, weight=one, intercept=False)
    found, true = worth((qp, exact), low[None], np.zeros(1))
    return found.violation >= true.violation


def gain(rng):
    """Gains of both signs cancel."""
    y = rng.uniform(-1.0, 1.0, 50)
    qps = both(regression, np.ones((50, 1)), y, y, intercept=False, C=1.0)
    alpha = rng.random(100)
    found, exact = proof(qps, alpha)
    return found.gain <= exact.gain


def cost(rng):
    """Equal terms, whose products, quotients and sums are all rounded down."""
    for _ in range(20):
        n, C = int(rng.integers(3, 60)), float(rng.uniform(1.0, 2.0))
        weight = np.full(n, rng.uniform(1.0, 2.0))
        qps = both(labels, np.zeros((n, 1)), np.arange(n) % 2, C=C, weight=weight)
        found, exact = worth(qps, np.zeros((1, 1)), np.zeros(1))
        if found.objective < exact.objective:
            return False
    return True


def imbalance(rng):
    """Weights of one class, on an example at the mean."""
    qp = classification(
        Design.of(np.array([[-2.0], [0.0], [2.0]]), np.zeros(1)), np.arange(3) // 2, 2
    )
    return dual(qp, np.array([0.0, 1.0, 0.0]), FLOATS).margin_bound >= 1.0


def excess(rng):
    """Weights above the upper bounds of a share."""
    X, codes = np.array([[1.0], [3.0], [-1.0], [-3.0]]), np.array([1, 1, 0, 0])
    qp = classification(Design.of(X, np.zeros(1)), codes, 2, nu=1.0)  # the mean of all: 2
    return dual(qp, np.array([0.5, 0.0, 0.5, 0.0]), FLOATS).margin_bound >= 2.0


CASES = {
    "error_of_scores": scores,
    "error_of_square": square,
    "error_of_combined": image,
    "error_of_targets": targets,
    "error_of_gain": gain,
    "error_of_cost": cost,
    "imbalance": imbalance,
    "cost_of_imbalance": imbalance,
    "cost_of_excess": excess,
}


@pytest.mark.parametrize("name", CASES)
def test_no_error_term_can_be_left_out(name, monkeypatch):
    case, seeds = CASES[name], range(40)
    assert all(case(np.random.default_rng(seed)) for seed in seeds)
    none = {
        "error_of_combined": np.zeros(1),
        "error_of_scores": np.zeros((8, 1)),
        "cost_of_imbalance": (0, 0),
    }.get(name, 0)
    monkeypatch.setattr(bounded, name, lambda *given: none)
    assert not all(case(np.random.default_rng(seed)) for seed in seeds)


def test_intercepts_of_classes_are_linked_by_rows(monkeypatch):
    """With k classes, k - 1 of them: if imbalance cost no more than with two, it would be false."""
    monkeypatch.setattr(bounded, "ORIGINS", 1)
    k, weight, rows = 4, 1000.0 ** -np.arange(4), np.flatnonzero(~np.eye(4, dtype=bool))
    qp = classification(
        Design.of(np.zeros((k, 1)), np.zeros(1)), np.arange(k), k, C=1.0, weight=weight
    )

    def objective(b):
        return primal(qp, np.zeros((k, 1)), np.append(b, 0.0), FLOATS).objective

    best = minimize(objective, np.zeros(k - 1), method="BFGS", options={"gtol": 1e-12}).fun
    ridge = np.repeat(qp.ridge.ravel(), k - 1)
    F = np.zeros((k, k * (k - 1)))
    F[rows // k, np.arange(len(rows))], F[rows % k, np.arange(len(rows))] = 1.0, -1.0
    # most that weights seem to prove if imbalance costs its size: 1'a - |F a|_1 - ridge a^2/2
    price = LinearConstraint(np.block([[F, -np.eye(k)], [-F, -np.eye(k)]]), -np.inf, 0.0)
    found = minimize(
        lambda z: -z[:-k].sum() + z[-k:].sum() + 0.5 * ridge @ z[:-k] ** 2,
        np.zeros(len(rows) + k),
        jac=lambda z: np.append(-1.0 + ridge * z[:-k], np.ones(k)),
        bounds=[(0.0, None)] * (len(rows) + k),
        constraints=price,
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    ).x[: len(rows)]
    alpha = np.zeros(k * k)
    alpha[rows] = found
    alpha = alpha.reshape(k, k)
    assert dual(qp, alpha, FLOATS).objective() <= best
    size = bounded.size_of(qp)
    monkeypatch.setattr(bounded, "cost_of_imbalance", lambda qp, off, numbers: (size * off, 0))
    assert dual(qp, alpha, FLOATS).objective() > best


@needs_more_digits
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_extended_precision_is_rounded_too(form, monkeypatch):
    """Combinations of several classes that cancel: without its error some are too short."""

    def holds(seed):
        rng = np.random.default_rng(seed)
        X, codes = 1e5 + rng.standard_normal((6, 2)), np.arange(6) % 3
        (r, c), rows = np.nonzero(np.arange(3) != codes[:, None]), []
        for i, j in zip(r, c, strict=True):
            rows.append(np.kron(np.eye(3)[codes[i]] - np.eye(3)[j], X[i]))
        q = nnls(np.vstack([np.array(rows).T, np.ones(len(rows))]), np.append(np.zeros(6), 1.0))[0]
        alpha = np.zeros((6, 3))
        alpha[r, c] = q + 1e-12 * rng.random(len(q))
        qps = both(labels, X, codes, k=3, intercept=False)
        qps = (replace(qps[0], examples=Design.of(form(X))), qps[1])
        found, exact = proof(qps, alpha)
        return found.margin_bound >= exact.margin_bound

    assert all(holds(seed) for seed in range(60))
    extended = Design.combine_extended
    monkeypatch.setattr(
        Design, "combine_extended", lambda self, V: (extended(self, V)[0], np.zeros(1))
    )
    assert not all(holds(seed) for seed in range(60))
    monkeypatch.setattr(
        Design, "combine_extended", lambda self, V: extended(self, V.astype(float).astype(Extended))
    )
    assert not all(holds(seed) for seed in range(60))  # sums of weights that float64 has rounded


def test_roots_are_not_exact(monkeypatch):
    """Norms are rounded: without the error of lengths some bounds are above the true ones."""

    def holds(rng):
        X = rng.standard_normal((4, 3))
        found, exact = worth(
            both(labels, X, np.arange(4) % 2, intercept=False, C=1.0), X[:1], np.zeros(1)
        )
        return found.norm >= exact.norm

    seeds = range(40)
    assert all(holds(np.random.default_rng(seed)) for seed in seeds)
    monkeypatch.setattr(Floats, "error_of_length", lambda self, n, p=2.0: 0.0)
    assert not all(holds(np.random.default_rng(seed)) for seed in seeds)


KINDS = [{"C": 2.0}, {"C": 2.0, "loss": "hinge"}, {}, {"nu": 0.4}]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("given", KINDS, ids=str)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_bounds_of_any_points_hold_in_fractions(k, given, intercept):
    """In units of six decades, with weights that balance and that do not."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 3)) * 10.0 ** rng.integers(-3, 4, 3) + 10.0 ** rng.integers(
            0, 5
        )
        codes, weight = np.arange(12) % k, rng.uniform(0.5, 2.0, 12)
        qps = both(
            lambda examples, codes, **more: labels(examples, codes, k, **more),
            X, codes, centred=intercept, weight=weight, intercept=intercept, **given,
        )  # fmt: skip
        w = rng.standard_normal((1 if k == 2 else k, 3)) / X.std(axis=0)
        b = rng.standard_normal(len(w)) * intercept
        centre = qps[0].examples.centre
        if centre is None:
            shifted = b
        else:
            moved = ExactFeatures(centre[None]).scores(EXACT.array(w))[0]
            shifted = (EXACT.array(b) + moved).astype(float)
        found = primal(qps[0], w, shifted, FLOATS)
        exact = primal(qps[1], EXACT.array(w), EXACT.array(b), EXACT)
        assert found.objective >= exact.objective
        assert found.margin <= exact.margin
        alpha = rng.uniform(0.0, 1.0, qps[0].shape)
        if k > 2:
            alpha[np.arange(12), codes] = 0.0
        for q in (alpha, balanced(qps[0], qps[0].feasible(alpha))):
            found, exact = proof(qps, q)
            if qps[0].game:
                assert found.margin_bound >= exact.margin_bound
            else:
                assert found.objective() <= exact.objective()


@pytest.mark.parametrize("given", [{"C": 2.0}, {"C": 2.0, "nu": 0.4}, {}], ids=str)
def test_bounds_of_tubes_hold_in_fractions(given):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((12, 3)), 100.0 + rng.standard_normal(12)
        y -= np.median(y)
        qps = both(
            regression, X, y - 0.25 * ("nu" not in given), y + 0.25 * ("nu" not in given), **given
        )
        w, f = rng.standard_normal((1, 3)), rng.standard_normal(qps[0].n_free)
        found, exact = worth(qps, w, f)
        assert found.objective >= exact.objective
        assert found.violation >= exact.violation
        alpha = rng.random(qps[0].shape) * (rng.random(qps[0].shape) < 0.5)
        for q in (alpha, balanced(qps[0], qps[0].feasible(alpha))):
            found, exact = proof(qps, q)
            for widened in (0, 0.125):
                assert found.objective(widened) <= exact.objective(widened)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_weights_of_many_rows_are_made_to_balance(k, rng):
    """In their last digits, and whether or not rows connect all classes."""
    n = 4000
    codes = np.arange(n) % k
    qp = classification(Design.of(np.zeros((n, 1))), codes, k)
    alpha = rng.random(qp.shape)
    if k > 2:
        alpha[codes[:, None] == np.arange(k)] = 0.0
    if k == 7:  # two parts of classes
        alpha[(codes[:, None] < 3) != (np.arange(k) < 3)] = 0.0
    alpha = qp.feasible(alpha)
    even = balanced(qp, alpha)
    assert bounded.imbalance(qp, even, FLOATS) <= 1e-22
    assert np.abs(even - alpha).max() < 1e-15
    assert even.min() >= 0.0


@pytest.mark.parametrize("given", KINDS, ids=str)
@pytest.mark.parametrize("k", [2, 3])
def test_the_best_multiple_of_a_predictor_is_the_best(k, given, rng):
    X, codes = rng.standard_normal((30, 3)), np.arange(30) % k
    X[:, 0] += codes
    qp = classification(Design.of(X, X.mean(axis=0)), codes, k, **given)
    w, b = np.zeros((1 if k == 2 else k, 3)), np.zeros(1 if k == 2 else k)
    w[:, 0] = 1.0 if k == 2 else np.arange(k) - 1.0
    b -= w[:, 0] * X[:, 0].mean()
    found = primal(qp, w, b, FLOATS)
    t = best_multiple(qp, found.norm, lowest_values(qp, w, b, FLOATS))
    if qp.game:
        assert primal(qp, t * w, t * b, FLOATS).margin == pytest.approx(found.margin)
    else:
        best = primal(qp, t * w, t * b, FLOATS).objective
        others = [primal(qp, s * w, s * b, FLOATS).objective for s in t * np.linspace(0.2, 3, 200)]
        assert best <= min(others) * (1 + 1e-12)


def test_weights_of_one_class(rng):
    X, weight = rng.standard_normal((9, 2)) + 3.0, rng.uniform(0.5, 2.0, 9)
    qps = both(
        lambda examples, weight, nu: one_class(examples, nu, weight), X, weight=weight, nu=0.5
    )
    found, exact = worth(qps, np.ones((1, 2)), np.zeros(1))
    assert found.margin <= exact.margin
    for q in (rng.random(9), qps[0].feasible(rng.random(9))):
        found, exact = proof(qps, q)
        assert exact.margin_bound <= found.margin_bound
        assert found.margin_bound >= worth(qps, np.ones((1, 2)), np.zeros(1))[1].margin


# Published bounds hold for the published numbers, whatever these are, in fractions.


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


# Bounds on rounding errors hold: the sums that they are of, against fractions.


LENGTHS = [1, 7, 255, 256, 257, 1000, 2**14 + 3, 2**20]


def of(x):
    """A number of any precision as a fraction."""
    return Fraction(*map(int, x.as_integer_ratio()))


def alike(n):
    """Equal terms, whose roundings add up, in fractions and as numbers."""
    for c in (0.1, 1 / 3, 0.7, 1e-3 * np.pi):
        yield np.full(n, c), np.ones(n), n * Fraction(c)


def crumbs(n, unit=2.0**-53):
    """A 1 and, for each lane of the processor, terms that it swallows one after the other."""
    for lanes in (1, 4, 16, 64):
        x = np.full(n, 0.99 * unit)
        x[:lanes] = 1.0
        ones = min(lanes, n)
        yield x, np.ones(n), ones + (n - ones) * Fraction(0.99 * unit)


def mixed(n):
    """Terms of all sizes and either sign, of which the absolute values count."""
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n)) * 2.0 ** rng.integers(-8, 8, (2, n))
    few = min(n, 2000)  # fractions of more would take seconds
    a[few:] = 0.0
    yield a, b, sum(Fraction(x) * Fraction(y) for x, y in zip(a[:few], b[:few], strict=True))


def error(found, a, b, exact):
    """Relative to the sum of the absolute values of the terms."""
    return abs(of(found) - exact) / (of(np.abs(a) @ np.abs(b)) * (1 - Fraction(1, 10**6)))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("terms", [alike, crumbs, mixed])
def test_products_in_chains_are_as_precise_as_is_said(terms, n):
    for a, b, exact in terms(n):
        assert error(product(a[None], b[:, None])[0, 0], a, b, exact) <= chained(n)
        long = product(a[None], b[:, None], LONG)[0, 0]
        assert error(long, a, b, exact) <= chained(n, LONG)


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_contiguous_numbers_are_added_in_pairs(n):
    """``PAIRWISE`` allows for them, and for the few operations of a square root of squares."""
    for terms in (alike, mixed):
        for a, b, exact in terms(n):
            assert error(np.sum(a * b), a, b, exact) <= PAIRWISE
    for a, _, _ in alike(n):
        squares = n * Fraction(a[0]) ** 2
        length = of(np.sqrt(np.sum(a * a)))
        assert abs(length**2 - squares) <= 2 * Fraction(PAIRWISE) * squares


def test_a_few_operations_are_few():
    x, y = np.random.default_rng(0).uniform(0.5, 2.0, (2, 1000))
    for a, b in zip(x, y, strict=True):
        exact = Fraction(a) * Fraction(b) / 3 - Fraction(a)
        size = Fraction(a) * Fraction(b) / 3 + Fraction(a)
        assert abs(of(a * b / 3.0 - a) - exact) <= Fraction(FEW) * size


def test_products_are_products():
    rng = np.random.default_rng(0)
    A, B = rng.integers(-9, 10, (3, 700)) * 1.0, rng.integers(-9, 10, (700, 2)) * 1.0
    np.testing.assert_array_equal(product(A, B), A @ B)  # integers: nothing is rounded
    np.testing.assert_array_equal(summed([A, A, -A]), A)
    for C in (A, np.asfortranarray(A), A.T):
        assert inner(C, C) == (A * A).sum()


def test_an_exact_inner_product_is_rounded_once(rng):
    """Terms of 1e16 cancel, of which each product loses what is left."""
    a, b = rng.standard_normal((2, 300)) * 1e8
    added = -float(a @ b)
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)) + Fraction(added)
    assert exact_inner(a, b, added) == float(exact)
