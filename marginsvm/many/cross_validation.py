"""Cross-validation of many small problems, without an estimator for each fold of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.many.batches import fitted_in_batches, in_processes, warn_of_others
from marginsvm.many.fit_many import check_finite, check_many, fitted_alone
from marginsvm.many.label_sets import LabelSets
from marginsvm.many.problems import Problems
from marginsvm.many.stack import Stack
from marginsvm.many.stacked_solving import fitted_together

Split = tuple[Array, Array]


@dataclass(frozen=True, eq=False, repr=False)
class ManyScores:
    """Results of :func:`marginsvm.cross_val_many`: arrays with a line for each of B problems.

    Attributes
    ----------
    accuracy : ndarray of shape (B, n_folds)
        Share of the examples of each fold that are predicted rightly by a fit to the others.
    margin, margin_bound : ndarray of shape (B, n_folds)
        Certified lower and upper bounds on the margins of these fits.
    status : ndarray of shape (B, n_folds)
        How these fits ended.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm import MaxMarginClassifier, cross_val_many
    >>> X, y = np.arange(12.0)[:, None] % 6, np.repeat([0, 1], 3).tolist() * 2
    >>> scores = cross_val_many(MaxMarginClassifier(C=1.0), X, y, cv=3)
    >>> scores.accuracy, set(scores.status.ravel().tolist())
    (array([[1., 1., 1.]]), {'certified'})
    >>> scores
    <1 problem, 3 folds: accuracies of 1 to 1, mean 1>
    """

    accuracy: Array
    margin: Array
    margin_bound: Array
    status: Array

    def __repr__(self) -> str:
        (b, folds), each = self.accuracy.shape, self.accuracy.mean(axis=1)
        ends = f"{each.min():.3g} to {each.max():.3g}, mean {each.mean():.3g}"
        return f"<{b} problem{'s' * (b != 1)}, {folds} folds: accuracies of {ends}>"


def cross_val_many(
    estimator: MaxMarginClassifier,
    X: Any,
    y: Any,
    *,
    columns: Sequence[Any] | None = None,
    cv: Any = None,
    n_jobs: int | None = None,
) -> ManyScores:
    """Cross-validate an estimator on many small problems of two classes.

    The inner products of all examples of a problem are computed once, and each fold takes its part
    of them. Every fit has both of its bounds, as in :func:`fit_many`, whose parameters these are.

    Parameters
    ----------
    estimator : MaxMarginClassifier
        With ``kernel="linear"``.
    X : array-like of shape (n, d) or (B, n, d)
    y : array-like of shape (n,) or (B, n)
        Labels; two classes in each problem.
    columns : sequence of B index arrays or masks, default=None
        The features of each problem; None: all.
    cv : int, splitter or iterable of (train, test), default=None
        As in ``cross_val_score``: None is 5, and folds are stratified. Labels that differ from
        problem to problem are split each in their own way.
    n_jobs : int, default=None
        Processes of joblib; None: threads of this one.

    Returns
    -------
    ManyScores

    Raises
    ------
    ValueError, TypeError
        If an argument cannot be used; the message says what to do.

    References
    ----------
    Philip Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976 (the
    problem of a hard margin).

    Examples
    --------
    A searchlight: each feature and its neighbours. The classes differ in features 10 to 14.

    >>> import numpy as np
    >>> from marginsvm import MaxMarginClassifier, cross_val_many
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((60, 30)), np.arange(60) % 2
    >>> X[y == 1, 10:15] += 1.0
    >>> near = [np.arange(j - 2, j + 3) for j in range(2, 28)]
    >>> scores = cross_val_many(MaxMarginClassifier(C=1.0), X, y, columns=near, cv=6)
    >>> scores.accuracy.shape, int(near[scores.accuracy.mean(axis=1).argmax()][2])
    ((26, 6), 11)
    """
    check_many(estimator)
    problems = Problems.of(estimator, X, y, columns, None)
    if not isinstance(cv, int | None) and not hasattr(cv, "split"):
        cv = [*cv]  # an iterator is read for each problem
    parts = in_processes(_scored, estimator, problems, n_jobs, cv=cv)
    names = ("accuracy", "margin", "margin_bound", "status")
    scores = ManyScores(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))
    warn_of_others(scores.status.ravel(), stacklevel=3)
    return scores


def _scored(estimator: Any, problems: Problems, cv: Any) -> ManyScores:
    """Scores of all problems, batch by batch, in threads."""
    splits = _Splits(problems, cv)
    shape = problems.n_problems, len(splits.of(0))
    status = np.full(shape, "interrupted", dtype="<U11")
    scores = ManyScores(np.full(shape, np.nan), np.zeros(shape), np.full(shape, np.inf), status)

    def work(ids: Array) -> None:
        stack = problems.stack(ids)
        check_finite(problems, stack, ids)
        labels = problems.labelled(ids)
        for fold in range(shape[1]):
            lines = [splits.of(i)[fold] for i in ids]
            sizes = np.array([len(train) for train, _ in lines])
            for size in np.unique(sizes):
                some = np.flatnonzero(sizes == size)
                chosen = [lines[j] for j in some]
                _score(estimator, problems, stack, labels, ids, some, chosen, fold, scores)

    fitted_in_batches(work, problems, estimator.verbose)
    return scores


class _Splits:
    """The folds of each problem: those of all, where labels are the same."""

    def __init__(self, problems: Problems, cv: Any) -> None:
        self._problems, self._cv = problems, cv
        self._same = not problems.has_many_y and np.all(problems.shapes == problems.shapes[0])
        self._of_all = self._split(0) if self._same else []

    def _split(self, i: int) -> list[Split]:
        y = self._problems.labels(i)
        from sklearn.model_selection import check_cv  # imports many others

        return [*check_cv(self._cv, y, classifier=True).split(np.zeros((len(y), 1)), y)]

    def of(self, i: int) -> list[Split]:
        return self._of_all if self._same else self._split(i)


def _score(
    estimator: Any,
    problems: Problems,
    stack: Stack,
    labels: LabelSets,
    ids: Array,
    some: Array,
    lines: list[Split],
    fold: int,
    scores: ManyScores,
) -> None:
    """Fit to all but one fold of some problems of a batch, and predict that fold."""
    train = np.stack([train for train, _ in lines])
    K, at = stack.K[some[:, None, None], train[:, :, None], train[:, None, :]], ids[some]
    part = Stack(K, stack.terms, shift=None if stack.shift is None else stack.shift[some])
    chosen = LabelSets(labels.y[some[:, None], train], labels.classes[some])
    if not chosen.have_both:
        raise ValueError(f"fold {fold} leaves examples of one class only in some problem")
    balanced, tol = problems.balanced, estimator.tol
    loss = chosen.loss(estimator)
    fits, certified = fitted_together(part, chosen.y, loss, balanced=balanced, tol=tol)
    scores.margin[at, fold], scores.margin_bound[at, fold] = fits.margin, fits.bound
    scores.status[at[certified], fold] = "certified"
    for j, (r, t) in enumerate(lines):
        b = some[j]
        truth = labels.y[b, t] > 0.0
        if certified[j]:
            F = stack.K[b][np.ix_(t, r)] @ fits.dual[j] + fits.intercept[j]
            scores.accuracy[ids[b], fold] = np.mean((F > 0.0) == truth)
        else:
            _score_alone(estimator, problems, int(ids[b]), fold, (r, t), scores)


def _score_alone(
    estimator: Any, problems: Problems, i: int, fold: int, split: Split, scores: ManyScores
) -> None:
    """The same by a single fit."""
    (train, test), X, y = split, problems.examples(i), problems.labels(i)
    one = fitted_alone(estimator, X[train], y[train], i)
    scores.accuracy[i, fold] = np.mean(one.predict(X[test]) == y[test])
    scores.margin[i, fold], scores.margin_bound[i, fold] = one.margin_, one.margin_bound_
    scores.status[i, fold] = one.status_
