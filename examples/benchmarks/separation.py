"""check_separability: whether its answers are true, and how long they take.

    python examples/benchmarks/separation.py oracle [problems] [seed] [family ...]
    python examples/benchmarks/separation.py limits [problems of each family] [seed] [family ...]
    python examples/benchmarks/separation.py times [case ...]

*oracle*: random small problems of all families against rationals. Families, units, offsets,
weights, collinear columns, dense and CSR are drawn at random; a quarter is asked many times over,
so that samples answer it. The oracle is the simplex method in rationals
(``tests/helpers/separation.py``), which shares no code with the package. Counted are answers that
differ (kind, rows, coefficients with their signs), that are undecided or not exact, and reports
that the check refuses.

*limits*: of regressions without an estimate, the likelihood is fitted with ridges of 1e-5, 1e-7
and 1e-9, by code that shares nothing with the package, and what ``report.remainder`` says is
fitted without one.

*times*: seconds of the processor, BLAS on one thread, the least of five (of one above two seconds),
and with the signs of coefficients. ``firthmodels`` (``detect_separation``, a linear program) and
``statsmodels`` (``Logit``) are asked as well where they are installed.
"""

import sys
import time
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from _sets import load
from helpers import comparison_cases, limit_cases, separation_cases

from marginsvm import check_separability

NEAR = 1e-4  # of finite coefficients and their limits


def oracle(n=1000, first=0, *kinds):
    kinds = kinds or separation_cases.ALL + comparison_cases.ALL
    found, answers, times = Counter(), Counter(), []
    for seed in range(int(first), int(first) + int(n)):
        kind = kinds[seed % len(kinds)]
        cases = comparison_cases if kind in comparison_cases.ALL else separation_cases
        repeat = 40 if (seed // len(kinds)) % 4 == 3 else 1
        try:
            wrong, said, seconds = cases.answer_of(seed, kind, repeat)
        except Exception as error:
            wrong, said, seconds = (
                [f"error: {type(error).__name__} {error}"],
                "error",
                0.0,
            )
        times += [seconds] * (repeat == 1)
        answers[said] += 1
        for text in wrong:
            found[kind, text.split()[0]] += 1
            print(kind, seed, text, said, flush=True)
    print(f"{n} problems from seed {first}:", dict(answers))
    print("wrong or open:", dict(found) or "none")
    print(
        f"median {1e3 * np.median(times):.2f} ms, 99 % {1e3 * np.quantile(times, 0.99):.2f} ms"
    )


def limits(n=100, first=10_000, *kinds):
    for name in kinds or limit_cases.CASES:
        worst, compared, far = 0.0, 0, []
        for seed in range(int(first), int(first) + int(n)):
            with np.errstate(all="ignore"):
                case = limit_cases.CASES[name](seed)
            last = case.away()[-1]
            compared += int(case.finite.any() and not case.finite.all())
            worst = max(worst, last)
            if not last < NEAR:
                far.append(seed)
        print(
            f"{name}: {n} designs, {compared} with limits; {worst:.1e} away at most {far or ''}"
        )


# ---- times


def least_seconds(work):
    times = []
    for _ in range(5):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
        if times[-1] > 2:
            break
    return min(times), result


def firth(X, y):
    from firthmodels import detect_separation

    found = detect_separation(X, y)
    infinite = int(np.count_nonzero(~found.is_finite))
    return f"separated, {infinite} infinite" if found.separation else "not separated"


def logit(X, y):
    import statsmodels.api as sm

    try:
        fit = sm.Logit(y, sm.add_constant(X)).fit(disp=False)
    except Exception as error:
        return f"{type(error).__name__}: {error}".split(".")[0]
    return f"converged: {fit.mle_retvals['converged']}, largest |t| {np.abs(fit.tvalues).max():.2g}"


def random_labels(n, d):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)), rng.integers(0, 2, n)


def rare_mark(n, d):
    """Random labels, and a feature that only some examples of one class have."""
    X, y = random_labels(n, d)
    X[:, 0] = np.where(y == 1, np.random.default_rng(1).random(n) < 0.01, 0.0)
    return X, y


def complete(n, d):
    X = random_labels(n, d)[0]
    return X, (X.sum(axis=1) > 0).astype(int)


def text(n=2000, d=10_000):
    rng = np.random.default_rng(0)
    often = 1 / (np.arange(d) + 10.0)
    lengths = rng.integers(20, 120, n)
    words = rng.choice(d, lengths.sum(), p=often / often.sum())
    X = sp.csr_array(
        (np.ones(len(words)), (np.repeat(np.arange(n), lengths), words)), (n, d)
    )
    return X, rng.integers(0, 2, n)


def classes(spread, k=60, m=60, d=10):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(k), m)
    return spread * rng.standard_normal((k, d))[y] + rng.standard_normal((k * m, d)), y


def survival(n, d, late=False, mark=False):
    rng = np.random.default_rng(0)
    X, more = rng.standard_normal((n, d)), {}
    t, died = rng.exponential(np.exp(-0.5 * X[:, 0])), rng.random(n) < 0.6
    if late:
        more = {"entry": 0.9 * t * rng.random(n), "strata": rng.integers(0, 5, n)}
    if mark:
        X[:, 1] = rng.random(n) < 0.01
        died &= X[:, 1] == 0
    return X, np.column_stack([t, died]), {"family": "cox", **more}


