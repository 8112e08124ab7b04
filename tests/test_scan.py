"""Compiled passes give what products of blocks give, for examples in any form."""

import numpy as np
import pytest
from helpers.examples import GIVEN, examples, rtol_of
from helpers.pairwise import pairwise
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from marginsvm import MomentumMarginClassifier, check_certificate
from marginsvm.data import memory
from marginsvm.data.csr import as_block
from marginsvm.data.memory import parts_to_scan
from marginsvm.kernel_matrix import LinearAdapter, make_rows
from marginsvm.kernel_matrix.responses import logistic, softmax
from marginsvm.kernel_matrix.responses.response import optional

each_form = pytest.mark.parametrize("form", GIVEN)


@pytest.fixture
def scanned(monkeypatch):
    """Let compiled loops pass over small examples, too."""
    monkeypatch.setattr(memory, "_SCANNED_BYTES", 0)
    monkeypatch.setattr(memory, "_PER_FEATURE", 1)


def respond(monkeypatch, least, X, y, mu=0.5, steep=20.0, **params):
    """A best response, where examples of so many bytes are scanned."""
    monkeypatch.setattr(memory, "_SCANNED_BYTES", least)
    rows = make_rows(y, 2, balanced=params["balanced"], weights=params["weights"])
    problem = LinearAdapter(X, rows, params["C"])
    assert bool(problem._rounds._parts) == (least == 0)
    w = problem.combine(problem.respond(problem.zeros()).vector.coef)
    return problem.respond(w * steep, mu)


@pairwise(form=list(GIVEN), balanced=[True, False], weighted=[True, False], C=[np.inf, 0.7])
def test_a_scan_is_two_products(form, balanced, weighted, C, rng, monkeypatch):
    X, y = examples(rng, form, n=1500, d=7), np.append([0, 1], rng.integers(0, 2, 1498))
    weights = rng.random(1500) + 0.1 if weighted else None
    params = {"balanced": balanced, "weights": weights, "C": C}
    one, other = (respond(monkeypatch, least, X, y, **params) for least in (0, 2**40))
    rtol = 100 * rtol_of(X)
    assert_allclose(one.vector.image, other.vector.image, rtol=rtol, atol=rtol)
    assert_allclose(one.vector.coef, other.vector.coef, rtol=rtol, atol=rtol * 1e-3)
    for name in ("min_margin", "log_risk", "offsets"):
        assert_allclose(getattr(one.weights, name), getattr(other.weights, name), rtol, rtol)


def test_exponents_may_rise_by_thousands(rng, monkeypatch, scanned):
    """From one part to the next and within one; the sums so far then count for nothing."""
    X = np.sort(rng.standard_normal((1000, 3)), axis=0)[::-1].copy()
    y = np.arange(1000) % 2
    params = {"balanced": True, "weights": None, "C": np.inf, "mu": 1e-4}
    one, other = (respond(monkeypatch, least, X, y, **params) for least in (0, 2**40))
    assert_allclose(one.vector.image, other.vector.image, rtol=1e-9, atol=1e-12)
    assert np.isfinite(one.weights.log_risk)


@each_form
def test_sums_do_not_depend_on_the_number_of_threads(form, rng, scanned):
    X, y = examples(rng, form, n=700, d=7), np.arange(700) % 2
    problem = LinearAdapter(X, make_rows(y, 2, balanced=True))
    assert len(problem._rounds._parts) > 1
    images = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads):
            images.append(problem.respond(problem.zeros()).vector.image)
    assert_array_equal(images[0], images[1])
    assert_array_equal(images[0], images[2])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "float32"])
def test_fits_by_scans_are_certified_and_resume_bit_for_bit(form, rng, scanned):
    X, y = examples(rng, form, n=400), rng.integers(0, 2, 400)
    whole = MomentumMarginClassifier(C=1.0, max_iter=40, tol=0.0).fit(X, y)
    parts = MomentumMarginClassifier(C=1.0, max_iter=25, tol=0.0, warm_start=True)
    for rounds in (25, 40):
        parts.set_params(max_iter=rounds).fit(X, y)
    assert_array_equal(whole.coef_, parts.coef_)
    assert_array_equal(whole.history_["margin"], parts.history_["margin"])
    assert check_certificate(whole, X, y)


def test_parts_follow_from_the_shape(monkeypatch):
    monkeypatch.setattr(memory, "_SCANNED_BYTES", 1000)
    few = as_block(np.zeros((10, 5)))
    assert parts_to_scan(few) == []  # so little that no loop is compiled for it
    assert parts_to_scan(as_block(np.zeros((400, 10))[::2, ::2])) == []  # not side by side
    assert parts_to_scan(None) == []
    parts = parts_to_scan(as_block(np.zeros((4000, 10))))
    assert [parts[0].start, parts[-1].stop] == [0, 4000]
    assert len(parts) == 8
    wide = as_block(np.zeros((100, 1000)))
    assert len(parts_to_scan(wide)) == 3  # each has sums over all features
    assert len(parts_to_scan(as_block(np.zeros((3, 1000))))) == 1


def test_softmax_is_a_response_that_scans():
    assert optional(softmax, "scan") == softmax.scan
    assert optional(logistic, "scan") is None
