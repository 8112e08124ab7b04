"""A stress test: random problems of all shapes, each in a process with limits.

    python examples/benchmarks/stress.py [--only I] [--first I] [--limit N] [--jobs J] [--csv FILE]

Problem I of a seed is always the same one. Each is fitted in a process of its own, which is
interrupted after 120 s of CPU time and ended above a limit of memory. A line for each says how it
ended, its gap, its CPU time, its peak of memory beyond X, and whether check_certificate accepts it;
the summary says whether all ended, all certificates hold, and memory kept to the rule: beyond X at
most max(512 MB, the size of X), for the matrix of a working set of 5,000 rows and its factor, and
twelve numbers for each row and class, as margins and weights are kept for all of them; kernels 2
GB. A refusal is an end, if it comes within some seconds.
"""

import argparse
import csv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from _children import MEGABYTE, RULE, Child, ChildError, check, measured, warm_up

from marginsvm import MaxMarginClassifier

SEED = 14
PROBLEMS = 300
ENTRIES = 3e7  # of X: at most 400 MB
WORK = 1e8  # entries of X times classes: a pass takes a second at most, a good solver a minute
PAIRS = 5e6  # rows times classes
KERNEL_MEMORY = 2**31  # bytes that a fit with a kernel may take
A_FEW = 12  # numbers for each row and class
EARLY = 10.0  # seconds in which a refusal must come
ENDS = ("certified", "no_margin", "stalled", "max_iter")


