"""Validation of the arguments of a fit: examples, labels and sample weights.

X is an array, a CSR matrix, a memory map, objects for a callable kernel, or an array of another
library. The last need scikit-learn's ``array_api_dispatch``; without it, they are converted to
NumPy like everything array-like, or refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils._array_api import _is_numpy_namespace, get_namespace_and_device
from sklearn.utils.validation import (
    _check_monotonic_cst,
    check_array,
    check_X_y,
    validate_data,
)

from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.certificate.reading import class_weights
from marginsvm.problem.matrix import check_format, is_foreign, on_host
from marginsvm.problem.programs import ProblemSpec
from marginsvm.problem.rows import Intervals

try:
    from sklearn.utils._array_api import check_same_namespace
except ImportError:  # scikit-learn before 1.9

    def check_same_namespace(
        X: Any, estimator: Any, *, attribute: str, method: str
    ) -> None:
        """Leave it to the arrays' library."""


CONVERT = "convert X to NumPy, as by X.cpu().numpy() for torch"
CONVERTED_BYTES = 2**23  # size of a part of a memory map in float64
# NumPy's kinds of labels that are always classes.
KINDS_OF_CLASSES = "biuUS"


# Arrays of other libraries.


@dataclass(frozen=True)
class Device:
    """A device, and the library of arrays on it.

    Attributes
    ----------
    xp : module
        Namespace of the library, as scikit-learn wraps it; NumPy on the host.
    device : object
        As the library names it.
    """

    xp: Any
    device: Any

    @property
    def float_types(self) -> list[Any]:
        """Types that examples may have, the widest first."""
        names = ("float64", "float32", "float16", "bfloat16")[
            : 2 if self is HOST else 4
        ]
        return [getattr(self.xp, name) for name in names if hasattr(self.xp, name)]

    def put(self, array: Any) -> Any:
        """An array, moved to this device."""
        if self is HOST:
            return on_host(array)
        if is_foreign(array):
            return array
        # in C order: libraries may share memory, or want to write
        return self.xp.asarray(np.array(array, order="C"), device=self.device)

    def labels(self, classes: Array, winner: Any) -> Any:
        """Labels of classes, given by their indices; text is always in NumPy."""
        classes = on_host(classes)
        if self is HOST or classes.dtype.kind not in "biuf":
            return classes[on_host(winner)]
        return self.xp.take(self.put(classes), winner, axis=0)


HOST = Device(np, "cpu")


def place_of(X: Any) -> Device:
    """Device of an array that scikit-learn dispatches on; else the host."""
    if not is_foreign(X):
        return HOST
    xp, dispatched, device = get_namespace_and_device(X)
    return Device(xp, device) if dispatched and not _is_numpy_namespace(xp) else HOST


