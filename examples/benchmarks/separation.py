"""Who says that data is separated, and how long it takes, in one run.

    python examples/benchmarks/separation.py

Seconds of the processor, BLAS on one thread, the least of five repetitions in turn (one above ten
seconds). ``firthmodels`` (``detect_separation``, a linear program) and ``statsmodels``
(``Logit``) are left out, with a line that says so, where they are not installed.
The last table is of sparse data with two sets of fixed effects, which neither takes.
"""

import resource
import time
import warnings
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from threadpoolctl import threadpool_limits

from marginsvm import check_separability, check_separability_proof

warnings.simplefilter("ignore")
threadpool_limits(1)
SLOW = 10.0  # seconds after which a work is not repeated
EXACT = 2e5  # numbers of X up to which the proof is checked in integers, too


def least_seconds(work):
    times = []
    for _ in range(5):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
        if times[0] > SLOW:
            break
    return min(times), result


def firth(X, y):
    from firthmodels import detect_separation

    found = detect_separation(X, y)
    infinite = int(np.count_nonzero(~found.is_finite))
    return f"separated, {infinite} infinite" if found.separation else "not separated"


def logit(X, y):
    import statsmodels.api as sm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit = sm.Logit(y, sm.add_constant(X)).fit(disp=False)
        except Exception as error:
            return f"{type(error).__name__}: {error}".split(".")[0]
    return f"converged: {fit.mle_retvals['converged']}, largest |t| {np.abs(fit.tvalues).max():.2g}"


def signs_of(report):
    """What is computed, with its proofs, when it is first read."""
    return report.coefficients, report.direction


PEERS = {"firthmodels": firth, "statsmodels": logit}


def random_labels(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.integers(0, 2, n)


def rare_mark(n, d):
    """Random labels, and a feature that only some examples of one class have."""
    X, y = random_labels(n, d)
    X[:, 0] = np.where(y == 1, np.random.default_rng(1).random(n) < 0.01, 0.0)
    return X, y


def fixed_effects(n=100_000, levels=(8000, 2000)):
    """Counts with two sets of random effects, and a regressor that only zero counts have."""
    rng = np.random.default_rng(0)
    ids = [rng.integers(0, k, n) for k in levels]
    Z = rng.standard_normal((n, 3))
    effects = sum(1.5 * rng.standard_normal(k)[i] for k, i in zip(levels, ids, strict=True))
    y = rng.poisson(np.exp(Z.sum(axis=1) * 0.3 + effects - 1.0))
    mark = np.where((y == 0) & (rng.random(n) < 0.01), rng.random(n), 0.0)
    dummies = [
        sp.csr_array((np.ones(n), (np.arange(n), i)), shape=(n, k))
        for k, i in zip(levels, ids, strict=True)
    ]
    return sp.csr_array(sp.hstack([sp.csr_array(np.column_stack([Z, mark])), *dummies])), y


def known():
    X, y = load_iris(return_X_y=True)
    yield "iris: setosa, versicolor", X[:100], y[:100]
    yield "iris: setosa, virginica", X[y != 1], (y[y != 1] == 2).astype(int)
    yield "iris: versicolor, virginica", X[50:], y[50:] - 1
    yield "iris", X, y
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", X, y
    yield "breast cancer, standardised", (X - X.mean(axis=0)) / X.std(axis=0), y
    yield "wine", *load_wine(return_X_y=True)
    yield "random labels, 1,000 x 30", *random_labels(1000, 30)
    yield "rare mark, 1,000 x 30", *rare_mark(1000, 30)
    X = random_labels(1000, 30)[0]
    yield "separated, 1,000 x 30", X, (X.sum(axis=1) > 0).astype(int)
    yield "random labels, 20,000 x 100", *random_labels(20_000, 100)
    yield "rare mark, 20,000 x 100", *rare_mark(20_000, 100)
    yield "random labels, 1,000,000 x 20", *random_labels(1_000_000, 20)
    yield "rare mark, 1,000,000 x 20", *rare_mark(1_000_000, 20)


def main():
    for name in PEERS:
        if find_spec(name) is None:
            print(f"{name} is not installed, and left out")
    for name, X, y in known():
        seconds, report = least_seconds(lambda: check_separability(X, y))  # noqa: B023
        signs = least_seconds(lambda: signs_of(check_separability(X, y)))[0]  # noqa: B023
        begin = time.perf_counter()
        proof = bool(check_separability_proof(report, X, y, exact=X.size <= EXACT))
        checked = time.perf_counter() - begin
        how = "integers" if X.size <= EXACT else "floats"
        infinite = sum(c.status not in ("finite", "not identified") for c in report.coefficients)
        print(
            f"{name}: marginsvm {seconds:.4f} s, with signs and the central direction "
            f"{signs:.4f} s, {report.kind}, {report.separated.sum()} separated"
            f", {infinite} infinite; proof in {how}: {proof}, {checked:.3f} s"
        )
        if len(np.unique(y)) > 2 or X.size > 5e6:
            continue
        for peer, ask in PEERS.items():
            if find_spec(peer) is not None:
                seconds, said = least_seconds(lambda: ask(X, y))  # noqa: B023
                print(f"    {peer} {seconds:.4f} s: {said}", flush=True)
    X, count = fixed_effects()
    for family, y in (("poisson", count), ("binomial", (count > 0).astype(int))):
        begin = time.perf_counter()
        report = check_separability(X, y, family=family)
        seconds = time.perf_counter() - begin
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"two sets of fixed effects, CSR {X.shape}, {family}: {seconds:.1f} s, {report.kind}, "
            f"{report.separated.sum()} separated; {memory:.0f} MB at most so far; proof in floats: "
            f"{bool(check_separability_proof(report, X, y))}"
        )


if __name__ == "__main__":
    main()
