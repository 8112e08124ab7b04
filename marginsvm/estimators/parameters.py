"""Declaration of estimators' parameters, and the groups of shared ones.

:func:`with_parameters` makes the annotated names of a class its parameters, as a dataclass does.
The class gets an explicit ``__init__`` (keyword-only, which only stores the values, as
scikit-learn requires), the constraints by which scikit-learn validates them, and a docstring that
describes all of them. A description is written once, in the docstring of the class that declares
the parameter; a subclass repeats it only where the parameter has another meaning.

An estimator inherits the groups (classes) of parameters that it needs. In its signature, those of
the last base class come first, and its own come last.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils._param_validation import Interval, StrOptions

from marginsvm._typing import Array
from marginsvm.problem.column_cache import CACHE_SIZE
from marginsvm.schedules import MOMENTA, STEPS

_PAGE = (
    "https://marginsvm.github.io/marginsvm/generated/marginsvm.{estimator_name}.html"
)
_Class = TypeVar("_Class", bound=type)
# The header of a section of a docstring.
_HEADER = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
# Smaller numbers are written with an exponent, as in default=1e-3 (dimensionless).
_WITH_EXPONENT = 0.01


def parameter(*constraints: Any, default: Any) -> Any:
    """Declare a parameter: its default, and the values that scikit-learn's validation accepts.

    Parameters
    ----------
    *constraints
        One of them must hold, in the notation of scikit-learn's ``_parameter_constraints``.
    default
        Value of the parameter where none is given.

    Returns
    -------
    dataclasses.Field
        To be assigned to the annotated name of the parameter in the body of a class.
    """
    for constraint in constraints:
        if isinstance(constraint, StrOptions):  # messages list them in one order
            constraint.options = sorted(constraint.options)
    return field(default=default, metadata={"constraints": list(constraints)})


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(field, Field, parameter)
)
def with_parameters(cls: _Class) -> _Class:
    """Turn the annotated names of a class into its parameters.

    Parameters
    ----------
    cls : type
        A class that declares parameters in its body, by ``name: type = default`` or
        ``name: type = parameter(*constraints, default=default)``, or has bases, decorated in the
        same way, that do. A default given again in a subclass replaces the inherited one. Names
        that are not parameters must not be annotated, except as ``ClassVar``. To replace an
        inherited parameter by a constant, write
        ``name: type = field(default=value, init=False)``.

    Returns
    -------
    type
        The same class, with ``__init__``, ``_parameter_constraints`` and a docstring in which
        each parameter has its entry from the first class in the method resolution order that
        describes it.

    References
    ----------
    PEP 681 (data class transforms), by which editors and type checkers know the signature;
    numpydoc's style guide, Section 4 (Parameters), for the docstrings.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from marginsvm.estimators.parameters import with_parameters
    >>> from marginsvm.estimators.parameters import CommonParameters
    >>> @with_parameters
    ... class Estimator(CommonParameters, BaseEstimator):
    ...     tol: float = 1e-6
    ...     speed: float = 2.0
    >>> Estimator(speed=3.0)
    Estimator(speed=3.0)
    """
    # read first, as dataclass() writes a docstring where there is none
    text = cls.__doc__
    made: Any = dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    made._parameter_constraints = constraints_of(made)
    made._own_docstring = text
    # the link in the HTML representation
    made._doc_link_module = "marginsvm"
    made._doc_link_template = _PAGE
    made.__doc__ = text and _documented(made, text)  # python -OO removes docstrings
    return made


def constraints_of(*classes: Any) -> dict[str, list[Any]]:
    """Constraints on the parameters of classes, as scikit-learn's ``_validate_params`` reads them.

    A default given again in a subclass leaves the constraints as they are.
    """
    found: dict[str, list[Any]] = {}
    for cls in classes:
        wanted = {f.name for f in fields(cls) if f.init}
        for base in reversed(cls.__mro__):
            for f in vars(base).get("__dataclass_fields__", {}).values():
                if f.name in wanted and "constraints" in f.metadata:
                    found[f.name] = f.metadata["constraints"]
    return found


def _documented(cls: Any, text: str) -> str:
    """Docstring of a class, with entries for all parameters and all fitted attributes.

    The summary and the sections of ``text`` stay; the entries that it lacks come from the
    classes that ``cls`` inherits from.
    """
    entries: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    for base in cls.__mro__:
        sections = _sections(vars(base).get("_own_docstring") or "")
        for header, known in entries.items():
            for name, entry in _entries(sections.get(header, "")).items():
                # the text of the subclass, at the position of the base's
                known[name] = known.pop(name, entry)
    own = _sections(text)
    known = entries["Parameters"]
    parameters = [_with_default(known.get(f.name), f) for f in fields(cls) if f.init]
    sections = {
        "Parameters": "\n".join(parameters),
        "Attributes": "\n".join(entries["Attributes"].values()),
        **{
            header: body
            for header, body in own.items()
            if header and header not in entries
        },
    }
    parts = [own[""].strip()]
    for header, body in sections.items():
        if body:
            parts.append(f"{header}\n{'-' * len(header)}\n{body.strip()}")
    return "\n\n".join(parts) + "\n"


def _sections(text: str) -> dict[str, str]:
    """Split a docstring at its headers; what stands before the first has the empty name."""
    summary, *rest = _HEADER.split(inspect.cleandoc(text))
    return {"": summary, **dict(zip(rest[::2], rest[1::2], strict=True))}


def _entries(section: str) -> dict[str, str]:
    """Entries of a section by name: a line that is not indented, and the indented ones below."""
    entries = re.split(r"^(?=\S)", section.strip(), flags=re.MULTILINE)
    return {re.split(r"\W", entry)[0]: entry.rstrip() for entry in entries if entry}


def _with_default(entry: str | None, of: Field[Any]) -> str:
    """Entry of a parameter with the default of the class, in place of the one in the text."""
    head, *lines = (entry or f"{of.name} : {of.type}").splitlines()
    if of.default is not MISSING:
        head = f"{head.split(', default=')[0]}, default={_written(of.default)}"
    return "\n".join([head, *lines])


def _written(value: Any) -> str:
    """Write a value as docstrings do: "gap", 1e-3, inf."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float) and 0.0 < abs(value) < _WITH_EXPONENT:
        mantissa, exponent = f"{value:e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return repr(value)


