"""
Kernels of a network in training (Ji et al., section 6, Figure 4)
==================================================================

A small AlexNet-style network learns 128 images of CIFAR-10. At several epochs, its tangent
kernel is taken: the features of x are the Jacobian of all ten outputs in all parameters,
flattened and l2-normalised. Algorithm 2 maximises the margin on each kernel, and its
predictors are tested on 2,000 images, after up to 4,000 draws.

A panel for each seed, which picks the training images, the initialisation, the batches and the
draws: the paper's 100 and 13579, and five more; the test error of the network itself is a grey
line. In the last panel are the test errors with a later kernel less those with the first one, with
standard errors: what is within two of them of zero says nothing. What is found, and what differs
from the paper: ``docs/statements.rst``.

The Jacobian (10 x 0.4 million numbers an image) is never formed: a dense layer's part of K is a
product of two small Gram matrices; only the convolutions' gradients are written out. Needs PyTorch
(its CPU build will do) and MARGINSVM_DATA with cifar10_part.npz; about half an hour. Without them,
a network of two layers learns 128 of scikit-learn's digits, for two seeds, in seconds.

Drawn: ``docs/images/kernel_evolution.png``.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from _figure import save, stored
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

try:
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, unfold
except ImportError:
    torch = None

from marginsvm import AdaptiveSamplingKernelClassifier

EPOCHS = (0, 400, 800, 1200, 1600)  # those of the paper
CIFAR = stored("cifar10_part") if torch else None
SEEDS = (100, 13579, 0, 1, 2, 3, 4) if CIFAR else (100, 13579)  # the paper's, and more
DRAWS = np.r_[50, 100, 150, 200, 300, np.arange(400, 4001, 200)]


def cifar(z, seed, n_train=128, n_test=2000):
    """Images as centred float tensors (n, 3, 32, 32); ``seed`` picks the training examples."""
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
        deltas = torch.autograd.grad(
            F[:, o].sum(), [Z for _, _, Z in trace], retain_graph=True
        )
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
        kernel="precomputed",
        fit_intercept=False,
        tol=0.0,
        warm_start=True,
        random_state=seed,
    )
    wrong = [
        clf.set_params(max_iter=int(t)).fit(K, y).predict(K_test) != y_test
        for t in DRAWS
    ]
    print(f"  {clf.certificate_}", flush=True)
    return np.array(wrong)


def kernels_of_alexnet(seed):
    """For each epoch K, K_test, the network's test errors and training loss; first the labels."""
    torch.set_num_threads(1)  # sums in one order, however many processors there are
    X, y, X_test, y_test = cifar(CIFAR, seed)
    yield y.numpy(), y_test.numpy()
    for _, net in epochs_of_training(X, y, seed):
        K, K_test = tangent_kernels(net, X, X_test)
        with torch.no_grad():
            wrong = (net(X_test).argmax(1) != y_test).numpy()
            yield K, K_test, wrong, float(cross_entropy(net(X), y))


