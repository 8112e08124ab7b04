"""The report: what separates what, and what follows for the estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from textwrap import fill
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._cached import Later, cached_property
from marginsvm._rounding import at_least, at_most
from marginsvm._typing import Array
from marginsvm.separability.answer import COMPLETE, OVERLAP, QUASI, UNDECIDED, Answer
from marginsvm.separability.coefficients import EITHER, FINITE, UNIDENTIFIED
from marginsvm.separability.families import FAMILIES
from marginsvm.separability.family import Family

_WIDTH = 96  # characters of a line
_LISTED = 20  # lines of the table, and examples that are named


@dataclass(frozen=True, repr=False)
class Separability(Answer):
    """Result of :func:`check_separability`.

    Beside the attributes, ``margin`` and ``margin_bound`` bound the best margin of classes,
    ``separated`` is a mask of the examples that are predicted perfectly,
    and ``estimate_exists`` says whether the maximum-likelihood estimate is finite.
    The direction and the coefficients of small data are computed when they are first read.

    Attributes
    ----------
    kind : {"complete", "quasi-complete", "overlap", "undecided"}
        Complete: some direction has all rows strictly on the right side. Quasi-complete: some
        direction has some rows strictly on the right side, and none on the wrong side. Overlap:
        no direction has. A row is an example or, with more than two classes, an example held
        against another class. Columns that are not identified are left out. With kernels, the
        kind is ``complete`` or ``undecided``.
    separable : bool or None
        True: ``coef`` and ``intercept`` separate the classes. False: weights q near ``weights`` are
        proved to exist with ``A^T q`` exactly zero, for the numbers of X in float64. None: neither
        was found.
    separated_rows : ndarray of shape (n_samples, 1) or (n_samples, n_classes), bool
        The rows that are strictly on the right side. More than two classes: whether the class is
        ruled out for the example. Ordinal: of shape (n_samples, 2), whether it is certain that the
        outcome is no higher, and no lower (of the highest and the lowest category, both or none).
        Pairs whose draws are estimated: whether a win of the first, a draw, and a win of the second
        are ruled out. Rankings: each item against the next, and then against those not ranked.
    direction : Direction or None
        ``coef`` and ``intercept`` for which exactly these rows are strictly on the right side, and
        all others have the value 0: of all such, the one of largest margin on these rows in
        columns of like units (large sparse data and pairs: any). Ordinal: ``intercept`` are the
        thresholds. None if nothing is separated, and with kernels.
    coefficients : tuple of Coefficient
        Name and status of each coefficient: ``finite``, ``+inf``, ``-inf``, ``inf`` (of either
        sign, but for those that ``reason`` says are not decided) or ``not
        identified`` (its column is a combination of those before it). More than two classes:
        against the first class. Ordinal: thresholds first, named "a|b". Pairs: strengths of items
        against the first; an item that no chain of comparisons connects to it is not identified.
    overlap_weights : csr_array or None
        The proof that no other rows are separated: weights on the rows with ``A^T q = 0`` up to
        rounding, positive on so many that all rows that are not separated are combinations of
        these (of any sign where an example must be fitted exactly). None if separation is
        complete. Pairs: how often cycles of wins pass each comparison.
    reason : str
        Why the kind is undecided, or what is true up to rounding only; or an empty string.
    comparisons : Comparisons or None
        Cox's regression and choices: the pairs on which the proofs rest, and who is strictly
        ahead of whom.
    family : str
    fit_intercept : bool
        As asked.
    used : ndarray of shape (n_samples,), bool
        Examples that count: those of positive weight, and with trials.
    coef, intercept : ndarray or None
        The separator, if there is complete separation: ``coef_`` of the estimator or, with a
        kernel, ``dual_coef_`` for the examples ``estimator.support_``.
    weights : csr_array or None
        The proof that there is no complete separation, if ``separable`` is False: a distribution
        over the rows at which the classes meet, up to the rounding of its numbers. Of labels, it is
        that of the ``estimator``, on hardly more rows than there are coefficients.
    more : mapping
        Further arguments that were given, such as an offset.
    fit : callable or None
        What makes the ``estimator``; it may hold X and y.

    Examples
    --------
    >>> from marginsvm import check_separability
    >>> check_separability([[0.0], [1.0]], [0, 1])
    Separable (complete separation): a predictor separates the classes with margin 0.499,
    and none reaches more than 0.501.
    The maximum-likelihood estimate does not exist. Infinite: (intercept), x0.
    ...
      (intercept)  -inf
      x0           +inf
    """

    family: str = "binomial"
    fit_intercept: bool = True
    used: Array | None = None
    coef: Later[Array | None] = Later(None)
    intercept: Later[Array | None] = Later(None)
    weights: Later[sp.csr_array | None] = Later(None)
    more: Mapping[str, Any] = field(default_factory=dict)
    fit: Callable[[], Any] | None = None

    @property
    def _family(self) -> Family:
        return FAMILIES[self.family]

    @cached_property
    def estimator(self) -> Any:
        """The fitted exact solver, for ``predict`` or a certificate; None for counts.

        It is fitted when it is first asked for.
        """
        return None if self.fit is None else self.fit()

    @property
    def margin(self) -> float:
        """Lower bound on the best margin (margin units, those of X); NaN for counts."""
        return np.nan if self.estimator is None else float(self.estimator.margin_)

    @property
    def margin_bound(self) -> float:
        """Upper bound on the best margin; NaN for counts."""
        return np.nan if self.estimator is None else float(self.estimator.margin_bound_)

    @property
    def separated(self) -> Array:
        """Examples that are predicted perfectly as the estimate goes to infinity: a mask.

        All of their rows are separated. False for examples that must be fitted exactly, and for
        those of weight 0. Cox's regression, and choices: those whose event, or choice, rules out
        some others at risk, or alternatives (``comparisons.beaten_by``).
        """
        return self._family.separated(self.separated_rows)

    @property
    def planes(self) -> list[tuple[Array, float]]:
        """The places of X that the direction tells apart: pairs w, b of ``x w + b = 0``."""
        return [] if self.direction is None else self._family.planes(self.direction)

    @property
    def estimate_exists(self) -> bool | None:
        """Whether the maximum-likelihood estimate is finite, in the identified coefficients.

        It is where the examples overlap, and only then. None: undecided, be it in the last digits.
        """
        known = self.kind != UNDECIDED and self.separable is not None
        return self.kind == OVERLAP if known else None

    def remainder(self, X: Any) -> Any:
        """What to fit for the finite coefficients: their limits, as the others go to infinity.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As given to :func:`check_separability`.

        Returns
        -------
        Remainder or ndarray of bool, shape (n_samples, n_classes)
            ``rows`` and ``columns`` of X: fit ``X[rows][:, columns]``. The coefficients that the
            report calls finite are the same there. Multinomial: the classes that are still
            possible for each example, whose probabilities alone are to sum to 1; all features
            stay. Ordinal: ``rows``, the ``lower`` and ``upper`` category that each outcome is still
            known to be between, and ``columns``. Pairs: a mask of comparisons; of rankings, what
            is left of them; if draws are estimated, the outcomes that are still possible. Cox's
            regression: ``strata``, to be fitted with all examples, and ``columns``.

        Raises
        ------
        ValueError
            If the report is undecided, or one of a kernel, or X is other data.

        Examples
        --------
        >>> from marginsvm import check_separability
        >>> X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
        >>> rows, columns = check_separability(X, y).remainder(X)
        >>> rows.tolist(), columns.tolist()
        ([False, True, True, False], [])
        """
        if self.kind == UNDECIDED or not self.coefficients or self.used is None:
            raise ValueError("the report is undecided or of a kernel: no remainder is known")
        return self._family.remainder(self, X)

    def to_frame(self) -> Any:
        """Make a table of the coefficients.

        Returns
        -------
        pandas.DataFrame
            Their ``status`` and the ``direction``, with their names as index.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        names = [c.name for c in self.coefficients]
        return pd.DataFrame(
            {"status": [c.status for c in self.coefficients], "direction": self._flat_direction()},
            index=pd.Index(names, name="coefficient"),
        )

    def _flat_direction(self) -> Array:
        """The direction in the order of the coefficients: an intercept, and then the features."""
        n = len(self.coefficients)
        if self.direction is None or not n:
            return np.zeros(n)
        return self._family.flat(self.direction, n)

    def _texts(self) -> list[str]:
        offset = ["The offset changes nothing of this."] * ("offset" in self.more)
        return [self._finding(), *self._advice(), *offset]

    def __repr__(self) -> str:
        lines, left = self._shown()
        width = max((len(name) for name, _ in lines), default=0)
        table = [f"  {name:<{width}}  {words}" for name, words in lines]
        return "\n".join([*(fill(text, _WIDTH) for text in self._texts()), *table, *left])

    def _repr_html_(self) -> str:
        lines, left = self._shown()
        texts = "".join(f"<p>{escape(text)}</p>" for text in [*self._texts(), *left])
        rows = (f"<tr><th>{escape(name)}</th><td>{words}</td></tr>" for name, words in lines)
        return f"{texts}<table>{''.join(rows)}</table>" if lines else texts

    def _finding(self) -> str:
        if self.kind == COMPLETE and self.separable:
            return f"Separable (complete separation){self._margins()}."
        if self.kind == UNDECIDED:
            known = "Not separable:" if self.separable is False else "Undecided:"
            return f"{known} {self.reason}"
        start = "undecided in the last digits; up to rounding, " * (self.separable is None)
        found = f"no separation: the {self._family.noun} overlap"
        if self.kind != OVERLAP:
            found = f"{self.kind} separation: {self._separated()}"
        text = f"{start}{found}. {self.reason}"
        return text[0].upper() + text[1:]

    def _margins(self) -> str:
        if np.isnan(self.margin):
            return ""
        return (
            f": a predictor separates the classes with margin {at_least(self.margin, 3)}, "
            f"and none reaches more than {at_most(self.margin_bound, 3)}"
        )

    def _separated(self) -> str:
        """Which examples are separated, in words."""
        perfect = np.flatnonzero(self.separated)
        partly = int(self.separated_rows.any(axis=1).sum()) - len(perfect)
        n, noun = len(self.separated), self._family.noun
        text = f"{len(perfect)} of {n} {noun} {self._family.perfect}"
        if len(perfect):
            more = ", ..." if len(perfect) > _LISTED else ""
            text += f" ({', '.join(map(str, perfect[:_LISTED]))}{more})"
        return text + (f", and for {partly} others {self._family.partly}" if partly else "")

    def _advice(self) -> list[str]:
        doubt = ", up to rounding" * (self.estimate_exists is None)
        if self.kind == OVERLAP:
            return [
                f"The maximum-likelihood estimate exists{doubt}. If a fit did not converge, "
                f"separation is not the reason: {self._family.otherwise}."
            ]
        if self.kind != QUASI and (self.kind != COMPLETE or not self.coefficients):
            return []
        rest = ", or"
        if self.kind == QUASI:
            rest = "; the finite coefficients are those of a fit to remainder(X). Or"
        named = self._infinite()
        return [
            f"The maximum-likelihood estimate does not exist{doubt}."
            + (f" Infinite: {named}." if named else ""),
            f"Report these as infinite{rest} penalise the fit (Firth: {self._family.firth}). "
            "Standard errors and Wald intervals of a fit without a penalty mean nothing: give "
            "likelihood ratio tests and profile likelihood intervals.",
            *([] if doubt else [f"For a paper: {self.sentence}"]),
        ]

    def _infinite(self) -> str:
        """The names of infinite coefficients."""
        endless = [c for c in self.coefficients if c.status not in (FINITE, UNIDENTIFIED)]
        return ", ".join(c.name for c in endless[:_LISTED]) + ", ..." * (len(endless) > _LISTED)

    @property
    def sentence(self) -> str:
        """What to write in a paper; empty if the estimate exists, or the report is undecided."""
        if self.estimate_exists is not False or not self.coefficients:
            return ""
        one = self._infinite().count(",") == 0
        named, n, every = self._infinite() or "some contrasts", int(self.separated.sum()), self.used
        rest = "; the other estimates are those of the limit" * any(
            c.status == FINITE for c in self.coefficients
        )
        return (
            f"The maximum-likelihood estimate{'' if one else 's'} of {named} "
            f"{'is' if one else 'are'} infinite ({self.kind} separation of {n} of "
            f"{0 if every is None else int(every.sum())} {self._family.noun}){rest}."
        )

    def _shown(self) -> tuple[list[tuple[str, str]], list[str]]:
        """Names and words for the coefficients that are shown, and how many are not."""
        if all(c.status == FINITE for c in self.coefficients):
            return [], []
        kept = set(sorted(self.coefficients, key=lambda c: c.status == FINITE)[:_LISTED])
        words = {EITHER: "infinite, of either sign"}
        lines = [(c.name, words.get(c.status, c.status)) for c in self.coefficients if c in kept]
        left = len(self.coefficients) - len(lines)
        return lines, [f"  and {left} more: see coefficients or to_frame()"] * (left > 0)
