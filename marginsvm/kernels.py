"""Kernels that scikit-learn does not have: tangent kernels of networks at their initialisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from marginsvm._typing import Array

_BLOCK_ROWS = 1024  # scratch of one block: so many rows times the width


def two_layer_relu_ntk(
    width: int = 128, random_state: int | np.random.RandomState | None = 0
) -> TwoLayerReluNTK:
    """Tangent kernel of a two-layer ReLU network at its initialisation.

    The network is ``f(x) = sum_j a_j relu(v_j . x)``, homogeneous of degree 2 in its
    weights ``v_j, a_j ~ N(0, 1 / width)``, so that ``K(x, x)`` is about ``|x|^2``.

    Parameters
    ----------
    width : int, default=128
        Number of neurons.
    random_state : int, RandomState instance or None, default=0
        Seed of the weights. All that is random is one seed drawn here: the kernel is the
        same in every call and every process.

    Returns
    -------
    TwoLayerReluNTK
        A picklable ``K(X, Y) -> matrix`` for ``kernel=``.

    Raises
    ------
    ValueError
        If width is below 1.

    References
    ----------
    Z. Ji, N. Srebro, M. Telgarsky. Fast Margin Maximization via Dual Acceleration.
    ICML 2021. Figure 3, Appendix F.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from marginsvm import AdaptiveSamplingKernelClassifier
    >>> from marginsvm.kernels import two_layer_relu_ntk
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> clf = AdaptiveSamplingKernelClassifier(
    ...     kernel=two_layer_relu_ntk(width=64), tol=0.1, random_state=0
    ... )
    >>> clf.fit(X, y).status_
    'certified'
    """
    if width < 1:
        raise ValueError(f"width must be at least 1 neuron, but is {width}")
    if not isinstance(random_state, (int, np.integer)):
        random_state = int(
            check_random_state(random_state).randint(np.iinfo(np.int32).max)
        )
    return TwoLayerReluNTK(int(width), int(random_state))


@dataclass(frozen=True)
class Prepared:
    """Examples with their hidden layer, ``H = relu(X V^T)``: rows are taken of both at once."""

    X: Array
    H: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of X."""
        return self.X.shape

    @property
    def dtype(self) -> Any:
        """Type of the numbers of X."""
        return self.X.dtype

    @property
    def extra_bytes(self) -> int:
        """Memory held beside the examples."""
        return self.H.nbytes

    def __getitem__(self, rows: Any) -> Prepared:
        return Prepared(self.X[rows], self.H[rows])


@dataclass(frozen=True)
class TwoLayerReluNTK:
    """Tangent kernel of a two-layer ReLU network, as a callable that pickles.

    ``K(x, x') = x . x' sum_j a_j^2 [v_j . x > 0][v_j . x' > 0] + relu(V x) . relu(V x')``. The
    two summands are the inner products of the gradients in V and in a. Weights are drawn
    in float64 and rounded to the type of X: float32 data get a float32 kernel.

    Parameters
    ----------
    width : int
        Number of neurons.
    seed : int
        Of the weights.

    References
    ----------
    Ji et al. (2021), Figure 3, Appendix F.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm.kernels import TwoLayerReluNTK
    >>> K = TwoLayerReluNTK(width=16, seed=0)
    >>> K(np.eye(3)).shape
    (3, 3)
    """

    width: int
    seed: int

    def weights(self, n_features: int, dtype: Any) -> tuple[Array, Array]:
        """Weights of the network.

        Parameters
        ----------
        n_features : int
        dtype : dtype
            They are drawn in float64 and rounded to it.

        Returns
        -------
        V : ndarray of shape (width, n_features)
            Of the hidden layer.
        a : ndarray of shape (width,)
            Of the output.
        """
        return _weights(self.width, self.seed, n_features, np.dtype(dtype))

    def prepare(self, X: Any) -> Prepared:
        """X with its hidden layer, for whoever asks for many columns of one X's kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or Prepared

        Returns
        -------
        Prepared
            To be given in place of X.
        """
        if isinstance(X, Prepared):
            return X
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        X = X.astype(np.result_type(X, np.float32), copy=False)
        V, _ = self.weights(X.shape[1], X.dtype)
        H = np.empty((len(X), self.width), X.dtype)
        for i in range(0, len(X), _BLOCK_ROWS):
            np.maximum(X[i : i + _BLOCK_ROWS] @ V.T, 0, out=H[i : i + _BLOCK_ROWS])
        return Prepared(X, H)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Kernel of all pairs.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        Y : array-like of shape (m, n_features), default=X

        Returns
        -------
        ndarray of shape (n, m)
        """
        left = self.prepare(X)
        right = left if Y is None else self.prepare(Y)
        a = self.weights(left.shape[1], left.dtype)[1]
        active = (right.H > 0) * a**2
        K = np.empty((left.shape[0], right.shape[0]), np.result_type(left.X, right.X))
        # K itself is the only array of its size
        for i in range(0, len(K), _BLOCK_ROWS):
            rows = slice(i, i + _BLOCK_ROWS)
            H = left.H[rows]
            np.matmul(left.X[rows], right.X.T, out=K[rows])
            K[rows] *= (H > 0).astype(H.dtype) @ active.T
            K[rows] += H @ right.H.T
        return K


# columns are asked for in blocks, and the weights cost as much as a block
@lru_cache(maxsize=8)
def _weights(
    width: int, seed: int, n_features: int, dtype: np.dtype[Any]
) -> tuple[Array, Array]:
    random = np.random.RandomState(seed)
    shapes = (width, (width, n_features))
    a, V = (random.standard_normal(shape) / np.sqrt(width) for shape in shapes)
    V = V.astype(dtype)
    a = a.astype(dtype)
    V.flags.writeable = a.flags.writeable = False  # shared by all calls
    return V, a
