"""A momentum round on a cluster of two processes, next to the bare work of its blocks.

    python examples/benchmarks/dask_rounds.py [rows] [features] [chunks]

The bare work: two processes that hold half of the chunks each, and do what a round does with
them whenever they are told to (a pipe, no scheduler). The scheduler's own time: the same
number of tasks that do nothing. All three take turns; medians. Then whole fits, on the cluster
and in memory (on all cores), in turns; the fastest of three.

The chunks come from this process, as with ``da.from_array``: Dask then leaves them at odd
addresses, where products take longer. "generated" as a fourth argument: workers make them.
"""

import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.exceptions import ConvergenceWarning

from marginsvm import MaxMarginClassifier, MomentumMarginClassifier
from marginsvm.dask import DaskMargin
from marginsvm.data import passes
from marginsvm.data.cluster import Chunk
from marginsvm.data.threads import single_threaded_blas
from marginsvm.kernel_matrix import make_rows
from marginsvm.papers.momentum import Momentum
from marginsvm.responses import softmax

REPEAT = 25


def examples(number, rows, features):
    """Rows of a chunk, the classes alternating, a wide margin apart."""
    rng = np.random.default_rng(number)
    y = np.arange(rows) % 2
    X = rng.uniform(-1.0, 1.0, (rows, features))
    X[:, 0] = (2 * y - 1) * rng.uniform(0.2, 1.0, rows)
    return X, y


def of_chunk(block_info, rows, features, part):
    (number,) = block_info[None]["chunk-location"][:1]
    return examples(number, rows, features)[part]


def hold(numbers, rows, features):
    global held
    held = []
    for number in numbers:
        X, y = examples(number, rows, features)
        held.append(Chunk(X, make_rows(y, 2, balanced=True)))


def bare_round(W):
    with single_threaded_blas():
        for chunk in held:
            block_sums = partial(softmax.block_sums, mu=1.0)
            blocks, merge = chunk.blocks(), softmax.merge
            passes.margins_and_sums(chunk.rows, blocks, None, W, 0.0, block_sums, merge)


def nothing(chunk, _):
    return 0


def of_cluster(n, features, chunks, generated):
    """X and y, persisted."""
    rows = n // chunks
    sizes = ((rows,) * chunks,)
    if generated:
        part = partial(da.map_blocks, of_chunk, dtype=float, rows=rows, features=features)
        X, y = part(chunks=(*sizes, (features,)), part=0), part(chunks=sizes, part=1)
    else:
        X, y = in_memory(n, features, chunks)
        X, y = da.from_array(X, chunks=(rows, features)), da.from_array(y, chunks=rows)
    return X.persist(), y.persist()


def in_memory(n, features, chunks):
    parts = [examples(number, n // chunks, features) for number in range(chunks)]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def timed_rounds(client, X, y, bare):
    """Seconds of rounds, of their bare work, and of tasks that do nothing."""
    times = {"bare": [], "round": [], "scheduler": []}

    def clock(name, work):
        begin = time.perf_counter()
        result = work()
        times[name].append(time.perf_counter() - begin)
        return result

    def tasks_that_do_nothing(held):
        client.gather(client.map(nothing, held, [0] * len(held), pure=False))

    class TimedMomentum(Momentum):
        def step(self, problem, state):
            new = clock("round", lambda: super(TimedMomentum, self).step(problem, state))
            clock("bare", bare)
            clock("scheduler", lambda: tasks_that_do_nothing(problem._store._chunks))
            return new

    class Timed(MomentumMarginClassifier):
        def _algorithm(self):
            return TimedMomentum()

        __init__ = MomentumMarginClassifier.__init__

    DaskMargin(Timed(max_iter=REPEAT, tol=0.0), client=client).fit(X, y)
    return [1e3 * np.median(times[name]) for name in ("bare", "round", "scheduler")]


def timed_fits(client, X, y, local, estimator):
    """Seconds of the fastest of three fits on the cluster, and in memory."""
    found = [], []
    for _ in range(3):
        for times, fit in zip(
            found,
            (lambda: DaskMargin(estimator, client=client).fit(X, y), lambda: estimator.fit(*local)),
            strict=True,
        ):
            begin = time.perf_counter()
            fit()
            times.append(time.perf_counter() - begin)
    return map(min, found)


def main(n=2_000_000, features=50, chunks=8, generated=""):
    n, features, chunks = int(n), int(features), int(chunks)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", "Sending large graph")
    halves = np.array_split(np.arange(chunks), 2)
    pools = [
        ProcessPoolExecutor(1, initializer=hold, initargs=(half, n // chunks, features))
        for half in halves
    ]

    def bare():
        W = np.ones(features)
        return [future.result() for future in [pool.submit(bare_round, W) for pool in pools]]

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        X, y = of_cluster(n, features, chunks, generated)
        alone, one, scheduler = timed_rounds(client, X, y, bare)
        for pool in pools:
            pool.shutdown()
        print(f"{n} x {features} in {chunks} chunks, 2 processes, medians of {REPEAT}")
        print(f"  the blocks' work, two processes and pipes {alone:8.1f} ms")
        print(f"  a momentum round by Dask                  {one:8.1f} ms, x{one / alone:.2f}")
        print(f"  {chunks} tasks that do nothing                   {scheduler:8.1f} ms")
        local = in_memory(n, features, chunks)
        for name, estimator in (
            ("100 rounds of momentum", MomentumMarginClassifier(max_iter=100, tol=0.0)),
            ("MaxMarginClassifier, C = 1", MaxMarginClassifier(C=1.0)),
        ):
            there, here = timed_fits(client, X, y, local, estimator)
            print(f"  {name:<41} {there:8.2f} s, in memory {here:.2f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
