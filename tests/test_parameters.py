"""Common parameters: declared and described once, and complete in every estimator."""

import pickle
import subprocess
import sys
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
import pytest
from helpers.estimators import (
    DETECTORS,
    ESTIMATORS,
    REGRESSORS,
    fit,
    make,
    parameters,
    sections_of,
    separable,
)
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.estimator_checks import check_param_validation

from marginsvm import (
    DualStateMixin,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MomentumMarginClassifier,
)
from marginsvm.estimators.parameters import (
    CommonParameters,
    parameter,
    with_parameters,
)
from marginsvm.papers.momentum import Momentum
from marginsvm.schedules import PowerSchedule

each = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", [*ESTIMATORS, MaxMarginClassifierCV])
def test_every_parameter_has_a_constraint_and_an_error(cls):
    check_param_validation(cls.__name__, cls())


@each
def test_docstrings_show_the_defaults_of_the_class(cls):
    described = {
        entry.name: entry.type for entry in sections_of(cls.__doc__)["Parameters"]
    }
    assert list(described) == list(parameters(cls))
    for name, p in parameters(cls).items():
        written = described[name].split("default=")[1]
        assert eval(written, {"inf": np.inf}) == p.default
    assert all(entry.desc for entry in sections_of(cls.__doc__)["Parameters"])
    assert "as there" not in cls.__doc__.lower()  # each page is complete by itself
    assert "As in :class:" not in cls.__doc__


@pytest.mark.parametrize(
    "cls", [*ESTIMATORS, *REGRESSORS, *DETECTORS, MaxMarginClassifierCV]
)
def test_public_attributes_of_a_class_are_parameters(cls):
    values = {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}
    shown = {name for name, value in values.items() if not hasattr(value, "__get__")}
    assert shown - {"doc_link"} <= set(parameters(cls))


def test_each_parameter_is_declared_once():
    """A class that declares a parameter again gives it another default and nothing else."""
    declared = {}
    for cls in {base for estimator in ESTIMATORS for base in estimator.__mro__}:
        for f in fields(cls) if is_dataclass(cls) else ():
            if "constraints" in f.metadata:
                declared.setdefault(f.name, set()).add(id(f.metadata["constraints"]))
    twice = {name for name, constraints in declared.items() if len(constraints) > 1}
    # None leaves them to the schedule of the one, and is no value of the other; the losses of the
    # momentum method have exponential tails, those of the exact solver are what slack costs
    assert twice == {"step", "momentum", "loss"}


@with_parameters
class Derived(MomentumMarginClassifier):
    """Another summary.

    Parameters
    ----------
    tol : float
        Text of Derived.
    speed : float
        How fast.

    Attributes
    ----------
    margin_ : float
        Text of its margin.
    """

    tol: float = 0.5
    speed: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=2.0)
    unit: ClassVar[str] = "m"


def test_the_nearest_description_and_default_hold(rng):
    doc, parent = (
        sections_of(cls.__doc__) for cls in (Derived, MomentumMarginClassifier)
    )
    described, before = ({p.name: p for p in of["Parameters"]} for of in (doc, parent))
    assert described.keys() - before.keys() == {"speed"}
    assert described["speed"][1:] == ("float, default=2.0", ["How fast."])
    assert described["tol"][1:] == ("float, default=0.5", ["Text of Derived."])
    assert described["step"] == before["step"]
    fitted, others = (
        {a.name: a.desc for a in of["Attributes"]} for of in (doc, parent)
    )
    assert fitted == {**others, "margin_": ["Text of its margin."]}
    assert doc["Summary"] == ["Another summary."]
    assert not doc["Notes"]
    assert "unit" not in parameters(Derived)
    with pytest.raises(ValueError, match="'speed' parameter of Derived"):
        Derived(speed=-1.0).fit(*separable(rng))


@each
def test_estimators_are_as_scikit_learn_wants_them(cls):
    clf, defaults = (
        cls(tol=0.5),
        {name: p.default for name, p in parameters(cls).items()},
    )
    assert vars(cls()) == defaults == cls().get_params()
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters(cls).values())
    assert repr(clf) == f"{cls.__name__}(tol=0.5)"
    assert clone(clf).get_params() == clf.get_params()
    assert len({clf, clone(clf)}) == 2, "estimators are hashed by identity"
    with pytest.raises(TypeError, match="tool"):
        cls(tool=1.0)


class OldStyle(DualStateMixin, BaseEstimator):
    """Class attributes for parameters that it does not offer, and an __init__ of its own."""

    stopping, verbose = "separation", False

    def __init__(self, *, fit_intercept=True, tol=1e-6, max_iter=100, warm_start=False):
        self.fit_intercept, self.tol, self.max_iter = fit_intercept, tol, max_iter
        self.warm_start = warm_start

    def _algorithm(self):
        return Momentum()


def test_estimators_with_an_init_of_their_own(rng):
    X, y = separable(rng)
    assert OldStyle.__doc__.startswith("Class attributes")
    assert fit(OldStyle(), X, y).status_ == "separated"
    with pytest.raises(ValueError, match="'tol' parameter of OldStyle"):
        OldStyle(tol=-1.0).fit(X, y)