def kernels_of_two_layers(seed, width=256, rate=0.3, batch=32):
    """The same of a network relu(X V') W' and scikit-learn's digits.

    The kernel of all ten outputs is, but for the norms of the features,
    ``10 relu relu' + (X X') * sum_o (active W_o) (active W_o)'``.
    """
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1)[:, None]
    order = rng.permutation(len(X))
    train, test = order[:128], order[128:]
    V = rng.standard_normal((width, X.shape[1]))
    W = rng.standard_normal((10, width)) / np.sqrt(width)
    yield y[train], y[test]
    for epoch in range(max(EPOCHS) + 1):
        if epoch in EPOCHS:
            H = np.maximum(X @ V.T, 0.0)
            active = (H > 0) * np.sqrt((W**2).sum(axis=0))
            K = 10 * H @ H[train].T + (X @ X[train].T) * (active @ active[train].T)
            square = 10 * (H**2).sum(axis=1) + (active**2).sum(axis=1)
            K /= np.sqrt(np.outer(square, square[train]))
            F = H @ W.T
            loss = log_loss(y[train], softmax(F[train], axis=1), labels=range(10))
            yield K[train], K[test], F[test].argmax(axis=1) != y[test], loss
        for rows in np.array_split(rng.permutation(train), len(train) // batch):
            H = np.maximum(X[rows] @ V.T, 0.0)
            slope = (softmax(H @ W.T, axis=1) - np.eye(10)[y[rows]]) / len(rows)
            V -= rate * ((slope @ W) * (H > 0)).T @ X[rows]
            W -= rate * slope.T @ H


def of_seed(seed):
    """Misjudged test images (epochs, draws, images), and the network's own (epochs, images)."""
    # fixed numbers of draws, on purpose
    warnings.simplefilter("ignore", ConvergenceWarning)
    found = (kernels_of_alexnet if CIFAR else kernels_of_two_layers)(seed)
    y, y_test = next(found)
    wrong, network = [], []
    for epoch, (K, K_test, own, training) in zip(EPOCHS, found, strict=True):
        wrong.append(misjudged(K, y, K_test, y_test, seed))
        network.append(own)
        print(
            f"seed {seed}, epoch {epoch}: test error of the kernel "
            f"{100 * wrong[-1][-1].mean():.1f} %, of the network {100 * own.mean():.1f} % "
            f"(training loss {training:.2g})",
            flush=True,
        )
    return np.array(wrong), np.array(network)


if __name__ == "__main__":
    if not CIFAR:
        print(
            "no PyTorch or no CIFAR-10 (MARGINSVM_DATA) here: digits, two layers, two seeds"
        )
    found = [of_seed(seed) for seed in SEEDS]
    wrong, network = (100.0 * np.array(part) for part in zip(*found, strict=True))

# %%
# A panel for each seed, and all seeds after the last draw.
COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = ("-", (0, (6, 1.5)), "-.", (0, (1, 1.2)), (0, (4, 1, 1, 1, 1, 1)))


def compared(change):
    """Mean over the test images, and its standard error."""
    return change.mean(axis=-1), change.std(axis=-1, ddof=1) / np.sqrt(change.shape[-1])


def panel(ax, seed, wrong, network):
    """Test error against draws, a curve for each kernel, and the trained network's own."""
    for e, epoch in enumerate(EPOCHS):
        label = f"kernel of epoch {epoch}"
        ax.plot(
            DRAWS,
            wrong[e].mean(axis=1),
            label=label,
            lw=1.4,
            color=COLORS[e],
            ls=LINES[e],
        )
    label = f"the network itself, epoch {EPOCHS[-1]}"
    ax.axhline(network[-1].mean(), color="0.6", lw=2.0, zorder=0, label=label)
    ax.set(ylim=(68, 90) if CIFAR else (5, 30))
    ax.set(title=f"seed {seed}", xticks=range(0, 4001, 1000))


def differences(ax, wrong):
    """Each seed after the last draw, against its first kernel."""
    for s, seed in enumerate(SEEDS):
        mean, bar = compared(wrong[s, 1:, -1] - wrong[s, :1, -1])
        where = np.array(EPOCHS[1:]) + 38 * (s - (len(SEEDS) - 1) / 2)
        look = {"fmt": "osD^v<>"[s], "color": COLORS[s], "ms": 4, "capsize": 2, "lw": 1}
        ax.errorbar(where, mean, bar, label=f"seed {seed}", **look)
        text = ", ".join(f"{m:+.1f} +- {b:.1f}" for m, b in zip(mean, bar, strict=True))
        print(f"seed {seed}: later kernels against epoch 0, percentage points: {text}")
    ax.axhline(0, color="0.5", lw=0.8)
    ax.set(
        xlabel="epoch of the kernel",
        xticks=EPOCHS[1:],
    )
    if CIFAR:
        ax.set(ylim=(-5, 15), yticks=range(-5, 16, 5))
    ax.set_ylabel("change from epoch 0 (percentage points)", fontsize="small")
    ax.set_title(f"test error after {DRAWS[-1]} draws")
    ax.legend(fontsize="x-small", ncols=3, loc="upper center", columnspacing=1.0)


if __name__ == "__main__":
    shape, size = ((4, 2), (7.5, 13.5)) if CIFAR else ((1, 3), (12, 4.5))
    figure, axes = plt.subplots(*shape, figsize=size, layout="constrained")
    axes = axes.ravel()
    for s, (seed, ax) in enumerate(zip(SEEDS, axes[:-1], strict=True)):
        panel(ax, seed, wrong[s], network[s])
        ax.set(xlabel="draws of Algorithm 2", ylabel="test error (%)")
        mean, bar = compared(wrong[s, -1, -1] - network[s, -1])
        print(
            f"seed {seed}: last kernel less the network itself: {mean:+.1f} +- {bar:.1f}"
        )
    differences(axes[-1], wrong)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
    )
    figure.suptitle(
        "CIFAR-10, 128 training and 2000 test images: kernels of a small AlexNet"
        if CIFAR
        else "Digits, 128 training and 1669 test images: kernels of a network of two layers"
    )
    save(figure, __file__)
