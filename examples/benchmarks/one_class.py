"""One class beside OneClassSVM at tol=1e-10: margins and CPU times.

Run ``python examples/benchmarks/one_class.py``, with BLAS on one thread. Features are standardised;
with ``kernel="linear"``, they begin at 1 instead, as centred data has no margin. Of OneClassSVM, by
how much the norm of its predictor differs from our certified upper bound: both are least.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from marginsvm import MaxMarginOutlierDetector, check_certificate

KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "linear"},
]
REPEATS = 5  # in turns; the medians are printed


def data_sets():
    """Sets of scikit-learn; clouds of other sizes."""
    for load in (load_iris, load_wine, load_diabetes, load_breast_cancer, load_digits):
        X = load(return_X_y=True)[0]
        yield load.__name__[5:], X[:, X.std(axis=0) > 0]
    rng = np.random.default_rng(0)
    yield (
        "heavy tails",
        rng.standard_normal((5000, 8)) * np.abs(rng.standard_normal((5000, 1))),
    )
    yield "wide", rng.standard_normal((300, 2000))
    yield "cloud", rng.standard_normal((10_000, 10))


def timed(model, X):
    """The fitted model, and its CPU time in milliseconds."""
    begun = time.process_time()
    model.fit(X)
    return model, 1e3 * (time.process_time() - begun)


def main():
    warnings.simplefilter("ignore")
    # compile the loops
    MaxMarginOutlierDetector().fit(np.random.default_rng(0).standard_normal((600, 2)))
    for name, X in data_sets():
        Z = StandardScaler().fit_transform(X)
        for params in KERNELS:
            linear = params["kernel"] == "linear"
            A = Z - Z.min(axis=0) + 1.0 if linear else Z
            for nu in (0.05, 0.5):
                of_ours, of_theirs = [], []
                for _ in range(REPEATS):
                    ours, ms = timed(MaxMarginOutlierDetector(nu=nu, **params), A)
                    of_ours.append(ms)
                    theirs, ms = timed(OneClassSVM(nu=nu, tol=1e-10, **params), A)
                    of_theirs.append(ms)
                square = np.sum(
                    theirs.dual_coef_[0] * theirs.score_samples(A[theirs.support_])
                )
                above = np.sqrt(square) / (nu * len(A) * ours.margin_bound_) - 1.0
                holds = "holds" if check_certificate(ours, A) else "is false"
                print(
                    f"| {name}, {A.shape[0]:,} × {A.shape[1]} | {params['kernel']} | {nu} "
                    f"| {np.median(of_ours):.0f} | {np.median(of_theirs):.0f} | {ours.gap_:.0e} "
                    f"| {above:.0e} | {ours.status_}, {holds} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
