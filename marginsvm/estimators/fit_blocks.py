"""The training set of ``fit_blocks``: a source of blocks, validated by one pass over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_non_negative,
    column_or_1d,
)

from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.estimators.inputs import (
    check_kernel_params,
    refuse_foreign,
    rows_in_part,
    validated,
)
from marginsvm.estimators.training_data import TrainingData
from marginsvm.problem.blocks import Blocks
from marginsvm.problem.matrix import Matrix
from marginsvm.problem.quadratic_program import ProblemSpec

if TYPE_CHECKING:
    from marginsvm.sources import ArrayBlocks

_AGREED: dict[str, Callable[[Seen], Any]] = {
    "number of features": lambda seen: seen.features["n_features_in_"],
    "list of feature names": lambda seen: list(seen.features.get("feature_names_in_", [])),
    "kind of matrix": lambda seen: "sparse" if seen.sparse else "dense",
    "number of outputs": lambda seen: seen.y.shape[1:],
    "type of labels": lambda seen: "text" if seen.y.dtype.kind in "OUS" else "numbers",
    "sample weight": lambda seen: "absent" if seen.weight is None else "given",
}


def blocks_of_map(estimator: Any, X: Any, y: Any, sample_weight: Any) -> ArrayBlocks | None:
    """Blocks of a memory map that validation would convert, and so copy, as a whole; else None."""
    linear = ProblemSpec.of(estimator).kernel == "linear"
    if not linear or y is None or not estimator._algorithm().requires.by_passes:
        return None
    check_consistent_length(X, y)
    y = column_or_1d(y, warn=True)
    if sample_weight is not None:  # a single number stands for that weight of every example
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    from marginsvm.sources import ArrayBlocks  # and with it, readers that take long to import

    return ArrayBlocks(X, y, sample_weight, block_rows=rows_in_part(X))


class FitsBlocks:
    """An estimator that also fits examples that come in blocks."""

    _fit: Callable[[Any, Any, Any], Any]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_blocks(self, source: Any) -> Any:
        """Fit to blocks of examples that need not fit in memory together.

        The rounds are those of ``fit`` on all blocks stacked below each other, but memory only
        holds a few blocks and some numbers for each example. Linear predictors only.

        Parameters
        ----------
        source : iterable
            Yields ``(X, y)`` or ``(X, y, sample_weight)``, dense or CSR, as in ``fit``. Each
            pass iterates over it from the start, and must get the same blocks: a list, or
            one of :mod:`marginsvm.sources`.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a block cannot be used; the message names it and says what to do.
        """
        return self._fit(block_data(self, source), source, None)


def block_data(estimator: Any, source: Any) -> TrainingData:
    """Validate a source of blocks by one pass over it, before a fit begins."""
    found, name = Scan(estimator), type(estimator).__name__
    for number, block in enumerate(_fresh(source)):
        found.add(look(name, number, block, targets=isinstance(estimator, RegressorMixin))[1])

    def examples(kept: Array) -> Blocks:
        all_kept = len(kept) == sum(found.sizes)
        reader = _Reader(source, found.sizes, found.dtype, None if all_kept else kept)
        return Blocks(reader, (len(kept), found.n_features), found.dtype, found.first.sparse)

    return found.training_data(examples)


class Seen(NamedTuple):
    """What the first pass keeps of a block."""

    number: int
    size: int
    y: Array
    weight: Array | None
    dtype: np.dtype
    sparse: bool
    features: dict[str, Any]  # number and names, as fitted attributes


def look(name: str, number: int, block: Any, *, targets: bool = False) -> tuple[Any, Seen]:
    """Check a single block for an estimator of this name; return its matrix and the findings."""
    try:
        X, y, weight = _unpacked(block)
        refuse_foreign(name, X)
        if X.shape[0] == 0:
            return X, Seen(number, 0, np.empty(0), None, np.dtype(float), False, {})
        named = type(name, (BaseEstimator,), {})()  # in place of the estimator, which is not sent
        how = {"multi_output": True, "y_numeric": True} if targets else {}
        X, y, features, _ = validated(named, X, y, **how)
        if not targets:
            check_classification_targets(y)
        if weight is not None:
            weight = _weights(weight, X.shape[0])
    except (ValueError, TypeError) as error:
        raise type(error)(f"block {number}: {error}") from error
    return X, Seen(number, X.shape[0], y, weight, X.dtype, sp.issparse(X), features)


def _weights(weight: Any, n_samples: int) -> Array:
    """Validate a block's sample weights. They may all be 0: other blocks may have others."""
    weight = np.full(n_samples, weight) if np.ndim(weight) == 0 else weight
    weight = check_array(weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has the shape {weight.shape}, but must be a number or have the shape "
            f"({n_samples},): a weight for each example"
        )
    check_non_negative(weight, "`sample_weight`")
    return weight


class Scan:
    """The findings of the first pass, and the check that all blocks agree."""

    def __init__(self, estimator: Any) -> None:
        spec = ProblemSpec.of(estimator)
        if spec.kernel != "linear":
            raise ValueError(
                f"blocks need kernel='linear', but got {spec.kernel!r}: a kernel compares "
                "every example with every other; use fit on what fits in memory"
            )
        check_kernel_params(spec)
        estimator._algorithm().requires.check_blocks(type(estimator).__name__)
        self._estimator = estimator
        self._seen: list[Seen] = []
        self.sizes: list[int] = []

    @property
    def first(self) -> Seen:
        """The findings of the first block that has examples."""
        if not self._seen:
            raise ValueError("the source is empty: it must yield blocks (X, y) with examples")
        return self._seen[0]

    def add(self, seen: Seen) -> None:
        """Add the findings of a block; an error if it does not agree with the first."""
        self.sizes.append(seen.size)
        if not seen.size:
            return
        self._seen.append(seen)
        for what, of in _AGREED.items():
            mine, theirs = of(seen), of(self.first)
            if mine != theirs:
                raise ValueError(
                    f"block {seen.number}: its {what} is {mine}, but that of block "
                    f"{self.first.number} is {theirs}; all blocks must agree in this"
                )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.first.features["n_features_in_"]

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers that all blocks are brought to."""
        return np.result_type(*(seen.dtype for seen in self._seen))

    @property
    def labels(self) -> Array:
        """Labels or targets of all examples."""
        return np.concatenate([seen.y for seen in self._seen])

    @property
    def weight(self) -> Array | None:
        """Sample weights of all examples; None: none are given."""
        weights = [seen.weight for seen in self._seen if seen.weight is not None]
        return np.concatenate(weights) if weights else None

    def training_data(self, examples: Callable[[Array], Matrix]) -> TrainingData:
        """Training data of all blocks; ``examples(kept)`` makes the matrix of the examples."""
        more, y = {"features": self.first.features}, self.labels
        if isinstance(self._estimator, RegressorMixin):
            y = y.astype(np.float64)
        return TrainingData.of(self._estimator, examples, len(y), y, self.weight, **more)


@dataclass
class _Reader:
    """Iterates over the source again, and yields the matrices of its blocks, ready for a pass."""

    source: Any
    sizes: list[int]
    dtype: np.dtype
    kept: Array | None  # indices of the examples of positive weight; None: all

    def __call__(self) -> Iterator[Any]:
        end, number = 0, -1
        for number, block in enumerate(_fresh(self.source)):
            X = _unpacked(block)[0]
            if number >= len(self.sizes) or X.shape[0] != self.sizes[number]:
                break
            if not self.sizes[number]:
                continue
            start, end = end, end + self.sizes[number]
            check_exact(X)
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
