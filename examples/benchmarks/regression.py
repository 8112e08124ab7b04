"""Support vector regression beside SVR and LinearSVR at tol=1e-10: objectives and CPU times.

Run ``python examples/benchmarks/regression.py``, with BLAS on one thread. Features and targets are
standardised; C = 1 and epsilon = 0.1. An objective is given by its relative distance from the
certified lower bound of ours. LinearSVR penalises an intercept: it is compared without one.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVR

from marginsvm import MaxMarginRegressor, check_certificate

LOSSES = {"epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}
EPSILON = 0.1


def data_sets():
    """Diabetes; generated with the shape of California's houses; others with a feature as y."""
    yield "diabetes", *load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 8))
    noise = 0.5 * np.abs(rng.standard_normal(5000)) ** 1.5
    yield "generated", X, 2.0 + 0.3 * (X @ rng.standard_normal(8)) + noise
    for load in (load_breast_cancer, load_wine, load_iris, load_digits):
        X = load(return_X_y=True)[0]
        X = X[:, X.std(axis=0) > 0]
        yield load.__name__[5:], X[:, 1:], X[:, 0]


def timed(model, X, y):
    """The fitted model, and its CPU time in milliseconds."""
    begun = time.process_time()
    model.fit(X, y)
    return model, 1e3 * (time.process_time() - begun)


def above(model, X, y, power, bound):
    """By how much its objective is above a bound, relative to that."""
    w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    xi = np.maximum(np.abs(X @ w + b - y) - EPSILON, 0.0)
    return (0.5 * w @ w + np.sum(xi**power)) / bound - 1.0


def main():
    warnings.simplefilter("ignore")
    for name, X, y in data_sets():
        X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
        for loss, power in LOSSES.items():
            params = {"loss": loss, "epsilon": EPSILON}
            ours, ms = timed(MaxMarginRegressor(**params), X, y)
            holds = "certified" if check_certificate(ours, X, y) else "false"
            line = [f"{above(ours, X, y, power, ours.objective_bound_):.0e} {ms:.0f} ms {holds}"]
            if power == 1:
                svr, ms = timed(SVR(kernel="linear", tol=1e-10, max_iter=3_000_000), X, y)
                line.append(f"SVR {above(svr, X, y, 1, ours.objective_bound_):.0e} {ms:.0f} ms")
            params["fit_intercept"] = False
            ours, ms = timed(MaxMarginRegressor(**params), X, y)
            linear = LinearSVR(**params, tol=1e-10, max_iter=20_000, dual=True)
            linear, theirs = timed(linear, X, y)
            gap = above(linear, X, y, power, ours.objective_bound_)
            line.append(f"without intercept {ms:.0f} ms, LinearSVR {gap:.0e} {theirs:.0f} ms")
            print(f"{name} {X.shape} {loss}: {'; '.join(line)}", flush=True)


if __name__ == "__main__":
    main()
