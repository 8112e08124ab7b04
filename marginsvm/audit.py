"""Audit of SVMs fitted by other software: objective and margin against certified bounds.

A model's attributes are converted to estimators of this package: one, or one per pair of classes
(libsvm) or per class against the rest (liblinear, SGD). Objective and margin are then computed as
for any estimator.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_outlier_detector, is_regressor
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    column_or_1d,
)

from marginsvm._rounding import check_exact
from marginsvm._typing import Array
from marginsvm.certificate.bounded import Floats
from marginsvm.certificate.reading import Data, FittedPrograms, class_weights
from marginsvm.certificate.unwrapping import unwrapped
from marginsvm.estimators.exact import MaxMarginClassifier
from marginsvm.estimators.fit_blocks import source_data
from marginsvm.estimators.outliers import MaxMarginOutlierDetector
from marginsvm.estimators.regressor import MaxMarginRegressor
from marginsvm.problem.kernel_functions import kernel_on
from marginsvm.problem.matrix import Blocks, as_matrix, dense, examples_on_host, on_host
from marginsvm.problem.quadratic_program import quantile
from marginsvm.problem.source import Source

HINGES = ("hinge", "squared_hinge")
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")
KERNEL = {"kernel": "rbf", "gamma": "scale", "degree": 3, "coef0": 0.0}
NEAR = 1e-4  # tolerance of predictions, relative to the largest score
TRIED = 1000  # number of examples whose predictions are compared
SHOWN = 10  # number of problems in the printed report
# A quantile is taken at a mass that is less by rounding, so that a sum reaches it.
JUST_BELOW = 1.0 - 1e-12


@dataclass(frozen=True)
class Worth:
    """Objective or margin of a predictor, with certified bounds on the optimum.

    Attributes
    ----------
    value : float
        Value of the model.
    lower, upper : float
        Certified bounds on the optimal value.
    is_margin : bool
        True: a margin, to be maximised. False: an objective, to be minimised.

    Examples
    --------
    >>> from marginsvm.audit import Worth
    >>> print(Worth(0.699, 0.8176, 0.8176, is_margin=True))
    0.699; the best is 0.8176: 14.5 % short
    """

    value: float
    lower: float
    upper: float
    is_margin: bool

    @property
    def short(self) -> tuple[float, float]:
        """Lower and upper bound on the suboptimality, relative to the optimum."""
        ends = (self.lower, self.upper) if self.is_margin else (self.upper, self.lower)
        sign = 1.0 if self.is_margin else -1.0
        least, most = (
            max(0.0, sign * (x - self.value) / x) if x > 0.0 else 0.0 for x in ends
        )
        return least, most

    def __str__(self) -> str:
        apart = self.upper - self.lower > 1e-4 * abs(self.upper)
        both = (
            f"between {self.lower:.4g} and {self.upper:.4g}"
            if apart
            else f"{self.upper:.4g}"
        )
        best, short = ("best", "short") if self.is_margin else ("least", "above it")
        shares = dict.fromkeys(f"{100.0 * share:.3g}" for share in self.short)
        return (
            f"{self.value:.4g}; the {best} is {both}: {' to '.join(shares)} % {short}"
        )


@dataclass(frozen=True)
class Claim:
    """A property that a model states or implies, and whether it holds.

    Attributes
    ----------
    name : str
        ``free_intercept``: the intercept is not penalised. ``iterations``: the solver stopped
        before its limit of iterations, if it has one. ``tolerance``: the objective of the model's
        own problem (with a penalised intercept if it has one) exceeds the minimum by at most
        ``tol``, relative to the minimum. ``share``: at most a fraction nu of the examples are
        outliers.
    holds : bool or None
        None: undecided.
    text : str
        The claim and the finding, as a sentence.
    """

    name: str
    holds: bool | None
    text: str

    def __str__(self) -> str:
        said = {True: "holds", False: "does not hold", None: "undecided"}[self.holds]
        return f"{said}: {self.text}"


@dataclass(frozen=True)
class Judged:
    """Result for one problem of a model: the whole model, or a binary subproblem.

    Attributes
    ----------
    name : str
        The classes; empty: the whole model.
    problem : str
        Loss, C, kernel and intercept.
    n_samples, n_errors : int
        Number of examples, and of those misclassified, outside of the tube, or outliers.
    objective : Worth or None
        ``|w|^2 / 2 + C sum of losses``, without a penalty on the intercept. None: the model
        minimises something else, or has no C.
    margin : Worth or None
        Smallest distance of an example from the decision boundary (units of X). With k classes at
        once, of differences of scores; for one class, the mean over the fraction nu of smallest
        values, divided by the norm. None: the model does not separate the examples.
    separable : bool or None
        Whether the classes are separable; None: undecided.
    claims : tuple of Claim
    regression : bool
        Whether the model is a regressor, without margin and separability.
    """

    name: str
    problem: str
    n_samples: int
    n_errors: int
    objective: Worth | None
    margin: Worth | None
    separable: bool | None
    claims: tuple[Claim, ...]
    regression: bool = False

    def row(self) -> dict[str, object]:
        """All fields in a flat dict of numbers, strings and None.

        Returns
        -------
        dict
            ``margin_short`` and ``objective_short`` are upper bounds on the relative suboptimality;
            claims are keyed by their names.
        """
        found: dict[str, object] = {
            "problem": " ".join(filter(None, [self.name, self.problem]))
        }
        found |= {"n_samples": self.n_samples, "n_errors": self.n_errors}
        for name, worth in (("margin", self.margin), ("objective", self.objective)):
            for field in ("", "_lower", "_upper"):
                found[name + field] = worth and getattr(worth, field[1:] or "value")
            found[f"{name}_short"] = worth and worth.short[1]
        return {
            **found,
            "separable": self.separable,
            **{c.name: c.holds for c in self.claims},
        }

    @property
    def short(self) -> float:
        """Upper bound on the relative suboptimality of the margin or else of the objective."""
        worths = [worth.short[1] for worth in (self.margin, self.objective) if worth]
        return max(worths, default=0.0)

    def lines(self) -> list[str]:
        """The report as lines of text."""
        known = {
            True: ", which can be separated",
            False: ", which cannot be separated",
            None: "",
        }
        errors = f"{self.n_errors} of {self.n_samples}"
        found = f"does not separate the classes{known[self.separable]}: {errors} are on wrong sides"
        if self.regression:
            found = f"{errors} targets are outside of the tube"
        found = f"margin {self.margin}" if self.margin else found
        cost = (
            [f"objective {self.objective} ({self.problem})"] if self.objective else []
        )
        return [found, *cost, *map(str, self.claims)]


@dataclass(frozen=True, repr=False)
class Audit:
    """Result of :func:`~marginsvm.audit`.

    Attributes
    ----------
    model : str
        The ``repr`` of the model.
    problems : tuple of Judged
        One problem, or one per pair of classes or per class against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from marginsvm import audit
    >>> X, y = load_iris(return_X_y=True)
    >>> report = audit(SVC(C=10.0, gamma=0.1, tol=1e-8).fit(X, y), X, y)
    >>> [judged.name for judged in report.problems]
    ['0 against 1', '0 against 2', '1 against 2']
    >>> report.worst.objective.short[1] < 1e-5
    True
    """

    model: str
    problems: tuple[Judged, ...]

    @property
    def worst(self) -> Judged:
        """The problem with the largest suboptimality."""
        return max(self.problems, key=lambda judged: judged.short)

    def rows(self) -> list[dict[str, object]]:
        """Return a flat dict per problem, as input for ``pandas.DataFrame``.

        Returns
        -------
        list of dict
        """
        return [{"model": self.model, **judged.row()} for judged in self.problems]

    def __repr__(self) -> str:
        parts = [f"{self.model} on"]
        for judged in sorted(self.problems, key=lambda judged: -judged.short)[:SHOWN]:
            heading = ", ".join(
                filter(None, [judged.name, f"{judged.n_samples} examples"])
            )
            parts.append("\n  ".join([f"{heading}:", *judged.lines()]))
        left = len(self.problems) - SHOWN
        parts += [f"and {left} more, which fall short by less: see rows()"] * (left > 0)
        return (" " if len(parts) == 2 else "\n").join(parts)


def audit(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Audit:
    """Audit a support vector machine fitted by other software.

    Objective and margin of the model are computed from its coefficients. The optimal values are
    bounded from both sides by certified fits of :class:`~marginsvm.MaxMarginClassifier` or
    :class:`~marginsvm.MaxMarginRegressor` to the same examples. The report states the model's
    suboptimality, independently of its solver's own report.

    Parameters
    ----------
    model : fitted classifier, regressor or outlier detector
        LinearSVC, SVC, SGDClassifier, LinearSVR, SVR, NuSVR, SGDRegressor (with an
        epsilon-insensitive loss) or OneClassSVM of scikit-learn; any other model with ``coef_`` and
        ``intercept_``, or ``dual_coef_``, ``support_vectors_`` and ``kernel`` of the same meaning;
        or a pipeline that ends in one, or a search over these. For linear classifiers with another
        loss or penalty, only the margin is audited.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The training examples, or the kernel matrix; or, of a linear model, a source of blocks as
        for ``fit_blocks``, and no y.
    y : array-like of shape (n_samples,), default=None
        Class labels, or targets; outlier detectors have none.
    sample_weight : array-like of shape (n_samples,), default=None
        As in the model's fit.

    Returns
    -------
    Audit
        It prints as text; ``problems`` has the fields, ``rows()`` a table.

    Raises
    ------
    ValueError
        If the model cannot be read, or was fitted to other examples.
    TypeError
        If it is no fitted linear or kernel classifier.

    Notes
    -----
    The user guide's page "How good is my SVM?" says which problem is audited.

    *Cost.* At most two fits of MaxMarginClassifier per problem, and a third one if the intercept is
    penalised.

    References
    ----------
    Ji et al., Lemma A.1 (duality).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from marginsvm import audit
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[:100], y[:100]
    >>> model = LinearSVC(C=1e6, random_state=0).fit(X, y)
    >>> audit(model, X, y)
    LinearSVC(C=1000000.0, random_state=0) on 100 examples:
      margin 0.69...; the best is 0.8176: 14... % short
      objective ...; the least is 0.7481: ... % above it (squared_hinge loss, C = 1e+06)
      does not hold: the intercept is not penalised (it adds ... to the objective)
      holds: it ended before max_iter=1000 (n_iter_=...)
      does not hold: its own objective exceeds the least by no more than tol=0.0001 of it (by ...)
    """
    model, X = unwrapped(model, "intercept_", X)
    if not (hasattr(model, "coef_") or hasattr(model, "dual_coef_")):
        raise TypeError(
            f"{type(model).__name__} has neither coef_ nor dual_coef_ to be judged"
        )
    if y is None and not is_outlier_detector(model):
        if getattr(model, "kernel", "linear") != "linear":
            raise ValueError("a kernel needs the examples in memory: pass X and y")
        examples, y, weight = Source(X).read()
        X = examples(np.arange(len(y)))
    else:
        X = examples_on_host(X)
        check_exact(X)
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        weight = _check_sample_weight(on_host(sample_weight), X, dtype=np.float64)
    if not is_outlier_detector(model):
        y = np.asarray(on_host(y))
        y = column_or_1d(y, warn=True) if y.shape[1:] == (1,) else y
        check_consistent_length(weight, y)
    solved = [*_solved(model, X, y, weight, _estimator(model, X, y))]
    _refuse_misread(model, solved, X)
    return Audit(
        " ".join(repr(model).split()), tuple(_judged(model, one, X) for one in solved)
    )


@dataclass(frozen=True)
class _Solved:
    """A problem of a model and its solution, as an estimator of this package.

    Attributes
    ----------
    name : str
    rows : ndarray
        Indices of its examples.
    y, weight : ndarray
        Labels or targets (one class: ones, unused), and sample weights, of these.
    stated : estimator
        With the model's parameters, and ``coef_`` or ``dual_coef_`` and ``support_`` of ``rows``.
    constant : float or None
        Value of the constant feature (``intercept_scaling``) if the intercept is penalised; None:
        it is free.
    """

    name: str
    rows: Array
    y: Array
    weight: Array
    stated: Any
    constant: float | None

    def data(self, X: Any) -> tuple[Any, Any, Any]:
        """Its examples, labels and weights as arguments of fit: an array, or a source."""
        if isinstance(X, Blocks):
            return _Labelled(X, self), None, None
        return self.examples(X), self.y, self.weight

    def examples(self, X: Any) -> Any:
        given = getattr(self.stated, "kernel", "linear") == "precomputed"
        return X[self.rows][:, self.rows] if given else X[self.rows]

    def scores(self, X: Any, some: Array) -> Array:
        """Decision values of some examples of X."""
        stated = self.stated
        if hasattr(stated, "coef_"):
            parts = as_matrix(X).each(lambda block: block.times(stated.coef_.T))
            return np.concatenate(parts)[some] + stated.intercept_
        support = self.rows[stated.support_]
        given = stated.kernel == "precomputed"
        K = (
            X[some][:, support]
            if given
            else kernel_on(stated, X, self.weight)(X[some], X[support])
        )
        return np.asarray(K @ stated.dual_coef_.T) + stated.intercept_

    def worth(self, X: Any, **changed: Any) -> tuple[float, float]:
        """Objective and margin of the predictor."""
        stated = copy(self.stated).set_params(**changed)
        if is_outlier_detector(stated):
            stated.intercept_ = np.zeros(1)
        data = Data.of(stated, *self.data(X), None)
        read = FittedPrograms(stated, data, Floats(0.0))
        found = read.parts[0].primal(read.numbers)
        unit = float(read.radius)
        return float(found.objective) / unit**2, float(found.margin) * unit

    def best(self, X: Any, constant: float | None = None, **changed: Any) -> Any:
        """Fit of the same problem by this package; with a constant feature, without intercept."""
        X, y, weight = self.data(X)
        if constant is not None:
            X = _extended(X, constant)
            changed = {"fit_intercept": False}
        best = clone(self.stated).set_params(**changed)
        if isinstance(X, _Labelled):
            return best._fit(source_data(best, X), None, None, warns=False)
        y = None if is_outlier_detector(best) else y
        return best._fit_within(X, y, weight)


class _Labelled:
    """The blocks of a problem: those of the model, with its labels and weights."""

    def __init__(self, X: Blocks, one: _Solved, constant: float = 0.0) -> None:
        self.X = X
        self.one = one
        self.constant = constant
        self.y = np.zeros(len(X), one.y.dtype)
        self.weight = np.zeros(len(X))
        self.y[one.rows] = one.y
        self.weight[one.rows] = one.weight

    def __iter__(self) -> Iterator[tuple[Any, Array, Array]]:
        for place, block in self.X.blocks():
            X = _extended(block.array, self.constant) if self.constant else block.array
            yield X, self.y[place], self.weight[place]


def _extended(X: Any, constant: float) -> Any:
    """Examples with a constant feature."""
    if isinstance(X, _Labelled):
        return _Labelled(X.X, X.one, constant)
    return as_matrix(X).extended(np.full((X.shape[0], 1), constant)).array


def _objective(cost: float, best: Any) -> Worth:
    """An objective with the certified bounds of the best fit."""
    if is_regressor(best):
        return Worth(cost, float(best.objective_bound_), float(best.objective_), False)
    return Worth(cost, 0.5 / best.margin_bound_**2, 0.5 / best.margin_**2, False)


def _judged(model: Any, one: _Solved, X: Any) -> Judged:
    """Audit one problem of the model."""
    stated = one.stated
    own = margin = separable = penalty = None
    best: Any = None
    regression = is_regressor(stated)
    detector = is_outlier_detector(stated)
    loss = getattr(stated, "C", np.inf) < np.inf
    intercept = getattr(stated, "fit_intercept", False)
    if loss:
        cost = one.worth(X)[0]
        best = one.best(X)
        own = _objective(cost, best)
        if one.constant is not None:
            added = 0.5 * float(np.sum((stated.intercept_ / one.constant) ** 2))
            penalty = added, _objective(cost + added, one.best(X, one.constant))
    if not regression:
        hard = {} if detector else {"C": np.inf}
        value = one.worth(X, **hard)[1]
        if value > 0.0 or not loss:
            best = one.best(X, **hard)
        if value > 0.0 or detector:
            margin = Worth(value, best.margin_, best.margin_bound_, True)
        separable = best.separable_
    claims = [*_claims(model, own, penalty, intercept)]
    scores = one.scores(X, one.rows)
    y = one.y
    if regression:
        errors = np.abs(scores[:, 0] - y) > (
            stated.epsilon_[0] if stated.nu else stated.epsilon
        )
    elif scores.shape[1] == 1:
        errors = np.where(y == 1, scores[:, 0], -scores[:, 0]) < (
            0.0 if detector else 1e-300
        )
    else:
        own_class = y[:, None] == np.arange(scores.shape[1])
        errors = scores[own_class] <= np.where(own_class, -np.inf, scores).max(axis=1)
    words = [f"{stated.loss} loss", f"C = {stated.C:g}"] if loss else []
    if regression or detector:
        words.append(
            f"nu = {stated.nu:g}" if stated.nu else f"epsilon = {stated.epsilon:g}"
        )
    kernel = stated.kernel if isinstance(stated.kernel, str) else "callable"
    words += [f"{kernel} kernel"] * (kernel != "linear")
    words += ["no intercept"] * (not detector and not intercept)
    if detector:
        share = float(one.weight @ errors) / float(one.weight.sum())
        text = (
            f"at most nu={stated.nu:g} of the examples are outliers ({share:.4g} are)"
        )
        claims.append(Claim("share", share <= stated.nu, text))
    found = one.name, ", ".join(words), len(one.rows), int(np.count_nonzero(errors))
    return Judged(*found, own, margin, separable, tuple(claims), regression)


def _claims(
    model: Any, own: Worth | None, penalty: tuple[float, Worth] | None, intercept: bool
) -> Iterator[Claim]:
    """The model's claims for one problem."""
    if penalty is not None:
        added, own = penalty
        text = f"the intercept is not penalised (it adds {added:.3g} to the objective)"
        yield Claim("free_intercept", False, text)
    elif own is not None and intercept:
        yield Claim("free_intercept", True, "the intercept is not penalised")
    limit = getattr(model, "max_iter", None)
    n_iter = getattr(model, "n_iter_", None)
    if limit is not None and limit >= 0 and n_iter is not None:
        n_iter = int(np.max(on_host(n_iter)))
        text = f"it ended before max_iter={limit} (n_iter_={n_iter})"
        yield Claim("iterations", n_iter < limit, text)
    tol = getattr(model, "tol", None)
    if own is not None and tol is not None:
        least, most = own.short
        text = f"its own objective exceeds the least by no more than tol={tol:g} of it "
        text += f"(by {100.0 * most:.3g} % at most)"
        yield Claim(
            "tolerance", True if most <= tol else False if least > tol else None, text
        )


