"""
What C does
===========

Two classes that overlap a little, and soft margins for three values of C. Full line: decision
boundary. Dashed: where the decision value is 1 or -1. Rings: support vectors. A small C gives a
wide strip that tolerates errors, a large C a narrow one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from marginsvm import MaxMarginClassifier

X, y = make_blobs(
    80, centers=[[-1.2, -0.8], [1.2, 0.8]], cluster_std=1.0, random_state=4
)
colors = np.array(["#0072B2", "#D55E00"])
xx, yy = np.meshgrid(np.linspace(-4.5, 4.5, 200), np.linspace(-4, 4, 200))

fig, axes = plt.subplots(1, 3, figsize=(12, 3.9), sharey=True, layout="constrained")
for ax, C in zip(axes, (0.01, 0.3, 100.0), strict=True):
    clf = MaxMarginClassifier(C=C, loss="hinge").fit(X, y)
    print(f"C = {C:g}: {clf.certificate_}")
    f = clf.decision_function(np.c_[xx.ravel(), yy.ravel()]).reshape(xx.shape)
    ax.contourf(xx, yy, f, levels=[-1e9, 0, 1e9], colors=colors, alpha=0.08)
    ax.contour(xx, yy, f, levels=[-1, 0, 1], colors="k", linestyles=["--", "-", "--"])
    ax.scatter(*X.T, s=18, c=colors[y])
    ax.scatter(
        *X[clf.support_].T, s=70, facecolors="none", edgecolors="k", linewidths=0.8
    )
    width = 2 / np.linalg.norm(clf.coef_)
    ax.set(title=f"C = {C:g}: {len(clf.support_)} support vectors, width {width:.2f}")
