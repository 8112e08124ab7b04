"""What the rules of the portfolio look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm._rounding import UNIT
from marginsvm.algorithms.exact.choosing import rows_of_all_pairs
from marginsvm.algorithms.exact.interior.turned import NUMBERS_WRITTEN
from marginsvm.algorithms.exact.multipliers import is_steep
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.certify.prices import HingeCaps
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import (
    are_dense,
    csr_examples,
    has_curvature,
    has_floats,
    side_in_cache,
)
from marginsvm.problem.matrix import SPARSE_PRODUCT_COST
from marginsvm.rows import OutputRows

# Bytes that a kernel fit holds for two rows while interior points take a step: five matrices, and
# as much as three that other methods have left (measured with 2,200 rows, either loss).
_BYTES_OF_TWO = 64


@dataclass(frozen=True)
class Shape:
    """What the rules look at.

    Attributes
    ----------
    rows, examples, classes : int
    width : float
        Numbers in a row that is written out; infinite with a kernel.
    filled : float
        The part of these that costs time in second moments: 1, or less of two sparse classes.
    features : int
        Numbers in an example, the constant feature included; 0 with a kernel.
    first_rows : int
        Rows that a working set would begin with: some for each pair of classes.
    by_kernel, has_floats : bool
        Whether examples are only known by their inner products; and whether these fit float32.
    cached : float
        Rows of a kernel whose columns and systems of interior points take ``cache_size``; or 0.
    sparse, dense : bool
        Whether the examples are a CSR matrix in memory, or a dense array in it.
    hinge : bool
        Whether slack costs its size.
    soft : bool
        Whether it costs its square; neither: a hard margin.
    slack : float
        The least square of a row's extra coordinate (in radii squared), where it does.
    steep : bool
        Whether softer margins on the way lead to this one sooner.
    signed : bool
        Whether coefficients have given signs.
    tube : bool
        Whether scores are to lie in intervals.
    dimensions : float
        Of a kernel's feature space, where that is known to be few; else infinite.
    share : bool
        Whether a share of the examples is given: that of the worst margins, whose mean counts, or
        that outside of the intervals, whose width is to be found.
    """

    rows: int
    examples: int
    classes: int
    width: float
    filled: float
    features: int
    first_rows: int
    by_kernel: bool
    has_floats: bool
    cached: float
    sparse: bool
    dense: bool
    hinge: bool
    soft: bool
    slack: float
    steep: bool
    signed: bool
    tube: bool
    dimensions: float
    share: bool

    @classmethod
    def of(cls, problem: KernelMatrixAdapter) -> Shape:
        """The shape of a problem."""
        rows, by_features = problem.rows, has_curvature(problem)
        each = int(np.prod(rows.score_shape[1:]))  # images: one for each class, or one in all
        csr = csr_examples(problem)
        part = csr.nnz / np.prod(csr.shape) if csr is not None and rows.n_classes == 2 else 1.0
        return cls(
            rows=problem.n_rows,
            examples=rows.n_examples,
            classes=rows.n_classes,
            width=problem.width,
            filled=min(1.0, float(SPARSE_PRODUCT_COST * part)),
            features=int(problem.width) // each if by_features else 0,
            first_rows=min(rows_of_all_pairs(problem), problem.n_rows),
            by_kernel=not by_features,
            has_floats=not by_features and has_floats(problem),
            cached=0.0 if by_features else side_in_cache(problem, _BYTES_OF_TWO),
            sparse=csr is not None,
            dense=are_dense(problem),
            hinge=isinstance(problem.caps, HingeCaps),
            soft=problem.slack is not None,
            slack=0.0 if problem.slack is None else float(problem.slack.min()),
            tube=isinstance(rows, OutputRows),
            dimensions=np.inf if by_features else _dimensions(problem),
            share=problem.nu is not None,
            steep=is_steep(problem),
            signed=problem.signs is not None,
        )

    @property
    def unknowns(self) -> int:
        """Of Newton's system, for several classes."""
        return self.classes * (self.features + 1)

    @property
    def has_long_rows(self) -> bool:
        """Whether examples are longer than a quarter of their number."""
        return self.width > self.examples // 4

    def is_small(self, portfolio: Portfolio, most: int | None = None) -> bool:
        """Whether interior points can solve it: one of its sides has few unknowns.

        Parameters
        ----------
        portfolio : Portfolio
        most : int, default=portfolio.side_features
            Features at most; or, if it is given, rows of a kernel that has room for them.
        """
        products = self.rows * (self.filled * self.width) ** 2
        if self.classes > 2:  # a row has features of two classes; one that shares a cap, of all
            products /= 2.0 * self.classes if self.hinge else self.classes**2
        short = self.width <= min(self.rows, most or portfolio.side_features)
        rows = max(portfolio.side_rows, min(most or 0, self.cached))
        return (short and products <= portfolio.side_products) or self.rows <= rows

    def room(self, portfolio: Portfolio) -> int:
        """How many rows a first working set may hold."""
        return portfolio.room_left if self.by_kernel and not self.soft else portfolio.room

    @property
    def is_written_out(self) -> bool:
        """Whether the examples have features, and are few enough numbers to write out."""
        return not self.by_kernel and self.examples * self.features <= NUMBERS_WRITTEN

    @property
    def has_other_axes(self) -> bool:
        """Whether interior points can take the examples along other axes than at first.

        Fewer dense examples than features are along such axes from the beginning, and signs of
        coefficients know no others.
        """
        other = self.sparse or self.features <= self.examples
        return self.is_written_out and other and not self.signed

    def is_inside(self, portfolio: Portfolio) -> bool:
        """Whether steps of interior points are cheap, on the side of features."""
        short = not self.by_kernel and self.width <= self.examples and self.is_small(portfolio)
        return short and self.examples * self.width**2 <= portfolio.inside

    def is_short(self, portfolio: Portfolio) -> bool:
        """Whether there are few examples, and few numbers in all rows."""
        few = self.examples <= portfolio.few_rows
        return few and self.rows * self.width <= portfolio.in_cache

    def are_few(self, portfolio: Portfolio, m: int) -> bool:
        """Whether so few rows, m, have weight that a working set of them is quicker."""
        product = 2.0 * self.rows * self.features
        face = m * m * (m / 3.0 + 4.0 * self.classes)  # its factor, and balance among all classes
        few = 0 < m <= portfolio.few_left and not self.tube and not self.share
        few = few and (self.by_kernel or face <= portfolio.products * product)
        if not self.soft or m <= self.width:
            return few
        # most of many more rows than features still lose weight; pivoting has digits by slack alone
        few = few and m <= portfolio.rows_a_number * self.width
        return few and m * UNIT <= portfolio.lost * self.slack

    def is_between(self, portfolio: Portfolio) -> bool:
        """Whether half of a hard margin's rows may carry weight, more than one begins with."""
        if self.soft or self.hinge or self.tube or self.share or self.signed:
            return False
        some = 2.0 * self.width <= self.examples <= 4.0 * self.width and self.rows > self.first_rows
        short = self.rows * self.width <= 2 * portfolio.in_cache
        return some and short and not self.sparse and self.is_inside(portfolio)

    def is_wide(self, portfolio: Portfolio) -> bool:
        """Whether there are few dense examples, of more features than examples."""
        most = portfolio.few_left if self.classes == 2 else portfolio.room
        dense = not self.by_kernel and not self.sparse
        return dense and self.features > self.examples and self.rows <= most

    def is_wide_tube(self, portfolio: Portfolio) -> bool:
        """Whether interior points solve by the inner products of the examples."""
        return self.width > self.examples and self.is_small(portfolio)

    def is_long(self, portfolio: Portfolio) -> bool:
        """Whether there are few sparse examples of two classes, which are long."""
        long = self.sparse and self.classes == 2 and self.has_long_rows
        return long and self.examples <= portfolio.few_long

    def is_for_ascent(self, portfolio: Portfolio) -> bool:
        """Whether there are many examples of several classes; those without hinge loss sparse.

        Of a hard margin they are long: of short ones few carry weight, or nothing separates.
        """
        if self.classes == 2 or self.tube or self.rows <= portfolio.few_rows:
            return False
        if self.hinge:
            at_hand = self.sparse or (self.dense and self.is_written_out)
            return at_hand and not self.is_inside(portfolio)
        many = self.sparse and self.unknowns > portfolio.direct
        return many and (self.soft or self.has_long_rows)

    def is_for_pairs(self, portfolio: Portfolio) -> bool:
        """Whether weights on columns come first: with a kernel, and slack or several classes."""
        some = self.hinge or self.soft or self.classes > 2
        if self.rows <= portfolio.few_rows:
            some = self.hinge and self.classes == 2
        return some and not self.tube and self.has_floats

    def is_for_share_pairs(self, portfolio: Portfolio) -> bool:
        """Whether they do for a share of the examples with a kernel."""
        some = self.share and not self.tube and self.rows > portfolio.one_class
        return some and self.has_floats

    def is_large_share(self, portfolio: Portfolio) -> bool:
        """Whether a share of the examples is given, and steps by features are quicker."""
        some = self.share and not self.by_kernel
        if self.tube:
            return some and not self.is_small(portfolio)
        return some and self.classes == 2 and self.rows * self.width > portfolio.in_cache

    def has_few_dimensions(self, portfolio: Portfolio) -> bool:
        """Whether a kernel's features are so few that steps of interior points are cheap."""
        few = 2.0 * self.dimensions <= self.examples and self.is_small(portfolio)
        return few and self.examples * self.dimensions**2 <= portfolio.inside

    def is_for_tube_pairs(self, portfolio: Portfolio) -> bool:
        """Whether they do for a tube with a kernel, and slack of either loss."""
        return self.tube and (self.hinge or self.soft) and self.has_floats


def _dimensions(problem: KernelMatrixAdapter) -> float:
    """Of the features of a polynomial; infinite of other kernels."""
    assert isinstance(problem, GramAdapter)
    return problem.dimensions
