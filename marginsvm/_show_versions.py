"""Versions and machine, for bug reports."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import numpy as np
import sklearn

from marginsvm._version import __version__

# What scikit-learn's own list leaves out, and results or speed may depend on.
_OTHER_PACKAGES = (
    "numba",
    "llvmlite",
    "dask",
    "distributed",
    "pyarrow",
    "skops",
    "rich",
)


def show_versions() -> None:
    """Print the versions of marginsvm, its dependencies and the machine, for bug reports.

    It calls :func:`sklearn.show_versions`, which prints threads and BLAS libraries. Certificates
    may use the digits of long double.

    Examples
    --------
    >>> from marginsvm import show_versions
    >>> show_versions()
    marginsvm: ...
    long double: ... bits
    ...
    """
    print(f"marginsvm: {__version__}")
    print(f"long double: {np.finfo(np.longdouble).nmant + 1} bits")
    for name in _OTHER_PACKAGES:
        try:
            print(f"{name}: {version(name)}")
        except PackageNotFoundError:
            print(f"{name}: not installed")
    sklearn.show_versions()
