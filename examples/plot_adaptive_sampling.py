"""
Margins by drawing one example at a time (Ji et al., Figure 3)
===============================================================

The full MNIST: 60,000 images, ten classes, the tangent kernel of a 2-homogeneous ReLU network
of width 128 at its initialisation. The kernel matrix (14 GB in float32) is never formed: every
draw takes one of its columns. (So does a round of the batch perceptron: adaptive sampling with
huge steps, which draws the worst row.)

With the momentum of Algorithm 1 (a heuristic), Algorithm 2 is slightly ahead of the batch
perceptron; with the parameters of Theorem 4.1, it is behind both. No intercept, as in the
paper; margins in units of the largest feature. Two to three minutes on two cores.

.. image:: /images/adaptive_sampling.png
"""

# sphinx_gallery_thumbnail_path = 'images/adaptive_sampling.png'

import sys
import threading
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from _mnist import load_mnist
from sklearn.exceptions import ConvergenceWarning

from marginsvm import AdaptiveSamplingKernelClassifier
from marginsvm.kernels import two_layer_relu_ntk

DRAWS = 2000
CACHE = 1000.0  # MB
BOUNDS = ("margin", "margin_bound")
warnings.simplefilter("ignore", ConvergenceWarning)  # no method separates the images so soon
X, y, _, _, data = load_mnist()
X = X.astype(np.float32)
kernel = two_layer_relu_ntk(width=128, random_state=0)


class Sampling(AdaptiveSamplingKernelClassifier):
    """Bounds every 20 draws: a perceptron's best margin so far depends on how often one looks."""

    def _round_end(self, n_iter):
        return n_iter + 20


common = {
    "kernel": kernel,
    "fit_intercept": False,
    "max_iter": DRAWS,
    "tol": 0.0,
    "cache_size": CACHE,
    "random_state": 0,
}
methods = {
    "momentum": Sampling(**common),
    # Huge steps leave the softmax nothing but the worst row, and the margin knows no scale.
    "batch perceptron": Sampling(step=1e9, momentum="none", **common),
    "theory": Sampling(schedule="theory", **common),
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


small = AdaptiveSamplingKernelClassifier(max_iter=2).fit(X[:50], y[:50])  # compiles the loops
watching = Path("/proc/self/statm").exists()
for name, clf in methods.items():
    begin = time.perf_counter()
    peak = peak_while(lambda clf=clf: clf.fit(X, y)) if watching else clf.fit(X, y) and np.nan
    clf.seconds = time.perf_counter() - begin
    best, bound = (clf.history_[key][-1] / clf.certificate_.radius for key in BOUNDS)
    text = f"{name}: {best:.5f} <= best margin <= {bound:.5f}"
    print(f"{text} (kernel diagonal 1), {clf.seconds:.0f} s, memory +{peak:.0f} MB", flush=True)
    columns = clf.n_kernel_evaluations_ / len(X)
    print(f"  hit rate {clf.cache_hit_rate_:.2f}, {columns:.0f} x N kernel values", flush=True)

# %%
# Margins against draws, and against seconds.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for (name, clf), color in zip(methods.items(), ("C0", "C1", "C2"), strict=True):
    history = clf.history_
    margin = history["margin"] / clf.certificate_.radius
    for ax, x in zip(axes, ("n_iter", "seconds"), strict=True):
        ax.plot(history[x], margin, label=name, color=color)
axes[0].set(xlabel="draws, one kernel column each", ylabel="best margin so far")
axes[1].set(xlabel="seconds")
axes[0].set_ylim(-0.15, 0.005)
axes[0].axhline(0, color="0.7", linewidth=0.8)
axes[1].axhline(0, color="0.7", linewidth=0.8)
axes[0].legend(loc="center right")
figure.suptitle(f"{data}, {len(X)} images, tangent kernel of width 128 (diagonal at most 1)")
target = sys.argv[1] if len(sys.argv) > 1 else "adaptive_sampling.png"
figure.savefig(target, dpi=110)
print(target)
