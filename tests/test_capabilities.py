"""What only some problems can do, and the counter of what all of them did."""

import numpy as np
import pytest
import scipy.sparse as sp

from marginsvm.certify.certifiable import WrittenOut, written_out
from marginsvm.data.work import Work
from marginsvm.kernel_matrix import GramAdapter, LinearAdapter, make_rows
from marginsvm.kernel_matrix import capabilities as can

PROTOCOLS = [
    WrittenOut,
    can.HasColumns,
    can.HasLayout,
    can.HasCurvature,
    can.HasTwoClasses,
    can.CsrExamples,
]


def problems(k=2, C=np.inf):
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((12, 3)), np.arange(12) % k
    rows = make_rows(codes, k, balanced=True)
    yield LinearAdapter(X, rows, C)
    yield LinearAdapter(sp.csr_array(X), rows, C)
    yield GramAdapter(None, X @ X.T, rows, C)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_adapters_name_the_protocols_that_they_implement(protocol):
    """So that a look at the bases, which is quick, says what isinstance would."""
    for problem in problems():
        assert isinstance(problem, protocol) == (protocol in type(problem).__mro__)


def test_capabilities_that_are_lacking():
    dense, sparse, gram = problems()
    assert can.csr_examples(dense) is can.csr_examples(gram) is None
    assert sp.issparse(can.csr_examples(sparse))
    assert written_out(gram) is None
    with pytest.raises(TypeError, match="GramAdapter have no features"):
        can.curvature(gram, np.ones(12))


def test_second_moments_and_examples_that_are_written_out():
    problem = next(problems())
    weight = np.linspace(-1.0, 1.0, 12)
    x = np.column_stack([problem.examples(np.arange(12)), np.ones(12)])
    np.testing.assert_allclose(
        can.curvature(problem, weight).dense(), x.T @ (weight[:, None] * x), atol=1e-14
    )
    ids = problem.rows.flat_indices()
    points = written_out(problem).points(ids)
    np.testing.assert_allclose(points @ points.T, problem.gram(ids, ids), atol=1e-14)
    assert np.all(np.abs(x[:, :-1]) <= written_out(problem).spread() * (1 + 1e-15))


def test_laps_do_not_depend_on_what_was_counted_before():
    fresh, used = Work(), Work()
    used.add_pass(1e9)
    used.lap()
    for work in (fresh, used):
        for _ in range(7):
            work.add_pass(0.1)
    laps = [work.lap() for work in (fresh, used)]
    assert laps[0] == laps[1] == pytest.approx(0.7)
    assert fresh.passes == laps[0]
    assert fresh.lap() == 0.0


def test_several_products_may_count_as_one_pass():
    work = Work()
    with work.as_one_pass():
        work.add_pass()
        work.add_pass()
    work.add_kernel_evaluations(3)
    assert (work.passes, work.kernel_evaluations) == (1.0, 3)