# Reading of models.


def _refuse_misread(model: Any, solved: list[_Solved], X: Any) -> None:
    """Refuse a model whose attributes do not reproduce its predictions, up to float32 rounding."""
    some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], TRIED)).astype(int)
    scores = np.hstack([one.scores(X, some) for one in solved])
    pairs = copy(model)
    vars(pairs).pop("feature_names_in_", None)  # X is an array by now
    pairs.decision_function_shape = "ovo"  # libsvm's scores themselves
    predict = pairs.predict if is_regressor(model) else pairs.decision_function
    found = np.asarray(on_host(predict(_some(X, some))))
    near = NEAR * np.abs(scores).max()
    if found.size != scores.size or np.any(
        abs(scores - found.reshape(scores.shape)) > near
    ):
        text = f"the attributes of {type(model).__name__} do not give what it predicts"
        raise ValueError(f"{text}: it cannot be read, or was fitted to other examples")


def _some(X: Any, index: Array) -> Any:
    """Some of the examples, as an array."""
    return X[index].array if isinstance(X, Blocks) else X[index]


def _array(x: Any) -> Array:
    return np.atleast_1d(dense(on_host(x)).astype(np.float64))


def _estimator(model: Any, X: Any, y: Any) -> Any:
    """An estimator of this package with the model's parameters; C is infinite without a loss."""
    get = partial(getattr, model)
    if get("normalize", False) or get("p", 2.0) != 2.0:
        raise ValueError(
            "a model of normalised examples, or with p != 2, is not judged here"
        )
    nu = get("nu", None) or None
    joint = get("multi_class", None) == "crammer_singer"
    tubes = is_regressor(model)
    detector = is_outlier_detector(model)
    dual = _is_expansion(model)
    given: dict[str, Any] = {"kernel": "linear"}
    if dual and model.kernel != "linear":
        given = {name: get(name, value) for name, value in KERNEL.items()}
        given["gamma"] = get("_gamma", given["gamma"])
    if bool(nu) != detector and not tubes:
        text = "of outlier detectors, those with nu are judged"
        raise ValueError(
            text if detector else "a classifier with nu is not judged: it has no C"
        )
    if detector:
        return MaxMarginOutlierDetector(nu=nu, **given)
    C = get("C", np.inf)
    loss = get("loss", None)
    if hasattr(model, "alpha") and not hasattr(model, "C"):
        C = 1.0 / (model.alpha * X.shape[0]) if model.alpha > 0.0 else np.inf
    elif joint and len(model.classes_) == 2:
        C *= 2.0  # coef_ is w_1 - w_0, and |w_0|^2 + |w_1|^2 = |coef_|^2 / 2
    if joint or (loss is None and dual):
        loss = TUBES[0] if tubes else "hinge"
    loss = loss or ("squared_hinge" if hasattr(model, "certificate_") else None)
    soft = (
        loss in (TUBES if tubes else HINGES)
        and get("penalty", "l2") == "l2"
        and np.isfinite(C)
    )
    given["fit_intercept"] = bool(get("fit_intercept", True))
    if soft:
        given |= {"C": float(C), "loss": loss}
    if not tubes:
        return MaxMarginClassifier(**given)
    if not soft or np.ndim(y) != 1:
        raise ValueError(
            f"of regressors, those of one output with the losses {TUBES} are judged"
        )
    return MaxMarginRegressor(
        **given, **({"nu": nu} if nu else {"epsilon": float(model.epsilon)})
    )


