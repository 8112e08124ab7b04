"""Exact fits: solve the quadratic program of a problem, and prove the published bounds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from math import copysign, inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpstrf
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from marginsvm._threads import let_interrupts_through
from marginsvm._typing import Array
from marginsvm.certificate import publication
from marginsvm.certificate.bounded import best_multiple
from marginsvm.certificate.certificate import relative_gap
from marginsvm.certificate.overlap import (
    PrimalDual,
    equal_examples,
    prove_intervals,
    scales_of,
    with_refutation,
)
from marginsvm.certificate.publication import (
    Certified,
    Proof,
    at_its_bounds,
    dual_coefficients,
    intercepts,
    vanishing,
)
from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.parameters import (
    CommonParameters,
    KernelParameters,
    SignParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.results import Fitted
from marginsvm.fit import (
    Candidate,
    Method,
    OnRound,
    Outcome,
    Progress,
    Requirements,
    Stopping,
    begin,
)
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.problem.examples import FloatExamples
from marginsvm.problem.quadratic_program import QuadraticProgram
from marginsvm.problem.rows import OutputRows, output_rows
from marginsvm.problem.vectors import Predictor
from marginsvm.solvers.active_set import candidates
from marginsvm.solvers.solution import Solution
from marginsvm.solvers.solve import (
    methods,
    refuse_what_cannot_fit,
    solve,
    solved,
)

# Relative gap, iterations and price of slack (over the radius squared, of tubes) of a soft problem
# whose predictor is published where the hard one has none.
LOOSE = 1e-2
LOOSE_ITERATIONS = 50
DEAR = 1e4
# The least soft margin (in radii) that stands for a limit: of features, of many, of kernels.
LEAST = 1e-6
LEAST_OF_MANY = 1e-4
LEAST_OF_KERNEL = 1e-5
MANY = 2000  # coefficients
# A fit is stalled if the gap has not fallen to this part in so many iterations.
IDLE = 10
PROGRESS = 0.99
# The solver's tolerance falls to this part, so many times, if the proof is not as good.
TIGHTER = 0.1
TIGHTENED = 2
TINY = 1e-11  # alpha, relative to the largest, that interior points leave at bounds
ROUNDED = 1e-15  # a certified gap that may be rounding alone, for each row
WORDS = (
    "the limit of the soft margins of the squared hinge loss as C grows, with nearly the least sum "
    "of squared slacks"
)


class Point(NamedTuple):
    """A predictor and alpha of a program; zeros: there is none yet."""

    w: Array
    f: Array
    alpha: Array


State = tuple[Point, ...]  # one for each program


def of_few_examples(examples: FloatExamples, w: Array) -> Array:
    """Coefficients of a predictor on linearly independent examples, so that none cancel."""
    few = np.flatnonzero(w.any(axis=0))
    if not 0 < len(few) <= MANY:
        return w
    G = examples.gram(few, few)
    L, order, rank, _ = dpstrf(G, lower=1)
    if rank == len(few):
        return w
    some = order[:rank] - 1
    L = np.tril(L[:rank, :rank])
    found = np.zeros_like(w)
    found[:, few[some]] = cho_solve((L, True), (G @ w[:, few].T)[some]).T
    return found


def solution_before(solution: Solution, point: Point) -> Solution | None:
    """The solution for another C at its best length, if it solves a program, too; else None.

    Without slack, it is that of any larger C. None: solvers begin with an empty record, as they
    stop once they no longer improve on one.
    """
    qp = solution.qp
    w = qp.project(point.w)
    S = qp.examples.scores(w)
    f = qp.best_f(S, point.f)
    t = best_multiple(qp, sqrt(max(qp.examples.inner(w, w), 0.0)), qp.values(S, f))
    found = Solution(qp, solution.tol, solution.max_iter)
    found.primal(t * w, t * f, t * S)
    found.dual(point.alpha)
    return found if found.gap <= found.tol else None


def as_it_is(solution: Solution, start: Array | None) -> Iterator[None]:
    """A method for programs that are solved already."""
    yield


def rounded_proofs(
    qp: QuadraticProgram,
    point: Point,
    price: Array | None,
    origin: Array | float = 0.0,
    total: float = 1.0,
) -> Iterator[Proof]:
    """Proofs with alpha at its bounds, the best first; arguments as of ``at_its_bounds``."""
    proof = partial(at_its_bounds, qp, price=price, origin=origin, total=total)
    return starmap(proof, candidates(qp, *point))


@dataclass(frozen=True)
class Exact(Method):
    """The exact solver, and proofs of its bounds, see ``play_exactly``.

    Attributes
    ----------
    tol : float
        Relative gap (dimensionless).
    limits : dict
        Models of the inseparable programs so far, see ``model``.
    """

    tol: float = 1e-6
    limits: dict[QuadraticProgram, tuple[Array, Array, Array, str]] = field(
        default_factory=dict, compare=False, repr=False
    )

    requires = Requirements(every_row=False)

    def start(self, problem: KernelMatrixAdapter) -> State:
        """No point yet."""
        if flaw := problem.flaw():
            raise ValueError(flaw)
        points = []
        for qp in problem.programs:
            w = np.zeros((qp.k, qp.width))
            nothing = np.broadcast_to(0.0, qp.shape)
            points.append(Point(w, np.zeros(qp.n_free), nothing))
        return tuple(points)

    def continued(self, problem: KernelMatrixAdapter, before: Progress) -> State | None:
        """A warm start from another C, in units of another radius."""
        if isinstance(problem.rows, OutputRows) or np.isinf(before.C) != np.isinf(
            problem.C
        ):
            return None
        (point,) = before.state
        scale = (problem.radius / before.radius) ** 2
        w = point.w * (sqrt(scale) if problem.design is not None else scale)
        return (Point(w, point.f, point.alpha * scale),)

    def tol_of(self, qp: QuadraticProgram, tol: float) -> float:
        """The solver's tolerance for a published gap of ``tol``."""
        return tol

    def recognisable(
        self, problem: KernelMatrixAdapter, progress: Progress
    ) -> Progress:
        """The progress with ``A'alpha``."""
        state = progress.state
        parts = zip(problem.programs, state, strict=True)
        if isinstance(problem.rows, OutputRows):
            u = np.hstack([qp.rows.coefficients(point.alpha) for qp, point in parts])
        else:
            u = state[0].alpha
        vector = problem.combine(u.reshape(problem.rows.shape), precise=True)
        return progress._replace(proof=Candidate(vector, vector.mass))

    def points(
        self, problem: KernelMatrixAdapter, progress: Progress
    ) -> list[PrimalDual]:
        """The points."""
        found = []
        for qp, (w, f, alpha) in zip(problem.programs, progress.state, strict=True):
            if qp.by_margins and not alpha.any():
                alpha = qp.feasible(np.ones(qp.shape))
            found.append((w, intercepts(qp, f) if qp.by_margins else f, alpha))
        return found

    def certified(self, problem: KernelMatrixAdapter, progress: Progress) -> Certified:
        """Prove bounds from the points."""
        programs = problem.programs
        state = progress.state
        if isinstance(problem.rows, OutputRows):
            return self._certified_intervals(problem, problem.rows, progress)
        (qp,) = programs
        (point,) = state
        words = ""
        rounded = list[Proof]()
        if not qp.game:
            (price,) = problem.prices
            best, rounded = self._rounded(progress, rounded_proofs(qp, point, price))
            if best is not None:
                model = Predictor(problem.zeros().image, point.alpha)
                return Certified(model, (best,), np.ones(1))
        alpha = point.alpha if point.alpha.any() else qp.feasible(np.ones(qp.shape))
        tiny = (alpha != 0.0) & ~(alpha > TINY * alpha.max())
        alpha = np.where(tiny, 0.0, alpha) if tiny.any() else alpha
        predictor = publication.published(qp, point.w, intercepts(qp, point.f))
        weights = alpha
        if qp.examples.is_kernel and np.any(
            point.w[:, ~qp.rows.coefficients(alpha).any(axis=1)]
        ):
            # of the support vectors alone, if as good
            w = qp.rows.coefficients(alpha).T
            f = qp.best_f(qp.examples.scores(w), point.f)
            other = publication.published(qp, w, intercepts(qp, f))
            if publication.with_weights(qp, other, alpha).gap <= self.tol:
                predictor = other
        if predictor.primal.margin <= 0.0:
            w, f, weights, words = self.model(problem, qp)
            predictor = publication.published(qp, w, intercepts(qp, f))
        proof = publication.with_weights(qp, predictor, alpha)
        if proof.may_be_refuted:
            proof = with_refutation(proof)
        proof = self._best(proof, rounded)
        if not words and qp.game:
            weights = proof.weights / predictor.multiple
        model = Predictor(problem.zeros().image, weights)
        return Certified(model, (proof,), np.ones(1), words)

    def _certified_intervals(
        self, problem: KernelMatrixAdapter, rows: OutputRows, progress: Progress
    ) -> Certified:
        """``certified`` for regression."""
        programs = problem.programs
        state = progress.state
        zeros = problem.zeros()
        share = 1.0 / len(state)
        origins = np.broadcast_to(rows.origin, len(state))
        rounded: list[Iterable[Proof]] = []
        if not programs[0].hard:
            parts = zip(programs, state, problem.prices, origins, strict=True)
            rounded = [rounded_proofs(*part, share) for part in parts]
        if len(rounded) == 1:
            best, rounded[0] = self._rounded(progress, rounded[0])
            if best is not None:
                return Certified(zeros, (best,), scales_of(rows, programs))
        found = prove_intervals(rows, programs, state, zeros)
        if found.refuted:  # the predictors are those of soft tubes
            soft = problem.softened(DEAR / problem.radius**2).programs
            ends = [solved(qp, LOOSE, LOOSE_ITERATIONS) for qp in soft]
            points = zip(ends, found.proofs, strict=True)
            state = tuple(Point(end.w, end.f, proof.alpha) for end, proof in points)
            return prove_intervals(rows, programs, state, zeros)
        if problem.design is None and found.error(rows.farthest) > self.tol:
            examples = problem.examples
            state = tuple(p._replace(w=of_few_examples(examples, p.w)) for p in state)
            fewer = prove_intervals(rows, programs, state, zeros)
            found = min(found, fewer, key=lambda proved: proved.error(rows.farthest))
        better = zip(found.proofs, rounded, strict=False)
        return replace(
            found, proofs=tuple(self._best(*pair) for pair in better) or found.proofs
        )

    def _rounded(
        self, progress: Progress, rounded: Iterable[Proof]
    ) -> tuple[Proof | None, list[Proof]]:
        """The first proof that no other one can be much better than, and all that were tried."""
        gap = relative_gap(progress.lower, progress.upper)
        tried = list[Proof]()
        for proof in rounded:
            tried.append(proof)
            of_objectives = 1.0 if proof.qp.by_margins else 2.0 - gap
            most = max(2.0 * gap * of_objectives, ROUNDED * proof.qp.size)
            if proof.gap <= min(most, self._tol_of_proof(proof.qp)):
                return proof, tried
        return None, tried

    def _best(self, proof: Proof, rounded: Iterable[Proof]) -> Proof:
        """The first proof with alpha at its bounds whose gap has at most doubled."""
        most = 2.0 * proof.gap
        tol = self._tol_of_proof(proof.qp)
        if proof.gap <= tol:
            most = min(most, tol)
        return next((found for found in rounded if found.gap <= most), proof)

    def _tol_of_proof(self, qp: QuadraticProgram) -> float:
        """The gap of objectives, of regression, is twice that of norms."""
        return self.tol if qp.by_margins else self.tol * (2.0 - self.tol)

    def model(
        self, problem: KernelMatrixAdapter, qp: QuadraticProgram
    ) -> tuple[Array, Array, Array, str]:
        """The model of an inseparable problem: w, f and alpha, and their description.

        It is a soft margin with a large C: nearly the least sum of squared slacks. The larger C,
        the smaller the features that still matter next to others in larger units, and the worse the
        conditioning. Constant alpha on n rows shows that the soft margin is at least ``1 / sqrt(2 C
        n)``; C is chosen so that this is the smallest margin found quickly.
        """
        if qp not in self.limits:
            least = LEAST if problem.design is not None else LEAST_OF_KERNEL
            if problem.design is not None and problem.zeros().image.size > MANY:
                least = LEAST_OF_MANY
            rows = problem.rows
            size = (least * problem.radius) ** 2
            C = 0.5 * rows.square / rows.total_weight / size
            (soft,) = problem.softened(min(C, np.finfo(np.float64).max)).programs
            found = solved(soft, LOOSE, LOOSE_ITERATIONS)
            words = WORDS
            if found.gap > LOOSE:
                words = "a soft margin with a large C, which was not solved to the end"
            f = np.append(found.f, np.zeros(qp.n_free - soft.n_free))
            self.limits[qp] = found.w, f, found.alpha, words
        return self.limits[qp]


