"""What other programs' models say of the problems that they have solved.

A model is known by its attributes, not by its class: scikit-learn's, cuML's and thundersvm's share
them. Of k classes, those with ``dual_coef_`` hold each class against each other (libsvm), and
linear ones each class against the rest (liblinear, SGD), unless they say that they solve for all
together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import compute_class_weight

from marginsvm._typing import Array
from marginsvm.auditing.predictor import AuditedPredictor, Kernel
from marginsvm.certificate.reading import class_weights
from marginsvm.certify.host import on_host

_HINGE_LOSSES = ("hinge", "squared_hinge")
NEAR_SCORE = 1e-4  # of the largest score: where predictions of float32 may differ
TRIED = 1000  # examples, whose predictions are compared
_FLOAT32_ROUNDED = 1e-6  # relative: support vectors may be kept in float32


@dataclass(frozen=True)
class SolvedProblem:
    """A problem that a model has solved, and its answer.

    Attributes
    ----------
    name : str
        The classes; empty: all of the model.
    classes : tuple of int
        The class that is held against the rest; a pair, where the second is the positive one; or
        empty: all of them.
    rows : ndarray of int
        The examples that it is about.
    codes : ndarray of int
        Their classes in it.
    weight : ndarray of shape (n_rows,)
    predictor : AuditedPredictor
    loss : str or None
        None: the model minimises something else.
    C : float
    fit_intercept : bool
    constant : float or None
        Value of the constant feature of which the intercept is the coefficient, if it is penalised.
    """

    name: str
    classes: tuple[int, ...]
    rows: Array
    codes: Array
    weight: Array
    predictor: AuditedPredictor
    loss: str | None
    C: float
    fit_intercept: bool
    constant: float | None

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1


def questions(
    model: Any, classes: Array, X: Any, codes: Array, weight: Array
) -> tuple[SolvedProblem, ...]:
    """The problems that a model has solved on examples.

    Programs differ in the signs of what they publish: that reading is taken which predicts what the
    model predicts.

    Parameters
    ----------
    model : fitted classifier
    classes : ndarray of shape (n_classes,)
    X : ndarray or csr matrix of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Classes, as their indices.
    weight : ndarray of shape (n_samples,)
        Sample weights.

    Raises
    ------
    ValueError
        If the model is none that can be read.
    """
    if getattr(model, "nu", None):  # 0 in those that have none
        raise ValueError("a classifier with nu is not judged: its problem is not that of a C")
    some = np.linspace(0, len(codes) - 1, min(len(codes), TRIED)).astype(int)
    predicted = classes[codes[some]]
    if hasattr(model, "predict"):
        predicted = np.asarray(on_host(model.predict(X[some])))
    for read in readings(model, X, weight):
        found = tuple(_questions(model, classes, read, codes, weight))
        votes, clear = _votes(found, X[some], len(classes))
        if not hasattr(model, "predict") or np.array_equal(
            classes[votes.argmax(axis=1)][clear], predicted[clear]
        ):
            return found
    raise ValueError(
        f"the attributes of {type(model).__name__} do not give the classes that it predicts: it is "
        "no linear or kernel classifier that can be read"
    )


def readings(model: Any, X: Any, weight: Array) -> Iterator[AuditedPredictor]:
    """Predictors that the attributes of a model may stand for: programs differ in signs."""
    predictor = _of_examples(model, X, weight) if is_dual(model) else _of_features(model)
    for signs in product((1.0, -1.0), repeat=2):
        coef, intercept = signs[0] * predictor.coef, signs[1] * predictor.intercept
        yield replace(predictor, coef=coef, intercept=intercept)


def _votes(found: tuple[SolvedProblem, ...], X: Any, k: int) -> tuple[Array, Array]:
    """Votes for each class of each example, and where rounding does not decide them."""
    votes, clear = np.zeros((X.shape[0], k)), np.full(X.shape[0], True)
    for question in found:
        scores = question.predictor.scores(X)
        near = NEAR_SCORE * np.abs(scores).max()
        if len(question.classes) == 2:
            clear &= np.abs(scores[:, 0]) > near
            votes[:, question.classes] += np.column_stack([scores <= 0.0, scores > 0.0])
        elif question.classes:
            votes[:, question.classes] = scores
        else:
            votes += np.hstack([-scores, scores]) if k == 2 else scores
    first, second = np.sort(votes, axis=1)[:, [-1, -2]].T
    return votes, clear & (first - second > NEAR_SCORE * np.abs(votes).max())


def _questions(
    model: Any, classes: Array, predictor: AuditedPredictor, codes: Array, weight: Array
) -> Iterator[SolvedProblem]:
    names, loss = [str(label) for label in classes.tolist()], _loss(model)
    k, factors = len(names), _class_weights(model, classes, codes, weight)
    fixed: dict[str, Any] = {"loss": loss, "C": cost_of(model, len(codes), k)}
    fixed |= {"fit_intercept": fit_intercept_of(model), "constant": constant_of(model)}
    weights = weight * factors[codes]
    every = np.flatnonzero(weights > 0.0)
    if k == 2 or is_joint(model):
        yield SolvedProblem("", (), every, codes[every], weights[every], predictor.flat(), **fixed)
    elif is_dual(model):
        for i, j in combinations(range(k), 2):  # libsvm's first class is the positive one
            rows = every[(codes[every] == i) | (codes[every] == j)]
            data = rows, (codes[rows] == i).astype(int), weights[rows]
            one = _of_pair(model, predictor, i, j).flat()
            yield SolvedProblem(f"{names[i]} against {names[j]}", (j, i), *data, one, **fixed)
    elif loss is None and not hasattr(model, "loss"):
        raise ValueError(
            f"{type(model).__name__} is no support vector machine, and of {k} classes it is not "
            "known which it holds against which: give a model of two classes"
        )
    else:
        for c in range(k):  # a class's weight counts where it is held against the rest
            is_c = (codes == c).astype(int)
            weights = weight * np.where(is_c == 1, factors[c], 1.0)
            rows = np.flatnonzero(weights > 0.0)
            one = AuditedPredictor(predictor.coef[c : c + 1], predictor.intercept[c : c + 1])
            data = rows, is_c[rows], weights[rows]
            yield SolvedProblem(f"{names[c]} against the rest", (c,), *data, one, **fixed)


def is_dual(model: Any) -> bool:
    """Whether a model is known by coefficients of examples."""
    return hasattr(model, "dual_coef_") and not (
        hasattr(model, "coef_") and hasattr(model, "certificate_")
    )


def is_joint(model: Any) -> bool:
    """Whether a model has solved for all classes together."""
    return _is_crammer_singer(model) or hasattr(model, "certificate_")


def _is_crammer_singer(model: Any) -> bool:
    return getattr(model, "multi_class", None) == "crammer_singer"


def array_of(model: Any, name: str) -> Array:
    """A fitted array on the host, dense and in float64."""
    array = on_host(getattr(model, name))
    return np.asarray(array.toarray() if sp.issparse(array) else array, dtype=np.float64)


def _of_features(model: Any) -> AuditedPredictor:
    if getattr(model, "normalize", False) or getattr(model, "p", 2.0) != 2.0:
        raise ValueError(
            "a model of normalised examples, or of another norm than the Euclidean one, is not "
            "judged here; marginsvm.check_certificate checks what it claims"
        )
    coef = np.atleast_2d(array_of(model, "coef_"))
    return AuditedPredictor(coef, np.broadcast_to(array_of(model, "intercept_").ravel(), len(coef)))


def _of_examples(model: Any, X: Any, weight: Array) -> AuditedPredictor:
    """Coefficients of examples, as they are: of k classes, in libsvm's table."""
    names = "degree", "coef0"
    params = {name: float(getattr(model, name)) for name in names if hasattr(model, name)}
    metric, support = model.kernel, None
    metric = "poly" if metric == "polynomial" else metric
    if metric == "precomputed" or callable(metric):
        support = np.asarray(on_host(model.support_))
        vectors = X[support]
    else:
        vectors = on_host(model.support_vectors_)
        params["gamma"] = _gamma(model, X)
        if hasattr(model, "support_"):
            # libsvm counts the examples of positive weight only
            _same_examples(model, vectors, X, X[weight > 0.0])
    kernel = Kernel(metric, params, vectors, support)
    return AuditedPredictor(
        array_of(model, "dual_coef_"), array_of(model, "intercept_").ravel(), kernel
    )


