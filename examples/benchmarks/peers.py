"""CPU time at equal accuracy: marginsvm beside LinearSVC, SVC, SVR, quadprog, PIQP and searches.

    MARGINSVM_DATA=/path/to/sets python peers.py [--quick] [--only REGEX] [--save FILE]
    MARGINSVM_DATA=/path/to/sets python peers.py --before FILE --save FILE
    python peers.py --write FILE

Each solver is fitted with a tolerance of 1, 0.3, 0.1, ... until its objective exceeds the best one
by at most a fraction, 1e-3 and 1e-4; the CPU time of that fit, the least of some, is compared. The
best objective is our bound at ``tol=1e-7``. Objectives are computed here, from the coefficients. A
solver that needs more than LIMIT seconds a fit counts with LIMIT, and is marked by ">".

Ratios are their time over ours: above 1 we are faster. *linear*: both losses and Crammer and
Singer's (``classes``), without intercept; the peer is the faster one of LinearSVC's two solvers.
*kernel*: SVC; *regression*: SVR; *hard*: SVC with ``C=1e10``, quadprog and PIQP; *search*: ten
values of C in five folds, GridSearchCV over LinearSVC and LogisticRegressionCV, by their defaults:
in place of an objective, the best mean score counts, which is 1e-2 below the best one at most.

Dense features are standardised, text has rows of norm 1, other sparse sets are as published. Text
of the kind that is not published is generated; ``emptied`` has one row without entries.
``--before`` prints another run's ratios beside; ``--write`` writes a run's tables between the
markers of README.md and docs/benchmarks.md. quadprog and PIQP are of the extra ``bench``.
"""

import argparse
import json
import re
import sys
import time
import warnings
from pathlib import Path

import _children  # noqa: F401  one thread, before libraries start theirs
import numpy as np
import scipy.sparse as sp
from _sets import load, standardised, text_like
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, SVR, LinearSVC

from marginsvm import MaxMarginClassifier, MaxMarginClassifierCV, MaxMarginRegressor

try:
    from quadprog import solve_qp
except ImportError:
    solve_qp = None
try:
    import piqp
except ImportError:
    piqp = None

ROOT = Path(__file__).resolve().parents[2]
ACCURACIES = 1e-3, 1e-4
TOLERANCES = [scale * 10.0**-k for k in range(7) for scale in (1.0, 0.3)]
COSTS = 0.01, 1.0, 100.0
LIMIT, ENOUGH, TURNS = 2.0, 0.3, 5  # CPU seconds of a fit; of fits that count; fits
QUICK = (
    r"(basehock|emptied|dna 1|german)[^|]*\|.*\|(0.01|1|100)\|(hinge|squared)|"
    r"(usps 3 5|svmguide1).*\|(1|100)\|(rbf|poly|given|SVR)|sonar.*hard"
)


def text(name):
    return lambda: (normalize(load(name)[0]), load(name)[1])


def parity(name):
    return lambda: (normalize(load(name)[0]), load(name)[1] % 2)


def emptied():
    """Text of which one row has no entries."""
    X, y = text("tng_basehock")()
    X = sp.csr_matrix(X)
    X.data[X.indptr[100] : X.indptr[101]] = 0.0
    X.eliminate_zeros()
    return X, y


def plain(name):
    return lambda: load(name)


def dense(name):
    def made():
        X, y = load(name)
        return standardised(X.toarray() if sp.issparse(X) else X), y

    return made


def pair(name, a, b):
    """Two of the classes; pixels in [0, 1]."""

    def made():
        X, y = load(name)
        kept = np.isin(y, (a, b))
        X = X[kept].reshape(kept.sum(), -1)
        return (X / 255.0 if name == "mnist" else standardised(X)), y[kept]

    return made


def one_against_rest(name, label):
    return lambda: (sp.csr_matrix(load(name)[0]), load(name)[1] == label)


