"""Iterations to a certified gap, of all algorithms: the table and the picture of docs/rates.rst.

    MARGINSVM_DATA=... python examples/benchmarks/theory.py [picture.png]
    MARGINSVM_DATA=... python examples/benchmarks/theory.py --sentences

The second line prints the numbers that stand in the page's sentences: whether the logarithm of
momentum's bound shows, and how far progressive rescaling is after 1000 iterations.

All solve the same problem, without an intercept, on five data sets, in at most 10,000 iterations.
The gap is 1 - (best lower bound) / (best upper bound) so far, where ``history_`` has a row: at each
iteration up to 64, then whenever their number has grown by a thirty-second.
"""

import sys
import warnings

import matplotlib
import numpy as np
from _sets import gauss
from _sets import load as published
from sklearn.exceptions import ConvergenceWarning

import marginsvm as m
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows

MOST = 10_000
GAPS = 1e-2, 1e-4
SMALLEST = 5e-7  # smaller gaps are drawn here
COMMON = {"fit_intercept": False, "tol": SMALLEST, "max_iter": MOST}


class NesterovWeights:
    """Momentum a_t / a_{t+1}, where the square of a_t is the sum of a_1 to a_t."""

    def __init__(self):
        self.a = [0.0]
        while len(self.a) < MOST + 2:
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
    "normalized descent": momentum(momentum=None),
    "progressive rescaling": momentum(momentum=None, norm="progressive"),
    "the same, slower growth": momentum(
        momentum=None, norm=m.GrowthSchedule(growth=1.2, period=50)
    ),
    "descent, steps 1/sqrt t": momentum(momentum=None, step="inv_sqrt"),
    "gradient descent": momentum(momentum=None, gradient="plain"),
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
    for name, pair in (
        ("golub_leukemia", ()),
        ("usps", (0, 1)),
        ("rcv1_ccat_small", ()),
    ):
        X, y = published(name)
        kept = np.isin(y, pair or np.unique(y))
        X, y = X[kept], y[kept]
        yield f"{name}, {X.shape[0]} x {X.shape[1]}", X, np.where(y == y.max(), 1, -1)
    for n, d, apart in ((1000, 50, 8.0), (100, 2000, 4.0)):
        X, y = gauss(n, d, seed=0, apart=apart)
        yield f"clouds, {n} x {d}", X, 2 * y - 1


def first(iterations, gap, wanted):
    """The first iteration with a gap; a dash where there is none."""
    reached = iterations[gap <= wanted]
    return str(reached[0]) if len(reached) else "–"


def table(measured):
    """The page's table: for each algorithm and set, the iterations to gaps of 1e-2 and 1e-4."""
    print("    algorithm," + ",".join(f'"{name}"' for name in measured))
    for label in METHODS:
        cells = (
            "/".join(first(*curves[label], wanted) for wanted in GAPS)
            for curves in measured.values()
        )
        print(f'    "{label}",' + ",".join(cells))


def picture(measured, path):
    """Gaps against iterations, a panel for each data set; the legend has a place of its own."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
    *panels, rest = axes.ravel()
    for ax, (name, curves) in zip(panels, measured.items(), strict=True):
        for label, (color, style, marker) in DRAWN.items():
            iterations, gap = curves[label]
            below = gap < 1.0
            look = {
                "color": OKABE_ITO[color],
                "ls": style,
                "marker": marker,
                "label": label,
            }
            ax.plot(iterations[below], np.maximum(gap[below], SMALLEST), **look)
        ax.set(
            title=name,
            xscale="log",
            yscale="log",
            ylim=(0.7 * SMALLEST, 1.4),
            xlabel="iterations",
        )
        ax.set_xlim(0.8, 1.2 * MOST)
    for ax in (panels[0], panels[3]):
        ax.set_ylabel("certified relative gap")
    rest.axis("off")
    rest.legend(
        *panels[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize=12
    )
    figure.savefig(path, dpi=110)


def shortfalls(estimator, X, y, rounds):
    """What margins of iterates fall short by after some rounds, relative to the best."""
    problem = LinearAdapter(X, make_rows((y > 0).astype(int), 2, balanced=False))
    best = m.MaxMarginClassifier(fit_intercept=False, tol=1e-9).fit(X, y).margin_bound_
    best, algorithm, found = best / problem.radius, estimator._algorithm(), {}
    state = algorithm.start(problem)
    for _ in range(max(rounds) + 1):
        state = algorithm.step(problem, state)
        # the margins of w_t are known after the next round
        if (t := state.t - 1) in rounds:
            margin = state.measured.min_margin / problem.norm(state.measured.vector)
            found[t] = 1.0 - margin / best
    return found, best


def sentences():
    for name, X, y in sets():
        rounds = (100, 300, 1000)
        found, best = shortfalls(momentum(), X, y, rounds)
        scaled = [found[t] * best**2 * t**2 / np.log(X.shape[0]) for t in rounds]
        print(
            f"{name}: momentum, shortfall times gamma t^2 / ln n at {rounds}:",
            np.round(scaled, 3),
        )
        growth = m.GrowthSchedule(growth=1.2, period=20)
        for label, norm in (
            ("growth every 20 rounds", growth),
            ("normalized descent", None),
        ):
            found, _ = shortfalls(momentum(momentum=None, norm=norm), X, y, (1000,))
            print(
                f"{name}: {label}, short by {found[1000]:.1%} after 1000 rounds",
                flush=True,
            )


def main(path):
    measured = {}
    for name, X, y in sets():
        print(f"\n{name}", flush=True)
        found = m.compare(METHODS, X, y)
        measured[name] = {label: found.gaps(label) for label in METHODS}
    table(measured)
    picture(measured, path)


if __name__ == "__main__":
    matplotlib.use("Agg")
    # fixed numbers of rounds, on purpose
    warnings.simplefilter("ignore", ConvergenceWarning)
    if "--sentences" in sys.argv:
        sentences()
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "theory.png")
