"""The arguments that all problems have in common, and the problem of a kernel."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.certify.spec import ProblemSpec
from marginsvm.certify.tolerances import ROUNDING_RTOL_OF_TOL
from marginsvm.data.normalized import Division, Normalized, of_normalized
from marginsvm.estimator.kernel_function import KernelFunction
from marginsvm.estimator.objects import first_equal, of_objects
from marginsvm.fit import Requirements
from marginsvm.kernel_matrix import GramAdapter
from marginsvm.kernel_matrix.single import Formula
from marginsvm.rows import LpNorm, Rows


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
        "rounding_rtol": ROUNDING_RTOL_OF_TOL * spec.tol,
    }


def kernel_problem(
    kernel: KernelFunction, X: Any, division: Division | None = None, **given: Any
) -> GramAdapter:
    """The problem of examples and a kernel that is not linear, or of a given kernel matrix."""
    error = kernel.error(X)
    values, X = _values_and_examples(kernel, X, division)
    formula = None
    if values is kernel and not callable(kernel.metric):  # a named one, of arrays in memory
        formula = Formula.named(kernel.metric, **kernel.named_params)
    return GramAdapter(values, X, formula=formula, kernel_error=error, **given)


def _values_and_examples(
    kernel: KernelFunction, X: Any, division: Division | None
) -> tuple[Any, Any]:
    """Function of kernel values and its examples; for a given matrix, None and the matrix."""
    values: Any = kernel.on_host(X)
    if kernel.metric == "precomputed":
        if division is None or not division.constant:
            return None, X  # all norms are 1
        X, values = np.arange(X.shape[0])[:, None], partial(_entries, X)
    if division is not None and division.scale is not None:
        return of_normalized(values), Normalized(X, division.scale, division.constant)
    if X.dtype == object:
        return partial(of_objects, values, X), first_equal(X)[:, None]
    if hasattr(kernel.metric, "prepare"):
        X = kernel.metric.prepare(X)
    return values, X


def _entries(K: Array, i: Array, j: Array) -> Array:
    """Entries of a given kernel matrix, for examples that are given by their indices."""
    return K[i[:, 0]][:, j[:, 0]].astype(np.float64, copy=False)
