"""
Outliers: what nu means
=======================

Examples without labels, some of them outliers. At most the fraction nu of them is outside the line,
and at least the fraction nu are support vectors (rings). The margin is proved to be within 1e-6 of
the best.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from marginsvm import MaxMarginOutlierDetector

rng = np.random.default_rng(0)
X = np.vstack(
    [make_moons(180, noise=0.07, random_state=0)[0], rng.uniform(-1.6, 2.6, (20, 2))]
)
xx, yy = np.meshgrid(np.linspace(-2, 3, 200), np.linspace(-2, 2.8, 200))

fig, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
for ax, nu in zip(axes, (0.05, 0.15, 0.3), strict=True):
    detector = MaxMarginOutlierDetector(nu=nu, gamma=0.7).fit(X)
    outlier, support = detector.predict(X) < 0, detector.support_
    shares = f"{outlier.mean():.1%} outside, {len(support) / len(X):.1%} support"
    print(f"nu = {nu}: {detector.status_}, {shares}")
    f = detector.decision_function(np.c_[xx.ravel(), yy.ravel()]).reshape(xx.shape)
    ax.contourf(xx, yy, f, levels=[0, 1e9], colors="#0072B2", alpha=0.12)
    ax.contour(xx, yy, f, levels=[0], colors="#0072B2")
    ax.scatter(*X.T, s=14, c=np.where(outlier, "#D55E00", "#0072B2"))
    ax.scatter(*X[support].T, s=60, facecolors="none", edgecolors="k", linewidths=0.7)
    ax.set(title=f"nu = {nu}: {shares}")
