"""
Margin maximisation by first-order methods (Ji et al., figures 1 and 2)
========================================================================

Four methods that read all the data once a round: the momentum method, normalized
gradient descent, gradient descent, and the batch perceptron, all with the paper's steps. No
intercept, and images scaled so that the longest has norm 1, as in the paper.

On the left, digits 0 and 1, which can be separated: the margin of the iterate after so many
gradient evaluations (thick) and the best margin so far, which the estimators keep (thin),
with the momentum method's certified upper bound. On the right, digits 3 and 5, which cannot
(on full MNIST): test error. The paper does not say which iterate its batch perceptron
predicts with; ours, where nothing separates, with the average of them.

.. image:: /images/margin_maximization.png
"""

# sphinx_gallery_thumbnail_path = 'images/margin_maximization.png'

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from _mnist import load_mnist, pair
from _watching import Watching
from sklearn.exceptions import ConvergenceWarning

from marginsvm import BatchPerceptron, MomentumMarginClassifier

ROUNDS = 1000


class Momentum(Watching, MomentumMarginClassifier):
    """Notes the margins of its iterates."""


class Perceptron(Watching, BatchPerceptron):
    """Notes the margins of its iterates."""


METHODS = {
    "momentum (Algorithm 1)": Momentum(),
    "normalized gradient descent": Momentum(momentum="none"),
    "gradient descent": Momentum(momentum="none", gradient="plain"),
    "batch perceptron": Perceptron(),
}
X, y, X_test, y_test, name = load_mnist()
warnings.simplefilter("ignore", ConvergenceWarning)  # fixed numbers of rounds, on purpose
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")

# %%
# Figure 1: the classes can be separated.
A, b = pair(X, y, 0, 1)
A = A / np.linalg.norm(A, axis=1).max()
for label, method in METHODS.items():
    clf = method.set_params(fit_intercept=False, tol=0.0, max_iter=ROUNDS).fit(A, b)
    (line,) = left.plot(*np.transpose(clf.path), lw=1.8, alpha=0.5)
    history, color = clf.history_, line.get_color()
    left.plot(history["n_passes"], history["margin"], color=color, lw=0.9)
    if label.startswith("momentum"):
        left.plot(history["n_passes"], history["margin_bound"], "--", color=color, lw=1)
    print(f"0/1, {label}: last iterate {clf.path[-1][1]:.4f}; best: {clf.certificate_}")
left.axhline(0, color="0.7", lw=0.8)
left.set(
    title=f"{name} 0/1 ({len(A)} images of norm at most 1)",
    xlabel="gradient evaluations",
    ylabel="margin (thin: best so far; dashed: certified bound)",
    ylim=(-0.40, 0.05),  # the paper's
)

# %%
# Figure 2: test error while the fit goes on, by warm starts.
(A, b), (A_test, b_test) = pair(X, y, 3, 5), pair(X_test, y_test, 3, 5)
stops = np.unique(np.geomspace(1, ROUNDS, 25).astype(int))
for label, method in METHODS.items():
    clf = method.set_params(warm_start=True)
    errors = [1 - clf.set_params(max_iter=t).fit(A, b).score(A_test, b_test) for t in stops]
    right.plot(stops, 100 * np.array(errors), label=label)
    print(f"3/5, {label}: test error {100 * errors[-1]:.2f} %")
right.set(
    title=f"{name} 3/5 ({len(A)} images; {len(A_test)} to test)",
    xlabel="gradient evaluations",
    ylabel="test error (%)",
    xscale="log",
    yscale="log",
    yticks=[2, 5, 10, 20, 50],
)
right.yaxis.set_major_formatter("{x:g}")
right.yaxis.set_minor_formatter("")
fig.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=4)
target = sys.argv[1] if len(sys.argv) > 1 else "margin_maximization.png"
fig.savefig(target, dpi=110)
print(target)
