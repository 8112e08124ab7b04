"""
Tutorial: handwritten digits with a kernel
==========================================

A linear classifier recognises about 97 % of scikit-learn's digits. An RBF kernel does better, with
two parameters: ``gamma`` of the kernel, and C. This page chooses both, looks at the support
vectors, and checks the certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from marginsvm import MaxMarginClassifier, MaxMarginClassifierCV, check_certificate

X, y = load_digits(return_X_y=True)
X = X / 16.0  # pixels from 0 to 1, all in the same units: no scaling is needed
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# Choose gamma and C
# ------------------
# ``MaxMarginClassifierCV`` chooses both: it computes the kernel matrix once for each gamma.
search = MaxMarginClassifierCV(
    kernel="rbf",
    gammas=[0.01, 0.05, 0.2],
    Cs=[0.1, 1.0, 10.0, 100.0, 1000.0],
    cv=3,
    refit=False,
).fit(X_train, y_train)
for gamma, scores in zip(search.gammas_, search.scores_.mean(axis=0), strict=True):
    print(f"gamma {gamma}: best accuracy {scores.max():.4f}")
gamma = search.gamma_
print(f"chosen: gamma {gamma}, C {search.C_:g}")

# %%
# The model
# ---------
# Its attributes are those of ``SVC``: support vectors are the training examples with a nonzero
# coefficient in ``dual_coef_``.
clf = MaxMarginClassifier(kernel="rbf", gamma=gamma, C=search.C_).fit(X_train, y_train)
print(clf.certificate_)
print(f"{len(clf.support_)} of {len(X_train)} digits are support vectors")
print(f"test accuracy:     {clf.score(X_test, y_test):.4f}")
peer = SVC(gamma=gamma, C=search.C_).fit(X_train, y_train)
print(f"SVC, same gamma, C: {peer.score(X_test, y_test):.4f}")

# %%
# SVC solves a problem for each of the 45 pairs of digits, this estimator one for all ten. On these
# digits both are equally accurate.
#
# The certificate
# ---------------
# It can be checked in floating point or, for a kernel matrix, in rational arithmetic (here for 40
# examples, which takes a second):
print("confirmed:", check_certificate(clf, X_train, y_train).valid)
K, few = pairwise.rbf_kernel(X_train[:40], gamma=gamma), y_train[:40]
small = MaxMarginClassifier(kernel="precomputed").fit(K, few)
print("confirmed exactly:", check_certificate(small, K, few, exact=True).valid)

# %%
# Its mistakes
# ------------
# ``decision_function`` has a column for each class. If the two largest values are close, the
# prediction is uncertain.
scores = clf.decision_function(X_test)
wrong = np.flatnonzero(clf.predict(X_test) != y_test)
two = np.sort(scores, axis=1)[:, -2:]
lead = two[:, 1] - two[:, 0]
print(
    f"median lead of the winner: {np.median(lead):.2f}; where wrong: {np.median(lead[wrong]):.2f}"
)
fig, axes = plt.subplots(1, max(len(wrong), 2), figsize=(9, 2), layout="constrained")
for ax in axes:
    ax.axis("off")
for ax, i in zip(axes, wrong, strict=False):
    ax.imshow(X_test[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y_test[i]}, not {clf.predict(X_test[[i]])[0]}", fontsize=9)
fig.suptitle("Digits: all mistakes on the test set")
fig.savefig("mistakes.png", dpi=110)
