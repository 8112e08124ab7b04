"""Audit of fitted support vector machines: what they are worth beside what is proved possible."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.auditing.audit_report import Audit, Judged, Worth
from marginsvm.auditing.claimed import claims_of
from marginsvm.auditing.models import SolvedProblem, questions
from marginsvm.auditing.novelty import judged_one_class
from marginsvm.auditing.predictor import with_constant
from marginsvm.auditing.regression import judged_regression
from marginsvm.certify.host import examples_on_host, on_host
from marginsvm.certify.unwrapping import unwrapped


def audit(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Audit:
    """Judge a fitted support vector machine of another program.

    What its predictor is worth is computed from its coefficients. What the best predictor is worth
    is bounded from both sides, with proof, by :class:`~marginsvm.MaxMarginClassifier` or
    :class:`~marginsvm.MaxMarginRegressor` on the same examples. So the report says by how much a
    model falls short, whatever its solver reported.

    Parameters
    ----------
    model : fitted classifier, regressor or outlier detector
        LinearSVC, SVC, SGDClassifier, LinearSVR, SVR, NuSVR, SGDRegressor (with the losses of
        tubes) or OneClassSVM of scikit-learn; any other, such as cuML's or thundersvm's, that has
        ``coef_`` and ``intercept_``, or ``dual_coef_``, ``support_vectors_`` and ``kernel``, as
        these have; or a pipeline that ends in one, or a search over these. Of linear classifiers
        with another loss or penalty, only the margin is judged.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The examples that it was fitted to, or the kernel matrix.
    y : array-like of shape (n_samples,), default=None
        Class labels, or targets; outlier detectors have none.
    sample_weight : array-like of shape (n_samples,), default=None
        As in its fit.

    Returns
    -------
    Audit
        It prints as text; ``problems`` has the fields, ``rows()`` and ``to_frame()`` a table.

    Raises
    ------
    ValueError
        If the model cannot be read, or was fitted to other examples.
    TypeError
        If it is no fitted linear or kernel classifier.

    Notes
    -----
    *Which problem* is judged: the manual's page "What is my SVM worth?".

    *Cost.* Two fits of MaxMarginClassifier for each problem at most, and a third where the
    intercept is penalised.

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
        raise TypeError(f"{type(model).__name__} has neither coef_ nor dual_coef_ to be judged")
    X = check_array(examples_on_host(X), accept_sparse="csr", dtype=np.float64)
    name = " ".join(repr(model).split())
    weight = _check_sample_weight(on_host(sample_weight), X, dtype=np.float64)
    if is_outlier_detector(model):
        return Audit(name, (judged_one_class(model, X, weight),))
    y = np.asarray(on_host(y))
    check_consistent_length(X, y)
    if is_regressor(model):
        return Audit(name, (judged_regression(model, X, y, weight),))
    classes = np.asarray(on_host(model.classes_)) if hasattr(model, "classes_") else np.unique(y)
    if y.ndim != 1 or not np.isin(y, classes).all():
        raise ValueError(
            "y has to have one dimension, and only labels that the model was fitted to: "
            f"{classes.tolist()}"
        )
    asked = questions(model, classes, X, np.searchsorted(classes, y), weight)
    return Audit(name, tuple(_judged(model, question, X) for question in asked))


def _judged(model: Any, question: SolvedProblem, X: Any) -> Judged:
    """What the model is worth in one of its problems, and what the best is."""
    here = X[question.rows]
    values = _values(question, question.predictor.scores(here))
    square, least = question.predictor.squared_norm(), float(values.min())
    X = here[:, question.rows] if _is_precomputed(question) else here
    cost, separable, own = _objective(question, values, square), None, None
    if question.loss is not None:
        certificate = _best(question, X)
        own, separable = _worth_of_cost(cost, certificate), certificate.feasible
    margin = None
    if least > 0.0 or question.loss is None:
        certificate = _best(question, X, hard=True)
        separable = certificate.feasible
        if least > 0.0:
            norm = float(np.sqrt(square))
            margin = Worth(least / norm, certificate.margin, certificate.margin_bound, True)
    return Judged(
        name=question.name,
        problem=_words(question),
        n_samples=len(values),
        n_errors=int((values.min(axis=1) <= 0.0).sum()),
        objective=own,
        margin=margin,
        separable=separable,
        claims=tuple(claims_of(model, own, _penalty(question, X, cost), question.fit_intercept)),
    )


def _values(question: SolvedProblem, scores: Array) -> Array:
    """Values of the rows of each example: what is to be 1 or more."""
    codes = question.codes
    if question.n_classes == 2:
        return np.where(codes == 1, scores[:, 0], -scores[:, 0])[:, None]
    own = codes[:, None] == np.arange(question.n_classes)
    return scores[own][:, None] - scores[~own].reshape(len(codes), -1)


def _objective(question: SolvedProblem, values: Array, square: float) -> float:
    """The objective of a predictor, of squared norm ``square``, with a free intercept."""
    missing = np.maximum(1.0 - values, 0.0)
    if question.loss == "squared_hinge":  # of k classes, the rows are longer by sqrt(2)
        losses = (missing * missing).sum(axis=1) / (1.0 if values.shape[1] == 1 else 2.0)
    else:
        losses = missing.max(axis=1)
    return 0.5 * square + question.C * float(question.weight @ losses)


def _is_precomputed(question: SolvedProblem) -> bool:
    kernel = question.predictor.kernel
    return kernel is not None and kernel.metric == "precomputed"


def _best(question: SolvedProblem, X: Any, *, hard: bool = False, constant: bool = False) -> Any:
    """Certificate of the best predictor.

    Parameters
    ----------
    question : Question
    X : ndarray or csr matrix
    hard : bool
        Whether margins are to be hard.
    constant : bool
        Whether the intercept is penalised as in the model's own problem.
    """
    kernel = question.predictor.kernel
    settings: dict[str, Any] = {}
    if kernel is not None:
        settings = {"kernel": kernel.metric, **kernel.params}
    fit_intercept = question.fit_intercept and not constant
    X = with_constant(X, question.constant) if constant else X
    estimator = MaxMarginClassifier(fit_intercept=fit_intercept, **settings)
    if not hard:
        estimator.set_params(C=question.C, loss=question.loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the bounds say it
        return estimator.fit(X, question.codes, question.weight).certificate_


def _worth_of_cost(cost: float, certificate: Any) -> Worth:
    """An objective beside the least: a margin is one over the root of twice it."""
    lower, upper = (0.5 / bound**2 for bound in (certificate.margin_bound, certificate.margin))
    return Worth(cost, lower, upper, False)


def _words(question: SolvedProblem) -> str:
    """Loss, C, kernel and intercept."""
    words = question.predictor.words
    if question.loss is not None:
        words = [f"{question.loss} loss", f"C = {question.C:g}", *words]
    return ", ".join([*words, *["no intercept"] * (not question.fit_intercept)])


def _penalty(question: SolvedProblem, X: Any, cost: float) -> tuple[float, Worth] | None:
    """What a penalised intercept adds, and the worth in that problem; None: it is free."""
    if question.loss is None or question.constant is None:
        return None
    b = question.predictor.intercept / question.constant
    added = 0.5 * float(b @ b)
    return added, _worth_of_cost(cost + added, _best(question, X, constant=True))
