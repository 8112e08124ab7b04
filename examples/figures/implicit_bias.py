"""
Which margin does an optimizer maximise?
========================================

Gradient descent, sign descent and Adam on the exponential loss of a linear predictor, on data
that can be separated. Each goes towards some separator of maximum margin: but in which norm?

``reference_margin`` has the best margin in the 1-norm, the 2-norm and the
infinity-norm of the predictor, certified in rational arithmetic. The picture shows which share of
it an optimizer has reached. Steepest descent in a norm maximises the margin in that norm
(Gunasekar, Lee, Soudry and Srebro, 2018): gradient descent in the 2-norm, sign descent in the
infinity-norm. Adam moves like sign descent.

Drawn: ``docs/images/implicit_bias.png``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from marginsvm import reference_margin

STEPS = 20_000
NORMS = {1.0: "1-norm", 2.0: "2-norm", np.inf: "infinity-norm"}
rng = np.random.default_rng(0)
X = rng.standard_normal((40, 60)) * np.geomspace(3.0, 0.3, 60)  # features of different sizes
y = np.where(X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(40) > 0, 1.0, -1.0)
best = {p: reference_margin(X, y, norm=p) for p in NORMS}
for p, name in NORMS.items():
    print(f"{name}: best margin between {best[p].margin:.9g} and {best[p].margin_bound:.9g}")

# %%
# The optimizers. The loss is the logarithm of the mean exponential loss, whose gradients do not
# vanish as the margin grows. The intercept, which is not in the norm, is always the best one: then
# the weights of the two classes balance. Steps fall as 1 / sqrt(t).


def gradient(w):
    """Of the loss, at its best intercept: a softmax in each class."""
    g = np.zeros(60)
    for sign in (-1.0, 1.0):
        rows = sign * X[y == sign]
        q = np.exp((rows @ w).min() - rows @ w)
        g -= 0.5 * q @ rows / q.sum()
    return g


def gradient_descent():
    w = np.zeros(60)
    for t in range(1, STEPS + 1):
        w -= gradient(w) / np.sqrt(t)
        yield w


def sign_descent():
    w = np.zeros(60)
    for t in range(1, STEPS + 1):
        w -= 0.1 * np.sign(gradient(w)) / np.sqrt(t)
        yield w


def adam(first=0.9, second=0.99):
    w, mean, square = np.zeros(60), np.zeros(60), np.zeros(60)
    for t in range(1, STEPS + 1):
        g = gradient(w)
        mean, square = first * mean + (1 - first) * g, second * square + (1 - second) * g**2
        length = np.sqrt(square / (1 - second**t)) + 1e-12
        w -= 0.1 * mean / (1 - first**t) / length / np.sqrt(t)
        yield w


def margin(w, p):
    """In a norm of w, with the best intercept."""
    scores = X @ w
    return 0.5 * (scores[y > 0].min() - scores[y < 0].max()) / np.linalg.norm(w, p)


# %%
# Shares of the best margin.
COLORS = {1.0: "#009E73", 2.0: "#0072B2", np.inf: "#D55E00"}  # of Okabe and Ito
LINES = {1.0: (0, (1, 1.2)), 2.0: "-", np.inf: "-."}
methods = {"gradient descent": gradient_descent, "sign descent": sign_descent, "Adam": adam}
fig, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
looks = np.unique(np.geomspace(1, STEPS, 200).astype(int))
for ax, (name, method) in zip(axes, methods.items(), strict=True):
    path = [w.copy() for t, w in enumerate(method(), start=1) if t in set(looks)]
    for p, norm in NORMS.items():
        share = np.array([margin(w, p) for w in path]) / best[p].margin_bound
        ax.plot(looks, share, color=COLORS[p], ls=LINES[p], label=norm)
        print(f"{name}: {share[-1]:.1%} of the best margin in the {norm}")
    ax.axhline(1.0, color="0.7", lw=0.8)
    ax.set(title=name, xlabel="steps", xscale="log", ylim=(0.0, 1.05))
axes[0].set_ylabel("margin, as a share of the best in that norm")
axes[0].legend(loc="lower right")
if __name__ == "__main__":
    fig.savefig(sys.argv[1] if len(sys.argv) > 1 else "implicit_bias.png", dpi=110)
