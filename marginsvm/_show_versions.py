"""What a report of an error should say of the machine and of what is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import numpy as np
import sklearn

from marginsvm._version import __version__

# What scikit-learn's own list leaves out, and results or speed may depend on.
_OTHER_PACKAGES = ("numba", "llvmlite", "dask", "distributed", "pyarrow", "skops", "rich")


def show_versions() -> None:
    """Print the versions of marginsvm, of what it uses, and of the machine, for reports of errors.

    Threads and libraries of BLAS are printed by :func:`sklearn.show_versions`, which is called; the
    digits of long double are those that certificates may use besides.

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
