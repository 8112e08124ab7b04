"""Tests for user-defined algorithms: ``check_algorithm(MyEstimator)``."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

from marginsvm._typing import Array
from marginsvm.certificate.check import check_certificate
from marginsvm.estimators.exact import MaxMarginClassifier
from marginsvm.fit import Algorithm
from marginsvm.problem.adapter import LinearAdapter
from marginsvm.problem.rows import make_rows

# Relative rounding of the bounds after 30 iterations, for two orders of summation.
_ROUNDED_SHARE = 1e-6
_BOUND_ROUNDS = 30  # iterations of fits that need bounds, but no convergence

Check = Callable[[type], None]
_CHECKS: dict[str, Check] = {}


def check_algorithm(estimator: type) -> tuple[str, ...]:
    """Test whether a user-defined algorithm meets the requirements of this package.

    These tests cover the algorithm; scikit-learn's ``check_estimator`` covers the interface, and
    should be run as well. They take some seconds, and need no test framework.

    Parameters
    ----------
    estimator : type
        A subclass of :class:`~marginsvm.DualStateMixin` with defaults for all parameters. Of
        ``C``, ``kernel``, ``random_state``, ... only those in its constructor are set.

    Returns
    -------
    tuple of str
        Descriptions of the checks, all passed.

    Raises
    ------
    AssertionError
        With a line for each failed check: the property, and the data.

    Notes
    -----
    *Bounds*: on separable and overlapping classes and equal examples of different classes, in units
    from 1e-8 to 1e8, with two and three classes, soft margins and without intercept, both bounds
    agree with those of :class:`~marginsvm.MaxMarginClassifier`, in the history too, and
    :func:`~marginsvm.check_certificate` confirms them. *Forms*: dense and CSR examples, a linear
    and a precomputed kernel, give the same bounds, and so does another order of the examples
    (unless the algorithm depends on the order, or is randomised). *Immutable states*: a step does
    not modify its input state. *Warm starts*: a continued fit is bitwise equal to one longer fit,
    also after pickling. *It learns*: with default parameters it separates well-separated classes.

    References
    ----------
    Ji, Srebro and Telgarsky (2021), eq. (1.2), is the duality of the bounds; Gordan's theorem that
    of the overlap.

    Examples
    --------
    >>> from marginsvm import SmoothedKernelPerceptron
    >>> from marginsvm.testing import check_algorithm
    >>> for held in check_algorithm(SmoothedKernelPerceptron):
    ...     print(held)
    bounds hold
    the same examples in other forms give the same bounds
    examples in another order give the same bounds
    a step leaves its state unchanged
    a continued fit is that of one go
    classes that are far apart are separated
    """
    failed = []
    for name, check in _CHECKS.items():
        try:
            check(estimator)
        except Exception as error:  # an exception counts as a failed check
            failed.append(f"{name}: {type(error).__name__}: {error}")
    assert not failed, f"{estimator.__name__}\n" + "\n".join(failed)
    return tuple(_CHECKS)


def _checked(name: str) -> Callable[[Check], Check]:
    """Register a check under its description."""

    def enter(check: Check) -> Check:
        _CHECKS[name] = check
        return check

    return enter


def _make(estimator: type, **wanted: Any) -> Any:
    """An instance with the wanted parameters that the class has, and a fixed random_state."""
    known = inspect.signature(estimator).parameters
    wanted = {"random_state": 0, **wanted}
    return estimator(**{name: value for name, value in wanted.items() if name in known})


def _fit(clf: Any, X: Any, y: Array) -> Any:
    """Fit without a warning: most checks end a fit after a few iterations."""
    clf._fit = partial(clf._fit, warns=False)
    try:
        return clf.fit(X, y)
    finally:
        del clf._fit


def _apart(k: int = 2) -> tuple[Array, Array]:
    """60 examples of k separable classes, with some zero entries."""
    rng = np.random.default_rng(k)
    y = np.arange(60) % k
    X = 0.7 * rng.uniform(-1, 1, (60, 5)) + 2.0 * np.eye(k, 5)[y]
    X[np.abs(X) < 0.2] = 0.0
    return X, y


def _data() -> dict[str, tuple[Array, Array]]:
    """Problems for the check of bounds, by description."""
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).standard_normal((40, 3))
    twice = np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 4.0], [-3.0, 1.0]])
    return {
        "two irises that can be separated": (X[:100], y[:100]),
        "two irises that overlap": (X[50:], y[50:]),
        "three irises": (X, y),
        "three classes apart": _apart(3),
        "noise": (noise, np.arange(40) % 2),
        "noise in units of 1e-8": (1e-8 * noise, np.arange(40) % 2),
        "classes apart in units of 1e8": (1e8 * _apart()[0], _apart()[1]),
        "far from the origin": (_apart()[0] + 1e3, _apart()[1]),
        "an example of two classes": (twice, np.array([0, 1, 0, 1])),
        "one feature": (np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])),
    }


def _has_reference(clf: Any) -> bool:
    """Whether MaxMarginClassifier solves the same problem: p = 2, intercept free, X not scaled."""
    penalised = (
        getattr(clf, "intercept_scaling", None) is not None and clf.fit_intercept
    )
    return clf.certificate_.of == "X" and not penalised and getattr(clf, "p", 2) == 2


@_checked("bounds hold")
def _bounds(estimator: type) -> None:
    for what, (X, y) in _data().items():
        largest = np.abs(X).max() ** 2
        for C, intercept in ((np.inf, True), (np.inf, False), (1.0 / largest, True)):
            clf = _make(estimator, C=C, fit_intercept=intercept, max_iter=_BOUND_ROUNDS)
            where = f"{what}, C={C:.3g}, fit_intercept={intercept}"
            _fit(clf, X, y)
            confirmed = check_certificate(clf, X, y)
            assert confirmed, f"{where}: {confirmed.reason}"
            assert np.isfinite(clf.decision_function(X)).all(), (
                f"{where}: no finite decisions"
            )
            if np.isinf(C) == np.isinf(getattr(clf, "C", np.inf)) and _has_reference(
                clf
            ):
                _beside_the_best(clf, X, y, where)


def _beside_the_best(clf: Any, X: Array, y: Array, where: str) -> None:
    C = getattr(clf, "C", np.inf)
    best = _fit(MaxMarginClassifier(C=C, fit_intercept=clf.fit_intercept), X, y)
    spare = _ROUNDED_SHARE * clf.certificate_.radius
    margins = clf.history_["margin"]
    bounds = clf.history_["margin_bound"]
    assert np.all(margins <= best.margin_bound_ + spare), (
        f"{where}: a margin above the best"
    )
    assert np.all(bounds >= best.margin_ - spare), (
        f"{where}: a bound below the best margin"
    )
    assert clf.separable_ is not True or best.separable_ is not False, (
        f"{where}: separable_"
    )


def _same(clf: Any, other: Any, what: str) -> None:
    """Assert that two fits have the same bounds, up to rounding."""
    spare = _ROUNDED_SHARE * abs(clf.margin_bound_)
    for name in ("margin_", "margin_bound_"):
        one = getattr(clf, name)
        two = getattr(other, name)
        assert abs(one - two) <= spare, f"{what}: {name} is {two}, not {one}"


@_checked("the same examples in other forms give the same bounds")
def _forms(estimator: type) -> None:
    X, y = _apart()
    for C in (np.inf, 1.0):
        clf = _make(estimator, C=C, max_iter=_BOUND_ROUNDS, tol=1e-9)
        _fit(clf, X, y)
        _same(
            clf, _fit(clone(clf), np.asfortranarray(X), y), f"columns in memory, C={C}"
        )
        _same(clf, _fit(clone(clf), sp.csr_array(X), y), f"CSR, C={C}")
        if "kernel" in clf.get_params() and clf.certificate_.of == "X":
            kernel = clone(clf).set_params(kernel="precomputed")
            _same(clf, _fit(kernel, X @ X.T, y), f"a kernel matrix, C={C}")


@_checked("examples in another order give the same bounds")
def _order(estimator: type) -> None:
    clf = _make(estimator, max_iter=_BOUND_ROUNDS, tol=1e-9)
    if "random_state" in clf.get_params() or clf._algorithm().requires.in_order:
        return
    X, y = _apart(3)
    order = np.random.default_rng(0).permutation(len(y))
    _same(_fit(clf, X, y), _fit(clone(clf), X[order], y[order]), "another order")


@_checked("a step leaves its state unchanged")
def _values(estimator: type) -> None:
    X, y = _apart()
    problem = LinearAdapter(X, make_rows(y, 2, balanced=False))
    algorithm = _make(estimator, fit_intercept=False)._algorithm()
    if not isinstance(algorithm, Algorithm):  # the exact solver makes no steps
        return
    state = algorithm.start(problem)
    for t in range(3):
        before = pickle.dumps(state)
        following = algorithm.step(problem, state)
        assert pickle.dumps(state) == before, (
            f"step {t + 1} wrote into the state that it was given"
        )
        again = pickle.dumps(algorithm.step(problem, state))
        assert again == pickle.dumps(following), (
            f"step {t + 1} repeated gives another state"
        )
        state = following


@_checked("a continued fit is that of one go")
def _continued(estimator: type) -> None:
    X, y = load_iris(return_X_y=True)
    X = X[50:]
    y = y[50:]
    whole = _fit(_make(estimator, C=1.0, max_iter=12, tol=0.0), X, y)
    part = _fit(_make(estimator, C=1.0, max_iter=5, tol=0.0, warm_start=True), X, y)
    part = pickle.loads(pickle.dumps(part))
    _fit(part.set_params(max_iter=12), X, y)
    assert part.n_iter_ == whole.n_iter_, (
        f"{part.n_iter_} iterations, not {whole.n_iter_}"
    )
    assert part.margin_ == whole.margin_, (
        f"margin_ is {part.margin_}, not {whole.margin_}"
    )
    assert part.margin_bound_ == whole.margin_bound_, "margin_bound_ is another one"


@_checked("classes that are far apart are separated")
def _learns(estimator: type) -> None:
    for k in (2, 3):
        X, y = _apart(k)
        clf = _fit(_make(estimator), X, y)
        assert clf.separable_ is True, f"{k} classes: separable_ is {clf.separable_}"
        assert clf.score(X, y) == 1.0, f"{k} classes: training errors"
