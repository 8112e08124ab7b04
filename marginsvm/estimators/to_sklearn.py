"""Fitted estimators of scikit-learn with the same decision values, for ONNX, SHAP and others.

A libsvm model, private attributes included, is made by a fit to two examples; its solution is then
replaced.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from marginsvm._typing import Array
from marginsvm.problem.matrix import dense, on_host
from marginsvm.problem.programs import ProblemSpec

# What libsvm computes by itself.
LIBSVM = {"linear": "linear", "poly": "poly", "polynomial": "poly", "rbf": "rbf"}
LIBSVM |= {"sigmoid": "sigmoid", "precomputed": "precomputed"}


def classifier(estimator: Any) -> Any:
    """LinearSVC or SVC with the decision values of a fitted classifier."""
    from sklearn.svm import SVC, LinearSVC  # takes a tenth of a second

    spec = ProblemSpec.of(estimator)
    n_classes = len(estimator.classes_)
    if spec.normalize:
        raise ValueError(
            "with normalize=True, decision values are divided by the norms of the examples, which "
            "scikit-learn's classifiers do not do"
        )
    if spec.kernel == "linear":
        model = LinearSVC(C=spec.C, loss=spec.loss, fit_intercept=spec.fit_intercept)
        model.set_params(class_weight=spec.class_weight)
        return _linear(model, estimator, classes_=estimator.classes_)
    if n_classes > 2:
        raise ValueError(
            "SVC has a predictor for each pair of classes (one-vs-one), and none of "
            f"{n_classes} classes with a kernel: only two classes can be converted"
        )
    model = SVC(kernel="precomputed").fit(np.eye(2), estimator.classes_)  # for any C
    model.set_params(C=spec.C, class_weight=spec.class_weight)
    return _libsvm(model, estimator, spec)


def regressor(estimator: Any) -> Any:
    """LinearSVR or SVR with the predictions of a fitted regressor of one output."""
    from sklearn.svm import SVR, LinearSVR

    spec = ProblemSpec.of(estimator)
    linear = spec.kernel == "linear"
    if estimator.coef_.ndim > 1 if linear else len(estimator.dual_coef_) > 1:
        raise ValueError(
            f"{'LinearSVR' if linear else 'SVR'} has one output, but this regressor was fitted to "
            "several: convert one of each column of y"
        )
    if linear:
        model = LinearSVR(
            C=spec.C, epsilon=spec.epsilon, fit_intercept=spec.fit_intercept
        )
        return _linear(model, estimator)
    model = SVR(kernel="precomputed").fit(np.eye(2), [0.0, 1.0])  # for any C
    model.set_params(C=spec.C, epsilon=spec.epsilon)
    return _libsvm(model, estimator, spec)


def outlier_detector(estimator: Any) -> Any:
    """OneClassSVM with the decision values of a fitted detector."""
    from sklearn.svm import OneClassSVM

    spec = ProblemSpec.of(estimator)
    model = OneClassSVM(kernel="precomputed").fit(np.eye(2))  # for any nu
    model.set_params(nu=0.5 if spec.nu is None else spec.nu)
    model = _libsvm(model, estimator, spec)
    model.offset_ = -model.intercept_
    return model


def _linear(model: Any, estimator: Any, **more: Any) -> Any:
    """A model of liblinear with the coefficients of a fitted estimator."""
    coef = on_host(estimator.coef_)
    more["coef_"] = dense(coef).astype(np.float64)
    more["intercept_"] = np.array(
        np.atleast_1d(on_host(estimator.intercept_)), dtype=np.float64
    )
    return _published(model, estimator, n_iter_=estimator.n_iter_, **more)


def _libsvm(model: Any, estimator: Any, spec: ProblemSpec) -> Any:
    """A fitted model of libsvm with the kernel and the support of a fitted estimator."""
    kernel = _kernel(estimator, spec)
    support, vectors, coef = _support(estimator, spec)
    values = {"gamma": estimator._gamma, "degree": spec.degree, "coef0": spec.coef0}
    values |= {} if callable(spec.kernel) else spec.kernel_params or {}
    model.set_params(kernel=kernel, **values)
    classes = hasattr(model, "classes_")
    order = np.arange(len(coef))
    n_support = [len(coef)] * 2
    if classes:  # those of the first class come first, and it is the positive one
        order = np.argsort(coef > 0.0, kind="stable")
        n_first = int(np.sum(coef <= 0.0))
        n_support = [n_first, len(coef) - n_first]
    model._gamma = values["gamma"]
    model._sparse = sp.issparse(vectors) and not callable(kernel)
    support = support[order]
    rows = vectors if kernel == "precomputed" else vectors[order]
    n_given = estimator.certificate_.weights.shape[0]
    if callable(kernel):  # to which libsvm's models give the examples of their fit
        model._BaseLibSVM__Xfit = rows
        n_given = len(coef)
        support = np.arange(len(coef))
        rows = np.empty((0, 0))
    dual_coef = coef[order][None]
    sign = -1.0 if classes else 1.0
    dual_coef = sp.csr_matrix(dual_coef) if model._sparse else dual_coef
    intercept = np.array(on_host(estimator.intercept_), dtype=np.float64)
    n_iter = estimator.n_iter_
    return _published(
        model,
        estimator,
        support_=support.astype(np.int32),
        support_vectors_=rows,
        _n_support=np.array(n_support, dtype=np.int32),
        shape_fit_=(n_given, estimator.n_features_in_),
        dual_coef_=dual_coef,
        intercept_=intercept,
        _dual_coef_=sign * dual_coef,
        _intercept_=sign * intercept,
        n_iter_=np.array([n_iter], dtype=np.int32) if classes else n_iter,
    )


def _kernel(estimator: Any, spec: ProblemSpec) -> Any:
    """The kernel, by libsvm's name or as a function."""
    params = spec.kernel_params or {}
    if callable(spec.kernel):
        return partial(spec.kernel, **params) if params else spec.kernel
    values = {
        "gamma": estimator._gamma,
        "degree": spec.degree,
        "coef0": spec.coef0,
        **params,
    }
    kernel = LIBSVM.get(spec.kernel)
    if kernel is None or (
        kernel == "poly" and values["degree"] != int(values["degree"])
    ):
        return partial(
            pairwise_kernels, metric=spec.kernel, filter_params=True, **values
        )
    return kernel


