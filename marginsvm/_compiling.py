"""Loops over coordinates, compiled by numba; without it they run as Python, and say so once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from importlib import import_module
from typing import Any

import numpy as np

from marginsvm._warnings import warn

njit: Any = None
with suppress(ImportError):  # it is not installed, or not for this version of Python
    njit = import_module("numba").njit


class NotCompiledWarning(RuntimeWarning):
    """Loops that numba would compile are run by Python, as it cannot be imported."""


def compiled(
    otherwise: Callable[..., Any] | None = None, /, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that compiles a loop on its first call; other threads run meanwhile.

    The machine code is cached on disk, beside the file or, if that is read-only, with the
    user. Where neither can be written to, each process compiles its own.

    Parameters
    ----------
    otherwise : callable, default None
        What does as well where numba is missing; by default the loop, run by Python.
    **options
        Those of ``numba.njit``.
    """
    # an entry from C takes time to compile
    options |= {"nogil": True, "no_cfunc_wrapper": True}

    def compile_loop(function: Callable[..., Any]) -> Any:
        if njit is None:
            return otherwise or _interpreted(function)
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
    if njit is None:
        return lambda function: function
    without: dict[str, object] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(**without, **options)


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run the loop in Python, silent about overflow and division by zero, as compiled code is."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        _say_once()
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run


@cache
def _say_once() -> None:
    warn(
        "numba cannot be imported, so the inner loops of some estimators are not compiled. Results "
        "are the same, but such fits take much longer. To compile them: pip install numba, on a "
        "version of Python that it supports.",
        NotCompiledWarning,
    )
