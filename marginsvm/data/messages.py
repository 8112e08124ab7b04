"""Questions about chunks: one message to each worker that holds some, instead of Dask's tasks.

A task costs the scheduler milliseconds, and a round of one task for each worker took ten times
as long as its work. So a question goes to the workers as a function that Dask runs at once, and
that finds the chunks in the worker's memory. Nothing stays on a worker between two questions:
chunks may be replicated, moved, spilled to disk, or lost and computed again. So where they are is
looked up each time, and chunks that gave no answer are asked again.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Part = tuple[list[int], T]  # numbers of some chunks, in order, and their merged result
# Address of a worker, and its chunks: for each its number, its key and the arguments of the work.
Member = tuple[str, list[tuple[int, str, tuple[Any, ...]]]]

# Largest number of workers to which one machine sends messages, if results are merged: others are
# reached through these. With a smaller number, messages cost more than merging on the way saves.
_BRANCHES = 8
# Memory of the results of all chunks, unmerged (1 MiB take about a millisecond to send). Up to it,
# they are merged at the end and in the chunks' order, so that they do not depend on where the
# chunks are, to the last bit.
_UNMERGED_BYTES = 2**20
# Largest number of times that a thread of a worker is given chunks for one question. Each costs up
# to a millisecond; but chunks on disk are read when they are given, and may be too many at once.
_HANDED_OVER = 4
# Number of attempts at a question. The first finds chunks that are not computed yet; and Dask,
# too, gives a task up for which several workers have died.
_ATTEMPTS = 8


@dataclass(frozen=True)
class ChunkQuestion(Generic[T]):
    """What is asked of chunks.

    Parameters
    ----------
    work : callable
        Called with a chunk and its arguments.
    n_chunks : int
        Number of all chunks.
    merge : callable, default=None
        Merges two results; None: they are returned one by one.
    """

    work: Callable[..., T]
    n_chunks: int
    merge: Callable[[T, T], T] | None = None

    def groups(self, team: list[Member]) -> list[list[Member]]:
        """Workers in groups; the first of each group asks the others."""
        n = len(team)
        size = -(-n // _BRANCHES) if self.merge and n else 1
        return [team[i : i + size] for i in range(0, n, size)]

    def joined(self, parts: Iterable[Part[T]]) -> list[Part[T]]:
        """Parts in the order of their chunks; merged if those of all chunks would be large."""
        parts = in_order(parts)
        if self.merge is None or len(parts) < 2:
            return parts
        if self.n_chunks * _size(parts[0][1]) <= _UNMERGED_BYTES:
            return parts
        return [(sorted(chain(*(part[0] for part in parts))), self.merged(parts))]

    def merged(self, parts: list[Part[T]]) -> T:
        """The merged result of all parts."""
        assert self.merge is not None
        return reduce(self.merge, (result for _, result in parts))


def in_order(parts: Iterable[Part[T]]) -> list[Part[T]]:
    """Parts in the order of their chunks."""
    return sorted(parts, key=lambda part: part[0])


def ask(
    client: Any, chunks: list[Any], question: ChunkQuestion[T], given: dict[int, tuple[Any, ...]]
) -> list[Part[T]]:
    """Ask the workers that hold some chunks, and again what has not been answered.

    Parameters
    ----------
    client : distributed.Client, synchronous
    chunks : list of Future
    question : ChunkQuestion
    given : dict
        Arguments of the work for the chunks that are asked, by their number.

    Returns
    -------
    list of (list of int, result)
        In the order of the chunks.

    Raises
    ------
    RuntimeError
        If workers are lost again and again.
    """
    parts: list[Part[T]] = []
    missing, failed = sorted(given), Counter[str]()
    error: Exception | None = None
    for attempt in range(_ATTEMPTS):
        if attempt > 0:  # tasks wait until Dask has found out who is lost, and computed it again
            client.gather(client.map(_there, [chunks[c] for c in missing], pure=False))
        holders = client.who_has([chunks[c] for c in missing])
        if not all(holders.get(chunks[c].key) for c in missing):
            continue
        groups = question.groups(_team(chunks, holders, missing, given, failed))
        answers = client.sync(_answers, client, question, groups)
        for group, answer in zip(groups, answers, strict=True):
            if isinstance(answer, bytes):
                parts += pickle.loads(answer)
            elif isinstance(answer, OSError):  # a connection has broken: Dask raises these
                failed[group[0][0]] += 1
                error = answer
            else:
                raise answer
        missing = sorted(set(given).difference(*(part[0] for part in parts)))
        if not missing:
            return in_order(parts)
    raise RuntimeError(
        f"the workers gave no answer for {len(missing)} of {len(given)} chunks in {_ATTEMPTS} "
        "attempts. Workers that are lost again and again may have too little memory: their logs say"
    ) from error


def _team(
    chunks: list[Any],
    holders: dict[str, Sequence[str]],
    asked: list[int],
    given: dict[int, tuple[Any, ...]],
    failed: Counter[str],
) -> list[Member]:
    """Workers and their chunks: of several holders, the one that failed least and has fewest."""
    team: dict[str, list[tuple[int, str, tuple[Any, ...]]]] = {}
    for c in asked:
        key = chunks[c].key
        worker = min(holders[key], key=lambda w: (failed[w], len(team.get(w, ())), w))
        team.setdefault(worker, []).append((c, key, given[c]))
    return list(team.items())


async def _answers(
    client: Any, question: ChunkQuestion[T], groups: list[list[Member]]
) -> list[Any]:
    """Answers of groups of workers, or why there is none."""

    async def answer(group: list[Member]) -> Any:
        address = group[0][0]
        found = await client.run(_answer, question, group, workers=[address], on_error="return")
        return found[address]

    return await asyncio.gather(*map(answer, groups), return_exceptions=True)


# What workers do.


def _there(chunk: Any) -> None:
    """Do nothing, in a task that waits for a chunk."""


async def _answer(question: ChunkQuestion[T], group: list[Member], dask_worker: Any) -> bytes:
    """Parts of a worker, which is the first of a group, and of all others in the group.

    They are pickled here, as Dask would make a message of each array.
    """
    from distributed.protocol.pickle import dumps

    async def passed_on(below: list[Member]) -> list[Part[T]]:
        message = {"function": dumps(_answer), "args": dumps((question, below))}
        try:
            return pickle.loads(_unwrapped(await dask_worker.rpc(below[0][0]).run(**message)))
        except OSError:  # this worker is lost, and its chunks remain without an answer
            return []

    others = [passed_on(below) for below in question.groups(group[1:])]
    found = await asyncio.gather(_own_parts(question, group[0], dask_worker), *others)
    answer: bytes = dumps(question.joined(chain(*found)))
    return answer


def _size(result: Any) -> int:
    """Size of a result in a message, in bytes."""
    from distributed.protocol.pickle import dumps

    arrays: list[pickle.PickleBuffer] = []
    rest = dumps(result, buffer_callback=arrays.append)
    return len(rest) + sum(array.raw().nbytes for array in arrays)


def _unwrapped(response: dict[str, Any]) -> Any:
    from distributed.core import clean_exception

    if response["status"] == "error":
        _, error, traceback = clean_exception(**response)
        assert error is not None
        raise error.with_traceback(traceback)
    return response["result"]


async def _own_parts(question: ChunkQuestion[T], member: Member, dask_worker: Any) -> list[Part[T]]:
    """Results of the chunks that are in this worker's memory, on all its threads."""
    threads, mine, parts = dask_worker.state.nthreads, member[1], []
    size = -(-len(mine) // (_HANDED_OVER * threads))
    todo = deque(mine[i : i + size] for i in range(0, len(mine), size))

    def work(some: list[tuple[int, Any, tuple[Any, ...]]]) -> list[Part[T]]:
        done: list[Part[T]] = []
        for c, chunk, args in some:
            done.append(([c], question.work(chunk, *args)))
            if len(done) == 2:  # large results are merged as they come, and small ones later
                done = question.joined(done)
        return done

    async def walk() -> None:
        loop, executor = asyncio.get_running_loop(), dask_worker.executors["default"]
        while todo:
            held = [(c, dask_worker.data.get(key), args) for c, key, args in todo.popleft()]
            some = [given for given in held if given[1] is not None]
            parts.extend(await loop.run_in_executor(executor, work, some))

    await asyncio.gather(*(walk() for _ in range(threads)))
    return parts
