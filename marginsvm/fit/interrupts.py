"""Ctrl-C waits for the end of an iteration, as in OSQP, SCS and Ipopt.

Python may raise KeyboardInterrupt between any two instructions, also while a thread pool holds a
lock or numba compiles. Here it is deferred to the end of an iteration, where states are consistent.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Deferred:
    """A signal handler that remembers one interrupt; a second one is let through at once."""

    def __init__(self, handler: Callable[[int, Any], Any]) -> None:
        self.handler = handler
        self.waiting = self.leaving = False

    def __call__(self, signum: int, frame: Any) -> None:
        if self.waiting and not self.leaving:
            # stays pending: Python discards exceptions raised in destructors
            self.handler(signum, frame)
        else:
            self.waiting = True

    def release(self) -> None:
        if self.waiting:
            self.waiting = False
            self.handler(signal.SIGINT, None)


# The handler of the outermost call that defers interrupts, if any.
_deferring: _Deferred | None = None


def _in_main_thread() -> bool:
    """Whether this is the main thread, which receives interrupts."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Context in which interrupts wait for ``let_interrupts_through``, or for its end."""
    global _deferring
    handler = signal.getsignal(signal.SIGINT) if _in_main_thread() else None
    # an enclosing fit may have deferred them already
    if not callable(handler) or isinstance(handler, _Deferred):
        yield
        return
    deferred = _deferring = _Deferred(handler)
    try:
        signal.signal(signal.SIGINT, deferred)
        yield
    except KeyboardInterrupt:
        deferred.waiting = False  # it is being raised already
        raise
    finally:
        deferred.leaving = True  # only record further ones, so that the old handler is restored
        signal.signal(signal.SIGINT, handler)
        _deferring = None
        deferred.release()


def let_interrupts_through() -> None:
    """Call the user's handler (by default it raises KeyboardInterrupt) if an interrupt waits."""
    deferred = _deferring
    if deferred is not None and deferred.waiting and _in_main_thread():
        deferred.release()