def first_as_target(name):
    """Its first feature is to be predicted from the others."""

    def made():
        X = standardised(load(name)[0])
        return X[:, 1:], X[:, 0]

    return made


LINEAR = {  # by kind
    "text": {
        "news20 even": parity("news20"),
        "rcv1_ccat_small": text("rcv1_ccat_small"),
        "tng_basehock": text("tng_basehock"),
        "basehock, emptied": emptied,
        "generated text": lambda: text_like(2000, 10_000, 0, density=0.01),
    },
    "0/1": {
        "a9a": plain("a9a"),
        "mushrooms": plain("mushrooms"),
        "dna 1": one_against_rest("dna", 1),
    },
    "dense": {
        "german": dense("german_numer_scale"),
        "svmguide1": dense("svmguide1"),
        "sonar": dense("sonar"),
        "mnist 0 1": pair("mnist", 0, 1),
    },
}
CLASSES = {name: dense(name) for name in ("dna", "pendigits")}
KERNEL = {
    "svmguide1": dense("svmguide1"),
    "usps 3 5": pair("usps", 3, 5),
    "pendigits 3 9": pair("pendigits", 3, 9),
    "letter 0 1": pair("letter", 0, 1),
    "mushrooms": dense("mushrooms"),
}
REGRESSION = {
    "diabetes": lambda: (
        standardised(load_diabetes().data),
        standardised(load_diabetes().target[:, None])[:, 0],
    ),
    "svmguide1": first_as_target("svmguide1"),
    "german": first_as_target("german_numer_scale"),
}
HARD = {
    "sonar": dense("sonar"),
    "musk1": dense("musk1"),
    "usps 3 5": pair("usps", 3, 5),
    "arcene": dense("arcene"),
}
SEARCH = {
    "heart_scale": dense("heart_scale"),
    "german": dense("german_numer_scale"),
    "dna": dense("dna"),
    "pendigits": dense("pendigits"),
    "tng_basehock": text("tng_basehock"),
    "rcv1_ccat_small": text("rcv1_ccat_small"),
}


class Quadprog(BaseEstimator):
    """A hard margin: Goldfarb and Idnani's active set, or PIQP's interior points, on the primal."""

    def __init__(self, by="quadprog"):
        self.by = by

    def fit(self, X, y):
        sign = np.where(y == y.max(), 1.0, -1.0)
        n, d = X.shape
        A = sign[:, None] * np.column_stack([X, np.ones(n)])
        P, zero = np.diag(np.append(np.ones(d), 1e-10)), np.zeros(d + 1)
        if self.by == "quadprog":
            w = solve_qp(P, zero, A.T.copy(), np.ones(n))[0]
        else:
            solver = piqp.DenseSolver()
            order = np.asfortranarray
            solver.setup(order(P), zero, G=order(A), h_l=np.ones(n))
            solver.solve()
            w = solver.result.x
        self.coef_, self.intercept_ = w[None, :d], w[d:]
        return self


