"""The certificate that comes with every fit: two bounds on the best margin, and their proof."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np
import scipy.sparse as sp

from marginsvm.certify.checker.claims import relative_gap


@dataclass(frozen=True)
class MarginCertificate:
    """Two bounds on the best possible margin, and what proves them.

    Attributes
    ----------
    margin : float
        Lower bound on the margin of the fitted predictor, and so on the best margin (in margin
        units: those of X or of what ``of`` names; for a soft margin, of X with one slack
        coordinate for each row). A bound below 0 says nothing.
    margin_bound : float
        Upper bound on the margin of any predictor: the norm of ``A^T q`` (margin units). Both
        bounds allow for all rounding.
    status : str
        How the fit ended: ``certified``, ``separated``, ``no_margin``, ``stalled``,
        ``max_iter``, ``stopped`` or ``interrupted``.
    separable : bool or None
        Whether the classes can be separated. True: the predictor separates them. False: weights
        near ``weights`` are proved to exist for which ``A^T q`` is exactly zero, so that no
        predictor separates the classes. None: neither is known.
    weights : csr_array of shape (n_samples, 1) or (n_samples, n_classes)
        The distribution q that proves the upper bound. More than two classes: entry
        ``(i, j)`` belongs to example i held against class j.
    radius : float
        Largest norm of an example, the scale of margins (units of X). With an intercept, examples
        are measured from the mean of all or of some of them.
    of : str
        What the margins are those of, in words: ``X`` or, with ``normalize=True``, the examples
        divided by their norms. ``separable`` is about X in either case.
    nu : float or None
        If not None, margins are means of the worst margins of this share of the examples
        (dimensionless). ``separable`` is about all examples in either case.
    route : tuple of (str, int)
        The methods of the fit, in turn, and how many rounds each has played: more than one only
        where :class:`~marginsvm.MaxMarginClassifier` changed its method.

    Examples
    --------
    >>> from marginsvm import MaxMarginClassifier
    >>> clf = MaxMarginClassifier().fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> print(clf.certificate_)
    certified: 0.999999 <= best margin <= 1.00001 (relative gap ...), separable: True
    >>> clf.certificate_.weights.toarray().ravel()
    array([0. , 0.5, 0.5])
    """

    margin: float
    margin_bound: float
    status: str
    separable: bool | None
    weights: sp.csr_array
    radius: float
    of: str = "X"
    nu: float | None = None
    route: tuple[tuple[str, int], ...] = ()

    @property
    def gap(self) -> float:
        """Relative gap between the bounds, ``(margin_bound - margin) / margin_bound``.

        From 0 to 1 (dimensionless): by which fraction of the upper bound the predictor's margin
        falls short of it. No best margin is negative, so a lower bound below 0 counts as 0: the
        gap is 1 where no separator was found, and 0 where both bounds are 0.
        """
        return relative_gap(self.margin, self.margin_bound)

    def outcome(self, max_iter: int, tol: float) -> str:
        """Describe the end of a fit that did not reach its goal, in a sentence.

        Parameters
        ----------
        max_iter : int
            Number of rounds that the fit was allowed.
        tol : float
            Relative gap that the fit was to reach (dimensionless).

        Returns
        -------
        str
        """
        if self.status == "no_margin":
            if self.separable is False:
                known = "the classes overlap: no predictor separates them"
            else:
                known = (
                    f"no predictor has a {self._what} above "
                    f"{at_most(self.margin_bound, 3)}, which is negligible beside the radius "
                    f"{self.radius:.3g} of the data"
                )
            return f"proved that {known} (certificate_.weights is the proof)."
        how = "stalled" if self.status == "stalled" else f"ended after max_iter={max_iter} rounds"
        bounds = bounds_text(self.margin, self.margin_bound, self._what)
        return f"{how} with {bounds}, a relative gap of {self.gap:.3g} > tol={tol}."

    @property
    def _what(self) -> str:
        """Words for what is bounded, and what it is that of, unless that is X itself."""
        return quantity(self.nu) + ("" if self.of == "X" else f" on {self.of}")

    def __str__(self) -> str:
        bounds = bounds_text(self.margin, self.margin_bound, self._what)
        return f"{self.status}: {bounds} (relative gap {self.gap:.2g}), separable: {self.separable}"


def quantity(nu: float | None) -> str:
    """Words for what is maximised: the smallest margin, or the mean over a share of the worst."""
    return "margin" if nu is None else f"mean of the worst {100.0 * nu:.3g} % of margins"


def bounds_text(lower: float, upper: float, what: str = "margin") -> str:
    """Write both bounds as an inequality; a lower one that is not positive is left out."""
    below = f"{at_least(lower)} <= " if lower > 0 else ""
    return f"{below}best {what} <= {at_most(upper)}"


def at_least(bound: float, digits: int = 6) -> str:
    """Write a lower bound, rounded down, so that the written number is a lower bound as well."""
    return _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float, digits: int = 6) -> str:
    """Write an upper bound, rounded up, so that the written number is an upper bound as well."""
    return _rounded(bound, digits, ROUND_CEILING)


def _rounded(x: float, digits: int, direction: str) -> str:
    if not np.isfinite(x):
        return str(x)
    context = Context(prec=digits, rounding=direction, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return f"{float(context.create_decimal_from_float(float(x))):.{digits}g}"
