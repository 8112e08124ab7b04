"""Fits of small hostile problems by all estimators, whose bounds are held against rationals.

    python examples/benchmarks/hostile_fits.py --fits 20000 --seed 0
    python examples/benchmarks/hostile_fits.py --fits 2500 --seed 0 --lies 4

Units of columns from 1e-8 to 1e12, offsets up to 1e6 deviations, duplicates, contradicting labels,
float32, CSR, sample weights of 0, up to six classes, from two examples on, kernels with columns of
wide spread. Bounds of linear predictors and given kernel matrices are computed again in rationals,
with no tolerance; those of named kernels on the kernel matrix as it is computed, in rationals, and
of the Gaussian kernel on one by differences in extended precision. With ``--lies``, each
certificate is then changed so many times; what the exact check accepts must not contradict the
bounds of a fit to 1e-9. Prints how many fits ended how, and each failure with its seed.
"""

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from copy import copy
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_outlier_detector, is_regressor

import marginsvm
from marginsvm import check_certificate
from marginsvm.problem.gram import Gram
from marginsvm.problem.kernel_functions import kernel_on

FIRST_ORDER = [
    "AcceleratedPerceptron",
    "AdaptiveSamplingKernelClassifier",
    "BatchPerceptron",
    "DualLpPerceptron",
    "DualLpRegressor",
    "KernelPerceptron",
    "LpPerceptron",
    "MomentumMarginClassifier",
    "NormalizedKernelPerceptron",
    "OptimisticPerceptron",
    "PerceptronVonNeumann",
    "PrimalMirrorDescent",
    "SmoothedKernelPerceptron",
    "VonNeumannClassifier",
]
EXACT = ["MaxMarginClassifier", "MaxMarginRegressor", "MaxMarginOutlierDetector"]
# the exact ones come as often as the others together
NAMES = [*FIRST_ORDER, *EXACT * 4]


