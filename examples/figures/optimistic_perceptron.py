"""
Operations to a separator: Rosenblatt's perceptron and the optimistic one (Hanashiro, figure 1)
===============================================================================================

On the data of section 3, whose margin halves with every example, Rosenblatt's perceptron
makes (4^n - 1) / 3 mistakes and the optimistic perceptron about 2^n rounds. An operation is
an addition or an inner product of two vectors, as in the paper: Rosenblatt's takes one for
each example that it looks at and one more for a mistake; an optimistic round takes 2 n + 2.
The 358 million mistakes of n = 15 are counted by a small compiled loop, which is held against the
estimator where that is quick.

Drawn: ``docs/images/optimistic_perceptron.png``.
"""

import matplotlib.pyplot as plt
import numba
import numpy as np
from _figure import save

from marginsvm import KernelPerceptron, OptimisticPerceptron


def section_3(n):
    """Equation (2)."""
    i = np.arange(1, n + 1)
    X = np.where(i[None, :] < i[:, None], (-1.0) ** i[:, None], 0.0)
    X[np.diag_indices(n)] = (-1.0) ** (i + 1)
    return X, (-1) ** (i + 1)


@numba.njit
def rosenblatt(G):
    """Mistakes, and operations before the last, going through the rows in turn."""
    n = len(G)
    margins = np.zeros(n, np.int64)
    mistakes, looks, looks_then = 0, 0, 0
    while looks - looks_then < n:
        for i in range(n):
            looks += 1
            if margins[i] <= 0:
                for j in range(n):
                    margins[j] += G[i, j]
                mistakes += 1
                looks_then = looks
    return mistakes, looks_then + mistakes


sizes = np.arange(1, 16)
rosenblatts, optimistic, rounds = [], [], []
for n in sizes:
    X, y = section_3(n)
    A = (y[:, None] * X).astype(np.int64)
    mistakes, operations = rosenblatt(A @ A.T)
    assert mistakes == (4 ** int(n) - 1) // 3
    rosenblatts.append(operations)
    if n == 1:  # a single class; w_1, the example itself, separates
        rounds.append(1)
    else:
        params = {"fit_intercept": False, "max_iter": 200_000}
        clf = OptimisticPerceptron(stopping="separation", **params).fit(X, y)
        assert clf.status_ == "separated"
        rounds.append(clf.n_iter_)
        if n <= 6:
            assert KernelPerceptron(**params).fit(X, y).n_mistakes_ == mistakes
    optimistic.append(rounds[-1] * (2 * n + 2))
    print(f"n = {n}: {mistakes} mistakes, {rounds[-1]} optimistic rounds", flush=True)

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, scale in zip(axes, ("linear", "log"), strict=True):
    ax.plot(sizes, rosenblatts, "o-", color="#0072B2", label="Rosenblatt's perceptron")
    ax.plot(sizes, optimistic, "s--", color="#D55E00", label="optimistic perceptron")
    ax.set(yscale=scale, xlabel="examples n (and features)")
    ax.set_ylabel("operations on vectors to a separator")
axes[0].legend()
fig.suptitle("Hanashiro and Abernethy, eq. (2): Figure 1 (a) and, logarithmic, (b)")
save(fig, __file__)
