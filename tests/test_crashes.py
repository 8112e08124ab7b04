"""Small problems that have ended in an error that was none of the user's."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import ESTIMATORS, fit, make, quiet
from sklearn.exceptions import ConvergenceWarning

from marginsvm import MaxMarginClassifier, check_certificate, check_separability

# Rows and columns of zeros that are all stored, as a matrix has them whose entries were set to 0.
STORED_ZEROS = sp.csr_array((np.zeros(3), [0, 1, 0], [0, 1, 2, 3]), (3, 2))
ONE_ZERO_ROW = sp.csr_array((np.array([1.0, 2.0, 0.0]), [0, 1, 0], [0, 1, 2, 3]), (3, 2))


@pytest.mark.parametrize("X", [STORED_ZEROS, ONE_ZERO_ROW], ids=["all", "one row"])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_rows_of_stored_zeros_without_an_intercept(cls, X):
    model = fit(make(cls, fit_intercept=False, max_iter=20), X, [0, 1, 1])
    check_certificate(model, X, [0, 1, 1])
    assert model.separable_ is not True


@pytest.mark.parametrize("X", [STORED_ZEROS, ONE_ZERO_ROW], ids=["all", "one row"])
def test_rows_of_stored_zeros_are_not_separated_without_an_intercept(X):
    assert not check_separability(X, [0, 1, 1], fit_intercept=False).separable


FAR = np.array([[1e24, -1e-45, 1e-14], [1e24, 3e-45, 3e-14]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_constant_column_in_huge_units(form):
    with quiet():
        model = MaxMarginClassifier().fit(form(FAR), [0, 1])
    check_certificate(model, form(FAR), [0, 1])
    assert model.margin_ == pytest.approx(1e-14)


# One-hot rows of columns in units of 1e-81 and 1e-124, whose overlap no float64 C can outweigh.
ONE_HOT = np.eye(3)[[2, 2, 2, 0, 1, 1, 0, 0]] * [1e-124, 1e-81, 1e-81]
OF_ONE_HOT = [0, 0, 0, 0, 0, 0, 1, 1]


def test_no_c_is_advised_that_float64_cannot_hold():
    with pytest.warns(ConvergenceWarning, match="C < inf gives a soft margin.$") as caught:
        MaxMarginClassifier(fit_intercept=False).fit(ONE_HOT, OF_ONE_HOT)
    assert "start from" not in str(caught[0].message)
