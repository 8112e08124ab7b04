"""The separation report, and its consequences for the estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from textwrap import fill
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import validate_parameter_constraints

from marginsvm._threads import single_threaded_blas
from marginsvm._typing import Array
from marginsvm.separation import families
from marginsvm.separation.arguments import Arguments, labels_of_rows, with_labels_of
from marginsvm.separation.families import (
    FINITE,
    UNDECIDED,
    UNIDENTIFIED,
    Direction,
    Family,
)
from marginsvm.separation.fitted_models import arguments_of
from marginsvm.separation.program import nearly_collinear
from marginsvm.separation.proof import Answer, answer, in_floats, of_graph
from marginsvm.separation.regression import Regression
from marginsvm.separation.signs import statuses

T = TypeVar("T")

_WIDTH = 96  # characters of a line
_LISTED = 20  # largest number of lines of the table, and of named examples


class _OnRead(Generic[T]):
    """A field that may be set to a function: it is called when the field is first read."""

    def __init__(self, default: T) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, report: Any, owner: type) -> T:
        if report is None:
            return self.default
        value: Any = vars(report)[self.name]
        if callable(value):
            value = vars(report)[self.name] = value()
        return cast(T, value)

    def __set__(self, report: Any, value: T | Callable[[], T]) -> None:
        vars(report)[self.name] = value


class Coefficient(NamedTuple):
    """A coefficient of the estimate.

    Attributes
    ----------
    name : str
    status : {"finite", "+inf", "-inf", "inf", "not identified"}
        ``inf``: infinite, and the data does not determine the sign. ``not identified``: its
        column is a combination of those before it.
    """

    name: str
    status: str


@dataclass(frozen=True, repr=False)
class Separability:
    """Result of :func:`check_separability`.

    Further, ``separated`` is a mask of the perfectly predicted examples, and ``estimate_exists``
    tells whether the maximum-likelihood estimate is finite. The coefficients are computed on first
    access.

    Attributes
    ----------
    kind : {"complete", "quasi-complete", "overlap", "undecided"}
        Complete: some direction has all rows strictly on the right side. Quasi-complete: some
        direction has some rows strictly on the right side, and none on the wrong side. Overlap:
        there is no such direction. A row is an example or, with more than two classes, an example
        against another class. Columns that are not identified are left out.
    separated_rows : ndarray of shape (n_samples, 1) or (n_samples, n_classes), bool
        The rows that are strictly on the right side. More than two classes: whether the class is
        ruled out for the example. Ordinal: of shape (n_samples, 2), whether higher, and lower,
        outcomes are ruled out (in the highest and the lowest category, both or neither). Rankings:
        each item against the next, then against unranked ones. Cox's regression and choices:
        whether an event, or a choice, rules out others at risk, or alternatives.
    exact : bool
        Whether kind, rows and finite coefficients are proved without rounding, for the numbers of
        X as printed.
    separable : bool or None
        Whether all rows are separated; None: undecided.
    direction : Direction or None
        ``coef`` and ``intercept`` for which exactly the separated rows are positive, and all others
        are 0. Ordinal: ``intercept`` holds the thresholds. None if no row is separated.
    coefficients : tuple of Coefficient
        Name and status of each coefficient: ``finite``, ``+inf``, ``-inf``, ``inf`` (of either
        sign, unless ``reason`` names it as undecided) or ``not identified`` (its column is a
        combination of those before it). More than two classes: relative to the first class.
        Ordinal: thresholds first, named "a|b". Pairs: strengths relative to the first item; items
        that no chain of comparisons connects to it are not identified.
    overlap_weights : csr_array or None
        The dual certificate that no other rows are separated: q with ``A^T q = 0`` up to rounding,
        positive on rows that span all overlapping ones (of any sign where an example must be fitted
        exactly). Its shape is that of ``separated_rows``; Cox's regression and choices: indexed by
        winner and rival. None if separation is complete, and for pairs, where a cycle of wins and
        draws is the proof.
    reason : str
        Why the kind is undecided, or what holds up to rounding only; or an empty string.
    nearly_collinear : tuple of str
        Columns that R would leave out, as their residual on those before them is below 1e-11 of
        their length: here they are independent, and have a coefficient.
    family : str
    fit_intercept : bool
        Whether an intercept was added to the columns of X.
    constant : str or None
        The constant column of X that is the intercept which was asked for; none was added.
    used : ndarray of shape (n_samples,), bool
        Examples used: those of positive weight, and with trials.
    pairs : ndarray of shape (n_pairs,), bool
        Cox's regression and choices: which of the compared pairs are separated.
    tail : ndarray or None
        What rounding has taken from the direction, in the units of X as printed.
    given : mapping
        All arguments but X, for the remainder; y has the row labels of X, if X is a frame.

    Examples
    --------
    >>> from marginsvm import check_separability
    >>> check_separability([[0.0], [1.0]], [0, 1])
    Complete separation: 2 of 2 examples are predicted perfectly (0, 1).
    The maximum-likelihood estimate does not exist. Infinite, for y = 1: (intercept), x0.
    ...
      (intercept)  -inf
      x0           +inf
    """

    kind: str
    separated_rows: Array
    exact: bool = False
    separable: bool | None = None
    direction: Direction | None = None
    coefficients: _OnRead[tuple[Coefficient, ...]] = _OnRead(())
    overlap_weights: sp.csr_array | None = None
    reason: _OnRead[str] = _OnRead("")
    nearly_collinear: tuple[str, ...] = ()
    family: str = "binomial"
    fit_intercept: bool = True
    constant: str | None = None
    used: Array = field(default_factory=lambda: np.zeros(0, bool))
    pairs: Array = field(default_factory=lambda: np.zeros(0, bool))
    tail: Array | None = None
    given: Mapping[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, object]:
        """The state, with the coefficients computed."""
        return vars(self) | {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def _family(self) -> Family:
        return families.FAMILIES[self.family]

    @property
    def separated(self) -> Array:
        """Mask of the examples that are predicted perfectly as the estimate goes to infinity.

        All their rows are separated. False for examples that must be fitted exactly, and for those
        of weight 0. Cox's regression and choices: whether the event, or choice, rules out others at
        risk, or alternatives.
        """
        return self._family.separated(self.separated_rows)

    @property
    def estimate_exists(self) -> bool | None:
        """Whether the maximum-likelihood estimate is finite, in the identified coefficients.

        It is finite if and only if the examples overlap. None: undecided, possibly by rounding.
        """
        return self.kind == families.OVERLAP if self.exact or self.separable else None

    def remainder(self, X: Any) -> Any:
        """The regression whose estimate gives the finite coefficients (their limits).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As given to :func:`check_separability`.

        Returns
        -------
        Remainder or ndarray of bool, shape (n_samples, n_classes)
            ``rows`` and ``columns`` of X: fit ``X[rows][:, columns]``; the finite coefficients are
            the same there. Multinomial: the classes that remain possible for each example, whose
            probabilities sum to 1; all features stay. Ordinal: ``rows``, the ``lower`` and
            ``upper`` bound on each outcome's category, and ``columns``. Pairs: a mask of
            comparisons, or the remaining rankings. Cox's regression: ``strata``, to be fitted with
            all examples, and ``columns``.

        Raises
        ------
        ValueError
            If the report is undecided, or X is other data.

        Examples
        --------
        >>> from marginsvm import check_separability
        >>> X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
        >>> rows, columns = check_separability(X, y).remainder(X)
        >>> rows.tolist(), columns.tolist()
        ([False, True, True, False], [])
        """
        if self.kind == UNDECIDED:
            raise ValueError("the report is undecided: no remainder is known")
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if n != len(self.used):
            raise ValueError(f"X has {n} examples, but the report {len(self.used)}")
        arguments = families.arguments_for(self._family, X, self.given)
        return self._family.remainder(self, arguments)

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

        frame = pd.DataFrame(self.coefficients, columns=["coefficient", "status"])
        w: Any = 0.0
        if self.direction is not None:
            w = self._family.flat(*self.direction, self.fit_intercept)
        return frame.assign(direction=w).set_index("coefficient")

    def __repr__(self) -> str:
        texts = [fill(text, _WIDTH) for text in self._texts()]
        every = self.coefficients
        first = sorted(every, key=lambda c: c.status == FINITE)[:_LISTED]
        if not first or first[0].status == FINITE:
            return "\n".join(texts)
        shown = [c for c in every if c in first]
        names = [_printable(c.name) for c in shown]
        width = max(map(len, names))
        words = {families.EITHER: "infinite, of either sign"}
        table = [
            f"  {name:<{width}}  {words.get(c.status, c.status)}"
            for name, c in zip(names, shown, strict=True)
        ]
        left = len(every) - len(table)
        if left:
            table.append(f"  and {left} more: see coefficients or to_frame()")
        return "\n".join([*texts, *table])

    def _texts(self) -> list[str]:
        """Findings, and advice."""
        if self.kind == UNDECIDED:
            return [f"Undecided: {self.reason}"]
        start = doubt = ""
        if self.estimate_exists is None:
            start = "Undecided in the last digits; up to rounding: "
            doubt = ", up to rounding"
        if self.kind == families.OVERLAP:
            texts = [
                f"{start}No separation: the {self._family.noun} overlap. {self.reason}",
                f"The maximum-likelihood estimate exists{doubt}. If a fit did not converge, "
                "separation is not the reason: scale the features, or raise max_iter.",
            ]
        else:
            texts = self._texts_of_separation(start, doubt)
        if self.sentence:
            texts.append(f"For a paper: {self.sentence}")
        if self.nearly_collinear:
            texts.append(
                f"R would leave out {_listed(self.nearly_collinear)}: nearly a combination of the "
                "columns before, but none in these numbers."
            )
        if self.constant is not None:
            texts.append(
                f"{_printable(self.constant)} is constant: it is the intercept, and none is added."
            )
        if self.given.get("offset") is not None:
            texts.append("The offset changes nothing of this.")
        return texts

    def _texts_of_separation(self, start: str, doubt: str) -> list[str]:
        """Which examples are separated, which coefficients are infinite, and what to do."""
        family = self._family
        perfect = self._examples()[self.separated].tolist()
        partly = int(self.separated_rows.any(axis=1).sum()) - len(perfect)
        listed = f" ({_listed(perfect)})" if perfect else ""
        others = ""
        if partly > 0:
            others = f", and some outcomes are ruled out for {partly} others"
        limit = ""
        if self.kind == families.QUASI:
            limit = " The finite coefficients are those of a fit to remainder(X)."
        modelled = _printable(family.modelled(self.given["y"], self.used))
        infinite = _listed(self._infinite()) or "some contrasts"
        return [
            f"{start}{self.kind.capitalize()} separation: {len(perfect)} of "
            f"{len(self.separated)} {family.noun} {family.perfect}{listed}{others}. {self.reason}",
            f"The maximum-likelihood estimate does not exist{doubt}. "
            f"Infinite{modelled}: {infinite}.",
            f"Report these as infinite; or penalise the fit (Firth: {family.firth}); or drop a "
            f"feature that is a mistake, such as a copy of the outcome.{limit} Standard errors and "
            "Wald intervals of a fit without a penalty mean nothing: give likelihood ratio tests "
            "and profile likelihood intervals.",
        ]

    def _examples(self) -> Array:
        """The labels of the examples in a frame, or their positions."""
        labels = labels_of_rows(self.given["y"])
        return np.arange(len(self.used)) if labels is None else np.asarray(labels)

    def _infinite(self) -> list[str]:
        """The names of infinite coefficients."""
        return [
            c.name for c in self.coefficients if c.status not in (FINITE, UNIDENTIFIED)
        ]

    @property
    def sentence(self) -> str:
        """A sentence for a paper; empty if the estimate exists, or the report is undecided."""
        if self.estimate_exists is not False:
            return ""
        infinite = self._infinite()
        s, verb = ("", "is") if len(infinite) == 1 else ("s", "are")
        rest = ""
        if any(c.status == FINITE for c in self.coefficients):
            rest = "; the other estimates are those of the limit"
        return (
            f"The maximum-likelihood estimate{s} of {_listed(infinite) or 'some contrasts'} {verb} "
            f"infinite ({self.kind} separation of {int(self.separated.sum())} of "
            f"{int(self.used.sum())} {self._family.noun}){rest}."
        )


def _listed(names: Any) -> str:
    """The first names, separated by commas."""
    few = [_printable(name) for name in names[:_LISTED]]
    if len(names) > _LISTED:
        few.append("...")
    return ", ".join(few)


def _printable(name: Any) -> str:
    """A name with control characters, such as line ends, written out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(name))


