"""The exact solver: solve on a working set of rows, then certify by one pass over all rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

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
from marginsvm.algorithms.exact.memory import refuse_what_cannot_fit
from marginsvm.algorithms.exact.method import Method
from marginsvm.algorithms.exact.methods import (
    first_method,
    hinge_method,
    method_near,
    next_method,
)
from marginsvm.algorithms.exact.two_classes import ByTwoClasses
from marginsvm.algorithms.exact.working_set import WorkingSet
from marginsvm.certify.caps import multiple_below_caps
from marginsvm.data.threads import single_threaded_blas
from marginsvm.dual_state import DualStateMixin
from marginsvm.estimator.declaring import parameter, with_parameters
from marginsvm.estimator.parameters import CommonParameters, KernelParameters
from marginsvm.estimator.results import Fitted
from marginsvm.fit import Algorithm, Candidate, Progress, Requirements, Stopping, play
from marginsvm.fit.progress import ConfirmedBounds
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import csr_examples

# Rows of many classes from which on the problem of two of them is far smaller: less than a tenth of
# the time of a fit.
_MANY = 500
# Rounds on two classes at most: most pairs are decided by three.
_SEARCH_ROUNDS = 20
_PATIENCE = 10  # rounds without progress; in exact arithmetic, every round makes some


@dataclass(frozen=True)
class ActiveSet(Algorithm):
    """The exact solver: in every round, a solution on few rows and a pass over all rows.

    Attributes
    ----------
    tol : float
        Relative gap of the fit (dimensionless). Rows whose margin is below the common margin of
        the working set by more than half this fraction join it.
    """

    tol: float = 1e-6

    requires = Requirements(every_row=False)

    def start(self, problem: KernelMatrixAdapter) -> Method:
        """Choose a method for problems of this shape."""
        refuse_what_cannot_fit(problem)
        if problem.caps is not None:
            return hinge_method(problem)
        if np.isinf(problem.C) and _is_hard_to_begin(problem) and problem.meeting is not None:
            support = np.flatnonzero(problem.meeting.coef)
            return WorkingSet.of(support, problem.meeting.coef.flat[support])
        method = first_method(problem)
        large = problem.rows.n_classes > 2 and problem.n_rows > _MANY
        if np.isinf(problem.C) and large:
            return ByTwoClasses(method, next_method, _proved_overlap)
        return method

    def continued(self, problem: KernelMatrixAdapter, before: Progress) -> Method | None:
        """Begin at the solution for another C, where that saves time."""
        vectors = before.vectors_for(problem)
        return None if vectors is None else method_near(problem, *vectors)

    @single_threaded_blas()
    def step(self, problem: KernelMatrixAdapter, state: Method) -> Method:
        """Solve on the working set, and compute the margins of all rows."""
        return next_method(problem, state).advance(problem, self.tol)

    def candidates(self, problem: KernelMatrixAdapter, state: Method) -> Iterable[Candidate]:
        """Candidates of the method's last round, and two rows that cancel, if it separates none."""
        yield from state.candidates
        separates = any((c.min_margin or 0.0) > 0.0 for c in state.candidates)
        looks = np.isinf(problem.C) and not separates and state.looks_overlapping(problem)
        meeting = problem.meeting if looks else None
        if meeting is not None:
            yield Candidate(meeting, meeting.mass, precise=True)

    def moving(self, state: Method) -> bool:
        """Whether the method still comes nearer to its own problem's solution."""
        return state.moving

    def limit(self, state: Method) -> str:
        """What a method of bounded memory leaves undone."""
        return state.limit

    def fallback(self, problem: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """The limit of soft margins, where nothing separates; a first guess after an early end."""
        hopeless = progress.upper <= problem.errors.vanishing or progress.stalled(_PATIENCE)
        if hopeless and np.isinf(problem.C):
            if self not in problem.models:
                problem.models[self] = limit_of_soft_margins(ActiveSet(LOOSE), problem)
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
    return bounds.proof.coef if bounds is not None and bounds.overlap else None


def _is_hard_to_begin(problem: KernelMatrixAdapter) -> bool:
    """Whether a search for rows that cancel is cheap beside a first round.

    With two classes and dense examples it costs as much as some of these rounds do, and so
    follows the first of them that finds no separator.
    """
    return problem.rows.n_classes > 2 or csr_examples(problem) is not None


@with_parameters
class MaxMarginClassifier(CommonParameters, KernelParameters, DualStateMixin, BaseEstimator):
    """Maximum-margin classifier by the exact solver: the default choice.

    Few rows decide a hard margin. The problem of a working set of rows is solved up to rounding.
    One pass over all rows then either certifies the solution or finds the rows of smaller margin,
    of which those with the smallest join the working set. Where many rows carry weight, as in
    soft margins, Newton's method takes over.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
        What slack costs with ``C < inf``: C times its square or, two classes only, C times its
        size. The latter is the problem of SVC and, but for its penalty on the intercept, of
        ``LinearSVC(loss="hinge")``: the objective is ``P = |w|^2 / 2 + C sum xi``, and
        ``margin_`` is ``1 / sqrt(2 P)``, see Notes.
    tol : float
        Relative gap between the certified bounds (dimensionless). Where rounding prevents it,
        the fit ends with the status ``stalled``, after ten rounds without progress. With 0,
        all ``max_iter`` rounds are played.
    max_iter : int
        Rounds in all, those before a warm start included. Each solves the problem of a working
        set, takes a Newton step or makes some epochs of ascent, and makes a pass over all rows.
    warm_start : bool
        Continue from the end of the previous fit on the same data. The result is that of a
        single longer fit, bit for bit (with kernels, up to rounding). With another C, begin at
        its solution where that saves rounds; rounds are counted and bounds computed anew. With
        other sample or class weights, begin anew.

    Attributes
    ----------
    margin_ : float
        Certified lower bound on the margin of this predictor, and so on the best margin (units
        of X). Margins down to 1e-9 of the radius are found and certified (kernels and rows with
        more than 1024 features: 1e-7), and smaller ones where a few features in large units
        make up the radius.
    support_, n_support_ : ndarray of shape (n_support,), and of shape (n_classes,)
        Indices of the training examples with weight in the fitted predictor, and how many of
        each class; linear predictors included.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        Coefficients of those examples. With a linear kernel, ``dual_coef_ @ X[support_]`` is
        ``coef_``, up to rounding and what is left of the gap.
    nu_ : float
        With ``loss="hinge"`` (dimensionless): the weights that prove the upper bound are at most
        1 / (nu n) each, n counting the examples with their weights. At the optimum, NuSVC solves
        the same problem with this nu: no more than this share of the examples has slack, and of
        all predictors of norm 1, this one has the largest mean of the worst nu n margins.

    See Also
    --------
    marginsvm.check_certificate : Compute the bounds again from the data alone.

    Notes
    -----
    ===================================  =====================================================
    problem                              method
    ===================================  =====================================================
    few rows, and hard margins           block principal pivoting on a working set of rows
    pivoting does not settle             Wolfe's nearest point, one row at a time
    CSR, two classes, few long rows      coordinate ascent, then pivoting over all rows with
                                         conjugate gradients, in the first round
    soft margin, many rows               Newton's method with an exact line search, directly,
                                         or by conjugate gradients whose products are passes
    soft margin, hinge loss              the same with multipliers, which are the last weights
    hinge loss, kernels, few rows of     the same on a working set of examples, by their Gram
    many features                        matrix
    soft margin, large C; hard margin    the same along a path of softer margins, with their
    of many rows with weight             weights as multipliers
    CSR, many classes                    coordinate ascent, one example at a time, then
                                         Newton's method
    kernels, several classes, soft       Newton's method on a working set of examples, whose
                                         Gram matrix all classes share
    ===================================  =====================================================

    One hands over to another: a working set that would become too large to a path of soft
    margins, and these to a working set of their active rows, once those are few.

    For either loss, ``|w|^2`` and twice the cost of the slack sum up to the inverse square of the
    soft margin, so that ``margin_`` and ``margin_bound_`` are bounds on the best objective as well:
    ``P`` is between ``0.5 / margin_bound_**2`` and ``0.5 / margin_**2``, and its relative gap is at
    most twice ``gap_``.

    All of them give predictors and vectors ``A^T q``, from which alone the bounds are
    computed. With many dense examples, a round first solves for the examples near the margin,
    few enough to stay in the processor's cache. Memory: the data, some numbers for each row, the
    square of the working set (200 MB at most), some images (classes times features), and some MB
    of examples; what the machine cannot hold is refused before the first round; with kernels, the
    columns of all examples that were in the working set, up to 2 GiB, and the square of up to
    9000 examples that have slack, 1 GB: with more, the fit warns, goes on with those, and its
    bounds stay apart. Where nothing separates, the model is the limit of the soft margins as C
    grows: that of the least sum of squared slacks, up to a few per cent, with its intercept.
    Features that spread over less than 1e-5 of the radius (of more than 2000 coefficients:
    1e-3) count less there. Where this is not reached in 15 rounds or 100 passes, and if the
    fit ended early, it is the best of the predictors at hand, the difference of the class
    means among them: the one with the least exponential loss at its best scale.

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

    def _algorithm(self) -> ActiveSet:
        return ActiveSet(self.tol)

    def _stopping(self) -> Stopping:
        return replace(super()._stopping(), negligible=None, patience=_PATIENCE)

    def _own_results(self, fitted: Fitted) -> dict[str, Any]:
        problem, bounds, found = fitted.problem, fitted.bounds, {}
        if problem.caps is not None:
            q = problem.distribution(bounds.proof).weights()
            m = problem.rows.weighted(np.ones(q.shape))
            found["nu_"] = float((m[q > 0.0] / q[q > 0.0]).min() / m.sum())
        if self.kernel != "linear":
            return found
        c = problem.rows.adjoint(_weights_of_the_model(problem, bounds))
        c = c.reshape(problem.rows.n_examples, -1)
        support = np.flatnonzero(c.any(axis=1))
        dual_coef = c[support].T / problem.radius**2
        return {**found, **fitted.of_support(support), "dual_coef_": dual_coef}


def _weights_of_the_model(problem: KernelMatrixAdapter, bounds: ConfirmedBounds) -> Array:
    """Weights u on the rows for which ``A^T u`` is the predictor, up to what is left of the gap.

    With the hinge loss, the model's scale and even its direction may be found before its weights
    are; those that prove the upper bound are as near as the gap, and below their caps.
    """
    if problem.caps is None:
        return np.asarray(bounds.model.coef / bounds.predictor.scale)
    u, length = bounds.proof.coef, problem.norm(bounds.proof)
    return u * (multiple_below_caps(problem.caps.largest, u, length, u.sum()) / problem.rows.unit)
