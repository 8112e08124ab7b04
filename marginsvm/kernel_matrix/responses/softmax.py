"""Softmax: the response of the exponential loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marginsvm._typing import Array
from marginsvm.data.block import Block
from marginsvm.data.threads import ordered_map
from marginsvm.kernel_matrix.responses.balancing import balancing_offsets, logsumexp, shifted_table
from marginsvm.kernel_matrix.responses.capped import CappedSoftmax
from marginsvm.kernel_matrix.responses.response import OnePassAnswer, Weights
from marginsvm.rows import Rows

_LARGEST_EXPONENT = 700.0  # dimensionless; the exponential of 710 overflows float64


class SoftmaxSums(NamedTuple):
    """Over each group of rows, the sum of ``exp(exponent - largest)``, and what it makes of X.

    Attributes
    ----------
    largest, mass : ndarray of shape (n_offsets, n_offsets)
        Tables of the largest exponents ``-margin / mu``, and of the sums.
    image : ndarray or None
        From ``Rows.group_products``: ``V^T X`` for each group.
    """

    largest: Array
    mass: Array
    image: Array | None

    @property
    def logs(self) -> Array:
        """Logarithms of the groups' weights."""
        with np.errstate(divide="ignore"):
            return self.largest + np.log(self.mass)


class SoftmaxParameters(NamedTuple):
    """What the weights of a block depend on besides its margins.

    Attributes
    ----------
    largest : ndarray of shape (n_offsets, n_offsets)
        Largest exponent of each group.
    exponents : ndarray of shape (n_offsets, n_offsets)
        Logarithm of what the exponentials of each group are multiplied with.
    """

    largest: Array
    exponents: Array


class Normalisation(NamedTuple):
    """How exponentials become balanced weights that sum to 1.

    Attributes
    ----------
    exponents : ndarray of shape (k, k)
        Logarithm of what the weights of each group are multiplied with.
    offsets : ndarray of shape (k,)
        Class offsets of the margins that this amounts to, in units of mu.
    log_total : float
        Logarithm of the sum of the balanced weights before they were divided by it.
    """

    exponents: Array
    offsets: Array
    log_total: float


def normalisation(table: Array) -> Normalisation:
    """Balance and normalise weights on groups, given their logarithms."""
    offsets = balancing_offsets(table)
    log_total = float(logsumexp(shifted_table(table, offsets).ravel()))
    exponents = shifted_table(np.zeros_like(table), offsets) - log_total
    return Normalisation(exponents, offsets, log_total)


