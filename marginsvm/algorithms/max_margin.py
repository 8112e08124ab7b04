"""The exact solver: solve on a working set of rows, then certify by one pass over all rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from marginsvm._typing import Array
from marginsvm.algorithms.exact.limit import (
    LOOSE,
    first_guess,
    limit_of_soft_margins,
    of_least_loss,
)
from marginsvm.algorithms.exact.memory_needed import refuse_what_cannot_fit
from marginsvm.algorithms.exact.shape import Shape
from marginsvm.algorithms.exact.stage import Stage
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.algorithms.exact.two_classes import ByTwoClasses
from marginsvm.algorithms.exact.working_set import WorkingSet
from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import parameter, with_parameters
from marginsvm.estimator.parameters import CommonParameters, KernelParameters, SignParameters
from marginsvm.estimator.results import Fitted
from marginsvm.fit import Algorithm, Candidate, Progress, Requirements, Stopping, play
from marginsvm.fit.confirm import vanishing
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples, has_curvature
from marginsvm.problem.threads import single_threaded_blas

# Above so many rows of more than two classes, a look at two classes alone costs less than a tenth
# of a fit.
_MANY_ROWS = 500
# Rounds on two classes at most: most pairs are decided by three.
_SEARCH_ROUNDS = 20
_PATIENCE = 10  # rounds without progress; in exact arithmetic, every round makes some


State = Stage | ByTwoClasses


@dataclass(frozen=True)
class ActiveSet(Algorithm):
    """The exact solver: in every round, a solution on few rows and a pass over all rows.

    Attributes
    ----------
    tol : float
        Relative gap of the fit (dimensionless). Rows whose margin is below the common margin of
        the working set by more than half this fraction join it.
    portfolio : Portfolio
        Thresholds between the methods.
    """

    tol: float = 1e-6
    portfolio: Portfolio = field(default_factory=Portfolio)

    requires = Requirements(every_row=False)

    def start(self, problem: KernelMatrixAdapter) -> State:
        """Choose a method for problems of this shape."""
        refuse_what_cannot_fit(problem, self.portfolio)
        several = problem.rows.n_classes > 2
        limited = several and problem.caps is not None and not has_curvature(problem)
        shape = Shape.of(problem)
        small = shape.is_small(self.portfolio) or shape.is_for_pairs(self.portfolio)
        if limited and not small:
            raise ValueError(
                "loss='hinge' with a kernel whose values float32 does not hold solves for all "
                "classes together by a system of examples times classes, which "
                f"{problem.rows.n_examples} examples of {problem.rows.n_classes} classes make too "
                "large: scale X or the kernel, use loss='squared_hinge', or sklearn.multiclass."
                "OneVsOneClassifier(MaxMarginClassifier(...)), the classifier that SVC is"
            )
        if _is_hard(problem) and _is_hard_to_begin(problem) and problem.meeting is not None:
            return Stage.of(WorkingSet.with_weights(problem.meeting.coef))
        stage = Stage.first(problem, self.portfolio)
        large = several and problem.n_rows > _MANY_ROWS
        return ByTwoClasses(stage, _proved_overlap) if np.isinf(problem.C) and large else stage

    def continued(self, problem: KernelMatrixAdapter, before: Progress) -> State | None:
        """Begin at the solution for another C, where that saves time."""
        vectors = before.vectors_for(problem)
        return None if vectors is None else Stage.near(problem, self.portfolio, *vectors)

    @single_threaded_blas()
    def step(self, problem: KernelMatrixAdapter, state: State) -> State:
        """Solve on the working set, and compute the margins of all rows."""
        return state.advance(problem, self.tol, self.portfolio)

    def phase(self, state: State) -> str:
        """The method of the last round."""
        return state.method.name

    def candidates(self, problem: KernelMatrixAdapter, state: State) -> Iterable[Candidate]:
        """Candidates of the method's last round, and two rows that cancel, if it separates none."""
        yield from state.candidates
        separates = any((c.min_margin or 0.0) > 0.0 for c in state.candidates)
        meeting = problem.meeting if _is_hard(problem) and not separates else None
        if meeting is not None:
            yield Candidate(meeting, meeting.mass, precise=True)

    def moving(self, state: State) -> bool:
        """Whether the method still comes nearer to its own problem's solution."""
        return state.nearer

    def limit(self, state: State) -> str:
        """What a method of bounded memory leaves undone."""
        return state.method.limit

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """The limit of soft margins, where nothing separates; a first guess after an early end."""
        hopeless = progress.upper <= vanishing(problem) or progress.stalled(_PATIENCE)
        if hopeless and np.isinf(problem.C):
            if self not in problem.models:
                any_weights = replace(self.portfolio, more=0)  # of which the model has none
                loose = replace(self, tol=LOOSE, portfolio=any_weights)
                problem.models[self] = limit_of_soft_margins(loose, problem)
            return of_least_loss(problem, problem.models[self])
        return of_least_loss(problem, first_guess(problem, progress))


