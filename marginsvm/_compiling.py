"""Compilation by numba: importing this module imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


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
    without: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(**without, **options)
