"""Many small binary problems in one call, with both bounds for each.

Problems of the same shape are solved as a batch: by block pivoting, then by interior points if the
pivoting has not converged. Both values of each program are certified as in ``certificate.bounded``,
in arrays with a leading axis of problems. Problems without a certificate are fitted one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_array, column_or_1d

from marginsvm._rounding import check_exact
from marginsvm._threads import n_threads, single_threaded_blas
from marginsvm._typing import Array
from marginsvm._warnings import warn
from marginsvm.certificate import stacks
from marginsvm.certificate.certificate import Certificate, relative_gap
from marginsvm.estimators.exact import MaxMarginClassifier
from marginsvm.estimators.inputs import class_weighted
from marginsvm.solvers.interior_point import stacked
from marginsvm.solvers.pivoting import pivoted

UNFITTED = "interrupted"  # status of a fit until it is done


@dataclass(frozen=True, eq=False, repr=False)
class ManyFits(Sequence[Any]):
    """Results of :func:`marginsvm.fit_many`: arrays with one entry per fit.

    ``fits[i]`` is an ordinary fitted estimator, created on access.

    Attributes
    ----------
    estimator : estimator
        The given estimator, not fitted.
    coef : ndarray of shape (B, n_features), or list of ndarray
        Coefficients w; a list if the problems have different numbers of features.
    intercept : ndarray of shape (B,)
    dual_coef : ndarray of shape (B, n_samples), or list of ndarray
        Signed dual variables ``y_i alpha_i``. Scaled to ``sum(alpha) = 1``, they prove the upper
        bound.
    margin, margin_bound : ndarray of shape (B,)
        Certified lower and upper bounds on the margin, as in a single fit.
    status : ndarray of shape (B,)
        As in a single fit; ``interrupted``: not fitted.
    separable : ndarray of shape (B,)
        True, False or None.
    classes : ndarray of shape (B, 2)
    radius : ndarray of shape (B,)
        Largest norm of an example (units of X).
    nu : ndarray of shape (B,)
        With the hinge loss: the nu for which NuSVC has the same solution; else 0.
    single : ndarray of shape (B,)
        The fitted estimators of problems fitted one by one; None for the others.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MaxMarginClassifier, fit_many
    >>> X, y = load_iris(return_X_y=True)
    >>> fits = fit_many(MaxMarginClassifier(C=1.0), X, y, rows=[y != 0, y != 1, y != 2])
    >>> fits
    <3 fits of MaxMarginClassifier(C=1.0): 3 certified; margins from 0.193 to 1.62>
    >>> fits.coef.shape, fits.classes.tolist()
    ((3, 4), [[1, 2], [0, 2], [0, 1]])
    >>> print(fits[2].certificate_)
    certified: 0.917749 <= best margin <= 0.91775 (relative gap ...), separable: True
    """

    estimator: Any
    coef: Any
    intercept: Array
    dual_coef: Any
    margin: Array
    margin_bound: Array
    status: Array
    separable: Array
    classes: Array
    radius: Array
    nu: Array
    single: Array

    def __repr__(self) -> str:
        found = ", ".join(
            f"{count} {status}" for status, count in Counter(self.status).items()
        )
        ends = f"{np.min(self.margin):.3g} to {np.max(self.margin):.3g}"
        return f"<{len(self)} fits of {self.estimator}: {found}; margins from {ends}>"

    @property
    def gap(self) -> Array:
        """Relative gaps between the bounds, of shape (B,)."""
        return np.array([*map(relative_gap, self.margin, self.margin_bound)])

    def __len__(self) -> int:
        return len(self.margin)

    def __getitem__(self, index: Any) -> Any:
        """The fitted estimator of one problem, without ``support_vectors_``: X is not kept."""
        i = range(len(self))[index]
        if isinstance(i, range):
            return [self[j] for j in i]
        if self.single[i] is not None:
            return self.single[i]
        if self.status[i] == UNFITTED:
            return clone(self.estimator)
        dual = np.asarray(self.dual_coef[i])
        coef = np.array(self.coef[i])[None]
        support = np.flatnonzero(dual)
        q = np.abs(dual) / np.abs(dual).sum()
        certificate = Certificate(
            lower=float(self.margin[i]),
            upper=float(self.margin_bound[i]),
            reading="margin",
            status=str(self.status[i]),
            feasible=self.separable[i],
            weights=sp.csr_array(q[:, None]),
            radius=float(self.radius[i]),
        )
        history = {"n_iter": 1, "n_passes": 1.0, "seconds": 0.0}
        history |= {"margin": certificate.lower, "margin_bound": certificate.upper}
        fitted = clone(self.estimator)
        fitted.__dict__ |= {
            "coef_": coef,
            "intercept_": self.intercept[i : i + 1].copy(),
            "classes_": self.classes[i].copy(),
            "n_features_in_": coef.shape[1],
            "n_iter_": 1,
            "history_": {name: np.array([value]) for name, value in history.items()},
            "certificate_": certificate,
            "support_": support,
            "n_support_": np.bincount(dual[support] > 0.0, minlength=2).astype(
                np.int32
            ),
            "dual_coef_": dual[support][None],
            "_gamma": 0.0,
            "_progress": None,
        }
        if self.nu[i] > 0.0:
            fitted.nu_ = float(self.nu[i])
        return fitted


@dataclass(frozen=True, eq=False, repr=False)
class ManyScores:
    """Results of :func:`marginsvm.cross_val_many`: arrays with one row per problem.

    Attributes
    ----------
    accuracy : ndarray of shape (B, n_folds)
        Accuracy on each fold of the fit to the other folds.
    margin, margin_bound : ndarray of shape (B, n_folds)
        Certified lower and upper bounds on the margins of these fits.
    status : ndarray of shape (B, n_folds)
        Statuses of these fits.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm import MaxMarginClassifier, cross_val_many
    >>> X, y = np.arange(12.0)[:, None] % 6, np.repeat([0, 1], 3).tolist() * 2
    >>> scores = cross_val_many(MaxMarginClassifier(C=1.0), X, y, cv=3)
    >>> scores.accuracy, set(scores.status.ravel().tolist())
    (array([[1., 1., 1.]]), {'certified'})
    """

    accuracy: Array
    margin: Array
    margin_bound: Array
    status: Array


def fit_many(
    estimator: MaxMarginClassifier,
    X: Any,
    y: Any,
    *,
    columns: Sequence[Any] | None = None,
    rows: Sequence[Any] | None = None,
    n_jobs: int | None = None,
) -> ManyFits:
    """Fit clones of an estimator to many small binary problems.

    Searchlights, permutation tests, concept vectors, bootstraps and folds take 10,000 fits and
    more, of some hundred examples each. They are solved in batches, by linear algebra on stacks of
    matrices. Each fit has its own lower and upper bound, with all rounding accounted for. Problems
    that a batch does not certify are fitted one by one, as by ``clone(estimator).fit``.

    Parameters
    ----------
    estimator : MaxMarginClassifier
        With ``kernel="linear"``. It is not modified. With ``verbose``, the number of finished fits
        is printed.
    X : array-like of shape (n, d) or (B, n, d)
        The examples, shared by all problems or separate. They are converted to float64.
    y : array-like of shape (n,) or (B, n)
        Labels; two classes in each problem.
    columns : sequence of B index arrays or masks, default=None
        The features of each problem; None: all.
    rows : sequence of B index arrays or masks, default=None
        The examples of each problem, which may be repeated; None: all.
    n_jobs : int, default=None
        Number of joblib workers: threads, unless ``joblib.parallel_config`` selects another
        backend. None: the number of BLAS threads.

    Returns
    -------
    ManyFits
        Problem i takes the i-th element of each of ``X``, ``y``, ``columns`` and ``rows`` that is
        given per problem. After Ctrl-C, the finished fits are returned with a warning; the status
        of the others is ``interrupted``.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

    References
    ----------
    Philip Wolfe. Finding the nearest point in a polytope. Mathematical Programming, 1976 (the
    problem of a hard margin; for the others see :class:`MaxMarginClassifier`).

    J. Judice, F. Pires. A block principal pivoting algorithm for large-scale strictly monotone
    linear complementarity problems. Computers & Operations Research, 1994 (the solver of a batch).

    S. Mehrotra. On the implementation of a primal-dual interior point method. SIAM Journal on
    Optimization, 1992 (the fallback).

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
    return ManyFits(
        estimator, **Problems(estimator, X, y, columns, rows).results(n_jobs)
    )


