"""Block pivoting on rows: the conditions that its solution has to meet, and no other has."""

import numpy as np
import pytest

from marginsvm.algorithms.exact.faces import FaceSolver
from marginsvm.algorithms.exact.pivoting import block_pivoting


def conditions_hold(H, B, u, b):
    """Balanced weights, none negative; one margin for rows with weight, no smaller for others."""
    margins = H @ u + B @ b - 1.0
    size = np.abs(H).max() * u.sum()
    assert u.min() >= 0.0
    np.testing.assert_allclose(B.T @ u, 0.0, atol=1e-9 * u.sum())
    np.testing.assert_allclose(margins[u > 0.0], 0.0, atol=1e-9 * size)
    assert margins.min() >= -1e-9 * size


@pytest.mark.parametrize("guess", ["all", "half", "one of each"])
@pytest.mark.parametrize("k", [0, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_the_solution_meets_its_conditions(seed, k, guess):
    """Without an intercept, with one of two classes, and with those of three."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(6, 40))
    group = np.arange(m) % max(k, 1)
    Z = rng.standard_normal((m, 50)) + 2.0 * np.eye(max(k, 1), 50)[group]
    if k == 0:
        B = np.zeros((m, 0))
    elif k == 2:
        B = np.where(group == 0, 1.0, -1.0)[:, None]
    else:  # rows of each class against the next
        B = np.eye(3)[group] - np.eye(3)[(group + 1) % 3]
    H = Z @ Z.T / 50.0 + 1.0 + B @ B.T
    passive = {"all": np.ones(m, bool), "half": rng.random(m) < 0.5}.get(guess)
    if passive is None:
        passive = np.arange(m) < max(k, 1)
    passive[: max(k, 1)] = True  # some that balance
    found = block_pivoting(FaceSolver(np.empty(0, int), np.empty((0, 0))), H, B, passive)
    assert found is not None
    conditions_hold(H, B, *found)