class Problem:
    """An objective, the estimators that minimise it and, of each, its value."""

    def __init__(self, kind, name, X, y, C, what):
        self.kind, self.name, self.X, self.y, self.C, self.what = (
            kind,
            name,
            X,
            y,
            C,
            what,
        )
        n, d = X.shape
        self.label = f"{name}|{n:,} x {d:,}|{C:g}|{what}"
        self.ours, self.peers = self.models()

    def models(self):
        """Ours, and peers by name; those without ``tol`` are exact."""
        C, what, n = self.C, self.what, self.X.shape[0]
        if self.kind == "search":
            costs = np.logspace(-4, 4, 10)
            peers = {
                "GridSearchCV": GridSearchCV(LinearSVC(random_state=0), {"C": costs}),
                "LogisticRegressionCV": LogisticRegressionCV(
                    Cs=10,
                    cv=5,
                    scoring="accuracy",
                    use_legacy_attributes=False,
                    l1_ratios=(0.0,),
                ),
            }
            return MaxMarginClassifierCV(Cs=costs), peers
        if self.kind == "hard":
            peers = {"SVC": SVC(kernel="linear", C=1e10, cache_size=1000)}
            if n <= 2500 and self.X.shape[1] <= 2500:
                peers |= {"quadprog": Quadprog()} if solve_qp is not None else {}
                peers |= {"PIQP": Quadprog("PIQP")} if piqp is not None else {}
            return MaxMarginClassifier(), peers
        if self.kind == "kernel":
            common = {"C": C, "kernel": "precomputed" if what == "given" else what}
            return MaxMarginClassifier(loss="hinge", **common), {
                "SVC": SVC(cache_size=1000, **common)
            }
        if self.kind == "regression":
            common = {"C": C, "kernel": "rbf", "epsilon": 0.1}
            return MaxMarginRegressor(loss="epsilon_insensitive", **common), {
                "SVR": SVR(cache_size=1000, **common)
            }
        loss = "squared_hinge" if what == "squared" else "hinge"
        ours = MaxMarginClassifier(C=C, loss=loss, fit_intercept=False)
        theirs = {"C": C, "fit_intercept": False, "random_state": 0}
        if what == "classes":
            return ours, {
                "LinearSVC": LinearSVC(multi_class="crammer_singer", **theirs)
            }
        peers = {"LinearSVC, dual": LinearSVC(loss=loss, dual=True, **theirs)}
        if what == "squared":
            peers["LinearSVC, primal"] = LinearSVC(loss=loss, dual=False, **theirs)
        return ours, peers

    def best(self):
        """The lower bound on the objective that our fit proves."""
        tight = clone(self.ours).set_params(tol=1e-7).fit(self.X, self.y)
        if self.kind == "regression":
            return tight.objective_bound_
        return 0.5 / tight.margin_bound_**2

    def value(self, model):
        """The objective of a fitted model; of a hard margin, that of its direction."""
        X, y, C = self.X, self.y, self.C
        if self.kind == "regression":
            scores = model.predict(X)
            c = np.ravel(model.dual_coef_)
            square = c @ (scores[model.support_] - np.ravel(model.intercept_))
            return 0.5 * square + C * np.maximum(0.0, np.abs(scores - y) - 0.1).sum()
        codes = np.unique(y, return_inverse=True)[1]
        if self.what == "classes":
            scores, each = X @ model.coef_.T, np.arange(len(y))
            slack = 1.0 + scores - scores[each, codes][:, None]
            slack[each, codes] = 0.0
            return 0.5 * np.sum(model.coef_**2) + C * slack.max(axis=1).sum()
        sign = 2.0 * codes - 1.0
        if self.kind == "kernel":
            scores = model.decision_function(X)
            c = np.ravel(model.dual_coef_)
            square = c @ (scores[model.support_] - np.ravel(model.intercept_))
        else:
            w = model.coef_
            w = np.ravel(w.toarray() if sp.issparse(w) else w)
            square, scores = w @ w, X @ w
        if self.kind == "hard":
            margin = 0.5 * (scores[sign > 0].min() - scores[sign < 0].max())
            return 0.5 * square / margin**2 if margin > 0.0 else np.inf
        slack = np.maximum(0.0, 1.0 - sign * scores)
        return 0.5 * square + C * np.sum(slack**2 if self.what == "squared" else slack)


def fitted(model, X, y):
    """CPU seconds of a fit."""
    begun = time.process_time()
    model.fit(X, y)
    return time.process_time() - begun