def _same_examples(model: Any, vectors: Any, *fitted: Any) -> None:
    """Refuse other examples than those that were fitted, as far as support vectors tell."""
    support, vectors = np.asarray(on_host(model.support_)), sp.csr_array(vectors)
    for X in fitted:
        if len(support) == 0:
            return
        if support.max() < X.shape[0] and vectors.shape[1] == X.shape[1]:
            difference = abs(sp.csr_array(X[support]) - vectors).max()
            if difference <= _FLOAT32_ROUNDED * abs(vectors).max():
                return
    raise ValueError(
        "these are not the examples that the model was fitted to: its support vectors are "
        "not X[support_]. Give audit the X and y of its fit"
    )


def _gamma(model: Any, X: Any) -> float:
    """The number that "scale" or "auto" stood for."""
    gamma = getattr(model, "_gamma", getattr(model, "gamma", "scale"))
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    mean = X.mean()
    variance = (X.multiply(X)).mean() - mean**2 if sp.issparse(X) else X.var()
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def _of_pair(model: Any, predictor: AuditedPredictor, i: int, j: int) -> AuditedPredictor:
    """The predictor of a pair of classes i < j, from libsvm's table.

    A vector of class c has k - 1 coefficients, one against each other class, in their order.
    """
    n_support, kernel = np.asarray(on_host(model.n_support_)), predictor.kernel
    assert kernel is not None
    k = len(n_support)
    of_class = np.repeat(np.arange(k), n_support)
    coef = np.where(of_class == i, predictor.coef[j - 1], predictor.coef[i])
    some = np.flatnonzero((of_class == i) | (of_class == j))
    p = [*combinations(range(k), 2)].index((i, j))
    return AuditedPredictor(coef[None, some], predictor.intercept[p : p + 1], kernel.of(some))