def cross_val_many(
    estimator: MaxMarginClassifier,
    X: Any,
    y: Any,
    *,
    columns: Sequence[Any] | None = None,
    cv: Any = None,
    n_jobs: int | None = None,
) -> ManyScores:
    """Cross-validate an estimator on many small binary problems.

    Every fit has a lower and an upper bound on its margin, as in :func:`fit_many`.

    Parameters
    ----------
    estimator : MaxMarginClassifier
        With ``kernel="linear"``.
    X : array-like of shape (n, d) or (B, n, d)
        The examples, shared by all problems or separate.
    y : array-like of shape (n,) or (B, n)
        Labels; two classes in each problem.
    columns : sequence of B index arrays or masks, default=None
        The features of each problem; None: all.
    cv : int, splitter or iterable of (train, test), default=None
        As in ``cross_val_score``: None is 5, and folds are stratified. If each problem has its own
        labels, each has its own folds.
    n_jobs : int, default=None
        As in :func:`fit_many`.

    Returns
    -------
    ManyScores

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.

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
    from sklearn.model_selection import check_cv  # imports many others

    problems = Problems(estimator, X, y, columns, None)
    assert_all_finite(problems.X, input_name="X")  # rows that are tested only, too
    if not isinstance(cv, int | None) and not hasattr(cv, "split"):
        cv = [*cv]  # an iterator, needed again for each set of labels
    of_labels = [
        [*check_cv(cv, labels, classifier=True).split(problems.X[0], labels)]
        for labels in problems.labels[problems.codes]
    ]
    splits = [split for j in problems.of_y for split in of_labels[j]]
    k = len(of_labels[0])
    problems.of_y = np.repeat(problems.of_y, k)
    problems.of_X = np.repeat(problems.of_X, k)
    problems.columns = [c for c in problems.columns for _ in range(k)]
    problems.shared = problems.whole = False
    problems.rows, problems.tests = map(list, zip(*splits, strict=True))
    found = problems.results(n_jobs)
    return ManyScores(**{name: values.reshape(-1, k) for name, values in found.items()})


class Problems:
    """The arguments of ``fit_many`` as a list of B binary problems.

    Attributes
    ----------
    estimator : MaxMarginClassifier
    X : ndarray of shape (1 or more, n, d)
    labels, codes : ndarray
        All classes, and y as class indices, of shape (1 or more, n).
    of_X, of_y : ndarray of shape (B,)
        Indices into X and codes for each problem.
    columns, rows : list of B index arrays
    whole, shared : bool
        Whether problems have all rows and columns, and whether they have the same examples.
    tests : list of B index arrays
        Rows to predict, for cross-validation: only scores are kept. Empty: none.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, columns: Any, rows: Any) -> None:
        if not isinstance(estimator, MaxMarginClassifier):
            raise TypeError(
                f"fit_many fits MaxMarginClassifier, not {type(estimator).__name__}"
            )
        estimator._validate_params()
        needed = {
            "kernel": "linear",
            "monotonic_cst": None,
            "stopping": "gap",
            "warm_start": False,
        }
        for name, value in needed.items():
            if np.any((given := getattr(estimator, name)) != value):
                raise ValueError(
                    f"fit_many needs {name}={value!r}, not {given!r}: fit one by one"
                )
        check_exact(X)
        self.whole = columns is None and rows is None
        # Of whole problems, a fit by itself refuses what is not finite.
        X = check_array(
            X,
            dtype=[np.float64, np.float32],
            allow_nd=True,
            ensure_all_finite=not self.whole,
        )
        self.estimator = estimator
        y = np.asarray(y)
        if X.ndim > 3 or y.ndim not in (1, 2):
            raise ValueError(
                "X must have two or three dimensions and y one or two, but their shapes are "
                f"{X.shape} and {y.shape}"
            )
        n, d = X.shape[-2:]
        y = column_or_1d(y, warn=True) if y.shape == (n, 1) else y
        if n != y.shape[-1]:
            raise ValueError(f"X has {n} examples, but y has {y.shape[-1]} labels")
        several = {"X": X if X.ndim == 3 else None, "y": y if y.ndim == 2 else None}
        several |= {"columns": columns, "rows": rows}
        lengths = {name: len(x) for name, x in several.items() if x is not None}
        B = max(lengths.values(), default=1)
        if B == 0 or any(length not in (1, B) for length in lengths.values()):
            raise ValueError(
                "X, y, columns and rows are given for different numbers of problems, "
                f"{lengths}: give each per problem, or once for all"
            )
        self.labels, codes = np.unique(y, return_inverse=True)
        self.X = np.ascontiguousarray(X).reshape(-1, n, d)
        self.codes = codes.reshape(-1, n)
        self.of_y = np.arange(B) % len(self.codes)
        self.of_X = np.arange(B) % len(self.X)
        self.columns = _indices(columns, d, "columns", B)
        self.rows = _indices(rows, n, "rows", B)
        self.tests: list[Array] = []
        self.shared = len(self.X) == 1 and self.whole

    def results(self, n_jobs: int | None) -> dict[str, Any]:
        """Fit all problems, and warn about those without a certificate."""
        sizes = [
            (len(rows), len(cols))
            for rows, cols in zip(self.rows, self.columns, strict=True)
        ]
        shapes, of_shape = np.unique(sizes, axis=0, return_inverse=True)
        batches = []
        done = []
        results = dict[str, Any]()
        for j, (n, d) in enumerate(shapes.tolist()):
            ids = np.flatnonzero(of_shape.ravel() == j)
            # 2 MB, of systems and an eighth of the examples, fit in a processor's cache; Gram
            # matrices of shared examples, once per batch
            numbers = n * max(min(n, d), d // 8)
            size = max(1, (2**20 if self.shared else 2**17) // numbers)
            batches += [ids[i : i + size] for i in range(0, len(ids), size)]
        kind = ManyScores if self.tests else ManyFits
        names = [f.name for f in fields(kind) if f.name != "estimator"]
        jobs = n_threads() if n_jobs is None else n_jobs
        verbose = int(self.estimator.verbose)
        run = Parallel(jobs, verbose=verbose, prefer="threads", return_as="generator")
        with suppress(KeyboardInterrupt), single_threaded_blas():
            for found in run(delayed(self.fitted)(ids) for ids in batches):
                done.append({name: found[name] for name in names})
        done += [self.unfitted(ids) for ids in batches[len(done) :]]
        order = np.argsort(np.concatenate(batches))
        for name in names:
            parts = [found[name] for found in done]
            if len({part.shape[1:] for part in parts}) == 1:
                results[name] = np.concatenate(parts)[order]
            else:
                lines = [line for part in parts for line in part]
                results[name] = [lines[i] for i in order]
        others = Counter(word for word in results["status"] if word != "certified")
        if others:
            text = ", ".join(f"{count} {word}" for word, count in others.most_common())
            warn(
                f"of {len(sizes)} fits, not all are certified: {text} (see status, margin_bound)",
                ConvergenceWarning,
            )
        return results

    def unfitted(self, ids: Array) -> dict[str, Array]:
        """Results of problems of the same shape before they are fitted."""
        B = len(ids)
        n = len(self.rows[ids[0]])
        d = len(self.columns[ids[0]])
        found: dict[str, Array] = {"status": np.full(B, UNFITTED, "<U11")}
        found |= {
            name: np.full(B, None, dtype=object) for name in ("separable", "single")
        }
        found |= {name: np.zeros(B) for name in ("intercept", "margin", "radius", "nu")}
        found |= {"margin_bound": np.full(B, np.inf), "accuracy": np.full(B, np.nan)}
        found |= {"coef": np.zeros((B, d)), "dual_coef": np.zeros((B, n))}
        return {**found, "classes": np.empty((B, 2), self.labels.dtype)}

    def fitted(self, ids: Array) -> dict[str, Array]:
        """Fit a batch, then its uncertified problems one by one."""
        found = self.unfitted(ids)
        estimator = self.estimator
        codes = np.stack([self.codes[self.of_y[i], self.rows[i]] for i in ids])
        first = codes.min(axis=1, keepdims=True)
        last = codes.max(axis=1, keepdims=True)
        two = (first < last) & ((codes == first) | (codes == last))
        for j in np.flatnonzero(~two.all(axis=1))[:1]:
            of = self.labels[np.unique(codes[j])].tolist()
            one = "what a fold leaves of one" if self.tests else f"problem {ids[j]}"
            raise ValueError(
                f"every problem needs two classes, but {one} has {len(of)}: {of[:5]}"
            )
        X = self.examples(ids, self.rows)
        labels = self.labels[codes]
        y = np.where(codes == last, 1.0, -1.0)
        ones = np.ones(X.shape[1])
        m = [class_weighted(estimator.class_weight, line, ones) for line in labels]
        found |= {"classes": self.labels[np.hstack([first, last])]}
        found |= solved(X, y, np.array(m), estimator)
        for j in np.flatnonzero(found["status"] != "certified").tolist():
            try:
                fit = clone(estimator).set_params(verbose=False)
                fit._fit_within(X[j % len(X)], labels[j])
            except ValueError as error:
                raise ValueError(f"problem {ids[j]}: {error}") from error
            found["single"][j] = fit
            found["dual_coef"][j] = 0.0
            found["dual_coef"][j, fit.support_] = fit.dual_coef_[0]
            found["coef"][j] = fit.coef_[0]
            found["intercept"][j] = fit.intercept_[0]
            for name in ("margin", "margin_bound", "status", "separable", "radius"):
                found[name][j] = getattr(fit.certificate_, name)
        for j, i in enumerate(ids) if self.tests else ():
            scores = self.examples(ids[j : j + 1], self.tests)[0] @ found["coef"][j]
            answers = found["classes"][j][
                (scores + found["intercept"][j] > 0.0).astype(int)
            ]
            truth = self.labels[self.codes[self.of_y[i], self.tests[i]]]
            found["accuracy"][j] = np.mean(answers == truth)
        return found

    def examples(self, ids: Array, rows: list[Array]) -> Array:
        """X of problems of the same shape, of shape (1 or B, n, d): 1 if it is shared."""
        if self.shared and rows is self.rows:
            return self.X.astype(np.float64, copy=False)
        if self.whole and rows is self.rows:
            some = self.of_X[ids]
            one_by_one = np.all(np.diff(some) == 1)
            of: Any = slice(some[0], some[-1] + 1) if one_by_one else some
            return self.X[of].astype(np.float64, copy=False)
        X = [self.X[self.of_X[i]][np.ix_(rows[i], self.columns[i])] for i in ids]
        return np.stack(X).astype(np.float64, copy=False)


def _indices(given: Any, size: int, name: str, B: int) -> list[Array]:
    """Indices of each problem, from lists of indices or masks; None: all."""
    found = []
    for i, index in enumerate([slice(None)] if given is None else given):
        try:
            chosen = np.arange(size)[index if given is None else np.asarray(index)]
        except IndexError as error:
            raise ValueError(f"{name}[{i}] cannot be used: {error}") from error
        if chosen.ndim != 1 or not chosen.size:
            raise ValueError(
                f"{name}[{i}] must be one list, but chooses shape {chosen.shape}"
            )
        found.append(chosen)
    return found * (B // len(found))


# Gap of interior points: this part of the estimator's, and at most so much.
PRECISE = 0.01
LARGEST_TOL = 1e-6
FAR = 1e100  # radii beyond which squares leave the range of float64
NEAR = 0.5  # the square of a mean near 0, relative to the longest example's


@np.errstate(all="ignore")  # problems with overflow or NaN are not certified
def solved(X: Array, y: Array, m: Array, estimator: Any) -> dict[str, Array]:
    """Solve a stack of problems, and compute certified bounds for each.

    Parameters
    ----------
    X : ndarray of shape (1 or B, n, d)
    y, m : ndarray of shape (B, n)
        Signs and weights of the examples.
    estimator : MaxMarginClassifier
    """
    B, n = y.shape
    d = X.shape[2]
    intercept = estimator.fit_intercept
    # Examples about a point near their mean: 0, where that saves a copy.
    Z = X
    squares = np.vecdot(Z, Z)
    mean = X.mean(axis=1, keepdims=True) if intercept else np.zeros((1, 1, d))
    far = np.vecdot(mean, mean) > NEAR * squares.max(axis=1, keepdims=True)
    shift = mean * far[:, :, None]
    if far.any():
        Z = X - shift
        squares = np.vecdot(Z, Z)
    mean = mean - shift
    about = squares + np.vecdot(mean, mean) - 2.0 * np.vecdot(Z, mean)
    radius = np.broadcast_to(np.sqrt(about.max(axis=1)), B)
    costs = estimator.C * m
    slack = stacks.Slack()  # of hard margins
    if np.isfinite(estimator.C):
        hinge = estimator.loss == "hinge"
        slack = stacks.Slack(upper=costs) if hinge else stacks.Slack(0.5 / costs)

    # Pivoting solves problems exactly, or leaves them to interior points.
    w = np.zeros((B, d))
    b = np.zeros((B, 1))
    alpha = np.zeros((B, n))
    left = np.arange(B)
    if slack.ridge is not None or d >= n:
        w, b, alpha, done = pivoted(Z, y, *slack, intercept=intercept)
        left = np.flatnonzero(~done)
    if left.size:
        # in radii, rounded to powers of two, so that scaling is exact
        unit = np.exp2(np.round(np.log2(radius[left])))[:, None]
        A = np.broadcast_to(Z, (B, n, d))[left] / unit[:, :, None]
        ridge = None if slack.ridge is None else slack.ridge[left] / unit**2
        upper = None if slack.upper is None else slack.upper[left] * unit**2
        tol = min(PRECISE * estimator.tol, LARGEST_TOL)
        found = stacked(A, y[left], ridge, upper, intercept=intercept, tol=tol)
        w[left] = found[0] / unit
        f = found[1]
        alpha[left] = found[2] / unit**2
        if intercept:
            b[left] = f[:, :1]
    b = b[:, 0]
    if intercept:
        alpha = stacks.balanced(alpha, y, costs if slack.upper is not None else np.inf)
    if np.isinf(estimator.C):  # scale to the smallest margin 1
        least = (y * ((Z @ w[..., None])[..., 0] + b[:, None])).min(axis=1)
        w = w / least[:, None]
        b = b / least
        alpha = alpha / least[:, None]
    margin, bound, separates = stacks.proved(
        Z, squares, shift[:, 0], y, w, b, alpha, slack, intercept
    )
    separable = [one or None for one in separates.tolist()]
    results = {
        "coef": w,
        "intercept": b - np.vecdot(w, shift[:, 0]),
        "dual_coef": y * alpha,
        "margin": margin,
        "margin_bound": bound,
        "radius": radius.copy(),
        "separable": np.array(separable, dtype=object),
    }
    if slack.upper is not None:
        q = alpha / alpha.sum(axis=1, keepdims=True)
        results["nu"] = np.where(q > 0.0, m / q, np.inf).min(axis=1) / m.sum(axis=1)
    sane = (radius > 1.0 / FAR) & (radius < FAR) & (margin > 0.0)
    sane &= bound - margin <= estimator.tol * bound
    return {**results, "status": np.where(sane, "certified", UNFITTED)}
