"""Write what a fit has proved to a file, as numbers of which none is rounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from math import inf
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_outlier_detector, is_regressor

from marginsvm import verify_alone
from marginsvm._typing import Array
from marginsvm.certify.checker.examples import Examples
from marginsvm.certify.host import examples_on_host, on_host, with_attributes_on_host
from marginsvm.certify.spec import ProblemSpec
from marginsvm.certify.unwrapping import unwrapped
from marginsvm.proof_files.exact_weights import (
    ExactClassWeights,
    Weights,
    as_fractions,
    balanced_outputs,
    meeting_rows,
    meeting_targets,
)

FORMAT = "marginsvm proof 2"
# How much weaker, relative to it, a claim of the file may be than the certificate's, whose bounds
# are rounded: in the file, weights are made to balance exactly.
_WEAKER = (0.0, 2.0**-50, 2.0**-44, 2.0**-38)


def save_proof(
    estimator: Any, path: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> dict[str, Any]:
    """Write what a fit has proved to a file that others can check without this package.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier, MaxMarginRegressor or MaxMarginOutlierDetector with
        ``kernel="linear"`` or ``"precomputed"``, p = 2, without ``normalize`` and
        ``monotonic_cst``; or a pipeline that ends in one, or a search over these.
    path : str or path-like
        File to write.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training data, or the kernel matrix.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Class labels or targets; outlier detectors have none.
    sample_weight : array-like of shape (n_samples,), default=None
        As in fit.

    Returns
    -------
    dict
        What was written, as JSON. A number is ``[m, e]``, for ``m * 2**e``, so that nothing is
        rounded.

        ``format``, ``sha256`` : of the file; of the number of examples, and of their features,
        followed by the place of their class or by their targets, as little-endian float64.

        ``of`` : "classes", "targets" or "one class". ``classes`` : their labels, numbers or texts.

        ``kernel``, ``intercept`` ("free", or the value of a constant feature; 0: none),
        ``example_weights``, ``slack`` ("none", "square", "size" or "share"), ``C``, ``nu`` and
        ``epsilon`` (0: not used) : the problem.

        ``coef``, ``intercept_``, ``epsilon_`` : the predictor, a line for each score, and the width
        of its tube, if nu has found it.

        ``weights`` : ``[example, column, m, e]`` for each that is not 0.

        ``claims`` : ``reached``, by the predictor, and ``bound``, which no predictor exceeds, are
        the margin and its bound or, of each target, the objective and its lower bound (null:
        infinite); ``feasible``: whether a predictor fits without slack (or separates the classes);
        ``violation``: by how much predictions may miss a tube. If ``feasible`` is False, the
        weights are integers under which all rows cancel exactly.

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
    X, y, sample_weight = examples_on_host(X), on_host(y), on_host(sample_weight)
    X = np.asarray(X.toarray() if sp.issparse(X) else X, float)
    of = _kind(estimator)
    if of == "classes":
        examples = Examples.of(estimator, X, np.asarray(y), sample_weight)
    else:
        examples = Examples.of_one_kind(X, sample_weight)
    lines = lines_of(of, X, y)
    proof = {"format": FORMAT, "of": of, **_problem(estimator, of, examples)}
    proof["sha256"] = verify_alone.table_of(proof, lines)[1]
    meeting = _meeting(estimator, of, X, y, examples)
    q = meeting or _weights(estimator, of, examples)
    proof["weights"] = [[i, j, *_dyadic(x)] for (i, j), x in sorted(q.items()) if x]
    for claims in _possible_claims(estimator, of, meeting):
        proof["claims"] = claims
        wrong = verify_alone.check(proof, lines)
        if not wrong:
            Path(path).write_text(json.dumps(proof))
            return proof
    given = ProblemSpec.of(estimator).kernel == "precomputed"
    hint = ", as a kernel matrix that was rounded may be none of inner products" if given else ""
    raise ValueError(f"the certificate does not hold on this data: {'; '.join(wrong)}{hint}")


def _kind(estimator: Any) -> str:
    if is_regressor(estimator):
        return "targets"
    return "one class" if is_outlier_detector(estimator) else "classes"


def lines_of(of: str, X: Array, y: Any) -> list[list[Any]]:
    """What a line of a table of the data holds: features, then the class or the targets."""
    if of == "one class":
        return [*X.tolist()]
    if y is None:
        raise ValueError("y is missing: give the class labels or the targets of the fit")
    last = np.asarray(y).reshape(len(X), -1).tolist()
    return [[*x, *rest] for x, rest in zip(X.tolist(), last, strict=True)]


def _refuse_others(estimator: Any) -> None:
    """Refuse estimators whose problem the file cannot state."""
    if is_regressor(estimator) and not hasattr(estimator, "objective_"):
        raise ValueError(
            f"{type(estimator).__name__} has no objectives: of regressors, only proofs of "
            "MaxMarginRegressor can be saved"
        )
    spec = ProblemSpec.of(estimator)
    signs = getattr(estimator, "monotonic_cst", None)
    unlike = {
        "kernel": (spec.kernel, spec.kernel not in ("linear", "precomputed")),
        "p": (spec.p, spec.p != 2.0),
        "normalize": (spec.normalize, bool(spec.normalize)),
        "monotonic_cst": (signs, signs is not None),
    }
    for name, (value, is_unlike) in unlike.items():
        if is_unlike:
            raise ValueError(
                f"{name}={value!r}: only proofs of linear predictors and precomputed kernels, "
                "with p=2, normalize=False and monotonic_cst=None, can be saved"
            )


