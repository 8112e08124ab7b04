"""Passes over blocks in several threads, each with BLAS on one thread.

BLAS wakes its threads for every block, which costs more than the block; a few threads of ours, each
with BLAS on one, reach the memory's bandwidth. Nor do sums depend on their number.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ContextDecorator
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")

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
    for library, number in zip(_blas(), numbers, strict=True):
        if library.get_num_threads() != number:
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
        others = [_pool(helpers).submit(walk) for _ in range(helpers)]
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
