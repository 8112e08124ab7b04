"""scikit-learn's tests of its support vector machines, with thin aliases in their place."""

import importlib.util
import sys
import types
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import Any

import pytest
import scipy.sparse as sp
import sklearn
import sklearn.svm

from marginsvm import MaxMarginClassifier, MaxMarginOutlierDetector, MaxMarginRegressor
from marginsvm.estimators.parameters import with_parameters

PACKAGE = "sklearn.svm.tests"
# How far weights of two fits may differ: a gap of 1e-10 leaves its root to them.
WEIGHTS = {"rtol": 1e-5, "atol": 1e-8}
MODULES = ("test_svm", "test_sparse")  # test_bounds is of a function of its own


class _AsLibsvm:
    """What libsvm publishes: support vectors of any kernel, and sparse arrays of sparse data."""

    _computing = False

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self._sparse = sp.issparse(X)
        if self.kernel == "linear":
            self.support_vectors_ = sp.csr_array(X)[self.support_]
            if not self._sparse:
                self.support_vectors_ = self.support_vectors_.toarray()
        return self

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        sparse = name in ("coef_", "dual_coef_") and vars(self).get("_sparse", False)
        return sp.csr_array(value) if sparse and not self._computing else value

    @contextmanager
    def _as_ours(self, X):
        """SVC refuses sparse examples after dense ones; ours predicts with dense coefficients."""
        if sp.issparse(X) and not self._sparse:
            raise ValueError("cannot use sparse input in 'SVC' trained on dense data")
        self._computing = True
        try:
            yield
        finally:
            self._computing = False

    def predict(self, X):
        with self._as_ours(X):
            return super().predict(X)


@with_parameters
class SVC(_AsLibsvm, MaxMarginClassifier):
    """SVC's loss and defaults; what only libsvm has (caches, pairs of classes) does nothing."""

    loss: str = field(default="hinge", init=False)
    C: float = 1.0
    kernel: Any = "rbf"
    tol: float = 1e-10  # of objectives, so that weights have five digits: see WEIGHTS
    decision_function_shape: str = "ovr"
    probability: Any = False
    random_state: Any = None

    def decision_function(self, X):
        with self._as_ours(X):
            return super().decision_function(X)


@with_parameters
class SVR(_AsLibsvm, MaxMarginRegressor):
    """SVR's loss and defaults; its caches do nothing."""

    loss: str = field(default="epsilon_insensitive", init=False)
    nu: float | None = field(default=None, init=False)
    kernel: Any = "rbf"
    tol: float = 1e-10  # see SVC


@with_parameters
class NuSVR(_AsLibsvm, MaxMarginRegressor):
    """NuSVR's loss and defaults; its caches do nothing."""

    loss: str = field(default="epsilon_insensitive", init=False)
    epsilon: float = field(default=0.0, init=False)
    nu: float | None = 0.5
    kernel: Any = "rbf"
    tol: float = 1e-10  # see SVC


@with_parameters
class OneClassSVM(_AsLibsvm, MaxMarginOutlierDetector):
    """OneClassSVM's defaults; its caches do nothing."""

    tol: float = 1e-10  # see SVC

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y, sample_weight)

    def decision_function(self, X):
        with self._as_ours(X):
            return super().decision_function(X)


@with_parameters
class LinearSVR(MaxMarginRegressor):
    """LinearSVR's defaults; what only liblinear has (its draws, a dual form) does nothing."""

    epsilon: float = 0.0
    dual: Any = "auto"
    random_state: Any = None


@with_parameters
class LinearSVC(MaxMarginClassifier):
    """LinearSVC's defaults; what only liblinear has (its draws, a dual form) does nothing."""

    C: float = 1.0
    penalty: str = "l2"
    dual: Any = "auto"
    multi_class: str = "ovr"
    random_state: Any = None


ALIASES = {alias.__name__: alias for alias in (SVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR)}


def aliased_tests():
    """Test functions of scikit-learn, by name, which know our aliases in place of its classes.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn was installed without its tests.
    """
    namespace, tests = types.ModuleType("sklearn.svm"), {}
    vars(namespace).update({**vars(sklearn.svm), **ALIASES})
    specs = [importlib.util.find_spec(f"{PACKAGE}.{name}") for name in MODULES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn, "svm", namespace)
        patch.setitem(sys.modules, "sklearn.svm", namespace)
        for spec in specs:
            module = importlib.util.module_from_spec(spec)
            patch.setitem(sys.modules, spec.name, module)
            spec.loader.exec_module(module)
            if spec.name.endswith("test_sparse"):  # which compares two of ours
                module.assert_allclose = partial(module.assert_allclose, **WEIGHTS)
            prefix = spec.name.rpartition(".")[2]
            for name, value in vars(module).items():
                if name.startswith("test_") and callable(value):
                    tests[name.replace("test", prefix, 1)] = _with_lists(value)
    return tests


def _with_lists(test):
    """A test whose parameters come in lists, as pytest will ask for."""
    for i, mark in enumerate(getattr(test, "pytestmark", ())):
        if mark.name == "parametrize":
            names, values = mark.args
            again = pytest.mark.parametrize(names, list(values), **mark.kwargs)
            test.pytestmark[i] = again.mark
    return test
