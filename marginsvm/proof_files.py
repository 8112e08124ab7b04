"""Proofs as files that strangers can check.

:func:`save_proof` writes one. Two programs check it without rounding: ``marginsvm.verify``, by the
code of ``check_certificate(..., exact=True)``, and ``verify_alone.py``, which needs nothing but
Python and shares nothing with the package.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor

from marginsvm import verify_alone
from marginsvm._typing import Array
from marginsvm.certify.checker.examples import Examples
from marginsvm.certify.checker.numbers import Rationals
from marginsvm.certify.checker.problem import Problem
from marginsvm.certify.exactly.overlap import integer_weights
from marginsvm.certify.host import examples_on_host, on_host, with_attributes_on_host
from marginsvm.certify.unwrapping import unwrapped

__all__ = ["save_proof", "verify"]

_MOST_BITS = 10_000  # of an integer in a file: Python reads decimal numbers of up to 4,300 digits
# How much weaker, relative to it, a claim of the file may be than the certificate's, whose bounds
# are rounded: in the file, weights are made to balance exactly.
_WEAKER = (0.0, 2.0**-50, 2.0**-44, 2.0**-38)


def save_proof(
    estimator: Any, path: Any, X: Any, y: Any, sample_weight: Any = None
) -> dict[str, Any]:
    """Write what a fit has proved to a file that others can check without this package.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier of this package with ``kernel="linear"`` or ``"precomputed"``, p = 2,
        without ``normalize`` and ``nu``; or a pipeline that ends in one, or a search over these.
    path : str or path-like
        File to write.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data, or the kernel matrix.
    y : array-like of shape (n_samples,)
        Class labels.
    sample_weight : array-like of shape (n_samples,), default=None
        As in fit.

    Returns
    -------
    dict
        What was written, as JSON: ``format``; ``sha256`` of X and the classes; ``classes``;
        ``kernel``; ``C``, ``loss``, ``intercept`` ("free" or the value of a constant feature, 0 for
        none) and ``example_weights``, which make the problem; ``coef`` and ``intercept_``, the
        predictor; ``weights``, one ``[example, class, m, e]`` for each; and ``claims``: ``margin``,
        ``margin_bound`` and ``separable``. If that is False, the weights are integers under which
        all rows cancel exactly, so that ``margin_bound`` is 0. A number is ``[m, e]``, for
        ``m * 2**e``, so that nothing is rounded.

    Raises
    ------
    ValueError
        If there is no such file for the estimator, or if its certificate does not hold on this
        data.

    References
    ----------
    Ji et al., Lemma A.1 (duality).

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MaxMarginClassifier, save_proof
    >>> from marginsvm.proof_files import verify
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginClassifier().fit(X[:100], y[:100])
    >>> path = os.path.join(tempfile.mkdtemp(), "irises.json")
    >>> proof = save_proof(clf, path, X[:100], y[:100])
    >>> verify(proof, X[:100], y[:100])  # what is wrong with it
    []
    """
    estimator, X = unwrapped(estimator, "certificate_", X)
    estimator = with_attributes_on_host(estimator)
    _refuse_others(estimator)
    X, y = examples_on_host(X), on_host(y)
    examples = Examples.of(estimator, X, y, on_host(sample_weight))
    weight = np.zeros(examples.n_given)
    weight[examples.kept] = examples.weight
    codes = np.full(examples.n_given, -1)
    codes[examples.kept] = examples.codes
    proof = {
        "format": "marginsvm proof 1",
        "classes": [str(label) for label in estimator.classes_.tolist()],
        "kernel": estimator.kernel,
        **_problem_of(estimator),
        "example_weights": [_dyadic(x) for x in weight.tolist()],
        "coef": [[_dyadic(x) for x in row] for row in _coefficients(estimator, examples).tolist()],
        "intercept_": [_dyadic(x) for x in np.asarray(estimator.intercept_, float).tolist()],
    }
    meeting = _meeting(estimator, X, examples.kept, codes)
    proof["weights"] = meeting or _weights(estimator, examples, codes)
    features, labels = _as_lists(X), [str(label) for label in np.asarray(y).tolist()]
    named = [verify_alone.code_of(label, proof["classes"]) for label in labels]
    proof["sha256"] = verify_alone.digest(features, named)
    if meeting:  # no predictor has a margin above 0
        proof["claims"] = {"margin": [0, 0], "margin_bound": [0, 0], "separable": False}
        wrong = verify_alone.check(proof, features, labels)
        if wrong:
            raise ValueError(f"the proof does not hold on this data: {'; '.join(wrong)}")
    else:
        proof["claims"] = _claims(estimator.certificate_, proof, features, labels)
    Path(path).write_text(json.dumps(proof))
    return proof


def _refuse_others(estimator: Any) -> None:
    """Refuse estimators whose problem the file cannot state."""
    if is_regressor(estimator):
        raise ValueError("proofs of regressors cannot be saved yet, only those of classifiers")
    unlike = {
        "kernel": estimator.kernel not in ("linear", "precomputed"),
        "p": estimator.p != 2.0,
        "normalize": bool(estimator.normalize),
        "nu": estimator.nu is not None,
        "monotonic_cst": estimator.monotonic_cst is not None,
    }
    for name, is_unlike in unlike.items():
        if is_unlike:
            raise ValueError(
                f"{name}={getattr(estimator, name)!r}: only proofs of linear predictors and "
                "precomputed kernels, with p=2, normalize=False, nu=None and monotonic_cst=None, "
                "can be saved"
            )


def _problem_of(estimator: Any) -> dict[str, Any]:
    """What slack costs, and which intercept there is."""
    intercept: Any = _dyadic(0.0)
    if estimator.fit_intercept:
        constant = estimator.intercept_scaling
        intercept = "free" if constant is None else _dyadic(float(constant))
    return {
        "C": None if np.isinf(estimator.C) else _dyadic(float(estimator.C)),
        "loss": "hinge" if getattr(estimator, "loss", None) == "hinge" else "squared_hinge",
        "intercept": intercept,
    }


def _dyadic(x: float | Fraction) -> list[int]:
    """A number as ``[m, e]``, which stands for ``m * 2**e``."""
    x = Fraction(x)
    return [x.numerator, 1 - x.denominator.bit_length()]


def _coefficients(estimator: Any, examples: Examples) -> Array:
    """Coefficients of the predictor: of the features, or of all examples that were given."""
    if estimator.kernel == "linear":
        coef = estimator.coef_
        return np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
    coef = np.zeros((len(estimator.dual_coef_), examples.n_given))
    coef[:, estimator.support_] = estimator.dual_coef_
    return coef


def _weights(estimator: Any, examples: Examples, codes: Array) -> list[list[int]]:
    """Weights on the rows of the examples, made to balance exactly where the intercept is free."""
    weights = sp.coo_array(estimator.certificate_.weights)
    pairs = zip(weights.coords[0].tolist(), weights.coords[1].tolist(), strict=True)
    q = {
        (i, j): Fraction(x)
        for (i, j), x in zip(pairs, weights.data.tolist(), strict=True)
        if codes[i] >= 0 and x > 0.0 and (len(estimator.classes_) == 2 or codes[i] != j)
    }
    if estimator.fit_intercept and estimator.intercept_scaling is None:
        _balance(q, codes, len(estimator.classes_))
    return [[i, j, *_dyadic(x)] for (i, j), x in sorted(q.items())]


def _meeting(estimator: Any, X: Any, kept: Array, codes: Array) -> list[list[int]]:
    """Integers as weights under which all rows cancel; empty: they are not claimed, or too long."""
    claim = estimator.certificate_
    if claim.separable is not False or np.isfinite(estimator.C):
        return []
    q, k = claim.weights.toarray(), len(estimator.classes_)
    few = np.flatnonzero(q.any(axis=1) & (codes >= 0))
    X = sp.csr_array(X)[few].toarray() if sp.issparse(X) else np.asarray(X, float)[few]
    if estimator.kernel == "precomputed":
        X = X[:, kept]
    intercept = bool(estimator.fit_intercept)
    found = integer_weights(X, codes[few], k, q[few], intercept=intercept)
    if found is None or max(map(int.bit_length, found[1])) > _MOST_BITS:
        return []
    (examples, columns), weights = found
    triples = zip(few[examples].tolist(), columns.tolist(), weights, strict=True)
    return sorted([i, j, weight, 0] for i, j, weight in triples)


def _balance(q: dict[tuple[int, int], Fraction], codes: Array, k: int) -> None:
    """Add to weights until those of each class and those held against it are equal."""
    excess = [Fraction(0)] * k  # what a class has, less what is held against it
    largest: dict[int, tuple[int, int]] = {}
    for (i, j), x in q.items():
        c = int(codes[i])
        excess[c] += x
        excess[(1 - c) if k == 2 else j] -= x
        if c not in largest or x > q[largest[c]]:
            largest[c] = i, j
    for _ in range(k):
        light, heavy = (excess.index(find(excess)) for find in (min, max))
        move = min(-excess[light], excess[heavy])
        if move <= 0:
            break
        i = largest[light][0] if light in largest else int(np.flatnonzero(codes == light)[0])
        row = (i, 0 if k == 2 else heavy)
        q[row] = q.get(row, Fraction(0)) + move
        excess[light], excess[heavy] = excess[light] + move, excess[heavy] - move


def _claims(
    certificate: Any, proof: dict[str, Any], X: list[list[float]], labels: list[str]
) -> dict[str, Any]:
    """The claims of a certificate, weaker by rounding at most, as far as the proof shows them."""
    separable = True if certificate.separable else None
    for weaker in _WEAKER:
        margin, bound = certificate.margin, certificate.margin_bound
        margin -= weaker * abs(margin)
        bound += weaker * (bound + certificate.radius)
        claims = {"margin": _dyadic(margin), "margin_bound": _dyadic(bound), "separable": separable}
        wrong = verify_alone.check({**proof, "claims": claims}, X, labels)
        if not wrong:
            return claims
    raise ValueError(f"the certificate does not hold on this data: {'; '.join(wrong)}")


def _as_lists(X: Any) -> list[list[float]]:
    found: list[list[float]] = np.asarray(X.toarray() if sp.issparse(X) else X, float).tolist()
    return found


def verify(proof: dict[str, Any], X: Any, y: Any) -> list[str]:
    """Check what :func:`save_proof` has written, by the exact check of this package.

    Parameters
    ----------
    proof : dict
        The file, read by ``json.load``.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data, or the kernel matrix.
    y : array-like of shape (n_samples,)
        Class labels.

    Returns
    -------
    list of str
        What is wrong. An empty list: all that is claimed is true of the data.

    Raises
    ------
    ValueError, KeyError, TypeError or IndexError
        If the file cannot be understood.
    """
    X, labels = _as_lists(X), [str(label) for label in np.asarray(y).tolist()]
    codes = [verify_alone.code_of(label, proof["classes"]) for label in labels]
    if proof["format"] != "marginsvm proof 1" or verify_alone.digest(X, codes) != proof["sha256"]:
        return ["the file is of another kind, or of other data"]
    weight = np.array([_float(x) for x in proof["example_weights"]])
    estimator = _estimator_of(proof, np.flatnonzero(weight > 0))
    known = [-1 if c is None else c for c in codes]
    problem = Problem.of_classes(estimator, np.array(X), np.array(known), weight, Rationals())
    k = len(estimator.classes_)
    q = np.full((len(X), 1 if k == 2 else k), Fraction(0), dtype=object)
    for i, j, *pair in proof["weights"]:
        q[i, j] = verify_alone.dyadic(pair)
    if k > 2:
        q[np.arange(len(X)), known] = Fraction(0)
    found = problem.proved(q[weight > 0])
    claims, wrong = proof["claims"], []
    margin, bound = (verify_alone.dyadic(claims[name]) for name in ("margin", "margin_bound"))
    if margin > max(problem.rounded(found.margin, -1), 0):
        wrong.append("the predictor has not the margin that is claimed")
    if q.min() < 0 or not problem.rounded(found.margin_bound, 1) <= bound:
        wrong.append("the weights do not prove the bound that is claimed")
    known = claims["separable"]
    shown = known is None or (known is True and problem.separation() > 0)
    if not (shown or (known is False and problem.is_hard and found.margin_bound == 0)):
        wrong.append("it is not shown whether the classes can be separated")
    return wrong


def _float(pair: list[int]) -> float:
    """A number of the file that is a float; others are no part of a fit."""
    exact = verify_alone.dyadic(pair)
    if Fraction(float(exact)) != exact:
        raise ValueError(f"{pair} is no float")
    return float(exact)


def _estimator_of(proof: dict[str, Any], kept: Array) -> Any:
    """What the check reads of a fitted estimator, from the file; kept examples have a weight."""
    free = proof["intercept"] == "free"
    constant = 0.0 if free else _float(proof["intercept"])
    coef = np.array([[_float(x) for x in row] for row in proof["coef"]])
    intercept = np.array([_float(x) for x in proof["intercept_"]])
    k, C = len(proof["classes"]), np.inf if proof["C"] is None else _float(proof["C"])
    losses, kernels = ("hinge", "squared_hinge"), ("linear", "precomputed")
    known = proof["loss"] in losses and proof["kernel"] in kernels
    if not (known and C > 0 and k > 1 and len(coef) == len(intercept) == (1 if k == 2 else k)):
        raise ValueError("the file states no problem with a predictor")
    if intercept.any() and not free and not constant:
        raise ValueError("the predictor has an intercept, which the problem has not")
    found = SimpleNamespace(
        classes_=np.arange(k),
        class_weight=None,
        C=C,
        loss=proof["loss"],
        nu=None,
        kernel=proof["kernel"],
        normalize=False,
        p=2.0,
        fit_intercept=free or constant != 0.0,
        intercept_scaling=None if free else constant,
        intercept_=intercept,
    )
    if proof["kernel"] == "linear":
        found.coef_ = coef
    else:
        found.dual_coef_, found.support_ = coef[:, kept], kept
    return found
