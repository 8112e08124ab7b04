"""scikit-learn's own checks, over all estimators and the toy of the docs."""

import pytest
from helpers.estimators import CHECKED_WITH, ESTIMATORS, draws
from sklearn.utils.estimator_checks import parametrize_with_checks
from toy_algorithm import DualFista

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def expected_failures(estimator):
    """Draws cannot be the same for copies as for weights; test_equalities tests what must be."""
    if not draws(type(estimator)):
        return {}
    reason = "draws are random; equal at convergence (test_integer_weights_are_copies)"
    return {
        f"check_sample_weight_equivalence_on_{form}_data": reason for form in ("dense", "sparse")
    }


INSTANCES = [cls(**CHECKED_WITH.get(cls.__name__, {})) for cls in [*ESTIMATORS, DualFista]]


@parametrize_with_checks(INSTANCES, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
