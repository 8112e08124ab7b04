"""
Margins by drawing one example at a time (Ji et al., Figure 3)
===============================================================

The full MNIST: 60,000 images, ten classes, the tangent kernel of a 2-homogeneous ReLU network
of width 128 at its initialisation. The kernel matrix (14 GB in float32) is never formed: every
draw takes one of its columns, and so does a round of the batch perceptron.

With the momentum of Algorithm 1 (a heuristic), Algorithm 2 is ahead of the batch perceptron; with
the parameters of Theorem 4.1, it is behind both. Pale lines are the margins of the iterates, the
others the best so far. On the right, the same over more draws, until momentum separates the images.
97 % of momentum's columns are in a cache of a gigabyte, and half of the perceptron's; the
theory's draws hardly repeat.

No intercept; multiclass margins (section 5.2) in units of the largest feature. About twenty
minutes on two cores.

Drawn: ``docs/images/adaptive_sampling.png``.
"""

import os
import sys
import threading
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.exceptions import ConvergenceWarning

from marginsvm import AdaptiveSamplingKernelClassifier
from marginsvm.kernels import two_layer_relu_ntk
from marginsvm.papers.adaptive_sampling import AdaptiveSampling

DRAWS = 30_000  # momentum separates the images after 25,000 or so
THEORY_DRAWS = 6000  # each takes a column of its own, 30 to 50 ms
CACHE = 1000.0  # MB
BOUNDS = ("margin", "margin_bound")
warnings.simplefilter(
    "ignore", ConvergenceWarning
)  # no method separates the images so soon
path = Path(os.environ.get("MARGINSVM_DATA", "")) / "mnist.npz"
if path.is_file():
    stored = np.load(path)
    X, y = stored["X_train"].reshape(60000, -1), stored["y_train"]
else:
    X, y = fetch_openml("mnist_784", return_X_y=True, as_frame=False)
    X, y = X[:60000], y[:60000].astype(int)
X = (X / 255.0).astype(np.float32)
kernel = two_layer_relu_ntk(width=128, random_state=0)


class Sampling(AdaptiveSamplingKernelClassifier):
    """Adaptive sampling that looks at its bounds more often, and notes each margin in ``path``."""

    def _algorithm(self):
        self.path = path = []

        class Draws(AdaptiveSampling):
            def n_rounds(
                self, n_iter
            ):  # the best is the better, the more often one looks
                return 20 if n_iter < 4000 else 100

            def candidates(self, problem, state):
                for candidate in super().candidates(problem, state):
                    norm = problem.norm(candidate.vector)
                    if candidate.min_margin is not None and norm > 0:
                        path.append(candidate.min_margin / norm * problem.radius)
                    yield candidate

        return Draws(**vars(super()._algorithm()))


common = {
    "kernel": kernel,
    "fit_intercept": False,
    "tol": 0.0,
    "cache_size": CACHE,
    "random_state": 0,
}
methods = {
    "momentum": Sampling(max_iter=DRAWS, **common),
    # With huge steps, the softmax draws only the row of smallest margin; the margin does not
    # depend on the scale.
    "batch perceptron": Sampling(step=1e9, momentum=None, max_iter=DRAWS, **common),
    "theory (Theorem 4.1)": Sampling(
        schedule="theory", max_iter=THEORY_DRAWS, **common
    ),
}


# %%
# Memory is watched while a method runs: beyond X, the cache and some N x k arrays.


def resident():
    """Memory of this process that is in use now, MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def peak_while(work):
    """Largest growth of the memory in use while ``work`` runs, MB."""
    base, peak, done = resident(), [0.0], threading.Event()

    def watch():
        while not done.wait(0.02):
            peak[0] = max(peak[0], resident() - base)

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return peak[0]


small = AdaptiveSamplingKernelClassifier(max_iter=2).fit(
    X[:50], y[:50]
)  # compiles the loops
watching = Path("/proc/self/statm").exists()
for name, clf in methods.items():
    begin = time.perf_counter()
    peak = (
        peak_while(lambda clf=clf: clf.fit(X, y))
        if watching
        else clf.fit(X, y) and np.nan
    )
    clf.seconds = time.perf_counter() - begin
    best, bound = (clf.history_[key][-1] / clf.certificate_.radius for key in BOUNDS)
    text = f"{name}: {best:.5f} <= best margin <= {bound:.5f}"
    print(
        f"{text} (kernel diagonal 1), {clf.seconds:.0f} s, memory +{peak:.0f} MB",
        flush=True,
    )
    columns = clf.n_kernel_evaluations_ / len(X)
    print(
        f"  hit rate {clf.cache_hit_rate_:.2f}, {columns:.0f} x N kernel values",
        flush=True,
    )

# %%
# Margins against draws: the first of them, and all.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
looks = {
    "momentum": ("#0072B2", "-"),
    "batch perceptron": ("#D55E00", (0, (6, 1.5))),
    "theory (Theorem 4.1)": ("#000000", (0, (1, 1.5))),
}  # blue, red and black of Okabe and Ito, who chose them for every kind of colour vision
for name, clf in methods.items():
    history, radius, (color, style) = clf.history_, clf.certificate_.radius, looks[name]
    positive = history["n_iter"][history["margin"] > 0]
    print(
        f"{name}: separates after {positive[0] if positive.size else 'more than all'} draws"
    )
    for ax in axes:
        path = np.divide(clf.path, radius)
        ax.plot(history["n_iter"], path, color=color, lw=1.8, alpha=0.4)
        best = history["margin"] / radius
        ax.plot(history["n_iter"], best, label=name, color=color, ls=style, lw=1.2)
axes[0].set(xlim=(0, 4000), ylim=(-0.15, 0.005), title="the first 4,000 draws")
axes[1].set(xlim=(0, DRAWS), ylim=(-0.008, 0.0008), title="all, and margins near zero")
for ax in axes:
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set(
        xlabel="draws, one kernel column each", ylabel="margin (pale: of each iterate)"
    )
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=3)
figure.suptitle(
    f"MNIST, {len(X)} images, tangent kernel of width 128, features of norm at most 1"
)
target = sys.argv[1] if len(sys.argv) > 1 else "adaptive_sampling.png"
figure.savefig(target, dpi=110)
print(target)
