"""A fold of a cross-validation: soft margins of its training part, scored on its test part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.metrics.pairwise import linear_kernel
from sklearn.utils import gen_batches
from sklearn.utils.parallel import Parallel, delayed

from marginsvm._typing import Array
from marginsvm.algorithms.exact.choosing import first_size, spread_evenly
from marginsvm.algorithms.exact.climb import Climb, Dual
from marginsvm.algorithms.exact.climb_of_classes import ClimbOfClasses
from marginsvm.algorithms.exact.newton_systems import system_for
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.algorithms.exact.walk import GramWalk, Walk
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.algorithms.max_margin_path import certified_path
from marginsvm.algorithms.scoring import Decided, Scorer
from marginsvm.certify.spec import ProblemSpec
from marginsvm.estimator.training_set import ClassLabels, TrainingSet, labelled
from marginsvm.fit import Candidate, Progress
from marginsvm.fit.confirm import confirm
from marginsvm.kernel_matrix import GramAdapter, KernelMatrixAdapter, LinearAdapter
from marginsvm.kernel_matrix.single import SingleColumns
from marginsvm.problem.threads import single_threaded_blas
from marginsvm.rows import MulticlassRows, Rows

# Relative gap at which the fits of folds end, unless that of the fit to all examples is larger.
# Slacks, and with them margins, are then off by at most 4.5 % of the root mean square of the slacks
# (the square root of twice the gap), and in fact by far less. Of n held-out examples, those so near
# the boundary change sides in both directions, which changes the score by less than its sampling
# error, a multiple of 1 / sqrt(n).
FOLD_GAP = 1e-3
# Rows up to which a working set solves for each C in milliseconds, as precisely where C is large.
FEW_ROWS = 500
# Examples of a training part whose Gram matrix, with a copy in float32, takes 1 GB.
MAX_EXAMPLES = 9000
# Kernel values of a test part that are computed at once.
_TEST_VALUES = 2**22

# Coefficients of features or of examples, the intercept, and the gap.
Solution = tuple[Array, Array, float]
# Decision values of the test part, and the gap.
Decisions = tuple[Array, float]


class FoldScores(NamedTuple):
    """What a fold has found.

    Attributes
    ----------
    scores : ndarray of shape (n_Cs,)
    gaps : ndarray of shape (n_Cs,)
        Relative gaps at which its fits ended.
    """

    scores: Array
    gaps: Array


def check_folds(parts: list[Array], y: Array, weight: Array | None) -> None:
    """Refuse folds whose training part is of one class, before any of them is fitted."""
    counted = np.ones(len(y), bool) if weight is None else weight > 0.0
    for i, train in enumerate(parts):
        labels = np.unique(y[train][counted[train]]).tolist()
        if len(labels) < 2:
            smallest = np.unique(y[counted], return_counts=True)[1].min()
            raise ValueError(
                f"fold {i + 1} of {len(parts)} leaves examples of {len(labels)} class {labels} to "
                f"train on, of 2 or more (the smallest class has {smallest} of positive weight in "
                "all): pass folds as cv that leave some of each class to train on, or give C "
                "yourself, to MaxMarginClassifier, which needs no folds"
            )


@dataclass(frozen=True)
class Fold:
    """The training part and the test part of some examples.

    Attributes
    ----------
    model : MaxMarginClassifier
        Its parameters; gamma is a number, C does not matter, tol is that of the fold, class_weight
        is None or "balanced".
    X, y : array-like
        All examples and their labels.
    weight : ndarray of shape (n_samples,) or None
        Sample weights, times given weights of classes.
    train, test : ndarray of int
    K : ndarray of shape (n_samples, n_samples) or None
        Kernel matrix of all examples, where it is known.
    """

    model: MaxMarginClassifier
    X: Any
    y: Array
    weight: Array | None
    train: Array
    test: Array
    K: Array | None = None

    @property
    def is_for_pairs(self) -> bool:
        """Whether weights in pairs, or of one example, come first."""
        return bool(self.model.kernel != "linear")

    def columns(self) -> SingleColumns:
        """Kernel values of all examples in float32, whatever their weights."""
        training = TrainingSet.of(self.model, self.X, labelled(self.y, None))
        problem = training.problem(ProblemSpec.of(self.model), self.model._algorithm().requires)
        assert isinstance(problem, GramAdapter)
        return problem.single

    def scores(self, Cs: Array, scorer: Scorer, columns: SingleColumns | None) -> FoldScores:
        """Scores on the test part, for each C in ascending order."""
        weight = None if self.weight is None else self.weight[self.train]
        labels = labelled(self.y[self.train], weight, self.model.class_weight)
        found, u = self._by_pairs(labels, Cs, columns)
        if len(found) < len(Cs):
            found += self._by_others(labels, Cs[len(found) :], u)
        X, y = self.X[self.test], self.y[self.test]
        scores = [scorer(Decided(labels.classes, F), X, y, self.test) for F, _ in found]
        return FoldScores(np.array(scores, dtype=np.float64), np.array([gap for _, gap in found]))

    def _by_pairs(
        self, labels: ClassLabels, Cs: Array, columns: SingleColumns | None
    ) -> tuple[list[Decisions], Array | None]:
        """Decisions by pairs of weights, as far as these reach the gap, and the last weights."""
        found: list[Decisions] = []
        if columns is None:
            return found, None
        members, codes, n = self.train[labels.kept], labels.codes, len(self.y)
        many, hinge, climb = len(labels.classes) > 2, not _walks(self.model), None
        y, weight = np.zeros(n, codes.dtype if many else np.float64), np.zeros(n)
        y[members] = codes if many else np.where(codes == 1, 1.0, -1.0)
        weight[members] = 1.0 if labels.weights is None else labels.weights
        if many and hinge:  # its caps are those of slack in the user's units
            weight *= MulticlassRows.unit**2
        for C in Cs:
            dual = Dual.of_costs(columns, y, C * weight, hinge, self.model.fit_intercept)
            if climb is None:
                some = members[spread_evenly(codes, first_size(len(labels.classes)))]
                climb = (ClimbOfClasses if many else Climb).start(dual, some)
            else:
                climb = climb.continued(dual)
            climb.run(self.model.tol / climb.aim)  # no proof is asked for, which would need a share
            if climb.gap > self.model.tol:
                return found, climb.u[members]
            found.append((climb.scores[self.test], climb.gap))
        return found, None

    def _by_others(self, labels: ClassLabels, Cs: Array, u: Array | None) -> list[Decisions]:
        """Decisions by the methods for coefficients of features or of examples."""
        members = self.train[labels.kept]
        X = np.zeros((len(members), 0)) if self._is_known(members) else self._examples(members)
        training = TrainingSet.of(self.model, X, labels)
        solutions = self._solutions(training, members, Cs, u)
        coefs, intercepts, gaps = zip(*solutions, strict=True)
        linear = self.model.kernel == "linear"
        decide = self._linear_scores if linear else self._kernel_scores
        F = decide(members, np.array(coefs)) + np.array(intercepts)[:, None, :]
        return list(zip(F, gaps, strict=True))

    def _is_known(self, members: Array) -> bool:
        """Whether the kernel matrix of the training part is at hand, and small enough."""
        return self.K is not None and len(members) <= MAX_EXAMPLES

    def _examples(self, members: Array) -> Any:
        if self.model.kernel == "precomputed":
            return self.X[np.ix_(members, members)]
        return self.X[members]

    def _solutions(
        self, training: TrainingSet, members: Array, Cs: Array, u: Array | None
    ) -> Iterator[Solution]:
        rows = training.rows
        if self.model.kernel != "linear" and self._is_known(members):
            return _with_kernel(partial(self._kernel_of, members), rows, Cs, self.model)
        if self.model.kernel == "linear" and rows.n_rows > FEW_ROWS:
            return _with_features(training.X, rows, Cs, self.model)
        problem = training.problem(ProblemSpec.of(self.model), self.model._algorithm().requires)
        return _one_by_one(problem, Cs, self.model, u)

    def _kernel_of(self, members: Array) -> Array:
        """Kernel matrix of some examples, as a copy."""
        assert self.K is not None
        return self.K[np.ix_(members, members)].astype(np.float64, copy=False)

    # Scores of the test part, of shape (n_Cs, n_test, k), without intercepts.

    def _linear_scores(self, members: Array, coefs: Array) -> Array:
        m, k, d = coefs.shape
        F = np.asarray(self.X[self.test] @ coefs.reshape(m * k, d).T)
        return np.moveaxis(F.reshape(len(self.test), m, k), 1, 0)

    def _kernel_scores(self, members: Array, coefs: Array) -> Array:
        (m, k, n), size = coefs.shape, max(1, _TEST_VALUES // max(1, len(members)))
        parts = []
        for batch in gen_batches(len(self.test), size):
            some = self.test[batch]
            if self.K is None:
                values = self.model._kernel_matrix(self.X[some], self.X[members])
            else:
                values = self.K[np.ix_(some, members)]
            parts.append(values @ coefs.reshape(m * k, n).T)
        F = np.concatenate(parts)
        return np.moveaxis(F.reshape(len(self.test), m, k), 1, 0)


def scores_of_folds(folds: list[Fold], Cs: Array, scorer: Scorer, n_jobs: int | None) -> Any:
    """Scores of all folds, those of a job one after the other on the same kernel values."""
    if folds[0].model.kernel == "precomputed":
        folds = [replace(fold, K=fold.X) for fold in folds]
    jobs = min(len(folds), effective_n_jobs(n_jobs))
    parts = [folds[i * len(folds) // jobs : (i + 1) * len(folds) // jobs] for i in range(jobs)]
    found = Parallel(n_jobs=n_jobs)(delayed(_in_turn)(part, Cs, scorer) for part in parts)
    return [fold for part in found for fold in part]


@single_threaded_blas()
def _in_turn(folds: list[Fold], Cs: Array, scorer: Scorer) -> list[FoldScores]:
    columns = folds[0].columns() if folds[0].is_for_pairs else None
    return [fold.scores(Cs, scorer, columns) for fold in folds]


def _walks(model: MaxMarginClassifier) -> bool:
    """Whether Newton's method walks along C, as it does with squared slack."""
    return model.loss == "squared_hinge"


