"""How estimators declare parameters: once, with default, constraint and description.

:func:`with_parameters` makes the annotated names of a class its parameters, as a dataclass does:
with an explicit ``__init__`` (keyword-only, and it only stores them, as scikit-learn asks for),
with the constraints by which scikit-learn validates them, and with a docstring that describes
all of them. A description is written once, in the docstring of the class that declares the
parameter; subclasses describe only what means something special there.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)
_HEADER = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)  # of a section of a docstring
_SMALL = 0.01  # numbers below are written with an exponent, as in default=1e-3


def parameter(*constraints: Any, default: Any) -> Any:
    """Declare a parameter: its default, and the values that scikit-learn lets pass.

    Parameters
    ----------
    *constraints
        One of them must hold, in the notation of scikit-learn's ``_parameter_constraints``.
    default
        Value of the parameter where none is given.

    Returns
    -------
    dataclasses.Field
        What stands behind the name and the type of the parameter, in the body of a class.
    """
    return field(default=default, metadata={"constraints": list(constraints)})


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(field, Field, parameter)
)
def with_parameters(cls: _Class) -> _Class:
    """Turn the annotated names of a class into its parameters.

    Parameters
    ----------
    cls : type
        A class whose body, and whose bases decorated likewise, say ``name: type = default`` or
        ``name: type = parameter(*constraints, default=default)``. A default that is given again
        in a subclass takes the place of the first; what is no parameter must not be annotated,
        unless as a ``ClassVar``. ``name: type = field(default=value, init=False)`` takes a
        parameter of a base away and leaves a constant of that name.

    Returns
    -------
    type
        The same class, with ``__init__``, ``_parameter_constraints`` and a docstring in which
        each parameter has the entry of the nearest class that describes it.

    References
    ----------
    PEP 681 (data class transforms), by which editors and type checkers know the signature;
    docstrings as in numpydoc's style guide, Section 4 (Parameters).

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from marginsvm.estimator.declaring import with_parameters
    >>> from marginsvm.estimator.parameters import CommonParameters
    >>> @with_parameters
    ... class Estimator(CommonParameters, BaseEstimator):
    ...     tol: float = 1e-6
    ...     speed: float = 2.0
    >>> Estimator(speed=3.0)
    Estimator(speed=3.0)
    """
    text = cls.__doc__  # before dataclass writes a signature where there is none
    made: Any = dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    made._parameter_constraints = constraints_of(made)
    made._own_docstring = text
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
                known[name] = known.pop(name, entry)  # the nearest text, at the farthest's place
    own = _sections(text)
    known = entries["Parameters"]
    parameters = [_with_default(known.get(f.name), f) for f in fields(cls) if f.init]
    sections = {
        "Parameters": "\n".join(parameters),
        "Attributes": "\n".join(entries["Attributes"].values()),
        **{header: body for header, body in own.items() if header and header not in entries},
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
    """Entries of a section by their names: a line that is not indented, and those below it."""
    entries = re.split(r"^(?=\S)", section.strip(), flags=re.MULTILINE)
    return {re.split(r"\W", entry)[0]: entry.rstrip() for entry in entries if entry}


def _with_default(entry: str | None, of: Field[Any]) -> str:
    """Entry of a parameter with the default that the class has, whatever the text said."""
    head, *lines = (entry or f"{of.name} : {of.type}").splitlines()
    if of.default is not MISSING:
        head = f"{head.split(', default=')[0]}, default={_written(of.default)}"
    return "\n".join([head, *lines])


def _written(value: Any) -> str:
    """Write a value as docstrings do: "gap", 1e-3, inf."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float) and 0.0 < abs(value) < _SMALL:
        mantissa, exponent = f"{value:e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return repr(value)
