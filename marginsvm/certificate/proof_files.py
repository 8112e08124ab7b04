"""Proof files: the certificate of a fit in exact rational numbers.

Alpha in a file proves its bound exactly: ``F'alpha = 0`` and, with nu, ``alpha <= upper`` hold
without rounding. To that end the last digits of the published alpha are changed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from math import inf
from numbers import Real
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.base import is_regressor

from marginsvm import verify_alone
from marginsvm._typing import Array, Values
from marginsvm.certificate.bounded import Floats
from marginsvm.certificate.reading import Data, FittedPrograms
from marginsvm.certificate.unwrapping import FittedEstimator, unwrapped
from marginsvm.problem.matrix import (
    dense,
    examples_on_host,
    on_host,
    with_attributes_on_host,
)

FORMAT = "marginsvm proof 3"
# Relative loss that a bound of the file may have against the certificate's, as the last digits of
# alpha differ.
WEAKER = (0.0, 2.0**-50, 2.0**-44, 2.0**-38)
MOST_BITS = 10_000  # largest integer in a file: Python reads decimal numbers of up to 4,300 digits
SHOWN = ("linear", "precomputed")

Weights = dict[tuple[int, int], Fraction]  # by example and column


def save_proof(
    estimator: object,
    path: str | PathLike[str],
    X: object,
    y: object = None,
    sample_weight: object = None,
) -> dict[str, object]:
    """Write the certificate of a fit to a file that can be checked without this package.

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
        The content of the JSON file. Numbers are strings such as ``"3/10"`` or ``"-2"``, so that
        none is rounded.

        ``format`` : version of the format. ``sha256`` : hash of the number of examples, and of the
        features of each followed by its class index or its targets, as little-endian float64.

        ``of`` : "classes", "targets" or "one class". ``classes`` : the labels, numbers or strings.

        ``kernel``, ``intercept`` ("free", or the value of a constant feature; 0: none),
        ``example_weights``, ``slack`` ("none", "square", "size" or "share"), ``C``, ``nu`` and
        ``epsilon`` (0: not used) : the problem.

        ``coef``, ``intercept_``, ``epsilon_`` : the predictor, one row per score, and the tube
        width of nu-SVR.

        ``weights`` : the nonzero alpha, as ``[example, column, number]``.

        ``claims`` : ``reached`` and ``bound`` are the predictor's margin and the upper bound on all
        margins or, per target, the predictor's objective and the lower bound on all objectives
        (null: infinite); ``feasible``: whether a predictor fits without slack (or separates the
        classes); ``violation``: largest distance of a prediction from its tube. If ``feasible`` is
        False, the weights are integers with ``A'alpha = 0`` exactly.

    Raises
    ------
    ValueError
        If the format does not cover the estimator, or if its certificate does not hold on this
        data.

    References
    ----------
    Ji et al., Lemma A.1 (duality).

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MaxMarginClassifier, save_proof
    >>> from marginsvm.certificate.proof_files import verify
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginClassifier().fit(X[:100], y[:100])
    >>> path = os.path.join(tempfile.mkdtemp(), "irises.json")
    >>> proof = save_proof(clf, path, X[:100], y[:100])
    >>> verify(proof, X[:100], y[:100])  # what is wrong with it
    []
    """
    fitted: FittedEstimator
    fitted, X = unwrapped(estimator, "certificate_", X)
    fitted = with_attributes_on_host(fitted)
    _refuse_others(fitted)
    X = dense(examples_on_host(X)).astype(float)
    y = on_host(y)
    sample_weight = on_host(sample_weight)
    of = "targets" if is_regressor(fitted) else "classes"
    of = of if hasattr(fitted, "classes_") or of == "targets" else "one class"
    lines = lines_of(of, X, y)
    found = FittedPrograms(
        fitted, Data.of(fitted, X, y, sample_weight, None), Floats(0.0)
    )
    proof = {"format": FORMAT, "of": of, **_problem(found, of)}
    proof["sha256"] = verify_alone.table_of(proof["classes"], lines)[1]
    integers = _integers(found)
    q = integers or _weights(found)
    kept = found.data.kept.tolist()
    proof["weights"] = [[kept[i], j, str(x)] for (i, j), x in sorted(q.items()) if x]
    for claims in _possible_claims(found, integers):
        proof["claims"] = claims
        wrong = verify_alone.check(proof, lines)
        if not wrong:
            Path(path).write_text(json.dumps(proof), encoding="utf-8")
            return proof
    given = found.spec.kernel == "precomputed"
    hint = (
        ", as a kernel matrix that was rounded may be none of inner products"
        if given
        else ""
    )
    raise ValueError(
        f"the certificate does not hold on this data: {'; '.join(wrong)}{hint}"
    )


def verify(proof: dict[str, object], X: object, y: object = None) -> list[str]:
    """Check a file of :func:`save_proof` by :mod:`marginsvm.verify_alone`.

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
        The errors found. Empty: all claims hold on the data.

    Raises
    ------
    ValueError
        If the file cannot be understood, or is a proof of other data; it says what was expected,
        and what was found.
    """
    lines = lines_of(proof["of"], dense(X).astype(float), y)
    wrong: list[str] = verify_alone.check(proof, lines)
    return wrong


def lines_of(of: object, X: Array, y: object) -> list[list[object]]:
    """Rows of the data table: features, then the class or the targets."""
    if of == "one class":
        return [*X.tolist()]
    if y is None:
        raise verify_alone.RefusedError(
            "y is missing: give the class labels or the targets of the fit"
        )
    last = np.asarray(y).reshape(len(X), -1).tolist()
    return [[*x, *rest] for x, rest in zip(X.tolist(), last, strict=True)]


def _refuse_others(estimator: FittedEstimator) -> None:
    """Refuse estimators whose problem the format does not cover."""
    if is_regressor(estimator) and not hasattr(estimator, "objective_"):
        raise ValueError(
            f"{type(estimator).__name__} has no objectives: among regressors, only proofs of "
            "MaxMarginRegressor can be saved"
        )
    stated = {
        "kernel": SHOWN,
        "p": (2.0,),
        "normalize": (False,),
        "monotonic_cst": (None,),
    }
    for name, values in stated.items():
        value = getattr(estimator, name, values[0])
        if not (isinstance(value, str | Real | None) and value in values):
            raise ValueError(
                f"{name}={value!r}: only proofs of linear predictors and precomputed kernels, "
                "with p=2, normalize=False and monotonic_cst=None, can be saved"
            )


def _text(x: Values) -> str:
    return str(Fraction(x))


def _texts(x: Values) -> list[str | None]:
    """Numbers of outputs; None stands for infinity."""
    x = np.atleast_1d(np.asarray(x, dtype=np.float64)).tolist()
    return [None if value == inf else _text(value) for value in x]


def _problem(found: FittedPrograms, of: str) -> dict[str, object]:
    """The problem and the fitted predictor."""
    estimator = found.estimator
    spec = found.spec
    data = found.data
    weight = np.zeros(data.n)
    weight[data.kept] = data.weight
    labels = estimator.classes_.tolist() if of == "classes" else []
    kind = (
        float
        if all(isinstance(x, Real) and not isinstance(x, bool) for x in labels)
        else str
    )
    finds_width = spec.nu is not None and of == "targets"
    price = ("square", "size")[spec.slack_is_linear] if spec.is_soft else "none"
    epsilon = estimator.epsilon if of == "targets" and not finds_width else 0.0
    if hasattr(estimator, "coef_"):
        coef = estimator.coef_
        coef = np.atleast_2d(dense(coef))
    else:
        coef = np.zeros((len(estimator.dual_coef_), data.n))
        coef[:, estimator.support_] = estimator.dual_coef_
    return {
        "classes": [kind(label) for label in labels],
        "kernel": spec.kernel,
        "slack": "share" if spec.nu is not None and of != "targets" else price,
        "C": _text(spec.C if spec.is_soft else 0.0),
        "nu": _text(spec.nu or 0.0),
        "epsilon": _text(epsilon),
        "intercept": "free" if found.free else _text(found.constant),
        "example_weights": _texts(weight),
        "coef": [_texts(row) for row in coef],
        "intercept_": _texts(0.0 if of == "one class" else estimator.intercept_),
        "epsilon_": _texts(estimator.epsilon_) if finds_width else [],
    }


def _integers(found: FittedPrograms) -> Weights:
    """Integer alpha with ``A'alpha = 0``; empty: not claimed, none found, or too long."""
    spec = found.spec
    table = found.table(found.estimator.certificate_.weights)
    claimed = found.estimator.certificate_.feasible is False and not spec.is_soft
    if not claimed or spec.nu is not None or table is None:
        return {}
    for o in range(table.shape[1] if found.regression else 1):
        weights = found.refuted(table, o, integers_wanted=True)
        if weights and max(abs(x) for x in weights.values()).bit_length() <= MOST_BITS:
            return {place: Fraction(x) for place, x in weights.items()}
    return {}


