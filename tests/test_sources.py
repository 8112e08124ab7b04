"""Sources of blocks: every pass gives the same rows, whatever they are read from."""

import bz2
import gzip
import pickle
import runpy
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.estimators import quiet
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from marginsvm import (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    check_certificate,
)
from marginsvm.problem.source import Source
from marginsvm.sources import ArrayBlocks, ParquetBlocks, SvmlightBlocks

ROOT = Path(__file__).parents[1]


@pytest.fixture
def data(rng):
    X = rng.standard_normal((23, 4)) * (rng.random((23, 4)) < 0.6)
    X = np.round(X, 6)  # text has 16 digits
    X[-1] = 1.0
    return X, rng.integers(0, 3, 23), rng.random(23)


def rows_of(source):
    """All the rows, dense, after a look at what every source must do."""
    once, again = list(source), list(pickle.loads(pickle.dumps(source)))
    assert iter(source) is not iter(source)
    for a, b in zip(once, again, strict=True):
        for part, same in zip(a, b, strict=True):
            assert sp.issparse(part) or type(part) is np.ndarray
            np.testing.assert_array_equal(dense(part), dense(same))
    return [
        np.concatenate([dense(part) for part in parts])
        for parts in zip(*once, strict=True)
    ]


def dense(part):
    return part.toarray() if sp.issparse(part) else part


def assert_rows(source, *expected):
    for part, given in zip(rows_of(source), expected, strict=True):
        np.testing.assert_array_equal(part, given)


def saved(folder, **arrays):
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [str(folder / f"{name}.npy") for name in arrays]


