"""The exact solver by passes: its operators against formulas, its methods against each other."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.estimators import fit
from numpy.testing import assert_allclose

from marginsvm import MaxMarginClassifier, check_certificate

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
forms = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
classes = pytest.mark.parametrize("k", [2, 4])
either = pytest.mark.parametrize("balanced", [True, False])


def text_like(rng, k, n=300, d=40):
    X = sp.random_array((n, d), density=0.2, rng=rng, format="csr")
    y = np.append(np.arange(k), rng.integers(0, k, n - k))
    return sp.csr_array(X + sp.csr_array((np.ones(n), (np.arange(n), y)), shape=(n, d))), y


@pytest.mark.parametrize("C", [0.3, 30.0, np.inf])
@forms
@classes
def test_blocks_give_what_memory_gives(k, form, C, rng):
    X, y = text_like(rng, k)
    X = X.toarray() if form is np.asarray else X
    known = fit(MaxMarginClassifier(C=C), X, y)
    clf = MaxMarginClassifier(C=C, tol=1e-5)
    clf.fit_blocks([(X[:110], y[:110]), (X[110:], y[110:])])
    assert clf.status_ == known.status_ == "certified"
    assert_allclose(clf.margin_, known.margin_, rtol=2e-5)
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("C", [1.0, np.inf])
@forms
@classes
def test_float32_reaches_the_default_tolerance(k, form, C, rng):
    X, y = text_like(rng, k)
    X = (X.toarray() if form is np.asarray else X).astype(np.float32)
    clf = fit(MaxMarginClassifier(C=C), X, y)
    assert clf.status_ == "certified"
    assert clf.gap_ <= 1e-6
    assert check_certificate(clf, X, y)


@pytest.mark.parametrize("k", [2, 5])
def test_what_cannot_fit_says_so_before_it_starts(k, rng, monkeypatch):
    X, y = rng.standard_normal((60, 7)), np.arange(60) % k
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: 1000)
    with pytest.raises(MemoryError, match="60 examples, 7 features") as error:
        MaxMarginClassifier(C=1.0).fit(X, y)
    assert ("OneVsRestClassifier" in str(error.value)) == (k > 2)
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: None)
    assert MaxMarginClassifier(C=1.0).fit(X, y).status_ == "certified"


@pytest.mark.parametrize("C", [100.0, 1000.0])
def test_clouds_that_a_large_c_separates_take_few_rounds(C, rng):
    """The first step leaves no row with slack, and none of the next may creep back."""
    means, y = 2.0 * rng.standard_normal((20, 40)), np.arange(1200) % 20
    X = means[y] + rng.standard_normal((1200, 40))
    clf = fit(MaxMarginClassifier(C=C), X, y)
    assert clf.status_ == "certified"
    assert clf.n_iter_ < 60
    assert check_certificate(clf, X, y)
