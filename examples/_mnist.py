"""MNIST for the examples: from MARGINSVM_DATA, else OpenML, else scikit-learn's digits."""

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml, load_digits
from sklearn.model_selection import train_test_split


def load_mnist():
    """Return X_train, y_train, X_test, y_test (pixels in [0, 1]) and the data's name."""
    path = Path(os.environ.get("MARGINSVM_DATA", "")) / "mnist.npz"
    if path.is_file():
        z = np.load(path)
        X, X_test = (z[key].reshape(len(z[key]), -1) / 255.0 for key in ("X_train", "X_test"))
        return X, z["y_train"], X_test, z["y_test"], "MNIST"
    try:
        X, y = fetch_openml("mnist_784", return_X_y=True, as_frame=False)
        X, y = X / 255.0, y.astype(int)
        return X[:60000], y[:60000], X[60000:], y[60000:], "MNIST"
    except OSError:
        print("no MNIST here (MARGINSVM_DATA is unset, no network): scikit-learn's digits instead")
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X / 16.0, y, random_state=0, stratify=y)
        return X, y, X_test, y_test, "digits (8 x 8)"


def pair(X, y, negative, positive):
    """Keep two of the classes."""
    kept = (y == negative) | (y == positive)
    return X[kept], y[kept]
