"""Fits on a Dask cluster: the same rounds, each a pass over the chunks where they are.

The chunks stay on the workers. A round is one message to each worker, with the predictor, and
one back, with sums: O(k d) numbers for k classes and d features. Only labels (once), the
proof's weights (at the end), and what soft margins and the exact solver ask for grow with the
number of examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from marginsvm._typing import Array
from marginsvm.certify.spec import ProblemSpec
from marginsvm.data.cluster import Chunk, RemoteStore
from marginsvm.estimator.block_source import Scan, Seen, look
from marginsvm.estimator.training_set import ClassLabels
from marginsvm.estimator.weights import ClassWeights
from marginsvm.rows import make_rows

try:
    import dask.array as da
    import dask.dataframe as dd
    import distributed
    import pandas as pd
    from dask import delayed
except ImportError as error:
    raise ImportError(
        "marginsvm.dask needs Dask, which is an optional dependency: pip install 'marginsvm[dask]'"
    ) from error

__all__ = ["DaskBlocks", "DaskMargin"]


class DaskMargin(ClassifierMixin, BaseEstimator):
    """Fit an estimator of this package to dask collections.

    Parameters
    ----------
    estimator : estimator
        One whose rounds are passes over the data, with a linear kernel, such as
        :class:`marginsvm.MaxMarginClassifier` or :class:`marginsvm.MomentumMarginClassifier`.
    client : distributed.Client, default=None
        The client of the cluster, a synchronous one. None takes the current client.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, with its certificate; it knows nothing of Dask.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    marginsvm.DualStateMixin.fit_blocks : Files and other blocks, on one machine.

    Notes
    -----
    Chunks are prepared by tasks. A round is not a task, but a message to each worker that holds
    chunks (``Client.run``), which adds only some milliseconds to the work itself. Workers keep
    nothing but the chunks, which may be replicated, moved or spilled to disk. If a worker is lost,
    its part of a round is repeated once Dask has computed its chunks again; the fit is the same,
    usually to the last bit. When the fit ends or is interrupted, its data on the workers is
    released.

    With hard margins and responses that are
    summed up block by block (the exponential loss of the momentum estimator; the optimistic
    and smoothed estimators), the driver holds vectors of k d numbers and
    one more for each round; weights on rows are computed where the rows are, when a proof is
    needed. The other algorithms send a few numbers for each example and round. If the bound of a
    momentum fit on more than 4000 examples becomes negligible, no exact proof of an overlap is
    looked for: ``separable_`` is then None, and MaxMarginClassifier can decide it.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MaxMarginClassifier
    >>> from marginsvm.dask import DaskMargin
    >>> X, y = load_iris(return_X_y=True)
    >>> dX, dy = da.from_array(X[:100], chunks=(30, 4)), da.from_array(y[:100], chunks=30)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     clf = DaskMargin(MaxMarginClassifier(), client=client).fit(dX, dy)
    >>> print(f"{clf.to_local().margin_:.5f}")
    0.81756
    """

    def __init__(self, estimator: Any, *, client: Any = None) -> None:
        self.estimator = estimator
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DaskMargin:
        """Fit where the chunks are.

        Parameters
        ----------
        X : dask array of shape (n_samples, n_features) or dask dataframe
            Dense or CSR chunks of rows.
        y : dask array or series of shape (n_samples,)
        sample_weight : dask array or series of shape (n_samples,), default=None

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If the collections or a chunk cannot be used; the text names the block.
        RuntimeError
            If workers are lost again and again.
        """
        client = self.client or _current_client()
        if client.asynchronous:
            raise ValueError(
                "fit waits for the workers, but this client is asynchronous where it is called: "
                "pass a synchronous one, distributed.Client(address)"
            )
        fitted = clone(self.estimator)
        fitted._validate_params()
        scan = Scan(fitted)
        blocks = _blocks(X, y, sample_weight)
        checked = client.compute([delayed(_checked)(type(fitted).__name__, *b) for b in blocks])
        for seen in client.gather(client.map(itemgetter(1), checked)):
            scan.add(seen)
        training = scan.training_set(partial(_store, client, checked, scan, fitted))
        self.estimator_ = fitted._fit(training, X, y)
        self.classes_, self.n_features_in_ = fitted.classes_, fitted.n_features_in_
        return self

    def to_local(self) -> Any:
        """Give the fitted estimator, which pickles and predicts without Dask.

        Returns
        -------
        estimator
            ``estimator_``.

        Raises
        ------
        NotFittedError
            If fit has not been called.
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def predict(self, X: Any) -> Any:
        """Predict class labels: lazily, where X is a dask collection.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)

        Returns
        -------
        dask array or series, or ndarray, of shape (n_samples,)
        """
        return _applied(self.to_local(), "predict", X, self.classes_.dtype)

    def decision_function(self, X: Any) -> Any:
        """Signed distances, as the local estimator's: lazily, where X is a dask collection.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)

        Returns
        -------
        dask array (of a dataframe: series or dataframe), or ndarray
            Of shape (n_samples,) or (n_samples, n_classes).
        """
        return _applied(self.to_local(), "decision_function", X, np.dtype(float))