class _Search(ActiveSet):
    """The same in search of a separator or of a proof: no model is needed without one."""

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """What is at hand."""
        return of_least_loss(problem, first_guess(problem, progress))


def _proved_overlap(problem: KernelMatrixAdapter) -> Array | None:
    """Weights that prove an overlap of two classes, or None."""
    stopping = Stopping("separation", tol=1e-6, max_iter=_SEARCH_ROUNDS, patience=_PATIENCE)
    outcome = play(_Search(), problem, stopping)
    bounds = outcome.progress.confirmed
    return bounds.proofs[0].alpha if bounds is not None and bounds.refuted else None


def _is_hard(problem: KernelMatrixAdapter) -> bool:
    """Whether all examples count alike: two rows may then have all the weight."""
    return np.isinf(problem.C) and problem.caps is None


def _is_hard_to_begin(problem: KernelMatrixAdapter) -> bool:
    """Whether a search for rows that cancel is cheap beside a first round.

    With two classes and dense examples it costs as much as some of these rounds do, and so
    follows the first of them that finds no separator.
    """
    return problem.rows.n_classes > 2 or csr_examples(problem) is not None


@with_parameters
class MaxMarginClassifier(
    SignParameters, CommonParameters, KernelParameters, DualStateMixin, BaseEstimator
):
    """Maximum-margin classifier by the exact solver: the recommended estimator.

    It finds the linear or kernel classifier with the largest hard or soft margin, and proves how
    close to the largest it is. By default it asks for a classifier without training errors. If
    there is none, the fit ends with a proof of that, a warning and a usable model; ``C < inf``
    then gives a soft margin.

    Few rows decide a hard margin: the solver finds the best predictor for a working set of rows,
    and one pass over all rows then either certifies it or finds rows to add. If many rows decide,
    as with a soft margin, it uses Newton's method.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
        What slack costs with ``C < inf``: C times its square or C times its size. With two
        classes, ``"hinge"`` is the problem of SVC and, except that LinearSVC penalises the
        intercept, of ``LinearSVC(loss="hinge")``; with more, it is Crammer and Singer's, that of
        ``LinearSVC(multi_class="crammer_singer")``: an example has slack once, for the class that
        comes nearest, and ``C`` counts once for it. Its objective is
        ``P = |w|^2 / 2 + C sum xi``, and ``margin_`` is ``1 / sqrt(2 P)``; see Notes.
    tol : float
        Relative gap between the certified bounds at which the fit ends (dimensionless). After ten
        rounds without progress, which rounding may prevent, it ends with the status
        ``stalled``. With 0, all ``max_iter`` rounds are played.
    max_iter : int
        Largest number of rounds, those before a warm start included. A round solves the problem
        of a working set, takes a step of Newton's method or makes some epochs of coordinate
        ascent, and then makes a pass over all rows.
    warm_start : bool
        Continue from the end of the previous fit on the same data. The result is that of a
        single longer fit up to ``tol``. With another C, a new fit starts at the previous solution
        if that saves rounds. With other sample or class weights, a new fit starts from nothing.

    Attributes
    ----------
    margin_ : float
        Certified lower bound on the margin of this predictor, and so on the best margin (units
        of X). Margins down to 1e-9 of the radius are found and certified (with kernels and with
        more than 1024 features: 1e-7), and smaller ones if a few features in large units make up
        the radius.
    support_, n_support_ : ndarray of shape (n_support,), and of shape (n_classes,)
        Indices of the training examples with weight in the fitted predictor, and how many of
        each class; linear predictors included.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        Coefficients of those examples. With a linear kernel, ``dual_coef_ @ X[support_]`` is
        ``coef_``, up to rounding and what is left of the gap; where ``monotonic_cst`` asks for
        another sign than that combination has, ``coef_`` is 0.
    nu_ : float
        With ``loss="hinge"`` only (dimensionless): the parameter with which NuSVC has the same
        solution. At most this share of the examples has slack, and no predictor of norm 1 has a
        larger mean of its nu n smallest margins, where n counts the examples with their weights.
        The weights that prove the upper bound are at most ``1 / (nu n)`` each.

    See Also
    --------
    marginsvm.check_certificate : Compute the bounds again from the data alone.

    Notes
    -----
    *Methods* change during a fit; the page "Exact maximum margin" of the manual has them. Whatever
    the method, bounds are computed from the predictor and the weights alone.

    *Objective.* For either loss, ``margin_`` is ``1 / sqrt(2 P)`` of the soft-margin objective
    ``P``, the least of which is between ``0.5 / margin_bound_**2`` and ``0.5 / margin_**2``.

    *Kernels.* Weights are found on kernel values in float32 (two classes); bounds rest on values
    in float64, as scikit-learn computes them.

    *Memory.* Besides the data: some numbers for each row, the square of the working set (200 MB at
    most), some arrays of classes times features, and some MB of examples. A problem that the
    machine cannot hold is refused before the first round. With kernels: ``cache_size``, and the
    examples in float32. Where so many examples have slack that their values with each other are
    more than half of it (or 1 GB), a gap may remain between the bounds, with a warning.

    *If nothing separates the classes,* the model is the limit of the soft margins as C grows. It
    has the least sum of squared slacks, up to a few per cent. Features that spread over less than
    1e-5 of the radius (1e-3, if there are more than 2000 coefficients) count less there. If this
    model is not reached in 15 rounds or 100 passes, or if the fit ended early, the model is the
    best of the predictors found so far, and of the difference of the class means: that with the
    least exponential loss at its best scale.

    References
    ----------
    Philip Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976.

    J. Kim, H. Park. Fast nonnegative matrix factorization: an active-set-like method and
    comparisons. SIAM J. Sci. Comput., 2011.

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

    loss: str = parameter(StrOptions({"squared_hinge", "hinge"}), default="squared_hinge")
    tol: float = 1e-6
    max_iter: int = 200

    _portfolio: ClassVar[Portfolio] = Portfolio()  # for tests and benchmarks
    _widens_kernels = True

    def _algorithm(self) -> ActiveSet:
        return ActiveSet(self.tol, self._portfolio)

    def _stopping(self) -> Stopping:
        return replace(super()._stopping(), negligible=None, patience=_PATIENCE)

    def _own_results(self, fitted: Fitted) -> dict[str, Any]:
        proof, found = fitted.proof, {}
        if not proof.qp.game and not np.any(proof.qp.ridge):
            q = proof.alpha.reshape(proof.qp.examples.n, -1).sum(axis=1)
            m = fitted.problem.rows.weights
            m = np.ones(len(q)) if m is None else m
            found["nu_"] = float((m[q > 0.0] / q[q > 0.0]).min() / m.sum())
        if self.kernel != "linear":
            return found
        alpha = proof.weights
        if proof.qp.hard:  # nothing else is the combination of rows where these cancel
            alpha = fitted.bounds.model.coef * (proof.predictor.multiple / fitted.problem.rows.unit)
        c = proof.qp.coefficients(alpha)
        support = np.flatnonzero(c.any(axis=1))
        dual_coef = c[support].T / fitted.problem.radius**2
        return {**found, **fitted.of_support(support), "dual_coef_": dual_coef}
