"""A cluster of one process: a client and workers with the calls that ``RemoteStore`` makes."""

import asyncio
import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import SimpleNamespace

import pytest


class FakeFuture:
    """What a task gave. ``key`` names it."""

    def __init__(self, key):
        self.key = key


class FakeWorker:
    """A worker: what it holds, its threads, and how it reaches the others.

    Attributes
    ----------
    lost : bool
        Nobody reaches it, though the scheduler has not noticed: tasks that need it will.
    """

    def __init__(self, name, nthreads, client):
        self.name, self.client, self.data, self.lost = name, client, {}, False
        self.state = SimpleNamespace(nthreads=nthreads)
        self.executors = {"default": ThreadPoolExecutor(nthreads, name)}  # threads have its name

    async def answer(self, function, args, sender):
        """What Dask's handler of "run" does: a response, or an error of the connection."""
        self.client.messages.append((sender, self.name))
        if self.lost:
            raise OSError(f"{self.name} is gone")
        try:
            result = await pickle.loads(function)(*pickle.loads(args), dask_worker=self)
        except Exception as error:
            return {"status": "error", "exception": copied(error)}
        return {"status": "OK", "result": copied(result)}

    def rpc(self, name):
        async def run(function, args):
            return await self.client.workers[name].answer(function, args, self.name)

        return SimpleNamespace(run=run)


class FakeClient:
    """Runs every task at once, on a worker that holds what it needs.

    Functions, arguments and results travel as on a network: all are pickled, and none is shared.

    Parameters
    ----------
    threads : dict of str to int
        Workers, by name.

    Attributes
    ----------
    messages : list of (str, str)
        Who asked whom, past the tasks; "client" is the client.
    """

    def __init__(self, threads):
        pytest.importorskip("distributed")  # whose pickles workers send
        self.workers = {name: FakeWorker(name, n, self) for name, n in threads.items()}
        self.keys, self.messages, self.known = count(), [], {}

    def scatter(self, value, *names):
        future = FakeFuture(f"key-{next(self.keys)}")
        self.known[future.key] = copied(value)
        for name in names:
            self.workers[name].data[future.key] = copied(value)
        return future

    def submit(self, work, /, *args, pure=True, **kwargs):
        """Where it needs something that has been lost, this is computed again first."""
        for name in [name for name, worker in self.workers.items() if worker.lost]:
            del self.workers[name]
        holders = [name for f in args if isinstance(f, FakeFuture) for name in self.found(f)]
        values = [copied(self.known[a.key]) if isinstance(a, FakeFuture) else a for a in args]
        name = holders[0] if holders else next(iter(self.workers))
        return self.scatter(copied(work)(*copied(values), **copied(kwargs)), name)

    def found(self, future):
        """Who holds something now, after its loss has been made good."""
        if not self.who_has([future])[future.key]:
            first = next(iter(self.workers.values()))
            first.data[future.key] = copied(self.known[future.key])
        return self.who_has([future])[future.key]

    def map(self, work, /, *iterables, pure=True, **kwargs):
        each = zip(*iterables, strict=True)
        return [self.submit(work, *args, pure=pure, **kwargs) for args in each]

    def gather(self, some):
        return [copied(self.known[future.key]) for future in some]

    def who_has(self, some):
        return {f.key: [n for n, w in self.workers.items() if f.key in w.data] for f in some}

    def sync(self, function, *args):
        return asyncio.run(function(*args))

    async def run(self, function, *args, workers, on_error):
        (name,) = workers
        try:
            found = await self.workers[name].answer(*map(pickle.dumps, (function, args)), "client")
        except OSError as error:
            return {name: error}
        return {name: found["result" if found["status"] == "OK" else "exception"]}


def dying(work, pid, *args):
    """Work in the middle of which the process of this number is killed."""
    if os.getpid() == pid:
        os.kill(pid, signal.SIGKILL)
    return work(*args)


def copied(value):
    return pickle.loads(pickle.dumps(value))
