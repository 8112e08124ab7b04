"""Intercepts of the scores of many classes: what they add to margins, and when weights balance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs

from marginsvm._typing import Array
from marginsvm.algorithms.exact.definite import cholesky
from marginsvm.rows import Rows

# Curvature in the intercepts, relative to the largest, up to which they are not connected.
_UNCONNECTED = 1e-12


@dataclass(frozen=True)
class ClassPairs:
    """The own and the other class of some rows of more than two classes.

    Intercepts b of the scores change the margins of these rows by ``B b``.
    """

    n_classes: int
    own: Array
    other: Array

    @classmethod
    def of(cls, rows: Rows, row_ids: Array) -> ClassPairs:
        """Pairs of the rows with these flat indices."""
        return cls(rows.n_classes, *np.divmod(rows.group(row_ids), rows.n_classes))

    def moves(self, b: Array) -> Array:
        """``B b``: what intercepts add to the margins."""
        return np.sqrt(0.5) * (b[self.own] - b[self.other])

    def imbalance(self, u: Array) -> Array:
        """``B' u``: by how much weights on the rows are out of balance."""
        own, other = (np.bincount(c, u, self.n_classes) for c in (self.own, self.other))
        return np.sqrt(0.5) * (own - other)

    def curvature(self, weight: Array) -> Array:
        """``B' diag(weight) B``."""
        k = self.n_classes
        return _laplacian(np.bincount(self.own * k + self.other, weight, k * k).reshape(k, k))


def intercept_curvature(rows: Rows, weight: Array, linked: Array | None = None) -> Array:
    """Second derivatives of the weighted squares of margins in the intercepts of the scores.

    For ``linked``, see ``capabilities.curvature``.
    """
    if rows.n_classes == 2:
        return np.asarray(weight.sum())
    L = _laplacian(rows.group_sum(np.broadcast_to(weight, rows.shape)))
    return L if linked is None else L + _laplacian(np.triu(linked.T @ linked, 1))


def _laplacian(table: Array) -> Array:
    """Second derivatives in the intercepts, from the weights of each pair of classes."""
    return 0.5 * (np.diag(table.sum(axis=0) + table.sum(axis=1)) - table - table.T)


@dataclass(frozen=True)
class InterceptSystem:
    """Systems with the curvature in the intercepts, by its Cholesky factor.

    A shift of all intercepts changes nothing. Steps have mean 0, and classes that no row connects
    are left where they are, up to rounding.
    """

    factor: Array

    @classmethod
    def of(cls, curvature: Array) -> InterceptSystem:
        """Factor the curvature in k > 2 intercepts, or in one of two classes."""
        L = np.atleast_2d(curvature)
        M = L + (L.trace() / L.size if len(L) > 1 else 0.0)
        M.flat[:: len(L) + 1] += _UNCONNECTED * L.diagonal().max()
        return cls(cholesky(M))

    def solve(self, force: Array) -> Array:
        """The step that a force asks for."""
        step = dpotrs(self.factor, force, lower=0)[0]
        return np.asarray(step - step.mean() if len(step) > 1 else step)