POSITIVE = Interval(Real, 0.0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0.0, None, closed="left")
KERNELS = {*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}
# A schedule of steps or of momentum: a name, a number or a function of the iteration;
# None is no momentum; as a step, it is refused by ``resolve``.
STEP = (
    StrOptions(set(STEPS)),
    POSITIVE,
    callable,
    None,
)
MOMENTUM = (
    StrOptions(set(MOMENTA)),
    Interval(Real, 0.0, 1.0, closed="both"),
    callable,
    None,
)


@with_parameters
class FitParameters:
    """When a fit ends, and what it prints.

    Parameters
    ----------
    tol : float
        ``gap_`` at which the fit ends (dimensionless).
    max_iter : int
        Iteration limit, including iterations before a warm start.
    verbose : bool or int
        Print the bounds at iterations 1, 2, 4, ...
    """

    tol: float = parameter(NOT_NEGATIVE, default=1e-3)
    max_iter: int = parameter(
        Interval(Integral, 1, None, closed="left"), default=10_000
    )
    verbose: bool | int = parameter("verbose", default=False)


@with_parameters
class WarmParameters(FitParameters):
    """A fit that continues an earlier one.

    Parameters
    ----------
    warm_start : bool
        Continue the previous fit (same data, C, weights), bit for bit.
    """

    warm_start: bool = parameter("boolean", default=False)


