"""Each term that bounds an error moves the published values outward, by what it is there for.

In exact arithmetic one call of ``gamma``, ``unit`` or ``error_of_length`` after the other gives a
large number, and all others give 0. What is published is then compared with formulas for programs
row by row, which share no code with bounded.py: a sign turned, a factor that divides or a term that
is left out moves a value inward, or not far enough.
"""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from helpers.erring import ADDITIONS, CASES, OneTerm, case_of

from marginsvm.certificate import bounded, stacks
from marginsvm.certificate.bounded import Rationals, dual, primal

# The terms of each function of bounded.py, in the order of its lines. None: no term, but the
# question whether numbers are rounded at all.
TERMS = {
    "error_of_scores": ["scores"],
    "error_of_square": [None, "square"],
    "error_of_combined": ["combined"],
    "error_of_targets": [None, "targets"],
    "error_of_gain": ["gain"],
    "error_of_cost": ["cost"],
    "imbalance": ["imbalance"],
    "cost_of_imbalance": [None],
    "cost_of_excess": ["mass of excess", "sums of excess", None, "excess"],
    "radius_of": ["squares of radius", "root of radius"],
    "primal": ["mean by norm", "root in norm", "violation", "width", "hard", "sum"],
    "norm_of": ["norm"],
    "lowest_values": [None],
    "mean_of_worst": ["mean of worst"],
    "objective": ["widened", "square of length", "value"],
    "margin_bound": ["length by mass", "root in length"],
    "dual": ["length of kernel", "mass", "multiple"],
    "length_of_combined": [None, None, "length"],
    "margin_of": ["margin", "root of margin"],
}
WIDENED, OBJECTIVE = Fraction(1, 64), Fraction(7, 3)
EXACT = Rationals()


def short_case(name, p, kind):
    """A program in fractions, a predictor, and weights that do not balance nor keep nu's bounds."""
    program, *point = case_of(name, p, kind)
    w, f, alpha = (np.round(16 * x) / 16 for x in point)
    alpha.flat[np.flatnonzero(alpha)[0]] += 0.25
    return program(EXACT), *map(EXACT.array, (w, f, alpha))


def published(qp, w, f, alpha, numbers):
    """Values and their directions: 1 for upper bounds, -1 for lower bounds."""
    x, q = primal(qp, w, f, numbers), dual(qp, alpha, numbers)
    return {
        "values of rows": (-1, bounded.lowest_values(qp, w, f[: qp.k], numbers)),
        "separation": (-1, x.separation),
        "margin": (-1, x.margin),
        "norm": (1, x.norm),
        "violation": (1, x.violation),
        "objective": (1, x.objective),
        "imbalance": (1, bounded.imbalance(qp, alpha, numbers)),
        "radius": (1, bounded.radius_of(qp, numbers)),
        "gain": (-1, q.gain),
        "length": (1, q.length),
        "ridge": (1, q.ridge),
        "mass": (-1, q.mass),
        "multiple": (-1, q.multiple),
        "least objective": (-1, q.objective()),
        "least objective of a wider tube": (-1, q.objective(WIDENED)),
        "margin bound": (1, q.margin_bound),
        "margin of an objective": (-1, bounded.margin_of(OBJECTIVE, numbers, -1)),
        "bound of an objective": (1, bounded.margin_of(OBJECTIVE, numbers, 1)),
    }


# Units of sums by pairs, of two such sums, and of a root; with 8 for operations beside them.
SUM, TWO_SUMS, ROOT = 64 + 8, 128 + 8, 1 + 8


class Rows:
    """The rows of a program, one by one, and which of them share an upper bound."""

    def __init__(self, qp):
        k, eye = qp.k, np.eye(qp.k, dtype=int)
        if k > 1:
            codes = qp.rows.codes
            self.at = np.nonzero(np.arange(k) != codes[:, None])
            self.example, other = self.at
            self.of_scores = eye[codes[self.example]] - eye[other]
        else:
            sign = qp.rows.sign.astype(int)
            self.at = np.arange(len(sign))
            self.example = getattr(qp.rows, "example", self.at)
            self.of_scores = sign[:, None]
        self.shape = qp.shape
        self.target, self.ridge = self.of(qp.target), self.of(qp.ridge)
        self.size = abs(self.target).max()
        self.caps, self.sharing = qp.cap, self.example
        if qp.cap is None:
            self.sharing = np.arange(len(self.example))
            upper = self.of(qp.upper)
            self.caps = upper if upper[0] < inf else None

    def of(self, values):
        return np.broadcast_to(values, self.shape)[self.at]

    def by_caps(self, reduce, values):
        """A number for each upper bound, from those of the rows that share it."""
        some = range(len(self.caps))
        return np.array([reduce(values[self.sharing == i]) for i in some])


