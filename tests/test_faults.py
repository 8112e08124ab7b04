"""What may happen to a process while it fits: interrupts, threads, forks; and compiled loops.

MARGINSVM_FAULTS multiplies the number of faults, for a long run.
"""

import os
import pickle
import signal
import sys
import warnings
from pathlib import Path
from textwrap import dedent

import joblib
import numpy as np
import pytest
import sklearn.utils.parallel
from helpers.battery import each
from helpers.estimators import (
    ENDLESS,
    AtRound,
    bits,
    everything,
    fit,
    make,
    overlapping,
    quiet,
    separable,
)
from helpers.fresh import python
from sklearn.svm import SVC

import marginsvm
from marginsvm import (
    BatchPerceptron,
    DualLpPerceptron,
    DualLpRegressor,
    LpPerceptron,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MomentumMarginClassifier,
    PrimalMirrorDescent,
    audit,
    check_certificate,
    fit_many,
    margin_path,
)
from marginsvm.papers import coordinates as loops
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows
from marginsvm.testing import check_algorithm

HERE = Path(__file__).parent
MANY = int(os.environ.get("MARGINSVM_FAULTS", "1"))


def run(script, *args):
    """The last word that one of the programs in ``helpers`` prints."""
    printed = python("-m", f"helpers.{script}", *args, cwd=HERE, timeout=300 * MANY)
    return int(printed.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("impatience", [0.0, 0.3][:MANY])  # twice: in long runs only
def test_interrupts(impatience, rng):
    number = 250 * MANY
    assert run("interrupting", number, rng.integers(1000), impatience) >= 0.25 * number


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_forks_while_other_threads_fit(rng):
    number = 16 * MANY
    assert run("forking", number, rng.integers(1000)) == number


def test_fits_leave_the_filters_of_warnings_alone(monkeypatch, rng):
    """Threads share them: two that set and restore them leave one's filters for good."""
    X, y = overlapping(rng)
    svc = SVC(kernel="linear").fit(X, y)
    callers = []

    class Watched(warnings.catch_warnings):
        def __enter__(self):
            callers.append(sys._getframe(1).f_code.co_filename)
            return super().__enter__()

    with monkeypatch.context() as patched:
        patched.setattr(warnings, "catch_warnings", Watched)
        MaxMarginClassifierCV(Cs=2, cv=2).fit(X, y)
        margin_path(X, y, Cs=2)
        fit_many(MaxMarginClassifier(C=1e-3), X, y)
        audit(svc, X, y)
        check_algorithm(BatchPerceptron)
    ours = Path(marginsvm.__file__).parent, Path(sklearn.utils.parallel.__file__)
    assert not [file for file in callers if file.startswith(tuple(map(str, ours)))]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_the_same_bits_beside_other_fits(backend, rng):
    cases = list(everything(rng))
    jobs = [joblib.delayed(bits)(*case) for case in cases]
    with quiet():
        # of forks
        warnings.filterwarnings("ignore", "This process", DeprecationWarning)
        alone = [bits(*case) for case in cases]
        together = joblib.Parallel(n_jobs=2, backend=backend)(jobs)
    for case, expected, found in zip(cases, alone, together, strict=True):
        assert found == expected, case[:2]


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_a_handler_that_does_not_raise_is_called_and_the_fit_goes_on(rng):
    X, y = overlapping(rng)
    calls = []

    def handler(signum, frame):
        calls.append(signum)

    def kernel(A, B):
        interrupt()
        return A @ B.T

    estimator = make(
        MomentumMarginClassifier, C=1.0, kernel=kernel, max_iter=5, **ENDLESS
    )
    before = signal.signal(signal.SIGINT, handler)
    try:
        fit(estimator, X, y)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls
    assert (estimator.status_, estimator.n_iter_) == ("max_iter", 5)


def test_a_second_interrupt_does_not_wait(rng):
    calls = []

    def kernel(A, B):  # slow, with an impatient user
        calls.append(len(A))
        interrupt()
        interrupt()
        calls.append("this is not reached")
        raise AssertionError

    estimator = make(MomentumMarginClassifier, kernel=kernel)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(*overlapping(rng))
    assert len(calls) == 1
    assert not hasattr(estimator, "status_")


def stop(estimator, number, fit, *data):
    """Interrupt a fit in the round of a number."""
    estimator.set_callbacks(AtRound(number, interrupt))
    with pytest.raises(KeyboardInterrupt), quiet():
        fit(*data)
    assert (estimator.status_, estimator.n_iter_) == ("interrupted", number)
    estimator.set_callbacks().set_params(warm_start=True)


@pytest.mark.callbacks
def test_interrupts_of_a_fit_within_a_fit(rng):
    X, y = overlapping(rng)
    inner, outer = (make(MomentumMarginClassifier, C=1.0, **ENDLESS) for _ in range(2))
    inner.set_callbacks(AtRound(3, interrupt))
    outer.set_callbacks(AtRound(2, lambda: inner.fit(X, y)))
    with pytest.raises(KeyboardInterrupt):
        outer.fit(X, y)
    for estimator, n_iter in ((inner, 3), (outer, 2)):
        assert (estimator.status_, estimator.n_iter_) == ("interrupted", n_iter)
        assert check_certificate(estimator, X, y)


@pytest.mark.callbacks
def test_an_interrupted_regressor_goes_on(rng):
    X = rng.standard_normal((60, 20))
    y = X @ rng.standard_normal(20) + 0.1 * rng.standard_normal(60)
    whole, stopped = (DualLpRegressor(epsilon=0.3, random_state=0) for _ in range(2))
    stop(stopped, 5, stopped.fit, X, y)
    assert check_certificate(stopped, X, y)
    np.testing.assert_array_equal(stopped.fit(X, y).coef_, whole.fit(X, y).coef_)


@pytest.mark.callbacks
def test_an_interrupted_fit_to_blocks_goes_on(rng):
    X, y = overlapping(rng)
    blocks = [(X[:25], y[:25]), (X[25:], y[25:])]
    params = {"C": 1.0, "max_iter": 9, **ENDLESS}
    whole, stopped = (make(MomentumMarginClassifier, **params) for _ in range(2))
    stop(stopped, 5, stopped.fit_blocks, blocks)
    with quiet():
        stopped.fit_blocks(blocks)
        whole.fit_blocks(blocks)
    assert stopped.margin_ == whole.margin_
    np.testing.assert_array_equal(stopped.coef_, whole.coef_)


@each
def test_a_fit_that_fails_leaves_the_model_as_it_was(cls, rng):
    X, y = overlapping(rng)
    estimator = fit(make(cls, C=1.0, max_iter=5), X, y)
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match="class"):
        estimator.fit(np.hstack([X, X]), np.zeros(len(y)))
    assert vars(estimator) == before


