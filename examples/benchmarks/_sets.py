"""Generated data sets of the benchmarks, each from a seed, and the published ones by name."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler, normalize

DATA = Path(os.environ.get("MARGINSVM_DATA", "."))


def load(name, part=""):
    """Training part of a published set, or its test part if ``part`` is "test"; y as published."""
    z = np.load(DATA / f"{name}.npz")
    if "indptr" in z:
        before = f"{part}_" if part else ""
        arrays = (z[before + key] for key in ("data", "indices", "indptr"))
        X, y = (
            sp.csr_matrix(tuple(arrays), shape=tuple(z[before + "shape"])),
            z[before + "y"],
        )
    elif "X" in z:
        X, y = z["X"], z["y"]
    else:
        X, y = z[f"X_{part or 'train'}"], z[f"y_{part or 'train'}"]
    return X.astype(float), y


def standardised(X):
    """Columns of unit variance, and of mean zero unless that would fill a sparse matrix."""
    return StandardScaler(with_mean=not sp.issparse(X)).fit_transform(X)


def text_like(n_rows, n_features, seed, density=0.0025):
    """Unit rows of a sparse matrix in two classes that overlap a little.

    A tenth of the features have a normal weight. A row is in class 1 if its score is above the
    median, where noise of a tenth of the scores' standard deviation was added to all scores.
    """
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_rows, n_features), density=density, format="csr", rng=rng)
    X.data = np.log(2.0 + rng.poisson(1.0, X.nnz))
    X = normalize(X)
    weights = rng.standard_normal(n_features) * (rng.random(n_features) < 0.1)
    scores = X @ weights
    scores += 0.1 * scores.std() * rng.standard_normal(n_rows)
    return X, (scores > np.median(scores)).astype(int)


def topics(n_rows, n_features, n_classes, seed, words=175, shared=40):
    """Unit rows of logarithmic word counts in many classes whose topics overlap.

    Words are as frequent as 1 / (10 + rank). A topic has 300 words, rarer ones than those of the
    language. A row takes 75 words of a hundred from the language, 18 from three of the
    ``shared`` topics, the same three for all rows of a class, and 7 from its class's own topic.
    Rows have ``words`` words on average, most of them distinct.
    """
    rng = np.random.default_rng(seed)
    language = 1.0 / (10.0 + np.arange(n_features))
    language /= language.sum()

    def topic():
        flat = np.sqrt(language)
        frequent = rng.choice(n_features, 300, replace=False, p=flat / flat.sum())
        p = np.zeros(n_features)
        p[frequent] = flat[frequent]
        return p / p.sum()

    common = [topic() for _ in range(shared)]
    y = rng.permutation(np.arange(n_rows) % n_classes)
    rows, columns = [], []
    for label in range(n_classes):
        mixed = sum(common[t] for t in rng.choice(shared, 3, replace=False))
        cumulative = np.cumsum(0.75 * language + 0.06 * mixed + 0.07 * topic())
        for row in np.flatnonzero(y == label):
            count = rng.poisson(words * rng.uniform(0.5, 1.5))
            drawn = np.searchsorted(
                cumulative, cumulative[-1] * rng.random(max(1, count))
            )
            rows.append(np.full(len(drawn), row))
            columns.append(drawn)
    at = (
        np.concatenate(rows).astype(np.int32),
        np.concatenate(columns).astype(np.int32),
    )
    X = sp.coo_array((np.ones(len(at[0])), at), shape=(n_rows, n_features)).tocsr()
    X.data = np.log1p(X.data)
    return normalize(X), y


def gauss(n_rows, n_features, seed, apart=1.0):
    """Two Gaussian clouds whose means are ``apart`` standard deviations from each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    direction = rng.standard_normal(n_features)
    direction *= apart / np.linalg.norm(direction)
    return rng.standard_normal((n_rows, n_features)) + np.outer(y - 0.5, direction), y


def spambase_like(n_rows=4600, seed=0):
    """57 features in very different units, as a table of mail has: two classes that overlap.

    48 frequencies of words and 6 of characters in percent, most of them zero and the others
    log-normal; then three lengths of runs of capitals, of which the mean is a few, the longest
    up to 10,000 and the sum up to 15,000. In four of ten rows (class 1), some words are more
    frequent, others rarer, and runs are longer.
    """
    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < 0.4).astype(int)
    present = rng.uniform(0.04, 0.4, 54)  # how often a word is in a mail of class 0
    odds = np.exp(np.outer(y, rng.normal(0.0, 1.2, 54)))
    there = rng.random((n_rows, 54)) < present * odds / (1.0 + present * (odds - 1.0))
    words = there * np.exp(rng.normal(rng.normal(-0.8, 0.5, 54), 0.9, (n_rows, 54)))
    words[:, 48:] *= 0.2
    mean = 1.0 + np.exp(rng.normal(0.5 + 0.5 * y, 0.8))
    longest = np.clip(
        np.round(mean * np.exp(rng.normal(1.5 + 0.7 * y, 1.0))), 1, 10_000
    )
    total = np.clip(
        np.round(longest * (1.0 + np.exp(rng.normal(1.0, 1.2, n_rows)))), 1, 15_000
    )
    return np.column_stack([words, mean, longest, total]), y


def raj_bach(seed, *, sparse, n=1000, d=2000):
    """Data of Raj and Bach (2020), section 4: X_train, y_train, X_test, y_test.

    The paper says that pairs with x.theta + b <= 0.1 are removed, which would leave a
    single class; those with |x.theta + b| <= 0.1 are meant.
    """
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(d)
    if sparse:
        theta[rng.permutation(d)[50:]] = 0.0
    deviation = np.arange(1, d + 1) ** (-0.5 if sparse else -0.75)
    X = rng.standard_normal((5 * n, d)) * deviation
    score = X @ theta + 0.005
    kept = np.flatnonzero(np.abs(score) > 0.1)[: 2 * n]
    X, y = X[kept], np.sign(score[kept])
    return X[:n], y[:n], X[n:], y[n:]