def length(x, p):
    return EXACT.length(np.asarray(x), p)


def squared_norm(X, w, units):
    """With a kernel, where terms may cancel."""
    share = units("square", ADDITIONS[1] + 8) + units("rounding", 1)
    return X.inner(w, w) + share * (abs(w) * abs(X.K).dot(abs(w).T).T).sum()


def of_length(size, p):
    return min(size + 8, 128) if p == 2 else 128


def margin_of(objective, direction, units):
    error = units("margin", 12) + units("root of margin", ROOT)
    return (1 + direction * error) / EXACT.sqrt(2 * objective)


def promised_of_predictors(qp, w, f, units):
    """What is at least published of a predictor.

    ``units(term, n)`` is n units if this term allows for errors, and else 0.
    """
    X, rows, b, width = qp.examples, Rows(qp), f[: qp.k], f[-1]
    norm = EXACT.sqrt(squared_norm(X, w, units)) if X.is_kernel else length(w, qp.p)
    norm *= 1 + units("norm", of_length(w.size, qp.p))
    share = units("scores", ADDITIONS[0] + 8) + units("rounding", 1)
    sizes = (abs(rows.of_scores) * (X.magnitudes(w) + abs(b))[rows.example]).sum(axis=1)
    v = (rows.of_scores * (X.scores(w) + b)[rows.example]).sum(axis=1) - share * sizes
    values = np.full(qp.shape, inf, dtype=object)
    values[rows.at] = v
    found = {"values of rows": values, "separation": v.min(), "norm": norm}
    if qp.game:
        mean = v.min()
        if rows.caps is not None:
            worst = rows.by_caps(min, v)
            order = np.argsort(worst)
            level = worst[order[np.argmax(np.cumsum(rows.caps[order]) >= 1)]]
            short = (rows.caps * np.maximum(level - worst, 0)).sum()
            mean = (
                level - short - units("mean of worst", TWO_SUMS) * (abs(level) + short)
            )
        margin = mean / norm
        margin -= (units("mean by norm", 12) + units("root in norm", ROOT)) * abs(
            margin
        )
        objective = 1 / (2 * margin * margin) if margin > 0 else inf
        return found | {
            "margin": margin,
            "violation": -v.min(),
            "objective": objective,
        }
    r = rows.target - v + units("targets", 8) * rows.size * qp.rounded
    found["violation"] = max(r.max(), 0) * (1 + units("violation", 8))
    if qp.hard:
        objective = norm * norm / 2 * (1 + units("hard", 12))
        return found | {"margin": 0, "objective": objective}
    if qp.level > 0:
        r = r + units("width", 2) * abs(r) - width
    slack = np.maximum(r, 0)
    if rows.caps is None:
        cost = (slack * slack / (2 * rows.ridge)).sum()
    else:
        cost = (rows.caps * rows.by_caps(max, slack)).sum()
    cost = (cost + qp.total * width * (qp.level > 0)) * (1 + units("cost", TWO_SUMS))
    objective = (norm * norm / 2 + cost) * (1 + units("sum", 4))
    return found | {"margin": margin_of(objective, -1, units), "objective": objective}


