"""
What the two bounds of a certificate are
========================================

Two classes of irises, and the momentum method after 3 iterations and at its end. The *strip*
proves the lower bound: it contains no example, and half its width is ``margin_``. The two
*crosses* prove the upper bound: each is a weighted mean of the examples
of one class, so it lies in their convex hull. Any strip that separates the classes fits between
the crosses; half their distance is ``margin_bound_``.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from marginsvm import MarginPathDisplay, MomentumMarginClassifier

X, y = load_iris(return_X_y=True)
X, y = X[:100, [1, 2]], y[:100]  # sepal width, petal length: setosa and versicolor


def draw(ax, clf):
    """The examples, the strip of the predictor, and the crosses of the weights."""
    q = clf.certificate_.weights.toarray().ravel()
    means = np.array([q[y == c] @ X[y == c] / q[y == c].sum() for c in (0, 1)])
    for c, color in enumerate(("#0072B2", "#D55E00")):
        own = X[y == c]
        ax.plot(*own.T, "o", ms=4, color=color, alpha=0.5)
        ax.fill(*own[ConvexHull(own).vertices].T, color=color, alpha=0.12, lw=0)
    ax.plot(*means.T, "kx-", ms=11, mew=2, lw=1)
    w = clf.coef_[0] / np.linalg.norm(clf.coef_)
    # a point of the line w.x + b = 0
    foot = -clf.intercept_[0] / np.linalg.norm(clf.coef_) * w
    along = np.array([-w[1], w[0]])
    ends = foot + np.outer([-20, 20], along)
    strip = np.r_[ends + clf.margin_ * w, (ends - clf.margin_ * w)[::-1]]
    ax.fill(*strip.T, color="0.5", alpha=0.25, lw=0)
    ax.plot(*ends.T, color="0.3", lw=1)
    ax.set(xlim=(1.7, 4.7), ylim=(0.5, 5.5), aspect="equal", xlabel="sepal width (cm)")
    ax.set_title(
        f"iteration {clf.n_iter_}: strip {2 * clf.margin_:.3f} wide,\n"
        f"crosses {2 * clf.margin_bound_:.3f} apart"
    )


# %%
# Both bounds hold after every iteration; at the end they meet.
fig, (first, last, path) = plt.subplots(
    1, 3, figsize=(12, 4.6), layout="constrained", width_ratios=(1, 1, 1.7)
)
clf = MomentumMarginClassifier(tol=1e-3, max_iter=3, warm_start=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # 3 iterations, on purpose
    draw(first, clf.fit(X, y))
draw(last, clf.set_params(max_iter=10_000).fit(X, y))
first.set_ylabel("petal length (cm)")
MarginPathDisplay.from_estimator(clf, x="n_iter", ax=path)
path.set_title("half of both, after each iteration: the bounds")
path.set_ylim(top=1.05 * clf.history_["margin_bound"].max())
path.set_ylabel("margin (cm)")
fig.suptitle("Iris: setosa (below) and versicolor (above)")
print(clf.certificate_)
if __name__ == "__main__":
    fig.savefig(sys.argv[1] if len(sys.argv) > 1 else "certificate.png", dpi=110)
