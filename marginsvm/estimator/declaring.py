"""How estimators declare parameters: each once, with a default, constraints and a description.

:func:`with_parameters` makes the annotated names of a class its parameters, as a dataclass does.
The class gets an explicit ``__init__`` (keyword-only, which only stores the values, as
scikit-learn requires), the constraints by which scikit-learn validates them, and a docstring that
describes all of them. A description is written once, in the docstring of the class that declares
the parameter; a subclass repeats it only where the parameter has another meaning.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

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
    >>> from marginsvm.estimator.declaring import with_parameters
    >>> from marginsvm.estimator.parameters import CommonParameters
    >>> @with_parameters
    ... class Estimator(CommonParameters, BaseEstimator):
    ...     tol: float = 1e-6
    ...     speed: float = 2.0
    >>> Estimator(speed=3.0)
    Estimator(speed=3.0)
    """
    text = cls.__doc__  # read first, as dataclass() writes a docstring where there is none
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
                # the text of the subclass, at the position of the base's
                known[name] = known.pop(name, entry)
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
