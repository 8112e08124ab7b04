"""
Margin maximisation by first-order methods (Ji et al., figures 1 and 2)
========================================================================

Four methods that read all the data once a round: the momentum method, normalized
gradient descent, gradient descent, and the batch perceptron. No intercept, as in the paper.

On the left, digits 0 and 1, which can be separated: the best margin so far against
gradient evaluations, with the momentum method's certified upper bound. On the right,
digits 3 and 5, which cannot (on full MNIST): test error. The paper's batch perceptron
predicts with its last iterate; ours, where nothing separates, with the average of them,
and suffers all the same.

.. image:: /images/margin_maximization.png
"""

# sphinx_gallery_thumbnail_path = 'images/margin_maximization.png'

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from _mnist import load_mnist, pair
from sklearn.exceptions import ConvergenceWarning

from marginsvm import BatchPerceptron, MomentumMarginClassifier

ROUNDS = 1000
METHODS = {
    "momentum (Algorithm 1)": MomentumMarginClassifier(),
    "normalized gradient descent": MomentumMarginClassifier(momentum="none"),
    "gradient descent": MomentumMarginClassifier(momentum="none", gradient="plain"),
    "batch perceptron": BatchPerceptron(),
}
X, y, X_test, y_test, name = load_mnist()
warnings.simplefilter("ignore", ConvergenceWarning)  # fixed numbers of rounds, on purpose
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")

# %%
# Figure 1: the classes can be separated.
data = pair(X, y, 0, 1)
for label, method in METHODS.items():
    clf = method.set_params(fit_intercept=False, tol=0.0, max_iter=ROUNDS).fit(*data)
    (line,) = left.plot(clf.history_["n_passes"], clf.history_["margin"], label=label)
    if label.startswith("momentum"):
        bound = clf.history_["margin_bound"]
        left.plot(clf.history_["n_passes"], bound, "--", color=line.get_color(), lw=1)
    print(f"0/1, {label}: {clf.certificate_}")
left.axhline(0, color="0.7", lw=0.8)
left.set(
    title=f"{name} 0/1: margin (dashed: certified bound)",
    xlabel="gradient evaluations",
    ylabel="margin",
    ylim=(-1.0, 0.6),
)
left.legend()

# %%
# Figure 2: test error while the fit goes on, by warm starts.
data, (A, b) = pair(X, y, 3, 5), pair(X_test, y_test, 3, 5)
stops = np.unique(np.geomspace(1, ROUNDS, 25).astype(int))
for label, method in METHODS.items():
    clf = method.set_params(warm_start=True)
    errors = [1 - clf.set_params(max_iter=t).fit(*data).score(A, b) for t in stops]
    right.plot(stops, 100 * np.array(errors), label=label)
    print(f"3/5, {label}: test error {100 * errors[-1]:.2f} %")
right.set(
    title=f"{name} 3/5: test error (%)",
    xlabel="gradient evaluations",
    xscale="log",
    yscale="log",
)
right.yaxis.set_major_formatter("{x:g}")
right.yaxis.set_minor_formatter("{x:g}")
right.legend()
target = sys.argv[1] if len(sys.argv) > 1 else "margin_maximization.png"
fig.savefig(target, dpi=110)
print(target)