@pytest.mark.parametrize("block_rows", [None, 1, 7, 23, 100])
@pytest.mark.parametrize("kind", ["memory", "csr", "mapped", "npy", "npz", "mixed"])
def test_arrays(data, tmp_path, kind, block_rows):
    X, y, v = data
    paths = saved(tmp_path, X=X, y=y, v=v)
    np.savez(tmp_path / "set.npz", a=[1], X=X, y=y, v=v)
    make = {
        "memory": lambda **kw: ArrayBlocks(X, y, v, **kw),
        "csr": lambda **kw: ArrayBlocks(sp.csr_array(X), y, v, **kw),
        "mapped": lambda **kw: ArrayBlocks(
            np.load(paths[0], mmap_mode="r"), y, v, **kw
        ),
        "npy": lambda **kw: ArrayBlocks(*paths, **kw),
        "npz": lambda **kw: ArrayBlocks.from_npz(
            tmp_path / "set.npz", sample_weight="v", **kw
        ),
        "mixed": lambda **kw: ArrayBlocks(Path(paths[0]), y.tolist(), v, **kw),
    }[kind]
    source = make(block_rows=block_rows)
    assert_rows(source, X, y, v)
    assert f", {len([*source])} blocks of " in repr(source)
    assert source.shape == (23, 4)
    size = min(block_rows or 23, 23)
    rest = [23 % size] * (23 % size > 0)
    assert [len(y) for _, y, _ in source] == [size] * (23 // size) + rest
    assert repr(source).startswith("ArrayBlocks(23 x 4 float64, ")


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2", "?"])
@pytest.mark.parametrize("order", "CF")
def test_files_of_all_sorts(rng, tmp_path, dtype, order):
    X = np.array(rng.integers(0, 2, (50, 3)), dtype=dtype, order=order)
    y = np.array(["no", "yes"])[X[:, 0].astype(int)]
    source = ArrayBlocks(*saved(tmp_path, X=X, y=y), block_rows=8)
    assert_rows(source, X, y)
    assert next(iter(source))[0].dtype == X.dtype
    for length in range(1, 9):  # of a member's name in npz, which shifts the data
        np.savez(tmp_path / "set.npz", **{"X" * length: X, "y": y})
        source = ArrayBlocks.from_npz(
            tmp_path / "set.npz", X="X" * length, block_rows=20
        )
        assert_rows(source, X, y)
        assert all(block.flags.aligned for block, _ in source)


def test_files_are_read_late_and_blocks_outlive_the_pass(data, tmp_path):
    X, y, _ = data
    assert list(ArrayBlocks(*saved(tmp_path, X=X[:0], y=y[:0]))) == []
    source = ArrayBlocks(*saved(tmp_path, X=np.zeros((10_000, 4)), y=np.zeros(10_000)))
    assert len(pickle.dumps(source)) < 1000
    saved(tmp_path, X=np.ones((10_000, 4)))
    assert next(iter(source))[0].all()
    blocks = list(ArrayBlocks(*saved(tmp_path, X=X, y=y), block_rows=5))
    np.testing.assert_array_equal(np.concatenate([block for block, _ in blocks]), X)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_pages_leave_with_their_block(tmp_path):
    saved(tmp_path, X=np.ones((1000, 8192)), y=np.ones(1000))  # 64 MB
    script = """
        import sys
        from marginsvm.sources import ArrayBlocks
        def resident():
            with open("/proc/self/status") as file:
                status = dict(line.split(":", 1) for line in file)
            return int(status["VmRSS"].split()[0]) // 1024
        source = ArrayBlocks("X.npy", "y.npy", block_rows=64)
        before, most, total = resident(), 0, 0.0
        for X, y in source:
            total += X.sum()
            most = max(most, resident() - before)
        assert total == 1000 * 8192
        print(most)
    """
    run = [sys.executable, "-c", textwrap.dedent(script)]
    out = subprocess.run(
        run, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert int(out) < 24  # two blocks of 4 MB, and a margin for the allocator


def mistakes():
    X, y = np.zeros((4, 2)), np.zeros(4)
    return [
        (lambda f: ArrayBlocks(X, y[:3]), r"as long as one another: \[4, 3\]"),
        (lambda f: ArrayBlocks(X, y, y[:1]), r"\[4, 4, 1\]"),
        (
            lambda f: ArrayBlocks(y, y),
            r"X must have 2 dimensions, but its shape is \(4,\)",
        ),
        (lambda f: ArrayBlocks(X, X), "y must have 1 dimensions"),
        (lambda f: ArrayBlocks(sp.csc_array(X), y), r"pass X.tocsr\(\)"),
        (lambda f: ArrayBlocks(X, y, block_rows=0), "block_rows must be at least 1"),
        (lambda f: ArrayBlocks(f / "text.npy", y), "text.npy is not a file of np.save"),
        (
            lambda f: ArrayBlocks(f / "objects.npy", y),
            "objects.npy holds Python objects",
        ),
        (
            lambda f: ArrayBlocks(f / "short.npy", y),
            "short.npy is cut short: it has 168 bytes",
        ),
        (lambda f: ArrayBlocks(f / "good.npz", y), "for np.savez, use from_npz"),
        (lambda f: ArrayBlocks.from_npz(f / "good.npz"), "has no array 'X', but a, b"),
        (
            lambda f: ArrayBlocks.from_npz(f / "small.npz", X="a"),
            "np.savez instead of np.savez_c",
        ),
        (lambda f: ArrayBlocks(f / "nowhere", y), "nowhere"),
        (lambda f: SvmlightBlocks(f / "nowhere"), "nowhere"),
        (
            lambda f: list(SvmlightBlocks(f / "a.svm")),
            "a.svm, bytes 0 to 16: Invalid index 0",
        ),
        (
            lambda f: list(SvmlightBlocks(f / "a.svm", 2, zero_based=True)),
            "n_features was set to 2",
        ),
        (lambda f: SvmlightBlocks(f / "a.svm", 0), "n_features must be at least 1"),
        (
            lambda f: SvmlightBlocks(f / "a.svm", block_bytes=0),
            "block_bytes must be at least 1",
        ),
    ]


@pytest.mark.parametrize(("make", "text"), mistakes(), ids=lambda v: str(v)[:20])
def test_mistakes(make, text, tmp_path):
    (tmp_path / "text.npy").write_text("1 2 3")
    (tmp_path / "a.svm").write_text("1 0:1 2:1\n0 2:1\n")
    saved(
        tmp_path, objects=np.array([[1], ["a"]], dtype=object), short=np.zeros((4, 2))
    )
    (tmp_path / "short.npy").write_bytes((tmp_path / "short.npy").read_bytes()[:168])
    np.savez(tmp_path / "good.npz", a=np.zeros((4, 2)), b=np.zeros(4))
    np.savez_compressed(tmp_path / "small.npz", a=np.zeros((4, 2)), b=np.zeros(4))
    with pytest.raises(
        FileNotFoundError if text == "nowhere" else ValueError, match=text
    ):
        make(tmp_path)


@pytest.fixture
def parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(name, row_group_size=5, **columns):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        parquet.write_table(
            pa.table(columns), tmp_path / name, row_group_size=row_group_size
        )
        return tmp_path / name

    return write


@pytest.mark.parametrize("block_rows", [None, 1, 3, 100])
def test_parquet(data, parquet, tmp_path, block_rows):
    X, y, v = data
    a, b, c, d = X.T
    first = parquet(
        "part/1.parquet", b=b[:12], y=y[:12], a=a[:12], v=v[:12], c=c[:12], d=d[:12]
    )
    second = parquet(
        "part/2.parquet", a=a[12:], b=b[12:], c=c[12:], d=d[12:], v=v[12:], y=y[12:]
    )
    in_order = np.stack([b, a, c, d], axis=1)
    source = ParquetBlocks(tmp_path, "y", "v", block_rows=block_rows)
    assert source.columns == ["b", "a", "c", "d"]
    assert_rows(source, in_order, y, v)
    assert_rows(
        ParquetBlocks([first, second], "y", columns=["d", "a"]), np.stack([d, a], 1), y
    )
    assert all(X.flags.c_contiguous for X, *_ in source)
    sizes = {1: [1] * 23, 3: [3] * 7 + [2]}.get(block_rows, [12, 11])
    assert [len(y) for _, y, _ in source] == sizes
    assert (
        repr(source)
        == "ParquetBlocks(2 files, 4 features, target='y', sample_weight='v')"
    )


def test_parquet_of_all_types(parquet):
    from decimal import Decimal

    pa = pytest.importorskip("pyarrow")
    labels = pa.array(["no", "yes", "no"]).dictionary_encode()
    small = {"a": np.array([1, 2, 3], np.int16), "b": [True, False, True]}
    (X, y), *_ = ParquetBlocks(parquet("small.parquet", **small, y=labels), "y")
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, [[1, 1], [2, 0], [3, 1]])
    assert y.tolist() == ["no", "yes", "no"]
    wide = {"c": np.array([1, 2, 2**40 + 1]), "d": [Decimal("0.5")] * 3}
    (X, y), *_ = ParquetBlocks(parquet("wide.parquet", **small, **wide, y=labels), "y")
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X[:, 2:], [[1, 0.5], [2, 0.5], [2**40 + 1, 0.5]])
    assert np.isnan(
        next(iter(ParquetBlocks(parquet("nan", a=[np.nan], y=[1]), "y")))[0]
    )


