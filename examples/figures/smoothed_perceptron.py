"""
The smoothed perceptron, and its way to prove that nothing separates (Ramdas and Pena)
======================================================================================

On the left, iterations to a separator against the inverse of the margin rho: the normalized
perceptron takes at most 1 / rho^2 (slope 2), the smoothed one about sqrt(log n) / rho (slope 1).
On the right, classes that overlap: the norm of A^T q, at 0 the proof that nothing separates.
Von Neumann's algorithm needs about log(1 / epsilon) / rho^2 of them, the iterated smoothed one
sqrt(n) log(1 / epsilon) / rho: it is ahead where the classes overlap little, and behind where
they overlap much.

Drawn: ``docs/images/smoothed_perceptron.png``.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from _figure import save
from scipy.optimize import nnls
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from marginsvm import (
    NormalizedKernelPerceptron,
    PerceptronVonNeumann,
    SmoothedKernelPerceptron,
    VonNeumannClassifier,
)

warnings.simplefilter("ignore", ConvergenceWarning)
rng = np.random.default_rng(0)


def with_margin(rho, n=200, d=10):
    """Examples of norm 1, whose first coordinate is rho times their label or more."""
    y = np.where(np.arange(n) % 2, 1, -1)
    X = rng.standard_normal((n, d))
    X[:, 0] = 0.0
    first = rho * (1.0 + rng.exponential(1.0, n))
    X *= np.sqrt(1 - first**2)[:, None] / np.linalg.norm(X, axis=1)[:, None]
    X[:, 0] = y * first
    return X, y


inverse, rounds = [], {NormalizedKernelPerceptron: [], SmoothedKernelPerceptron: []}
for target in np.geomspace(0.06, 0.001, 12):
    X, y = with_margin(target)
    params = {"fit_intercept": False, "normalize": True, "max_iter": 200_000}
    rows = np.vstack([(y[:, None] * X).T, np.ones(len(X))])
    q = nnls(rows, np.r_[np.zeros(X.shape[1]), 1.0])[0]  # the exact optimum, of so few
    inverse.append(1 / np.linalg.norm((y * q / q.sum()) @ X))
    for cls, found in rounds.items():
        found.append(cls(stopping="separation", **params).fit(X, y).n_iter_)
    print(
        f"1 / rho = {inverse[-1]:.0f}: {[n[-1] for n in rounds.values()]}", flush=True
    )

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
slopes = {}
names = ("normalized perceptron (NKP)", "smoothed perceptron (SNKP)")
# blue and red of Okabe and Ito, for every kind of colour vision
COLORS = ("#0072B2", "#D55E00")
for found, marker, color, name in zip(
    rounds.values(), "so", COLORS, names, strict=True
):
    slope = slopes[name] = np.polyfit(np.log(inverse), np.log(found), 1)[0]
    left.loglog(inverse, found, marker, color=color, label=f"{name}: slope {slope:.2f}")
    print(f"{name}: slope {slope:.2f}")
x = np.array([min(inverse), max(inverse)])
left.loglog(x, x**2 * 0.05, "0.7", lw=1, zorder=0)
left.loglog(x, x * 0.5, "0.7", lw=1, zorder=0)
left.set(
    xlabel=r"$1 / \rho$, the inverse of the best margin",
    ylabel="iterations to a separator",
)
left.set_title("200 random unit examples (grey: slopes 2 and 1)")
left.legend()

# %%
# Classes that overlap, little (versicolor and virginica) and much (labels with noise).
X, y = load_iris(return_X_y=True)
noisy = rng.standard_normal((300, 5))
overlaps = {
    "little": (X[50:], y[50:], "-"),
    "much": (noisy, noisy[:, 0] + 0.3 * rng.standard_normal(300) > 0, "--"),
}
params = {"fit_intercept": False, "normalize": True, "max_iter": 3000}
methods = {
    "von Neumann (NVN)": VonNeumannClassifier(tol=1e-9, **params),
    "iterated smoothed (ISNKPVN)": PerceptronVonNeumann(epsilon=1e-9, **params),
}
for overlap, (X, y, style) in overlaps.items():
    for (name, clf), color in zip(methods.items(), COLORS, strict=True):
        history = clf.fit(X, y).history_
        label = f"{name}, {overlap} overlap"
        right.loglog(
            history["n_iter"], history["margin_bound"], style, color=color, label=label
        )
        print(f"{label}: {clf.certificate_}")
right.set(xlabel="iterations", ylim=(1e-14, 1))
right.set_ylabel(r"least $\|A^\top q\|$ so far (examples of norm 1)")
right.set_title("not separable: irises (little overlap), noise (much)")
right.legend(loc="lower left")
save(fig, __file__)
