"""The cost of slack: its weights, line searches and best intercepts against the formula."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.battery import over_seeds

from marginsvm.algorithms.exact.slack import Slack
from marginsvm.rows import Intervals, OutputRows, make_rows

KINDS = ["squared", "hinge", "interval", "classes", "shared"]


def draw(kind, rng):
    """A cost of some rows with all of its parts, and margins; the own class has no row."""
    k = int(rng.integers(3, 6)) if kind in ("classes", "shared") else 2
    y = np.append(np.arange(k), rng.integers(0, k, rng.integers(3, 30)))
    rows = make_rows(y, k, balanced=True)
    margins = rows.margins(3.0 * rng.standard_normal(rows.score_shape))
    some = (rng.random(rows.shape) < 0.5) & np.isfinite(margins)
    v, soft = rng.random(rows.shape) * some, 0.01 + 0.2 * rng.random(rows.per_example(y).shape)
    own = 0.01 + 0.5 * rng.random(rows.shape)
    caps = 0.05 + 2.0 * rng.random(rows.per_example(y).shape)
    slack = {
        "squared": Slack(own),
        "hinge": Slack(0.0, caps),
        "interval": Slack(0.0, caps, low=-0.2, high=0.3),
        "classes": Slack(own),
        "shared": Slack(0.0, caps, shared=True),
    }[kind]
    rounded_off = kind not in ("squared", "classes") or rng.random() < 0.5
    return slack.about(v, soft) if rounded_off else slack, rows, margins


def cost(slack, margins, u):
    """What weights earn, of which those of ``slack`` earn the most."""
    high = 0.0 if slack.high is None else slack.high
    earned = np.where(u > 0, slack.low * u, high * u) - np.where(u != 0, margins, 0.0) * u
    return np.sum(earned - 0.5 * slack.own * u**2 - 0.5 * slack.soft * (u - slack.v) ** 2)


@pytest.mark.parametrize("kind", KINDS)
@over_seeds(10)
def test_weights_earn_the_most(kind, seed):
    rng = np.random.default_rng(seed)
    slack, _, margins = draw(kind, rng)
    u = slack.weights(margins)
    best = cost(slack, margins, u)
    cap = np.inf if slack.cap is None else slack.cap
    assert np.all(u == 0.0, where=np.isinf(margins))
    for _ in range(200):
        w = u + rng.standard_normal(u.shape) * 10.0 ** rng.integers(-4, 1) * np.isfinite(margins)
        w = np.clip(w, -cap if slack.high is not None else 0.0, cap)
        if slack.shared:
            w *= np.minimum(1.0, cap / np.maximum(w.sum(axis=1, keepdims=True), 1e-300))
        assert cost(slack, margins, w) <= best + 1e-12 * abs(best)


@pytest.mark.parametrize("kind", KINDS)
@over_seeds(10)
def test_curvature_is_the_derivative_of_the_weights(kind, seed):
    rng = np.random.default_rng(seed)
    slack, rows, margins = draw(kind, rng)
    move = rows.moves(rng.standard_normal(rows.score_shape))
    a, linked = slack.curvature(margins, slack.weights(margins))
    expected = a * move
    if linked is not None:
        total, of_move = linked.sum(axis=1)[:, None], np.sum(linked * move, axis=1)[:, None]
        expected += linked * (total * move - of_move)
    difference = slack.weights(margins - 1e-8 * move) - slack.weights(margins + 1e-8 * move)
    np.testing.assert_allclose(difference / 2e-8, expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@over_seeds(20)
def test_line_searches_end_at_the_lowest_point(kind, seed):
    rng = np.random.default_rng(seed)
    slack, rows, margins = draw(kind, rng)
    move = rows.moves(rng.standard_normal(rows.score_shape))
    slope, square = rng.standard_normal(), rng.choice([0.0, 1.0]) * rng.random()
    slope *= square > 0.0  # or there may be no lowest point
    if slope > np.vdot(move, slack.weights(margins)):
        slope, move = -slope, -move
    t = slack.line_search(margins, move, slope, square)
    force = np.vdot(move, slack.weights(margins + t * move)) - slope - square * t
    assert t >= 0.0
    np.testing.assert_allclose(force, 0.0, atol=1e-10 * np.abs(move).sum())


@pytest.mark.parametrize("kind", KINDS)
@over_seeds(20)
def test_best_intercepts_balance(kind, seed):
    rng = np.random.default_rng(seed)
    slack, rows, margins = draw(kind, rng)
    b = slack.best_intercept(rows, margins)
    u = slack.weights(margins + rows.moves(np.broadcast_to(b, rows.score_shape)))
    rest = rows.adjoint(u).sum(axis=0)
    np.testing.assert_allclose(rest, 0.0, atol=1e-12 * max(np.abs(u).sum(), 1e-3))


@pytest.mark.parametrize("k", [2, 4])
def test_the_intercept_at_the_start_is_the_best_one(k, rng):
    rows = make_rows(np.append(np.arange(k), rng.integers(0, k, 50)), k, balanced=True)
    slack = Slack(rows.per_example(0.1 + rng.random(50 + k)))
    margins = rows.margins(np.zeros(rows.score_shape))
    alone, best = slack.intercept_alone(rows), slack.best_intercept(rows, margins)
    np.testing.assert_allclose(alone - alone.mean(), best - best.mean(), atol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "tube", "narrow tube"])
@pytest.mark.parametrize("balanced", [False, True])
@over_seeds(10)
def test_the_best_level_leaves_weights_that_sum_to_the_mass(kind, balanced, seed):
    """Weights of classes sum to it; of tubes to no more, and to less if the width is 0."""
    rng = np.random.default_rng(seed)
    y = np.append([0, 1], rng.integers(0, 2, 20))
    rows = make_rows(y, 2, balanced=balanced)
    low = rng.standard_normal(22) * (kind == "tube")
    if kind != "classes":
        rows = OutputRows(Intervals(low, low), balanced=balanced)
    caps, v = 0.05 + rng.random(22), 0.1 * rng.random(22)
    share = 0.5 * min(caps[y == 0].sum(), caps[y == 1].sum())
    slack = {
        "classes": Slack(0.0, caps, low=0.0, mass=share),
        "tube": Slack(0.0, caps, low, low, mass=share),
        "narrow tube": Slack(0.0, caps, low, low, mass=100.0),
    }[kind].about(v, 0.1 + rng.random(22))
    margins = rng.standard_normal(22)
    at, b = slack.settled(rows, margins)
    u = at.weights(margins + rows.moves(np.broadcast_to(b, 22)))
    if kind == "narrow tube":
        assert at.level == 0.0
        assert np.abs(u).sum() < at.mass
    else:
        assert np.abs(u).sum() == pytest.approx(at.mass, rel=1e-12)
    assert not balanced or rows.adjoint(u).sum() == pytest.approx(0.0, abs=1e-12)
    assert at.is_level_free == (kind != "narrow tube")


@over_seeds(10)
def test_what_links_all_rows_is_what_the_level_takes(seed):
    """Where margins move, so does the level, and sizes of weights keep their sum."""
    rng = np.random.default_rng(seed)
    rows = make_rows(np.append([0, 1], rng.integers(0, 2, 20)), 2, balanced=False)
    slack = Slack(0.0, 0.1 + rng.random(22), low=0.0, mass=3.0).about(0.0, 0.5)
    margins, move = rng.standard_normal((2, 22))
    at, _ = slack.settled(rows, margins)
    u = at.weights(margins)
    a, linked = at.curvature(margins, u)
    after, _ = at.settled(rows, margins + 1e-8 * move)
    moved = (after.weights(margins + 1e-8 * move) - u) / 1e-8
    np.testing.assert_allclose(moved, linked * (linked @ move) - a * move, atol=1e-6)
    rise = float(linked @ move) / np.sqrt(a.sum())
    assert (after.level - at.level) / 1e-8 == pytest.approx(rise, abs=1e-6)
    slope = float(u @ move) - 1.0  # the cost falls along the line
    t = at.line_search(margins, move, slope, 1.0, rise)
    costs = [
        slope * x + 0.5 * x * x + _at_level(at, margins + x * move, at.level + x * rise)
        for x in (t - 1e-4, t, t + 1e-4)
    ]
    assert costs[1] <= min(costs) + 1e-12


def _at_level(slack, margins, level):
    slack = replace(slack, level=level)
    return slack.cost(margins, slack.weights(margins))
