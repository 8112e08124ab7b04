"""The thresholds that the rules of the portfolio compare a problem with."""

from __future__ import annotations

from dataclasses import dataclass

from marginsvm.algorithms.exact.interior.interior_points import MORE_STEPS


@dataclass(frozen=True)
class Portfolio:
    """Thresholds between the methods.

    Attributes
    ----------
    few_rows : int
        Rows up to which a working set is first, whatever else the problem is.
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
        Rounds without nearer bounds after which a method has stalled, or a quarter of all of its
        rounds, if these are more; less than those after which the fit has, which are twice as many.
    long_patience, nearer : int, float
        Rounds after which a method is slow that has left more than this share of the gap: most
        that end at all need no more than 40, and those that stall leave nearly all.
    """

    few_rows: int = 500
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
