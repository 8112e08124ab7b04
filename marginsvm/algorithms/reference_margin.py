"""The best margin in a norm, certified in rational arithmetic: a reference for other methods."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq, linprog, nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_X_y

from marginsvm._typing import Array
from marginsvm.algorithms.dual_lp import DualLpPerceptron
from marginsvm.algorithms.max_margin import MaxMarginClassifier
from marginsvm.certify.checker.numbers import Rationals
from marginsvm.rows import LpNorm

_GAP = 1e-10  # relative gap that solvers are asked for; they end before, where rounding says so
_POSITION_EPOCHS = 5000  # of coordinate ascent for one position of the boundary, where 1 < p < 2
_POSITION = 1e-9  # error of that position, as a share of the distance of the classes
_NEAR_MARGIN = 1e-4  # rows of smallest margin, up to this share of it, may have weight
_POOR_GAP = 1e-6  # relative gap above which what is best for p = 2 is looked at as well


@dataclass(frozen=True, eq=False)
class ReferenceMargin:
    """The best margin in a norm, between two bounds that hold exactly for the float64 numbers of X.

    Attributes
    ----------
    norm : float
        p: predictors w have ``|w|_p = 1``, and distances are in the dual norm (dimensionless).
    margin : float
        Smallest margin ``y (w.x + b) / |w|_p`` of ``coef`` and ``intercept``, rounded down (units
        of X). 0 if nothing separates the classes, or no separator was found.
    margin_bound : float
        What no predictor's margin exceeds: the distance, in the dual norm, of the means of the
        two classes under ``weights``, divided by 2 and rounded up (units of X).
    coef : ndarray of shape (n_features,)
        The predictor, of norm 1 up to rounding; zeros if there is no separator.
    intercept : float
        Its constant term (units of X); it is not in the norm.
    weights : ndarray of shape (n_samples,)
        Weights of the examples, which prove the bound: not negative, 1/2 for each class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import reference_margin
    >>> X, y = load_iris(return_X_y=True)
    >>> best = reference_margin(X[:100], y[:100], norm=2)
    >>> round(best.margin, 9), round(best.margin_bound, 9), best.gap < 1e-9
    (0.817555769, 0.817555769, True)
    """

    norm: float
    margin: float
    margin_bound: float
    coef: Array
    intercept: float
    weights: Array

    @property
    def gap(self) -> float:
        """Relative gap between the bounds, from 0 to 1 (dimensionless)."""
        return 1.0 - self.margin / self.margin_bound if self.margin_bound > 0.0 else 0.0


def reference_margin(X: Any, y: Any, *, norm: float = 2.0) -> ReferenceMargin:
    r"""The best margin of two classes in a norm of the predictor, with an intercept that is free.

    For those who study which margin an optimizer maximises: gradient descent (2), coordinate
    descent and boosting (1), sign descent and Adam (infinity), mirror descent (between 1 and 2).
    For p = 1 and infinity a linear program is solved, for p = 2 the exact solver is asked, and
    otherwise coordinate ascent, for the position of the boundary at which weights balance. The
    bounds are computed from the results alone, in rational arithmetic: about a microsecond for
    each number in X. Where 1 < p < 2, the position takes some fifty fits, and seconds.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Examples; dense.
    y : array-like of shape (n_samples,)
        Their labels, of two values; the second in sorted order is the positive one.
    norm : float, default=2.0
        p, from 1 to 2, or infinity (dimensionless): the norm of predictors.

    Returns
    -------
    ReferenceMargin
        The margin and its bound, the predictor and the weights that prove them.

    Raises
    ------
    ValueError
        If the norm is none of these, or the labels are not two.

    References
    ----------
    S. Gunasekar, J. Lee, D. Soudry, N. Srebro. Characterizing Implicit Bias in Terms of
    Optimization Geometry. ICML 2018. Theorem 5: steepest descent in a norm maximises its margin.

    Lemma A.1 of Ji, Srebro, Telgarsky (2021): the bounds, here in other norms.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsvm import reference_margin
    >>> X, y = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-2.0, 0.0]]), [1, 1, 0, 0]
    >>> [round(reference_margin(X, y, norm=p).margin, 6) for p in (1, 2, np.inf)]
    [1.5, 2.012461, 2.5]
    """
    X, y = check_X_y(X, y, dtype=np.float64)
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"reference_margin is for two classes, but y has {len(classes)}")
    p = float(norm)
    if not (1.0 <= p <= 2.0 or p == np.inf):
        raise ValueError(f"norm must be from 1 to 2, or infinity, but is {norm!r}")
    sign = np.where(y == classes[1], 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is missing is seen in the gap
        return _best(X, sign, p)


def _best(X: Array, sign: Array, p: float) -> ReferenceMargin:
    """What a solver for this norm finds; where that is not enough, or p is 2, the exact solver."""
    model = MaxMarginClassifier(tol=_GAP).fit(X, sign)
    exact = model.coef_[0], model.certificate_.weights.toarray().ravel()
    if p == 2.0 or model.separable_ is False:
        return _proved(X, sign, p, *exact)
    solve = _by_linear_program if p in (1.0, np.inf) else _by_position
    best = _proved(X, sign, p, *solve(X, sign, p, *exact))
    if best.gap <= _POOR_GAP:
        return best
    other = _proved(X, sign, p, *exact)
    if other.margin > best.margin:
        best = replace(best, margin=other.margin, coef=other.coef, intercept=other.intercept)
    if other.margin_bound < best.margin_bound:
        best = replace(best, margin_bound=other.margin_bound, weights=other.weights)
    return best


def _by_linear_program(
    X: Array, sign: Array, p: float, coef: Array, weights: Array
) -> tuple[Array, Array]:
    """Largest margin with ``|w|_p <= 1``, p = 1 or infinity, and the multipliers of the rows.

    ``coef`` and ``weights`` are the best for p = 2, and the answer where the program has none.
    """
    d, centred = X.shape[1], X - X.mean(axis=0)
    A = sign[:, None] * centred / (np.abs(centred).max() or 1.0)
    rows = np.column_stack([-A, A, -sign, np.ones(len(A))])  # margin <= sign ((u - v).x + b)
    cost = np.r_[np.zeros(2 * d + 1), -1.0]
    limits: list[tuple[float | None, float | None]] = [(0.0, 1.0)] * (2 * d)
    limits += [(None, None), (0.0, None)]
    right = np.zeros(len(A))
    if p == 1.0:
        rows = np.vstack([rows, np.r_[np.ones(2 * d), 0.0, 0.0]])
        right = np.r_[right, 1.0]
    tolerances = {"primal_feasibility_tolerance": _GAP, "dual_feasibility_tolerance": _GAP}
    found = linprog(cost, A_ub=rows, b_ub=right, bounds=limits, options=tolerances)
    if found.x is None:
        return coef, weights
    weights = np.maximum(-found.ineqlin.marginals[: len(A)], 0.0)
    return found.x[:d] - found.x[d : 2 * d], weights


def _by_position(
    X: Array, sign: Array, p: float, coef: Array, weights: Array
) -> tuple[Array, Array]:
    """Largest margin for 1 < p < 2, where its boundary crosses a line from class to class.

    The line joins the means of the classes under the weights that are best for p = 2. For every
    point of it there is a best boundary through it, without an intercept. Its weights belong
    more to the class that the point is nearer to; where they balance, the boundary is the best.
    ``coef`` and ``weights`` are the best for p = 2, and the answer where no such point is found.
    """
    ends = [weights[sign == s] @ X[sign == s] / weights[sign == s].sum() for s in (-1.0, 1.0)]
    fits: dict[float, DualLpPerceptron] = {}

    def imbalance(position: float) -> float:
        if position in (0.0, 1.0):  # a class has no margin at its own mean, and all weight
            return 2.0 * position - 1.0
        origin = (1.0 - position) * ends[0] + position * ends[1]
        fit = DualLpPerceptron(
            p=p, fit_intercept=False, tol=_GAP, max_iter=_POSITION_EPOCHS, random_state=0
        ).fit(X - origin, sign)
        fits[position] = fit
        return float(sign @ fit.certificate_.weights.toarray().ravel())

    position = float(brentq(imbalance, 0.0, 1.0, xtol=_POSITION, disp=False))
    imbalance(position)
    if position in fits:
        found = fits[position].coef_[0]
        if (X[sign > 0.0] @ found).min() > (X[sign < 0.0] @ found).max():
            return found, _weights_of(X, sign, p, found)
    return coef, weights


def _weights_of(X: Array, sign: Array, p: float, coef: Array) -> Array:
    """Balanced weights of which a predictor is the mirror image, as nearly as there are some.

    The best predictor is the gradient of the dual norm at the difference of the weighted means.
    Only rows of smallest margin have weight.
    """
    scores, unit = X @ coef, np.abs(X - X.mean(axis=0)).max()
    low, high = scores[sign > 0.0].min(), scores[sign < 0.0].max()
    slack = np.where(sign > 0.0, scores - low, high - scores)
    near = np.flatnonzero(slack <= _NEAR_MARGIN * (low - high))
    image = LpNorm(p).mirrored(coef)
    image *= 0.5 * (low - high) / (coef @ image)  # as long as the difference of the means is to be
    A = sign[near, None] * (X[near] - X.mean(axis=0))
    conditions = np.vstack([A.T / unit, sign[near], np.ones(near.size)])
    weights = np.zeros(len(X))
    weights[near] = nnls(conditions, np.r_[image / unit, 0.0, 1.0], maxiter=100 * near.size)[0]
    return weights


def _proved(X: Array, sign: Array, p: float, coef: Array, weights: Array) -> ReferenceMargin:
    """Both bounds in rational arithmetic, of a predictor and weights in float64."""
    numbers, positive = Rationals(), sign > 0
    coef = coef / (np.linalg.norm(coef, p) or 1.0)
    q = np.where(positive, weights * positive, weights * ~positive)
    for one in (positive, ~positive):
        total = q[one].sum()
        q[one] = 0.5 * q[one] / total if total > 0.0 else 0.5 / one.sum()
    exact, w = numbers.array(X), numbers.array(coef)
    scores = numbers.dot(exact, w)
    low, high = scores[positive].min(), scores[~positive].max()
    intercept = float(-(low + high) / 2)
    least = min(low + Fraction(intercept), -(high + Fraction(intercept)))
    length = _norm(numbers, w, p)
    if least <= 0 or length == 0:
        coef, intercept, margin = np.zeros_like(coef), 0.0, 0.0
    else:
        margin = numbers.down(least / length * (1 - numbers.rounding_error))
    means = [_mean(numbers, exact[one], q[one]) for one in (positive, ~positive)]
    apart = _norm(numbers, means[0] - means[1], _dual(p)) / 2
    bound = numbers.up(apart * (1 + numbers.rounding_error))
    return ReferenceMargin(p, margin, bound, coef, intercept, q)


def _mean(numbers: Rationals, rows: Array, weights: Array) -> Array:
    """Weighted mean of rows, whatever their weights sum to."""
    used = weights > 0.0
    q = numbers.array(weights[used])
    mean: Array = numbers.dot(q[None, :], rows[used])[0] / q.sum()
    return mean


def _dual(p: float) -> float:
    """Exponent of the dual norm, rounded down: norms do not fall where exponents do."""
    if p == 1.0:
        return float(np.inf)
    return 1.0 if p == np.inf else float(np.nextafter(p / (p - 1.0) * (1.0 - 1e-15), 0.0))


def _norm(numbers: Rationals, x: Array, p: float) -> Any:
    if p == np.inf:
        return max(abs(value) for value in x)
    if p == 1.0:
        return sum(abs(value) for value in x)
    return numbers.norms(x[None, :], p)[0]
