"""
Margin maximisation by first-order methods (Ji et al., figures 1 and 2)
========================================================================

Four methods that read all the data once a round: the momentum method, normalized gradient descent
and gradient descent, all with the paper's steps, and the batch perceptron. That of
Cotter et al., which the paper names, has steps that fall as 1 / sqrt(t) and stays in the unit ball,
and its predictor is the average of all rounds; beside it is one with steps of 1, which never come
to rest. No intercept, and images scaled so that the longest has norm 1, as in the paper.

On the left, digits 0 and 1, which can be separated: the margin of the iterate after so many
gradient evaluations (thick) and the best margin so far, which the estimators keep (thin),
with the momentum method's certified upper bound. The inset is the same, near the best margin.
Drawn into it are two methods of Wang, Hanashiro, Guha and Abernethy (2023), whose rates lack the
factor log t of the momentum method's: Algorithm 2 with steps twice as long as theirs (its bound is
half of theirs), and Algorithm 3, Nesterov's method on the exponential loss, at the points where it
takes its gradients.

In the middle, whether the logarithm shows: what the margin falls short of the best, times t^2, in
the units of the theorems. It would make the momentum method's curve rise as log t does. On the
right, digits 3 and 5, which cannot be separated (on full MNIST): test error. Both batch
perceptrons predict with their averages there.

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


def watched(algorithm, path, averaged):
    """The algorithm, which appends (gradient evaluations, margin) of its iterates to ``path``.

    An iterate is what a round gives as a candidate for the lower bound, or the average where that
    is what the method returns. The estimator itself keeps the best one only.
    """

    class Watched(type(algorithm)):
        def candidates(self, problem, state):
            unit, gradients = problem.radius * problem.rows.unit, problem.work.passes - len(path)
            for candidate in super().candidates(problem, state):
                w, least = candidate.vector, candidate.min_margin
                norm = problem.norm(w)
                if averaged and candidate.fallback and norm > 0:
                    path.append((gradients, problem.margins(w).min() / norm * unit))
                elif not averaged and least is not None and norm > 0:
                    path.append((problem.work.passes, least / norm * unit))
                yield candidate

    return Watched(**vars(algorithm))


class Watching:
    """Mixin for estimators that note the margins of their iterates."""

    averaged = False

    def _algorithm(self):
        self.path = []
        return watched(super()._algorithm(), self.path, self.averaged)


class Momentum(Watching, MomentumMarginClassifier):
    """Notes the margins of its iterates."""


class Perceptron(Watching, BatchPerceptron):
    """Notes the margins of its iterates."""


class AveragedPerceptron(Perceptron):
    """Notes the margins of the averages."""

    averaged = True


class Accelerated(Watching, AcceleratedPerceptron):
    """Notes the margins of its iterates."""


METHODS = {
    "momentum (Algorithm 1)": Momentum(),
    "normalized gradient descent": Momentum(momentum="none"),
    "gradient descent": Momentum(momentum="none", gradient="plain"),
    "batch perceptron, steps of 1": Perceptron(),
    "batch perceptron, Cotter et al.": AveragedPerceptron(steps="cotter"),
}
WITHOUT_LOGARITHM = {
    "accelerated perceptron": Accelerated(),
    "Nesterov's method": Accelerated(play="nesterov"),
}
STYLES = {
    "momentum (Algorithm 1)": {"color": "#0072B2"},
    "normalized gradient descent": {"color": "#D55E00", "ls": "-."},
    "gradient descent": {"color": "#009E73", "ls": (0, (6, 1.5))},
    "batch perceptron, steps of 1": {"color": "#CC79A7", "zorder": 1},  # it jumps: below
    "batch perceptron, Cotter et al.": {"color": "#882255", "ls": (0, (3, 1, 1, 1))},
    "accelerated perceptron": {"color": "#E69F00", "ls": (0, (4, 4))},
    "Nesterov's method": {"color": "#000000", "ls": (0, (1, 1.5))},
}
X, y, X_test, y_test = load_mnist()
warnings.simplefilter("ignore", ConvergenceWarning)  # fixed numbers of rounds, on purpose
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.8), layout="constrained")
near = left.inset_axes((0.30, 0.06, 0.67, 0.40))  # the same near the best margin

# %%
# Figure 1: the classes can be separated.
A, b = pair(X, y, 0, 1)
A = A / np.linalg.norm(A, axis=1).max()
best = MaxMarginClassifier(fit_intercept=False, tol=1e-9).fit(A, b).margin_bound_
for label, method in (METHODS | WITHOUT_LOGARITHM).items():
    clf = method.set_params(fit_intercept=False, tol=0.0, max_iter=ROUNDS).fit(A, b)
    t, margins = np.transpose(clf.path)
    left.plot(t, margins, lw=1.8, alpha=0.6, label=label, **STYLES[label])
    near.plot(t, margins, lw=1.5, alpha=0.6, **STYLES[label])
    print(f"0/1, {label}: last iterate {margins[-1]:.4f}; best: {clf.certificate_}")
    if label in METHODS and not method.averaged:
        history = clf.history_
        left.plot(history["n_passes"], history["margin"], lw=0.9, color=STYLES[label]["color"])
    if label.startswith("momentum"):
        left.plot(history["n_passes"], history["margin_bound"], "--", lw=1, color="#0072B2")
        left.text(95, 0.040, "certified bound", fontsize="small", color="#0072B2", va="center")
        near.plot(history["n_passes"], history["margin_bound"], "--", lw=1, color="#0072B2")
    if label in WITHOUT_LOGARITHM or label.startswith("momentum"):
        short = best * (best - margins) * np.arange(1, len(t) + 1) ** 2 / np.log(len(A))
        middle.plot(np.arange(1, len(t) + 1), short, lw=1.8, **STYLES[label])
left.axhline(0, color="0.7", lw=0.8)
left.axhline(best, color="0.4", lw=0.8, ls=":")
left.text(ROUNDS, best, "best margin", ha="right", va="bottom", fontsize="small", color="0.3")
near.axhline(best, color="0.4", lw=0.8, ls=":")
near.set(xlim=(0, ROUNDS), ylim=(0.0102, 0.0235))
near.tick_params(labelsize="x-small")
left.set(
    title=f"MNIST 0/1 ({len(A)} images of norm at most 1)",
    xlabel="gradient evaluations",
    ylabel="margin (thin: best so far)",
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
fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
target = sys.argv[1] if len(sys.argv) > 1 else "margin_maximization.png"
fig.savefig(target, dpi=110)
print(target)