_CONSTRAINTS = {"fit_intercept": ["boolean"]}


@single_threaded_blas()
def check_separability(
    X: Any,
    y: Any = None,
    *,
    family: str | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    offset: Any = None,
    strata: Any = None,
    entry: Any = None,
    groups: Any = None,
    feature_names: Any = None,
) -> Separability:
    """Detect separation in a regression, with proofs: whether its estimate exists.

    It tells whether classes are separable, and why a regression of classes, counts, times or
    comparisons did not converge. Such a regression has a finite maximum-likelihood estimate exactly
    if the data overlaps. Under complete separation, a combination of the features predicts all
    examples perfectly. Under quasi-complete separation, it predicts some of them perfectly, and is
    0 for the others. In both cases some coefficients are infinite. The units of the features do not
    matter.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The examples. Pairs: two columns with the compared items; or rankings, a list of sequences
        from the best item on, which may end with a set of unranked items. Or a model, fitted or
        not, of statsmodels (Logit, Probit, MNLogit, Poisson, NegativeBinomial, GLM, OrderedModel,
        ConditionalLogit, PHReg), or a fitted CoxPHFitter of lifelines with its data frame as ``y``.
    y : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Class labels; or counts of successes and failures, as two columns; or counts
        (``family="poisson"`` or ``"negative_binomial"``). Cox: time and event (1 or 0), or a
        structured array of both, as in scikit-survival. Conditional: 1 for chosen alternatives, 0
        for the others. Ordinal: numbers, or an ordered categorical of pandas (words are put in
        alphabetical order, with a warning). Pairs: 1 if
        the first item wins, 0 if the second does, 0.5 for a draw; None for rankings.
    family : {"binomial", "multinomial", "ordinal", "poisson", "negative_binomial", "cox", \
            "conditional", "pairs"}, default=None
        The regression. None: binomial for two classes and for two columns of counts, and
        multinomial for more classes.
    fit_intercept : bool, default=True
        Whether the regression has an intercept. A constant column of X, as of patsy, formulaic or
        ``add_constant``, is the intercept, and none is added. Ordinal regressions have thresholds
        instead, and Cox's, choices and pairs have none.
    sample_weight : array-like of shape (n_samples,), default=None
        Examples of weight 0 are left out. Other weights have no influence.
    offset : array-like of shape (n_samples,), default=None
        Offset of the linear predictor (log exposures of counts): it has no influence.
    strata : array-like of shape (n_samples,) or (n_samples, n_strata), default=None
        Cox: labels of strata, of one kind or several.
    entry : array-like of shape (n_samples,), default=None
        Cox: entry times (late entry, or the start of a period at risk).
    groups : array-like of shape (n_samples,), default=None
        Conditional: the group of each alternative.
    feature_names : sequence of str, default=None
        Names in the report. None: those of the columns of X, or x0, x1, and so on.

    Returns
    -------
    Separability
        The report and its proofs, see :func:`marginsvm.check_separability_proof`.

    Raises
    ------
    ValueError
        If the data or a parameter cannot be used; the message says what to do.

    See Also
    --------
    marginsvm.PerceptronVonNeumann : A paper's algorithm for complete separation.

    References
    ----------
    A. Albert, J. A. Anderson. On the existence of maximum likelihood estimates in logistic
    regression models. Biometrika, 1984.

    S. Correia, P. Guimaraes, T. Zylkin. Verifying the existence of maximum likelihood estimates
    for generalized linear models. 2019.

    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Theorem 2 (Gordan).

    S. Rump. Verification methods: rigorous results using floating-point arithmetic. Acta
    Numerica, 2010 (Krawczyk's argument).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import check_separability
    >>> X, y = load_iris(return_X_y=True)
    >>> check_separability(X[:100], y[:100]).separable
    True
    >>> check_separability(X[50:], y[50:]).kind
    'overlap'

    A feature that is non-zero only for some examples of one class:

    >>> import numpy as np
    >>> mark = np.where(np.arange(100) < 10, 1.0, 0.0)
    >>> report = check_separability(np.column_stack([X[50:], mark]), y[50:])
    >>> report.kind, int(report.separated.sum()), report.coefficients[-1]
    ('quasi-complete', 10, Coefficient(name='x4', status='-inf'))
    """
    fitted = arguments_of(X, y)
    if fitted is not None:
        return check_separability(**fitted)
    given = {
        "y": y,
        "fit_intercept": fit_intercept,
        "sample_weight": sample_weight,
        "offset": offset,
        "strata": strata,
        "entry": entry,
        "groups": groups,
        "feature_names": feature_names,
    }
    validate_parameter_constraints(_CONSTRAINTS, given, "check_separability")
    kind = families.family_of(family, y)
    arguments = families.arguments_for(kind, X, given)
    kind.warn_of(y)
    given["y"] = with_labels_of(X, y)
    unknown = Separability(
        UNDECIDED,
        np.zeros((arguments.n, 1), bool),
        family=kind.name,
        fit_intercept=arguments.intercept,
        constant=arguments.constant,
        used=arguments.used,
        given=given,
    )
    try:
        return _reported(unknown, kind, arguments)
    except MemoryError as error:
        return replace(unknown, reason=f"{error}.")