@with_parameters
class ClassParameters:
    """A classifier: weights of classes, and an intercept.

    Parameters
    ----------
    class_weight : dict or "balanced"
        Factor of ``sample_weight`` by label (dimensionless), as in SVC; 0 excludes a class. Others
        do not move a hard margin.
    fit_intercept : bool
        Whether to fit an intercept (not penalised).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Coefficients; the closest examples have decision values +-1 (k classes: scores differ by 1).
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercept, on the same scale.
    margin_ : float
        Certified lower bound on this predictor's margin (units of X).
    margin_bound_ : float
        Certified upper bound on any predictor's margin (units of X).
    gap_ : float
        Relative gap of the bounds, from 0 to 1 (dimensionless).
    separable_ : bool or None
        True: this predictor separates the classes. False: proved inseparable. None: unknown.
    status_ : str
        ``"certified"``, ``"separated"``, ``"no_margin"``, ``"stalled"``, ``"max_iter"``,
        ``"stopped"`` or ``"interrupted"``.
    n_iter_ : int
        Iterations.
    certificate_ : Certificate
        Bounds, status and dual variables.
    history_ : dict of ndarray
        ``n_iter``, ``n_passes``, ``seconds``, ``margin``, ``margin_bound`` of each iteration
        with bounds: every one up to 64, then whenever ``n_iter`` has grown by 1/32.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features; their names, if any.
    """

    class_weight: dict[Any, float] | str | None = parameter(
        dict, StrOptions({"balanced"}), None, default=None
    )
    fit_intercept: bool = parameter("boolean", default=True)


@with_parameters
class CommonParameters(WarmParameters, ClassParameters):
    """Parameters of every classifier of an algorithm.

    Parameters
    ----------
    stopping : {"gap", "separation"}
        ``"gap"``: end at ``tol``; ``"separation"``: also without training errors.
    """

    tol: float = 1e-2
    stopping: str = parameter(StrOptions({"gap", "separation"}), default="gap")


@with_parameters
class NamedKernelParameters:
    """A kernel in place of the features.

    Parameters
    ----------
    kernel : str or callable
        A name of ``sklearn.metrics.pairwise.pairwise_kernels``, ``"precomputed"``, or
        ``kernel(X, Y) -> matrix``, also of objects.
    gamma : {"scale", "auto"} or float
        Kernel coefficient, as in SVC ("rbf": units of X^-2); unused if ``kernel="linear"``, like
        degree and coef0.
    degree : float
        Degree of "poly" (dimensionless).
    coef0 : float
        Constant of "poly" and "sigmoid" (dimensionless).
    kernel_params : dict
        Keyword arguments of the kernel.
    cache_size : float
        Memory for kernel values (MB).

    Attributes
    ----------
    support_, n_support_ : ndarray of shape (n_support,) and (n_classes,)
        Kernels: indices of the support vectors; number in each class.
    support_vectors_ : ndarray or csr matrix of shape (n_support, n_features)
        Kernels: the support vectors; empty if precomputed.
    dual_coef_ : ndarray of shape (1 or n_classes, n_support)
        Kernels: their coefficients, in place of ``coef_``.
    """

    kernel: str | Callable[..., Array] = parameter(
        StrOptions(KERNELS), callable, default="linear"
    )
    gamma: str | float = parameter(
        StrOptions({"scale", "auto"}),
        NOT_NEGATIVE,
        default="scale",
    )
    degree: float = parameter(NOT_NEGATIVE, default=3)
    coef0: float = parameter(Interval(Real, None, None, closed="neither"), default=0.0)
    kernel_params: dict[str, object] | None = parameter(dict, None, default=None)
    cache_size: float = parameter(NOT_NEGATIVE, default=CACHE_SIZE)


@with_parameters
class CostParameters:
    """A soft margin.

    Parameters
    ----------
    C : float
        Cost of slack (dimensionless), as in ``LinearSVC(loss="squared_hinge")``. ``inf``: a hard
        margin.
    """

    C: float = parameter(Interval(Real, 0.0, None, closed="right"), default=np.inf)


@with_parameters
class KernelParameters(NamedKernelParameters, CostParameters):
    """A soft margin, and a kernel in place of the features."""


@with_parameters
class ShareParameters:
    """nu of nu-SVC.

    Parameters
    ----------
    nu : float in (0, 1]
        As in NuSVC (dimensionless; ``C=inf``): maximise the mean of the smallest fraction nu of the
        margins. With an intercept, nu is at most 2 (1 - share of the largest class).
    """

    nu: float | None = parameter(
        Interval(Real, 0.0, 1.0, closed="right"), None, default=None
    )


