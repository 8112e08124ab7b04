"""
Kernels of a network in training (Ji et al., section 6, Figure 4)
==================================================================

A small AlexNet-style network learns 128 images of CIFAR-10. At several epochs, its tangent
kernel is taken: the features of x are the Jacobian of all ten outputs in all parameters,
flattened and l2-normalised. Algorithm 2 maximises the margin on each kernel, and its
predictors are tested on all the 2,000 test images that the data has, after up to 4,000
draws. All of this five times: a seed picks the training images, the network's
initialisation and its batches, and the draws.

The paper shows one seed with which later kernels are better and one with which they are
not. On the right, each seed's test error with a later kernel minus that with the first one,
with the standard error of that difference over the test images: what is within two of them
of zero says nothing.

The Jacobian itself (10 x 0.4 million numbers an image) is never formed: a dense layer's gradient is
delta x', so its part of K is a product of two small Gram matrices; only the convolutions'
gradients (60 thousand numbers) are written out, one output at a time. Needs PyTorch (its CPU
build will do) and MARGINSVM_DATA with cifar10_part.npz; about twenty minutes on two cores.

.. image:: /images/kernel_evolution.png
"""

# sphinx_gallery_thumbnail_path = 'images/kernel_evolution.png'

import os
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn
from torch.nn.functional import cross_entropy, unfold

from marginsvm import AdaptiveSamplingKernelClassifier

EPOCHS = (0, 400, 800, 1200, 1600)  # those of the paper
SEEDS = (0, 1, 2, 3, 4)
DRAWS = np.r_[50, 100, 150, 200, 300, np.arange(400, 4001, 200)]


def cifar(folder, seed, n_train=128, n_test=2000):
    """Images as centred float tensors (n, 3, 32, 32); ``seed`` picks the training examples."""
    z = np.load(Path(folder) / "cifar10_part.npz")
    n_all = len(z["y_train"])
    chosen = np.random.RandomState(seed).permutation(n_all)[:n_train]
    X, X_test = (
        torch.tensor(A.reshape(-1, 3, 32, 32) / 127.5 - 1, dtype=torch.float32)
        for A in (z["X_train"][chosen], z["X_test"][:n_test])
    )
    labels = (z["y_train"][chosen], z["y_test"][:n_test])
    y, y_test = (torch.tensor(b.astype(np.int64)) for b in labels)
    return X, y, X_test, y_test


def small_alexnet():
    """AlexNet's plan (large strided filters first, pooling, three dense layers), CIFAR's size."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def epochs_of_training(X, y, seed, epochs=EPOCHS, lr=0.01, batch=32):
    """Plain mini-batch SGD; yields the network at each of ``epochs``."""
    torch.manual_seed(seed)
    net = small_alexnet()
    sgd = torch.optim.SGD(net.parameters(), lr=lr)
    for epoch in range(max(epochs) + 1):
        if epoch in epochs:
            yield epoch, net
        for rows in torch.randperm(len(y)).split(batch):
            sgd.zero_grad()
            cross_entropy(net(X[rows]), y[rows]).backward()
            sgd.step()


def traced(net, X):
    """(layer, its input, its output) for the layers that have parameters, and the net's output."""
    trace = []
    for layer in net:
        Z = layer(X)
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            trace.append((layer, X.detach(), Z))
        X = Z
    return trace, X


def layer_factors(layer, H, delta):
    """Gradient of one output in the layer's parameters: factors whose Gram matrices multiply."""
    if isinstance(layer, nn.Linear):
        return delta, torch.cat([H, torch.ones(len(H), 1)], 1)
    patches = unfold(H, layer.kernel_size, padding=layer.padding, stride=layer.stride)
    delta = delta.flatten(2)
    weight = torch.bmm(delta, patches.transpose(1, 2)).flatten(1)
    return torch.cat([weight, delta.sum(2)], 1), None


def jacobian_factors(net, X):
    """Factors for every output and layer."""
    trace, F = traced(net, X)
    for o in range(F.shape[1]):
        deltas = torch.autograd.grad(F[:, o].sum(), [Z for _, _, Z in trace], retain_graph=True)
        for (layer, H, _), delta in zip(trace, deltas, strict=True):
            yield layer_factors(layer, H, delta)


def tangent_kernels(net, X, X_test, block=500):
    """K_train (n, n) and K_test (n_test, n) of the normalised features, float64."""
    train = list(jacobian_factors(net, X))
    K, _ = gram(net, X, train)
    norm = K.diag().sqrt()
    K_test = []
    for X_b in X_test.split(block):
        K_b, square = gram(net, X_b, train)
        K_test.append(K_b / square.sqrt()[:, None] / norm)
    return (K / norm[:, None] / norm).numpy(), torch.cat(K_test).numpy()


