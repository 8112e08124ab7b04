"""A set larger than memory should hold: a pass over it next to summing its file.

    python examples/benchmarks/beyond_memory.py FOLDER

makes the set in the folder (once; 8 GB, the margin known), fits it from there, and prints the
passes over the file, the certified margin next to the known one, the most memory in use besides
the page cache, and the time of a pass next to that of ``X[rows].sum()`` block by block, which is
taken before every pass, so that other work on the machine slows both. With ``--cold``, the file
leaves the page cache before each (on Linux, without privileges).
"""

import argparse
import os
import threading
import time
from pathlib import Path

import numpy as np

from marginsvm import MaxMarginClassifier
from marginsvm.sources import ArrayBlocks

MARGIN = 1.0
WALKS = 5


def make(folder, n_examples, n_features, seed=0):
    """Write X.npy and y.npy, block by block.

    All rows are at least MARGIN from the hyperplane through 0 with the unit normal u, so that
    the best margin is no less. Supporting rows are at MARGIN, and the means of theirs in the two
    classes differ by 2 MARGIN u: so it is no more. No pair of rows shows u, nor do the means of
    the classes, which lie apart along v.
    """
    rng = np.random.default_rng(seed)
    u, v = np.linalg.qr(rng.standard_normal((n_features, 2)))[0].T
    y = rng.integers(0, 2, n_examples)
    distance = MARGIN * (1.05 + rng.exponential(size=n_examples))
    support = rng.choice(n_examples, (2, max(1, n_features // 10)), replace=False)
    y[support], distance[support] = np.array([[0], [1]]), MARGIN
    supporting = rng.standard_normal((*support.shape, n_features))
    supporting -= supporting.mean(axis=1, keepdims=True)
    np.save(folder / "y.npy", y)
    X = np.lib.format.open_memmap(
        folder / "X.tmp", "w+", shape=(n_examples, n_features)
    )
    size = max(1, 2**25 // (8 * n_features))
    for start in range(0, n_examples, size):
        rows = np.arange(start, min(start + size, n_examples))
        sign = 2.0 * y[rows] - 1.0
        block = rng.standard_normal((len(rows), n_features)) + np.outer(3.0 * sign, v)
        for points, index in zip(supporting, support, strict=True):
            here = (index >= start) & (index <= rows[-1])
            block[index[here] - start] = points[here]
        block += np.outer(sign * distance[rows] - block @ u, u)
        X[rows] = block
    X.flush()
    os.replace(folder / "X.tmp", folder / "X.npy")


class Compared:
    """A source that takes the time of its passes, and of NumPy's sum before each."""

    def __init__(self, source, path, cold):
        self.source, self.path, self.cold = source, path, cold
        self.sums, self.passes = [], []

    def __iter__(self):
        self._forget()
        start = time.perf_counter()
        X = np.load(self.path, mmap_mode="r")
        for i in range(0, len(X), self.source.block_rows):
            X[i : i + self.source.block_rows].sum()
        del X  # pages that are mapped stay in the cache
        self.sums.append(time.perf_counter() - start)
        self._forget()
        start = time.perf_counter()
        yield from self.source
        self.passes.append(time.perf_counter() - start)

    def _forget(self):
        if self.cold:
            descriptor = os.open(self.path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    def __str__(self):
        speed = self.path.stat().st_size / 1e9 / np.median(self.sums)
        ratio = np.median(np.divide(self.sums, self.passes))
        return (
            f"{np.median(self.passes):.2f} s; NumPy's sum {np.median(self.sums):.2f} s "
            f"({speed:.1f} GB/s); {ratio:.2f} times as fast (medians of {len(self.sums)})"
        )


class Memory(threading.Thread):
    """Watches how much the process holds that is no page of a file."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.ended = 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.01):
            text = Path("/proc/self/status").read_text()
            status = dict(line.split(":", 1) for line in text.splitlines())
            self.most = max(self.most, 1024 * int(status["RssAnon"].split()[0]))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=float, default=8000.0)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args(arguments)
    path, n_examples = (
        options.folder / "X.npy",
        int(options.megabytes * 1e6 / 8 / options.features),
    )
    if not path.exists() or np.load(path, mmap_mode="r").shape != (
        n_examples,
        options.features,
    ):
        options.folder.mkdir(parents=True, exist_ok=True)
        make(options.folder, n_examples, options.features)
    source = ArrayBlocks(path, options.folder / "y.npy")
    print(source)

    walks, passes, memory = (
        *(Compared(source, path, options.cold) for _ in range(2)),
        Memory(),
    )
    for _ in range(WALKS):
        for X, _ in walks:
            X.sum()
    memory.start()
    clf = MaxMarginClassifier().fit_blocks(passes)
    memory.ended.set()
    memory.join()
    print(
        f"status {clf.status_}, certified gap {clf.gap_:.1e}, margin {clf.margin_:.9f} to "
        f"{clf.margin_bound_:.9f} (known: {MARGIN:.9f}), {len(clf.support_)} supporting rows\n"
        f"file read {len(passes.passes)} times, n_passes {clf.history_['n_passes'][-1]:g}\n"
        f"most memory besides the page cache: {memory.most / 1e9:.2f} GB; the file: "
        f"{path.stat().st_size / 1e9:.2f} GB\n"
        f"sum of the source's blocks: {walks}\n"
        f"pass of the fit: {passes}; each: {np.round(passes.passes, 2).tolist()}"
    )
    return clf


if __name__ == "__main__":
    main()
