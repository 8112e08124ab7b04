"""check_separability: from data to a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from marginsvm._typing import Array
from marginsvm.problem.threads import single_threaded_blas
from marginsvm.separability.data import question
from marginsvm.separability.fitted_models import arguments_of
from marginsvm.separability.report import Separability
from marginsvm.separability.solving import of_a_kernel, report_of

_CONSTRAINTS = {
    "fit_intercept": ["boolean"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
}


@single_threaded_blas()
def check_separability(
    X: Any,
    y: Any = None,
    *,
    family: str | None = None,
    kernel: str | Callable[..., Array] = "linear",
    fit_intercept: bool = True,
    sample_weight: Any = None,
    offset: Any = None,
    strata: Any = None,
    entry: Any = None,
    groups: Any = None,
    draws: str = "half",
    feature_names: Any = None,
    epsilon: float | str = "deprecated",
    max_iter: int = 200,
) -> Separability:
    """Find out what is separated in a regression, with proofs: whether its estimate exists.

    It says whether classes can be separated, and why a regression of classes, counts, times or
    comparisons did not converge. Such a regression has a finite maximum-likelihood estimate exactly
    if the data overlaps. Under complete separation, a combination of the features tells all
    examples apart. Under quasi-complete separation, it tells some of them apart, and is 0 for the
    others. In both cases some coefficients are infinite. The units of the features do not matter.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The examples or, if ``kernel="precomputed"``, the kernel matrix, which is taken as it is.
        Pairs: two columns, of items that are compared; or rankings, a list of sequences that
        begin with the best item, and may end with a set of those that were not ranked. Or a
        fitted model of statsmodels (Logit, Probit, MNLogit, Poisson, NegativeBinomial, GLM,
        OrderedModel, ConditionalLogit, PHReg) or CoxPHFitter of lifelines: then this is all that
        is given, but for ``y``, the frame that lifelines has fitted.
    y : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Class labels; or counts of successes and failures, as two columns; or counts
        (``family="poisson"`` or ``"negative_binomial"``). Cox: time and event (1 or 0), or a
        structured array of both, as of scikit-survival. Conditional: 1 for alternatives that were
        chosen, and 0 for the others. Ordinal: labels in their order, or a categorical of pandas
        that has an order. Pairs: 1 if the first item wins, 0 if the second does, 0.5 for a draw;
        None for rankings.
    family : {"binomial", "multinomial", "ordinal", "poisson", "negative_binomial", "cox", \
            "conditional", "pairs"}, default=None
        The regression. None: binomial for two classes and for two columns of counts, and
        multinomial for more classes, which have a linear score each.
    kernel : str or callable, default="linear"
        As in :class:`marginsvm.MaxMarginClassifier`, with the kernel's default parameters. With
        a kernel other than ``linear``, only complete separation is looked for, and ``separable``
        is False only if equal examples have different labels, as kernel values are rounded.
    fit_intercept : bool, default=True
        Whether the regression has an intercept. Ordinal regressions have thresholds instead, and
        Cox's, choices and pairs have none.
    sample_weight : array-like of shape (n_samples,), default=None
        Examples of weight 0 are left out. Other weights change nothing.
    offset : array-like of shape (n_samples,), default=None
        Of the linear predictor, which may have one (exposures of counts): it changes nothing.
    strata : array-like of shape (n_samples,) or (n_samples, n_strata), default=None
        Cox: labels of strata, of one kind or several.
    entry : array-like of shape (n_samples,), default=None
        Cox: times from which on examples are at risk (late entry, or the beginning of a period).
    groups : array-like of shape (n_samples,), default=None
        Conditional: the group that an alternative is of.
    draws : {"half", "estimated"}, default="half"
        Of pairs. Half: a draw is half a win for each; so it is also if a draw has a parameter of
        its own (Davidson; Rao and Kupper) that is given. Estimated: that parameter, ``(draws)``,
        is one of the coefficients.
    feature_names : sequence of str, default=None
        Names in the report. None: those of the columns of X, or x0, x1, and so on.
    epsilon : float
        Without effect: margins of all sizes, relative to the radius, are searched for.

        .. deprecated:: 0.2
            It will be removed in 0.4.
    max_iter : int, default=200
        Largest number of rounds of :class:`marginsvm.MaxMarginClassifier`.

    Returns
    -------
    Separability
        The report and its proofs, see :func:`marginsvm.check_separability_proof`.

    Raises
    ------
    ValueError
        If the data or a parameter cannot be used; the message says what to do.

    See Also
    --------
    marginsvm.PerceptronVonNeumann : The method of a paper for complete separation.

    References
    ----------
    A. Albert, J. A. Anderson. On the existence of maximum likelihood estimates in logistic
    regression models. Biometrika, 1984.

    S. Correia, P. Guimaraes, T. Zylkin. Verifying the existence of maximum likelihood estimates
    for generalized linear models. 2019.

    A. Ramdas, J. Pena. Margins, Kernels and Non-linear Smoothed Perceptrons. ICML 2014.
    Theorem 2 (Gordan).

    S. Rump. Verification methods: rigorous results using floating-point arithmetic. Acta
    Numerica, 2010 (Krawczyk's argument).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import check_separability
    >>> X, y = load_iris(return_X_y=True)
    >>> check_separability(X[:100], y[:100]).separable
    True
    >>> check_separability(X[50:], y[50:]).kind
    'overlap'

    Only some flowers are told apart by a feature that is 0 for all others:

    >>> import numpy as np
    >>> mark = np.where(np.arange(100) < 10, 1.0, 0.0)
    >>> report = check_separability(np.column_stack([X[50:], mark]), y[50:])
    >>> report.kind, int(report.separated.sum()), report.coefficients[-1]
    ('quasi-complete', 10, Coefficient(name='x4', status='-inf'))
    """
    fitted = arguments_of(X, y)
    if fitted is not None:
        return check_separability(**fitted, max_iter=max_iter)
    if epsilon != "deprecated":
        warnings.warn(
            "epsilon has no effect any more: margins of all sizes are searched for",
            FutureWarning,
            stacklevel=2,
        )
    if kernel != "linear" and family is not None:
        raise ValueError("family is for kernel='linear'; leave it out with other kernels")
    validate_parameter_constraints(
        _CONSTRAINTS, {"fit_intercept": fit_intercept, "max_iter": max_iter}, "check_separability"
    )
    more = {"offset": offset, "strata": strata, "entry": entry, "groups": groups}
    more["draws"] = None if draws == "half" else draws
    asked = question(X, y, family, fit_intercept, sample_weight, feature_names, more)
    asked = replace(asked, kernel=kernel, max_iter=max_iter)
    if kernel != "linear":
        return of_a_kernel(asked.estimator)
    return report_of(asked)
