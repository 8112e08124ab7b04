"""scikit-learn's own checks, over all estimators, by discovery, and the toy of the docs."""

import importlib.util
import sys
import types
from contextlib import contextmanager
from dataclasses import field
from fnmatch import fnmatch
from functools import partial
from typing import Any

import pytest
import scipy.sparse as sp
import sklearn
import sklearn.svm
from helpers.battery import WITH_THE_TOY, is_quick
from helpers.checks import checks
from helpers.estimators import CHECKED_ROUNDS, DETECTORS, REGRESSORS, draws
from sklearn.utils import _array_api

from marginsvm import (
    DualLpRegressor,
    KernelPerceptron,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
)
from marginsvm.estimators.parameters import with_parameters

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def as_array_api(monkeypatch):
    """Without it, scikit-learn does not try arrays of other libraries; before 1.9, it need not."""
    if hasattr(_array_api, "move_estimator_to"):
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")


# The only one that plays all of its 10,000 rounds in each of the twenty fits to sparse data: the
# labels are random there, its bound falls as 1 / t, and tol = 1e-6 is out of reach.
ROUNDS = {KernelPerceptron: {"max_iter": CHECKED_ROUNDS}}


def expected_failures(estimator):
    """Draws cannot be the same for copies as for weights; at convergence, results are."""
    if not draws(type(estimator)) or estimator.tol == 0.0:
        return {}
    reason = "draws are random; equal at convergence: test_equalities, and the instance with tol=0"
    return {
        f"check_sample_weight_equivalence_on_{form}_data": reason
        for form in ("dense", "sparse")
    }


EXACT = MaxMarginClassifier
QUICK = [cls for cls in WITH_THE_TOY if is_quick(cls) and cls is not EXACT]
OTHERS = [cls(**ROUNDS.get(cls, {})) for cls in WITH_THE_TOY if not is_quick(cls)]
OTHERS += [
    DualLpRegressor(p="sparse", C=1.0, epsilon=0.1, max_iter=CHECKED_ROUNDS),
    DualLpRegressor(C=1.0, tol=0.0, max_iter=1000),
]


COMPLETELY = [EXACT(), *(cls(max_iter=CHECKED_ROUNDS) for cls in REGRESSORS)]
COMPLETELY += [cls() for cls in DETECTORS]
# Three folds, as scikit-learn gives its own in these checks: some have three examples of a class.
COMPLETELY += [MaxMarginClassifierCV(Cs=2, cv=3, tol=1e-11)]
PARTLY = [cls(max_iter=CHECKED_ROUNDS) for cls in QUICK]
PARTLY += [cls(kernel="linear") for cls in DETECTORS]


