"""Check a file by the exact check of this package, in place of ``verify_alone.py``."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm import verify_alone
from marginsvm._typing import Array
from marginsvm.certify.checker.kernel_space import NoInnerProductsError
from marginsvm.certify.checker.numbers import Rationals
from marginsvm.certify.checker.problem import Problem
from marginsvm.certify.checker.proof import Proved
from marginsvm.proof_files.saving import FORMAT, lines_of

_CHECKED_KERNELS = ("linear", "precomputed")


def verify(proof: dict[str, Any], X: Any, y: Any = None) -> list[str]:
    """Check what :func:`save_proof` has written, by the exact check of this package.

    Parameters
    ----------
    proof : dict
        The file, read by ``json.load``.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data, or the kernel matrix.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Class labels or targets; outlier detectors have none.

    Returns
    -------
    list of str
        What is wrong. An empty list: all that is claimed is true of the data.

    Raises
    ------
    ValueError, KeyError, TypeError or IndexError
        If the file cannot be understood.
    """
    X = np.asarray(X.toarray() if sp.issparse(X) else X, float)
    if proof["format"] != FORMAT:
        return [f"its format is {proof['format']!r}, and not {FORMAT!r}: save the proof again"]
    table, found = verify_alone.table_of(proof, lines_of(proof["of"], X, y))
    if found != proof["sha256"]:
        return ["it is a proof of other data"]
    weight = np.array([_float(x) for x in proof["example_weights"]])
    last, kept = np.array(table)[:, X.shape[1] :], np.flatnonzero(weight > 0)
    tables = [q[kept] for q in _weights(proof, last)]
    try:
        pairs = [*zip(_problems(proof, X, last, weight), tables, strict=True)]
        proofs = [(problem, problem.proved(q)) for problem, q in pairs]
    except NoInnerProductsError as error:
        return [str(error)]
    read = _wrong_objectives if proof["of"] == "targets" else _wrong_margin
    return [*read(proofs, proof["claims"])]


def _wrong_margin(found: list[tuple[Problem, Proved]], claims: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the claims about a margin."""
    ((problem, proved),) = found
    ((reached,), (bound,)) = (map(verify_alone.dyadic, claims[x]) for x in ("reached", "bound"))
    if reached > max(problem.rounded(proved.margin, -1), 0):
        yield "the predictor has not the margin that is claimed"
    if not problem.rounded(proved.margin_bound, 1) <= bound:
        yield "the weights do not prove the bound that is claimed"
    shown = {None: True, True: problem.separation() > 0, False: proved.margin_bound == 0}
    if not shown[claims["feasible"]]:
        yield "it is not shown whether the classes can be separated"


def _wrong_objectives(found: list[tuple[Problem, Proved]], claims: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the claims about the objectives of targets: half the squares of norms."""
    outward = (1 + Rationals.rounding_error) ** 2
    violation, infeasible = verify_alone.dyadic(claims["violation"]), []
    for (_, proved), *claimed in zip(found, claims["reached"], claims["bound"], strict=True):
        reached, bound = (inf if x is None else verify_alone.dyadic(x) for x in claimed)
        least = max(proved.norm_bound(), 0)
        if not (proved.norm**2 * outward <= 2 * reached and proved.violation <= violation):
            yield "the predictor has not the objective or the violation that is claimed"
        if not 2 * bound * outward <= least**2:
            yield "the weights do not prove the bound that is claimed"
        infeasible.append(least == inf)
    fits = all(proved.violation == 0 for _, proved in found)
    if not {None: True, True: fits, False: any(infeasible)}[claims["feasible"]]:
        yield "it is not shown whether a predictor fits"


def _weights(proof: dict[str, Any], last: Array) -> list[Array]:
    """The weights of each problem: of all classes, or of each target."""
    n, k = len(last), len(proof["classes"])
    n_columns = last.shape[1] if proof["of"] == "targets" else k if k > 2 else 1
    q = np.full((n, n_columns), Fraction(0), dtype=object)
    for i, j, *pair in proof["weights"]:
        q[i, j] = verify_alone.dyadic(pair)
    if proof["of"] == "targets":
        return [q[:, o : o + 1] for o in range(n_columns)]
    if q.min() < 0 or (k > 2 and any(q[range(n), last[:, 0].astype(int)])):
        raise ValueError("weights are below 0, or hold an example against its own class")
    return [q]


def _problems(proof: dict[str, Any], X: Array, last: Array, weight: Array) -> list[Problem]:
    """The problem of all classes, or of each target, with the predictor of the file."""
    exact = Rationals()
    if proof["of"] == "targets":
        return [
            Problem.of_intervals(_fitted(proof, weight, [o]), X, last[:, o], weight, exact, None)
            for o in range(len(proof["coef"]))
        ]
    estimator = _fitted(proof, weight, [*range(len(proof["coef"]))])
    if proof["of"] == "one class":
        return [Problem.of_one_class(estimator, X, weight, exact)]
    return [Problem.of_classes(estimator, X, last[:, 0].astype(int), weight, exact)]


def _float(pair: list[int]) -> float:
    """A number of the file that is a float; others are no part of a fit."""
    exact = verify_alone.dyadic(pair)
    if Fraction(float(exact)) != exact:
        raise ValueError(f"{pair} is no float")
    return float(exact)


def _fitted(proof: dict[str, Any], weight: Array, scores: list[int]) -> Any:
    """What the check reads of a fitted estimator, from the file: some lines of its predictor."""
    k, (C, nu, epsilon) = len(proof["classes"]), _checked_prices(proof)
    free = proof["intercept"] == "free"
    constant = 0.0 if free else _float(proof["intercept"])
    intercept = np.array([_float(proof["intercept_"][s]) for s in scores])
    none = not (free or constant)
    if (not none and proof["of"] == "one class") or (none and intercept.any()):
        raise ValueError("there is an intercept, which the problem has not")
    if proof["of"] != "targets" and len(scores) != (k if k > 2 else 1):
        raise ValueError("the predictor has other classes")
    found = SimpleNamespace(
        classes_=np.arange(k),
        class_weight=None,
        C=C or inf,
        loss="hinge" if proof["slack"] == "size" else "squared_hinge",
        nu=nu or None,
        epsilon=epsilon,
        kernel=proof["kernel"],
        normalize=False,
        p=2.0,
        fit_intercept=not none,
        intercept_scaling=None if free else constant,
        intercept_=intercept,
    )
    if proof["of"] == "targets" and nu > 0:
        found.epsilon_ = np.array([_float(proof["epsilon_"][o]) for o in scores])
    coef = np.array([[_float(x) for x in proof["coef"][s]] for s in scores])
    if proof["kernel"] == "linear":
        found.coef_ = coef
    else:
        kept = np.flatnonzero(weight > 0)
        found.dual_coef_, found.support_ = coef[:, kept], kept
    return found


def _checked_prices(proof: dict[str, Any]) -> list[float]:
    """C, nu and epsilon, 0 where they are not used."""
    of, many = proof["of"], len(proof["classes"]) > 1
    C, nu, epsilon = (_float(proof[name]) for name in ("C", "nu", "epsilon"))
    words = [("none", False, False), ("square", True, False), ("size", True, False)]
    words.append(("size", True, True) if of == "targets" else ("share", False, True))
    known = (proof["slack"], C > 0, nu > 0) in words and C >= 0 <= nu <= 1
    known &= epsilon >= 0 and not (nu and epsilon) and proof["kernel"] in _CHECKED_KERNELS
    if not (known and (of == "classes" if many else of in ("targets", "one class"))):
        raise ValueError("the file states no problem")
    return [C, nu, epsilon]
