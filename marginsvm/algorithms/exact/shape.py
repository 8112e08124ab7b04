"""What the rules of the portfolio look at, and the thresholds that they compare it with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsvm.algorithms.exact.choosing import rows_of_all_pairs
from marginsvm.algorithms.exact.interior.interior_points import MORE_STEPS
from marginsvm.algorithms.exact.interior.turned import NUMBERS_WRITTEN
from marginsvm.algorithms.exact.multipliers import is_steep
from marginsvm.certify.prices import HingeCaps
from marginsvm.data.csr import SPARSE_PRODUCT_COST
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import (
    are_dense,
    csr_examples,
    has_curvature,
    has_floats,
    side_in_cache,
)
from marginsvm.rows import OutputRows

# Bytes that a kernel fit holds for two rows while interior points take a step: five matrices, and
# as much as three that other methods have left (measured with 2,200 rows, either loss).
_BYTES_OF_TWO = 64


@dataclass(frozen=True)
class Portfolio:
    """Thresholds between the methods; see the tables of ``docs/exact_solver.md``.

    Attributes
    ----------
    few_rows : int
        Rows up to which a working set is first, whatever else the problem is.
    compiled : bool
        Whether numba's loops are used, if there are some: with a kernel, soft margins then begin
        with pairs of weights, and margins of more than two classes with those of one example.
    one_class : int
        Examples up to which a share of them with a kernel has interior points, which take 10 ms at
        most and always find the last digits.
    room : int
        Rows of a first working set at most: where so many carry weight, steps that take passes are
        quicker (with 3000, and eight classes that overlap, 3.5 s, not 1.2).
    few_left : int
        Rows with weight up to which a working set follows another method: there is room to grow.
    products : int
        Products with all rows that a system of these may cost: a working set solves some ten of
        them, and to go on takes some thousand products. With as many classes as examples, it costs
        thousands. Measured: 300 classes of one example each, 8 to 51 s, now 1.4 s.
    rows_a_number : float
        Rows with weight, for each number in one, up to which that holds of a soft margin. Of more,
        most are still to lose their weights: pendigits and mushrooms have 3.5 and 4, and took 1.4
        and 2 times as long.
    lost : float
        Part of the weights that rounding may cost there, if they are more than the numbers in one:
        of m rows, m units of rounding over the least slack. Measured: MNIST 3 against 5, raw, two
        rows a number, C = 1 (3e-6): 7.4 s, now 2; with C = 100 (3e-4), 13 s for 10.
    room_left : int
        Rows that it then may hold, but no more than twice those that it began with; and one with a
        kernel in any case, as it is seldom followed by another method: 200 MB.
    few_long : int
        Sparse examples, longer than a quarter of their number, up to which weights on all of them
        come first: their support is nearly all of them, and known after ten epochs of ascent. Of
        more, Newton's systems have fewer unknowns with weight than rows. And examples of a kernel
        up to which interior points end what pairs of tubes cannot: their matrix takes 0.8 GB.
    inside : int
        Products of numbers (examples times the square of features) in a step of interior points up
        to which they come first for the hinge loss: a few milliseconds.
    in_cache : int
        Numbers in all rows up to which they do for squared slack and no more than ``few_rows``
        examples, 0.5 MB: Newton's method takes 1.0 to 5 times as long there, of more examples (600
        to 2,000; german, svmguide1, letter, usps, pendigits) 0.7 to 1.2. And, twice as many, for
        hard margins of two to four times as many examples as features: about half of all rows of
        such data carry weight if they can be separated (Cover 1965), which takes a working set
        some rounds. Of fewer examples nearly all do, and one round is quicker; more overlap, or
        few carry weight. Measured: sonar 10.5 ms, now 4.9; musk1 26.6 and 13.3. With more numbers,
        multipliers are quicker for a share of the examples of one class: 5,000 x 50, 32 ms and 17.
    side_features, side_rows, side_products : int
        Unknowns of either side up to which interior points form its system (8 and 32 MB), and
        products of numbers that this takes at most on that of features: about a second.
    side_last : int
        Features or kernel rows up to which they do where nothing else comes nearer: 2 s a step.
    direct, direct_sparse : int
        Features of dense and of sparse examples of two classes up to which the matrix of Newton's
        system is formed. With more classes, it is up to as many unknowns as features of dense ones.
    factored : int
        Features up to which each class's part of it is factored otherwise, to precondition.
    factors : int
        Numbers in the factors of all classes at most: 256 MB.
    sample : int
        Examples that these are computed from.
    more : int
        Steps of interior points at most, see ``Interior``, until the weights that the solution
        needs prove the gap by themselves.
    patience : int
        Rounds without nearer bounds after which a method has stalled: half of those after which
        the fit has.
    long_patience, nearer : int, float
        Rounds after which a method is slow that has left more than this share of the gap: most
        that end at all need no more than 40, and those that stall leave nearly all.
    """

    few_rows: int = 500
    compiled: bool = True
    one_class: int = 200
    room: int = 1500
    few_left: int = 3000
    products: int = 500
    rows_a_number: float = 3.0
    lost: float = 1e-5
    room_left: int = 5000
    few_long: int = 10_000
    inside: int = 2**26
    in_cache: int = 2**16
    side_features: int = 1000
    side_rows: int = 2000
    side_last: int = 4000
    side_products: int = 2**34
    more: int = MORE_STEPS
    direct: int = 1000
    direct_sparse: int = 500
    factored: int = 2000
    factors: int = 2**25
    sample: int = 3000
    patience: int = 5
    long_patience: int = 20
    nearer: float = 0.5

    def room_of(self, shape: Shape) -> int:
        """How large a first working set may become."""
        return self.room_left if shape.by_kernel and not shape.soft else self.room


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

    def is_between(self, portfolio: Portfolio) -> bool:
        """Whether half of the rows may carry weight, more than a working set begins with."""
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
        return some and not self.tube and self._is_for_columns(portfolio)

    def is_for_share_pairs(self, portfolio: Portfolio) -> bool:
        """Whether they do for a share of the examples with a kernel."""
        some = self.share and not self.tube and self.rows > portfolio.one_class
        return some and self._is_for_columns(portfolio)

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
        return self.tube and (self.hinge or self.soft) and self._is_for_columns(portfolio)

    def _is_for_columns(self, portfolio: Portfolio) -> bool:
        """Whether weights on columns in float32 are possible, and quick."""
        return self.has_floats and portfolio.compiled and _compiles()


def _dimensions(problem: KernelMatrixAdapter) -> float:
    """Of the features of a polynomial; infinite of other kernels."""
    assert isinstance(problem, GramAdapter)
    return problem.dimensions


def _compiles() -> bool:
    from marginsvm._compiling import compiles  # which imports numba

    return compiles()
