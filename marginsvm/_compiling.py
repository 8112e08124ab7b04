"""Compilation by numba: importing this module imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that compiles a loop on its first call; other threads run meanwhile.

    The machine code is cached on disk, beside the file or, if that is read-only, with the
    user. Where neither can be written to, each process compiles its own.

    Parameters
    ----------
    **options
        Those of ``numba.njit``.
    """

    def compile_loop(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # numba found no directory that it may write to
            return njit(nogil=True, **options)(function)

    return compile_loop