def times(model, problem, best):
    """CPU seconds until each accuracy is reached; infinity: not within LIMIT."""
    found, wanted, epochs, seconds = [], list(ACCURACIES), 0, 0.0
    stepwise = "tol" in model.get_params()
    for tol in TOLERANCES if stepwise else [None]:
        if stepwise:
            model.set_params(tol=tol)
        # what libsvm can do within LIMIT
        if stepwise and "SVC" in str(model) and seconds:
            each = seconds / max(np.max(epochs), 1)
            model.set_params(max_iter=max(1, min(int(1.1 * LIMIT / each), 10**7)))
        elif isinstance(model, LinearSVC):
            model.set_params(max_iter=10)
        seconds = fitted(model, problem.X, problem.y)
        epochs = model.n_iter_ if stepwise else 0
        off = problem.value(model) / best - 1.0
        if wanted and off <= wanted[0]:
            turns = [seconds]
            while sum(turns) < ENOUGH and len(turns) < TURNS:
                turns.append(fitted(model, problem.X, problem.y))
            seconds = min(turns)
        while wanted and off <= wanted[0]:
            found.append(seconds)
            wanted.pop(0)
        if not wanted or seconds > LIMIT:
            break
    return found + [np.inf] * len(wanted)


def searched(problem):
    """CPU seconds of a search, and its best mean score."""
    found = {}
    for name, model in {"ours": problem.ours, **problem.peers}.items():
        seconds = fitted(model, problem.X, problem.y)
        if name == "LogisticRegressionCV":
            score = float(np.max(model.scores_.mean(axis=0)))
        else:
            score = model.best_score_
        found[name] = [seconds, score]
    return found


def problems(only, quick):
    """Those whose label matches, set by set."""
    every = [("linear", name, make, ("hinge", "squared"), COSTS)
             for sets in LINEAR.values() for name, make in sets.items()]  # fmt: skip
    every += [
        ("linear", name, make, ("classes",), COSTS) for name, make in CLASSES.items()
    ]
    every += [
        ("kernel", name, make, ("rbf", "poly", "given"), COSTS)
        for name, make in KERNEL.items()
    ]
    every += [
        ("regression", name, make, ("SVR",), (1.0,))
        for name, make in REGRESSION.items()
    ]
    every += [("hard", name, make, ("hard",), (np.inf,)) for name, make in HARD.items()]
    every += [
        ("search", name, make, ("search",), (0.0,)) for name, make in SEARCH.items()
    ]
    for kind, name, make, losses, costs in every:
        X = y = None
        for what in losses:
            for C in costs:
                probe = f"{name}| x |{C:g}|{what}"
                if not re.search(only, probe) or (
                    quick and not re.search(QUICK, probe)
                ):
                    continue
                X, y = make() if X is None else (X, y)
                yield Problem(
                    kind, name, given(X) if what == "given" else X, y, C, what
                )


def given(X):
    """The matrix of the Gaussian kernel, in float64."""
    return rbf_kernel(X, gamma=1.0 / X.shape[1])


def kind_of(label):
    name, _, _, what = label.split("|")
    if what in ("hinge", "squared"):
        return next(kind for kind, sets in LINEAR.items() if name in sets) + ", " + what
    return what


def ratios(one, i):
    """Their time over ours at an accuracy; times that were not reached count as LIMIT."""
    ours = min(one["ours"][i], LIMIT)
    peer = min(one[name][i] for name in one if name != "ours")
    return min(peer, LIMIT) / ours, peer > LIMIT


def measure(arguments):
    """Measure all problems, and print a line of each."""
    before = json.loads(Path(arguments.before).read_text()) if arguments.before else {}
    found = {}
    for problem in problems(arguments.only, arguments.quick):
        if problem.kind == "search":
            found[problem.label] = searched(problem)
        else:
            best = problem.best()
            one = {"ours": times(problem.ours, problem, best)}
            for name, peer in problem.peers.items():
                one[name] = times(peer, problem, best)
            found[problem.label] = one
        one = found[problem.label]
        cells = [
            f"{name} " + "/".join(f"{1e3 * t:.3g}" for t in ts)
            for name, ts in one.items()
        ]
        shown = [
            f"x{ratios(one, i)[0]:.2f}"
            for i in range(1 if problem.kind == "search" else 2)
        ]
        if problem.label in before:
            shown += [
                f"(x{ratios(before[problem.label], i)[0]:.2f})"
                for i in range(len(shown))
            ]
        print(problem.label, *shown, "; ".join(cells), flush=True)
    if arguments.save:
        Path(arguments.save).write_text(json.dumps(found, indent=0))
    print("\n".join(means(found)))
    if before:
        both = {label: before[label] for label in found if label in before}
        print("before:", *means(both), sep="\n")


