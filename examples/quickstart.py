"""
Quickstart: a certified maximum-margin classifier on scikit-learn's digits
===========================================================================

A pipeline is fitted and scored; the fit says how far from the best possible margin it
is, and the path of its two bounds is drawn to ``margin_path.png``.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from marginsvm import MarginPathDisplay, MomentumMarginClassifier, check_certificate

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

pipeline = make_pipeline(MaxAbsScaler(), MomentumMarginClassifier(max_iter=4000))
with warnings.catch_warnings():  # 4000 rounds end at a gap of about 0.3 %: fine for a look
    warnings.simplefilter("ignore", ConvergenceWarning)
    pipeline.fit(X_train, y_train)

clf = pipeline[-1]
print(f"test accuracy: {pipeline.score(X_test, y_test):.3f}")
print(clf.certificate_)

# %%
# The certificate can be checked without trusting the fit: both bounds are computed again
# from the data, the predictor and the weights.
print(check_certificate(clf, pipeline[:-1].transform(X_train), y_train))

# %%
# The bounds close in on the best possible margin from both sides.
fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
MarginPathDisplay.from_estimator(clf, ax=ax)
ax.set_title("Ten digits: certified bounds on the best margin")
fig.savefig("margin_path.png", dpi=120)
print("margin_path.png: the path of both bounds")
