"""Fits on a Dask cluster: the same iterations, each a pass over the chunks where they are.

The chunks stay on the workers. An iteration is a task for each thread of a worker and the chunks
there. It is sent the predictor and gives margins and sums: O(k d) numbers, and k numbers for each
example.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from itertools import chain, pairwise, repeat
from operator import getitem, itemgetter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from marginsvm._threads import single_threaded_blas
from marginsvm._typing import Array
from marginsvm.estimators.fit_blocks import (
    Seen,
    block_data,
    look,
    refuse_blocks,
)
from marginsvm.problem.matrix import Blocks, Matrix, as_matrix, stacked
from marginsvm.problem.source import Digest, Layout

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
        One whose iterations are passes over the data, with a linear kernel, such as
        :class:`marginsvm.MaxMarginClassifier` or :class:`marginsvm.MomentumMarginClassifier`. With
        ``warm_start=True``, a further fit continues ``estimator_``.
    client : distributed.Client, default=None
        The client of the cluster, a synchronous one. None takes the current client.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, with its certificate; it does not need Dask.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    marginsvm.DualStateMixin.fit_blocks : Files and other blocks, on one machine.

    Notes
    -----
    An iteration is a task for each thread of a worker, which passes over the chunks that are there:
    as many for each are best. If a worker is lost, Dask computes its chunks and its part of the
    iteration again. When the fit ends or is interrupted, its data on the workers is released.
    The driver holds the labels and, for each class and example, some numbers.

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
        distributed.KilledWorker
            If workers are lost again and again.
        KeyboardInterrupt
            After the current iteration, or at once on a second interrupt. As after an error in an
            iteration, ``estimator_`` is the best model so far.
        """
        client = self.client or _current_client()
        if client.asynchronous:
            raise ValueError(
                "this client is asynchronous where it is called: pass distributed.Client(address)"
            )
        fitted = clone(self.estimator)
        last: Any = getattr(self, "estimator_", None)
        fitted._validate_params()
        refuse_blocks(fitted)
        blocks = enumerate(_blocks(X, y, sample_weight))
        name = type(fitted).__name__
        checked = client.compute(
            [delayed(look)(name, number, block) for number, block in blocks]
        )
        seen = client.gather(client.map(itemgetter(1), checked))
        training = block_data(fitted, seen, partial(_ready, client, checked))
        if fitted.warm_start and type(last) is type(fitted):
            found = vars(last).items()
            fitted.__dict__ |= {
                name: value
                for name, value in found
                if name.endswith("_") or name == "_progress"
            }
        try:
            fitted._fit(training, X, y)
        finally:  # an interrupt or an error keeps the model so far
            certificate = getattr(fitted, "certificate_", None)
            if certificate is not getattr(last, "certificate_", None):
                self.estimator_ = fitted
                self.classes_ = fitted.classes_
                self.n_features_in_ = fitted.n_features_in_
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
        self._blocks = _blocks(X, y, sample_weight)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return (delayed(block).compute() for block in self._blocks)


def _current_client() -> Any:
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client: start one, client = distributed.Client(), and pass it as "
            "DaskMargin(estimator, client=client)"
        ) from None


def _blocks(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
    """X, y and, if given, weights of each block of rows, lazily."""
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1})
    given = (X, y) if sample_weight is None else (X, y, sample_weight)
    lazy = [_parts(a, X) for a in given]
    numbers = [len(parts) for parts in lazy]
    if len(set(numbers)) > 1:
        raise ValueError(
            f"X, y and sample_weight must have the same blocks of rows, but have {numbers}"
        )
    return list(zip(*lazy, strict=True))


def _parts(a: Any, X: Any) -> list[Any]:
    if isinstance(X, da.Array):
        if np.isnan(X.shape[0]):
            raise ValueError(
                "the chunks of X have unknown sizes: call X.compute_chunk_sizes() first"
            )
        if not isinstance(a, da.Array):
            a = (
                a.to_dask_array(lengths=True)
                if hasattr(a, "to_dask_array")
                else da.atleast_1d(a)
            )
        if a.shape[0] != X.shape[0]:
            raise ValueError(
                f"X has {X.shape[0]} rows, but y or sample_weight {a.shape[0]}: they must agree "
                "(nan: call compute_chunk_sizes() first)"
            )
        a = a.rechunk({0: X.chunks[0]})
    elif not hasattr(a, "to_delayed"):
        raise TypeError(f"X and y must be dask collections, but got {type(a).__name__}")
    return list(np.ravel(a.to_delayed()))


