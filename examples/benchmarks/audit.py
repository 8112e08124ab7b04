"""What ten models of scikit-learn are worth on five sets, beside what is proved possible.

    MARGINSVM_DATA=... python examples/benchmarks/audit.py

Features are standardised; training examples are judged. Prints the table of docs/audit.rst: the
excess of each model's objective over the least (with a free intercept), and "tol" or "steps" where
its own objective exceeds the least of its own problem by more than its tol, or it reached its limit
of iterations; then the share of the best hard margin that it lacks, where it separates the classes.
"""

import sys
import warnings

from _sets import load, standardised
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from marginsvm import audit

MODELS = {
    "LinearSVC()": LinearSVC(random_state=0),
    "LinearSVC(C=1e4)": LinearSVC(C=1e4, random_state=0),
    'LinearSVC(loss="hinge")': LinearSVC(loss="hinge", random_state=0),
    'LinearSVC(C=1e4, loss="hinge")': LinearSVC(C=1e4, loss="hinge", random_state=0),
    'SVC(kernel="linear")': SVC(kernel="linear"),
    'SVC(C=1e4, kernel="linear", max_iter=10**6)': SVC(
        C=1e4, kernel="linear", max_iter=10**6
    ),
    "SVC()": SVC(),
    "SVC(C=1e4)": SVC(C=1e4),
    "SGDClassifier()": SGDClassifier(random_state=0),
    'SGDClassifier(loss="squared_hinge")': SGDClassifier(
        loss="squared_hinge", random_state=0
    ),
}


def sets():
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    for name in ("sonar", "heart_scale", "german_numer_scale", "musk1"):
        yield name.removesuffix("_scale").removesuffix("_numer"), *load(name)


def share(number):
    """A share, in per cent, or how many times as much."""
    return (
        f"{100.0 * number:.2g} %"
        if number < 1.0
        else f"{float(f'{1.0 + number:.2g}'):g} times"
    )


def told(judged):
    """A cell of the table."""
    failed = {c.name for c in judged.claims if c.holds is False}
    words = [share(judged.objective.short[1])]
    words += ["steps"] * ("iterations" in failed) + ["tol"] * ("tolerance" in failed)
    margin = f"; margin {share(judged.margin.short[1])}" if judged.margin else ""
    return ", ".join(words) + margin


def main():
    warnings.simplefilter("ignore")
    data = [
        (name, standardised(X.toarray() if hasattr(X, "toarray") else X), y)
        for name, X, y in sets()
    ]
    print(
        "| model | "
        + " | ".join(f"{name}, {len(X)} x {X.shape[1]}" for name, X, _ in data)
        + " |"
    )
    print("|---" * (len(data) + 1) + "|")
    for words, model in MODELS.items():
        cells = [told(audit(model.fit(X, y), X, y).worst) for _, X, y in data]
        print(f"| `{words}` | " + " | ".join(cells) + " |")
        sys.stdout.flush()


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
