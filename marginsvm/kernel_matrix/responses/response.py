"""What a response of the data player is, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from marginsvm._typing import Array
from marginsvm.rows import Rows


@dataclass(frozen=True)
class Weights:
    """Weights on the rows, as a response gives them, and what is known along with them.

    Attributes
    ----------
    q : ndarray of shape rows.shape
        Weights on the rows, non-negative, balanced if the rows are. Empty where weights are
        computed only when a proof is due (on a cluster).
    mass : float
        Their sum (dimensionless, as all but ``min_margin``).
    min_margin : float
        Smallest margin of the predictor that was responded to, under its best intercept (units
        of the radius).
    offsets : ndarray of shape (k,)
        The response's own intercept, as class offsets of the margins.
    log_risk : float
        Logarithm of the average loss at ``offsets`` (prior as weights; dimensionless).
    gradient_mass : float
        Sum of the weights in the gradient of the average loss (dimensionless).
    smoothness : float
        Ji's rho of the loss (dimensionless): its psi is rho-smooth in the maximum norm.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.kernel_matrix import make_rows
    >>> from marginsvm.responses import softmax
    >>> rows = make_rows(np.array([0, 1]), 2, balanced=False)
    >>> weights = softmax.respond(rows, np.array([0.0, 1.0]))
    >>> weights.mass, weights.min_margin
    (1.0, 0.0)
    """

    q: Array
    mass: float
    min_margin: float
    offsets: Array
    log_risk: float
    gradient_mass: float
    smoothness: float = 1.0


@runtime_checkable
class Response(Protocol):
    """A smoothed best response of the data player: what ``problem.respond`` is given.

    It is a value: a frozen dataclass of its parameters, which can be pickled. With a method
    ``below(caps)``, it has a form for weights that are capped (``nu``).

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.kernel_matrix import make_rows
    >>> from marginsvm.responses import euclidean, softmax, worst_row
    >>> rows, margins = make_rows(np.array([0, 1]), 2, balanced=False), np.array([0.0, 0.5])
    >>> responses = (softmax, euclidean, worst_row)
    >>> [response.respond(rows, margins, 0.5).q.round(3) for response in responses]
    [array([0.731, 0.269]), array([0.75, 0.25]), array([1., 0.])]
    """

    def respond(self, rows: Rows, margins: Array, mu: float) -> Weights:
        """Weights on the rows, given the margins of all rows.

        Parameters
        ----------
        rows : Rows
            What the margins are of; whether weights have to be balanced.
        margins : ndarray of shape rows.shape
            Margins of the predictor that is responded to (units of the radius).
        mu : float
            Smoothing (units of the radius); 0: all weight on the row of smallest margin.

        Returns
        -------
        Weights
        """
        ...


def optional(response: Response, name: str) -> Callable[..., Any] | None:
    """A method that a response may have, or None.

    below(caps) -> Response
        The response among weights that are at most ``caps``, an array of rows.shape in proportion
        to the prior within each class (dimensionless).
    scan(rows, X, parts, predictor, slack, mu) -> (margins, sums)
        Margins of all examples of two classes, and sums as of ``block_sums``, by a compiled loop
        over X, a block that is ``scannable``.
        Threads take one of the ``parts``, slices of the examples, after the other. The predictor
        is (weights of the features, what is subtracted from scores), and ``slack``, an array of
        shape (n_examples,) or None, is added to the margins (units of the radius, as mu).
    """
    return getattr(response, name, None)


def below(caps: Array, response: Response) -> Response:
    """The form of a response for weights that are at most ``caps``.

    Raises
    ------
    ValueError
        If it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.kernel_matrix import make_rows
    >>> from marginsvm.responses import softmax
    >>> rows = make_rows(np.array([0, 1, 1]), 2, balanced=False)
    >>> capped = below(np.full(3, 0.5), softmax)
    >>> capped.respond(rows, np.array([0.0, 1.0, 1.0]), 0.1).q
    array([0.5 , 0.25, 0.25])
    """
    capped = optional(response, "below")
    if capped is None:
        raise ValueError(
            f"nu caps the weights on the examples, but {type(response).__name__} gives weights "
            "without caps only: choose loss='exponential', or nu=None"
        )
    return capped(caps)


@dataclass(frozen=True)
class OnePassAnswer:
    """What ``OnePassResponse.finish`` makes of the sums over all blocks.

    Attributes
    ----------
    image : ndarray of shape (n_features,) or (k, n_features); or None
        ``V^T X`` of the weights, V being what they are as coefficients on the examples;
        None if the sums were taken without the examples.
    weights : Weights
        All but ``q``, which is empty.
    parameters : object
        What ``block_weights`` needs besides the margins. It is sent to other machines, so
        it should not grow with the number of examples.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.data.csr import as_block
    >>> from marginsvm.kernel_matrix import make_rows
    >>> from marginsvm.responses import softmax
    >>> rows, every = make_rows(np.array([0, 1]), 2, balanced=False), slice(None)
    >>> X, margins = as_block(np.array([[1.0], [2.0]])), np.array([0.0, 0.0])
    >>> whole = softmax.finish(rows, softmax.block_sums(rows, every, X, margins, 1.0), 1.0)
    >>> whole.image, softmax.block_weights(rows, every, margins, 1.0, whole.parameters)
    (array([0.5]), array([0.5, 0.5]))
    """

    image: Array | None
    weights: Weights
    parameters: Any


@runtime_checkable
class OnePassResponse(Response, Protocol):
    """A response that can be computed block by block: a round then reads the data once.

    A block contributes sums, the sums of two sets of blocks merge into those of both, and the
    weights follow from the sums over all blocks. Each response chooses what its sums are.
    Where the examples are on other machines, the sums are all that is sent back in a round.

    Examples
    --------
    Two blocks of two examples each, a column of features:

    >>> import numpy as np
    >>> from marginsvm.data.csr import as_block
    >>> from marginsvm.kernel_matrix import make_rows
    >>> from marginsvm.responses import softmax
    >>> rows = make_rows(np.array([0, 1, 1, 0]), 2, balanced=False)
    >>> X, margins = np.array([[-1.0], [1.0], [3.0], [-3.0]]), np.zeros(4)
    >>> blocks = [slice(0, 2), slice(2, 4)]
    >>> sums = [softmax.block_sums(rows, b, as_block(X[b]), margins[b], 1.0) for b in blocks]
    >>> whole = softmax.finish(rows, softmax.merge(*sums), 1.0)
    >>> whole.image, whole.weights.mass
    (array([2.]), 1.0)
    """

    def block_sums(self, rows: Rows, block: slice, X: Any, margins: Array, mu: float) -> Any:
        """Sum up a block.

        Parameters
        ----------
        rows : Rows
            Rows of all examples, those of the block among them, with their sample weights.
        block : slice
            Where the examples of the block are among those of ``rows``.
        X : Block of shape (n_block, n_features) or None
            Examples of the block, see ``marginsvm/data/block.py``; None if the image is not asked
            for.
        margins : ndarray of shape (n_block, ...)
            Margins of the block's rows, in float64 (units of the radius); not to be changed.
        mu : float
            As in ``respond`` (units of the radius).

        Returns
        -------
        object
            The sums, which ``merge`` and ``finish`` take.
        """
        ...

    def merge(self, one: Any, other: Any) -> Any:
        """Merge the sums of two sets of blocks into those of both.

        Parameters
        ----------
        one, other : object
            From ``block_sums`` or ``merge``; not to be changed.

        Returns
        -------
        object
            The merged sums, of the same type.
        """
        ...

    def finish(self, rows: Rows, sums: Any, mu: float) -> OnePassAnswer:
        """Make the response of the sums over all blocks.

        Parameters
        ----------
        rows : Rows
            Rows of all examples.
        sums : object
            From ``merge``.
        mu : float
            As in ``respond`` (units of the radius).

        Returns
        -------
        OnePassAnswer
        """
        ...

    def block_weights(
        self, rows: Rows, block: slice, margins: Array, mu: float, parameters: Any
    ) -> Array:
        """Weights on the rows of a block.

        Parameters
        ----------
        rows, block, margins, mu : Rows, slice, ndarray, float
            As in ``block_sums`` (margins and mu in units of the radius).
        parameters : object
            From ``finish``.

        Returns
        -------
        ndarray of shape (n_block, ...)
            The block's part of the weights that ``respond`` gives for the margins of all rows.
        """
        ...
