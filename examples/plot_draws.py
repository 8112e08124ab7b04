"""
A kernel machine from a few columns
===================================

``AdaptiveSamplingKernelClassifier`` never forms the kernel matrix. Each draw takes one example,
the likelier the smaller its margin, and computes its column of the matrix. Most examples are never
drawn, and their columns are never computed; the certificate is of the whole matrix.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from marginsvm import AdaptiveSamplingKernelClassifier

X, y = make_moons(10_000, noise=0.1, random_state=0)
clf = AdaptiveSamplingKernelClassifier(kernel="rbf", gamma=2.0, C=10.0, random_state=0)
clf.fit(X, y)
print(clf.certificate_)
share = clf.n_kernel_evaluations_ / len(X) ** 2
print(f"{clf.n_iter_} draws of {len(clf.support_)} examples, {share:.1%} of the matrix")

# %%
# The examples that were drawn lie along the boundary.
x, y_axis = np.linspace(-1.6, 2.6, 200), np.linspace(-1.2, 1.7, 150)
grid = np.stack(np.meshgrid(x, y_axis), axis=-1)
f = clf.decision_function(grid.reshape(-1, 2)).reshape(150, 200)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
left.contourf(x, y_axis, f, levels=[-np.inf, 0, np.inf], colors=["#cfe3f1", "#f8dccb"])
left.scatter(*X.T, c=np.where(y, "#D55E00", "#0072B2"), s=1)
left.scatter(*X[clf.support_].T, s=30, facecolors="none", edgecolors="k", lw=0.8)
left.set_title(f"{len(X):,} examples; rings: the {len(clf.support_)} that were drawn")
left.set_aspect("equal")

draws = clf.history_["n_iter"]
right.loglog(draws, clf.history_["margin_bound"], "--", label="no margin is above")
right.loglog(draws, clf.history_["margin"], label="margin found")
right.set(xlabel="draws", title="certified bounds", ylim=(1e-3, 1))
right.legend()
