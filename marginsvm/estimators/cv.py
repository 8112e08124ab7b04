"""MaxMarginClassifierCV: a soft margin with C and gamma chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import (
    _check_method_params,
    _check_sample_weight,
    check_array,
    column_or_1d,
)

from marginsvm._threads import single_threaded_blas
from marginsvm._typing import Array
from marginsvm.certificate.certificate import StatesMargin
from marginsvm.certificate.publication import intercepts
from marginsvm.estimators.exact import MaxMarginClassifier
from marginsvm.estimators.inputs import HOST, as_objects, class_weighted, refuse_foreign
from marginsvm.estimators.parameters import (
    ClassParameters,
    FitParameters,
    NamedKernelParameters,
    parameter,
    with_parameters,
)
from marginsvm.estimators.path import costs_in_order, gammas_in_order
from marginsvm.estimators.predictions import PredictorMixin
from marginsvm.estimators.results import Fitted, publish
from marginsvm.estimators.training_data import training_data
from marginsvm.fit import begin
from marginsvm.problem.kernel_functions import kernel_with
from marginsvm.problem.matrix import canonical
from marginsvm.problem.programs import ProblemSpec
from marginsvm.solvers.solve import refuse_what_cannot_fit, solved

# Parameters that are those of the single fits as well, and those of the fit to all examples.
SHARED = (
    "loss", "class_weight", "fit_intercept", "kernel", "gamma", "degree", "coef0", "kernel_params",
    "cache_size",
)  # fmt: skip
OWN = ("tol", "max_iter", "verbose")
# Relative gap of the fits in folds, unless that of the fit to all examples is larger. The error of
# slacks and margins is then at most a few per cent of the root mean square slack. The few held-out
# examples that near the boundary change sides in both directions, which changes the score by less
# than its sampling error, a multiple of 1 / sqrt(n).
FOLD_GAP = 1e-3
MAX_EXAMPLES = 9000  # whose kernel matrix, with a copy of a part, takes 1 GB


@with_parameters
class MaxMarginClassifierCV(
    FitParameters,
    ClassParameters,
    NamedKernelParameters,
    StatesMargin,
    PredictorMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Maximum-margin classifier whose C and gamma are chosen by cross-validation.

    Each fold fits soft margins for ascending C, with warm starts. The model is
    :class:`MaxMarginClassifier` with the best C and gamma, fitted to all examples.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
        As in :class:`MaxMarginClassifier`.
    Cs : int or array-like of shape (n_Cs,)
        Values of C (dimensionless), or their number, from ``max(1e-3, 1/(2n))/r^2`` to
        ``1e6/r^2``; r: root mean square distance to the mean (no intercept: to 0).
    gammas : array-like of shape (n_gammas,)
        Values of ``gamma`` (same units), chosen with C. None: ``gamma``.
    cv : int, cross-validation generator or iterable of (train, test)
        Folds, as in GridSearchCV; None: five.
    scoring : str or callable
        As in GridSearchCV; None: accuracy. Kernels: scorers get a kernel matrix.
    tol : float
        ``gap_`` at which the fit ends (dimensionless); in folds 1e-3, or ``tol`` if larger.
    max_iter : int
        Iteration limit of a fit.
    n_jobs : int
        Folds in parallel, as in joblib.
    refit : bool
        Whether to fit the model after the scores.

    Attributes
    ----------
    C_ : float
        Best C (dimensionless); ties: the smallest, with the smallest gamma.
    gamma_, gammas_ : float, ndarray of shape (n_gammas,)
        With ``gammas``: the best, and all, ascending (units of ``gamma``).
    Cs_ : ndarray of shape (n_Cs,) or (n_gammas, n_Cs)
        Values of C, ascending (dimensionless).
    scores_, fold_gaps_ : ndarray of shape (n_folds, n_Cs) or (n_folds, n_gammas, n_Cs)
        Scores on the held-out examples; relative gaps of these fits, computed but not proved.
    best_score_ : float
        Mean score of ``C_`` (units of the score).
    best_estimator_ : MaxMarginClassifier
        The model.
    support_, n_support_ : ndarray of shape (n_support,) and (n_classes,)
        Indices of the support vectors; number in each class.
    dual_coef_ : ndarray of shape (1 or n_classes, n_support)
        Their coefficients. Linear: ``dual_coef_ @ X[support_]`` is ``coef_`` up to the gap.

    See Also
    --------
    margin_path : Certified solutions for many C.
    CostCurveDisplay : A picture of the scores.

    References
    ----------
    S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large
    scale linear SVMs. JMLR, 2005. Section 5 (several C).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from marginsvm import MaxMarginClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MaxMarginClassifierCV().fit(X, y)
    >>> clf.scores_.shape, bool(clf.best_score_ > 0.95), bool(clf.gap_ < 1e-6)
    ((5, 10), True, True)

    With a kernel:

    >>> clf = MaxMarginClassifierCV(kernel="rbf", gammas=[1e-7, 1e-6, 1e-5], Cs=[1, 10]).fit(X, y)
    >>> clf.scores_.shape, clf.gamma_, clf.C_ in clf.Cs_
    ((5, 3, 2), 1e-05, True)
    """

    _widens_kernels = True
    tol: float = 1e-6
    max_iter: int = 200
    loss: str = parameter(
        StrOptions({"squared_hinge", "hinge"}), default="squared_hinge"
    )
    Cs: Any = parameter(
        Interval(Integral, 1, None, closed="left"), "array-like", default=10
    )
    gammas: Any = parameter("array-like", None, default=None)
    cv: Any = parameter("cv_object", default=None)
    scoring: Any = parameter(
        StrOptions(set(get_scorer_names())), callable, None, default=None
    )
    n_jobs: int | None = parameter(Integral, None, default=None)
    refit: bool = parameter("boolean", default=True)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose C by cross-validation, and fit to all examples with it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data, or the kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight m counts like m copies, also in the scores; 0 leaves the example out.
        **params : dict
            Passed to the splitter and the scorer, with metadata routing enabled.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or a parameter cannot be used; the message says what to do.
        """
        from sklearn.model_selection import check_cv  # slow import

        _raise_for_params(params, self, "fit")
        refuse_foreign(type(self).__name__, X)
        best = MaxMarginClassifier(**{name: getattr(self, name) for name in SHARED})
        training = training_data(best, X, y, sample_weight)  # validates the data
        # as arrays, with examples of weight 0
        things = as_objects(self.kernel, X)
        floats = [np.float64, np.float32]
        weight = None
        Z = (
            check_array(X, accept_sparse="csr", dtype=floats)
            if things is None
            else things
        )
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, Z, dtype=np.float64)
            sample_weight = weight  # a number is the weight of every example
        Z = canonical(Z)
        t = column_or_1d(y)
        split = {}
        of_scores = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            split = dict(routed.splitter.split)
            of_scores = dict(routed.scorer.score)
        everyone = np.arange(len(t))  # folds may be given as masks
        cv = check_cv(self.cv, t, classifier=True)
        splits = [
            (everyone[train], everyone[test]) for train, test in cv.split(Z, t, **split)
        ]
        model = clone(best).set_params(tol=max(self.tol, FOLD_GAP))
        if self.class_weight != "balanced":  # which each fold is by itself
            weight = class_weighted(self.class_weight, t, weight)
            model.set_params(class_weight=None)
        _check_folds([train for train, _ in splits], t, weight)
        gammas = (
            [training.kernel.gamma] if self.gammas is None else gammas_in_order(self)
        )
        scorer = self.scoring and get_scorer(self.scoring)
        Cs = []
        in_folds = []
        for gamma in gammas:
            kernel = kernel_with(training.spec, gamma) if gamma else training.kernel
            data = Z
            model.set_params(kernel=self.kernel, gamma=gamma or self.gamma)
            Cs.append(costs_in_order(self.Cs, model, replace(training, kernel=kernel)))
            if self.kernel not in ("linear", "precomputed") and len(t) <= MAX_EXAMPLES:
                data = kernel(Z, Z)
                model.set_params(kernel="precomputed", kernel_params=None)
            work = delayed(
                partial(_scored, clone(model), data, t, weight, Cs[-1], scorer)
            )
            # not scikit-learn's Parallel, which sets filters of warnings, and threads share these
            folds = Parallel(n_jobs=self.n_jobs)(
                work(
                    train, test, _check_method_params(t, of_scores, test), get_config()
                )
                for train, test in splits
            )
            in_folds.append(folds)
        scores, gaps = np.array(in_folds).transpose(2, 1, 0, 3)
        costs = np.array(Cs)
        mean = np.nanmean(scores, axis=0)
        i, j = np.unravel_index(int(np.nanargmax(mean)), mean.shape)
        found = {
            **training.features,
            "classes_": training.classes,
            "C_": float(costs[i, j]),
        }
        found["best_score_"] = float(mean[i, j])
        if self.gammas is None:
            costs = costs[0]
            scores = scores[:, 0]
            gaps = gaps[:, 0]
        else:
            found |= {"gamma_": float(gammas[i]), "gammas_": gammas}
            best.set_params(gamma=found["gamma_"])
        found |= {"Cs_": costs, "scores_": scores, "fold_gaps_": gaps}
        if self.refit:
            best.set_params(
                C=found["C_"], **{name: getattr(self, name) for name in OWN}
            )
            best.fit(X, t, sample_weight=sample_weight)
            fitted = {
                name: value for name, value in vars(best).items() if name.endswith("_")
            }
            found = {**fitted, "_gamma": best._gamma, **found, "best_estimator_": best}
        publish(self, found)
        return self

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, **score_params: Any
    ) -> float:
        """Score by ``scoring`` on given examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
        **score_params : dict
            Passed to the scorer, with metadata routing enabled.

        Returns
        -------
        float
        """
        _raise_for_params(score_params, self, "score")
        if sample_weight is not None:
            score_params["sample_weight"] = sample_weight
        if _routing_enabled():
            score_params = process_routing(self, "score", **score_params).scorer.score
        return float(get_scorer(self.scoring or "accuracy")(self, X, y, **score_params))

    def get_metadata_routing(self) -> MetadataRouter:
        """Route metadata to the splitter and the scorer, as in LogisticRegressionCV.

        Returns
        -------
        MetadataRouter
        """
        of_splits = MethodMapping().add(caller="fit", callee="split")
        of_scores = MethodMapping().add(caller="fit", callee="score")
        of_scores = of_scores.add(caller="score", callee="score")
        scorer = get_scorer(self.scoring or "accuracy")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=of_splits)
            .add(scorer=scorer, method_mapping=of_scores)
        )


def _check_folds(parts: list[Array], y: Array, weight: Array | None) -> None:
    """Refuse folds with a training part of one class, before any fit."""
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


def _solved(
    model: MaxMarginClassifier, X: Any, y: Array, weight: Array | None, Cs: Array
) -> Iterator[tuple[MaxMarginClassifier, float]]:
    """The model for each C in turn, warm-started, and its gap as the solver computes it."""
    algorithm = model._algorithm()
    training = training_data(model, X, y, weight)
    problem = training.problem(algorithm.requires)
    alpha = None
    for C in Cs:
        soft = problem.softened(float(C))
        soft = soft.with_hinge_loss() if model.loss == "hinge" else soft
        (qp,) = soft.programs
        refuse_what_cannot_fit(qp)
        found = solved(qp, model.tol, model.max_iter, alpha)
        alpha = found.alpha
        coef, shift = qp.examples.published(found.w)
        fitted = Fitted(algorithm, soft, training, begin(algorithm, soft))
        model.__dict__ |= training.features | fitted.model_of(
            coef, intercepts(qp, found.f) - shift
        )
        model._gamma = training.kernel.gamma
        yield model, found.gap


@single_threaded_blas()
# gaps tell what diverges
@np.errstate(all="ignore")
def _scored(
    model: MaxMarginClassifier,
    X: Any,
    y: Array,
    weight: Array | None,
    Cs: Array,
    scorer: Any,
    train: Array,
    test: Array,
    params: dict[str, Any],
    config: dict[str, object],
) -> tuple[list[float], list[float]]:
    """Scores on the test part of fits to the training part, and their gaps, for each C.

    ``config`` is the configuration of scikit-learn, which other threads and processes lack.
    """
    given = model.kernel == "precomputed"
    X_test, X_train = (
        X[np.ix_(part, train)] if given else X[part] for part in (test, train)
    )
    weight = None if weight is None else weight[train]
    scores = []
    gaps = []
    with config_context(**config):
        for fit, gap in _solved(model, X_train, y[train], weight, Cs):
            # accuracy, without scikit-learn's checks; no weight: no score
            if scorer is None:
                m = params.get("sample_weight", np.ones(len(test)))
                answers = fit._labels(fit._scores(X_test, ProblemSpec.of(fit), HOST))
                scores.append(float(np.divide((answers == y[test]) @ m, np.sum(m))))
            else:
                scores.append(float(scorer(fit, X_test, y[test], **params)))
            gaps.append(gap)
    return scores, gaps
