"""What X may be besides arrays and CSR matrices: arrays of other libraries, memory maps, objects.

Arrays of other libraries are taken with scikit-learn's ``array_api_dispatch`` only; without it,
they are converted to NumPy as everything array-like is, or refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils._array_api import _is_numpy_namespace, get_namespace_and_device

from marginsvm._typing import Array
from marginsvm.problem.matrix import is_foreign, on_host

try:
    from sklearn.utils._array_api import check_same_namespace
except ImportError:  # scikit-learn before 1.9, where arrays that do not go together say less

    def check_same_namespace(X: Any, estimator: Any, *, attribute: str, method: str) -> None:
        """Leave it to the arrays' library."""


_CONVERT = "convert X to NumPy, as by X.cpu().numpy() for torch"


@dataclass(frozen=True)
class Device:
    """A device that has float64, and the array library that it is used by.

    Attributes
    ----------
    xp : module
        Namespace of the library, as scikit-learn wraps it.
    device : object
        As the library names it.
    """

    xp: Any
    device: Any

    @property
    def float_types(self) -> list[Any]:
        """Types that examples may have, the widest first."""
        names = ("float64", "float32", "float16", "bfloat16")
        return [getattr(self.xp, name) for name in names if hasattr(self.xp, name)]

    def put(self, array: Any) -> Any:
        """Copy an array of NumPy to the device."""
        if is_foreign(array):
            return array
        # in C order: libraries may share memory, or want to write
        return self.xp.asarray(np.array(array, order="C"), device=self.device)


def place_of(X: Any) -> Device | None:
    """Where an array lies that scikit-learn is to dispatch on; None: it is for NumPy."""
    if not is_foreign(X):
        return None
    xp, dispatched, device = get_namespace_and_device(X)
    return Device(xp, device) if dispatched and not _is_numpy_namespace(xp) else None


def refuse_foreign(name: str, X: Any) -> None:
    """Refuse an array on a device, for what computes with NumPy alone.

    Parameters
    ----------
    name : str
        Of the estimator or function, for the message.
    X : object

    Raises
    ------
    TypeError
        If scikit-learn would dispatch on it.
    """
    place = place_of(X)
    if place is not None:
        raise TypeError(f"{name} computes with NumPy, but X is {_words(X, place)}: {_CONVERT}")


def place_of_training(estimator: Any, X: Any) -> Device | None:
    """Where an estimator fits these examples; None: on the host.

    Raises
    ------
    TypeError
        If the examples are on a device, and the estimator needs them on the host; or if the device
        has no float64.
    """
    place, name = place_of(X), type(estimator).__name__
    if place is None:
        return None
    if not estimator._algorithm().requires.by_passes:
        raise TypeError(
            f"{name} moves from example to example in compiled loops and needs them in NumPy, but "
            f"X is {_words(X, place)}: {_CONVERT}, or use MaxMarginClassifier or "
            "MomentumMarginClassifier, whose passes run where X is"
        )
    if callable(estimator.kernel):
        raise TypeError(
            f"{name}: a callable kernel is given arrays of NumPy, but X is {_words(X, place)}: "
            f"name one of scikit-learn's kernels, or {_CONVERT}"
        )
    if str(getattr(X, "layout", "torch.strided")) != "torch.strided":
        raise TypeError(
            f"{name}: X is {_words(X, place)} and sparse, but only dense arrays are taken on a "
            "device: pass X.to_dense(), or a CSR array of SciPy"
        )
    types = place.xp.__array_namespace_info__().dtypes(kind="real floating", device=place.device)
    if "float64" not in types:
        raise TypeError(
            f"{name}: X is {_words(X, place)}, which has no float64; rounded to float32, the "
            f"predictor would not be the one that is certified: {_CONVERT}"
        )
    return place


def plain(X: Any, place: Device | None) -> Any:
    """Examples as scikit-learn validates them: tensors without a record for gradients."""
    return X.detach() if place is not None and hasattr(X, "detach") else X  # of torch


def types_of(place: Device | None) -> list[Any]:
    """Types of floating-point numbers that examples may have, the default first."""
    return [np.float64, np.float32] if place is None else place.float_types


def fitted_there(value: Any, place: Device | None) -> Any:
    """A fitted array where the examples are."""
    return on_host(value) if place is None else place.put(value)


def published(found: dict[str, Any], place: Device | None) -> dict[str, Any]:
    """Fitted attributes, of which those that are arrays go where the examples are.

    The classes stay in NumPy: they may be text.
    """
    if place is None:
        return found
    moved = {
        name: place.put(value)
        for name, value in found.items()
        if isinstance(value, np.ndarray) and name != "classes_"
    }
    return {**found, **moved}


def labels_of(classes: Array, winner: Any, place: Device | None) -> Any:
    """Labels of classes, given by their indices; text is always in NumPy."""
    classes = on_host(classes)
    if place is None or classes.dtype.kind not in "biuf":
        return classes[on_host(winner)]
    return place.xp.take(place.put(classes), winner, axis=0)


def _words(X: Any, place: Device) -> str:
    library = type(X).__module__.partition(".")[0]
    return f"an array of {library} on the device {place.device}"


_CONVERTED_BYTES = 2**23  # size of a part in float64


def rows_in_part(X: Any) -> int:
    """Number of rows to be converted together of a memory map of integers or of half precision.

    Converted as a whole, as scikit-learn's validation does, a file of bytes would take eight times
    its size in memory. 0: X is no such map.
    """
    if not isinstance(X, np.memmap) or X.ndim != 2 or X.dtype.kind not in "biuf":
        return 0
    if X.dtype in (np.float32, np.float64):
        return 0
    return max(1, _CONVERTED_BYTES // (8 * max(1, X.shape[1])))


def parts_of_map(X: Array, size: int) -> Iterator[Array]:
    """Consecutive parts of a memory map, of ``size`` rows each, as plain arrays."""
    return (np.asarray(X[i : i + size]) for i in range(0, len(X), size))


def as_objects(kernel: Any, X: Any) -> Array | None:
    """Examples for a callable kernel that are no rows of numbers, such as strings, as an array.

    None: the kernel is not callable, or the examples are rows of a matrix.
    """
    if not callable(kernel) or sp.issparse(X):
        return None
    given = np.asarray(X)
    return given.astype(object) if given.ndim == 1 and given.dtype.kind in "OUS" else None


def of_objects(kernel: Any, X: Array, i: Array, j: Array) -> Array:
    """Values of the kernel for objects that are given by their indices."""
    i, j = i[:, 0].astype(int), j[:, 0].astype(int)  # numbers reach kernels as floats
    return np.asarray(kernel(X[i], X[j]))


def first_equal(X: Array) -> Array:
    """Index of the first object that equals each one; what has no hash only equals itself."""
    first: dict[Any, int] = {}
    keys = (x if isinstance(x, Hashable) else id(x) for x in X)
    return np.array([first.setdefault(key, i) for i, key in enumerate(keys)])
