"""Compilation by numba, or none where numba is not: importing this module imports it.

Without numba, loops run as the Python that they are written in, some hundred times slower, and
the first one that does says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np

_WHY_NOT = ""
try:
    from numba import njit
except ImportError as error:  # not installed, or not for this version of Python
    _WHY_NOT = str(error)


class NotCompiledWarning(RuntimeWarning):
    """Loops that numba would compile are run by Python, as it cannot be imported."""


@cache
def compiles() -> bool:
    """Whether loops are compiled; if not, say so, once in a process."""
    if not _WHY_NOT:
        return True
    warnings.warn(
        f"numba cannot be imported ({_WHY_NOT}), so the inner loops of some estimators are not "
        "compiled. Results are the same, but such fits take much longer. To compile them: pip "
        "install numba, on a version of Python that it supports.",
        NotCompiledWarning,
        stacklevel=3,
    )
    return False


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that compiles a loop on its first call; other threads run meanwhile.

    An entry from C, which numba would add, is left out, as it takes time to compile.

    The machine code is cached on disk, beside the file or, if that is read-only, with the
    user. Where neither can be written to, each process compiles its own.

    Parameters
    ----------
    **options
        Those of ``numba.njit``.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}

    def compile_loop(function: Callable[..., Any]) -> Any:
        if _WHY_NOT:
            return _interpreted(function)
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no directory that it may write to
            return njit(**options)(function)

    return compile_loop


def parts(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator for a part of compiled loops, which cannot be called from Python.

    Compiling takes about 10 ms for each statement, again for each copy where a part is inlined, and
    another 50 ms for an entry from Python, which a part therefore lacks.

    Parameters
    ----------
    **options
        Those of ``numba.njit``.
    """
    if _WHY_NOT:
        return lambda function: function
    without: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(**without, **options)


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop as Python runs it: like compiled code, it says nothing of overflows and 1/0."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        compiles()
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run