def promised_of_weights(qp, alpha, units):
    """What is at least published of weights."""
    X, k, rows, p = qp.examples, qp.k, Rows(qp), qp.p / (qp.p - 1)
    alpha = rows.of(alpha)
    V = np.zeros((X.n, k), dtype=object)
    np.add.at(V, rows.example, alpha[:, None] * rows.of_scores)
    if X.is_kernel:
        long = EXACT.sqrt(squared_norm(X, V.T, units))
        long *= 1 + units("length of kernel", of_length(V.size, 2))
    else:
        terms = min(ADDITIONS[1], np.count_nonzero(V.any(axis=1)) + 4)
        share = units("combined", terms + k + 8) + units("rounding", 1)
        u = qp.project(V.T.dot(X.X))
        long = length(u, p) + length(share * abs(V).T.dot(abs(X.X)), p)
        long *= 1 + units("length", of_length(u.size, p))
    longest = max(length(x, p) for x in X.X)
    if k > 1:
        longest = EXACT.sqrt(2 * longest * longest)
    of_radius = units("squares of radius", (X.d or 0) + 8) + units(
        "root of radius", ROOT
    )
    radius = longest * (1 + of_radius)
    off = sum(abs(V.sum(axis=0))) * qp.intercept * (1 + units("imbalance", k + 8))
    links = max(k - 1, 1)
    if qp.game:
        links = 1 if rows.caps is None else k * k
    # in three radii: a fit and its check have origins of their own
    paid = 3 * links * off
    long += radius * paid
    mass, multiple = alpha.sum(), inf
    if qp.game:
        gain = 0
        if rows.caps is not None:
            most = mass * (1 - units("mass of excess", TWO_SUMS)) * rows.caps
            of = rows.by_caps(sum, alpha) * (1 + units("sums of excess", k + 8))
            excess = np.maximum(of - most, 0).sum() * (1 + units("excess", SUM))
            long += 3 * radius * 4 * k * k * excess
        mass *= 1 - units("mass", 1)
    else:
        lost = units("gain", SUM) + units("targets", 8) * qp.rounded
        gain = (rows.target * alpha).sum() - rows.size * (lost * mass + paid)
        most = [] if rows.caps is None else [*rows.caps / rows.by_caps(sum, alpha)]
        most += [qp.total / mass] if qp.level > 0 else []
        if most:
            multiple = min(most) * (1 - units("multiple", k + TWO_SUMS))
    ridge = (rows.ridge * alpha * alpha).sum() * (1 + units("cost", TWO_SUMS))

    def least(widened):
        left = gain - widened * mass * (1 + units("widened", SUM))
        square = (long * long + ridge) * (1 + units("square of length", 12))
        s = min(multiple, max(left, 0) / square)
        return s * (left - s * square / 2) * (1 - units("value", 16))

    out = units("length by mass", 16) + units("root in length", ROOT)
    return {
        "imbalance": off,
        "radius": radius,
        "gain": gain,
        "length": long,
        "ridge": ridge,
        "mass": mass,
        "multiple": multiple,
        "least objective": least(0),
        "least objective of a wider tube": least(WIDENED),
        "margin bound": long / mass * (1 + out),
        "margin of an objective": margin_of(OBJECTIVE, -1, units),
        "bound of an objective": margin_of(OBJECTIVE, 1, units),
    }


def promised(qp, w, f, alpha, units):
    return {
        **promised_of_predictors(qp, w, f, units),
        **promised_of_weights(qp, alpha, units),
    }


def flaws(found, wanted):
    """Names of values that are further inside than is promised, up to roots of 60 digits."""
    for name, (direction, value) in found.items():
        left, right = np.atleast_1d(value), np.atleast_1d(wanted[name])
        for x, y in zip(left.ravel(), right.ravel(), strict=True):
            if x != y and not direction * (x - y) >= -abs(y) / 10**50:
                yield name
                break


@pytest.fixture(autouse=True)
def no_more_digits(monkeypatch):
    """Fractions have all digits: where more are asked for, there are none."""
    monkeypatch.setattr(bounded, "Extended", object)


@pytest.fixture(scope="module")
def names():
    """The term at each line and column that some program reaches."""
    reached = set()
    for case in CASES:
        numbers = OneTerm()
        published(*short_case(*case), numbers)
        reached |= numbers.reached
    found = {}
    for function, terms in TERMS.items():
        places = sorted(place for place in reached if place[0] == function)
        assert len(places) == len(terms), f"{function} has other terms: {places}"
        found |= dict(zip(places, terms, strict=True))
    assert reached == set(found), "other functions have terms"
    return found


@pytest.mark.parametrize(("name", "p", "kind"), CASES)
def test_each_term_moves_what_is_published_outward(name, p, kind, names):
    case = short_case(name, p, kind)
    base = OneTerm()
    exactly = promised(*case, lambda term, n: 0)
    assert not [*flaws(published(*case, base), exactly)]
    for place in [*sorted(base.reached), None]:  # None: that of the values of a kernel
        term = names[place] if place else "rounding"
        case[0].examples.rounding = 0 if place else OneTerm.large

        def units(of, n, term=term):
            return n * OneTerm.large if of == term else 0

        wanted = promised(*case, units)
        assert not [*flaws(published(*case, OneTerm(place)), wanted)], term


