"""The finite coefficients of a regression without an estimate: limits of a penalty path."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers.limit_cases import estimate
from scipy.optimize import minimize
from scipy.special import logsumexp

from marginsvm import check_separability


def centres():
    """Three centres, the reference without events, and a treatment: 600 patients."""
    rng = np.random.default_rng(1)
    centre, treated = rng.integers(0, 3, 600), rng.integers(0, 2, 600)
    treated = np.where(rng.random(600) < 0.7, centre == 2, treated).astype(int)
    score = np.array([-9.0, -1.5, 1.5])[centre] + 0.2 * treated
    event = (rng.random(600) < 1 / (1 + np.exp(-score))) & (centre > 0)
    return np.column_stack([centre == 1, centre == 2, treated]).astype(float), event.astype(int)


def test_leaving_out_the_infinite_columns_is_another_regression():
    X, y = centres()
    report = check_separability(X, y)
    assert [c.status for c in report.coefficients] == ["-inf", "+inf", "+inf", "finite"]
    rows, columns = report.remainder(X)
    np.testing.assert_array_equal(rows, X[:, :2].any(axis=1))
    assert columns.tolist() == [0, 2]
    outcomes, one = np.column_stack([y, 1 - y]), np.ones((600, 1))
    whole = estimate("binomial", np.hstack([one, X]), outcomes, 1e-9)[-1]
    rest = estimate("binomial", np.hstack([one, X[:, columns]])[rows], outcomes[rows], 0.0)[-1]
    without = estimate("binomial", np.hstack([one, X[:, 2:]])[rows], outcomes[rows], 0.0)[-1]
    np.testing.assert_allclose(rest, whole, atol=1e-5)
    assert abs(without - whole) > 1.0


def penalised(X, y, allowed, ridge):
    """Multinomial coefficients against the first class; only the allowed classes compete."""
    k = allowed.shape[1]

    def loss(flat):
        W = np.concatenate([np.zeros((1, X.shape[1])), flat.reshape(k - 1, -1)])
        F = np.where(allowed, X @ W.T, -np.inf)
        return logsumexp(F, axis=1).sum() - F[np.arange(len(y)), y].sum() + ridge * flat @ flat / 2

    start = np.zeros((k - 1) * X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return minimize(loss, start, options={"gtol": 1e-9, "maxiter": 5000}).x


def test_the_classes_that_are_still_possible():
    """x = 1 is of class 0 or 1, and x = 2 of 1 or 2: no example is predicted perfectly."""
    x, y = np.repeat([1.0, 2.0], [7, 9]), np.array([0] * 3 + [1] * 4 + [1] * 4 + [2] * 5)
    report = check_separability(x[:, None], y, sample_weight=np.arange(16) > 0)
    assert not report.separated.any()
    allowed = report.remainder(x[:, None])
    np.testing.assert_array_equal(allowed[1:7], [[True, True, False]] * 6)
    np.testing.assert_array_equal(allowed[7:], [[False, True, True]] * 9)
    assert not allowed[0].any()


def test_a_multinomial_limit():
    """A mark that only one class has; the effects of another feature stay finite."""
    rng = np.random.default_rng(3)
    X = np.column_stack([np.ones(90), rng.integers(-2, 3, 90), np.arange(90) < 12]).astype(float)
    y = rng.integers(0, 3, 90)
    y[:12] = rng.integers(0, 2, 12)
    report = check_separability(X[:, 1:], y)
    allowed = report.remainder(X[:, 1:])
    np.testing.assert_array_equal(~allowed, np.outer(np.arange(90) < 12, [0, 0, 1]))
    finite = [c.status == "finite" for c in report.coefficients]
    assert finite == [True, True, True, True, True, False]
    every = np.ones((90, 3), bool)
    limit, path = penalised(X, y, allowed, 1e-8), penalised(X, y, every, 1e-5)
    np.testing.assert_allclose(path[:5], limit[:5], atol=1e-3)


def test_what_has_no_remainder():
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    report = check_separability(X, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="X has 3 examples, but the report 4"):
        report.remainder(X[:3])
    with pytest.raises(ValueError, match="no remainder is known"):
        replace(report, kind="undecided").remainder(X)
    rows, columns = check_separability(X, [0, 0, 0, 1]).remainder(X)
    assert not rows.any()
    assert not len(columns)
    twice = np.hstack([X, X])
    rows, columns = check_separability(twice, [0, 1, 0, 0]).remainder(twice)
    assert rows.all()
    assert columns.tolist() == [0]


def test_what_a_complete_separation_advises():
    text = " ".join(repr(check_separability([[0.0], [1.0], [2.0]], [0, 0, 1])).split())
    assert "Report these as infinite, or penalise the fit (Firth: logistf" in text


def test_an_overlap_says_what_else_to_try():
    rng = np.random.default_rng(0)
    text = repr(check_separability(rng.standard_normal((60, 2)), np.arange(60) % 2))
    assert text.startswith("No separation: the examples overlap.")
    assert "scale the features, or raise max_iter" in " ".join(text.split())
    assert "x0" not in text
