"""
Quickstart: a search, a certificate, a picture
==============================================

A pipeline scales scikit-learn's wines (three classes, 178 x 13) and fits the momentum method of Ji,
Srebro and Telgarsky (2021). A grid search compares schedules of its step and momentum; the refit is
certified. Then the exact solver chooses C. The picture, ``margin_path.png``, has the bounds on the
best margin, with momentum and without, and the scores of all values of C.
"""

import pickle

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from marginsvm import (
    CostCurveDisplay,
    MarginPathDisplay,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MomentumMarginClassifier,
    PowerSchedule,
    check_certificate,
)

X, y = load_wine(return_X_y=True)

# %%
# A search needs no certificate: 500 iterations are enough to compare schedules.
clf = MomentumMarginClassifier(C=0.01, step=PowerSchedule(), max_iter=500)
model = Pipeline([("scale", StandardScaler()), ("clf", clf)])
grid = {"clf__step__power": [0.0, 0.25], "clf__momentum": ["nesterov", 0.99]}
search = GridSearchCV(model, grid, cv=3, refit=False).fit(X, y)
print(f"chosen: {search.best_params_}, accuracy {search.best_score_:.3f}")

# %%
# The refit has one. (``separable: None``: a soft-margin fit does not ask whether the classes are
# separable; ``check_separability`` does.)
model.set_params(**search.best_params_, clf__max_iter=10_000).fit(X, y)
print(model[-1].certificate_)

# %%
# The check recomputes both bounds from data, predictor and weights; a pickle keeps them.
Z = model[:-1].transform(X)
restored = pickle.loads(pickle.dumps(model))
print("checked:", check_certificate(restored[-1], Z, y).valid)

# %%
# The exact solver stops at a gap of 1e-6 by default; here it chooses C by cross-validation.
exact = MaxMarginClassifier(C=0.01).fit(Z, y)
print(exact.certificate_)
chosen = Pipeline([("scale", StandardScaler()), ("clf", MaxMarginClassifierCV())]).fit(
    X, y
)[-1]
print(f"chosen C: {chosen.C_:.3g}, accuracy {chosen.best_score_:.3f}")

# %%
# Left, the margin of the best predictor so far (solid) and the upper bound (dashed) after each
# iteration; without momentum, twenty times as many iterations are needed. Right, the
# accuracy of each C on held-out examples.
fig, (bounds, scores) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
plain = MomentumMarginClassifier(C=0.01, momentum=None).fit(Z, y)
for name, fit in {"momentum": model[-1], "no momentum": plain}.items():
    MarginPathDisplay.from_estimator(fit, x="n_iter", ax=bounds, name=name)
bounds.axhline(exact.margin_, color="0.4", lw=0.8, ls=":")
bounds.annotate("best margin", (1, exact.margin_), (0, 3), textcoords="offset points")
bounds.set(
    ylim=(0, 2.2 * exact.margin_), title="Wine, C = 0.01: bounds on the best margin"
)
bounds.legend(loc="upper right", title="margin (line) and bound (dashed)")
CostCurveDisplay.from_estimator(chosen, ax=scores)
scores.set_title("Wine: accuracy in cross-validation")
fig.savefig("margin_path.png", dpi=120)
print("written: margin_path.png")
