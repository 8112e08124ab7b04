"""Ordinal regressions: cumulative links, ``P(y <= j) = F(theta_j - x beta)``, F log-concave.

An example of category j has the rows (theta_j - x beta) and (x beta - theta_(j-1)), but for the
last category and the first. The thresholds theta come first among the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.certify.checker.coordinates import identified_columns
from marginsvm.separability.answer import Direction
from marginsvm.separability.design import Design, beside, times
from marginsvm.separability.family import Data, Family, same_examples
from marginsvm.separability.reading import in_an_order
from marginsvm.separability.sparse_faces import identified_of_sparse


class OutcomeBounds(NamedTuple):
    """What is still known of each outcome of an ordinal regression.

    Attributes
    ----------
    rows : ndarray of bool, shape (n_samples,)
        Examples of which something is.
    lower, upper : ndarray of int, shape (n_samples,)
        Places, among the categories that occur, that the outcome is between; the first and the
        last one bound nothing.
    columns : ndarray of int
        Columns of X that are identified there.
    """

    rows: Array
    lower: Array
    upper: Array
    columns: Array


@dataclass(frozen=True)
class Ordinal(Family):
    """Of categories in an order."""

    def read(self, X: Any, y: Any, more: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        X, y, more = super().read(X, y, more)
        names, codes = np.unique(y, return_inverse=True)
        if hasattr(y, "categories"):
            names, codes = y.categories, np.asarray(y.codes)
        return X, codes, {**more, "categories": tuple(names), "codes": codes}

    def outcomes(self, y: Any) -> Any:
        y = getattr(y, "values", y)
        if not hasattr(y, "categories"):
            return in_an_order(y)
        if not y.ordered:
            raise ValueError("the categories of y have no order: see pandas.Categorical(ordered=)")
        if np.any(y.codes < 0):
            raise ValueError("y contains NaN")
        return y

    def design(self, data: Data) -> Design:
        X, (used, j) = data.X, np.unique(data.y, return_inverse=True)
        k = len(used)
        if k < 2:
            name = data.more["categories"][used[0]]
            raise ValueError(
                f"all examples are of one category, {name}; there must be two at least"
            )
        exists = np.column_stack([j < k - 1, j > 0])  # y <= j, and y >= j, can be wrong
        of, half = np.nonzero(exists)
        sign = 1.0 - 2.0 * half
        theta = sp.csr_array((sign, (np.arange(len(of)), j[of] - half)), shape=(len(of), k - 1))
        A = beside(theta, times(X[of], -sign))
        names = [str(data.more["categories"][c]) for c in used]
        thresholds = [f"{a}|{b}" for a, b in pairwise(names)]
        nothing = np.zeros(len(of), bool)
        return Design(A, nothing, data.example[of], half, [*thresholds, *data.names], 2)

    def direction(self, w: Array, data: Data, design: Design) -> Direction:
        d = data.X.shape[1]
        return Direction(w[None, len(w) - d :], w[: len(w) - d])

    def flat(self, direction: Direction, n: int) -> Array:
        return np.concatenate([direction.intercept, direction.coef[0]])

    def planes(self, direction: Direction) -> list[tuple[Array, float]]:
        return [(-direction.coef[0], b) for b in direction.intercept]

    def remainder(self, report: Any, X: Any) -> OutcomeBounds:
        X = same_examples(report, self.examples(X)).astype(np.float64)
        example, separated = np.flatnonzero(report.used), report.separated_rows
        codes = report.more["codes"]
        names = [""] * X.shape[1]
        data = Data(X[example], codes[example], example, len(codes), names, False, report.more)
        design = self.design(data)
        place = np.searchsorted(np.unique(codes[example]), codes)
        lower = np.where(separated[:, 1], 0, place)
        upper = np.where(separated[:, 0], place[example].max(), place)
        rest = design.A[~separated[design.example, design.column]]
        found = np.zeros(0, int)
        if rest.shape[0]:
            found = (identified_of_sparse if sp.issparse(rest) else identified_columns)(rest)
        columns = found - (design.A.shape[1] - X.shape[1])
        return OutcomeBounds(report.used & ~report.separated, lower, upper, columns[columns >= 0])


ORDINAL = Ordinal(
    "ordinal",
    "brglm2 in R, of adjacent categories",
    intercept=False,
    partly="one of the two bounds holds for certain",
)
