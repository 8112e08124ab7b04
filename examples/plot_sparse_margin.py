"""
Few features by the norm of the margin
======================================

Which predictor has the largest margin depends on the norm that measures it. ``DualLpPerceptron``
maximises the margin for the p-norm of the coefficients: with p near 1 the five features that
matter among 500 stand out, without a penalty to tune. The certificate proves how good each margin
is.
"""

import matplotlib.pyplot as plt
import numpy as np

from marginsvm import DualLpPerceptron

rng = np.random.default_rng(0)
n, d = 100, 500
matter = np.array([50, 150, 250, 350, 450])
signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
X, X_test = rng.standard_normal((2, n, d))
y, y_test = X[:, matter] @ signs > 0, X_test[:, matter] @ signs > 0

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
for ax, p in zip(axes, (2.0, 1.2, 1.02), strict=True):
    clf = DualLpPerceptron(p=p, fit_intercept=False, random_state=0).fit(X, y)
    w = clf.coef_[0] / np.abs(clf.coef_).max()
    print(f"p = {p}: {clf.certificate_}")
    ax.vlines(np.arange(d), 0, w, color="0.5", lw=0.8)
    ax.plot(matter, w[matter], "o", ms=5, color="#D55E00", label="features that matter")
    accuracy = clf.score(X_test, y_test)
    ax.set(title=f"p = {p}: test accuracy {accuracy:.2f}", xlabel="feature")
axes[0].set_ylabel("coefficient, over the largest")
axes[0].legend(loc="lower left")