def choices(n, d, mark=False):
    """One of four, each time."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d)), np.zeros(n)
    y[4 * np.arange(n // 4) + rng.integers(0, 4, n // 4)] = 1
    if mark:
        X[:, 1] = (rng.random(n) < 0.01) & (y == 0)
    return X, y, {"family": "conditional", "groups": np.arange(n) // 4}


def games(n, items):
    rng = np.random.default_rng(0)
    strength, X = rng.standard_normal(items), rng.integers(0, items, (n, 2))
    X = X[X[:, 0] != X[:, 1]]
    y = rng.logistic(size=len(X)) < strength[X[:, 0]] - strength[X[:, 1]]
    return X, y.astype(float), {"family": "pairs"}


def fixed_effects(family, n=100_000, levels=(8000, 2000)):
    """Counts with two sets of random effects, and a regressor that only zero counts have."""
    rng = np.random.default_rng(0)
    ids = [rng.integers(0, k, n) for k in levels]
    Z = rng.standard_normal((n, 3))
    effects = sum(
        1.5 * rng.standard_normal(k)[i] for k, i in zip(levels, ids, strict=True)
    )
    y = rng.poisson(np.exp(Z.sum(axis=1) * 0.3 + effects - 1.0))
    mark = np.where((y == 0) & (rng.random(n) < 0.01), rng.random(n), 0.0)
    dummies = [
        sp.csr_array((np.ones(n), (np.arange(n), i)), (n, k))
        for k, i in zip(levels, ids, strict=True)
    ]
    X = sp.csr_array(sp.hstack([sp.csr_array(np.column_stack([Z, mark])), *dummies]))
    return X, y if family == "poisson" else (y > 0).astype(int), {"family": family}


def standardised(X, y):
    return (X - X.mean(axis=0)) / X.std(axis=0), y


IRIS = load_iris(return_X_y=True)
CASES = {
    "iris: setosa, versicolor": lambda: (IRIS[0][:100], IRIS[1][:100]),
    "iris: versicolor, virginica": lambda: (IRIS[0][50:], IRIS[1][50:] - 1),
    "iris": lambda: IRIS,
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "breast cancer, standardised": lambda: standardised(
        *load_breast_cancer(return_X_y=True)
    ),
    **{
        f"{kind.__name__}, {n:,} x {d}": lambda kind=kind, n=n, d=d: kind(n, d)
        for n, d in ((1000, 20), (5000, 50), (20_000, 100), (1_000_000, 50))
        for kind in (random_labels, rare_mark, complete)
    },
    **{
        name: lambda name=name: load(name)
        for name in (
            "colon_alon",
            "golub_leukemia",
            "arcene",
            "rcv1_ccat_small",
            "tng_basehock",
        )
    },
    "text, 2,000 x 10,000": text,
    "60 classes of 60, random": lambda: classes(0.0),
    "60 classes of 60, apart": lambda: classes(20.0),
    "60 classes of 60, nearly apart": lambda: classes(2.0),
    "Cox, 300 x 20": lambda: survival(300, 20),
    "Cox, 300 x 3,000": lambda: survival(300, 3000),
    "Cox, 1,000,000 x 50": lambda: survival(1_000_000, 50),
    "Cox, 1,000,000 x 50, late": lambda: survival(1_000_000, 50, late=True),
    "Cox, 1,000,000 x 50, late, mark": lambda: survival(
        1_000_000, 50, late=True, mark=True
    ),
    "choices, 1,000,000 x 50": lambda: choices(1_000_000, 50),
    "choices, 1,000,000 x 50, mark": lambda: choices(1_000_000, 50, mark=True),
    "20,000 games of 200 items": lambda: games(20_000, 200),
    "10,000,000 games of 10,000 items": lambda: games(10_000_000, 10_000),
    "two sets of fixed effects, poisson": lambda: fixed_effects("poisson"),
    "two sets of fixed effects, binomial": lambda: fixed_effects("binomial"),
}


def times(*names):
    for name in names or CASES:
        X, y, *more = CASES[name]()
        more = more[0] if more else {}
        ask = lambda: check_separability(X, y, **more)  # noqa: B023, E731
        seconds, report = least_seconds(ask)
        signs = least_seconds(lambda: ask().coefficients)[0]  # noqa: B023
        states = dict(Counter(c.status for c in report.coefficients))
        exact = "exact" if report.exact else "up to rounding"
        print(
            f"{name}: {seconds:.4f} s, with signs {signs:.4f} s, {report.kind}, {exact}, "
            f"{report.separated.sum()} separated, {states}",
            flush=True,
        )
        if more or sp.issparse(X) or len(np.unique(y)) > 2 or X.size > 5e6:
            continue
        for peer, work in (("firthmodels", firth), ("statsmodels", logit)):
            if find_spec(peer) is not None:
                seconds, said = least_seconds(lambda: work(X, y))  # noqa: B023
                print(f"    {peer} {seconds:.4f} s: {said}", flush=True)


if __name__ == "__main__":
    threadpool_limits(1)
    work = {"oracle": oracle, "limits": limits, "times": times}[sys.argv[1]]
    warnings.simplefilter("error" if work is oracle else "ignore")
    work(*sys.argv[2:])
