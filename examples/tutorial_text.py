"""
Tutorial: classify texts
========================

Which module of scikit-learn is a paragraph of its documentation about: ``linear_model`` or
``metrics``? This page goes from raw text, which comes with scikit-learn, to a certified classifier,
and shows the words that decide. The end fits the 20 newsgroups, if the folder ``MARGINSVM_DATA``
has them.
"""

import os
import re
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.metrics
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    check_certificate,
    check_separability,
)

MODULES = [sklearn.linear_model, sklearn.metrics]


def paragraphs(module):
    """Paragraphs of 15 or more words in the docstrings of a module, each once."""
    docs = "\n\n".join(getattr(module, name).__doc__ or "" for name in module.__all__)
    words = [
        re.findall(r"[a-z]{3,}", part.lower()) for part in re.split(r"\n\s*\n", docs)
    ]
    return sorted({" ".join(part) for part in words if len(part) >= 15})


texts = [paragraphs(module) for module in MODULES]
X = np.concatenate(texts)
y = np.repeat(["linear_model", "metrics"], [len(part) for part in texts])
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
print(len(X_train), "paragraphs to learn from,", len(X_test), "to test on")

# %%
# From text to a classifier
# -------------------------
# ``TfidfVectorizer`` gives a sparse matrix with rows of norm 1, which stays sparse.
# ``MaxMarginClassifierCV`` chooses C.
pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), MaxMarginClassifierCV())
pipeline.fit(X_train, y_train)
clf = pipeline[-1]
rows = pipeline[:-1].transform(X_train)
print(f"{rows.shape[1]} words, {rows.nnz / rows.shape[0]:.0f} of them in a paragraph")
print(f"chosen C: {clf.C_:.3g}")
print(f"accuracy: {pipeline.score(X_test, y_test):.3f}")

# %%
# LinearSVC solves nearly the same problem, and is as accurate:
peer = make_pipeline(TfidfVectorizer(sublinear_tf=True), LinearSVC(C=clf.C_))
print(f"LinearSVC: {peer.fit(X_train, y_train).score(X_test, y_test):.3f}")

# %%
# But it does not state its distance from the optimum. This estimator does, and it can be checked:
print(clf.certificate_)
print("confirmed:", check_certificate(clf, rows, y_train).valid)

# %%
# Which words decide
# ------------------
# ``coef_`` has a number for each word; positive ones indicate ``metrics``.
words = pipeline[0].get_feature_names_out()
order = np.argsort(clf.coef_[0])
most = np.r_[order[:12], order[-12:]]
fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
colors = np.where(clf.coef_[0, most] > 0, "#0072B2", "#D55E00")
ax.barh(words[most], clf.coef_[0, most], color=colors)
ax.set(xlabel="coefficient (linear_model < 0 < metrics)")
ax.set_title("scikit-learn's documentation: the words that decide")
fig.savefig("words.png", dpi=110)

# %%
# Can the texts be separated?
# ---------------------------
# There are more words than paragraphs, so a classifier without training errors usually exists. That
# says nothing about new texts.
report = check_separability(rows, y_train)
print("separable:", report.separable)
hard = MaxMarginClassifier().fit(rows, y_train)
print(f"hard margin: {hard.margin_:.4f} on rows of norm 1, gap {hard.gap_:.0e}")
print(f"its accuracy: {hard.score(pipeline[:-1].transform(X_test), y_test):.3f}")

# %%
# Twenty newsgroups
# -----------------
# 15,935 messages, 62,061 words, 20 classes: one joint problem. LinearSVC solves 20, one per class.
path = Path(os.environ.get("MARGINSVM_DATA", "")) / "news20.npz"
if path.is_file():
    z = np.load(path)
    counts = sp.csr_matrix(
        (z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])
    )
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts.astype(float))
    X_train, X_test, y_train, y_test = train_test_split(
        X, z["y"], stratify=z["y"], random_state=0
    )
    for clf in (MaxMarginClassifier(C=1.0), LinearSVC()):
        start = perf_counter()
        accuracy = clf.fit(X_train, y_train).score(X_test, y_test)
        print(f"{clf}: accuracy {accuracy:.3f} in {perf_counter() - start:.1f} s")
else:
    print("no 20 newsgroups here (MARGINSVM_DATA is unset)")
