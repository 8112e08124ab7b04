"""The data of Raj and Bach (2020), section 4."""

import numpy as np


def raj_bach(seed, *, sparse, n=1000, d=2000):
    """Return X_train, y_train, X_test, y_test.

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
