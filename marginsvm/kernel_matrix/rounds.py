"""How a best response is computed over the examples of a store: in which passes, by what.

Each function takes a response, the predictor in the user's units with what is subtracted from its
scores, and what slack adds to the margins. It gives the weights on the rows, their ``V^T X``, and
all else that the response says of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import Any

import numpy as np

from marginsvm._rounding import summed
from marginsvm._typing import Array
from marginsvm.data import passes
from marginsvm.data.memory import Store, parts_to_scan
from marginsvm.data.passes import Located, span_of
from marginsvm.kernel_matrix.responses import (
    OnePassResponse,
    Response,
    Weights,
)
from marginsvm.kernel_matrix.responses.response import optional
from marginsvm.rows import Rows

FeatureWeights = tuple[Array, Any]  # weights of the features, and what is subtracted from scores
Found = tuple[Array, Array, Weights]
Round = Callable[[Any, FeatureWeights, Array | None, float], Found]

# Largest size (in numbers; 32 MiB) of the images of all groups together that a pass sums group by
# group. With more classes, a second pass costs less than that memory for each block.
_MAX_SUMS = 2**22


class Rounds:
    """The ways to compute a response, for examples that do not change.

    Parameters
    ----------
    store : Store
    rows : Rows
    width : int
        Features, with a constant one.

    Attributes
    ----------
    reads_once : bool
        Whether the images of all groups are summed up in the pass that computes the margins.
    """

    def __init__(self, store: Store, rows: Rows, width: int) -> None:
        self._store, self._rows = store, rows
        self._parts = parts_to_scan(store.whole) if len(rows.shape) == 1 else []
        # sums for each group take more work than a second product, but the data is read once
        groups = rows.n_offsets**2 if rows.n_offsets > 2 else 1
        self.reads_once = groups == 1 or (store.whole is None and groups * width <= _MAX_SUMS)

    def way_of(self, response: Response) -> Round | None:
        """The way to compute this response; None: it needs the margins of all rows at once."""
        # first what takes no time: isinstance of a protocol is a tenth of a round of some examples
        if not (self._parts or self._store.one_pass) or not isinstance(response, OnePassResponse):
            return None
        if self._parts and optional(response, "scan"):
            return self._scan
        if not self._store.one_pass:
            return None
        if self.reads_once:
            return self._in_one_pass
        return None if self._store.whole is None else self._in_two_passes

    def _scan(
        self, response: OnePassResponse, predictor: FeatureWeights, slack: Array | None, mu: float
    ) -> Found:
        """By a compiled loop, which reads X once."""
        scan = optional(response, "scan")
        assert scan is not None
        M, sums = scan(self._rows, self._store.whole, self._parts, predictor, slack, mu)
        return self._finished(response, M, sums, mu)

    def _in_one_pass(
        self, response: OnePassResponse, predictor: FeatureWeights, slack: Array | None, mu: float
    ) -> Found:
        """By two products for each block, while it is in cache."""
        work = partial(
            passes.margins_and_sums,
            W=predictor[0],
            shift=predictor[1],
            block_sums=partial(response.block_sums, mu=mu),
            merge=response.merge,
        )
        margins, sums = zip(*self._store.map(work, self._rows, slack), strict=True)
        return self._finished(response, np.concatenate(margins), _merged(response, sums), mu)

    def _in_two_passes(
        self, response: OnePassResponse, predictor: FeatureWeights, slack: Array | None, mu: float
    ) -> Found:
        """By a pass for the margins and another one for the image; each thread has its part."""
        W, shift = predictor

        def first(rows: Rows, blocks: list[Located], slack: Array | None) -> tuple[Array, Any]:
            M = passes.margins(rows, blocks, slack, W, shift)
            return M, response.block_sums(rows, span_of(blocks), None, M, mu)

        margins, sums = zip(*self._store.map(first, self._rows, slack), strict=True)
        whole = response.finish(self._rows, _merged(response, sums), mu)

        def second(rows: Rows, blocks: list[Located], M: Array) -> tuple[Array, Array]:
            span = span_of(blocks)
            q = response.block_weights(rows, span, M[span], mu, whole.parameters)
            return q, passes.image(rows, blocks, rows.adjoint(q, span), span.start)

        M = np.concatenate(margins)
        q, images = zip(*self._store.map(second, self._rows, M), strict=True)
        return np.concatenate(q), summed(images), whole.weights

    def _finished(self, response: OnePassResponse, M: Array, sums: Any, mu: float) -> Found:
        whole = response.finish(self._rows, sums, mu)
        assert whole.image is not None  # the sums were taken with the examples
        q = response.block_weights(self._rows, slice(None), M, mu, whole.parameters)
        return q, whole.image.astype(np.float64, copy=False), whole.weights


def _merged(response: OnePassResponse, sums: Iterable[Any]) -> Any:
    return reduce(response.merge, sums)
