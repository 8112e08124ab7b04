"""What fits say of themselves is true of this very data, and what they advise helps."""

import re
from dataclasses import replace

import numpy as np
import pytest
from estimators import ESTIMATORS, fit, make, overlapping
from sklearn.datasets import load_iris

from marginsvm import MaxMarginClassifier, MomentumMarginClassifier

each = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)


def versicolor_and_virginica():
    """Two kinds of iris that overlap."""
    X, y = load_iris(return_X_y=True)
    return X[50:], y[50:]


@each
def test_gap_is_a_part_of_the_bound(cls):
    X, y = versicolor_and_virginica()
    clf = fit(make(cls, max_iter=20), X, y)
    below = max(clf.margin_, 0.0)
    assert clf.gap_ == pytest.approx((clf.margin_bound_ - below) / clf.margin_bound_)
    assert clf.gap_ == 1.0 if clf.margin_ <= 0 else 0.0 <= clf.gap_ < 1.0


@pytest.mark.parametrize(
    ("margin", "margin_bound", "gap"),
    [(3.0, 4.0, 0.25), (2.0, 2.0, 0.0), (-1.0, 1e-15, 1.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 0.0)],
)
def test_gap_of_two_bounds(margin, margin_bound, gap):
    any_certificate = MaxMarginClassifier().fit([[0.0], [1.0]], [0, 1]).certificate_
    certificate = replace(any_certificate, margin=margin, margin_bound=margin_bound)
    assert certificate.gap == gap


def test_a_negative_lower_bound_is_not_printed():
    X, y = versicolor_and_virginica()
    clf = fit(MomentumMarginClassifier(max_iter=3), X, y)
    assert clf.margin_ < 0
    shown = str(clf.certificate_)
    assert shown.startswith(f"max_iter: best margin <= {clf.margin_bound_:.6g} (relative gap 1),")


@each
def test_verbose_prints_bounds_that_close(cls, rng, capsys):
    """Both bounds get better only, and so does their gap."""
    X, y = overlapping(rng, n=1000, d=20)
    fit(make(cls, max_iter=300, verbose=1), X, y)
    lines = capsys.readouterr().out.splitlines()
    gaps = [float(re.search(r"relative gap (\S+)\)", line)[1]) for line in lines]
    bounds = [float(re.search(r"best margin <= (\S+)", line)[1]) for line in lines]
    assert len(gaps) > 1
    assert np.all(np.diff(gaps) <= 0)
    assert np.all(np.diff(bounds) <= 0)
    assert max(gaps) <= 1.0