def _with_features(X: Any, rows: Rows, Cs: Array, model: MaxMarginClassifier) -> Iterator[Solution]:
    """Linear predictors; where there are fewer examples than features, in their span."""
    n, d = X.shape
    if n < d and n <= MAX_EXAMPLES:

        def products() -> Array:
            return np.asarray(linear_kernel(X)).astype(np.float64, copy=False)

        for V, intercept, gap in _with_kernel(products, rows, Cs, model):
            yield np.asarray(X.T @ V.T).T, intercept, gap
        return
    problem = LinearAdapter(X, rows, whole=False)
    if not _walks(model):
        yield from _one_by_one(problem, Cs, model)
        return
    walk = Walk(problem, system_for(problem, Portfolio()))
    for C in Cs:
        at = walk.solve(float(C), model.tol)
        yield at.coef, at.intercept, at.gap


def _with_kernel(
    products: Callable[[], Array], rows: Rows, Cs: Array, model: MaxMarginClassifier
) -> Iterator[Solution]:
    """Predictors in the span of the examples, whose Gram matrix ``products()`` gives.

    Where C is so large that Newton's method does not reach the gap, few rows carry weight, and the
    methods of single fits go on from there.
    """
    left, last = Cs, None
    if rows.n_rows > FEW_ROWS and _walks(model):
        walk = GramWalk(products(), rows)
        while len(left):
            at = walk.solve(float(left[0]), model.tol)
            if at.gap > model.tol:
                break
            left = left[1:]
            yield at.coef, at.intercept, at.gap
        last = at.weights
        del walk
    if len(left):
        yield from _one_by_one(GramAdapter(None, products(), rows), left, model, last)


def _one_by_one(
    problem: KernelMatrixAdapter,
    Cs: Array,
    model: MaxMarginClassifier,
    weights: Array | None = None,
) -> Iterator[Solution]:
    """By the methods of single fits: of few rows, or with a Gram matrix too large for memory.

    Parameters
    ----------
    problem : KernelMatrixAdapter
    Cs : ndarray of shape (n_Cs,)
    model : MaxMarginClassifier
    weights : ndarray of shape rows.shape, default=None
        Weights on the rows to begin with.
    """
    algorithm, before = model._algorithm(), None
    if weights is not None and weights.any():
        known = problem.combine(weights)
        seen = Candidate(known, known.mass)
        before = Progress(None, radius=problem.radius, best=seen, proof=seen)
    for soft, progress, _ in certified_path(model, problem, Cs, before):
        bounds = progress.confirmed or confirm(algorithm, soft, progress)
        gap = 1.0 - bounds.lower / max(bounds.upper, 1e-300)
        predictor = bounds.proofs[0].predictor
        yield predictor.coef, predictor.intercept, gap
