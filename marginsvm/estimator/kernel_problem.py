"""The arguments that all problems have in common, and the problem of a kernel."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.estimator.objects import first_equal, of_objects
from marginsvm.fit import Requirements
from marginsvm.problem.adapter import GramAdapter
from marginsvm.problem.kernels import Kernel
from marginsvm.problem.matrix import FLOAT64
from marginsvm.problem.norms import LpNorm
from marginsvm.problem.rows import Rows
from marginsvm.problem.spec import ProblemSpec


class Division(NamedTuple):
    """How ``normalize=True`` divides the examples of a fit.

    With an intercept, a constant feature s is added to every example before the division. Examples
    are then ``(x, s) / |(x, s)|``, positive multiples of ``(x, s)``: some hyperplane through the
    origin separates their classes if and only if some hyperplane separates those of X. With s the
    largest norm of an example, their best margin rho and the best margin gamma of X satisfy
    ``gamma / 2 <= rho * s <= gamma``, and no other s promises as much in all cases.

    Attributes
    ----------
    constant : float
        The constant feature s (units of x); 0: there is none.
    scale : ndarray of shape (n_examples,) or None
        Inverses of the norms in the feature space of a kernel; None: the kernel is linear,
        and the norms are computed where the examples are.
    """

    constant: float
    scale: Array | None = None

    def undone(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients and intercept for the examples as given, from those after the division.

        Of a linear predictor ``(w, b / s)``, whose last entry is that of the constant feature s,
        they are w and b; of a kernel predictor, ``coef`` has one entry for each example.
        """
        if self.scale is not None:
            coef = coef * self.scale
            return coef, self.constant**2 * coef.sum(axis=1)
        if self.constant:
            return coef[:, :-1], self.constant * coef[:, -1]
        return coef, intercept


def common_arguments(
    spec: ProblemSpec, rows: Rows, norm: LpNorm, requires: Requirements
) -> dict[str, Any]:
    """Arguments of all kinds of problems, beside their examples."""
    return {
        "rows": rows,
        "C": spec.C,
        "norm": norm,
        "constant": spec.constant,
        "plan": requires.columns,
        "whole": requires.every_row,
    }


def kernel_problem(
    kernel: Kernel, X: Any, division: Division | None = None, wide: bool = False, **given: Any
) -> GramAdapter:
    """The problem of examples and a kernel that is not linear, or of a given kernel matrix.

    ``wide``: whether values of named kernels are kept in float64, whatever the examples are in.
    """
    function: Any = kernel
    if kernel.metric == "precomputed":
        function = None
    elif getattr(X, "dtype", None) == np.dtype(object):
        function, X = partial(of_objects, kernel, X), first_equal(X)[:, None]
    elif hasattr(kernel.metric, "prepare"):
        X = kernel.metric.prepare(X)
    if division is not None and (function is not None or division.constant):
        given |= {"scale": division.scale, "constant": division.constant}
    if not callable(kernel.metric) and function is not None:
        given["dtype"] = FLOAT64 if wide else np.dtype(X.dtype)
    return GramAdapter(function, X, **given)
