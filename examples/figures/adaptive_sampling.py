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
minutes on two cores; without MNIST (MARGINSVM_DATA), scikit-learn's 899 digits and fewer draws, in
seconds.

Drawn: ``docs/images/adaptive_sampling.png``.
"""

import threading
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from _figure import handwritten_digits, save
from sklearn.exceptions import ConvergenceWarning

from marginsvm import AdaptiveSamplingKernelClassifier
from marginsvm.kernels import two_layer_relu_ntk
from marginsvm.papers.adaptive_sampling import AdaptiveSampling

CACHE = 1000.0  # MB
BOUNDS = ("margin", "margin_bound")
# no method separates the images so soon
warnings.simplefilter("ignore", ConvergenceWarning)
name, X, y, *_ = handwritten_digits()
X = X.astype(np.float32)
if name == "MNIST":
    draws = 30_000  # momentum separates the images after 25,000 or so
    theory_draws, first = 6000, 4000  # each takes a column of its own, 30 to 50 ms
else:
    draws = theory_draws = 4000
    first = 1000
kernel = two_layer_relu_ntk(width=128, random_state=0)


class Sampling(AdaptiveSamplingKernelClassifier):
    """Adaptive sampling that looks at its bounds more often, and notes each margin in ``path``."""

    def _algorithm(self):
        self.path = path = []

        class Draws(AdaptiveSampling):
            # the best is the better, the more often one looks
            def n_rounds(self, n_iter):
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
    "momentum": Sampling(max_iter=draws, **common),
    # With huge steps, the softmax draws only the row of smallest margin; the margin does not
    # depend on the scale.
    "batch perceptron": Sampling(step=1e9, momentum=None, max_iter=draws, **common),
    "theory (Theorem 4.1)": Sampling(
        schedule="theory", max_iter=theory_draws, **common
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


# compile the loops
small = AdaptiveSamplingKernelClassifier(max_iter=2).fit(X[:50], y[:50])
watching = Path("/proc/self/statm").exists()
for method, clf in methods.items():
    begin = time.perf_counter()
    peak = (
        peak_while(lambda clf=clf: clf.fit(X, y))
        if watching
        else clf.fit(X, y) and np.nan
    )
    clf.seconds = time.perf_counter() - begin
    best, bound = (clf.history_[key][-1] / clf.certificate_.radius for key in BOUNDS)
    text = f"{method}: {best:.5f} <= best margin <= {bound:.5f}"
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
margins = {}
for method, clf in methods.items():
    history, radius = clf.history_, clf.certificate_.radius
    color, style = looks[method]
    positive = history["n_iter"][history["margin"] > 0]
    print(
        f"{method}: separates after {positive[0] if positive.size else 'more than all'} draws"
    )
    best = history["margin"] / radius
    margins[method] = history["n_iter"], best
    for ax in axes:
        path = np.divide(clf.path, radius)
        ax.plot(history["n_iter"], path, color=color, lw=1.8, alpha=0.4)
        ax.plot(history["n_iter"], best, label=method, color=color, ls=style, lw=1.2)
few = name != "MNIST"  # these are separated soon, with a wider margin
axes[0].set(xlim=(0, first), ylim=(-0.15, 0.05 if few else 0.005))
axes[0].set_title(f"the first {first:,} draws")
axes[1].set(xlim=(0, draws), ylim=(-0.01, 0.05) if few else (-0.008, 0.0008))
axes[1].set_title("all, and margins near zero")
for ax in axes:
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set(
        xlabel="draws, one kernel column each", ylabel="margin (pale: of each iterate)"
    )
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=3)
figure.suptitle(
    f"{name}, {len(X)} images, tangent kernel of width 128, features of norm at most 1"
)
save(figure, __file__)
