"""The exact solver for classes: the recommended estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.exact import ExactMixin
from marginsvm.estimators.parameters import (
    CommonParameters,
    KernelParameters,
    SignParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.results import Fitted


@with_parameters
class MaxMarginClassifier(
    SignParameters, CommonParameters, KernelParameters, ExactMixin, DualStateMixin, BaseEstimator
):
    """Maximum-margin classifier by the exact solver: the recommended estimator.

    It finds the linear or kernel classifier with the largest hard or soft margin, and proves how
    close to the largest it is. If no classifier is without training errors, a hard margin ends with
    a proof of that, a warning and a usable model; ``C < inf`` then gives a soft margin.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
        Slack costs C times its square or C times its size, as in
        ``LinearSVC(loss="squared_hinge")`` and in SVC; several classes with ``"hinge"``: Crammer
        and Singer's, as in ``LinearSVC(multi_class="crammer_singer")``. The intercept is not
        penalised.
    tol : float
        Relative gap between the certified bounds at which the fit ends (dimensionless). If rounding
        prevents it, the status is ``"stalled"``.
    max_iter : int
        Largest number of iterations of the solver, those before a warm start included.
    warm_start : bool
        Continue the previous fit on the same data; the result is that of one longer fit up to
        ``tol``. With another C, start at the previous solution.

    Attributes
    ----------
    margin_ : float
        Certified lower bound on the margin of this predictor, and so on the best margin: ``1 /
        sqrt(2 P)`` with the objective P of a soft margin (units of X).
    support_, n_support_ : ndarray of shape (n_support,), and of shape (n_classes,)
        Indices of the support vectors; their number in each class. Linear predictors included.
    dual_coef_ : ndarray of shape (1, n_support) or (n_classes, n_support)
        Coefficients of the support vectors. Linear: ``dual_coef_ @ X[support_]`` is ``coef_`` up to
        the gap. (0 where ``monotonic_cst`` forbids its sign).
    nu_ : float
        ``loss="hinge"``: the nu with which NuSVC has the same solution (dimensionless). The dual
        variables that prove the bound are at most ``1 / (nu n)``.

    See Also
    --------
    marginsvm.check_certificate : Compute the bounds again from the data alone.

    Notes
    -----
    The objective of a soft margin, ``P = |w|^2 / 2 + C sum(loss)``, has its minimum between ``0.5 /
    margin_bound_**2`` and ``0.5 / margin_**2``. The solver chooses among an active set, SMO, dual
    coordinate descent, interior points and Newton's method; bounds depend on the published numbers
    alone. If nothing separates the classes, the model of a hard margin is a soft margin with a
    large C.

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
        with np.errstate(over="ignore"):  # of examples in tiny units
            dual_coef = c[support].T / fitted.problem.radius**2
        return {**found, **fitted.of_support(support), "dual_coef_": dual_coef}
