"""
Dual lp perceptrons (Raj and Bach, figures 1 and 2)
===================================================

Mistakes on 1000 training and 1000 test examples in 2000 dimensions, against epochs of
1000 steps that move one row each: accelerated and plain dual coordinate ascent
(Algorithms 2 and 1, with uniform draws), primal mirror descent (eq. 10) and the lp
perceptron. Above, p = 2; below, p = 1 + 1 / ln(2000) and a sparse truth. Each point is the model
that a fit of that many epochs gives, without intercept. What differs from the paper's figures:
``docs/statements.rst``.

Drawn: ``docs/images/lp_perceptron.png``.
"""

import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from _figure import save
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from marginsvm import DualLpPerceptron, LpPerceptron, PrimalMirrorDescent

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from _sets import raj_bach

PAPER = {"sampling": "uniform", "restart": False, "shrinking": False}
METHODS = {
    "accelerated (Algorithm 2)": DualLpPerceptron(**PAPER),
    "plain (Algorithm 1)": DualLpPerceptron(accelerated=False, **PAPER),
    "primal mirror descent": PrimalMirrorDescent(),
    "lp perceptron": LpPerceptron(),
}
LOOKS = {  # colours of Okabe and Ito, and lines that differ without them
    "accelerated (Algorithm 2)": ("#0072B2", "o-"),
    "plain (Algorithm 1)": ("#D55E00", "s--"),
    "primal mirror descent": ("#009E73", "^-."),
    "lp perceptron": ("#CC79A7", "D:"),
}
# fixed numbers of epochs, on purpose
warnings.simplefilter("ignore", ConvergenceWarning)


def mistakes(method, data, epochs):
    """Training and test mistakes after each of the epochs; a warm start plays one more."""
    X, y, X_test, y_test = data
    method.set_params(fit_intercept=False, tol=0.0, warm_start=True, random_state=0)
    counts = []
    for epoch in epochs:
        method.set_params(max_iter=int(epoch)).fit(X, y)
        counts.append(
            [np.sum(method.predict(X) != y), np.sum(method.predict(X_test) != y_test)]
        )
    return np.array(counts).T


# %%
# A logarithmic axis has no zero: no mistake is drawn at a half.
found = {}
fig, axes = plt.subplots(2, 2, figsize=(11, 5.8), sharex="row", layout="constrained")
for row, (p, last) in zip(axes, [(2.0, 60), ("sparse", 150)], strict=True):
    data = raj_bach(0, sparse=p == "sparse")
    epochs = np.unique(np.geomspace(1, last, 30).astype(int))
    for label, method in METHODS.items():
        counts = mistakes(clone(method).set_params(p=p), data, epochs)
        found[p, label], (train, test) = (epochs, *counts), counts
        color, line = LOOKS[label]
        row[0].semilogy(
            epochs, np.maximum(train, 0.5), line, color=color, label=label, ms=3
        )
        row[1].semilogy(epochs, test, line, color=color, label=label, ms=3)
        print(
            f"p = {p}, {label}: {train[-1]} mistakes in training, {test[-1]} in the test",
            flush=True,
        )
    for ax, which in zip(row, ("training", "test"), strict=True):
        ax.set(xlabel="epochs (1000 steps)", ylabel=f"{which} mistakes (of 1000)")
        ax.set_title(f"p = {p}" if p == 2.0 else "p = 1 + 1 / ln(2000), sparse truth")
        ax.yaxis.set_minor_formatter("")
    row[0].set_yticks([0.5, 1, 10, 100], ["0", "1", "10", "100"])
    ticks = [100, 150, 200, 250] if p == 2.0 else [20, 50, 100, 200]
    row[1].set_yticks(ticks, ticks)
handles, labels = axes[0, 0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=4)
fig.suptitle(
    "Gaussian data of Raj and Bach, section 4: 1000 examples to learn from, 2000 features"
)
save(fig, __file__)