def _class_weights(model: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """Factor of the weights of each class."""
    if hasattr(model, "class_weight_"):
        return array_of(model, "class_weight_")
    given = getattr(model, "class_weight", None)
    if not given:
        return np.ones(len(classes))
    y = classes[codes]
    if hasattr(model, "certificate_"):
        first = np.array([np.argmax(codes == c) for c in range(len(classes))])
        return np.asarray(class_weights(given, y, weight)[first])
    counted = None if hasattr(model, "alpha") else weight
    return compute_class_weight(given, classes=classes, y=y, sample_weight=counted)


def _loss(model: Any) -> str | None:
    """The loss whose sum is minimised besides ``|w|^2 / 2``; None: something else is."""
    loss = getattr(model, "loss", None)
    if hasattr(model, "certificate_"):
        return None if np.isinf(model.C) else (loss or "squared_hinge")
    if is_dual(model) or _is_crammer_singer(model):
        return "hinge"
    return loss if loss in _HINGE_LOSSES and getattr(model, "penalty", "l2") == "l2" else None


def cost_of(model: Any, n: int, k: int) -> float:
    """C, or what stands for it: SGD minimises the mean loss and ``alpha |w|^2 / 2``."""
    if hasattr(model, "alpha") and not hasattr(model, "C"):
        return 1.0 / (model.alpha * n) if model.alpha > 0.0 else np.inf
    C = float(getattr(model, "C", np.inf))
    # half of the difference of its two predictors would have the norm that it minimises
    return 2.0 * C if k == 2 and _is_crammer_singer(model) else C


def fit_intercept_of(model: Any) -> bool:
    """Whether there is an intercept; libsvm always has one."""
    return bool(getattr(model, "fit_intercept", True))


def constant_of(model: Any) -> float | None:
    """Value of the constant feature whose coefficient the intercept is, if it is penalised."""
    if not fit_intercept_of(model):
        return None
    if getattr(model, "penalized_intercept", False):
        return 1.0
    scaling = getattr(model, "intercept_scaling", None)
    return None if scaling is None else float(scaling)