def test_mistakes_with_parquet(parquet, tmp_path):
    good = parquet("1.parquet", a=[1.0, 2.0], y=[0, 1])
    (tmp_path / "empty").mkdir()

    def with_good(**columns):
        return list(ParquetBlocks([good, parquet("2.parquet", **columns)], "y"))

    for make, text in [
        (
            lambda: with_good(b=[1.0], y=[0]),
            "2.parquet must have one column 'a', but its columns are b, y",
        ),
        (
            lambda: with_good(a=["x"], y=[0]),
            "column 'a' of .*2.parquet is of type string, not num",
        ),
        (
            lambda: with_good(a=[1.0, None], y=[0, 1]),
            "column 'a' of .*2.parquet has nulls",
        ),
        (
            lambda: with_good(a=[1.0, 2.0], y=[0, None]),
            "column 'y' of .*2.parquet has nulls",
        ),
        (lambda: ParquetBlocks(tmp_path / "empty", "y"), r"no file \*.parquet in"),
        (lambda: ParquetBlocks([], "y"), "there is no file"),
        (
            lambda: ParquetBlocks(good, "label"),
            "1.parquet must have one column 'label'",
        ),
        (lambda: ParquetBlocks(good, "y", columns=["a", "y"]), "columns besides 'y'"),
        (
            lambda: ParquetBlocks(good, "y", block_rows=0),
            "block_rows must be at least 1",
        ),
    ]:
        with pytest.raises(ValueError, match=text):
            make()


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install marginsvm\[parquet\]"):
        ParquetBlocks(".", "y")


