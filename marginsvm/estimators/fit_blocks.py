"""Training data of ``fit_blocks``: a source of blocks, validated in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
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

from marginsvm._typing import Array
from marginsvm.estimators.inputs import (
    check_kernel_params,
    refuse_foreign,
    rows_in_part,
    validated,
)
from marginsvm.estimators.training_data import TrainingData
from marginsvm.problem.matrix import FLOAT64, Blocks
from marginsvm.problem.programs import ProblemSpec
from marginsvm.problem.source import Digest, Layout, Source, unpacked

if TYPE_CHECKING:
    from marginsvm.sources import ArrayBlocks


def blocks_of_map(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> ArrayBlocks | None:
    """Blocks of a memory map that validation would copy as a whole; else None."""
    linear = ProblemSpec.of(estimator).kernel == "linear"
    if not linear or y is None or not estimator._algorithm().requires.by_passes:
        return None
    check_consistent_length(X, y)
    y = column_or_1d(y, warn=True)
    if sample_weight is not None:  # a scalar is the weight of every example
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    # The module has readers that take long to import.
    from marginsvm.sources import ArrayBlocks

    return ArrayBlocks(X, y, sample_weight, block_rows=rows_in_part(X))


class FitsBlocks:
    """An estimator that also fits examples that come in blocks."""

    _fit: Callable[..., Any]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_blocks(self, source: Any) -> Any:
        """Fit to blocks of examples that need not fit in memory together.

        The iterations are those of ``fit`` on the stacked blocks, but memory holds only a few
        blocks and some numbers for each example. Linear predictors only.

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
        return self._fit(source_data(self, source), source, None)


def source_data(estimator: Any, source: Any) -> TrainingData:
    """Validate a source of blocks by one pass over it, before a fit begins."""
    refuse_blocks(estimator)
    name = type(estimator).__name__
    targets = isinstance(estimator, RegressorMixin)
    read = Source(source)
    seen = read.first(lambda *block: look(name, *block, targets=targets)[1])
    return block_data(estimator, seen, read.again)


def refuse_blocks(estimator: Any) -> None:
    """Refuse a kernel and steps that are no passes over the data, before any block is read."""
    spec = ProblemSpec.of(estimator)
    if spec.kernel != "linear":
        raise ValueError(
            f"blocks need kernel='linear', but got {spec.kernel!r}: a kernel compares every "
            "example with every other; use fit on what fits in memory"
        )
    check_kernel_params(spec)
    if not estimator._algorithm().requires.by_passes:
        raise ValueError(
            f"{type(estimator).__name__} visits single examples and needs them in memory: use fit, "
            "or MaxMarginClassifier or MomentumMarginClassifier for blocks"
        )


class Seen(NamedTuple):
    """Results of the first pass for a block."""

    number: int
    digest: Digest
    y: Array
    weight: Array | None
    dtype: np.dtype
    features: dict[str, Any]  # number and names, as fitted attributes
    alike: dict[str, Any]  # equal for all blocks


def block_data(
    estimator: Any, seen: Iterable[Seen], matrix: Callable[[Layout, Array], Blocks]
) -> TrainingData:
    """Training data from the first pass; ``matrix(layout, kept)`` gives the examples."""
    spec = ProblemSpec.of(estimator)
    digests = list[Digest]()
    some = list[Seen]()
    for block in seen:
        digests.append(block.digest)
        some += [block] if len(block.y) else []
        for what, mine in block.alike.items():
            if mine != some[0].alike[what]:
                raise ValueError(
                    f"block {block.number}: its {what} is {mine}, but that of block "
                    f"{some[0].number} is {some[0].alike[what]}; all blocks must agree in this"
                )
    if not some:
        raise ValueError(
            "the source is empty: it must yield blocks (X, y) with examples"
        )
    first = some[0]
    y = np.concatenate([block.y for block in some])
    y = y.astype(np.float64) if isinstance(estimator, RegressorMixin) else y
    weights = [block.weight for block in some if block.weight is not None]
    weight = np.concatenate(weights) if weights else None
    dtype = np.result_type(*(block.dtype for block in some))
    sparse = first.alike["kind of matrix"] == "sparse"
    layout = Layout(digests, first.features["n_features_in_"], dtype, sparse)
    examples = partial(matrix, layout)
    features = first.features
    return TrainingData.of(
        estimator, spec, examples, len(y), y, weight, features=features
    )


def look(
    name: str, number: int, block: Any, *, targets: bool = False
) -> tuple[Any, Seen]:
    """Check a single block for an estimator of this name; return its matrix and the findings."""
    try:
        X, y, weight = unpacked(block)
        refuse_foreign(name, X)
        if X.shape[0] == 0:
            return X, Seen(number, Digest.of(X), np.empty(0), None, FLOAT64, {}, {})
        # in place of the estimator, which is not sent
        named = type(name, (BaseEstimator,), {})()
        numeric = {"multi_output": True, "y_numeric": True} if targets else {}
        X, y, features, _ = validated(named, ProblemSpec(), X, y, **numeric)
        if not targets:
            check_classification_targets(y)
        if weight is not None:  # they may all be 0: other blocks may have others
            weight = np.full(len(y), weight) if np.ndim(weight) == 0 else weight
            how = {"ensure_2d": False, "input_name": "sample_weight"}
            weight = check_array(weight, dtype=np.float64, copy=True, **how)
            if weight.shape != (len(y),):
                raise ValueError(
                    f"sample_weight has the shape {weight.shape}, but must be a number or have the "
                    f"shape ({len(y)},): a weight for each example"
                )
            check_non_negative(weight, "`sample_weight`")
    except (ValueError, TypeError) as error:
        raise type(error)(f"block {number}: {error}") from error
    alike = {
        "number of features": X.shape[1],
        "list of feature names": np.array(
            features.get("feature_names_in_", [])
        ).tolist(),
        "kind of matrix": "sparse" if sp.issparse(X) else "dense",
        "number of outputs": y.shape[1:],
        "type of labels": "text" if y.dtype.kind in "OUS" else "numbers",
        "sample weight": "absent" if weight is None else "given",
    }
    # a source may read the next block into the same memory
    return X, Seen(number, Digest.of(X), y.copy(), weight, X.dtype, features, alike)