# Bounds of stacks (fit_many), in floats: rounding is nothing beside what one term allows for.

OF_STACKS = ["rows", "cost", "radius", "balance", "length", "image", "ridge", "gain"]
PROGRAMS_OF_STACKS = {"hard": None, "hinge": "upper", "squared hinge": "ridge"}


def given_stacks(name, off):
    """Arguments of ``stacks.proved``: predictors that separate; weights that prove something."""
    rng, (B, n, d) = np.random.default_rng(1), (3, 5, 2)
    y = np.where(np.arange(n) % 2, 1.0, -1.0) * np.ones((B, 1))
    centre = 4.0 * rng.standard_normal((B, 1, d))
    Z = rng.standard_normal((B, n, d)) + y[:, :, None] * centre
    alpha = rng.uniform(0.5, 1.0, (B, n))
    w = ((y * alpha)[:, None] @ Z)[:, 0]
    b = rng.choice([-1.0, 1.0], B)
    least = (y * ((Z @ w[:, :, None])[:, :, 0] + b[:, None])).min(axis=1)
    w, b = w / least[:, None], b / least
    given = PROGRAMS_OF_STACKS[name]
    program = stacks.Slack(**{given: rng.uniform(0.2, 0.4, (B, n))} if given else {})
    squares = (Z * Z).sum(axis=2)
    return Z, squares, rng.standard_normal((B, d)), y, w, b, alpha, program, off


def promised_of_stacks(Z, _, shift, y, w, b, alpha, program, off, units, few):
    """Lower and upper bounds of each problem, and whether it is separated, from plain sums."""
    n, d = Z.shape[1:]
    for j in range(len(Z)):
        norms = [length_of(z) for z in Z[j]]
        size = [(x + length_of(shift[j])) * length_of(w[j]) + abs(b[j]) for x in norms]
        v = y[j] * (Z[j] @ w[j] + b[j]) - units("rows", d + 16) * np.array(size)
        slack, P = np.maximum(1 - v, 0), length_of(w[j]) ** 2 / 2
        if program.upper is not None:
            P += program.upper[j] @ slack
        elif program.ridge is not None:
            P += (slack * slack / (2 * program.ridge[j])).sum()
        else:
            P = P / v.min() ** 2 if v.min() > 0 else inf
        margin = (1 - few) / np.sqrt(2 * P * (1 + units("cost", n + d + 8)))
        q = alpha[j] / alpha[j].sum()
        radius = max(norms) * (1 + units("radius", d + 8))
        paid = 3 * off * (abs(y[j] @ q) + units("balance", n + 8))
        long = length_of((y[j] * q) @ Z[j]) * (1 + units("length", d + 8))
        long += radius * (units("image", n + 16) + paid)
        square, most = long * long, inf
        if program.ridge is not None:
            square += (program.ridge[j] * q * q).sum() * (1 + units("ridge", n + 8))
        if program.upper is not None:
            most = (program.upper[j] / q).min() * (1 - few)
        gain = 1 - units("gain", n + 8) - paid
        s = min(most, gain / square)
        D = s * (gain - s * square / 2) * (1 - few)
        yield margin, (1 + few) / np.sqrt(2 * D) if D > 0 else inf, v.min() > 0


def length_of(x):
    return np.sqrt(sum(x * x))


@pytest.mark.parametrize("name", PROGRAMS_OF_STACKS)
@pytest.mark.parametrize("off", [False, True])
def test_each_term_moves_the_bounds_of_stacks_outward(name, off, monkeypatch):
    given, large = given_stacks(name, off), float(OneTerm.large)

    def check(term=None, few=0.0, place=None):
        def units(of, n):
            return n * large if of == term else 0

        numbers = OneTerm(place)
        monkeypatch.setattr(stacks, "GAMMA", numbers.gamma_in_floats)
        monkeypatch.setattr(stacks, "FEW", few)
        found = stacks.proved(*given)
        for *bounds, margin, bound, separates in zip(
            *found,
            *zip(*promised_of_stacks(*given, units, few), strict=True),
            strict=True,
        ):
            assert bounds[0] <= margin * (1 + 1e-12), term
            assert bounds[1] >= bound * (1 - 1e-12), term
            assert separates or not bounds[2], term
        return sorted(numbers.reached)

    places = check()
    check(few=2.0**-7)
    for place, term in zip(places, OF_STACKS, strict=True):
        check(term, place=place)
