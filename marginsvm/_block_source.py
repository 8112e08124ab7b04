"""A source of blocks, checked once and made ready: the training set of ``fit_blocks``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from marginsvm._typing import Array
from marginsvm._validation import TrainingSet, labelled
from marginsvm.kernel_matrix import StreamStore

_FLOATS = [np.float64, np.float32]


def block_set(estimator: Any, source: Any) -> TrainingSet:
    """Validate a source of blocks, by one pass over it, before any work."""
    if estimator.kernel != "linear":
        raise ValueError(
            f"fit_blocks needs kernel='linear', but got {estimator.kernel!r}: a kernel compares "
            "every example with every other; use fit on what fits in memory"
        )
    found = _Scan(clone(estimator))
    for number, block in enumerate(_fresh(source)):
        with _Named(number):
            found.add(block)
    codes, classes, kept, weight = labelled(found.labels(), found.sample_weight())
    n_features, sparse = found.probe.n_features_in_, found.sparse
    dtype = np.result_type(*found.dtypes)
    store = StreamStore(
        _Reader(source, found.sizes, dtype, kept if kept.size < sum(found.sizes) else None),
        codes,
        n_features,
        dtype,
        bool(sparse),
        estimator.normalize,
    )
    names = ("n_features_in_", "feature_names_in_")
    features = {name: getattr(found.probe, name) for name in names if hasattr(found.probe, name)}
    n_given = sum(found.sizes)
    return TrainingSet.of(estimator, store, codes, classes, kept, n_given, weight, features)


@dataclass
class _Scan:
    """What the first pass learns: labels, weights and sizes, and that the blocks go together."""

    probe: Any  # a clone, so that an error leaves the estimator as it was
    sizes: list[int] = field(default_factory=list)
    dtypes: list[np.dtype] = field(default_factory=list)
    sparse: bool | None = None
    _labels: list[Array] = field(default_factory=list)
    _weights: list[Array | None] = field(default_factory=list)

    def add(self, block: Any) -> None:
        """Check one block more."""
        X, y, weight = _unpacked(block)
        self.sizes.append(X.shape[0])
        if X.shape[0] == 0:
            return
        first = self.sparse is None
        X, y = validate_data(self.probe, X, y, reset=first, accept_sparse="csr", dtype=_FLOATS)
        check_classification_targets(y)
        if not first and sp.issparse(X) != self.sparse:
            kinds = ("dense", "sparse")
            raise ValueError(
                f"it is {kinds[sp.issparse(X)]}, but the blocks before are "
                f"{kinds[bool(self.sparse)]}: yield one kind only"
            )
        if self._labels and (y.dtype.kind in "OUS") != (self._labels[0].dtype.kind in "OUS"):
            raise ValueError(
                f"its labels are of type {y.dtype}, but those before of type "
                f"{self._labels[0].dtype}: these do not go together"
            )
        if weight is not None:
            weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
        if self._weights and (weight is None) != (self._weights[0] is None):
            raise ValueError("sample weights must come with every block, or with none")
        self.sparse = sp.issparse(X)
        self.dtypes.append(X.dtype)
        self._labels.append(y)
        self._weights.append(weight)

    def labels(self) -> Array:
        """Of all examples."""
        if not self._labels:
            raise ValueError("the source is empty: it must yield blocks (X, y) with examples")
        return np.concatenate(self._labels)

    def sample_weight(self) -> Array | None:
        """Of all examples, or None."""
        parts = [weight for weight in self._weights if weight is not None]
        return np.concatenate(parts) if parts else None


@dataclass
class _Reader:
    """Reads the source once more: its matrices only, as the fit wants them."""

    source: Any
    sizes: list[int]
    dtype: np.dtype
    kept: Array | None  # examples of positive weight, if these are not all

    def __call__(self) -> Iterator[Any]:
        end, number = 0, -1
        for number, block in enumerate(_fresh(self.source)):
            X = _unpacked(block)[0]
            if number >= len(self.sizes) or X.shape[0] != self.sizes[number]:
                break
            if not self.sizes[number]:
                continue
            start, end = end, end + self.sizes[number]
            X = check_array(X, accept_sparse="csr", dtype=self.dtype, ensure_all_finite=False)
            if self.kept is not None:
                inside = (self.kept >= start) & (self.kept < end)
                X = X[self.kept[inside] - start]
            yield X
        if end != sum(self.sizes):
            raise ValueError(
                f"the source changed between two passes: from block {max(number, 0)} on, it does "
                "not yield as many examples as at first; every iteration must give the same blocks"
            )


class _Named:
    """Errors within name the block they are about."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, (ValueError, TypeError)):
            raise type(error)(f"block {self._number}: {error}") from error


def _fresh(source: Any) -> Iterator[Any]:
    """Begin a new iteration over the source."""
    try:
        iterator = iter(source)
    except TypeError:
        raise TypeError(
            "a source must be iterable, yielding blocks (X, y) or (X, y, sample_weight), but got "
            f"{type(source).__name__}"
        ) from None
    if iterator is source:
        raise TypeError(
            f"a source is read several times, but this {type(source).__name__} can be read only "
            "once; pass a list of blocks, or an object whose __iter__ begins anew"
        )
    return iterator


def _unpacked(block: Any) -> tuple[Any, Any, Any]:
    if not isinstance(block, tuple) or len(block) not in (2, 3):
        raise ValueError(
            f"a block must be a tuple (X, y) or (X, y, sample_weight), but got "
            f"{type(block).__name__}"
        )
    X, y, weight = (*block, None)[:3]
    return X if hasattr(X, "shape") else np.asarray(X), y, weight
