"""Block pivoting on rows: the conditions that its solution has to meet, and no other has."""

import numpy as np
import pytest

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
    found = block_pivoting(H, B, passive)
    assert found is not None
    conditions_hold(H, B, *found)


def test_a_weight_that_rounding_has_made_negative_leaves_the_others_balanced():
    """What is cut off at 0 is missing from the sum of its class."""
    rng, m = np.random.default_rng(0), 8
    B = np.where(np.arange(m) % 2, 1.0, -1.0)[:, None]
    u, b = rng.uniform(0.5, 1.5, m), np.array([0.01])
    u[0] = -2e-11
    u[1::2] *= u[::2].sum() / u[1::2].sum()
    Z = rng.standard_normal((m, m))
    H = 1e-3 * (Z @ Z.T)
    d = 1.0 - B @ b - H @ u  # a term that makes u the solution
    H += np.outer(d, d) / (d @ u)
    found = block_pivoting(H, B, np.ones(m, bool))
    assert found is not None
    conditions_hold(H, B, *found)
    assert found[0][0] == 0.0
    assert abs(float(B[:, 0] @ found[0])) <= 1e-14 * found[0].sum()
