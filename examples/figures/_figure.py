"""What the scripts of this folder share: their data, and where they draw."""

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def stored(name):
    """A data set of the folder MARGINSVM_DATA; None without it."""
    path = Path(os.environ.get("MARGINSVM_DATA", "")) / f"{name}.npz"
    return np.load(path) if path.is_file() else None


def handwritten_digits():
    """Name of the set, training images with pixels in [0, 1], labels, test images, labels.

    MNIST, or scikit-learn's 1,797 images, each second one to test on.
    """
    z = stored("mnist")
    if z is not None:
        X, X_test = (z[key].reshape(len(z[key]), -1) for key in ("X_train", "X_test"))
        return "MNIST", X / 255.0, z["y_train"], X_test / 255.0, z["y_test"]
    print("no MNIST here (MARGINSVM_DATA is unset): scikit-learn's digits instead")
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    return "8 x 8 digits", X[::2], y[::2], X[1::2], y[1::2]


def save(figure, script):
    """Write NAME.png for NAME.py, or the file that the command line names."""
    target = sys.argv[1] if len(sys.argv) > 1 else Path(script).with_suffix(".png").name
    figure.savefig(target, dpi=110)
    print(target)
