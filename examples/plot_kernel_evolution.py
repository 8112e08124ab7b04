"""
Kernels of a network in training (Ji et al., section 6, Figure 4)
==================================================================

A small AlexNet-style network learns 128 images of CIFAR-10. At several epochs, its tangent
kernel is taken: the features of x are the Jacobian of all ten outputs in all parameters,
flattened and l2-normalised. The margins of each kernel are maximised by adaptive sampling,
and the predictors tested. Whether later kernels are better depends on the seed: features
that are learned may fail to help.

The Jacobian itself (10 x 0.4 million numbers an image) is never formed: a dense layer's gradient is
delta x', so its part of K is a product of two small Gram matrices; only the convolutions'
gradients (60 thousand numbers) are written out, one output at a time. Needs PyTorch (its CPU
build will do) and MARGINSVM_DATA with cifar10_part.npz; five minutes on two cores.

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

EPOCHS = (0, 400, 800, 1200, 1600)
N_TEST = 500


def cifar(folder, seed, n_train=128, n_test=N_TEST):
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
# Margins and test errors of the max-margin predictor on the kernel of each epoch.

warnings.simplefilter("ignore", ConvergenceWarning)
folder = os.environ["MARGINSVM_DATA"]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for seed in (0, 1):
    X, y, X_test, y_test = cifar(folder, seed)
    errors, margins, own = [], [], []
    for epoch, net in epochs_of_training(X, y, seed):
        K, K_test = tangent_kernels(net, X, X_test)
        clf = AdaptiveSamplingKernelClassifier(
            kernel="precomputed", fit_intercept=False, tol=1e-2, random_state=0
        ).fit(K, y.numpy())
        errors.append(100 * (1 - clf.score(K_test, y_test.numpy())))
        margins.append(clf.margin_)
        with torch.no_grad():
            own.append(100 * float((net(X_test).argmax(1) != y_test).double().mean()))
        print(f"seed {seed}, epoch {epoch}: kernel {errors[-1]:.1f} %, network {own[-1]:.1f} %,")
        print(f"  {clf.certificate_}, {clf.n_iter_} draws", flush=True)
    (line,) = left.plot(EPOCHS, errors, "o-", label=f"seed {seed}: kernel")
    left.plot(EPOCHS, own, "--", lw=1, color=line.get_color(), label=f"seed {seed}: network")
    right.plot(EPOCHS, margins, "o-", label=f"seed {seed}")
left.set(xlabel="epoch the kernel is taken at", ylabel="test error (%)")
right.set(xlabel="epoch the kernel is taken at", ylabel="margin (unit features)", ylim=(0, None))
left.legend()
right.legend()
figure.suptitle("CIFAR-10, 128 training images: kernels of a network in training")
target = sys.argv[1] if len(sys.argv) > 1 else "kernel_evolution.png"
figure.savefig(target, dpi=110)
print(target)
