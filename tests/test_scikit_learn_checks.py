"""scikit-learn's own checks, over all estimators and the toy of the docs."""

import pytest
from helpers.battery import WITH_THE_TOY, is_quick
from helpers.estimators import CHECKED_ROUNDS, draws
from sklearn.utils.estimator_checks import parametrize_with_checks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def expected_failures(estimator):
    """Draws cannot be the same for copies as for weights; test_equalities tests what must be."""
    if not draws(type(estimator)):
        return {}
    reason = "draws are random; equal at convergence (test_integer_weights_are_copies)"
    return {
        f"check_sample_weight_equivalence_on_{form}_data": reason for form in ("dense", "sparse")
    }


def checks(classes):
    instances = [cls(max_iter=CHECKED_ROUNDS) for cls in classes]
    return parametrize_with_checks(instances, expected_failed_checks=expected_failures)


@checks([cls for cls in WITH_THE_TOY if is_quick(cls)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@checks([cls for cls in WITH_THE_TOY if not is_quick(cls)])
def test_scikit_learn_checks_of_the_others(estimator, check):
    check(estimator)