def _support(estimator: Any, spec: ProblemSpec) -> tuple[Array, Any, Array]:
    """Support, support vectors and their coefficients; one of coefficient 0 where there is none."""
    if spec.kernel == "linear":  # the predictor itself is the only vector
        return np.zeros(1, int), np.array(estimator.coef_, dtype=np.float64), np.ones(1)
    support = on_host(estimator.support_)
    vectors = on_host(estimator.support_vectors_)
    coef = np.asarray(on_host(estimator.dual_coef_), dtype=np.float64)[0]
    if not hasattr(estimator, "n_features_in_"):
        raise ValueError("SVC takes arrays of numbers, not objects")
    if len(coef) == 0:
        n = 0 if spec.kernel == "precomputed" else 1
        support = np.zeros(1, int)
        vectors = np.zeros((n, estimator.n_features_in_))
        coef = np.zeros(1)
    if sp.issparse(vectors):
        vectors = sp.csr_matrix(vectors, dtype=np.float64)
        vectors.sort_indices()
        return support, vectors, coef
    return support, np.ascontiguousarray(vectors, dtype=np.float64), coef


def _published(model: Any, estimator: Any, **fitted: Any) -> Any:
    """The model with fitted attributes, and the features of the estimator."""
    names = ("n_features_in_", "feature_names_in_")
    features = {
        name: getattr(estimator, name) for name in names if hasattr(estimator, name)
    }
    vars(model).pop("feature_names_in_", None)
    vars(model).update(features, **fitted)
    return model
