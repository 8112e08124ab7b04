"""Margins in p-norms of the predictor against a general solver, which shares no code."""

import numpy as np
import pytest
from helpers.estimators import fit, separable
from helpers.hard import lopsided
from helpers.oracle import best_margin, best_margin_in_norm

from marginsvm import AcceleratedPerceptron, OptimisticPerceptron, check_certificate


@pytest.mark.parametrize("cls", [AcceleratedPerceptron, OptimisticPerceptron])
@pytest.mark.parametrize("p", [1.1, 1.5, 1.9])
@pytest.mark.parametrize("kind", [separable, lopsided])
def test_bounds_hold_in_p_norms(kind, p, cls, rng):
    X, y = kind(rng, n=20)
    best = best_margin_in_norm(X, y, p)
    clf = fit(cls(p=p, tol=0.05), X, y)
    assert clf.margin_ <= best * (1 + 1e-4)
    assert best <= clf.margin_bound_ * (1 + 1e-4)
    assert check_certificate(clf, X, y)


def test_the_oracle_by_hand(rng):
    """Two points: their distance in the dual norm, halved. And margins grow with the norm."""
    points = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert best_margin_in_norm(points, np.array([0, 1]), 1) == pytest.approx(2.0)
    assert best_margin_in_norm(points, np.array([0, 1]), 2) == pytest.approx(2.5)
    X, y = separable(rng, n=30)
    margins = [best_margin_in_norm(X, y, p) for p in (1.0, 1.5, 2.0)]
    assert margins == sorted(margins)
    assert margins[2] == pytest.approx(best_margin(X, y), rel=1e-5)