def test_nothing_is_left_of_an_earlier_fit(rng):
    X, y = overlapping(rng)
    estimator = fit(make(MomentumMarginClassifier, C=1.0, max_iter=5), X, y)
    fit(estimator.set_params(kernel="rbf"), X, y)
    assert not hasattr(estimator, "coef_")


def printed(code, **environment):
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
    assert printed(code) == ["False", "True"]


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
    (tmp_path / "numba.py").write_text(
        "raise ImportError('not for this version of Python')"
    )
    package, tests = Path(marginsvm.__file__).parents[1], Path(__file__).parent
    path = os.pathsep.join(map(str, (tmp_path, package, tests, tests.parent / "docs")))
    assert printed(WITHOUT_NUMBA, PYTHONPATH=path) == ["1", "True"]


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
        assert printed(code, NUMBA_CACHE_DIR=str(tmp_path)) == ["1", "0"]
    assert len(list(tmp_path.rglob("*_accelerate*.nbc"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DualLpPerceptron", "MaxMarginClassifier"])
@pytest.mark.parametrize("writable_home", [True, False])
def test_a_read_only_installation(writable_home, name, tmp_path):
    """numba falls back to the user's cache; where that cannot be either, there is none."""
    refusing = ["InTreeCacheLocator"] + (
        [] if writable_home else ["UserWideCacheLocator"]
    )
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
    assert printed(code, HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path)) == [
        "certified"
    ]
    assert bool(list(tmp_path.rglob("*.nbc"))) == writable_home


def test_private_option_of_numba_still_means_the_same():
    """No reference counts in the loops: a row of text would take four times as long."""
    pytest.importorskip("numba")
    assert loops._accelerate.targetoptions["_nrt"] is False
    data = LinearAdapter(np.eye(2), make_rows(np.arange(2), 2, balanced=False))
    # compiles, so numba knows the option
    loops.ascend(data, np.arange(2), data.zeros())


@pytest.mark.parametrize("cls", [DualLpPerceptron, LpPerceptron, PrimalMirrorDescent])
def test_models_hold_plain_arrays(cls, rng):
    X, y = separable(rng)
    clf = fit(cls(warm_start=True, random_state=0, max_iter=20), X, y)
    assert b"numba" not in pickle.dumps(clf)
    state = vars(clf._progress.state)
    for value in [*vars(clf).values(), *state.values()]:
        assert not isinstance(value, np.ndarray) or type(value) is np.ndarray