@pytest.mark.parametrize("zero_based", [False, slow(True)])
def test_svmlight(data, tmp_path, zero_based):
    X, y, _ = data
    paths = []
    for k, part in enumerate([slice(0, 9), slice(9, 23)]):
        paths.append(tmp_path / f"{k}.svm")
        dump_svmlight_file(
            X[part], y[part], str(paths[-1]), zero_based=zero_based, comment="two"
        )
    # borders within lines, comments and at their ends
    for block_bytes in [*range(1, 90), 10**6]:
        source = SvmlightBlocks(paths, zero_based=zero_based, block_bytes=block_bytes)
        assert repr(source) == "SvmlightBlocks(2 files, n_features=not counted yet)"
        assert_rows(source, X, y)
        assert len([*source]) > 2 or block_bytes > 89
        assert repr(source) == "SvmlightBlocks(2 files, n_features=4)"
    wide = rows_of(SvmlightBlocks(paths, 6, zero_based=zero_based))[0]
    np.testing.assert_array_equal(wide, np.pad(X, [(0, 0), (0, 2)]))
    for suffix, module in ((".gz", gzip), (".bz2", bz2)):
        compressed = tmp_path / f"0.svm{suffix}"
        compressed.write_bytes(module.compress(paths[0].read_bytes()))
        packed = SvmlightBlocks(compressed, zero_based=zero_based, block_bytes=100)
        assert_rows(packed, X[:9], y[:9])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_benchmark_knows_its_margin(tmp_path, capsys):
    benchmark = runpy.run_path(
        str(ROOT / "examples" / "benchmarks" / "beyond_memory.py")
    )
    clf = benchmark["main"]([str(tmp_path), "--megabytes", "2", "--features", "50"])
    assert clf.status_ == "certified"
    assert clf.margin_ <= benchmark["MARGIN"] * (1 + 1e-12)
    assert clf.margin_ == pytest.approx(benchmark["MARGIN"], rel=1e-6)
    assert "pass of the fit: " in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["npy", "parquet", "svmlight"])
def test_fits_from_files_equal_those_from_memory(rng, tmp_path, kind, request):
    X, y = np.round(rng.standard_normal((90, 3)), 6), np.arange(90) % 2
    X[:, 0] += 8.0 * y
    paths = saved(tmp_path, X=X, y=y)
    if kind == "parquet":
        columns = dict(zip("abcy", [*X.T, y], strict=True))
        request.getfixturevalue("parquet")("a.parquet", 90, **columns)
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    source = {
        "npy": lambda: ArrayBlocks(*paths, block_rows=40),
        "parquet": lambda: ParquetBlocks(tmp_path, "y", block_rows=25),
        "svmlight": lambda: SvmlightBlocks(tmp_path / "a.svm", block_bytes=700),
    }[kind]()
    whole, blocks = (
        MaxMarginClassifier().fit(X, y),
        MaxMarginClassifier().fit_blocks(source),
    )
    assert whole.n_iter_ == blocks.n_iter_
    assert whole.margin_ == pytest.approx(blocks.margin_, rel=1e-10)
    np.testing.assert_allclose(whole.coef_, blocks.coef_, rtol=1e-8)


class Table:
    """The rows of a database, through a connection that only the thread that opened it may use."""

    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with closing(sqlite3.connect(self.path)) as connection:
            rows = connection.execute("SELECT a, b, y FROM t")
            while some := rows.fetchmany(7):
                *columns, y = np.array(some).T
                yield np.column_stack(columns), y


@pytest.mark.parametrize("cls", [MaxMarginClassifier, MomentumMarginClassifier])
def test_a_source_is_read_by_one_thread_in_a_pass(cls, tmp_path, rng):
    X = rng.standard_normal((40, 2))
    y = np.sign(X[:, 0] + 0.1)
    path = tmp_path / "table.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a REAL, b REAL, y REAL)")
        rows = np.column_stack([X, y]).tolist()
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
    model = cls(C=1.0).fit_blocks(Table(path))
    np.testing.assert_allclose(model.margin_, cls(C=1.0).fit(X, y).margin_, rtol=1e-6)
    assert model.status_ == "certified"