def gram(net, X, train):
    """Kernel of X with the training examples, and the squared norms of X's features."""
    K = torch.zeros(len(X), len(train[0][0]), dtype=torch.float64)
    square = torch.zeros(len(X), dtype=torch.float64)
    for (A, B), (A_train, B_train) in zip(jacobian_factors(net, X), train, strict=True):
        part, own = A @ A_train.T, (A * A).sum(1)
        if B is not None:
            part, own = part * (B @ B_train.T), own * (B * B).sum(1)
        K += part
        square += own
    return K, square


# %%
# Which test images the predictor of each kernel misjudges, draw by draw.


def misjudged(K, y, K_test, y_test, seed):
    """Boolean array (draws, test images); a warm start plays the draws in between.

    The predictor is w_t until it separates the training images, then the one of the largest
    margin so far.
    """
    clf = AdaptiveSamplingKernelClassifier(
        kernel="precomputed", fit_intercept=False, tol=0.0, warm_start=True, random_state=seed
    )
    wrong = [clf.set_params(max_iter=int(t)).fit(K, y).predict(K_test) != y_test for t in DRAWS]
    print(f"  {clf.certificate_}", flush=True)
    return np.array(wrong)


warnings.simplefilter("ignore", ConvergenceWarning)  # fixed numbers of draws, on purpose
wrong = np.empty((len(SEEDS), len(EPOCHS), len(DRAWS), 2000), dtype=bool)
network = np.empty((len(SEEDS), len(EPOCHS)))
for s, seed in enumerate(SEEDS):
    X, y, X_test, y_test = cifar(os.environ["MARGINSVM_DATA"], seed)
    for e, (epoch, net) in enumerate(epochs_of_training(X, y, seed)):
        K, K_test = tangent_kernels(net, X, X_test)
        wrong[s, e] = misjudged(K, y.numpy(), K_test, y_test.numpy(), seed)
        with torch.no_grad():
            network[s, e] = 100 * float((net(X_test).argmax(1) != y_test).double().mean())
        last = 100 * wrong[s, e, -1].mean()
        print(f"seed {seed}, epoch {epoch}: kernel {last:.1f} %, network {network[s, e]:.1f} %")

# %%
# Means over the seeds with the standard errors of these means; and seed by seed.
COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7")  # of Okabe and Ito
LINES = ("-", (0, (6, 1.5)), "-.", (0, (1, 1.2)), (0, (4, 1, 1, 1, 1, 1)))
figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.8), layout="constrained")
errors = 100 * wrong.mean(axis=3)  # seeds, epochs, draws
for e, epoch in enumerate(EPOCHS):
    mean, bar = errors[:, e].mean(axis=0), errors[:, e].std(axis=0, ddof=1) / np.sqrt(len(SEEDS))
    style = {"errorevery": (2 * e, 10), "capsize": 2, "lw": 1.4, "color": COLORS[e], "ls": LINES[e]}
    left.errorbar(DRAWS, mean, bar, label=f"kernel of epoch {epoch}", **style)
left.set(xlabel="draws of Algorithm 2", ylabel="test error (%)")
left.set_title(f"mean of {len(SEEDS)} seeds, bars: its standard error")
against_first = 100.0 * (wrong[:, :, -1].astype(float) - wrong[:, :1, -1])
for s, seed in enumerate(SEEDS):
    change = against_first[s, 1:]
    bar = change.std(axis=1, ddof=1) / np.sqrt(change.shape[1])
    where = np.array(EPOCHS[1:]) + 24 * (s - 2)
    look = {"fmt": "osD^v"[s], "color": COLORS[s], "ms": 5, "capsize": 2, "label": f"seed {seed}"}
    right.errorbar(where, change.mean(axis=1), bar, **look)
    text = ", ".join(f"{m:+.1f} +- {b:.1f}" for m, b in zip(change.mean(axis=1), bar, strict=True))
    print(f"seed {seed}: later kernels against epoch 0, percentage points: {text}")
right.axhline(0, color="0.5", lw=0.8)
right.set(xlabel="epoch the kernel is taken at", xticks=EPOCHS[1:])
right.set_ylabel("test error less that of epoch 0 (percentage points)")
right.set_title(f"each seed after {DRAWS[-1]} draws, bars: standard error")
for ax in (left, right):
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, fontsize="small")
figure.suptitle("CIFAR-10 (128 training, 2000 test images): kernels of a small AlexNet in training")
target = sys.argv[1] if len(sys.argv) > 1 else "kernel_evolution.png"
figure.savefig(target, dpi=110)
print(target)