def bounds_of(
    problem: KernelMatrixAdapter,
    qp: QuadraticProgram,
    values: list[tuple[float, float, float]],
) -> tuple[float, float, float]:
    """Bounds on the margin, the inverse of a norm (in radii), and the violation of targets.

    They follow from the primal value, the dual value and the violation of each program.
    """
    P, D, violation = values[0]
    if qp.game:
        lower, upper = (copysign(sqrt(2.0 * abs(v)), -v) for v in (P, D))
        return lower, upper, 0.0
    if len(values) > 1:
        scales = np.asarray(output_rows(problem.rows).scales)
        P, D, _ = np.square(scales) @ np.array(values)
        violation = float(np.max(scales * [v for _, _, v in values]))
    lower, upper = (1.0 / sqrt(2.0 * v) if v > 0.0 else inf for v in (P, D))
    return lower, upper, violation


# gaps tell what diverges
@np.errstate(all="ignore")
def play_exactly(
    algorithm: Exact,
    problem: KernelMatrixAdapter,
    stopping: Stopping,
    on_round: OnRound | None = None,
    resume: Progress | None = None,
) -> Outcome:
    """Solve the programs of a problem, and prove the published bounds.

    Where a solver's gap reaches its tolerance, the bounds of what would be published are proved. If
    they fall short, it goes on with a tenth of that tolerance, twice at most. Several programs (of
    outputs) are proved together, at the end.

    Parameters
    ----------
    algorithm, problem, stopping, on_round, resume
        As in :func:`marginsvm.fit.play`; an iteration is one of the solver.

    Raises
    ------
    KeyboardInterrupt
        Between two iterations.
    """
    progress = begin(algorithm, problem) if resume is None else resume.copy()
    known = progress.certified
    done = progress.n_iter
    status = stopping.status_of(problem, progress, known) if known else None
    if status is None and progress.settled:
        status = "stalled"
    if status is None and done >= stopping.max_iter:
        status = "max_iter"
    if status is not None:
        return Outcome(status, progress)
    programs = problem.programs
    begun = time.perf_counter() - progress.seconds
    # Of each program: the best point, and its primal and dual value and violation.
    points = list(progress.state)
    values = [(np.inf, 0.0, np.nan)] * len(programs)
    for part, qp in enumerate(programs):
        refuse_what_cannot_fit(qp)
        tol = algorithm.tol_of(qp, stopping.tol)
        most = stopping.max_iter - done
        now = Solution(qp, tol, most)
        # How often the tolerance may still fall; the iteration from which on a proof is tried
        # again; and equal examples of two classes, which are sought once.
        left = TIGHTENED
        next_proof = 0
        equal = None
        sought = False
        start = points[part].alpha
        chosen = methods(qp)
        if start.any() and (before := solution_before(now, points[part])):
            now = before
            chosen.insert(0, as_it_is)
        for _ in solve(now, start if start.any() else None, chosen):
            if on_round is not None:
                # Only a caller that follows can keep what was found.
                let_interrupts_through()
            alpha = now.alpha
            n = max(progress.n_iter, done + now.n_iter)
            reached = now.gap <= now.tol
            hopeless = qp.game and vanishing(problem.examples) ** 2 >= -2.0 * now.D
            if qp.game and qp.hard and now.P >= 0.0:
                if not sought:
                    equal = equal_examples(qp)
                    sought = True
                if equal is not None:
                    hopeless = True
                    alpha = equal
            points[part] = Point(now.w, now.f, alpha)
            values[part] = now.P, now.D, now.violation
            lower, upper, violation = bounds_of(problem, qp, values)
            progress = progress._replace(
                state=tuple(points),
                n_iter=n,
                n_passes=float(n),
                lower=lower,
                upper=upper,
                violation=violation,
                seconds=time.perf_counter() - begun,
                certified=None,
            )
            if n > len(progress.history):
                progress.history.append(progress.line)
            due = (reached or hopeless) and n >= next_proof
            if due and len(programs) == 1:
                found = algorithm.certified(problem, progress)
                progress = progress._replace(certified=found)
                status = stopping.status_of(problem, progress, found)
                next_proof = 0 if reached else n + 1 + n // 10
            elif due:
                proof = publication.prove(qp, now.w, now.f, alpha)
                now.stopped = proof.gap <= stopping.tol
            if due and reached:
                left -= 1
                now.tol = TIGHTER * now.tol
            if on_round is not None and on_round(progress):
                status = status or "stopped"
            now.stopped |= status is not None or left < 0
        points[part] = Point(now.w, now.f, now.alpha)
        if status is not None:
            return Outcome(status, progress)
    at_the_end = progress.n_iter >= stopping.max_iter
    progress = progress._replace(state=tuple(points), settled=not at_the_end)
    progress = progress._replace(certified=algorithm.certified(problem, progress))
    assert progress.certified is not None
    status = stopping.status_of(problem, progress, progress.certified)
    lines = progress.history
    if status is None:
        gaps = [line.upper - line.lower for line in lines[-1 - IDLE :]]
        idle = len(lines) > IDLE and not gaps[-1] < PROGRESS * gaps[0]
        status = "max_iter" if at_the_end and not idle else "stalled"
    return Outcome(status, progress)


