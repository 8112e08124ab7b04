"""Small BLAS products on our own threads, each product on one thread of BLAS.

BLAS wakes its threads for every block of rows, which costs more than the block; a few
threads of ours, each walking through blocks with single-threaded products, reach the
memory's speed (measured on 21150 x 784: 5.3 ms a pass against 8.3). Sums over examples do
not round as they do elsewhere, either: BLAS adds in an order that depends on its threads,
which are fewer in joblib's workers and while another thread fits.
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
_pools: dict[int, ThreadPoolExecutor] = {}  # by number of threads: one takes 0.3 ms to start
_inside = 0  # number of passes that run now: limits belong to the process, not to a pass
_before: list[int] = []  # threads of each BLAS library while no pass runs


@cache
def _blas() -> list[Any]:
    """The BLAS libraries in this process; finding them costs milliseconds."""
    import scipy.linalg.blas  # noqa: F401 - brings a BLAS of its own, which must be found, too

    return ThreadpoolController().select(user_api="blas").lib_controllers


def n_threads() -> int:
    """Threads that BLAS would take: our passes take as many (joblib's workers limit it)."""
    with _lock:
        now = _before if _inside else [lib.get_num_threads() for lib in _blas()]
        return max([1, *now])


class single_threaded_blas(ContextDecorator):  # noqa: N801 - a context manager
    """Confine BLAS to one thread; safe to enter from several threads at once."""

    def __enter__(self) -> None:
        global _inside, _before
        with _lock:
            if _inside == 0:
                _before = [lib.get_num_threads() for lib in _blas()]
                _set_threads(_before, [1] * len(_before))
            _inside += 1

    def __exit__(self, *error: object) -> None:
        global _inside
        with _lock:
            _inside = max(_inside - 1, 0)  # in a fork, it was set to 0 already
            if _inside == 0:
                _set_threads([1] * len(_before), _before)


def _after_fork() -> None:
    """In a forked child, no pass of another thread will ever end."""
    global _inside
    _pools.clear()  # their threads are the parent's
    if _inside:
        _inside = 0
        _set_threads([1] * len(_before), _before)
    _lock.release()


if hasattr(os, "register_at_fork"):  # while the lock is held, no limits are half set
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork
    )


def _set_threads(now: list[int], numbers: list[int]) -> None:
    for lib, old, new in zip(_blas(), now, numbers, strict=True):
        if old != new:
            _let_any_thread_set(lib)
            lib.set_num_threads(new)
            _let_any_thread_set(lib)


def _let_any_thread_set(lib: Any) -> None:
    """Newer threadpoolctl ignores limits that are set by any thread but the first that set one."""
    clear = getattr(lib, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def ordered_map(work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """Results of ``work`` in the order of ``parts``, whatever the number of threads.

    This thread and some helpers each take the next part that is left; handing every part to
    a pool, and waiting for it, would cost 0.1 ms each. Helpers that have not begun when no part
    is left are cancelled, so that work within work cannot wait for itself.
    """
    if len(parts) == 1:
        with single_threaded_blas():
            return [work(parts[0])]
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
