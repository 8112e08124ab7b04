"""Accuracy and time of classifiers as people use them: by default, and with C chosen by folds.

    MARGINSVM_DATA=... python examples/benchmarks/accuracy_of_choices.py [SET ...]

Twelve published sets, five folds; sets of fewer than FEW examples are divided four times, as one
division says little of them. Examples are shuffled first: some sets are in an order (musk1 by
molecules), so that the folds in which C is chosen, which are consecutive by default, would ask
another question than those that judge it. Dense features are standardised by the part that is
fitted, rows of text have norm 1. All models see the same folds, in one thread. A fit that takes
more than LIMIT CPU seconds is given up, and with it the model on that set. Prints two tables in
Markdown, mean accuracy and the median CPU seconds of a fit, and what sums them up.
"""

import sys
import time
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from _children import Child, ChildError, warm_up  # before NumPy's threads begin
from _sets import load
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from marginsvm import MaxMarginClassifier, MaxMarginClassifierCV

SETS = (
    "heart_scale", "sonar", "german_numer_scale", "breast_wisconsin", "musk1", "svmguide1",
    "a9a", "dna", "pendigits", "arcene", "rcv1_ccat_small", "tng_basehock",
)  # fmt: skip
COSTS = np.logspace(-4, 4, 10)  # those of LogisticRegressionCV
SEARCH, OWN = "search over LinearSVC", "MaxMarginClassifierCV"
MODELS = {
    OWN: MaxMarginClassifierCV(),
    SEARCH: GridSearchCV(LinearSVC(), {"C": COSTS}),
    "LogisticRegressionCV": LogisticRegressionCV(
        l1_ratios=(0,), use_legacy_attributes=False
    ),
    "LinearSVC": LinearSVC(),
    "SVC, linear": SVC(kernel="linear"),
    "MaxMarginClassifier": MaxMarginClassifier(),
    "SVC, rbf": SVC(),
}
LINEAR = tuple(name for name in MODELS if name != "SVC, rbf")
FEW, REPEATS = 2000, 4
LIMIT = 30.0  # CPU seconds of a fit
NEAR = 0.005  # accuracy that counts as that of the best


def problem(name):
    """A set in another order, and no weights."""
    X, y = load(name)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order], None


def folds(X, y):
    repeats = REPEATS if len(y) < FEW else 1
    return list(RepeatedStratifiedKFold(n_repeats=repeats, random_state=0).split(X, y))


def one_fold(i, model, X, y, weight):
    """CPU seconds of a fit without one fold, and the accuracy on it."""
    train, test = folds(X, y)[i]
    before = Normalizer() if sp.issparse(X) else StandardScaler()
    fitted = make_pipeline(before, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        fitted.fit(X[train], y[train])
        return time.process_time() - begin, fitted.score(X[test], y[test])


def results(name, model):
    """Seconds and accuracy of all folds; None if one of them took too long."""
    X, y, _ = problem(name)
    try:
        with Child(problem, name) as child:
            child.ask(warm_up, model)
            ask = partial(child.ask, estimator=model, seconds=LIMIT)
            return np.array(
                [ask(partial(one_fold, i)) for i in range(len(folds(X, y)))]
            )
    except ChildError as reason:
        print(f"{name}, {model}: {reason}", file=sys.stderr)
        return None


def line(*cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def table(title, names, found, cell):
    """A table with a line for each set and a column for each model."""
    print()
    line(title, *MODELS)
    print("|---" * (len(MODELS) + 1) + "|")
    for name in names:
        best = max(
            found[name, m][:, 1].mean() for m in LINEAR if found[name, m] is not None
        )
        line(name, *(cell(found[name, m], m, best) for m in MODELS))


def accuracy(result, model, best):
    """Bold for the linear models that are as good as the best of them."""
    if result is None:
        return "–"
    mean = result[:, 1].mean()
    return (
        f"**{mean:.3f}**" if model in LINEAR and mean >= best - NEAR else f"{mean:.3f}"
    )


def seconds(result, model, best):
    return f"over {LIMIT:.0f}" if result is None else f"{np.median(result[:, 0]):.2g}"


def summary(names, found):
    """How far the own choice is behind the best linear model, and how much sooner it is there."""
    print()
    ratios = []
    for name in names:
        mine = found[name, OWN]
        known = {m: found[name, m] for m in LINEAR if found[name, m] is not None}
        best = max(known, key=lambda m: known[m][:, 1].mean())
        ahead = known[best][:, 1] - mine[:, 1]
        # folds of other divisions are no new examples
        error = ahead.std(ddof=1) / np.sqrt(5)
        search = found[name, SEARCH]
        took = LIMIT if search is None else np.median(search[:, 0])
        ratios.append(np.median(mine[:, 0]) / took)
        print(
            f"{name}: behind {best} by {ahead.mean():.4f}, standard error {error:.4f}; "
            f"{ratios[-1]:.2f} of the search's time"
        )
    print(f"Geometric mean of these shares: {np.exp(np.mean(np.log(ratios))):.3f}")


def main(names):
    found = {}
    for name in names:
        for label, model in MODELS.items():
            found[name, label] = results(name, model)
            if found[name, label] is not None:
                took, score = (
                    np.median(found[name, label], axis=0)[0],
                    found[name, label][:, 1],
                )
                print(
                    f"{name}, {label}: {score.mean():.4f}, {took:.3f} s",
                    file=sys.stderr,
                )
    table("accuracy", names, found, accuracy)
    table("CPU seconds of a fit", names, found, seconds)
    summary(names, found)


if __name__ == "__main__":
    main(sys.argv[1:] or SETS)