def _possible_claims(
    found: FittedPrograms, integers: Weights
) -> Iterator[dict[str, object]]:
    """Candidates for the claims: those of the certificate, then weaker ones by rounding."""
    estimator = found.estimator
    claim = found.estimator.certificate_
    claims: dict[str, object] = {
        "feasible": False if integers else True if claim.feasible else None
    }
    for weaker in WEAKER:
        if found.regression:
            bounds = np.atleast_1d(estimator.objective_bound_) * (1.0 - weaker)
            # the other outputs need integers that are too long
            shown = {o for _, o in integers}
            claims["reached"] = _texts(estimator.objective_)
            claims["bound"] = _texts(
                [
                    x if x < inf or o in shown else 0.0
                    for o, x in enumerate(bounds.tolist())
                ]
            )
            claims["violation"] = _text(claim.violation)
        else:
            bound = claim.upper + weaker * (claim.upper + claim.radius)
            claims["reached"] = _texts(
                0.0 if integers else claim.lower - weaker * abs(claim.lower)
            )
            claims["bound"] = _texts(0.0 if integers else bound)
        yield dict(claims)


# Alpha with F'alpha = 0 exactly and, with nu, alpha <= upper.


def _weights(found: FittedPrograms) -> Weights:
    """The certificate's alpha, made exactly feasible."""
    table = found.table(found.estimator.certificate_.weights)
    if table is None:
        raise ValueError("the weights of the certificate are invalid")
    places = zip(*(x.tolist() for x in np.nonzero(table)), strict=True)
    q = {(i, j): Fraction(float(table[i, j])) for i, j in places}
    if found.regression:
        return _balanced_targets(q) if found.free else q
    alpha = _Alpha(q, [0] * len(table), 0)
    if found.codes is not None:
        alpha = _Alpha(q, found.codes.tolist(), len(found.estimator.classes_))
    if found.spec.nu is not None:
        caps = [Fraction(m) for m in found.data.weight.tolist()]
        alpha.share_out(caps, Fraction(found.spec.nu), balanced=found.free)
    elif found.free:
        alpha.balance()
    return alpha.q


