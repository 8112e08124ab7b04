"""
Regression: the tube and its width
==================================

Support vector regression ignores errors up to epsilon: only examples on or outside the tube (rings)
matter. Left, epsilon is given. Right, it is found, given ``nu``: at most that fraction of the
examples is outside the tube.
"""

import matplotlib.pyplot as plt
import numpy as np

from marginsvm import MaxMarginRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 90))
y = np.sin(x) + 0.15 * rng.standard_normal(90)
y[::15] += rng.choice([-1.2, 1.2], 6)  # outliers
X, grid = x[:, None], np.linspace(0, 6, 300)[:, None]

fig, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
for ax, (name, value) in zip(axes, (("epsilon", 0.5), ("nu", 0.2)), strict=True):
    reg = MaxMarginRegressor(kernel="rbf", gamma=1.0, C=10.0, **{name: value}).fit(X, y)
    epsilon = float(np.squeeze(reg.epsilon_))
    outside = np.mean(np.abs(y - reg.predict(X)) > 1.001 * epsilon)
    print(
        f"{name} = {value}: {reg.status_}, epsilon {epsilon:.3f}, {outside:.0%} outside"
    )
    f = reg.predict(grid)
    ax.fill_between(
        grid[:, 0], f - epsilon, f + epsilon, color="#0072B2", alpha=0.15, lw=0
    )
    ax.plot(grid, f, color="#0072B2")
    ax.plot(grid, np.sin(grid), "k:", lw=1)
    ax.plot(x, y, "o", ms=4, color="#D55E00")
    ax.plot(x[reg.support_], y[reg.support_], "o", ms=9, mfc="none", color="k", mew=0.8)
    ax.set(
        xlabel="x",
        title=f"{name} = {value}: half-width {epsilon:.2f}, {outside:.0%} outside",
    )
axes[0].set_ylabel("y (dotted: the truth)")
