"""Threads, interrupts and forks: BLAS on one thread, passes over blocks, and Ctrl-C that waits.

BLAS wakes its threads for every block, which costs more than the block; a few threads of ours, each
with BLAS on one, reach the memory's bandwidth. Nor do sums depend on their number.

Python may raise KeyboardInterrupt between any two instructions, also while a thread pool holds a
lock or numba compiles. Here it is deferred to the end of an iteration, where states are consistent,
as in OSQP, SCS and Ipopt.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ContextDecorator, contextmanager
from contextvars import copy_context
from copy import copy
from functools import cache
from typing import Any, Generic, TypeVar, overload

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}  # by number of threads
_inside = 0  # limits belong to the process: how many ask for one
_before: list[int] = []  # threads of each library while none does


@cache
def _blas() -> list[Any]:
    """The BLAS libraries in this process; finding them takes milliseconds."""
    import scipy.linalg.blas  # noqa: F401 - brings a BLAS of its own

    return ThreadpoolController().select(user_api="blas").lib_controllers


def n_threads() -> int:
    """Threads that BLAS would take: our passes take as many (joblib's workers limit it)."""
    with _lock:
        return max([1, *(_before if _inside else _numbers())])


class single_threaded_blas(ContextDecorator):  # noqa: N801 - a context manager
    """Confine BLAS to one thread; safe to enter from several threads at once."""

    def __enter__(self) -> None:
        global _inside, _before
        with _lock:
            if _inside == 0:
                _before = _numbers()
                _set([1] * len(_before))
            _inside += 1

    def __exit__(self, *error: object) -> None:
        global _inside
        with _lock:
            _inside = max(_inside - 1, 0)  # in a fork, it was set to 0 already
            if _inside == 0:
                _set(_before)


def _numbers() -> list[int]:
    return [library.get_num_threads() for library in _blas()]


def _set(numbers: list[int]) -> None:
    for library, before, number in zip(_blas(), _before, numbers, strict=True):
        if before != 1:  # asking it would take as long as a small product
            # threadpoolctl ignores limits of any thread but the first that set one
            clear = getattr(library, "clear_controlling_thread", lambda force: None)
            clear(force=True)
            library.set_num_threads(number)
            clear(force=True)


def _after_fork() -> None:
    """A forked child has no other threads: reset the counts and the pool."""
    global _inside
    _pools.clear()  # their threads are the parent's
    if _inside:
        _inside = 0
        _set(_before)
    _lock.release()


if hasattr(os, "register_at_fork"):  # while the lock is held, no limits are half set
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork
    )


def ordered_map(work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """Results of ``work`` in the order of ``parts``, whatever the number of threads.

    This thread and the pool's each take the next part. Tasks of the pool that have not begun when
    no part remains are cancelled, so that nested calls cannot deadlock.
    """
    results: list[Any] = [None] * len(parts)
    todo = deque(range(len(parts)))

    def walk() -> None:
        while todo:
            try:
                i = todo.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results[i] = work(parts[i])
            except BaseException:
                todo.clear()  # no thread goes on
                raise

    with single_threaded_blas():
        helpers = min(n_threads(), len(parts)) - 1
        others = [
            _pool(helpers).submit(copy_context().run, walk) for _ in range(helpers)
        ]
        try:
            walk()
        finally:
            wait([other for other in others if not other.cancel()])
        for other in others:
            if not other.cancelled():
                other.result()
    return results


def _pool(workers: int) -> ThreadPoolExecutor:
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, "marginsvm")
        return _pools[workers]


# Interrupts.


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
        # only record further ones, so that the old handler is restored
        deferred.leaving = True
        signal.signal(signal.SIGINT, handler)
        _deferring = None
        deferred.release()


def let_interrupts_through() -> None:
    """Call the user's handler (by default it raises KeyboardInterrupt) if an interrupt waits."""
    deferred = _deferring
    if deferred is not None and deferred.waiting and _in_main_thread():
        deferred.release()


class cached_property(Generic[T]):  # noqa: N801 - as functools has it
    """``functools.cached_property`` as it is from Python 3.12 on: without a lock.

    The lock of 3.11 is held while a value is computed, one lock for all instances. A process that
    forks while another of its threads computes one would wait for it forever in the child.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        # The instance's own dictionary comes first: from now on, this is not called again.
        value = vars(instance)[self._name] = self._compute(instance)
        return value


def copied(instance: S, *kept: str) -> S:
    """A shallow copy without the values of cached properties, but for those kept."""
    other = copy(instance)
    for name in [*vars(other)]:
        if name not in kept and isinstance(
            getattr(type(other), name, None), cached_property
        ):
            del vars(other)[name]
    return other
