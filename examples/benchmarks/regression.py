"""Support vector regression beside SVR, NuSVR and LinearSVR: objectives and CPU times.

    MARGINSVM_DATA=... python examples/benchmarks/regression.py [SET ...]

BLAS is to have one thread. Features and targets are standardised; C = 1, epsilon = 0.1 and
nu = 0.5. An objective is given by its relative distance from the certified lower bound of ours.
LinearSVR penalises an intercept: it is compared without one. With kernels, the first 2,000 examples
are used.
"""

import sys
import time
import warnings

import numpy as np
from _sets import load
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVR, NuSVR

from marginsvm import MaxMarginRegressor, check_certificate

LOSSES = {"epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}
EPSILON, NU = 0.1, 0.5
POLY = {"degree": 2, "coef0": 1.0}
WITH_KERNELS = 2000  # examples at most
TURNS = 3  # fits of each, of which the median counts


def data_sets():
    """Diabetes; generated with the shape of California's houses; others with a feature as y."""
    yield "diabetes", *load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 8))
    noise = 0.5 * np.abs(rng.standard_normal(5000)) ** 1.5
    yield "generated", X, 2.0 + 0.3 * (X @ rng.standard_normal(8)) + noise
    others = {
        fetch.__name__[5:]: fetch
        for fetch in (load_breast_cancer, load_wine, load_iris)
    }
    others["digits"] = load_digits
    for name, fetch in others.items():
        yield name, *of_features(fetch(return_X_y=True)[0])
    for name in ("svmguide1", "german_numer_scale"):
        yield name, *of_features(load(name)[0])


def of_features(X):
    """The first feature that is not constant as the target of the others."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    X = X[:, X.std(axis=0) > 0]
    return X[:, 1:], X[:, 0]


def fitted(models, X, y):
    """The fitted models, and their CPU times in milliseconds, in turns."""
    times = np.empty((TURNS, len(models)))
    for turn in times:
        for i, model in enumerate(models):
            models[i] = clone(model)
            begun = time.process_time()
            models[i].fit(X, y)
            turn[i] = 1e3 * (time.process_time() - begun)
    return models, np.median(times, axis=0)


def objective(model, X, y, power=1, nu=None):
    """P of a predictor, from its coefficients and predictions."""
    if model.get_params().get("kernel", "linear") == "linear":
        square = float(np.sum(np.square(model.coef_)))
    else:
        c, params = model.dual_coef_.ravel(), {"gamma": model._gamma, **POLY}
        vectors = model.support_vectors_
        K = pairwise_kernels(vectors, metric=model.kernel, filter_params=True, **params)
        square = float(c @ K @ c)
    distances = np.sort(np.abs(model.predict(X) - y))[::-1]
    if nu is None:
        return 0.5 * square + float(
            np.sum(np.maximum(distances - EPSILON, 0.0) ** power)
        )
    whole = int(nu * len(y))
    rest = (nu * len(y) - whole) * distances[min(whole, len(y) - 1)]
    return 0.5 * square + float(distances[:whole].sum() + rest)


def beside(ours, theirs, X, y, tight=None, **of):
    """A line: ours, and each of theirs; ``tight`` is fitted once, for its objective."""
    models, ms = fitted([MaxMarginRegressor(**ours), *theirs], X, y)
    best = models[0]
    holds = "certified" if check_certificate(best, X, y) else "FALSE"
    above = [
        objective(model, X, y, **of) / best.objective_bound_ - 1.0 for model in models
    ]
    line = [f"ours {ms[0]:.0f} ms ({above[0]:.0e}, {best.status_}, {holds})"]
    for model, time_of, gap in zip(models[1:], ms[1:], above[1:], strict=True):
        line.append(
            f"{type(model).__name__} {time_of:.0f} ms ({gap:.0e}), x{ms[0] / time_of:.2f}"
        )
    if tight is not None:
        gap = objective(tight.fit(X, y), X, y, **of) / best.objective_bound_ - 1.0
        ended = "at its limit of iterations" if tight.fit_status_ else "at tol=1e-10"
        line.append(f"{type(tight).__name__} {ended} {gap:.0e}")
    return "; ".join(line)


def main():
    warnings.simplefilter("ignore")
    for name, X, y in data_sets():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
        print(name, X.shape)
        for kernel, params in {"linear": {}, "rbf": {}, "poly": POLY}.items():
            Z, t = (
                (X, y) if kernel == "linear" else (X[:WITH_KERNELS], y[:WITH_KERNELS])
            )
            params, limits = (
                {"kernel": kernel, **params},
                {"tol": 1e-10, "max_iter": 1_000_000},
            )
            for loss, power in LOSSES.items():
                ours, svr = {**params, "loss": loss, "epsilon": EPSILON}, SVR(**params)
                theirs, tight = (
                    ([svr], SVR(**params, **limits)) if power == 1 else ([], None)
                )
                said = beside(ours, theirs, Z, t, tight, power=power)
                print(f"  {kernel}, {loss[:7]}: {said}", flush=True)
            ours, theirs = {**params, "nu": NU}, [NuSVR(**params, nu=NU)]
            tight = NuSVR(**params, nu=NU, **limits)
            print(
                f"  {kernel}, nu: {beside(ours, theirs, Z, t, tight, nu=NU)}",
                flush=True,
            )
        for loss, power in LOSSES.items():
            ours = {"loss": loss, "epsilon": EPSILON, "fit_intercept": False}
            theirs = LinearSVR(**ours, dual=True, tol=1e-10, max_iter=20_000)
            said = beside(ours, [theirs], X, y, power=power)
            print(f"  no intercept, {loss[:7]}: {said}", flush=True)


if __name__ == "__main__":
    main()
