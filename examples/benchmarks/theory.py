"""Rounds to a certified gap, of all algorithms: the tables and the picture of docs/theory.rst.

    MARGINSVM_DATA=... python examples/benchmarks/theory.py [picture.png]

All solve the same problem, without an intercept, on five data sets, in at most 10,000 rounds. The
gap after a round is 1 - (best lower bound) / (best upper bound) so far, as rounds compute them, and
a round is what ``n_iter_`` counts.
"""

import sys
import warnings

import matplotlib
import numpy as np
from _sets import gauss
from _sets import load as published
from sklearn.exceptions import ConvergenceWarning

import marginsvm as m

ROUNDS = 10_000
GAPS = 10.0 ** -np.arange(1, 7)
SMALLEST = 5e-7  # smaller gaps are drawn here
COMMON = {"fit_intercept": False, "tol": SMALLEST, "max_iter": ROUNDS}


class NesterovWeights:
    """Momentum a_t / a_{t+1}, where the square of a_t is the sum of a_1 to a_t."""

    def __init__(self):
        self.a = [0.0]
        while len(self.a) < ROUNDS + 2:
            self.a.append(0.5 + np.sqrt(0.25 + self.a[-1] ** 2))

    def __call__(self, t):
        return self.a[t] / self.a[t + 1]


def momentum(**params):
    return m.MomentumMarginClassifier(**params, **COMMON)


def drawn(cls, **params):
    return cls(random_state=0, **params, **COMMON)


METHODS = {
    "exact": m.MaxMarginClassifier(**COMMON),
    "momentum": momentum(),
    "momentum, logistic loss": momentum(loss="logistic"),
    "Nesterov, textbook": momentum(momentum=m.NesterovSchedule(delay=3)),
    "Nesterov, his weights": momentum(momentum=NesterovWeights()),
    "Nesterov, Wang's Algorithm 3": m.AcceleratedPerceptron(play="nesterov", **COMMON),
    "accelerated": m.AcceleratedPerceptron(**COMMON),
    "optimistic": m.OptimisticPerceptron(**COMMON),
    "mirror-prox": m.AcceleratedPerceptron(play="mirror_prox", **COMMON),
    "normalized descent": momentum(momentum="none"),
    "progressive rescaling": momentum(momentum="none", norm="progressive"),
    "the same, slower growth": momentum(
        momentum="none", norm=m.GrowthSchedule(growth=1.2, period=50)
    ),
    "descent, steps 1/sqrt t": momentum(momentum="none", step="inv_sqrt"),
    "gradient descent": momentum(momentum="none", gradient="plain"),
    "adaptive sampling": drawn(m.AdaptiveSamplingKernelClassifier),
    "dual lp, p = 2": drawn(m.DualLpPerceptron),
    "mirror descent, p = 2": drawn(m.PrimalMirrorDescent),
    "batch perceptron": m.BatchPerceptron(**COMMON),
    "von Neumann": m.VonNeumannClassifier(**COMMON),
    "perceptron-von Neumann": m.PerceptronVonNeumann(**COMMON),
    "Rosenblatt": m.KernelPerceptron(**COMMON),
}
OKABE_ITO = {
    "black": "#000000", "orange": "#E69F00", "sky": "#56B4E9", "green": "#009E73",
    "blue": "#0072B2", "red": "#D55E00", "purple": "#CC79A7",
}  # fmt: skip
DRAWN = {
    "exact": ("black", "-", "o"),
    "dual lp, p = 2": ("purple", "-", ""),
    "momentum": ("blue", "-", ""),
    "accelerated": ("orange", (0, (4, 3)), ""),
    "Nesterov, textbook": ("sky", (0, (6, 1.5)), ""),
    "optimistic": ("green", (0, (1, 1.2)), ""),
    "normalized descent": ("red", "-.", ""),
    "progressive rescaling": ("red", (0, (1, 1.2)), ""),
    "batch perceptron": ("black", ":", ""),
}


def sets():
    """Name and data: two classes that a predictor through the origin separates."""
    for name, pair in (("golub_leukemia", ()), ("usps", (0, 1)), ("rcv1_ccat_small", ())):
        X, y = published(name)
        kept = np.isin(y, pair or np.unique(y))
        X, y = X[kept], y[kept]
        yield f"{name}, {X.shape[0]} x {X.shape[1]}", X, np.where(y == y.max(), 1, -1)
    for n, d, apart in ((1000, 50, 8.0), (100, 2000, 4.0)):
        X, y = gauss(n, d, seed=0, apart=apart)
        yield f"clouds, {n} x {d}", X, 2 * y - 1


def gaps(estimator, X, y):
    """Rounds, and the gap after each."""
    history = estimator.fit(X, y).history_
    lower, upper = history["margin"], history["margin_bound"]
    return history["n_iter"], 1.0 - np.maximum(lower, 0.0) / upper


def table(name, curves):
    """A table in reStructuredText: for each algorithm, the rounds to each gap."""
    print(f"\n.. csv-table:: {name}")
    print("    :header-rows: 1\n    :widths: 40, 10, 10, 10, 10, 10, 10\n")
    print("    algorithm," + ",".join(f"1e-{k}" for k in range(1, 7)))
    for label, (rounds, gap) in curves.items():
        reached = [rounds[gap <= wanted] for wanted in GAPS]
        numbers = (str(r[0]) if len(r) else "" for r in reached)
        print(f'    "{label}",' + ",".join(numbers), flush=True)


def picture(measured, path):
    """Gaps against rounds, a panel for each data set; the legend has a place of its own."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
    *panels, rest = axes.ravel()
    for ax, (name, curves) in zip(panels, measured.items(), strict=True):
        for label, (color, style, marker) in DRAWN.items():
            rounds, gap = curves[label]
            below = gap < 1.0
            look = {"color": OKABE_ITO[color], "ls": style, "marker": marker, "label": label}
            ax.plot(rounds[below], np.maximum(gap[below], SMALLEST), **look)
        ax.set(title=name, xscale="log", yscale="log", ylim=(0.7 * SMALLEST, 1.4), xlabel="rounds")
        ax.set_xlim(0.8, 1.2 * ROUNDS)
    for ax in (panels[0], panels[3]):
        ax.set_ylabel("certified relative gap")
    rest.axis("off")
    rest.legend(*panels[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize=12)
    figure.savefig(path, dpi=110)


def main(path):
    measured = {}
    for name, X, y in sets():
        measured[name] = {label: gaps(method, X, y) for label, method in METHODS.items()}
        table(name, measured[name])
    picture(measured, path)


if __name__ == "__main__":
    matplotlib.use("Agg")
    warnings.simplefilter("ignore", ConvergenceWarning)  # fixed numbers of rounds, on purpose
    main(sys.argv[1] if len(sys.argv) > 1 else "theory.png")
