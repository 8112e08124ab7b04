"""A momentum round on a cluster of two processes, next to the bare work of its blocks.

    python examples/benchmarks/dask_rounds.py [rows] [features] [chunks]

The bare work: two processes that hold half of the rows each, and do what a round does with
them whenever they are told to (a pipe, no scheduler). The scheduler's own time: the same
number of tasks that do nothing. All three take turns; medians.
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from marginsvm import MomentumMarginClassifier
from marginsvm.algorithms.momentum import Momentum
from marginsvm.dask import DaskMargin
from marginsvm.data import passes
from marginsvm.data.cluster import Chunk
from marginsvm.data.threads import single_threaded_blas
from marginsvm.kernel_matrix import make_rows
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


def hold(first, chunks, rows, features):
    global held
    held = []
    for number in range(first, first + chunks):
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


def main(n=2_000_000, features=50, chunks=8):
    rows = n // chunks
    pools = [
        ProcessPoolExecutor(1, initializer=hold, initargs=(i, chunks // 2, rows, features))
        for i in (0, chunks // 2)
    ]
    times = {"bare": [], "round": [], "scheduler": []}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        part = partial(da.map_blocks, of_chunk, dtype=float, rows=rows, features=features)
        X = part(chunks=((rows,) * chunks, (features,)), part=0).persist()
        y = part(chunks=((rows,) * chunks,), part=1).persist()

        def other(round_seconds, store, W):
            begin = time.perf_counter()
            for future in [pool.submit(bare_round, W) for pool in pools]:
                future.result()
            times["bare"].append(time.perf_counter() - begin)
            begin = time.perf_counter()
            client.gather(client.map(nothing, store._chunks, [0] * chunks, pure=False))
            times["scheduler"].append(time.perf_counter() - begin)
            times["round"].append(round_seconds)

        class TimedMomentum(Momentum):
            def step(self, problem, state):
                begin = time.perf_counter()
                state = super().step(problem, state)
                other(time.perf_counter() - begin, problem._store, np.ones(features))
                return state

        class Timed(MomentumMarginClassifier):
            def _algorithm(self):
                return TimedMomentum()

            __init__ = MomentumMarginClassifier.__init__

        clf = DaskMargin(Timed(max_iter=REPEAT, tol=0.0), client=client)
        begin = time.perf_counter()
        clf.fit(X, y)
        whole = time.perf_counter() - begin
    for pool in pools:
        pool.shutdown()
    bare, one, scheduler = (1e3 * np.median(times[name]) for name in ("bare", "round", "scheduler"))
    print(f"{n} x {features} in {chunks} chunks, 2 processes, medians of {REPEAT}")
    print(f"  the blocks' work, two processes and pipes {bare:8.1f} ms")
    print(f"  a momentum round by Dask                  {one:8.1f} ms, x{one / bare:.2f}")
    print(f"  {chunks} tasks that do nothing                   {scheduler:8.1f} ms")
    whole -= sum(times["bare"]) + sum(times["scheduler"])
    print(f"  the whole fit, without these two          {1e3 * whole:8.1f} ms")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