@dataclass(frozen=True)
class Spec:
    """What a problem is like; its arrays are drawn from ``(seed, number)``."""

    number: int
    seed: int
    n: int
    d: int
    k: int
    density: float  # of non-zero entries; 1: a dense array
    labels: str
    uneven: bool
    unit: float
    columns: float  # decades over which the units of columns spread
    shift: float  # of the mean from 0, in standard deviations
    single: bool  # float32
    weights: bool
    C: float
    kernel: str
    fit_intercept: bool
    balanced: bool  # class_weight
    tol: float


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def spec(number, seed=SEED):
    """Draw what problem ``number`` is like."""
    rng = np.random.default_rng([seed, number])
    kernel = (
        str(rng.choice(["rbf", "poly", "laplacian"]))
        if rng.random() < 0.12
        else "linear"
    )
    n = round(log_uniform(rng, 10, 200_000 if kernel == "linear" else 3_000))
    k = 2 if rng.random() < 0.5 else round(log_uniform(rng, 3, 200))
    k = max(2, min(k, n // 3, int(PAIRS / n)))
    most = min(ENTRIES, WORK / k if k > 2 else ENTRIES)  # entries of X
    d = round(log_uniform(rng, 1, 100_000))
    sparse = d > 3 and (rng.random() < 0.4 or n * d > most)
    density = 1.0
    if sparse:
        high = min(0.3, most / (n * d))
        density = log_uniform(rng, min(max(1.0 / d, 1e-4), high), high)
    elif n * d > most:  # one to three features
        n = int(most / d)
    odd = rng.random() < 0.3
    unit = 10.0 ** rng.integers(-8, 13) if odd else 1.0
    C = np.inf if rng.random() < 0.3 else log_uniform(rng, 1e-3, 1e4)
    if odd and rng.random() < 0.5:
        C = C / unit**2  # the same problem in other units
    return Spec(
        number, seed, n, d, k, density,
        labels=str(rng.choice(["linear", "noisy", "clouds", "random", "clash"],
                              p=[0.3, 0.25, 0.25, 0.1, 0.1])),
        uneven=bool(rng.random() < 0.3), unit=float(unit),
        columns=float(rng.choice([0.0, 2.0, 6.0], p=[0.8, 0.1, 0.1])),
        shift=float(0.0 if sparse else rng.choice([0.0, 3.0, 100.0], p=[0.8, 0.1, 0.1])),
        single=bool(rng.random() < 0.2), weights=bool(rng.random() < 0.2), C=float(C),
        kernel=kernel, fit_intercept=bool(rng.random() < 0.8),
        balanced=bool(rng.random() < 0.1), tol=float(rng.choice([1e-3, 1e-4, 1e-6])),
    )  # fmt: skip


def entries(rng, s):
    """X without units: normal entries, or sparse ones that are positive, as counts are."""
    if s.density == 1.0:
        return rng.standard_normal((s.n, s.d)) + s.shift
    ends = np.append(0, np.cumsum(rng.binomial(s.d, s.density, s.n)))
    columns = rng.integers(0, s.d, ends[-1], dtype=np.int32)  # some twice in a row
    values = np.log(2.0 + rng.poisson(1.0, ends[-1]))
    X = sp.csr_array((values, columns, ends.astype(np.int32)), shape=(s.n, s.d))
    X.sum_duplicates()
    return X


def problem(s):
    """X, y and the weights (or None) of a problem."""
    rng = np.random.default_rng([s.seed, s.number, 1])
    X = entries(rng, s)
    few = rng.choice(s.d, min(s.d, 1000), replace=False)
    scores = X[:, few] @ rng.standard_normal((len(few), s.k))
    scores -= scores.mean(axis=0)
    scores /= scores.std() or 1.0
    chances = rng.dirichlet(np.full(s.k, 0.5 if s.uneven else 50.0))
    if s.labels == "noisy":
        scores += 0.5 * rng.standard_normal(scores.shape)
    y = np.argmax(scores + np.log(chances + 1e-3), axis=1)
    if s.labels in ("clouds", "random"):
        y = rng.choice(s.k, s.n, p=chances)
    y[rng.choice(s.n, s.k, replace=False)] = np.arange(s.k)  # all classes occur
    if s.labels == "clouds":
        apart = log_uniform(rng, 0.3, 10.0)  # standard deviations
        X = clouds(rng, X, y, few[:20], apart)
    if s.labels == "clash":  # some rows occur once more, with any label
        twins = rng.integers(0, s.n, s.n)
        again = np.where(rng.random(s.n) < 0.1, twins, np.arange(s.n))
        X = X[again]
    X = in_units(rng, X, s)
    weight = rng.exponential(size=s.n) * (rng.random(s.n) < 0.9) if s.weights else None
    if weight is not None:
        for label in range(s.k):
            weight[np.flatnonzero(y == label)[0]] = 1.0
    return X, y, weight


def clouds(rng, X, y, few, apart):
    """Move the classes apart in a few features."""
    means = np.zeros((y.max() + 1, X.shape[1]))
    means[:, few] = (
        apart * rng.standard_normal((len(means), len(few))) / np.sqrt(len(few))
    )
    if not sp.issparse(X):
        X += means[y]
        return X
    at = np.repeat(y, np.diff(X.indptr)), X.indices
    X.data += means[at]  # where there is an entry
    return X


def in_units(rng, X, s):
    """X in its units, and of its type; sparse indices as scikit-learn takes them."""
    units = s.unit * 10.0 ** rng.uniform(-s.columns / 2, s.columns / 2, s.d)
    number = np.float32 if s.single else np.float64
    if not sp.issparse(X):
        X *= units
        return X.astype(number, copy=False)
    X.data *= units[X.indices]
    index = (
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int32, copy=False),
    )
    return sp.csr_matrix((X.data.astype(number, copy=False), *index), shape=X.shape)


def allowed(s, size):
    """Bytes that a fit may take beyond X."""
    rule = max(RULE, size) if s.kernel == "linear" else max(KERNEL_MEMORY, size)
    return rule + 8 * A_FEW * s.n * (s.k if s.k > 2 else 1)


def run(s, seconds, memory):
    """Fit a problem in a process of its own: what it is like, and how it went."""
    clf = MaxMarginClassifier(
        C=s.C, kernel=s.kernel, tol=s.tol, fit_intercept=s.fit_intercept,
        class_weight="balanced" if s.balanced else None,
    )  # fmt: skip
    row = asdict(s) | {"status": "", "ended": False, "checked": "", "note": ""}
    with Child(problem, s, memory=memory) as child:
        try:
            child.ask(warm_up, clf)
            took = child.ask(measured, clf, seconds)
            row |= {name: took[name] for name in ("status", "gap", "margin", "margin_bound",
                    "n_iter", "seconds", "cpu", "beyond", "size", "warning")}  # fmt: skip
            rule = allowed(s, took["size"])
            row |= {"ended": took["status"] in ENDS, "within": took["beyond"] <= rule,
                    "rule": rule}  # fmt: skip
            row["note"] = child.ask(check, seconds=300.0)
            row["checked"] = not row["note"]
        except ChildError as error:
            row |= failure(str(error), row, child)
    return row


def failure(reason, row, child):
    """How a fit, or the check after it, went that gave no answer."""
    said = (
        reason.startswith(("ValueError", "MemoryError"))
        and "Unable to allocate" not in reason
    )
    # what NumPy could not allocate was not foreseen
    refused = said and child.seconds < EARLY
    if row["status"]:  # the check failed
        return {"note": reason}
    return {"status": "refused" if refused else "failed", "ended": refused, "note": reason,
            "seconds": child.seconds, "beyond": child.peak}  # fmt: skip


def line(row):
    """A row in a line of text."""
    form = "dense" if row["density"] == 1.0 else f"{row['density']:.1e}"
    X = f"{row['n']} x {row['d']} {form}, k={row['k']} {row['kernel']} {row['labels']}"
    found = f"gap {row['gap']:.0e}" if row.get("gap") is not None else ""
    memory = f"{row.get('beyond', 0) / MEGABYTE:.0f} MB"
    words = ["" if row.get("within", True) else "OVER", "" if row["ended"] else "NOT ENDED",
             "CERTIFICATE REFUSED" if row["checked"] is False else "", row["note"]]  # fmt: skip
    return (
        f"{row['number']:3d} {X:48s} C={row['C']:<8.2g} {row['status']:11s} {found:10s} "
        f"{row.get('cpu', 0.0):7.2f} s {memory:>8s} {' '.join(filter(None, words))}"
    )


def summary(rows):
    """How many ended, were certified, checked, and kept to the rule of memory."""
    n, statuses = len(rows), {}
    for row in rows:
        statuses[row["status"]] = statuses.get(row["status"], 0) + 1
    ended = sum(row["ended"] for row in rows)
    held = [row["checked"] for row in rows if row["checked"] != ""]
    within = [row["within"] for row in rows if "within" in row]
    seconds = [row["cpu"] for row in rows if "cpu" in row]
    print(
        f"\n{n} problems: {', '.join(f'{m} {name}' for name, m in sorted(statuses.items()))}"
    )
    print(f"ended: {ended} of {n}; certificates that hold: {sum(held)} of {len(held)}")
    print(f"memory within the rule: {sum(within)} of {len(within)}")
    if seconds:
        worst = np.quantile(seconds, [0.5, 0.9, 1.0])
        print(
            "CPU seconds, median, upper tenth and most: {:.2f}, {:.2f}, {:.2f}".format(
                *worst
            )
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, help="number of a single problem")
    parser.add_argument("--first", type=int, default=0, help="number to begin with")
    parser.add_argument(
        "--limit", type=int, default=PROBLEMS, help="number to end before"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="of CPU, for each fit"
    )
    parser.add_argument(
        "--memory", type=float, default=6000.0, help="MB for each process"
    )
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    numbers = (
        range(options.first, options.limit) if options.only is None else [options.only]
    )
    specs = [spec(number, options.seed) for number in numbers]
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        memory = int(options.memory * MEGABYTE)
        for row in pool.map(lambda s: run(s, options.seconds, memory), specs):
            print(line(row), flush=True)
            rows.append(row)
            if options.csv:
                write(options.csv, rows)
    summary(rows)


def write(path, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