def means(found):
    """Geometric means of the ratios by kind, and the five worst problems."""
    lines, kinds = [], {}
    for label, one in found.items():
        kinds.setdefault(kind_of(label), []).append((label, one))
    for kind, some in kinds.items():
        cells = []
        for i in range(1 if kind == "search" else 2):
            each = [(ratios(one, i)[0], label) for label, one in some]
            mean = np.exp(np.mean(np.log([ratio for ratio, _ in each])))
            worst = "; ".join(
                f"{label} {ratio:.2f}" for ratio, label in sorted(each)[:5]
            )
            cells.append(f"x{mean:.2f} of {len(each)} (worst: {worst})")
        lines.append(f"{kind}: " + " | ".join(cells))
    return lines


# Tables.


def figure(value):
    return f"{float(f'{value:.2g}'):g}"


def cells_of(label, one):
    """Cells of a line: ours in milliseconds and their time over ours at each accuracy."""
    cells = [*label.split("|")]
    for i in range(len(ACCURACIES)):
        ratio, late = ratios(one, i)
        peer = min(
            (name for name in one if name != "ours"), key=lambda name: one[name][i]
        )
        ours = one["ours"][i]
        cells.append(f"{1e3 * ours:.3g}" if np.isfinite(ours) else f"> {1e3 * LIMIT:g}")
        cells.append(">" * late + figure(ratio))
    return [*cells, peer]


def rows(found, chosen):
    head = [
        "set",
        "n x d",
        "C",
        "problem",
        "ms to 1e-3",
        "ratio",
        "ms to 1e-4",
        "ratio",
        "peer",
    ]
    lines = ["|" + "|".join(head) + "|", "|---" * len(head) + "|"]
    for label, one in found.items():
        if chosen(label):
            lines.append("|" + "|".join(cells_of(label, one)) + "|")
    return lines


def summary(found):
    lines = ["|kind|problems|ratio at 1e-3|ratio at 1e-4|", "|---|---|---|---|"]
    kinds = {}
    for label, one in found.items():
        if kind_of(label) != "search":
            kinds.setdefault(kind_of(label), []).append(one)
    for kind, some in kinds.items():
        mean = [
            np.exp(np.mean(np.log([ratios(one, i)[0] for one in some])))
            for i in range(2)
        ]
        lines.append(f"|{kind}|{len(some)}|{'|'.join(map(figure, mean))}|")
    return lines


def write(path):
    """Write the tables between the markers of the pages."""
    found = json.loads(Path(path).read_text())
    every = rows(found, lambda label: kind_of(label) != "search")
    tables = {
        "README.md": {"peers": summary(found)},
        "docs/benchmarks.md": {"peers": summary(found), "peers, all": every},
    }
    for page, parts in tables.items():
        content = (ROOT / page).read_text()
        for name, lines in parts.items():
            place = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
            table = "\n".join(lines) + "\n"
            content, count = re.subn(
                place, lambda m, t=table: m[1] + t + m[2], content, flags=re.S
            )
            if count != 1:
                raise ValueError(f"{page} has {count} places for {name}")
        (ROOT / page).write_text(content)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    for option in ("--save", "--before", "--write"):
        parser.add_argument(option)
    given_arguments = parser.parse_args()
    if given_arguments.write:
        sys.exit(write(given_arguments.write))
    measure(given_arguments)