class DaskBlocks:
    """The chunks of dask collections as a source of blocks, brought here one by one.

    For ``check_certificate(estimator, source)``, or to fit on this machine.

    Parameters
    ----------
    X, y, sample_weight
        As in :meth:`DaskMargin.fit`.

    Examples
    --------
    >>> import dask.array as da
    >>> from marginsvm.dask import DaskBlocks
    >>> source = DaskBlocks(da.ones((5, 2), chunks=(3, 2)), da.zeros(5, chunks=3))
    >>> [X.shape for X, y in source]
    [(3, 2), (2, 2)]
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        self._blocks = [block[1:] for block in _blocks(X, y, sample_weight)]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for X, y, weight in self._blocks:
            block = delayed(tuple)([X, y] if weight is None else [X, y, weight]).compute()
            yield block


def _current_client() -> Any:
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client: start one, client = distributed.Client(), and pass it as "
            "DaskMargin(estimator, client=client)"
        ) from None


def _blocks(X: Any, y: Any, sample_weight: Any) -> list[tuple[int, Any, Any, Any]]:
    """Number, X, y and weights of each block of rows, lazily."""
    if isinstance(X, da.Array):
        X = X.rechunk({1: X.shape[1]}) if X.numblocks[1] > 1 else X
    lazy = [_parts(a, X) for a in (X, y, sample_weight)]
    numbers = [len(parts) for parts in lazy]
    if len(set(numbers)) > 1:
        raise ValueError(
            f"X, y and sample_weight must have the same blocks of rows, but have {numbers}"
        )
    return [(number, *block) for number, block in enumerate(zip(*lazy, strict=True))]


def _parts(a: Any, X: Any) -> list[Any]:
    if a is None:
        return [None] * (X.npartitions if hasattr(X, "npartitions") else X.numblocks[0])
    if isinstance(X, da.Array):
        if np.isnan(X.shape[0]):
            raise ValueError(
                "the chunks of X have unknown sizes: call X.compute_chunk_sizes() first"
            )
        if not isinstance(a, da.Array):
            a = a.to_dask_array(lengths=True) if hasattr(a, "to_dask_array") else da.asarray(a)
        if np.isnan(a.shape[0]) or a.shape[0] != X.shape[0]:
            raise ValueError(
                f"X has {X.shape[0]} rows, but y or sample_weight {a.shape[0]}: they must agree "
                "(nan: call compute_chunk_sizes() first)"
            )
        a = a.rechunk({0: X.chunks[0]})
    elif not hasattr(a, "to_delayed"):
        raise TypeError(f"X and y must be dask collections, but got {type(a).__name__}")
    return list(np.ravel(a.to_delayed()))


def _checked(name: str, number: int, X: Any, y: Any, weight: Any) -> tuple[Any, Seen]:
    return look(name, number, (X, y) if weight is None else (X, y, weight))


def _store(
    client: Any,
    checked: list[Any],
    scan: Scan,
    estimator: Any,
    labels: ClassLabels,
) -> RemoteStore:
    """Let every worker make its blocks ready."""
    sizes = np.diff(np.searchsorted(labels.kept, np.cumsum([0, *scan.sizes])))
    some = [block for block, size in zip(checked, sizes, strict=True) if size]
    ready = client.map(
        _chunk,
        some,
        dtype=scan.dtype,
        classes=labels.classes,
        class_weights=labels.class_weights,
        weighted=labels.weights is not None,
        balanced=ProblemSpec.of(estimator).intercept_is_free,
    )
    sizes, sparse = sizes[sizes > 0], scan.first.sparse
    return RemoteStore(client, ready, sizes, scan.n_features, scan.dtype, sparse)


def _chunk(
    checked: tuple[Any, Seen],
    dtype: np.dtype,
    classes: Array,
    class_weights: ClassWeights,
    weighted: bool,
    balanced: bool,
) -> Chunk:
    X, seen = checked
    X, y = X.astype(dtype, copy=False), seen.y
    weight = class_weights.applied(y, seen.weight)
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, y, weight = X[kept], y[kept], weight[kept]
    codes = np.searchsorted(classes, y)
    weight = weight if weighted else None
    rows = make_rows(codes, len(classes), balanced=balanced, weights=weight)
    return Chunk(X, rows)


def _applied(estimator: Any, method: str, X: Any, dtype: np.dtype) -> Any:
    """Call a method on an array, or lazily on the parts of a dask collection."""
    call = getattr(estimator, method)
    k = len(estimator.classes_)
    wide = method == "decision_function" and k > 2
    if isinstance(X, da.Array):
        X = X.rechunk({1: X.shape[1]}) if X.numblocks[1] > 1 else X
        shape = {"chunks": (X.chunks[0], (k,))} if wide else {"drop_axis": 1}
        return X.map_blocks(call, dtype=dtype, **shape)
    if isinstance(X, dd.DataFrame):
        framed = partial(_framed, call, estimator.classes_ if wide else None, dtype)
        return X.map_partitions(framed, meta=framed(X._meta))
    return call(X)


def _framed(call: Any, columns: Array | None, dtype: np.dtype, part: pd.DataFrame) -> Any:
    """Results with the index of the part."""
    shape = (0,) if columns is None else (0, len(columns))
    values = call(part) if len(part) else np.empty(shape, dtype)
    if columns is None:
        return pd.Series(values, index=part.index)
    return pd.DataFrame(values, index=part.index, columns=columns)