@dataclass(frozen=True)
class Softmax:
    """``argmin <margins, q> + mu KL(q || prior)`` over the (balanced) simplex.

    The gradient of Ji's ``psi`` for the exponential loss; Ramdas's ``p_mu``.

    Balancing multiplies all weights of a group alike. So what a block contributes are sums over
    each group, and those of two blocks merge by rescaling to the larger exponent.
    """

    def respond(self, rows: Rows, margins: Array, mu: float = 1.0) -> Weights:
        """Weights on the rows, given the margins of all rows."""
        low = rows.group_min(margins)
        finite = np.where(np.isfinite(low), low, 0.0)
        e = np.exp((rows.expand(finite) - margins) * (1.0 / mu))
        prior = rows.prior
        e = e * prior if isinstance(prior, np.ndarray) else e
        with np.errstate(divide="ignore"):
            table = np.log(rows.group_sum(e)) - finite / mu
        exponents, offsets, log_total = normalisation(table)
        q = e * rows.expand(np.exp(exponents - finite / mu))
        log_risk = log_total if isinstance(prior, np.ndarray) else log_total + np.log(prior)
        return _weights(q, rows.min_margin(low), mu * offsets, log_risk)

    __call__ = respond

    def below(self, caps: Array) -> CappedSoftmax:
        """The softmax of a data player whose weights are at most ``caps``."""
        return CappedSoftmax(caps)

    def block_sums(
        self, rows: Rows, block: slice, X: Block | None, margins: Array, mu: float
    ) -> SoftmaxSums:
        """Sums over the groups of a block, counted from the largest exponent of each group."""
        largest = rows.block_min(margins, block) / -mu
        e = rows.weighted(_exponentials(rows, block, margins, mu, largest), block)
        image = None if X is None else rows.group_products(e, X, block)
        return SoftmaxSums(largest, rows.block_sum(e, block), image)

    def scan(
        self,
        rows: Rows,
        X: Block,
        parts: list[slice],
        predictor: tuple[Array, float],
        slack: Array | None,
        mu: float,
    ) -> tuple[Array, SoftmaxSums]:
        """Margins of examples of two classes, and the sums over the groups."""
        from marginsvm.kernel_matrix.responses.compiled_softmax import pass_over

        (w, shift), constant = predictor, X.constant
        factors = np.ones((3, rows.n_examples))
        factors[0] = 1.0 if X.scale is None else X.scale
        factors[1] = rows.weighted(factors[1])
        factors[2] = 0.0 if slack is None else slack
        numbers = np.array([constant * w[-1] if constant else 0.0, shift, 1.0 / mu])
        given, margins = X.undivided.matrix, np.empty(rows.n_examples)
        d, n_groups = given.shape[1], 2 if rows.balanced else 1
        sums, images = np.zeros((len(parts), 3, n_groups)), np.zeros((len(parts), n_groups, d))
        sums[:, 0] = -np.inf

        def work(i: int) -> None:
            task = rows.codes, factors, numbers, sums[i], images[i], margins
            pass_over(given, w[:d], parts[i].start, parts[i].stop, *task)

        ordered_map(work, range(len(parts)))
        largest = sums[:, 0].max(axis=0)
        shares = np.exp(sums[:, 0] - largest)
        image = np.einsum("pg,pgd->gd", shares, images)
        masses = np.einsum("pg,pmg->mg", shares, sums[:, 1:])
        if constant:
            image = np.column_stack([image, constant * masses[1]])
        tables = _table(largest, -np.inf), _table(masses[0], 0.0), _table(image, 0.0)
        return margins, SoftmaxSums(*tables)

    def merge(self, one: SoftmaxSums, other: SoftmaxSums) -> SoftmaxSums:
        """Rescale both sums to the larger exponent of each group, and add."""
        largest = np.maximum(one.largest, other.largest)
        finite = _finite(largest)
        a, b = np.exp(one.largest - finite), np.exp(other.largest - finite)
        mass = one.mass * a + other.mass * b
        if one.image is None or other.image is None:
            return SoftmaxSums(largest, mass, None)
        wide = a.shape + (1,) * (one.image.ndim - 2)
        image = a.reshape(wide) * one.image + b.reshape(wide) * other.image
        return SoftmaxSums(largest, mass, image)

    def finish(self, rows: Rows, sums: SoftmaxSums, mu: float) -> OnePassAnswer:
        """Balance and normalise the groups' sums."""
        exponents, offsets, log_total = normalisation(sums.logs)
        image = sums.image
        if image is not None:
            image = rows.sum_of_groups(image, np.exp(sums.largest + exponents))
        smallest = rows.min_margin(-mu * sums.largest)
        log_risk = log_total - np.log(rows.total_weight)
        weights = _weights(np.empty(0), smallest, mu * offsets, float(log_risk))
        return OnePassAnswer(image, weights, SoftmaxParameters(sums.largest, exponents))

    def block_weights(
        self, rows: Rows, block: slice, margins: Array, mu: float, parameters: SoftmaxParameters
    ) -> Array:
        """Weights on the rows of a block."""
        largest, exponents = parameters
        q = _exponentials(rows, block, margins, mu, largest)
        q *= rows.expand(np.exp(_finite(largest) + exponents), block)
        return rows.weighted(q, block)


def _table(of_groups: Array, diagonal: float) -> Array:
    """Values of the groups, of two classes or of none, in a table of them."""
    if len(of_groups) == 1:
        return of_groups[None]
    table = np.full((2, *of_groups.shape), diagonal)
    table[[0, 1], [1, 0]] = of_groups
    return table


def _exponentials(rows: Rows, block: slice, margins: Array, mu: float, largest: Array) -> Array:
    """``exp(-margin / mu - largest)``, which loses no digits where margins are large."""
    e = margins / -mu
    e -= rows.expand(_finite(largest), block)
    return np.exp(e, out=e)


def _finite(largest: Array) -> Array:
    """Largest exponents, 0 for groups that have no rows."""
    return np.where(largest > -np.inf, largest, 0.0)


def _weights(q: Array, min_margin: float, offsets: Array, log_risk: float) -> Weights:
    """Weights by the exponential loss, which is its own derivative but for the sign."""
    gradient_mass = float(np.exp(min(log_risk, _LARGEST_EXPONENT)))
    return Weights(q, 1.0, min_margin, offsets, log_risk, gradient_mass)


softmax = Softmax()