def refuse_foreign(name: str, X: Any) -> None:
    """Refuse an array on a device, for code that needs NumPy.

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
    if (place := place_of(X)) is not HOST:
        raise TypeError(
            f"{name} computes with NumPy, but X is {_words(X, place)}: {CONVERT}"
        )


def place_of_training(estimator: Any, spec: ProblemSpec, X: Any) -> Device:
    """Device on which an estimator fits these examples.

    Raises
    ------
    TypeError
        If the examples are on a device, and the estimator needs them on the host; or if the device
        has no float64.
    """
    place = place_of(X)
    name = type(estimator).__name__
    if place is HOST:
        return place
    what = f"{name}: X is {_words(X, place)}"
    if not estimator._algorithm().requires.by_passes:
        raise TypeError(
            f"{name} has compiled loops over single examples and needs them in NumPy, but "
            f"X is {_words(X, place)}: {CONVERT}, or use MaxMarginClassifier or "
            "MomentumMarginClassifier, which compute on the device of X"
        )
    if callable(spec.kernel):
        raise TypeError(
            f"{name}: a callable kernel is given arrays of NumPy, but X is {_words(X, place)}: "
            f"name one of scikit-learn's kernels, or {CONVERT}"
        )
    if str(getattr(X, "layout", "torch.strided")) != "torch.strided":
        raise TypeError(
            f"{what} and sparse, but only dense arrays are taken on a device: pass X.to_dense(), "
            "or a CSR array of SciPy"
        )
    types = place.xp.__array_namespace_info__().dtypes(
        kind="real floating", device=place.device
    )
    if "float64" not in types:
        raise TypeError(
            f"{what}, which has no float64; rounded to float32, the predictor would not be the one "
            f"that is certified: {CONVERT}"
        )
    return place


def _words(X: Any, place: Device) -> str:
    library = type(X).__module__.partition(".")[0]
    return f"an array of {library} on the device {place.device}"


# Memory maps and objects.


def rows_in_part(X: Any) -> int:
    """Number of rows to convert at a time, for a memory map of integers or half precision; else 0.

    scikit-learn's validation converts it as a whole: bytes take eight times their size in memory.
    """
    if not isinstance(X, np.memmap) or X.ndim != 2 or X.dtype.kind not in "biuf":
        return 0
    if X.dtype in (np.float32, np.float64):
        return 0
    return max(1, CONVERTED_BYTES // (8 * max(1, X.shape[1])))


def as_objects(kernel: Any, X: Any) -> Array | None:
    """Objects for a callable kernel, such as strings, as an array.

    None: the kernel is not callable, or X is a matrix.
    """
    if not callable(kernel) or sp.issparse(X):
        return None
    given = np.asarray(X)
    return (
        given.astype(object) if given.ndim == 1 and given.dtype.kind in "OUS" else None
    )


# Checks.


def validated(
    estimator: Any, spec: ProblemSpec, X: Any, y: Any = None, **how: Any
) -> tuple[Any, Any, dict[str, object], Array | None]:
    """Validate X and y; ``how`` are scikit-learn's arguments for it.

    Returns
    -------
    X : ndarray, CSR matrix, array on a device, or ndarray of objects
    y : ndarray or None
    features : dict
        Fitted attributes: number and names of the features.
    signs : ndarray of shape (n_features,) or None
        ``monotonic_cst`` of each feature: -1, 0 or 1; None: no constraints.
    """
    if spec.monotonic_cst is not None and spec.kernel != "linear":
        raise ValueError(
            "monotonic_cst constrains the coefficients of features, which a model with "
            f"kernel={spec.kernel!r} does not have: use kernel='linear', or monotonic_cst=None"
        )
    objects = as_objects(spec.kernel, X)
    if objects is not None:
        y = None if y is None else check_X_y(np.zeros((len(objects), 1)), y, **how)[1]
        return objects, y, {}, None
    # scikit-learn sets attributes of a copy: the estimator is unchanged until a fit is done
    copy = object.__new__(type(estimator))
    vars(copy).update(vars(estimator))
    check_format(X)
    check_exact(X)
    if how.get("y_numeric"):
        check_exact(y, "y")
    how = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], **how}
    # checks of arrays that scikit-learn would return as they are take a tenth of a small fit
    kind = y.dtype.kind if isinstance(y, np.ndarray) and y.ndim == 1 else ""
    if kind and kind in KINDS_OF_CLASSES and not how.get("y_numeric"):
        as_is = (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.size > 0
            and X.dtype in how["dtype"]
        )
        if as_is:
            vars(copy).pop("feature_names_in_", None)
            vars(copy)["n_features_in_"] = X.shape[1]
        else:
            X = validate_data(copy, X, **how)
        if as_is and how.get("ensure_all_finite", True):
            name = type(estimator).__name__
            assert_all_finite(X, estimator_name=name, input_name="X")
        check_consistent_length(X, y)
    else:
        found = validate_data(copy, X, y, **how)
        X, y = (found, None) if y is None else found
        if y is not None and y.dtype.kind == "O":
            _refuse_mixed(y)
    names = ("n_features_in_", "feature_names_in_")
    features = {name: getattr(copy, name) for name in names if hasattr(copy, name)}
    signs = _check_monotonic_cst(copy, spec.monotonic_cst)
    return X, y, features, signs if signs.any() else None


def _refuse_mixed(y: Array) -> None:
    """Refuse labels that cannot be sorted, such as None among words."""
    try:
        np.unique(y)
    except TypeError as error:
        kinds = " and ".join(sorted({type(label).__name__ for label in y}))
        raise ValueError(
            f"labels must be all words or all numbers, but y has {kinds}; leave out examples "
            "without a label"
        ) from error


def class_weighted(class_weight: Any, y: Array, weight: Array | None) -> Array | None:
    """Sample weights times class weights; None: all are 1.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
    y : ndarray of shape (n,)
        Labels of all examples.
    weight : ndarray of shape (n,) or None
        Their sample weights.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or of no class.
    """
    if class_weight is None:
        return weight
    if isinstance(class_weight, dict):
        known = np.unique(y).tolist()
        unknown = [label for label in class_weight if label not in set(known)]
        if unknown:
            raise ValueError(
                f"class_weight has a weight for {unknown}, but the classes in y are {known}"
            )
        for label, factor in class_weight.items():
            if not (isinstance(factor, Real) and 0.0 <= float(factor) < np.inf):
                raise ValueError(
                    "class_weight must have weights that are finite and not negative, but that of "
                    f"{label!r} is {factor!r}"
                )
    counted = np.ones(len(y)) if weight is None else weight
    factors = class_weights(class_weight, y, counted)
    if np.all(factors == 1.0):
        return weight
    with np.errstate(over="ignore", invalid="ignore"):
        final = counted * factors
    if not np.isfinite(final).all():
        raise ValueError(
            "sample_weight times class_weight is too large for float64; only the ratios of weights "
            "matter where C = inf, and otherwise C may be larger: divide the weights"
        )
    return final


def check_kernel_params(spec: ProblemSpec) -> None:
    """Refuse ``kernel_params`` that a named kernel does not have, as it would ignore them."""
    if callable(spec.kernel):
        return
    valid = sorted(KERNEL_PARAMS.get(spec.kernel, ()))
    unknown = sorted(set(spec.kernel_params or {}) - set(valid))
    if unknown:
        known = f"its parameters are {valid}" if valid else "it has no parameters"
        raise ValueError(
            f"kernel_params has {unknown}, which kernel={spec.kernel!r} does not: {known}"
        )


def check_gram(K: Any, spec: ProblemSpec, name: str) -> None:
    """Refuse a precomputed matrix that is sparse, not square, not finite or not symmetric.

    With ``normalize=True``, its diagonal must be 1.
    """
    # importing numba takes a third of a second
    from marginsvm.problem.asymmetry import PART, asymmetry

    if sp.issparse(K):
        raise TypeError(
            "Sparse precomputed kernels are not supported: pass a dense matrix"
        )
    n, m = K.shape
    if n != m:
        raise ValueError(
            f"a precomputed kernel must be a square matrix, one row and one column an example, "
            f"but it has shape {K.shape}"
        )
    diagonal = np.diagonal(K)
    rounding = 1e-4 if K.dtype == np.float32 else 1e-8
    scale = max(float(np.abs(diagonal).max()), 1e-300)
    off = asymmetry(K if K.flags.c_contiguous else K.T, np.zeros(PART))
    if not off <= rounding * scale:
        assert_all_finite(K, estimator_name=name, input_name="X")
        raise ValueError(
            f"a precomputed kernel must be symmetric, but entries differ by {off:.3g} from "
            "their mirror images; pass (K + K.T) / 2 if that is what you mean"
        )
    zeros = (diagonal == 0.0) & (not spec.fit_intercept)
    if spec.normalize and not np.all((np.abs(diagonal - 1.0) <= rounding) | zeros):
        raise ValueError(
            "normalize=True needs K(x, x) = 1 of a precomputed kernel, as the K(x, x) of new "
            "examples cannot be known, but its diagonal goes from "
            f"{diagonal.min():.3g} to {diagonal.max():.3g}; divide K by "
            "sqrt(outer(diagonal, diagonal)), in predict too, or set normalize=False"
        )


def given_intervals(bounds: Any, shape: tuple[int, ...]) -> Intervals:
    """The user's intervals, one pair of ends for each value of y."""
    bounds = check_array(
        bounds,
        dtype=np.float64,
        ensure_all_finite=False,
        allow_nd=True,
        input_name="bounds",
    )
    if bounds.shape != (*shape, 2):
        raise ValueError(
            f"bounds must hold a lower and an upper end for each value of y, in an array of shape "
            f"{(*shape, 2)}, but its shape is {bounds.shape}"
        )
    low = np.ascontiguousarray(bounds[..., 0])
    high = np.ascontiguousarray(bounds[..., 1])
    wrong = ~((low <= high) & (low < np.inf) & (high > -np.inf))  # NaN is wrong as well
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"the lower end of an interval must not be above the upper one, but bounds{[*first]} "
            f"is {[float(low[first]), float(high[first])]}; -inf and inf stand for no end"
        )
    return Intervals(low, high)