@pytest.mark.usefixtures("as_array_api")
@checks(COMPLETELY, PARTLY, expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.usefixtures("as_array_api")
@checks((), OTHERS, expected_failures)
def test_scikit_learn_checks_of_slow_ones(estimator, check):
    check(estimator)


# scikit-learn's tests of its support vector machines, with thin aliases in their place.


PACKAGE = "sklearn.svm.tests"
# How far weights of two fits may differ: a gap of 1e-10 leaves its root to them.
WEIGHTS = {"rtol": 1e-5, "atol": 1e-8}
MODULES = ("test_svm", "test_sparse")  # test_bounds is of a function of its own


class _AsLibsvm:
    """What libsvm publishes: support vectors of any kernel, and sparse arrays of sparse data."""

    _computing = False

    def fit(self, X, y=None, sample_weight=None):
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


class _WithScores(_AsLibsvm):
    """And their decision functions, which a regressor has not."""

    def decision_function(self, X):
        with self._as_ours(X):
            return super().decision_function(X)


@with_parameters
class SVC(_WithScores, MaxMarginClassifier):
    """SVC's loss and defaults; what only libsvm has (caches, pairs of classes) does nothing."""

    loss: str = field(default="hinge", init=False)
    C: float = 1.0
    kernel: Any = "rbf"
    tol: float = 1e-10  # of objectives, so that weights have five digits: see WEIGHTS
    decision_function_shape: str = "ovr"
    probability: Any = False
    random_state: Any = None


@with_parameters
class SVR(_AsLibsvm, MaxMarginRegressor):
    loss: str = field(default="epsilon_insensitive", init=False)
    nu: float | None = field(default=None, init=False)
    kernel: Any = "rbf"
    tol: float = 1e-10  # see SVC


@with_parameters
class NuSVR(SVR):
    epsilon: float = field(default=0.0, init=False)
    nu: float | None = 0.5


@with_parameters
class OneClassSVM(_WithScores, MaxMarginOutlierDetector):
    tol: float = 1e-10  # see SVC


@with_parameters
class LinearSVR(MaxMarginRegressor):
    epsilon: float = 0.0
    dual: Any = "auto"
    random_state: Any = None


@with_parameters
class LinearSVC(MaxMarginClassifier):
    C: float = 1.0
    penalty: str = "l2"
    dual: Any = "auto"
    multi_class: str = "ovr"
    random_state: Any = None


ALIASES = {
    alias.__name__: alias
    for alias in (SVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR)
}


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


if not sklearn.__version__.startswith("1.9."):
    pytest.skip(
        "the table is of the tests of scikit-learn 1.9", allow_module_level=True
    )
try:
    globals().update(aliased_tests())
except ModuleNotFoundError:
    pytest.skip("scikit-learn was installed without its tests", allow_module_level=True)

# 64 cases
globals()["test_sparse_svc"] = pytest.mark.slow(globals()["test_sparse_svc"])

# Why tests are not run, and patterns of their names, between spaces. All others must pass.
REASONS = {
    "They are of NuSVC, which has no alias.": (
        "test_*[*NuSVC* test_svm_svm_classifier_sided_sample_weight[estimator1]"
    ),
    "It sets coef_, which SVC computes and ours holds.": "test_svm_immutable_coef_property",
    "Their kernel has no inner products: the sigmoid one of these examples is refused.": (
        "test_sparse_svc[*-sigmoid-X_train[0123]* test_sparse_sparse_oneclasssvm[*-sigmoid-*"
    ),
    "They are of SVC's classifiers of pairs of classes: their scores, their ties, a count each.": (
        "test_svm_decision_function_shape test_svm_n_iter_libsvm[*SVC* "
        "test_svm_svc_invalid_break_ties_param test_svm_svc_ovr_tie_breaking"
    ),
    "They are of probabilities, for which the user guide has a recipe.": (
        "test_svm_*prob* test_sparse_unsorted_indices "
        "test_sparse_sparse_svc_clone_with_callable_kernel"
    ),
    "They change or compare what libsvm keeps, to the last bit.": (
        "test_svm_libsvm_parameters test_svm_precomputed test_svm_tweak_params "
        "test_svm_svc_raises_error_internal_representation test_sparse_sparse_realdata*"
    ),
    "They compare weights of two fits in seven digits, which the default tol does not ask for.": (
        "test_svm_svm_with_infinite_C[*SVR* test_sparse_svc[*-linear-X_train2* "
        "test_sparse_svc[*-poly-X_train[23]* test_sparse_svc[*-rbf-X_train2* "
        "test_sparse_sparse_oneclasssvm[*-poly-X_train2* "
        "test_sparse_sparse_oneclasssvm[*-rbf-X_train[02]*"
    ),
    "They predict an example for which the scores of two classes are equal.": (
        "test_sparse_svc[*-linear-X_train1*"
    ),
    "They compare how examples that are equal share their weight, which is free.": (
        "test_sparse_sparse_oneclasssvm[*-rbf-X_train3*"
    ),
    "They give negative weights, which are refused here, or assert SVC's words for it.": (
        "test_svm_negative_sample_weights_mask_all_samples "
        "test_svm_negative_weights_svc_leave_just_one_label "
        "test_svm_negative_weight*[partial-mask-label-1*"
    ),
    "They assert SVC's or LinearSVC's words for what is said here in others.": (
        "test_svm_svc_nonfinite_params test_svm_libsvm_convergence_warnings "
        "test_svm_linear_svm_convergence_warnings test_sparse_timeout"
    ),
    "They are of liblinear's choices: an l1 norm, a dual form, one class against the others.": (
        "test_svm_linearsvc_parameters[*l1* test_svm_linearsvc_parameters[False-l2-hinge] "
        "test_svm_linearsvc_crammer_singer test_svm_dual_auto*"
    ),
    "Its kernel of strings is right where both lists are the same only; test_kernels.py has one.": (
        "test_svm_custom_kernel_not_array_input"
    ),
    "Its kernel is refused where SVR is surprised: in fit.": "test_svm_svr_errors",
    "They are of liblinear's penalised intercept.": (
        "test_svm_dense_liblinear_intercept_handling "
        "test_sparse_sparse_liblinear_intercept_handling"
    ),
}
DOES_NOT_APPLY = {reason: patterns.split() for reason, patterns in REASONS.items()}


@pytest.fixture
def global_random_seed():
    return 42


def test_the_table_names_tests():
    """Each pattern is of a test that there is."""
    patterns = [pattern for names in DOES_NOT_APPLY.values() for pattern in names]
    known = [name for name in globals() if name.startswith("test_")]
    for pattern in patterns:
        assert any(fnmatch(name, pattern.partition("[")[0]) for name in known), pattern
