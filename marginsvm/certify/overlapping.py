"""Whether weights prove that the classes overlap: that no predictor separates them at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginsvm._typing import Array
from marginsvm.certify.bounds import upper_bound
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.certifiable import Certifiable
from marginsvm.certify.exactly.overlap import nothing_separates, nothing_separates_with_signs
from marginsvm.certify.nearest_point import shortest_proof
from marginsvm.certify.tolerances import (
    MAX_TWIN_NUMBERS,
    MAX_TWINS,
    SAME_FINGERPRINT,
    SHORTEST_PROOF,
)
from marginsvm.rows import Vector, support_of

# Rows beyond the width of a row that a proof on affinely independent ones has: the intercept's, and
# that of weights that sum to 1.
_SPARE_ROWS = 2
# Rows, and numbers in a row, beyond both of which weights are checked as they are before fewer are
# sought: of 1,456 rows of 1,200 numbers the check takes 0.6 s, the search 2 to 7.
_LONG_SEARCH = 500


def overlap_is_proved(problem: Certifiable, vector: Vector) -> bool:
    """Whether weights near those of a vector are proved to exist with ``A^T q`` exactly zero.

    False means that no proof was found; it says nothing about the classes. Results are kept, so
    that the same weights are checked only once. After some seconds spent on checks without a
    proof, further weights are not checked.
    """
    q = problem.distribution(vector).weights()
    few = support_of(q)
    weights, checked = few.tobytes() + q[few].tobytes(), problem.overlap_checks
    if weights not in checked:
        proved = checked.may_continue and _classes_meet(problem, few, q[few])
        checked[weights] = proved
    return checked[weights]


def _classes_meet(problem: Certifiable, few: Array, q: Array) -> bool:
    given = problem.given(few)
    if given is None:
        return False
    X, factor, intercept = given
    q, effort = q * problem.rows.per_example(factor), problem.overlap_checks.effort
    codes, n_classes = problem.rows.codes[few], problem.rows.n_classes
    if problem.signs is not None:
        signs = problem.signs
        return nothing_separates_with_signs(X, codes, q, signs, intercept=intercept, effort=effort)
    return nothing_separates(X, codes, n_classes, q, intercept=intercept, effort=effort)


def decisive(problem: Certifiable, best: Candidate, others: Iterable[Candidate]) -> Candidate:
    """A candidate whose weights prove that nothing separates, or else the best one, sharpened.

    Parameters
    ----------
    problem : Certifiable
    best : Candidate
        The candidate with the smallest upper bound, of which rounding may be the larger part.
    others : iterable of Candidate
        Further candidates, which are tried after it.
    """
    shortest = None
    for proof in (best, *(other for other in others if other.mass > 0 and other is not best)):
        for option in _sharpened(problem, proof):
            if shortest is None or shortest is proof:
                shortest = option
            if overlap_is_proved(problem, option.combination):
                return option
    return shortest or best


def _sharpened(problem: Certifiable, proof: Candidate) -> Iterator[Candidate]:
    """The candidate moved to few rows, where its norm is only rounding, and then itself.

    Itself first, if it has few rows already, and its norm is only rounding; or if it has so many
    that fewer are not found soon.
    """
    vector = proof.combination
    rows = np.count_nonzero(problem.weights(vector))
    done = rows <= problem.width + _SPARE_ROWS and upper_bound(problem, vector) <= SHORTEST_PROOF
    if done or (rows > _LONG_SEARCH and problem.width > _LONG_SEARCH):
        yield proof
    short = None
    if problem.caps is None and problem.signs is None:  # few rows could not have all the weight
        short = shortest_proof(problem, problem.weights(vector))
    if short is not None:
        yield Candidate(short, short.mass, precise=True)
    yield proof


def meeting_rows(problem: Certifiable) -> Vector | None:
    """``A^T q = 0`` for weights of 1/2 on two rows that cancel, if a cheap search finds some.

    Two equal examples of different classes have such rows: each is held against the class of the
    other. So have, without an intercept, two opposite examples of one class, and a zero
    example with itself. The search takes a sort, and a pass where lengths coincide.
    """
    h = problem.fingerprints()
    if h is None:
        return None
    most = max(1, int(MAX_TWIN_NUMBERS / problem.width)) if problem.width < np.inf else MAX_TWINS
    i, j = (x[: min(most, MAX_TWINS)] for x in _twins(problem, h))
    given = problem.given(np.concatenate([i, j])) if len(i) else None
    if given is None:
        return None
    X, factor, _ = given
    codes = problem.rows.codes
    cancel = _cancel(X[: len(i)], X[len(i) :], np.where(codes[i] == codes[j], -1.0, 1.0))
    cancel &= factor[: len(i)] == factor[len(i) :]
    return _half_each(problem, *(int(x[cancel.argmax()]) for x in (i, j))) if cancel.any() else None


def _twins(problem: Certifiable, h: Array) -> tuple[Array, Array]:
    """Pairs of examples whose fingerprints say that they have rows that cancel."""
    balanced, codes = problem.rows.balanced, problem.rows.codes
    key = h if balanced else np.abs(h)
    ordered = np.sort(key)  # without the order, which takes longer and is needed rarely
    near = SAME_FINGERPRINT * max(ordered[-1], -ordered[0])
    nothing = np.flatnonzero(key == 0.0)[: 0 if balanced else 1]
    if not (len(nothing) or np.any(np.diff(ordered) <= near)):
        return nothing, nothing
    order = np.argsort(key)
    i, j = order[:-1], order[1:]
    opposite = np.zeros(len(i), bool) if balanced else np.sign(h[i]) != np.sign(h[j])
    found = np.flatnonzero((np.diff(key[order]) <= near) & ((codes[i] == codes[j]) == opposite))
    return np.append(nothing, i[found]), np.append(nothing, j[found])


def _cancel(X: Any, Z: Any, sign: Array) -> Array:
    """Whether ``x - sign z`` is exactly zero, for each pair of examples."""
    if isinstance(X, np.ndarray):
        Z = Z * sign[:, None].astype(X.dtype)
        return np.asarray(np.all(X == Z, axis=1))
    rest = abs(X - sp.diags_array(sign) @ Z).sum(axis=1)
    return np.asarray(rest).ravel() == 0.0


def _half_each(problem: Certifiable, i: int, j: int) -> Vector:
    rows, ours, theirs = problem.rows, problem.rows.codes[i], problem.rows.codes[j]
    q = np.zeros(rows.shape).reshape(rows.n_examples, -1)
    other = int(ours == theirs)  # then both are held against another class
    q[i, (theirs + other) % rows.n_classes % q.shape[1]] += 0.5  # two classes have one column
    q[j, (ours + other) % rows.n_classes % q.shape[1]] += 0.5
    return problem.combine(q.reshape(rows.shape), precise=True)
