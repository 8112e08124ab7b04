"""
Quickstart: digits, and a proof
===============================

A pipeline scales scikit-learn's digits and fits a linear classifier. Its soft margin has the
cost C that scores best in five-fold cross-validation. The fit reports how close it is to the best
possible margin for this C. The picture ``margin_path.png`` shows the scores of all values of C,
and how the certified bounds on the margin meet.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    CostCurveDisplay,
    MarginPathDisplay,
    MaxMarginClassifierCV,
    check_certificate,
)

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

pipeline = make_pipeline(StandardScaler(), MaxMarginClassifierCV())
pipeline.fit(X_train, y_train)

clf = pipeline[-1]
print(f"chosen C:                  {clf.C_:.3g}")
print(f"cross-validation accuracy: {clf.best_score_:.3f}")
print(f"test accuracy:             {pipeline.score(X_test, y_test):.3f}")

# %%
# The certificate says that no linear classifier has a larger soft margin, for this C, than the
# second number. (``separable: None``: with a soft margin, the fit does not ask whether the classes
# can be separated; ``check_separability`` does.)
print(clf.certificate_)

# %%
# Nobody has to trust the fit for that. Both bounds are computed again, by other code, from the
# data, the predictor and the weights on the examples:
check = check_certificate(clf, pipeline[:-1].transform(X_train), y_train)
print("confirmed by other code:  ", check.valid)

# %%
# Left, the accuracy of each C on held-out examples. Right, the bounds after each round of the
# last fit: the margin of the best predictor so far, and a number that no predictor exceeds.
fig, (scores, bounds) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
CostCurveDisplay.from_estimator(clf, ax=scores)
scores.set_title("Digits: accuracy in cross-validation")
MarginPathDisplay.from_estimator(clf, x="n_iter", ax=bounds)
bounds.set(xscale="linear", ylim=(0, None), title="Digits: bounds on the best margin, chosen C")
fig.savefig("margin_path.png", dpi=120)
print("written: margin_path.png")
