"""At the edges of what numbers and arguments may be: it works, or the message says what helps."""

import numpy as np
import pytest
from helpers.estimators import certified, confirmed, fit, separable
from sklearn.svm import SVC, SVR, OneClassSVM

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    check_certificate,
    check_separability,
    check_separability_proof,
)


def test_one_number_is_the_weight_of_all_examples(rng):
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    one = MaxMarginClassifierCV(cv=2).fit(X, y, sample_weight=2.0)
    all_ = MaxMarginClassifierCV(cv=2).fit(X, y, sample_weight=np.full(40, 2.0))
    np.testing.assert_array_equal(one.scores_, all_.scores_)
    assert one.C_ == all_.C_


def test_models_of_any_cost_and_share_convert(rng):
    X, y = separable(rng)
    detector = MaxMarginOutlierDetector(nu=1.0).fit(X)
    other = detector.to_sklearn()
    assert isinstance(other, OneClassSVM)
    assert other.nu == 1.0
    np.testing.assert_allclose(
        other.decision_function(X), detector.decision_function(X), atol=1e-9
    )
    for C in (1e-12, 1e12):
        clf = fit(MaxMarginClassifier(C=C, kernel="rbf"), X, y).to_sklearn()
        reg = fit(MaxMarginRegressor(C=C, kernel="rbf"), X, y).to_sklearn()
        assert isinstance(clf, SVC)
        assert isinstance(reg, SVR)
        assert clf.C == reg.C == C


@pytest.mark.parametrize("extreme", [1e160, 5e-324])
@pytest.mark.parametrize(
    "estimator", [MaxMarginOutlierDetector(), MomentumMarginClassifier(nu=0.3)]
)
def test_weights_whose_squares_overflow_are_refused(estimator, extreme, rng):
    X, y = separable(rng, n=12)
    weight = np.ones(12)
    weight[3] = extreme
    with pytest.raises(ValueError, match="scale them"):
        estimator.fit(X, y, sample_weight=weight)


def test_refused_weights_are_fitted_once_they_are_scaled(rng):
    """As the refusal advises; only their ratios matter with nu."""
    X, _ = separable(rng, n=12)
    weight = np.full(12, 1e-80)
    weight[3] = 1e80
    certified(MaxMarginOutlierDetector(), X, None, weight)


def test_a_cost_that_overflows_is_refused(rng):
    X, y = separable(rng)
    confirmed(fit(MaxMarginClassifier(C=1e300), X, y), X, y)
    with pytest.raises(ValueError, match="C=inf for a hard margin"):
        MaxMarginClassifier(C=1e300).fit(1e15 * X, y)


@pytest.mark.parametrize("kind", [str, object])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_numbers_in_other_forms_are_checked_as_they_were_fitted(kind, kernel, rng):
    X, y = separable(rng)
    X = X.astype(kind)
    clf = MaxMarginClassifier(C=1.0, kernel=kernel).fit(X, y)
    assert check_certificate(clf, X, y)


def test_a_kernel_of_zeros_is_one():
    """As examples of zeros are."""
    y = np.arange(12) % 2
    for C in (1.0, np.inf):
        one = fit(MaxMarginClassifier(C=C), np.zeros((12, 2)), y)
        other = fit(
            MaxMarginClassifier(C=C, kernel="precomputed"), np.zeros((12, 12)), y
        )
        assert one.status_ == other.status_
        assert other.margin_bound_ == pytest.approx(one.margin_bound_, abs=1e-9)
        confirmed(other, np.zeros((12, 12)), y)


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_bounds_that_are_not_there_are_not_printed(C, capsys, rng):
    X, y = separable(rng, n=300, d=20, margin=0.05)
    MaxMarginClassifier(C=C, loss="hinge", kernel="rbf", verbose=1).fit(X, y)
    printed = capsys.readouterr().out
    assert "margin " in printed
    assert "e+1" not in printed
    assert "inf" not in printed


def test_names_are_printed_on_one_line(rng):
    X = rng.standard_normal((20, 2))
    report = check_separability(
        X, X[:, 0] > 0, feature_names=["a\nb\x1b[31m", "\u03b2"]
    )
    for text in (report.sentence, repr(report)):
        assert "a\\nb\\x1b[31m" in text
        assert "\u03b2" in text
        assert "\x1b" not in text
    assert report.coefficients[1].name == "a\nb\x1b[31m"


def test_without_columns_nothing_separates():
    X, y = np.zeros((10, 0)), np.arange(10) % 2
    report = check_separability(X, y)
    assert (report.kind, report.estimate_exists) == ("overlap", True)
    assert check_separability_proof(report, X, y, exact=True)
    report = check_separability(X, y, fit_intercept=False)
    assert (report.kind, report.estimate_exists) == ("overlap", True)
