"""Ctrl-C waits for the end of a round, as in OSQP, SCS and Ipopt.

An exception may be raised between any two lines, in a thread pool's lock or numba's
dispatcher as well; held back, it meets a fit only where nothing is half done.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


class _Deferred:
    """A signal handler that remembers one interrupt; a second one is let through at once."""

    def __init__(self, handler: Callable[[int, Any], Any]) -> None:
        self.handler = handler
        self.waiting = self.leaving = False

    def __call__(self, signum: int, frame: Any) -> None:
        if self.waiting and not self.leaving:
            self.handler(signum, frame)  # and still waits: Python drops what destructors raise
        else:
            self.waiting = True

    def release(self) -> None:
        if self.waiting:
            self.waiting = False
            self.handler(signal.SIGINT, None)


def _handler() -> Any:
    """Handler of interrupts, which reach the main thread only."""
    main = threading.current_thread() is threading.main_thread()
    return signal.getsignal(signal.SIGINT) if main else None


@contextmanager
def _deferred_interrupts() -> Iterator[None]:
    handler = _handler()
    if not callable(handler) or isinstance(handler, _Deferred):  # or a fit within a fit
        yield
        return
    deferred = _Deferred(handler)
    try:
        signal.signal(signal.SIGINT, deferred)
        yield
    except KeyboardInterrupt:
        deferred.waiting = False  # it has got through
        raise
    finally:
        deferred.leaving = True  # from here on it does not raise: its predecessor must return
        signal.signal(signal.SIGINT, handler)
        deferred.release()


def interrupts_wait(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method in which interrupts are to wait for ``let_interrupts_through``.

    What has been waiting at its end is raised when all is done.
    """

    @wraps(method)
    def patient(*args: Any, **kwargs: Any) -> Any:
        with _deferred_interrupts():
            return method(*args, **kwargs)

    return patient


def let_interrupts_through() -> None:
    """Raise KeyboardInterrupt, or do what else the user's handler does, if one waits."""
    handler = _handler()
    if isinstance(handler, _Deferred):
        handler.release()
