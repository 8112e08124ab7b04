"""Loops that numba compiles: when, where the compiled code is kept, and what models hold."""

import os
import pickle
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from helpers.estimators import fit, separable
from helpers.fresh import python

import marginsvm
from marginsvm import DualLpPerceptron, LpPerceptron, PrimalMirrorDescent
from marginsvm.papers import coordinates as loops
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows


def run(code, **environment):
    return python("-c", dedent(code), **environment).split()


@pytest.mark.slow
def test_numba_comes_with_the_first_fit_that_needs_it():
    code = """
        import sys, numpy as np, marginsvm
        X, y = np.eye(4), [0, 1, 0, 1]
        marginsvm.MomentumMarginClassifier().fit(X, y)
        print("numba" in sys.modules)
        marginsvm.DualLpPerceptron().fit(X, y)
        print("numba" in sys.modules)
    """
    assert run(code) == ["False", "True"]


WITHOUT_NUMBA = """
    import warnings, numpy as np, scipy.sparse as sp
    from helpers.estimators import ESTIMATORS, make, separable
    from marginsvm import DualLpPerceptron, DualLpRegressor, MaxMarginClassifier, check_certificate
    from marginsvm._compiling import NotCompiledWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in (2, 3):
            X, y = separable(np.random.default_rng(0), n=30, k=k)
            for cls in ESTIMATORS:
                clf = make(cls, max_iter=20, C=1.0).fit(sp.csr_array(X), y)
                assert check_certificate(clf, sp.csr_array(X), y), cls
            many = sp.csr_array(np.tile(X, (20, 1)))
            for loss in ("squared_hinge", "hinge"):
                clf = MaxMarginClassifier(C=1.0, loss=loss).fit(many, np.tile(y, 20))
                assert clf.status_ == "certified", (k, loss)
        DualLpPerceptron(p=1.5, max_iter=5).fit(X, y)
        DualLpRegressor(max_iter=5).fit(X, X[:, 0])
    said = [str(w.message) for w in caught if issubclass(w.category, NotCompiledWarning)]
    print(len(said), "pip install numba" in said[0])
"""


@pytest.mark.slow
def test_all_estimators_fit_without_numba(tmp_path):
    """Also where it cannot be imported by this Python; they say so once, and are slower."""
    (tmp_path / "numba.py").write_text("raise ImportError('not for this version of Python')")
    package, tests = Path(marginsvm.__file__).parents[1], Path(__file__).parent
    path = os.pathsep.join(map(str, (tmp_path, package, tests, tests.parent / "docs")))
    assert run(WITHOUT_NUMBA, PYTHONPATH=path) == ["1", "True"]


@pytest.mark.slow
def test_processes_share_the_cache(tmp_path):
    code = """
        import warnings; warnings.simplefilter("ignore")
        import numpy as np
        from sklearn.model_selection import GridSearchCV
        from marginsvm import DualLpPerceptron
        X, y = np.random.default_rng(0).standard_normal((40, 4)), np.arange(40) % 2
        clf = DualLpPerceptron(C=1.0, max_iter=5)
        GridSearchCV(clf, {"p": [2.0, 1.5]}, n_jobs=2, cv=2).fit(X, y)
        for p in (2.0, 1.5):
            clf.set_params(p=p).fit(X, y)
        from marginsvm.papers import coordinates as loops
        print(sum(loops._accelerate.stats.cache_hits.values()))
        print(sum(loops._accelerate.stats.cache_misses.values()))
    """
    for _ in range(2):  # this process never compiles: it finds what the workers left
        assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == ["1", "0"]
    assert len(list(tmp_path.rglob("*_accelerate*.nbc"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DualLpPerceptron", "MaxMarginClassifier"])
@pytest.mark.parametrize("writable_home", [True, False])
def test_a_read_only_installation(writable_home, name, tmp_path):
    """numba falls back to the user's cache; where that cannot be either, there is none."""
    refusing = ["InTreeCacheLocator"] + ([] if writable_home else ["UserWideCacheLocator"])
    code = f"""
        import numba.core.caching as caching
        def refuse(self): raise OSError("read-only")
        for name in {refusing}: getattr(caching, name).ensure_cache_path = refuse
        import numpy as np, scipy.sparse as sp
        from marginsvm import {name}
        n = 600 if "{name}" == "MaxMarginClassifier" else 2  # few rows take no compiled loop
        X, y = sp.eye_array(n, format="csr"), np.arange(n) % 2
        print({name}().fit(X, y).status_)
    """
    assert run(code, HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path)) == ["certified"]
    assert bool(list(tmp_path.rglob("*.nbc"))) == writable_home


def test_private_option_of_numba_still_means_the_same():
    """No reference counts in the loops: a row of text would take four times as long."""
    pytest.importorskip("numba")
    assert loops._accelerate.targetoptions["_nrt"] is False
    data = LinearAdapter(np.eye(2), make_rows(np.arange(2), 2, balanced=False))
    loops.ascend(data, np.arange(2), data.zeros())  # compiles, so numba knows the option


@pytest.mark.parametrize("cls", [DualLpPerceptron, LpPerceptron, PrimalMirrorDescent])
def test_models_hold_plain_arrays(cls, rng):
    X, y = separable(rng)
    clf = fit(cls(warm_start=True, random_state=0, max_iter=20), X, y)
    assert b"numba" not in pickle.dumps(clf)
    state = vars(clf._progress.state)
    for value in [*vars(clf).values(), *state.values()]:
        assert not isinstance(value, np.ndarray) or type(value) is np.ndarray
