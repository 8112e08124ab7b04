"""Rows: the best intercepts of many classes, and cycles of classes."""

import numpy as np
import pytest

from marginsvm.problem import intercepts as cycles
from marginsvm.problem.intercepts import cycle_offsets, min_cycle


@pytest.mark.parametrize("k", [3, 30, 200])
def test_offsets_of_many_classes_attain_the_least_mean(k, rng):
    """Cycles of length 0 are negative by rounding; walks around them must not add up."""
    beta = rng.normal(size=k)
    low = 1.0 + rng.exponential(size=(k, k)) * (rng.random((k, k)) < 0.5)
    low += beta[:, None] - beta
    np.fill_diagonal(low, np.inf)
    found = cycle_offsets(low)
    smallest = (low + found[:, None] - found).min()
    assert smallest <= min_cycle(low)[0] <= smallest + 1e-13


def karp(cost):
    """The least mean of a cycle by Karp's theorem, from the cheapest walks of 0 to k edges."""
    k = len(cost)
    walks = np.zeros((k + 1, k))
    for m in range(k):
        walks[m + 1] = (walks[m][:, None] + cost).min(axis=0)
    return ((walks[k] - walks[:k]) / (k - np.arange(k))[:, None]).max(axis=0).min()


@pytest.mark.parametrize("k", [2, 3, 5, 30])
def test_the_cheapest_cycle_is_that_of_karps_theorem(k, rng):
    for kind in range(60):
        cost = rng.integers(-3, 4, (k, k)) * 1.0 if kind % 2 else rng.normal(size=(k, k))
        beta = rng.normal(size=k) * 10.0 ** rng.integers(-3, 4)
        cost = cost + (beta[:, None] - beta) * (kind % 3)
        np.fill_diagonal(cost, np.inf)
        mean, edges = min_cycle(cost)
        size = np.abs(cost[np.isfinite(cost)]).max()
        assert mean == pytest.approx(karp(cost), abs=1e-13 * size)
        assert mean == pytest.approx(np.mean([cost[edge] for edge in edges]), abs=1e-13 * size)
        assert [b for _, b in edges] == [a for a, _ in [*edges[1:], edges[0]]]


def test_the_cheapest_cycle_of_many_classes_takes_few_rounds(rng, monkeypatch):
    rounds = []
    of = cycles._cheapest
    monkeypatch.setattr(cycles, "_cheapest", lambda *args: rounds.append(1) or of(*args))
    cost = rng.normal(size=(400, 400))
    np.fill_diagonal(cost, np.inf)
    min_cycle(cost)
    assert len(rounds) <= 20


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_the_cheapest_cycle_of_nothing_is_nothing(value):
    assert not np.isfinite(min_cycle(np.full((3, 3), value))[0])


def test_no_cycle_leads_through_a_class_without_examples():
    cost = np.array([[np.inf, 1.0, -9.0], [3.0, np.inf, -9.0], [np.inf, np.inf, np.inf]])
    assert min_cycle(cost) == (2.0, [(0, 1), (1, 0)])
