"""scikit-learn's own checks, over all estimators, by discovery, and the toy of the docs."""

import pytest
from helpers.battery import WITH_THE_TOY, is_quick
from helpers.checks import checks
from helpers.estimators import CHECKED_ROUNDS, DETECTORS, REGRESSORS, draws

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


@checks(
    [EXACT()],
    [cls(max_iter=CHECKED_ROUNDS) for cls in QUICK],
    expected_failures,
)
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
