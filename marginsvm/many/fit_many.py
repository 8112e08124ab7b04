"""Many small fits by one call: stacks of Gram matrices, and a certificate for each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import assert_all_finite

from marginsvm._typing import Array
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.many.batches import fitted_in_batches, in_processes, warn_of_others
from marginsvm.many.many_fits import ManyFits, joined, put, put_coef, put_single, room_for
from marginsvm.many.problems import Problems
from marginsvm.many.stack import Stack
from marginsvm.many.stacked_bounds import weights_of
from marginsvm.many.stacked_solving import fitted_together


def fit_many(
    estimator: MaxMarginClassifier,
    X: Any,
    y: Any,
    *,
    columns: Sequence[Any] | None = None,
    rows: Sequence[Any] | None = None,
    n_jobs: int | None = None,
) -> ManyFits:
    """Fit clones of an estimator to many small problems of two classes.

    Searchlights, permutation tests, concept vectors, bootstraps and folds are 10,000 fits and
    more, of some hundred examples each. They are fitted here a batch at a time, by linear algebra
    on stacks of Gram matrices, and each has both bounds of its own, with all rounding allowed for.
    What a batch does not certify is fitted as by ``clone(estimator).fit``, one by one.

    Parameters
    ----------
    estimator : MaxMarginClassifier
        With ``kernel="linear"``. It is not changed. With ``verbose``, a line
        says how many fits are done.
    X : array-like of shape (n, d) or (B, n, d)
        The examples of all problems, or of each. They are computed with in float64.
    y : array-like of shape (n,) or (B, n)
        Labels; two classes in each problem.
    columns : sequence of B index arrays or masks, default=None
        The features of each problem; None: all.
    rows : sequence of B index arrays or masks, default=None
        The examples of each problem, which may be repeated; None: all.
    n_jobs : int, default=None
        Processes of joblib, each of which takes a part of the problems. None: threads of this one,
        as many as BLAS would take.

    Returns
    -------
    ManyFits
        ``X``, ``y``, ``columns`` and ``rows`` are taken together: problem i has the i-th of each of
        which there are several. After an interrupt (Ctrl-C), the fits that are done, with a
        warning; the status of others is ``interrupted``.

    Raises
    ------
    ValueError, TypeError
        If an argument cannot be used; the message says what to do.

    References
    ----------
    Philip Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976 (the
    problem of a hard margin; :class:`MaxMarginClassifier` has the others).

    J. Kim, H. Park. Fast nonnegative matrix factorization: an active-set-like method and
    comparisons. SIAM J. Sci. Comput., 2011 (how a batch is solved).

    Examples
    --------
    A permutation test: 100 sets of labels on the same examples.

    >>> import numpy as np
    >>> from marginsvm import MaxMarginClassifier, fit_many
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((20, 50)), np.repeat([0, 1], 10)
    >>> X[:10, :5] += 2.0
    >>> labels = [y, *(rng.permutation(y) for _ in range(99))]
    >>> fits = fit_many(MaxMarginClassifier(), X, labels)
    >>> fits.coef.shape, bool((fits.gap <= 1e-6).all()), set(fits.status.tolist())
    ((100, 50), True, {'certified'})
    >>> float(np.mean(fits.margin >= fits.margin[0]))
    0.01
    """
    check_many(estimator)
    problems = Problems.of(estimator, X, y, columns, rows)
    fits = joined(in_processes(_fitted, estimator, problems, n_jobs))
    warn_of_others(fits.status, stacklevel=3)
    return fits


def check_many(estimator: Any) -> None:
    """Refuse what cannot be fitted many at a time."""
    if not isinstance(estimator, MaxMarginClassifier):
        raise TypeError(
            f"fit_many fits MaxMarginClassifier, but got {type(estimator).__name__}: fit others "
            "one by one"
        )
    estimator._validate_params()
    if estimator.kernel != "linear":
        raise ValueError(
            f"fit_many takes kernel='linear', not {estimator.kernel!r}: fit kernels one by one"
        )
    if estimator.monotonic_cst is not None:
        raise ValueError("fit_many cannot keep signs: use monotonic_cst=None, or fit one by one")
    if estimator.stopping != "gap" or estimator.warm_start:
        raise ValueError("fit_many needs stopping='gap' and warm_start=False")


def _fitted(estimator: Any, problems: Problems) -> ManyFits:
    """Fit all problems, batch by batch, in threads."""
    fits = room_for(estimator, problems.shapes, problems.y.dtype)
    work = partial(_fit, estimator, problems, fits)
    fitted_in_batches(work, problems, estimator.verbose)
    return fits


def _fit(estimator: Any, problems: Problems, fits: ManyFits, ids: Array) -> None:
    """Fit a batch together, and one by one what that does not certify."""
    stack = problems.stack(ids)
    check_finite(problems, stack, ids)
    labels = problems.labelled(ids)
    loss, balanced = labels.loss(estimator), problems.balanced
    found, certified = fitted_together(stack, labels.y, loss, balanced=balanced, tol=estimator.tol)
    put(fits, ids, found, certified, labels.classes)
    put_coef(fits, ids, problems.coef(stack, ids, found.dual), stack.shift)
    if loss.hinge:
        q, m = weights_of(found.dual), loss.costs / estimator.C
        share = np.where(q > 0.0, m / np.where(q > 0.0, q, 1.0), np.inf).min(axis=1)
        fits.nu[ids] = share / m.sum(axis=1)
    for i in ids[~certified]:
        put_single(fits, i, fitted_alone(estimator, problems.examples(i), problems.labels(i), i))


def fitted_alone(estimator: Any, X: Array, y: Array, i: int) -> Any:
    """A single fit to problem i, which an error names."""
    try:
        return clone(estimator).set_params(verbose=False).fit(X, y)
    except ValueError as error:
        raise ValueError(f"problem {i}: {error}") from error


def check_finite(problems: Problems, stack: Stack, ids: Array) -> None:
    """Refuse examples that are not finite."""
    for i in ids[~np.isfinite(stack.squares).all(axis=1)]:
        assert_all_finite(problems.examples(i), input_name=f"X of problem {i}")
