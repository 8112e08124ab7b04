"""Discovery: a new estimator gets the whole battery without new test code."""

import inspect
import warnings
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OutlierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import marginsvm
from marginsvm import DualStateMixin, check_certificate
from marginsvm._rounding import Extended
from marginsvm.estimators.dual_state import DualState


def public(*kinds):
    classes = (
        value for _, value in sorted(vars(marginsvm).items()) if inspect.isclass(value)
    )
    return [cls for cls in classes if all(issubclass(cls, kind) for kind in kinds)]


ESTIMATORS = public(DualStateMixin, BaseEstimator)
BY_PASSES = [cls for cls in ESTIMATORS if cls()._algorithm().requires.by_passes]
IN_MEMORY = [cls for cls in ESTIMATORS if cls not in BY_PASSES]
REGRESSORS, DETECTORS = (
    public(DualState, kind) for kind in (RegressorMixin, OutlierMixin)
)

# Rounds in scikit-learn's checks of the quick run, which ask how a fit behaves and not what it
# converges to: scikit-learn gives its own iterative estimators 5 to 100 (INIT_PARAMS).
CHECKED_ROUNDS = 100

# Where long double is float64, on Windows and on Apple's processors, bounds hold as anywhere, but
# rounding keeps them farther apart: some problems are certified only with more digits.
MORE_DIGITS = np.finfo(Extended).eps < np.finfo(np.float64).eps
needs_more_digits = pytest.mark.skipif(
    not MORE_DIGITS, reason="long double is float64 here"
)

# Parameters with which no fit ends before max_iter, unless it separates for good.
ENDLESS = {"tol": 0.0, "epsilon": 1e-300, "stopping": "gap"}


def parameters(cls):
    return inspect.signature(cls).parameters


def draws(cls):
    """Whether fits are random: equal only as far as their bounds say."""
    return "random_state" in parameters(cls)


def make(cls, **wanted):
    """An instance with those of the wanted parameters that the class has; draws repeat."""
    wanted = {"random_state": 0, **wanted}
    return cls(
        **{name: value for name, value in wanted.items() if name in parameters(cls)}
    )


@contextmanager
def quiet():
    """Within it, fits may end without a certificate; anything else still is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fit(estimator, *args, **kwargs):
    with quiet():
        return estimator.fit(*args, **kwargs)


def confirmed(estimator, *data, exact=False):
    """What the check finds of a fit: its certificate holds."""
    check = check_certificate(estimator, *data, exact=exact)
    assert check, check.reason
    return check


def certified(estimator, *data, ends=("certified",), exact=False):
    """The estimator, after a fit that ends as it may; only a certified one must not warn."""
    with nullcontext() if ends == ("certified",) else quiet():
        estimator.fit(*data)
    assert estimator.status_ in ends, estimator.certificate_
    confirmed(estimator, *data, exact=exact)
    return estimator


def same_fit(a, b, rtol=1e-10):
    """Assert that two fits of linear predictors went the same way, but for rounding."""
    assert (a.n_iter_, a.status_) == (b.n_iter_, b.status_)
    for name in ("margin_", "margin_bound_", "coef_", "intercept_"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=rtol, atol=rtol
        )
    np.testing.assert_allclose(
        a.history_["margin"], b.history_["margin"], rtol=1e-8, atol=rtol
    )


def separable(rng, n=60, d=5, k=2, margin=0.3):
    """Random examples of k classes that a known predictor separates."""
    centres = 2.0 * np.eye(k, d)
    y = np.arange(n) % k
    X = rng.uniform(-1, 1, (n, d)) * (1.0 - margin) + centres[y]
    return X, y


def overlapping(rng, n=60, d=3, k=2):
    return rng.standard_normal((n, d)), np.arange(n) % k


def bits(cls, params, X, y):
    """All that a fit has found. Its warnings are the caller's: threads share their filters."""
    model = make(cls, **params).fit(X, y)
    predictor = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
    weights = model.certificate_.weights.toarray()
    return model.margin_, model.margin_bound_, predictor.tobytes(), weights.tobytes()


def everything(rng):
    """Fits of all estimators, for ``bits``; in the last ones, BLAS would use its threads."""
    for kernel in ("linear", "rbf"):
        for cls in ESTIMATORS:
            if kernel == "linear" or "kernel" in parameters(cls):
                params = {"C": 1.0, "kernel": kernel, "max_iter": 10, **ENDLESS}
                yield cls, params, *overlapping(rng, n=80, k=3)
    for name in ("MomentumMarginClassifier", "SmoothedKernelPerceptron"):
        params = {"C": 1.0, "kernel": "precomputed", "max_iter": 3, **ENDLESS}
        X, y = overlapping(rng, n=2100, d=30, k=5)
        yield getattr(marginsvm, name), params, rbf_kernel(X), y


def sections_of(docstring):
    """Sections of a numpydoc docstring; with an older scikit-learn, the test is skipped."""
    docscrape = pytest.importorskip("sklearn.externals._numpydoc.docscrape")
    return docscrape.NumpyDocString(docstring)


class AtRound:
    """A callback that acts at the end of a round: a fit stops if the answer is True."""

    max_propagation_depth = None

    def __init__(self, number, act=lambda: True):
        self.number, self.act, self.torn_down = number, act, 0

    def setup(self, estimator, context):
        """Nothing is set up."""

    on_fit_task_begin = setup

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, fitted_estimator=None
    ):
        self.found = X, y, fitted_estimator
        return (
            context.task_name == "iteration"
            and context.task_id + 1 == self.number
            and self.act()
        )