def examples(rng):
    """Features of a hostile problem, and labels of up to six classes."""
    n, d = int(rng.integers(2, 22)), int(rng.integers(1, 6))
    k = int(min(n, rng.choice([2, 2, 2, 3, 4, 6])))
    X = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        X = rng.integers(-3, 4, (n, d)) * 1.0
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    X += rng.choice([0.0, 1.0, 5.0]) * np.eye(max(k, d))[y][:, :d]
    if rng.random() < 0.3:  # duplicates, of which some have other labels
        copies = rng.integers(0, n, n // 3)
        X[rng.integers(0, n, n // 3)] = X[copies]
    X += rng.choice([0.0, 0.0, 1.0]) * 10.0 ** rng.uniform(0, 6, d)
    X *= rng.choice([1.0, 10.0 ** rng.uniform(-8, 12)])
    if rng.random() < 0.3:
        X *= 10.0 ** rng.integers(-8, 9, d)
    if rng.random() < 0.15:
        X = X.astype(np.float32)
    weight = rng.choice([0.0, 1.0, 0.3, 7.0], n) if rng.random() < 0.3 else None
    if weight is not None:
        weight[:k] = 1.0
    return X, y, weight


def parameters(cls, rng, X, targets):
    """Parameters of an estimator for these data."""
    known = cls._parameter_constraints if hasattr(cls, "_parameter_constraints") else {}
    names, given = set(cls().get_params()) | set(known), {}
    scale = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
    if "C" in names and (rng.random() < 0.7 or cls.__name__ == "MaxMarginRegressor"):
        given["C"] = float(10.0 ** rng.uniform(-2, 4)) / scale**2
    if "loss" in names and cls.__name__ in EXACT:
        losses = ["epsilon_insensitive", "squared_epsilon_insensitive"]
        losses = losses if targets is not None else ["hinge", "squared_hinge"]
        given["loss"] = str(rng.choice(losses))
    if "fit_intercept" in names:
        given["fit_intercept"] = bool(rng.integers(2))
    if "kernel" in names and rng.random() < 0.4:
        given["kernel"] = str(rng.choice(["precomputed", "precomputed", "rbf", "poly"]))
        if given["kernel"] == "rbf" and rng.random() < 0.5:
            given["gamma"] = float(10.0 ** rng.uniform(-2, 2)) / scale**2
        if given["kernel"] == "poly":
            given |= {"gamma": 1.0 / scale**2, "degree": 2, "coef0": 1.0}
    if "nu" in names and rng.random() < 0.3:
        given["nu"] = float(rng.uniform(0.05, 0.9))
        if cls.__name__ != "MaxMarginRegressor":
            given.pop("C", None)
            given.pop("loss", None)
    if (
        "p" in names
        and given.get("kernel", "linear") == "linear"
        and rng.random() < 0.3
    ):
        given["p"] = float(rng.choice([1.5, 1.1]))
    if "epsilon" in names and targets is not None and "nu" not in given:
        given["epsilon"] = float(rng.choice([0.0, 0.1, 2.0])) * (
            float(np.ptp(targets)) or 1.0
        )
    named = given.get("kernel", "linear") not in ("linear", "precomputed")
    if "normalize" in names:
        given["normalize"] = bool(rng.random() < 0.3 and not named)
    if "max_iter" in names and cls.__name__ in FIRST_ORDER:
        given["max_iter"] = int(rng.choice([3, 30, 200]))
    return given


def problem(seed):
    """An estimator, not fitted, and the arguments of its fit."""
    rng = np.random.default_rng(seed)
    cls = getattr(marginsvm, NAMES[seed % len(NAMES)])
    X, y, weight = examples(rng)
    if is_regressor(cls()):
        y = rng.standard_normal(len(X)) * 10.0 ** rng.uniform(-6, 6)
        y += rng.choice([0.0, 1.0]) * 10.0 ** rng.uniform(0, 6) * (np.ptp(y) or 1.0)
        if rng.random() < 0.2:
            y = np.column_stack([y, rng.standard_normal(len(X))])
    given = parameters(cls, rng, X, y if is_regressor(cls()) else None)
    if is_outlier_detector(cls()):
        y = None
    if given.get("kernel") == "precomputed":
        Z = X.astype(float)
        X = Z @ Z.T
        X = 0.5 * (X + X.T)
    elif rng.random() < 0.2:
        X = sp.csr_array(X)
    return cls(**given), X, y, weight


def by_differences(estimator, X):
    """The Gaussian kernel's values, rounded once."""
    Z = (X.toarray() if sp.issparse(X) else X).astype(np.longdouble)
    squares = ((Z[:, None] - Z) ** 2).sum(axis=2)
    return np.exp(-np.longdouble(estimator._gamma) * squares).astype(float)


def on_matrix(estimator):
    """The same as if it had been fitted to the kernel matrix; equal examples are nothing there."""
    other = copy(estimator)
    other.kernel = "precomputed"
    other.certificate_ = replace(other.certificate_, feasible=None, status="stalled")
    return other


def wrong(estimator, X, y, weight):
    """What rationals find wrong with the bounds of a fit."""
    kernel = getattr(estimator, "kernel", "linear")
    if kernel in ("linear", "precomputed"):
        check = check_certificate(estimator, X, y, weight, exact=True)
        unknown = "inner products" in check.reason  # of a matrix that was rounded
        return "" if check or unknown else check.reason
    Z = X if getattr(estimator, "_widens_kernels", False) is False else X.astype(float)
    of = np.ones(X.shape[0]) if weight is None else weight
    given = Gram(kernel_on(estimator, Z, of), Z).whole().astype(float)
    matrices = [0.5 * (given + given.T)]
    if kernel == "rbf":
        matrices.append(by_differences(estimator, Z))
    for K in matrices:
        check = check_certificate(on_matrix(estimator), K, y, weight, exact=True)
        if not check and "inner products" not in check.reason:
            return check.reason
    return ""


def lies(estimator, rng, number):
    """The estimator with certificates of other numbers and words."""
    true = estimator.certificate_
    for _ in range(number):
        size = float(10.0 ** rng.uniform(-15, 0)) * float(rng.choice([-1.0, 1.0]))
        what = str(
            rng.choice(["lower", "upper", "weights", "coef", "status", "feasible"])
        )
        changed = true
        if what in ("lower", "upper"):
            changed = replace(
                true, **{what: getattr(true, what) * (1.0 + size) + 1e-30 * size}
            )
        elif what == "weights" and len(true.weights.data):
            q = true.weights.copy()
            q.data[rng.integers(len(q.data))] *= 1.0 + size
            changed = replace(true, weights=q)
        elif what == "status":
            words = ["certified", "separated", "no_margin", "infeasible", "stalled"]
            changed = replace(true, status=str(rng.choice(words)))
        elif what == "feasible":
            changed = replace(true, feasible=[True, False, None][int(rng.integers(3))])
        name = "coef_" if hasattr(estimator, "coef_") else "dual_coef_"
        before = getattr(estimator, name)
        if what == "coef" and before.size:
            after = before.copy()
            after.flat[rng.integers(after.size)] *= 1.0 + size
            setattr(estimator, name, after)
        estimator.certificate_ = changed
        yield what, changed
        estimator.certificate_ = true
        setattr(estimator, name, before)


def contradicts(claim, best):
    """Whether an accepted certificate contradicts the bounds of a good fit."""
    if (
        best.reading == "norm"
        and best.violation > 0.0
        and best.widened_bound != best.lower
    ):
        return claim.upper < best.widened_bound * (1 - 1e-12)  # of equally wide tubes
    return claim.lower > best.upper * (1 + 1e-12) or claim.upper < best.lower * (
        1 - 1e-12
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lies", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    ended, failed, told, accepted, start = Counter(), 0, 0, 0, time.process_time()
    for seed in range(given.seed, given.seed + given.fits):
        estimator, X, y, weight = problem(seed)
        name = type(estimator).__name__
        try:
            labels = () if y is None else (y,)
            estimator.fit(X, *labels, sample_weight=weight)
        except ValueError as error:
            ended[name, "refused"] += 1
            if "infeasible" not in str(error) and "scale X" not in str(error):
                ended["refusals: " + str(error)[:60], ""] += 1
            continue
        except Exception:
            failed += 1
            print(f"seed {seed}, {estimator}: {traceback.format_exc(limit=-3)}")
            continue
        ended[name, estimator.status_] += 1
        try:
            text = wrong(estimator, X, y, weight)
            if text:
                failed += 1
                print(f"seed {seed}, {estimator}, {X.shape}: {text}")
        except Exception:
            failed += 1
            print(f"seed {seed}, {estimator}: {traceback.format_exc(limit=-3)}")
        if given.lies and getattr(estimator, "kernel", "linear") in (
            "linear",
            "precomputed",
        ):
            rng = np.random.default_rng(seed)
            best = estimator.certificate_
            for what, claim in lies(estimator, rng, given.lies):
                told += 1
                try:
                    if check_certificate(estimator, X, y, weight, exact=True):
                        accepted += 1
                        if contradicts(claim, best):
                            failed += 1
                            print(
                                f"seed {seed}, {estimator}: a false {what} is accepted"
                            )
                except Exception:
                    failed += 1
                    print(
                        f"seed {seed}, {estimator}, {what}: {traceback.format_exc(limit=-3)}"
                    )
    for (name, status), number in sorted(ended.items()):
        print(f"{name:40} {status:12} {number}")
    print(
        f"{given.fits} fits from seed {given.seed}: {failed} failed; {told} lies, {accepted} true"
    )
    print(f"{time.process_time() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