def test_subclasses_that_declare_nothing(rng):
    class Same(MaxMarginClassifier):
        """Nothing new."""

    assert Same.__doc__ == "Nothing new."
    assert Same(tol=0.1).get_params() == MaxMarginClassifier(tol=0.1).get_params()
    assert make(Same).fit(*separable(rng)).status_ == "certified"


def test_first_order_classifiers_ask_for_two_digits():
    """Own ones, too, if they do not say otherwise."""
    assert CommonParameters().tol == 1e-2
    others = {cls.__name__ for cls in ESTIMATORS if cls().tol != 1e-2}
    assert others == {"KernelPerceptron", "MaxMarginClassifier"}


@pytest.mark.slow
def test_without_docstrings():
    code = """
import marginsvm
from marginsvm import MaxMarginClassifier
assert MaxMarginClassifier.__doc__ is None
print(MaxMarginClassifier(tol=0.5).fit([[0.0], [1.0]], [0, 1]).status_)
"""
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == "certified"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"step": "fast"}, "step"),
        ({"step": -1.0}, "step"),
        ({"step": lambda t: 1 - t}, "gave 0.0 at iteration 1"),
        ({"step": None}, 'None is no step: pass "constant"'),
        (
            {"step": PowerSchedule},
            r"PowerSchedule is a class.*such as PowerSchedule\(\)",
        ),
        ({"momentum": 1.5}, "momentum"),
        ({"momentum": "none"}, "None.*Got 'none'"),
        ({"momentum": lambda t: -1.0}, "gave -1.0 at iteration 0"),
        ({"kernel": "gaussian"}, "rbf"),
        (
            {"kernel": "rbf", "kernel_params": {"foo": 1}},
            r"\['foo'\].*parameters are \['gamma'\]",
        ),
        (
            {"kernel": "poly", "kernel_params": {"n": 1}},
            r"\['coef0', 'degree', 'gamma'\]",
        ),
        ({"kernel_params": {"gamma": 1.0}}, "it has no parameters"),
        ({"loss": "hinge"}, "logistic"),
    ],
)
def test_errors_say_what_to_do(params, text, rng):
    X, y = separable(rng)
    with pytest.raises(ValueError, match=text):
        MomentumMarginClassifier(**params).fit(X, y)


def test_kernel_params_stand_for_parameters(rng):
    X, y = separable(rng)
    a = fit(MomentumMarginClassifier(kernel="rbf", gamma=0.3, max_iter=9), X, y)
    b = fit(
        MomentumMarginClassifier(
            kernel="rbf", kernel_params={"gamma": 0.3}, max_iter=9
        ),
        X,
        y,
    )
    assert a.margin_bound_ == b.margin_bound_
    with pytest.raises(ValueError, match="it has no parameters"):
        MomentumMarginClassifier(kernel_params={"foo": 1}).fit_blocks([(X, y)])


def test_bad_kernels_are_refused(rng):
    X, y = separable(rng)
    clf = MomentumMarginClassifier(kernel="precomputed")
    with pytest.raises(ValueError, match="square"):
        clf.fit(X, y)
    K = X @ X.T
    K[0, 1] += 1.0
    with pytest.raises(ValueError, match="symmetric"):
        clf.fit(K, y)
    X, y = separable(rng, n=150)  # several tiles, the last ones are not whole
    for order in "CF":
        for i, j in ((3, 149), (149, 3), (70, 60), (140, 139)):
            K = np.array(X @ X.T, order=order)
            clf.fit(K, y)
            K[i, j] += 1e-3
            with pytest.raises(
                ValueError, match=r"symmetric, but entries differ by 0\.001 "
            ):
                clf.fit(K, y)
            for value in (np.nan, np.inf):
                K[i, j] = K[j, i] = value
                with pytest.raises(ValueError, match="X contains"):
                    clf.fit(K, y)
    with pytest.raises(ValueError, match="1 class"):
        MomentumMarginClassifier().fit(X, np.zeros(len(X)))


def test_parts_of_what_has_none_cannot_be_set():
    clf = MomentumMarginClassifier(step="inv_sqrt")
    with pytest.raises(ValueError, match=r"step='inv_sqrt'.*marginsvm\.schedules"):
        clf.set_params(step__power=0.3)
    with pytest.raises(ValueError, match="kernel=None, which has none"):
        clf.set_params(kernel=None, kernel__width=3)
    clf.set_params(step=PowerSchedule(), step__power=0.3)
    assert clf.step.power == 0.3
    with pytest.raises(ValueError, match="Invalid parameter 'stepsize'"):
        clf.set_params(stepsize__power=0.3)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_constraints_can_be_copied(cls):
    """As those of scikit-learn's own estimators."""
    constraints = pickle.loads(pickle.dumps(cls._parameter_constraints))
    assert constraints.keys() == cls._parameter_constraints.keys()
