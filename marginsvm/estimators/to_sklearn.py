"""Fitted estimators of scikit-learn with the same decision values, for ONNX, SHAP and others.

What a fit of libsvm makes, private attributes included, is made by a fit to two examples; what that
has found is then replaced.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from marginsvm._typing import Array
from marginsvm.problem.matrix import on_host
from marginsvm.problem.quadratic_program import ProblemSpec

_LIBSVM = {"linear": "linear", "poly": "poly", "polynomial": "poly", "rbf": "rbf"}
_LIBSVM |= {"sigmoid": "sigmoid", "precomputed": "precomputed"}  # what SVC computes by itself


def linear_classifier(estimator: Any) -> Any:
    """A fitted LinearSVC with the coefficients of a fitted linear classifier.

    Its decision values, and so its predictions, are the same.
    """
    from sklearn.svm import LinearSVC  # takes a tenth of a second

    coef = on_host(estimator.coef_)
    model = LinearSVC(
        C=ProblemSpec.of(estimator).C,
        loss=ProblemSpec.of(estimator).loss,
        fit_intercept=estimator.fit_intercept,
        class_weight=estimator.class_weight,
    )
    return _published(
        model,
        estimator,
        classes_=estimator.classes_,
        coef_=np.array(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64),
        intercept_=np.array(on_host(estimator.intercept_), dtype=np.float64),
        n_iter_=estimator.n_iter_,
    )


def linear_regressor(estimator: Any) -> Any:
    """A fitted LinearSVR with the coefficients of a fitted linear regressor of one output."""
    from sklearn.svm import LinearSVR

    if estimator.coef_.ndim > 1:
        raise ValueError(
            "LinearSVR has one output, but this regressor was fitted to several: convert one of "
            "each column of y"
        )
    model = LinearSVR(
        C=estimator.C, epsilon=estimator.epsilon, fit_intercept=estimator.fit_intercept
    )
    return _published(
        model,
        estimator,
        coef_=np.array(estimator.coef_, dtype=np.float64),
        intercept_=np.array(np.atleast_1d(estimator.intercept_), dtype=np.float64),
        n_iter_=estimator.n_iter_,
    )


def kernel_classifier(estimator: Any) -> Any:
    """A fitted SVC with the coefficients of a fitted kernel classifier of two classes."""
    if len(estimator.classes_) > 2:
        raise ValueError(
            "SVC holds every pair of classes against each other, and has no predictor of "
            f"{len(estimator.classes_)} classes with a kernel: only two classes can be converted"
        )
    coef = _support(estimator)[2]
    order = np.argsort(coef > 0.0, kind="stable")  # of the first class first, as libsvm has them
    n_first = int(np.count_nonzero(coef <= 0.0))
    model = _libsvm(_svc(estimator), estimator, order, [n_first, len(coef) - n_first])
    model.classes_ = estimator.classes_
    # libsvm's first class is the positive one
    model._dual_coef_, model._intercept_ = -model.dual_coef_, -model.intercept_
    model.n_iter_ = np.array([estimator.n_iter_], dtype=np.int32)
    return model


def kernel_regressor(estimator: Any) -> Any:
    """A fitted SVR with the coefficients of a fitted kernel regressor of one output."""
    from sklearn.svm import SVR

    if len(estimator.dual_coef_) > 1:
        raise ValueError(
            "SVR has one output, but this regressor was fitted to several: convert one of each "
            "column of y"
        )
    model = SVR(kernel="precomputed", epsilon=estimator.epsilon).fit(np.eye(2), [0.0, 1.0])
    n = len(_support(estimator)[2])
    model = _libsvm(model, estimator, np.arange(n), [n, n])
    model._dual_coef_, model._intercept_ = model.dual_coef_, model.intercept_
    model.n_iter_ = estimator.n_iter_
    return model


def outlier_detector(estimator: Any) -> Any:
    """A fitted OneClassSVM with the coefficients of a fitted detector."""
    from sklearn.svm import OneClassSVM

    n = len(_support(estimator)[2])
    model = _libsvm(
        OneClassSVM(kernel="precomputed").fit(np.eye(2)), estimator, np.arange(n), [n, n]
    )
    if estimator.nu is not None:
        model.set_params(nu=estimator.nu)
    model._dual_coef_, model._intercept_ = model.dual_coef_, model.intercept_
    model.offset_, model.n_iter_ = -model.intercept_, estimator.n_iter_
    return model


def _libsvm(model: Any, estimator: Any, order: Array, n_support: list[int]) -> Any:
    """A model of libsvm with the kernel, and the support in some order, of a fitted estimator."""
    support, vectors, coef = _support(estimator)
    kernel, values = _kernel(estimator)
    model.set_params(kernel=kernel, **values)
    if "C" in model.get_params():
        model.set_params(C=estimator.C)
    model._gamma, model._sparse = values["gamma"], sp.issparse(vectors) and not callable(kernel)
    support, rows = support[order], vectors if kernel == "precomputed" else vectors[order]
    n_given = estimator.certificate_.weights.shape[0]
    if callable(kernel):  # to which libsvm's models give the examples of their fit
        model._BaseLibSVM__Xfit, n_given = rows, len(coef)
        support, rows = np.arange(len(coef)), np.empty((0, 0))
    signed = coef[order][None]
    return _published(
        model,
        estimator,
        support_=support.astype(np.int32),
        support_vectors_=rows,
        _n_support=np.array(n_support, dtype=np.int32),
        shape_fit_=(n_given, estimator.n_features_in_),
        dual_coef_=sp.csr_matrix(signed) if model._sparse else signed,
        intercept_=np.array(on_host(estimator.intercept_), dtype=np.float64),
    )


def _kernel(estimator: Any) -> tuple[Any, dict[str, float]]:
    """The kernel, by libsvm's name or as a function, and the parameters of a named one."""
    params = estimator.kernel_params or {}
    values = {"gamma": estimator._gamma, "degree": estimator.degree, "coef0": estimator.coef0}
    if callable(estimator.kernel):
        return (partial(estimator.kernel, **params) if params else estimator.kernel), values
    values.update(params)
    kernel = _LIBSVM.get(estimator.kernel)
    if kernel is None or (kernel == "poly" and values["degree"] != int(values["degree"])):
        named = {"metric": estimator.kernel, "filter_params": True}
        return partial(pairwise_kernels, **named, **values), values
    return kernel, values


