"""
Are these classes separable? Logistic regression cannot say
===========================================================

Where the classes are separable, the coefficients of a logistic regression grow without end
as its penalty vanishes (statsmodels calls it perfect separation); where they are not, they
settle. Nothing in the fit says which of the two is the case, and a solver that gives up hides it.
``check_separability`` says it, with a proof: a separator, or weights at which the classes meet.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from marginsvm import check_separability

X, y = load_iris(return_X_y=True)
PAIRS = {"setosa and versicolor": X[:100], "versicolor and virginica": X[50:]}
labels = np.repeat([0, 1], 50)
penalties = np.geomspace(1.0, 1e-7, 15)

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for name, examples in PAIRS.items():
    answer = check_separability(examples, labels)
    print(f"{name}: {answer}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the point of this example
        norms = [
            np.linalg.norm(
                LogisticRegression(C=1 / penalty, max_iter=100_000, tol=1e-8)
                .fit(examples, labels)
                .coef_
            )
            for penalty in penalties
        ]
    says = "separable" if answer.separable else "not separable"
    left.loglog(penalties, norms, "o-", label=f"{name}: {says}")
left.invert_xaxis()
left.set(xlabel="penalty 1/C", ylabel="norm of the coefficients", title="LogisticRegression")
left.legend()

# The proof that versicolor and virginica overlap: weighted means of the two classes that are
# the same point.
q = answer.weights.toarray().ravel()
petals = X[50:, 2:]
for c, color in ((0, "C0"), (1, "C1")):
    own = labels == c
    right.scatter(*petals[own].T, s=12, color=color, alpha=0.4)
    used = own & (q > 1e-9)
    right.scatter(*petals[used].T, s=2000 * q[used], facecolors="none", edgecolors=color)
    mean = 2 * q[own] @ petals[own]
    right.plot(*mean, marker="x+"[c], ms=14, mew=2, color=color, ls="none")
right.set(
    xlabel="petal length (cm)",
    ylabel="petal width (cm)",
    title="circles: weights of the proof; crosses: their means",
)
if __name__ == "__main__":
    fig.savefig(sys.argv[1] if len(sys.argv) > 1 else "separability.png", dpi=110)
