"""Systems with those rows and columns of a growing matrix that belong to a changing set.

One Cholesky factor serves many sets: indices that came or went since it was computed make
a bordered system with as many extra unknowns, one triangular solve instead of a new factor.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs, dsysv

from marginsvm._typing import Array

# A border of up to one part in so many of the factor is cheaper than a new factor.
_MAX_BORDER = 12
# Added to the diagonal, relative to its mean, where rounding has made a matrix indefinite.
_LIFT = 1e-13
# Residual (the right hand sides are of size 1) at which refinement ends, and that it must reach.
_RESIDUAL, _MAX_RESIDUAL = 1e-14, 1e-13


class FaceSolver:
    """Solves with ``H[face, face]``; its arrays are replaced, never written to.

    Attributes
    ----------
    base : ndarray of int
        Indices of the rows that ``factor`` belongs to.
    factor : ndarray
        Upper Cholesky factor of ``H[base, base]``.
    """

    def __init__(self, base: Array, factor: Array) -> None:
        self.base = base
        self.factor = factor

    def solve(self, H: Array, face: Array, rhs: Array) -> Array | None:
        """``x`` with ``H[face, face] x = rhs``; None where that is not positive definite."""
        stays = np.zeros(len(H), bool)
        stays[self.base] = True
        inside = np.zeros(len(H), bool)
        inside[face] = True
        added = face[~stays[face]]
        gone = np.flatnonzero(~inside[self.base])
        if len(added) + len(gone) <= len(self.base) // _MAX_BORDER:
            x = self._corrected(H, face, rhs, added, gone)
            if x is not None:
                return x
        return self._factored(H, face, rhs)

    def _factored(self, H: Array, face: Array, rhs: Array) -> Array | None:
        factor, failed = dpotrf(H[face[:, None], face].T, lower=0, clean=0, overwrite_a=1)
        if failed:
            self.base = self.base[:0]
            lifted = H[face[:, None], face]
            lifted.flat[:: len(face) + 1] += _LIFT * np.mean(np.diag(H))
            factor, failed = dpotrf(lifted.T, lower=0, clean=0, overwrite_a=1)
            if failed:
                return None
        else:
            self.base, self.factor = face, factor
        return dpotrs(factor, rhs, lower=0)[0]

    def _corrected(
        self, H: Array, face: Array, rhs: Array, added: Array, gone: Array
    ) -> Array | None:
        """Solve with the border, and refine: it loses a few digits."""
        border = self._border(H, added, gone)
        x, wrong = np.zeros((len(H), rhs.shape[1]), order="F"), rhs
        for _ in range(3):
            load = np.zeros_like(x)
            load[face] = wrong
            change = self._through(border, load, added, gone)
            if change is None:
                return None
            x += change
            wrong = rhs - (H @ x)[face]
            if np.abs(wrong).max(initial=0.0) <= _RESIDUAL:
                break
        return x[face] if np.abs(wrong).max(initial=0.0) <= _MAX_RESIDUAL else None

    def _border(self, H: Array, added: Array, gone: Array) -> tuple[Array, Array]:
        """Couple the base to the added rows, and to multipliers that hold the gone at 0."""
        a, k = len(added), len(added) + len(gone)
        V = np.zeros((len(self.base), k), order="F")
        V[:, :a] = H[self.base[:, None], added]
        V[gone, np.arange(a, k)] = 1.0
        Y = dtrsm(1.0, self.factor, V, trans_a=1, overwrite_b=1) if k else V
        S = -(Y.T @ Y)
        S[:a, :a] += H[added[:, None], added]
        return Y, S

    def _through(
        self, border: tuple[Array, Array], load: Array, added: Array, gone: Array
    ) -> Array | None:
        Y, S = border
        x = load.copy(order="F")
        right = np.asfortranarray(x[self.base])
        right[gone] = 0.0
        half = dtrsm(1.0, self.factor, right, trans_a=1, overwrite_b=1)
        if Y.shape[1]:
            rest = -(Y.T @ half)
            rest[: len(added)] += x[added]
            z, failed = dsysv(S, rest)[2:]
            if failed:
                return None
            half -= Y @ z
            x[added] = z[: len(added)]
        inner = dtrsm(1.0, self.factor, half, overwrite_b=1)
        inner[gone] = 0.0
        x[self.base] = inner
        return x
