"""
Margin maximisation by first-order methods (Ji et al., figures 1 and 2)
========================================================================

Four methods that read all the data once a round: Algorithm 1, normalized gradient descent and
gradient descent, all with the paper's steps, and the batch perceptron, with the falling steps and
averages of Cotter et al., and with steps of 1, which never come to rest. No intercept, and images
scaled so that the longest has norm 1.

Left, digits 0 and 1, which can be separated: the margin of the iterate after so many gradient
evaluations, and the upper bound that Algorithm 1 proves (dashed). Right, digits 3 and 5, which
cannot be separated: test error; both batch perceptrons predict with their averages there.

Drawn: ``docs/images/margin_maximization.png``.
"""

import os
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.exceptions import ConvergenceWarning

from marginsvm import BatchPerceptron, MaxMarginClassifier, MomentumMarginClassifier

ROUNDS = 1000


def load_mnist():
    """Images to learn from and to test on, pixels in [0, 1], and their labels."""
    path = Path(os.environ.get("MARGINSVM_DATA", "")) / "mnist.npz"
    if path.is_file():
        z = np.load(path)
        X, X_test = (
            z[key].reshape(len(z[key]), -1) / 255.0 for key in ("X_train", "X_test")
        )
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
            unit, gradients = (
                problem.radius,
                problem.work.passes - len(path),
            )
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


METHODS = {
    "momentum (Algorithm 1)": Momentum(),
    "normalized gradient descent": Momentum(momentum=None),
    "gradient descent": Momentum(momentum=None, gradient="plain"),
    "batch perceptron, steps of 1": Perceptron(),
    "batch perceptron, Cotter et al.": AveragedPerceptron(steps="cotter"),
}
STYLES = {
    "momentum (Algorithm 1)": {"color": "#0072B2", "marker": "o"},
    "normalized gradient descent": {"color": "#D55E00", "marker": "s"},
    "gradient descent": {"color": "#009E73", "marker": "^"},
    "batch perceptron, steps of 1": {
        "color": "#CC79A7",
        "lw": 0.6,
        "zorder": 1,
    },  # it jumps
    "batch perceptron, Cotter et al.": {"color": "#882255", "marker": "D"},
}
X, y, X_test, y_test = load_mnist()
warnings.simplefilter(
    "ignore", ConvergenceWarning
)  # fixed numbers of rounds, on purpose
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")


def draw(ax, x, values, label):
    """A line with a few markers, which are in other places for each method."""
    shift = 0.1 * list(STYLES).index(label) / len(STYLES)
    ax.plot(
        x,
        values,
        **{"lw": 1.5, "ms": 5, "markevery": (shift, 0.1)} | STYLES[label],
        label=label,
    )


# %%
# Figure 1: the classes can be separated.
A, b = pair(X, y, 0, 1)
A = A / np.linalg.norm(A, axis=1).max()
best = MaxMarginClassifier(fit_intercept=False, tol=1e-9).fit(A, b).margin_bound_
for label, method in METHODS.items():
    clf = method.set_params(fit_intercept=False, tol=0.0, max_iter=ROUNDS).fit(A, b)
    t, margins = np.transpose(clf.path)
    draw(left, t, margins, label)
    print(f"0/1, {label}: last iterate {margins[-1]:.4f}; best: {clf.certificate_}")
    if label.startswith("momentum"):
        bound = clf.history_["n_passes"], clf.history_["margin_bound"]
        left.plot(
            *bound, "--", lw=1.2, color="#0072B2", label="its certified upper bound"
        )
left.axhline(best, color="0.4", lw=0.8, ls=":")
left.annotate(
    "best margin", (ROUNDS, best), (0, 4), textcoords="offset points", ha="right"
)
left.axhline(0, color="0.7", lw=0.8)
left.set(
    title=f"MNIST 0/1 ({len(A)} images of norm at most 1)",
    xlabel="gradient evaluations",
    ylabel="margin of the iterate",
    ylim=(-0.2, 0.05),
)

# %%
# Figure 2: test error while the fit goes on, by warm starts.
(A, b), (A_test, b_test) = pair(X, y, 3, 5), pair(X_test, y_test, 3, 5)
stops = np.unique(np.geomspace(1, ROUNDS, 25).astype(int))
for label, method in METHODS.items():
    clf = method.set_params(warm_start=True)
    errors = [
        1 - clf.set_params(max_iter=t).fit(A, b).score(A_test, b_test) for t in stops
    ]
    draw(right, stops, 100 * np.array(errors), label)
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
handles, labels = left.get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=3)
target = sys.argv[1] if len(sys.argv) > 1 else "margin_maximization.png"
fig.savefig(target, dpi=110)
print(target)