@with_parameters
class SignParameters:
    """Signs of coefficients that are known in advance.

    Parameters
    ----------
    monotonic_cst : array-like of shape (n_features,) or dict
        Signs of coefficients (1, -1, or 0: any), or a dict by feature name; bounds are for these
        signs. Linear, two classes; X becomes dense.
    """

    monotonic_cst: Any = parameter("array-like", dict, None, default=None)


@with_parameters
class TubeParameters(WarmParameters):
    """A regressor: a tube around the targets, and an intercept.

    Parameters
    ----------
    epsilon : float
        Half the tube's width (units of y).
    fit_intercept : bool
        Whether to fit an intercept (not penalised).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients (units of y over X).
    intercept_ : ndarray of shape (1,) or (n_outputs,)
        Intercept (units of y).
    norm_ : float
        ``sqrt(2 P)``, P summed over outputs (units of y over X).
    norm_bound_ : float
        Certified lower bound on ``norm_`` (same units). inf: proved that none fits.
    gap_ : float
        Relative gap, from 0 to 1 (dimensionless), of ``norm_`` and the bound for predictors that
        violate the tube by at most ``violation_`` (``C < inf``: all); with ``C=inf``,
        ``violation_`` relative to that of w = 0, if larger.
    violation_ : float
        Upper bound on the distance of any prediction from its tube (units of y).
    feasible_ : bool or None
        True: this predictor fits the tube without slack. False: proved that none does. None:
        unknown.
    status_ : str
        ``"certified"``, ``"infeasible"``, ``"stalled"``, ``"max_iter"``, ``"stopped"`` or
        ``"interrupted"``.
    n_iter_ : int
        Iterations.
    certificate_ : Certificate
        Bounds, status and dual variables.
    history_ : dict of ndarray
        ``n_iter``, ``n_passes``, ``seconds``, ``norm``, ``norm_bound``, ``violation`` of each
        iteration with bounds: every one up to 64, then whenever ``n_iter`` has grown by 1/32.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features; their names, if any.
    """

    epsilon: float = parameter(NOT_NEGATIVE, default=0.1)
    fit_intercept: bool = parameter("boolean", default=True)


@with_parameters
class NormalizeParameters(CommonParameters):
    """Whether examples are divided by their norms.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit an intercept; not penalised, unless ``normalize=True``.
    normalize : bool
        Divide each example by its norm (in feature space), also in prediction; margins are those of
        the divided examples (rho_K of Ramdas and Pena). With an intercept, examples are
        ``(x, s) / ||(x, s)||``, s the largest norm. A precomputed kernel must have K(x, x) = 1.

    Attributes
    ----------
    constant_ : float
        With ``normalize=True``: the constant s (units of x; 0 without an intercept).
    """

    normalize: bool = parameter("boolean", default=False)


@with_parameters
class RandomParameters:
    """Parameter of algorithms that draw at random.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Seed of the draws.
    """

    random_state: int | np.random.RandomState | None = parameter(
        "random_state", default=None
    )


@with_parameters
class NormParameters:
    """A p-norm of the predictor.

    Parameters
    ----------
    p : float in (1, 2] or "sparse"
        Norm of the predictor (dimensionless); ``"sparse"`` is 1 + 1 / ln(n_features).
    """

    p: float | str = parameter(
        Interval(Real, 1.0, 2.0, closed="right"), StrOptions({"sparse"}), default=2.0
    )


@with_parameters
class PNormParameters(NormParameters):
    """A p-norm of the predictor, the intercept's coefficient included.

    Parameters
    ----------
    intercept_scaling : float
        Constant feature (units of X), as in LinearSVC; larger values penalise the intercept less.
    """

    intercept_scaling: float = parameter(POSITIVE, default=1.0)


@with_parameters
class LpParameters(PNormParameters, CommonParameters):
    """A classifier with a p-norm of the predictor, the intercept's coefficient included.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit an intercept (penalised: see ``intercept_scaling``).
    max_iter : int
        Epoch limit, including epochs before a warm start. An epoch has a step per row (example and
        other class).

    Attributes
    ----------
    margin_ : float
        Certified lower bound on this predictor's margin (in the q-norm, 1/p + 1/q = 1, constant
        feature included; units of X).
    margin_bound_ : float
        Certified upper bound on any predictor's margin (units of X).
    n_iter_ : int
        Epochs.
    """