def _reported(
    unknown: Separability, kind: Family, arguments: Arguments
) -> Separability:
    """The report, with what is to be found out about its rows."""
    regression = kind.rows(arguments)
    by_graph = isinstance(kind, families.Pairs)
    known = of_graph(regression) if by_graph else answer(regression)
    found = known.found
    separated = found.separated
    collinear = (
        found.independent[:0]
        if by_graph
        else nearly_collinear(regression, found.independent)
    )
    table = kind.table(regression, separated)
    w, tail = _printed_direction(regression, known)
    direction = None
    if separated.any() and not known.undecided:
        direction = kind.direction(w, regression)
    weights = None
    if not (known.separable or by_graph):
        shape = (arguments.n, arguments.n) if kind.compares else table.shape
        weights = _overlap_weights(regression, known, shape)
    coefficients = _on_demand(regression, known)
    return replace(
        unknown,
        kind=UNDECIDED if known.undecided else families.kind_of(separated),
        exact=by_graph or (known.face is not None and not known.reason),
        separable=known.separable,
        separated_rows=table,
        direction=direction,
        tail=tail,
        overlap_weights=weights,
        nearly_collinear=tuple(regression.names[j] for j in collinear.tolist()),
        pairs=separated,
        coefficients=lambda: coefficients()[0],
        reason=lambda: coefficients()[1],
    )


