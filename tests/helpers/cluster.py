"""A cluster of one process: a client with the five calls that ``RemoteStore`` makes."""

import pickle
from itertools import count


class FakeFuture:
    """What a task gave. ``key`` names it; ``worker`` holds it."""

    def __init__(self, key, worker, value):
        self.key, self.worker, self.value = key, worker, value


class FakeClient:
    """Runs every task at once, on the worker of its first chunk.

    Functions, arguments and results travel as on a network: all are pickled, and none is shared.

    Parameters
    ----------
    threads : dict of str to int
        Workers, by name.
    """

    def __init__(self, threads):
        self.threads, self.keys, self.tasks = threads, count(), []

    def scatter(self, value, worker):
        return FakeFuture(f"key-{next(self.keys)}", worker, copied(value))

    def submit(self, work, /, *args, pure=True, **kwargs):
        held = [future.worker for future in futures(args)]
        worker = held[0] if held else next(iter(self.threads))
        self.tasks.append((worker, getattr(work, "func", work).__name__))
        return self.scatter(copied(work)(*known(args), **known(kwargs)), worker)

    def map(self, work, /, *iterables, pure=True, **kwargs):
        each = zip(*iterables, strict=True)
        return [self.submit(work, *args, pure=pure, **kwargs) for args in each]

    def gather(self, some):
        return known(some)

    def who_has(self, some):
        return {future.key: [future.worker] for future in some}

    def nthreads(self):
        return self.threads


def copied(value):
    return pickle.loads(pickle.dumps(value))


def futures(value):
    """All futures in (nested) tuples and lists."""
    if isinstance(value, FakeFuture):
        return [value]
    return [f for v in value for f in futures(v)] if isinstance(value, list | tuple) else []


def known(value):
    """The same with every future replaced by what it holds; the rest is copied."""
    if isinstance(value, FakeFuture):
        return copied(value.value)
    if isinstance(value, dict):
        return {name: known(v) for name, v in value.items()}
    return type(value)(map(known, value)) if type(value) in (list, tuple) else copied(value)
