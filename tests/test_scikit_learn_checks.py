"""scikit-learn's own checks, over all estimators, by discovery, and the toy of the docs."""

from fnmatch import fnmatch

import pytest
import sklearn
from helpers.battery import WITH_THE_TOY, is_quick
from helpers.checks import checks
from helpers.estimators import CHECKED_ROUNDS, DETECTORS, REGRESSORS, draws
from helpers.sklearn_svm import aliased_tests

from marginsvm import KernelPerceptron, MaxMarginClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# The only one that plays all of its 10,000 rounds in each of the twenty fits to sparse data: the
# labels are random there, its bound falls as 1 / t, and tol = 1e-6 is out of reach.
ROUNDS = {KernelPerceptron: {"max_iter": CHECKED_ROUNDS}}


def expected_failures(estimator):
    """Draws cannot be the same for copies as for weights; test_equalities tests what must be."""
    if not draws(type(estimator)):
        return {}
    reason = "draws are random; equal at convergence (test_integer_weights_are_copies)"
    return {
        f"check_sample_weight_equivalence_on_{form}_data": reason for form in ("dense", "sparse")
    }


EXACT = MaxMarginClassifier
QUICK = [cls for cls in WITH_THE_TOY if is_quick(cls) and cls is not EXACT]
OTHERS = [cls for cls in WITH_THE_TOY if not is_quick(cls)]


@checks([EXACT()], [cls(max_iter=CHECKED_ROUNDS) for cls in QUICK], expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@checks([cls(max_iter=CHECKED_ROUNDS) for cls in REGRESSORS], (), expected_failures)
def test_scikit_learn_checks_of_regressors(estimator, check):
    check(estimator)


@checks([cls() for cls in DETECTORS], [cls(kernel="linear") for cls in DETECTORS])
def test_scikit_learn_checks_of_detectors(estimator, check):
    check(estimator)


@pytest.mark.slow
@checks((), [cls(**ROUNDS.get(cls, {})) for cls in OTHERS], expected_failures)
def test_scikit_learn_checks_of_slow_ones(estimator, check):
    check(estimator)


# scikit-learn's own tests of its support vector machines, run against ours.


if not sklearn.__version__.startswith("1.9."):
    pytest.skip("the table is of the tests of scikit-learn 1.9", allow_module_level=True)
try:
    globals().update(aliased_tests())
except ModuleNotFoundError:
    pytest.skip("scikit-learn was installed without its tests", allow_module_level=True)

# 64 cases, of half a second each
globals()["test_sparse_svc"] = pytest.mark.slow(globals()["test_sparse_svc"])

# Why tests are not run, and patterns of their names. All others must pass.
DOES_NOT_APPLY = {
    "They are of NuSVC, which has no alias.": [
        "test_*[*NuSVC*",
        "test_svm_svm_classifier_sided_sample_weight[estimator1]",
    ],
    "It sets coef_, which SVC computes and ours holds.": ["test_svm_immutable_coef_property"],
    "Their kernel has no inner products: the sigmoid one of these examples is refused.": [
        "test_sparse_svc[*-sigmoid-X_train[0123]*",
        "test_sparse_sparse_oneclasssvm[*-sigmoid-*",
    ],
    "They are of SVC's classifiers of pairs of classes: their scores, their ties, a count each.": [
        "test_svm_decision_function_shape",
        "test_svm_svc_invalid_break_ties_param",
        "test_svm_svc_ovr_tie_breaking",
        "test_svm_n_iter_libsvm[*SVC*",
    ],
    "They are of probabilities, for which the user guide has a recipe.": [
        "test_svm_*prob*",
        "test_sparse_unsorted_indices",
        "test_sparse_sparse_svc_clone_with_callable_kernel",
    ],
    "They change or compare what libsvm keeps, to the last bit.": [
        "test_svm_libsvm_parameters",
        "test_svm_precomputed",
        "test_svm_tweak_params",
        "test_svm_svc_raises_error_internal_representation",
        "test_sparse_sparse_realdata*",
    ],
    "They compare weights of two fits in seven digits, which the default tol does not ask for.": [
        "test_svm_svm_with_infinite_C[*SVR*",
        "test_sparse_svc[*-linear-X_train2*",
        "test_sparse_svc[*-poly-X_train[23]*",
        "test_sparse_svc[*-rbf-X_train2*",
        "test_sparse_sparse_oneclasssvm[*-poly-X_train2*",
        "test_sparse_sparse_oneclasssvm[*-rbf-X_train[02]*",
    ],
    "They compare how examples that are equal share their weight, which is free.": [
        "test_sparse_sparse_oneclasssvm[*-rbf-X_train3*"
    ],
    "They give negative weights, which are refused here, or assert SVC's words for it.": [
        "test_svm_negative_sample_weights_mask_all_samples",
        "test_svm_negative_weights_svc_leave_just_one_label",
        "test_svm_negative_weight*[partial-mask-label-1*",
    ],
    "They assert SVC's or LinearSVC's words for what is said here in others.": [
        "test_svm_svc_nonfinite_params",
        "test_svm_libsvm_convergence_warnings",
        "test_svm_linear_svm_convergence_warnings",
        "test_sparse_timeout",
    ],
    "They are of liblinear's choices: an l1 norm, a dual form, one class against the others.": [
        "test_svm_linearsvc_parameters[*l1*",
        "test_svm_linearsvc_parameters[False-l2-hinge]",
        "test_svm_linearsvc_crammer_singer",
        "test_svm_dual_auto*",
    ],
    "Its kernel of strings is right where both lists are the same only; test_kernels.py has one.": [
        "test_svm_custom_kernel_not_array_input"
    ],
    "Its kernel is refused where SVR is surprised: in fit.": ["test_svm_svr_errors"],
    "They are of liblinear's penalised intercept.": [
        "test_svm_dense_liblinear_intercept_handling",
        "test_sparse_sparse_liblinear_intercept_handling",
    ],
}


@pytest.fixture
def global_random_seed():
    return 42


def test_the_table_names_tests():
    """Each pattern is of a test that there is."""
    patterns = [pattern for names in DOES_NOT_APPLY.values() for pattern in names]
    known = [name for name in globals() if name.startswith("test_")]
    for pattern in patterns:
        assert any(fnmatch(name, pattern.partition("[")[0]) for name in known), pattern
