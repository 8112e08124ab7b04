"""
Margin maximisation by first-order methods (Ji et al., figures 1 and 2)
========================================================================

Four methods that read all the data once a round: the momentum method, normalized
gradient descent, gradient descent, and the batch perceptron, all with the paper's steps. No
intercept, and images scaled so that the longest has norm 1, as in the paper.

On the left, digits 0 and 1, which can be separated: the margin of the iterate after so many
gradient evaluations (thick) and the best margin so far, which the estimators keep (thin),
with the momentum method's certified upper bound. Drawn into it are two methods of Wang,
Hanashiro, Guha and Abernethy (2023), whose rates lack the factor log t of the momentum method's:
Algorithm 2 with steps twice as long as theirs (its bound is half of theirs), and Algorithm 3,
Nesterov's method on the exponential loss, at the points where it takes its gradients.

In the middle, whether the logarithm shows: what the margin falls short of the best, times t^2, in
the units of the theorems. It would make the momentum method's curve rise as log t does. On the
right, digits 3 and 5, which cannot be separated (on full MNIST): test error. The paper does not
say which iterate its batch perceptron predicts with; ours, where nothing separates, with the
average of them.

.. image:: /images/margin_maximization.png
"""

# sphinx_gallery_thumbnail_path = 'images/margin_maximization.png'

import os
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.exceptions import ConvergenceWarning

from marginsvm import (
    AcceleratedPerceptron,
    BatchPerceptron,
    MaxMarginClassifier,
    MomentumMarginClassifier,
)

ROUNDS = 1000


def load_mnist():
    """Images to learn from and to test on, pixels in [0, 1], and their labels."""
    path = Path(os.environ.get("MARGINSVM_DATA", "")) / "mnist.npz"
    if path.is_file():
        z = np.load(path)
        X, X_test = (z[key].reshape(len(z[key]), -1) / 255.0 for key in ("X_train", "X_test"))
        return X, z["y_train"], X_test, z["y_test"]
    X, y = fetch_openml("mnist_784", return_X_y=True, as_frame=False)
    X, y = X / 255.0, y.astype(int)
    return X[:60000], y[:60000], X[60000:], y[60000:]


def pair(X, y, negative, positive):
    """Keep two of the classes."""
    kept = (y == negative) | (y == positive)
    return X[kept], y[kept]


def watched(algorithm, path):
    """The algorithm, which appends (passes, margin) of each of its iterates to ``path``.

    An iterate is what a round gives as a candidate for the lower bound. The estimator itself keeps
    the best one only.
    """

    class Watched(type(algorithm)):
        def candidates(self, problem, state):
            unit = problem.radius * problem.rows.unit
            for candidate in super().candidates(problem, state):
                norm = problem.norm(candidate.vector)
                if candidate.min_margin is not None and norm > 0:
                    path.append((problem.work.passes, candidate.min_margin / norm * unit))
                yield candidate

    return Watched(**vars(algorithm))


class Watching:
    """Mixin for estimators that note the margins of their iterates."""

    def _algorithm(self):
        self.path = []
        return watched(super()._algorithm(), self.path)


class Momentum(Watching, MomentumMarginClassifier):
    """Notes the margins of its iterates."""


class Perceptron(Watching, BatchPerceptron):
    """Notes the margins of its iterates."""


class Accelerated(Watching, AcceleratedPerceptron):
    """Notes the margins of its iterates."""


METHODS = {
    "momentum (Algorithm 1)": Momentum(),
    "normalized gradient descent": Momentum(momentum="none"),
    "gradient descent": Momentum(momentum="none", gradient="plain"),
    "batch perceptron": Perceptron(),
}
WITHOUT_LOGARITHM = {
    "accelerated perceptron": Accelerated(),
    "Nesterov's method": Accelerated(play="nesterov"),
}
STYLES = {
    "momentum (Algorithm 1)": {"color": "#0072B2"},
    "normalized gradient descent": {"color": "#D55E00", "ls": "-."},
    "gradient descent": {"color": "#009E73", "ls": (0, (6, 1.5))},
    "batch perceptron": {"color": "#CC79A7", "zorder": 1},  # it jumps: under the others
    "accelerated perceptron": {"color": "#E69F00", "ls": (0, (4, 4))},
    "Nesterov's method": {"color": "#000000", "ls": (0, (1, 1.5))},
}
X, y, X_test, y_test = load_mnist()
warnings.simplefilter("ignore", ConvergenceWarning)  # fixed numbers of rounds, on purpose
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.8), layout="constrained")

# %%
# Figure 1: the classes can be separated.
A, b = pair(X, y, 0, 1)
A = A / np.linalg.norm(A, axis=1).max()
best = MaxMarginClassifier(fit_intercept=False, tol=1e-9).fit(A, b).margin_bound_
for label, method in (METHODS | WITHOUT_LOGARITHM).items():
    clf = method.set_params(fit_intercept=False, tol=0.0, max_iter=ROUNDS).fit(A, b)
    t, margins = np.transpose(clf.path)
    left.plot(t, margins, lw=1.8, alpha=0.6, label=label, **STYLES[label])
    print(f"0/1, {label}: last iterate {margins[-1]:.4f}; best: {clf.certificate_}")
    if label in METHODS:
        history = clf.history_
        left.plot(history["n_passes"], history["margin"], lw=0.9, color=STYLES[label]["color"])
    if label.startswith("momentum"):
        left.plot(history["n_passes"], history["margin_bound"], "--", lw=1, color="#0072B2")
    if label in WITHOUT_LOGARITHM or label.startswith("momentum"):
        short = best * (best - margins) * np.arange(1, len(t) + 1) ** 2 / np.log(len(A))
        middle.plot(np.arange(1, len(t) + 1), short, lw=1.8, **STYLES[label])
left.axhline(0, color="0.7", lw=0.8)
left.axhline(best, color="0.4", lw=0.8, ls=":")
left.text(ROUNDS, best, "best margin ", ha="right", va="bottom", fontsize="small", color="0.3")
left.set(
    title=f"MNIST 0/1 ({len(A)} images of norm at most 1)",
    xlabel="gradient evaluations",
    ylabel="margin (thin: best so far; dashed: certified bound)",
    ylim=(-0.40, 0.05),  # the paper's
)
middle.set(
    title="does the logarithm show?",
    xlabel="rounds t",
    ylabel=r"(best margin $-$ margin) $\cdot$ best margin $\cdot\, t^2 / \ln n$",
    xscale="log",
    ylim=(0, None),
)

# %%
# Figure 2: test error while the fit goes on, by warm starts.
(A, b), (A_test, b_test) = pair(X, y, 3, 5), pair(X_test, y_test, 3, 5)
stops = np.unique(np.geomspace(1, ROUNDS, 25).astype(int))
for label, method in METHODS.items():
    clf = method.set_params(warm_start=True)
    errors = [1 - clf.set_params(max_iter=t).fit(A, b).score(A_test, b_test) for t in stops]
    right.plot(stops, 100 * np.array(errors), **STYLES[label])
    print(f"3/5, {label}: test error {100 * errors[-1]:.2f} %")
right.set(
    title=f"MNIST 3/5 ({len(A)} images; {len(A_test)} to test)",
    xlabel="gradient evaluations",
    ylabel="test error (%)",
    xscale="log",
    yscale="log",
    yticks=[2, 5, 10, 20, 50],
)
right.yaxis.set_major_formatter("{x:g}")
right.yaxis.set_minor_formatter("")
fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=6)
target = sys.argv[1] if len(sys.argv) > 1 else "margin_maximization.png"
fig.savefig(target, dpi=110)
print(target)