def _is_expansion(model: Any) -> bool:
    """Whether the predictor is a sum over support vectors: linear models also store ``coef_``."""
    return hasattr(model, "support_vectors_") and "coef_" not in vars(model)


def _places(model: Any, X: Any, weight: Array) -> Array | None:
    """Indices of the support vectors: libsvm counts only examples of positive weight."""
    if not _is_expansion(model):
        return None
    support = np.asarray(on_host(model.support_))
    if model.kernel == "precomputed" or callable(model.kernel) or len(support) == 0:
        return support
    vectors = sp.csr_array(on_host(model.support_vectors_))
    for places in (np.arange(X.shape[0]), np.flatnonzero(weight > 0.0)):
        if support.max() < len(places):
            difference = abs(sp.csr_array(_some(X, places[support])) - vectors).max()
            if difference <= 1e-6 * abs(vectors).max():  # they may be stored in float32
                return np.asarray(places[support])
    raise ValueError(
        "not the examples that the model was fitted to: X[support_] are others"
    )


def _solved(model: Any, X: Any, y: Any, weight: Array, like: Any) -> Iterator[_Solved]:
    """The problems of a model, with its solutions."""
    place = _places(model, X, weight)
    coef = np.atleast_2d(_array(model.coef_ if place is None else model.dual_coef_))
    detector = is_outlier_detector(model)
    b = -_array(model.offset_) if detector else _array(model.intercept_).ravel()
    if place is None:
        b = np.broadcast_to(b, len(coef))
    constant = None
    if getattr(like, "fit_intercept", False):
        constant = getattr(model, "intercept_scaling", None)

    def of(
        name: str, codes: Array, weight: Array, coef: Array, b: Array, at: Any
    ) -> _Solved:
        """One problem: its examples of positive weight, and what the model says of it."""
        rows = np.flatnonzero(weight > 0.0)
        stated = clone(like)
        stated.intercept_ = np.array(b)
        if at is None:
            stated.coef_ = coef
        elif like.kernel == "linear":
            stated.coef_ = np.asarray(coef @ _some(X, at))
        else:
            order = np.argsort(at)
            stated.dual_coef_ = coef[:, order]
            stated.support_ = np.searchsorted(rows, at[order])
        if isinstance(like, MaxMarginClassifier):
            stated.classes_ = np.unique(codes[rows])
        return _Solved(name, rows, codes[rows], weight[rows], stated, constant)

    if not isinstance(like, MaxMarginClassifier):
        targets = np.ones(X.shape[0]) if y is None else y
        one = of("", targets, weight, coef, b, place)
        if is_regressor(like) and like.nu:  # the best width for these distances
            away = np.abs(one.scores(X, one.rows)[:, 0] - one.y)
            mass = like.nu * one.weight.sum() * JUST_BELOW
            one.stated.epsilon_ = quantile(away, one.weight, np.array([mass]))
        yield one
        return

    classes = np.asarray(on_host(getattr(model, "classes_", np.unique(y))))
    if y.ndim != 1 or not np.isin(y, classes).all():
        raise ValueError(
            f"y has to hold labels that the model was fitted to: {classes.tolist()}"
        )
    codes = np.searchsorted(classes, y)
    k = len(classes)
    counted = np.ones(len(y)) if hasattr(model, "alpha") else weight
    factor = class_weights(getattr(model, "class_weight", None), y, counted)
    if hasattr(model, "class_weight_"):
        factor = _array(model.class_weight_)[codes]
    joint = getattr(model, "multi_class", None) == "crammer_singer"
    if k == 2 or joint or hasattr(model, "certificate_"):
        yield of("", codes, weight * factor, coef, b, place)
    elif place is not None:
        # Each pair of classes; the first one is positive. A vector of class c has k - 1
        # coefficients, one against each other class.
        of_class = np.repeat(np.arange(k), np.asarray(on_host(model.n_support_)))
        for p, (i, j) in enumerate(combinations(range(k), 2)):
            name = f"{classes[i]} against {classes[j]}"
            is_i = (codes == i).astype(int)
            weights = weight * factor * np.isin(codes, (i, j))
            some = np.isin(of_class, (i, j))
            pair = np.where(of_class == i, coef[j - 1], coef[i])[None, some]
            yield of(name, is_i, weights, pair, b[p : p + 1], place[some])
    elif np.isinf(like.C) and not hasattr(model, "loss"):
        raise ValueError(
            f"which of {k} classes are held against which? give a model of two"
        )
    else:
        # Each class against the rest; class weights apply to the positive class only.
        for c in range(k):
            is_c = (codes == c).astype(int)
            weights = weight * np.where(is_c == 1, factor, 1.0)
            name = f"{classes[c]} against the rest"
            yield of(name, is_c, weights, coef[c : c + 1], b[c : c + 1], None)
