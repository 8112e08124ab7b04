"""scikit-learn's own checks, over all estimators."""

import pytest
from estimators import ESTIMATORS
from sklearn.utils.estimator_checks import parametrize_with_checks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks([cls() for cls in ESTIMATORS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