def _problem(estimator: Any, of: str, examples: Examples) -> dict[str, Any]:
    """What was to be solved, and the predictor that was found."""
    spec, n_given = ProblemSpec.of(estimator), examples.n_given
    weight = np.zeros(n_given)
    weight[examples.kept] = examples.weight
    labels = estimator.classes_.tolist() if of == "classes" else []
    kind = float if all(isinstance(x, Real) and not isinstance(x, bool) for x in labels) else str
    is_share = spec.nu is not None and of != "targets"
    of_price = "size" if spec.slack_is_linear else "square"
    intercept = np.atleast_1d(estimator.intercept_)
    finds_width = spec.nu is not None and of == "targets"
    return {
        "classes": [kind(label) for label in labels],
        "kernel": spec.kernel,
        "slack": "share" if is_share else of_price if spec.is_soft else "none",
        "C": _dyadic(spec.C if spec.is_soft else 0.0),
        "nu": _dyadic(spec.nu or 0.0),
        "epsilon": _dyadic(estimator.epsilon if of == "targets" and not finds_width else 0.0),
        "intercept": "free" if spec.intercept_is_free else _dyadic(spec.constant),
        "example_weights": [_dyadic(x) for x in weight.tolist()],
        "coef": [[_dyadic(x) for x in row] for row in _coefficients(estimator, n_given).tolist()],
        "intercept_": [_dyadic(0.0 if of == "one class" else x) for x in intercept.tolist()],
        "epsilon_": _dyadics(estimator.epsilon_) if finds_width else [],
    }


def _dyadic(x: float | Fraction) -> list[int]:
    """A number as ``[m, e]``, which stands for ``m * 2**e``."""
    x = Fraction(x)
    return [x.numerator, 1 - x.denominator.bit_length()]


def _dyadics(x: Any) -> list[Any]:
    """Numbers of outputs; None stands for infinity."""
    x = np.atleast_1d(np.asarray(x, dtype=np.float64)).tolist()
    return [None if value == inf else _dyadic(value) for value in x]


def _coefficients(estimator: Any, n_given: int) -> Array:
    """Coefficients of the predictor: of the features, or of all examples that were given."""
    if getattr(estimator, "kernel", "linear") == "linear":
        coef = estimator.coef_
        return np.atleast_2d(np.asarray(coef.toarray() if sp.issparse(coef) else coef, float))
    coef = np.zeros((len(estimator.dual_coef_), n_given))
    coef[:, estimator.support_] = estimator.dual_coef_
    return coef


def _codes(examples: Examples) -> Array:
    """Class of all examples; -1: it takes no part."""
    codes = np.full(examples.n_given, -1)
    codes[examples.kept] = examples.codes
    return codes


def _weights(estimator: Any, of: str, examples: Examples) -> Weights:
    """Weights on the rows, for which nothing is left to rounding."""
    spec, table = ProblemSpec.of(estimator), estimator.certificate_.weights.toarray()
    q = as_fractions(table)
    if of == "targets":
        return balanced_outputs(q) if spec.intercept_is_free else q
    codes, k = _codes(examples), table.shape[1] if table.shape[1] > 1 else 2
    q = {(i, j): x for (i, j), x in q.items() if codes[i] >= 0 and (k == 2 or codes[i] != j)}
    balanced = spec.intercept_is_free and of == "classes"
    exact = ExactClassWeights(q, codes, k)
    if spec.nu is not None:
        caps = [Fraction(0)] * examples.n_given
        for i, m in zip(examples.kept.tolist(), examples.weight.tolist(), strict=True):
            caps[i] = Fraction(m)
        exact.keep_to(caps, Fraction(spec.nu), balanced=balanced)
    elif balanced:
        exact.balance()
    return exact.q


def _meeting(estimator: Any, of: str, X: Array, y: Any, examples: Examples) -> Weights:
    """Integers as weights under which all rows cancel; empty: they are not claimed, or too long."""
    claim, spec = estimator.certificate_, ProblemSpec.of(estimator)
    if claim.feasible is not False or spec.is_soft or spec.nu is not None:
        return {}
    if spec.kernel == "precomputed":
        X = X[:, examples.kept]
    table, intercept = claim.weights.toarray(), bool(spec.fit_intercept) and of != "one class"
    if of == "targets":
        targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        return meeting_targets(X, targets, estimator.epsilon, table, intercept=intercept)
    k = table.shape[1] if table.shape[1] > 1 else 2
    return meeting_rows(X, _codes(examples), k, table, intercept=intercept)


def _possible_claims(estimator: Any, of: str, meeting: Weights) -> Iterator[dict[str, Any]]:
    """What the file may claim: what the certificate does or, by rounding at most, less."""
    claim = estimator.certificate_
    found: dict[str, Any] = {"feasible": False if meeting else True if claim.feasible else None}
    for weaker in _WEAKER:
        if of == "targets":
            bounds = np.atleast_1d(estimator.objective_bound_) * (1.0 - weaker)
            shown = {o for _, o in meeting}  # of others, weights that are too long show it
            found["reached"] = _dyadics(estimator.objective_)
            found["bound"] = _dyadics(
                [x if x < inf or o in shown else 0.0 for o, x in enumerate(bounds.tolist())]
            )
            found["violation"] = _dyadic(claim.violation)
        else:
            bound = claim.upper + weaker * (claim.upper + claim.radius)
            found["reached"] = _dyadics(0.0 if meeting else claim.lower - weaker * abs(claim.lower))
            found["bound"] = _dyadics(0.0 if meeting else bound)
        yield dict(found)
