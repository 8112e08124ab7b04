"""From rows to an answer: a split that is proved, or what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from marginsvm.certificate import exact
from marginsvm.separation.design import Design
from marginsvm.separation.program import ProgramError, Split, split
from marginsvm.separation.proof import EXACT, NONE, Face, Proof, flaw_in_floats, not_positive, prove

SIMPLEX = 4000  # numbers of one that the simplex method in integers may decide
_UP_TO_ROUNDING = "This holds up to the rounding of X; of its numbers as they are, {}."


@dataclass
class Answer:
    """What is known: a split, its face if that is proved, whether all rows are separated.

    ``reason`` says why nothing is known, or what holds up to rounding only; or it is empty.
    """

    found: Split
    face: Face | None
    undecided: bool
    reason: str
    separable: bool | None = None


def answer(design: Design) -> Answer:
    """Split the rows, and prove it."""
    known = _answer(design)
    n, found, exactly = len(design.equality), known.found, known.face is not None
    every = np.arange(n)
    if known.undecided:
        return known
    if n and found.separated.all():
        proved = exactly or not len(not_positive(design, every, found.direction, None)[0])
        known.separable = True if proved else None
    else:
        known.separable = False if design.equality.any() or (exactly and not known.reason) else None
    return known


def _answer(design: Design) -> Answer:
    (n, d), flaw, found = design.shape, "", _nothing(design)
    if not n:
        return Answer(found, Face(design, NONE, np.zeros((0, 0), object), NONE), False, "")
    for guess in (True, False):
        try:
            found, proof = _proved(design, guess)
        except ProgramError as error:
            flaw = str(error)
            continue
        flaw = proof.flaw
        if proof.face is not None:
            return Answer(found, proof.face, False, flaw and _UP_TO_ROUNDING.format(flaw))
        if n * d > EXACT or design.are_rounded(np.arange(d)).any():
            # What rounding may have done is not to decide.
            doubt = flaw_in_floats(design, found)
            reason = f"{doubt}." if doubt else _UP_TO_ROUNDING.format("it is not proved")
            return Answer(found, None, bool(doubt), reason)
    if n * d <= SIMPLEX:
        found = _by_simplex(design)
        face, flaw = prove(design, found)[2], flaw
        if face is not None:
            found.face = face.floats(face.vectors)
            return Answer(found, face, False, "")
    return Answer(found, None, True, f"no proof is known: {flaw}.")


def _proved(design: Design, guess: bool) -> tuple[Split, Proof]:
    """A split and its proof; rows that forbid it join the sample."""
    found = split(design, guess=guess)
    proof = prove(design, found)
    for _ in range(20):
        missing = np.setdiff1d(proof.missing, found.at)[: sum(found.face.shape) + 100]
        if not len(missing):
            break
        found = split(design, np.append(found.at, missing), guess=guess)
        proof = prove(design, found)
    return found, proof


def _nothing(design: Design) -> Split:
    """No row is separated, and no column identified."""
    d, separated = design.shape[1], np.zeros(design.shape[0], bool)
    zero, empty = np.zeros(d), np.zeros((d, 0))
    return Split(NONE, separated, (zero, zero), zero[:0], NONE, NONE, empty, empty, empty)


def _by_simplex(design: Design) -> Split:
    """The split of few rows, one after the other, in integers (Bland).

    The negative of a row that overlaps is a combination of the others; a row that is not one is
    positive in some direction that no other row forbids.
    """
    (n, d), equality = design.shape, design.equality
    every, kept = np.arange(n), np.arange(d)
    kept = exact.independent(design.integers(every, kept)[0])[1]
    M, unit = design.integers(every, kept)
    rows = np.concatenate([M, -M[equality]])
    left, w, out = ~equality, np.zeros(len(kept), dtype=object), _nothing(design)
    q = np.zeros(n)
    while left.any():
        i = int(np.flatnonzero(left)[0])
        found = exact.combination(rows, -M[i], 10_000)
        if found is None:
            break
        weights, v = found
        if weights is None:
            positive = (M.astype(object) @ v > 0) & ~equality
            w, out.separated, left = w + v, out.separated | positive, left & ~positive
            continue
        total = rows.T.astype(object) @ weights  # a positive multiple of the row's negative
        j = int(M[i].astype(bool).argmax())
        k = Fraction(int(total[j]), -int(M[i, j])) if M[i, j] else 1
        new = np.array([float(x / k) for x in weights.tolist()])
        new[:n][equality] -= new[n:]
        new[i] += 1.0
        q, left = q + new[:n] / np.abs(new).max(), left & ~(new[:n] > 0)
    values = [int(x) * Fraction(float(u)) for x, u in zip(w, unit, strict=True)]
    top = max(map(abs, values), default=Fraction(0)) or 1
    high, low = np.zeros(d), np.zeros(d)
    high[kept] = [float(x / top) for x in values]
    low[kept] = [float(x / top - Fraction(h)) for x, h in zip(values, high[kept], strict=True)]
    out.at, out.kept, out.direction = every, kept, (high, low)
    out.weights = np.where(out.separated, 0.0, q)
    return out