class Refilled:
    """Blocks that are read into the same arrays, one after the other or two in turn."""

    def __init__(self, blocks, n_buffers, of):
        self.blocks, self.n_buffers, self.of = blocks, n_buffers, of

    def __iter__(self):
        buffers = [tuple(np.empty_like(a) for a in self.blocks[0])] * self.n_buffers
        if self.n_buffers == 2:
            buffers[1] = tuple(a.copy() for a in buffers[0])
        for number, block in enumerate(self.blocks):
            arrays = buffers[number % self.n_buffers]
            for array, values in zip(arrays, block, strict=True):
                array[...] = values
            yield self.of(arrays[0]), *arrays[1:]


class Once:
    """A single block, in an iterable that is neither a list nor a source of ours."""

    def __init__(self, X, y):
        self.block = X, y

    def __iter__(self):
        yield self.block


@pytest.mark.parametrize("make", [lambda X, y: [(X, y)], ArrayBlocks, Once])
def test_only_memory_that_may_be_used_again_is_copied(make, data):
    X, y, _ = data
    of, _, _ = Source(make(X, y)).read()
    ((_, block),) = of(np.arange(len(X))).blocks()
    assert np.shares_memory(block.array, X) == (make is not Once)
    np.testing.assert_array_equal(block.array, X)


class Lazy:
    """Examples that are read into the memory of the block before, whenever they are asked for."""

    def __init__(self, X, memory):
        self.X = X
        self.memory = memory

    def __array__(self, dtype=None, copy=None):
        self.memory[...] = self.X
        return self.memory


def test_lazy_blocks_of_a_list_are_copied(rng):
    X = rng.standard_normal((3000, 40))
    y = (X[:, 0] > 0).astype(int)
    memory = np.empty((300, 40))
    parts = [slice(i, i + 300) for i in range(0, 3000, 300)]
    lazy = MaxMarginClassifier(C=1.0).fit_blocks(
        [(Lazy(X[part], memory), y[part]) for part in parts]
    )
    clf = MaxMarginClassifier(C=1.0).fit_blocks([(X[part], y[part]) for part in parts])
    assert lazy.status_ == clf.status_ == "certified"
    np.testing.assert_array_equal(lazy.coef_, clf.coef_)


def as_csr(X):
    """Every entry is stored, in the memory of X."""
    n, d = X.shape
    parts = X.ravel(), np.tile(np.arange(d), n), d * np.arange(n + 1)
    return sp.csr_array(parts, shape=X.shape)


@pytest.mark.parametrize("of", [np.asarray, as_csr])
@pytest.mark.parametrize("n_buffers", [1, 2])
@pytest.mark.parametrize("cls", [MaxMarginClassifier, MomentumMarginClassifier])
def test_a_source_may_read_all_blocks_into_the_same_arrays(cls, n_buffers, of, rng):
    """Labels and weights are kept, and no thread works on what is overwritten."""
    X = rng.standard_normal((8000, 40))
    y = np.where(X[:, 0] + rng.standard_normal(8000) > 0.0, 1.0, -1.0)
    weight = rng.choice([0.5, 2.0], 8000)
    some = [slice(i, i + 1000) for i in range(0, 8000, 1000)]
    source = Refilled([(X[b], y[b], weight[b]) for b in some], n_buffers, of)
    model = cls(C=1.0, max_iter=50)
    with quiet():
        found, whole = model.fit_blocks(source), clone(model).fit(X, y, weight)
    np.testing.assert_allclose(found.margin_, whole.margin_, rtol=1e-5)
    assert check_certificate(found, X, y, weight)
    assert check_certificate(found, source)


def test_a_source_of_too_large_numbers_warns_of_nothing_else(rng):
    """With warnings as errors: those of NumPy are switched off in all threads."""
    X, y = np.full((4000, 40), 1e200), np.arange(4000) % 2
    blocks = [(X[i : i + 500], y[i : i + 500]) for i in range(0, 4000, 500)]
    with pytest.raises(ValueError, match="scale X"):
        MaxMarginClassifier().fit_blocks(blocks)
