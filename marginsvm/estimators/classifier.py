"""The exact solver for classes: the recommended estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.exact import Exact, solved
from marginsvm.estimators.parameters import (
    CommonParameters,
    KernelParameters,
    SignParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.results import Fitted
from marginsvm.fit import Stopping

_PATIENCE = 10  # rounds without progress


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
        Relative gap between the certified bounds at which the fit ends (dimensionless). Where
        rounding leaves more, it ends with the status ``stalled``; with 0, always.
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

    _widens_kernels = True
    _run = staticmethod(solved)

    def _algorithm(self) -> Exact:
        return Exact(self.tol)

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
        with np.errstate(over="ignore"):  # of examples in tiny units
            dual_coef = c[support].T / fitted.problem.radius**2
        return {**found, **fitted.of_support(support), "dual_coef_": dual_coef}