def iterations_left(algorithm: Exact, stopping: Stopping, n_iter: int) -> int:
    """How many iterations may follow; each computes bounds."""
    return max(0, stopping.max_iter - n_iter)


class ExactMixin:
    """An estimator that the exact solver fits."""

    _run = staticmethod(play_exactly)
    _looks = staticmethod(iterations_left)
    _widens_kernels = True
    tol: float
    max_iter: int

    def _algorithm(self) -> Exact:
        return Exact(self.tol)

    def _stopping(self) -> Stopping:
        return Stopping(getattr(self, "stopping", "gap"), self.tol, self.max_iter)


@with_parameters
class MaxMarginClassifier(
    SignParameters,
    CommonParameters,
    KernelParameters,
    ExactMixin,
    DualStateMixin,
    BaseEstimator,
):
    """Maximum-margin classifier by the exact solver: the recommended estimator.

    It finds the linear or kernel classifier of largest hard or soft margin, and bounds the largest
    from above. If the classes are not separable, a hard margin (``C=inf``) ends with a proof of
    that, a warning and a usable model: a soft margin with a large C.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
        Squared hinge, as in LinearSVC, or hinge, as in SVC (k > 2: as in
        ``LinearSVC(multi_class="crammer_singer")``).
    warm_start : bool
        Start at the previous solution, also with another C.

    Attributes
    ----------
    margin_ : float
        Certified lower bound on this predictor's margin (soft: ``1 / sqrt(2 P)``; units of X).
    support_, n_support_ : ndarray of shape (n_support,) and (n_classes,)
        Indices of the support vectors; number in each class.
    support_vectors_ : ndarray or csr matrix of shape (n_support, n_features)
        The support vectors; empty if the kernel is precomputed. Of blocks elsewhere: absent.
    dual_coef_ : ndarray of shape (1 or n_classes, n_support)
        Their coefficients; hinge loss: C times the weight where they are at this bound. Linear:
        ``dual_coef_ @ X[support_]`` is ``coef_`` up to the gap (0 where ``monotonic_cst`` forbids
        its sign).
    nu_ : float
        ``loss="hinge"``: nu of the equivalent NuSVC (dimensionless).

    See Also
    --------
    marginsvm.check_certificate : Compute the bounds again from the data alone.

    Notes
    -----
    The minimum of ``P = |w|^2 / 2 + C sum(loss)`` lies between ``0.5 / margin_bound_**2`` and
    ``0.5 / margin_**2``. The solver chooses among an active set, SMO, dual coordinate descent,
    interior points and Newton's method.

    References
    ----------
    Philip Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976.

    Jingu Kim, Haesun Park. SIAM J. Sci. Comput., 2011 (an active-set-like method).

    S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large
    scale linear SVMs. JMLR, 2005.

    R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm
    in convex programming. Mathematics of Operations Research, 1976.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MaxMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginClassifier().fit(X[:100], y[:100])
    >>> print(f"{clf.margin_:.5f}", clf.gap_ < 1e-6, len(clf.support_))
    0.81756 True 3
    """

    loss: str = parameter(
        StrOptions({"squared_hinge", "hinge"}), default="squared_hinge"
    )
    tol: float = 1e-6
    max_iter: int = 200

    def _own_results(self, fitted: Fitted) -> dict[str, object]:
        proof = fitted.proof
        found = dict[str, object]()
        if not proof.qp.game and not np.any(proof.qp.ridge):
            q = proof.alpha.reshape(proof.qp.examples.n, -1).sum(axis=1)
            m = fitted.problem.rows.weights
            m = np.ones(len(q)) if m is None else m
            found["nu_"] = float((m[q > 0.0] / q[q > 0.0]).min() / m.sum())
        if self.kernel != "linear":
            return found
        (price,) = fitted.problem.prices
        c = dual_coefficients(
            proof.qp,
            # where rows cancel, only the model is the combination of them
            fitted.bounds.model.coef * proof.predictor.multiple
            if proof.qp.hard
            else proof.weights,
            price,
        )
        support = np.flatnonzero(c.any(axis=1))
        found["dual_coef_"] = c[support].T
        del c  # before the support vectors are copied
        return {**found, **fitted.of_support(support)}