def _support(estimator: Any) -> tuple[Array, Any, Array]:
    """Support, support vectors and their coefficients; one of coefficient 0 where there is none."""
    if estimator.kernel == "linear":  # the predictor itself is the only vector
        return np.zeros(1, int), np.array(estimator.coef_, dtype=np.float64), np.ones(1)
    support, vectors = on_host(estimator.support_), on_host(estimator.support_vectors_)
    coef = np.asarray(on_host(estimator.dual_coef_), dtype=np.float64)[0]
    if not hasattr(estimator, "n_features_in_"):
        raise ValueError("SVC takes arrays of numbers, not objects")
    if len(coef) == 0:
        n = 0 if estimator.kernel == "precomputed" else 1
        support, vectors = np.zeros(1, int), np.zeros((n, estimator.n_features_in_))
        coef = np.zeros(1)
    if sp.issparse(vectors):
        vectors = sp.csr_matrix(vectors, dtype=np.float64)
        vectors.sort_indices()
        return support, vectors, coef
    return support, np.ascontiguousarray(vectors, dtype=np.float64), coef


def _svc(estimator: Any) -> Any:
    """An SVC with everything that a fit makes; what it has found is to be replaced."""
    from sklearn.svm import SVC

    model = SVC(kernel="precomputed", class_weight=estimator.class_weight)
    return model.fit(np.eye(2), estimator.classes_)


def _published(model: Any, estimator: Any, **fitted: Any) -> Any:
    """The model with fitted attributes, and the features of the estimator."""
    names = ("n_features_in_", "feature_names_in_")
    features = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    vars(model).pop("feature_names_in_", None)
    vars(model).update(features, **fitted)
    return model


def classifier(estimator: Any) -> Any:
    """LinearSVC or SVC with the decision values of a fitted classifier; the method's function."""
    if ProblemSpec.of(estimator).normalize:
        raise ValueError(
            "with normalize=True, decision values are divided by the norms of the examples, which "
            "scikit-learn's classifiers do not do"
        )
    linear = ProblemSpec.of(estimator).kernel == "linear"
    return (linear_classifier if linear else kernel_classifier)(estimator)


def regressor(estimator: Any) -> Any:
    """LinearSVR or SVR with the predictions of a fitted regressor; the method's function."""
    linear = ProblemSpec.of(estimator).kernel == "linear"
    return (linear_regressor if linear else kernel_regressor)(estimator)