def _printed_direction(regression: Regression, known: Answer) -> tuple[Array, Array]:
    """The direction in the units of the given X, and what rounding takes from it as printed."""
    w, low = known.found.direction
    face = known.face
    # what is published is the direction that is proved
    if face is not None and not face.is_all:
        near = face.near(known.found.direction)
        w, low = in_floats(near, face.independent, len(w))
    top = np.abs(w * regression.reach).max(initial=0.0)
    size = np.exp2(-np.frexp(top)[1])
    high = w * size * regression.unit
    return high, (w * size - high / regression.unit) + low * size


def _overlap_weights(
    regression: Regression, known: Answer, shape: tuple[int, int]
) -> sp.csr_array:
    """The dual variables as a table; their absolute values sum to 1."""
    found = known.found
    some = np.flatnonzero(found.weights)
    q = found.weights[some]
    at = found.sample[some]
    places = (regression.example[at], regression.column[at])
    return sp.csr_array((q / (np.abs(q).sum() or 1.0), places), shape=shape)


def _on_demand(
    regression: Regression, known: Answer
) -> Callable[[], tuple[tuple[Coefficient, ...], str]]:
    """A function of the coefficients and the report's reason, which it computes once."""

    @cache
    @single_threaded_blas()
    def compute() -> tuple[tuple[Coefficient, ...], str]:
        status, unknown = known.signs or statuses(regression, known.found, known.face)
        reasons = [known.reason] if known.reason else []
        if unknown:
            names = _listed([regression.names[j] for j in unknown])
            reasons.append(f"The signs of these are not decided: {names}.")
        return tuple(map(Coefficient, regression.names, status)), " ".join(reasons)

    return compute