def _balanced_targets(q: Weights) -> Weights:
    """Weights with sum 0 in each output, by the last digits of the largest."""
    found = dict(q)
    for o in {o for _, o in q}:
        column = {place: x for place, x in q.items() if place[1] == o}
        found[max(column, key=lambda place: abs(column[place]))] -= sum(column.values())
    return found


class _Alpha:
    """Alpha of examples with classes, or with none, while it is made feasible.

    Attributes
    ----------
    q : dict
        Alpha by example and column; entries that are not there are 0.
    codes : list of int
        Class of each example.
    k : int
        Number of classes; 0: none.
    room : list of number
        What may be added to the alpha of each example; infinite without upper bounds.
    """

    def __init__(self, q: Weights, codes: list[int], k: int) -> None:
        self.q = defaultdict(Fraction, q)
        self.codes = codes
        self.k = k
        self.room: list[Values] = [inf] * len(codes)

    def add(self, i: int, column: int, step: Fraction) -> None:
        """Add to one entry."""
        self.q[i, column] += step
        self.room[i] -= step

    def excess(self) -> list[Fraction]:
        """Per class: the sum of alpha over its own examples, minus that over rows against it."""
        excess = [Fraction(0)] * self.k
        for (i, j), x in self.q.items():
            excess[self.codes[i]] += x
            excess[1 - self.codes[i] if self.k == 2 else j] -= x
        return excess

    def balance(self) -> None:
        """Restore ``F'alpha = 0`` at the largest alpha."""
        for _ in range(self.k * self.k):
            excess = self.excess()
            light, heavy = (excess.index(find(excess)) for find in (min, max))
            move = min(-excess[light], excess[heavy])
            if move <= 0:
                return
            if self.k > 2 and self.room[0] < inf:  # upper bounds may be reached
                move -= self.turn(light, heavy, move)
                for c in {*range(self.k)} - {light, heavy}:
                    move -= self.turn(c, heavy, self.turn(light, c, move))
            self.grow(light, 0 if self.k == 2 else heavy, move)

    def turn(self, light: int, heavy: int, weight: Fraction) -> Fraction:
        """Move alpha of third classes' examples to rows against ``heavy``; gives the sum moved."""
        left = weight
        for (i, j), x in sorted(self.q.items(), key=lambda item: -item[1]):
            if j == light and self.codes[i] != heavy:
                step = min(left, x)
                self.add(i, light, -step)
                self.add(i, heavy, step)
                left -= step
        return weight - left

    def grow(self, c: int, column: int, weight: Fraction) -> None:
        """Add to examples of a class, at their largest entries in a column."""
        members = [i for i, code in enumerate(self.codes) if code == c]
        for i in sorted(members, key=lambda i: -self.q.get((i, column), Fraction(0))):
            step = min(weight, self.room[i])
            if step > 0:
                self.add(i, column, step)
                weight -= step
        if weight > 0:
            raise ValueError(
                "the weights of the certificate cannot satisfy F'alpha = 0 within their upper "
                "bounds: fit with another nu"
            )

    def fill(self, c: int, column: int, missing: Fraction) -> None:
        """Increase alpha of a class within its bounds, or decrease its largest entry."""
        if missing >= 0:
            return self.grow(c, column, missing)
        own = [place for place in self.q if self.codes[place[0]] == c]
        return self.add(*max(own, key=self.q.__getitem__), missing)

    def share_out(self, caps: list[Fraction], nu: Fraction, *, balanced: bool) -> None:
        """Give alpha the sum of nu-SVM, each example within its upper bound.

        With an intercept each class has at most half of the sum.
        """
        k = self.k
        total = sum(caps, Fraction(0))
        size = nu * total
        several = balanced and k > 2
        if balanced:
            of_class = [Fraction(0)] * k
            for m, c in zip(caps, self.codes, strict=True):
                of_class[c] += m
            size = min([size, *(2 * (total - of_one) for of_one in of_class)])
        scale = size / sum(self.q.values())
        before = sorted(self.q.items(), key=lambda item: item[1])
        self.q.clear()
        self.room = list(caps)
        for (i, j), x in before:
            self.add(i, j, min(scale * x, self.room[i]))
        if several:
            self.balance()
        for c in range(max(k, 1)):
            column = (c + 1) % k if k > 2 else 0
            if balanced and k == 2:
                own = sum(x for (i, _), x in self.q.items() if self.codes[i] == c)
                self.fill(c, column, size / 2 - own)
            else:
                of = zip(self.room, self.codes, strict=True)
                free = sum((r for r, d in of if d == c), Fraction(0))
                self.fill(c, column, min(size - sum(self.q.values()), free))
        if several:
            self.balance()
