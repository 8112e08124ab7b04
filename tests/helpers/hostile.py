"""Small problems in hostile units, and all that may be said of them."""

import re
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from helpers.estimators import make
from helpers.rational import is_separable
from marginsvm import check_certificate

UNITS = ["one", "one", "power", "identifier", "timestamp", "offset"]


def hostile_problem(seed):
    """Integers, floats or dummies, each column in units of its own, labels more or less random."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(3, 13), rng.integers(1, 5), rng.choice([2, 2, 2, 3])
    kind = rng.choice(["integers", "floats", "dummies"])
    X = (
        rng.standard_normal((n, d))
        if kind == "floats"
        else rng.integers(-3, 4, (n, d)) * 1.0
    )
    if kind == "dummies":
        X[:, 0] = rng.integers(0, 2, n)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X += rng.choice([0.0, 1.0, 4.0]) * np.eye(k, d)[y]
    for j in range(d):
        X[:, j] = in_units(rng, X[:, j])
    return X, y, bool(rng.integers(0, 2))


def random_examples(rng, sizes, widths):
    """Examples that may be equal, of rank 1, integers or mostly zeros; and their kind."""
    n, d = int(rng.choice(sizes)), int(rng.choice(widths))
    X = rng.standard_normal((n, d))
    kind = rng.choice(["normal", "duplicates", "integers", "of rank 1", "sparse"])
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "integers":
        X = rng.integers(-3, 4, (n, d)).astype(float)
    elif kind == "of rank 1":
        X = np.outer(X[:, 0], rng.standard_normal(d))
    elif kind == "sparse":
        X[rng.random((n, d)) < 0.7] = 0.0
    return X, kind


def in_units(rng, x):
    unit = rng.choice(UNITS)
    if unit == "power":
        return x * 2.0 ** rng.integers(-40, 41)
    if unit == "identifier":
        return rng.integers(0, 10**12, len(x)).astype(float)
    if unit == "timestamp":
        return 1.7e18 + rng.integers(0, 10 ** rng.integers(3, 17), len(x))
    if unit == "offset":
        return x + 10.0 ** rng.integers(3, 16)
    return x


def truthful(cls, X, y, fit_intercept, there=np.asarray, **params):
    """Fit, and hold what is said in fields and texts against rationals; give both answers."""
    truth = is_separable(X, y, fit_intercept=fit_intercept)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        clf = make(cls, fit_intercept=fit_intercept, **params).fit(there(X), y)
    claim, text = clf.certificate_, " ".join(str(warning.message) for warning in caught)
    assert clf.separable_ in (truth, None), f"separable_ is {clf.separable_}"
    assert truth or clf.status_ not in ("certified", "separated"), clf.status_
    assert not (truth and "no predictor separates" in text), text
    assert not ("not known" in text and clf.separable_ is not None), text
    for stated in re.findall(
        r"(?:above|best margin <=) ([0-9.e+-]+[0-9])", f"{text} {claim}"
    ):
        assert float(stated) >= claim.margin_bound, f"{stated} < {claim.margin_bound}"
    for stated in re.findall(r"([0-9.e+-]+) <= best margin", f"{text} {claim}"):
        assert float(stated) <= claim.margin, f"{stated} > {claim.margin}"
    check = check_certificate(clf, X, y, exact=True)
    assert check, check.reason
    return truth, clf