class _Chunks(Blocks):
    """Chunks on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    chunks : list of Future
        Each of a Matrix.
    sizes : ndarray of int
        Number of examples in each.
    width, dtype, sparse
        Of all of them.
    """

    def __init__(
        self,
        client: Any,
        chunks: list[Any],
        sizes: Array,
        width: int,
        dtype: Any,
        sparse: bool,
    ) -> None:
        ends = np.cumsum(sizes)
        super().__init__(lambda: (), (int(ends[-1]), width), dtype, sparse)
        self._client = client
        self._chunks = chunks
        self._sizes = sizes
        self._places = [
            slice(int(e - n), int(e)) for e, n in zip(ends, sizes, strict=True)
        ]
        distributed.wait(chunks)
        threads = max(client.nthreads().values(), default=1)
        where = client.who_has(chunks)
        of_worker: dict[Any, list[int]] = {}
        for c, chunk in enumerate(chunks):
            of_worker.setdefault(tuple(where[chunk.key][:1]), []).append(c)
        shares = (
            some[t::threads] for some in of_worker.values() for t in range(threads)
        )
        self._shares = [some for some in shares if some]
        # what a task works on, so that no iteration lists all chunks
        of_shares = [[chunks[c] for c in some] for some in self._shares]
        self._grouped = client.map(list, of_shares, pure=False)
        numbers = np.arange(len(self))
        self._examples = [
            np.concatenate([numbers[self._places[c]] for c in some])
            for some in self._shares
        ]
        self._sent: dict[int, tuple[Any, list[Any]]] = {}

    def each(
        self, work: Callable[..., Any], *local: Any, join: Any = list
    ) -> list[Any]:
        parts = map(self._parts_of, local)
        run = partial(_each, work, join)
        found = self._client.gather(
            self._client.map(run, self._grouped, *parts, pure=False)
        )
        parts_found = map(pickle.loads, found)
        of_chunk = dict(zip(chain(*self._shares), chain(*parts_found), strict=True))
        return [one for c in range(len(self._chunks)) for one in of_chunk[c]]

    def _parts_of(self, a: Any) -> list[Any]:
        """What belongs to the chunks of each task; rows do not change, and are sent once."""
        if a is None:
            return [None] * len(self._shares)
        if isinstance(a, np.ndarray):
            return [a[at] for at in self._examples]
        if id(a) in self._sent:
            return self._sent[id(a)][1]
        parts: list[Any] = [[a[self._places[c]] for c in some] for some in self._shares]
        parts = self._client.map(copy, parts, pure=False)  # lost ones are sent again
        self._sent[id(a)] = a, parts  # keep a alive: its id stays unique
        return parts

    def _fetched(self, index: Array) -> Any:
        at = [
            np.searchsorted(index, [place.start, place.stop]) for place in self._places
        ]
        some = [c for c, (i, j) in enumerate(at) if i < j] or [0]
        wanted = [index[slice(*at[c])] - self._places[c].start for c in some]
        taken = self._client.map(
            getitem, [self._chunks[c] for c in some], wanted, pure=False
        )
        return stacked(self._client.gather(taken))

    def _with(self, change: Callable[[slice, Any], Any], width: int) -> Any:
        chunks = self._client.map(change, self._places, self._chunks, pure=False)
        return _Chunks(
            self._client, chunks, self._sizes, width, self.dtype, self.sparse
        )


def _each(work: Callable[..., Any], join: Any, chunks: list[Any], *local: Any) -> bytes:
    """Results for each chunk, in one message: Dask sends each array of a list as one of its own."""
    ends = np.cumsum([len(chunk) for chunk in chunks])[:-1]
    parts = (
        repeat(None)
        if some is None
        else np.split(some, ends)
        if isinstance(some, np.ndarray)
        else some
        for some in local
    )
    with single_threaded_blas():
        found = [
            join(chunk.each(work, *some, join=join))
            for chunk, *some in zip(chunks, *parts, strict=False)
        ]
    return pickle.dumps(found)


def _ready(client: Any, checked: list[Any], layout: Layout, kept: Array) -> _Chunks:
    """Let every worker make its blocks ready."""
    starts = np.cumsum([0, *layout.sizes])
    parts = [kept[i:j] for i, j in pairwise(np.searchsorted(kept, starts))]
    sizes = np.array([len(part) for part in parts])
    some = [
        (block, digest, None if len(part) == digest.shape[0] else part - start)
        for block, part, digest, start in zip(
            checked, parts, layout.digests, starts, strict=False
        )
        if len(part)
    ]
    ready = client.map(_chunk, *zip(*some, strict=True), dtype=layout.dtype)
    return _Chunks(client, ready, sizes[sizes > 0], *layout[1:])


def _chunk(
    checked: tuple[Any, Seen], digest: Digest, kept: Array | None, dtype: np.dtype
) -> Matrix:
    """The examples of positive weight; aligned, as they may lie as they were in a message.

    Dask may have computed them again, if a worker was lost.
    """
    if checked[1].digest != digest:
        raise ValueError(
            f"block {checked[1].number} is not what it was when the fit began: it was computed "
            "again, and holds other numbers. Every computation must give the same chunks"
        )
    X = checked[0].astype(dtype, copy=False)
    X = X if kept is None else X[kept]
    return as_matrix(
        np.require(X, requirements="A") if isinstance(X, np.ndarray) else X
    )


def _applied(estimator: Any, method: str, X: Any, dtype: np.dtype) -> Any:
    """Call a method on an array, or lazily on the parts of a dask collection."""
    call = getattr(estimator, method)
    k = len(estimator.classes_)
    wide = method == "decision_function" and k > 2
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1})
        shape = {"chunks": (X.chunks[0], (k,))} if wide else {"drop_axis": 1}
        return X.map_blocks(call, dtype=dtype, **shape)
    if isinstance(X, dd.DataFrame):
        framed = partial(_framed, call, estimator.classes_ if wide else None, dtype)
        return X.map_partitions(framed, meta=framed(X._meta))
    return call(X)


def _framed(
    call: Any, columns: Array | None, dtype: np.dtype, part: pd.DataFrame
) -> Any:
    """Results with the index of the part."""
    shape = (0,) if columns is None else (0, len(columns))
    values = call(part) if len(part) else np.empty(shape, dtype)
    if columns is None:
        return pd.Series(values, index=part.index)
    return pd.DataFrame(values, index=part.index, columns=columns)
