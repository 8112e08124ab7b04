"""
Margin maximisation by first-order methods (Ji et al., figures 1 and 2)
========================================================================

Four methods that read all the data once an iteration: Algorithm 1, normalized gradient descent and
gradient descent, all with the paper's steps, and the batch perceptron, with the falling steps and
averages of Cotter et al., and with steps of 1, which never come to rest. No intercept, and images
scaled so that the longest has norm 1.

Left, digits 0 and 1, which can be separated: the margin of the iterate after so many gradient
evaluations, and the upper bound that Algorithm 1 proves (dashed). Right, digits 3 and 5, which
cannot be separated: test error; both batch perceptrons predict with their averages there. Without
MNIST (MARGINSVM_DATA), scikit-learn's digits, in seconds; on the right, even against odd ones.

Drawn: ``docs/images/margin_maximization.png``.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from _figure import handwritten_digits, save
from sklearn.exceptions import ConvergenceWarning

from marginsvm import BatchPerceptron, MaxMarginClassifier, MomentumMarginClassifier

ITERATIONS = 1000


def pair(X, y, negative, positive):
    """Keep two of the classes."""
    kept = (y == negative) | (y == positive)
    return X[kept], y[kept]


def watched(algorithm, path, averaged):
    """The algorithm, which appends (iteration, margin) of its iterates to ``path`` at each look.

    An iterate is what an iteration gives as a candidate for the lower bound, or the average where
    that is what the method returns. The estimator itself keeps the best one only.
    """

    class Watched(type(algorithm)):
        def candidates(self, problem, state):
            for candidate in super().candidates(problem, state):
                w, least = candidate.vector, candidate.min_margin
                norm = problem.norm(w)
                if averaged:
                    least = problem.margins(w).min() if candidate.fallback else None
                if least is not None and norm > 0:
                    path.append((state.t, least / norm * problem.radius))
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
name, X, y, X_test, y_test = handwritten_digits()
# fixed numbers of iterations, on purpose
warnings.simplefilter("ignore", ConvergenceWarning)
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
margins = {}
best = MaxMarginClassifier(fit_intercept=False, tol=1e-9).fit(A, b).margin_bound_
for label, method in METHODS.items():
    clf = method.set_params(fit_intercept=False, tol=0.0, max_iter=ITERATIONS).fit(A, b)
    t, found = margins[label] = np.transpose(clf.path)
    draw(left, t, found, label)
    text = f"0/1, {label}: last iterate {found[-1]:.4f}; best: {clf.certificate_}"
    print(text, flush=True)
    if label.startswith("momentum"):
        bound = clf.history_["n_iter"], clf.history_["margin_bound"]
        left.plot(
            *bound, "--", lw=1.2, color="#0072B2", label="its certified upper bound"
        )
left.axhline(best, color="0.4", lw=0.8, ls=":")
left.annotate(
    "best margin", (ITERATIONS, best), (0, 4), textcoords="offset points", ha="right"
)
left.axhline(0, color="0.7", lw=0.8)
left.set(
    title=f"{name}, 0/1 ({len(A)} images of norm at most 1)",
    xlabel="gradient evaluations",
    ylabel="margin of the iterate",
    ylim=(-0.2, 0.05) if best < 0.04 else (-0.1, 1.15 * best),
)

# %%
# Figure 2: test error while the fit goes on, by warm starts.
if name == "MNIST":
    classes = "3/5"
    (A, b), (A_test, b_test) = pair(X, y, 3, 5), pair(X_test, y_test, 3, 5)
else:
    classes = "even/odd"
    A, b, A_test, b_test = X, y % 2, X_test, y_test % 2
errors = {}
stops = np.unique(np.geomspace(1, ITERATIONS, 25).astype(int))
for label, method in METHODS.items():
    clf = method.set_params(warm_start=True)
    errors[label] = [
        1 - clf.set_params(max_iter=t).fit(A, b).score(A_test, b_test) for t in stops
    ]
    draw(right, stops, 100 * np.array(errors[label]), label)
    print(f"{classes}, {label}: test error {100 * errors[label][-1]:.2f} %", flush=True)
right.set(
    title=f"{name}, {classes} ({len(A)} images; {len(A_test)} to test)",
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
save(fig, __file__)
