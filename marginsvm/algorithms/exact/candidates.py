"""What a predictor and the weights of a round prove of the problem, whatever made them."""

from __future__ import annotations

import numpy as np

from marginsvm._rounding import UNIT
from marginsvm._typing import Array
from marginsvm.algorithms.exact.slack import Slack
from marginsvm.certify.candidate import Candidate
from marginsvm.certify.caps import of_examples
from marginsvm.certify.interval_bounds import measured_fit, weighed
from marginsvm.certify.own_slack import with_least_slack
from marginsvm.certify.prices import hinge_scale
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.rows import OutputRows, Predictor, Vector

# Coefficients whose squares are far from the largest number, whatever they are multiplied with.
_FAR_FROM_OVERFLOW = 1e100


def candidates_of(
    problem: KernelMatrixAdapter, w: Predictor, margins: Array, proof: Vector
) -> tuple[Candidate, ...]:
    """The predictor, with the slack that it needs in the problem itself, and the weights.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    w : Predictor
        The predictor. Of features, its coefficients are of no account.
    margins : ndarray of shape rows.shape
        Its margins under some intercept, slack left out.
    proof : Vector
        ``A' u`` of the weights u.
    """
    if isinstance(problem.rows, OutputRows):
        return interval_candidates(problem, Predictor(w.image, proof.coef), proof)
    if problem.nu is not None:
        return share_candidates(problem, w, margins, proof)
    if problem.caps is not None:
        return hinge_candidates(problem, w, margins, proof)
    unit = _unit(proof.mass)
    upper = Candidate(unit * proof, unit * proof.mass, precise=True)
    if problem.slack is None:
        lowest = problem.rows.min_margin(problem.rows.group_min(margins))
        return Candidate(Predictor(w.image, proof.coef), min_margin=lowest), upper
    needed = np.maximum(1.0 - margins, 0.0) / problem.slack
    unit = _unit(float(needed.max()))
    return Candidate(unit * Predictor(w.image, needed), min_margin=unit), upper


def at_best_scale(
    problem: KernelMatrixAdapter, w: Predictor, margins: Array
) -> tuple[Predictor, Array]:
    """A predictor and its margins, scaled so that it and its slack, by its square, cost least.

    Next to a separator, slack that a slightly longer predictor would not need costs many times as
    much as the predictor does.
    """
    assert problem.slack is not None
    square = problem.inner(w, w)
    t = 1.0 + Slack(problem.slack).line_search(margins, margins, square, square)
    return (Predictor(t * w.image, w.coef), t * margins) if t > 0.0 else (w, margins)


def under_intercepts(
    problem: KernelMatrixAdapter, margins: Array, b: Array | float = 0.0
) -> tuple[Array, Array]:
    """Margins of scores under their intercepts: with slack that is squared the best, else given.

    And these intercepts.
    """
    rows = problem.rows
    if problem.slack is not None:
        b = Slack(problem.slack).settled(rows, margins)[1]
    b = np.broadcast_to(b, rows.score_shape[1:])
    return margins + rows.moves(np.broadcast_to(b, rows.score_shape)), b


def candidates_of_weights(
    problem: KernelMatrixAdapter, proof: Vector, margins: Array, b: Array | float = 0.0
) -> tuple[Candidate, Candidate]:
    """What ``A' u`` proves as a predictor, with the slack that it needs, and as weights.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    proof : Vector
    margins : ndarray of shape rows.shape
        Of its scores alone, at least.
    b : ndarray or float
        Intercepts of the scores, see ``under_intercepts``.
    """
    rows, high = problem.rows, Candidate(proof, proof.mass, precise=True)
    length = float(np.sqrt(max(problem.inner(proof, proof), 0.0)))
    if problem.slack is None:
        least = max(rows.min_margin(rows.group_min(margins)), 0.0)
        norm = length / least if least > 0.0 else np.inf
        return Candidate(proof, norm=norm, margins=margins), high
    shifted, b = under_intercepts(problem, margins, b)
    least = with_least_slack(length, shifted, problem.slack)[0]
    norm = 1.0 / least if least > 0.0 else np.inf  # of lengths that overflow, say
    beta = rows.offsets_of_multipliers(b if rows.n_classes == 2 else b[:-1] - b[-1])
    margins = margins + problem.slack * proof.coef
    return Candidate(proof, norm=norm, margins=margins, offsets=beta), high


def _unit(size: float) -> float:
    """A multiple for a vector with coefficients of this size, so that no square overflows."""
    return 1.0 if size < _FAR_FROM_OVERFLOW else 1.0 / float(np.exp2(np.frexp(size)[1]))


def interval_candidates(
    problem: KernelMatrixAdapter, w: Predictor, proof: Vector
) -> tuple[Candidate, Candidate]:
    """The predictor, under the best intercept, and the weights, where scores lie in intervals."""
    found = weighed(problem, proof.coef)
    weights = Candidate(found.vector, precise=True, norm_bound=found.norm, proof=found)
    return interval_candidate(problem, w), weights


def interval_candidate(problem: KernelMatrixAdapter, w: Predictor) -> Candidate:
    """The predictor alone; with a kernel, it has coefficients of its own."""
    fit = measured_fit(problem, w)
    return Candidate(fit.vector, norm=fit.norm, fit=fit, fallback=True)


def hinge_candidates(
    problem: KernelMatrixAdapter, w: Predictor, margins: Array, proof: Vector
) -> tuple[Candidate, Candidate]:
    """The best multiples of the predictor and, where they are longer, of the weights."""
    assert problem.caps is not None
    caps, m, mass = problem.caps.largest, of_examples(margins), proof.mass
    of_w, squared = (max(problem.inner(v, v), 0.0) for v in (w, proof))
    scale = hinge_scale(of_w, m, caps)
    slack = float(np.sum(caps * np.maximum(1.0 - scale * m, 0.0)))
    objective = 0.5 * scale**2 * of_w + slack
    norm = float(np.sqrt(2.0 * objective)) or None
    # of a kernel's, steps of length 1 leave rounding where weights have come to 0
    coef = np.where(np.abs(w.coef) > UNIT * np.abs(w.coef).max(), w.coef, 0.0)
    lower = Candidate(scale * Predictor(w.image, coef), norm=norm)
    t = min(1.0, mass / squared) if squared > 0.0 else 1.0
    least = max(t * mass - 0.5 * t * t * squared, 0.0)
    return lower, Candidate(proof, precise=True, norm_bound=float(np.sqrt(2.0 * least)))


def share_candidates(
    problem: KernelMatrixAdapter, w: Predictor, margins: Array, proof: Vector
) -> tuple[Candidate, Candidate]:
    """The predictor, by the mean of its worst margins, and the weights, which keep their caps."""
    assert problem.caps is not None
    mean = problem.caps.lower_bound(1.0, margins)[0]
    lower = Candidate(Predictor(w.image, proof.coef), min_margin=mean)
    return lower, Candidate(proof, proof.mass, precise=True)


def relative_gap(problem: KernelMatrixAdapter, candidates: tuple[Candidate, ...]) -> float:
    """Gap between the objectives of a predictor and of weights, relative to that of the predictor.

    Objectives are the inverse squares of margins, or half of these.
    """
    separator, proof = candidates
    lower = separator.lower(problem.norm(separator.vector)) or 0.0
    return 1.0 - (max(lower, 0.0) / proof.upper(problem.norm(proof.vector))) ** 2
