"""Files that are damaged, cut or removed, before a fit and during one: a sentence with the name."""

import bz2
import gzip
import os

import numpy as np
import pytest
from helpers.estimators import quiet
from sklearn.datasets import dump_svmlight_file

from marginsvm import MaxMarginClassifier, MomentumMarginClassifier, check_certificate
from marginsvm.sources import ArrayBlocks, ParquetBlocks, SvmlightBlocks

N, D = 300, 30


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X, (X[:, 0] + rng.standard_normal(N) > 0.0).astype(int)


def npz(path, X, y):
    np.savez(path, X=X, y=y)
    return lambda: ArrayBlocks.from_npz(path, block_rows=75)


def npy(path, X, y):
    np.save(path.with_name("y.npy"), y)
    np.save(path, X)
    return lambda: ArrayBlocks(path, path.with_name("y.npy"), block_rows=75)


def fortran(path, X, y):
    return npy(path, np.asfortranarray(X), y)


def parquet(path, X, y):
    pa = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    columns = {f"x{j}": X[:, j] for j in range(D)} | {"y": y}
    how = {"write_page_checksum": True, "row_group_size": 75, "compression": "none"}
    write_table(pa.table(columns), path, use_dictionary=False, **how)
    return lambda: ParquetBlocks(path, "y", block_rows=75)


def svm(path, X, y):
    dump_svmlight_file(X, y, str(path))
    if path.suffix != ".svm":
        module = {".gz": gzip, ".bz2": bz2}[path.suffix]
        path.write_bytes(module.compress(path.read_bytes()))
    return lambda: SvmlightBlocks(path, D, zero_based=True, block_bytes=20_000)


FORMATS = {
    "set.npz": npz,
    "X.npy": npy,
    "F.npy": fortran,
    "set.parquet": parquet,
    "set.svm": svm,
    "set.svm.gz": svm,
    "set.svm.bz2": svm,
}
CHECKED = [name for name in FORMATS if not name.endswith((".npy", ".svm"))]


def flip(path, where=slice(None)):
    """Flip a bit of 400 bytes."""
    written = bytearray(path.read_bytes())
    places = np.arange(len(written))[where]
    for place in np.linspace(0, len(places) - 1, 400).astype(int):
        written[places[place]] ^= 4
    overwrite(path, bytes(written))


def overwrite(path, content):
    """In place: whoever has opened the file reads this."""
    with open(path, "r+b") as file:
        file.write(content)
        file.truncate()


def cut(path):
    overwrite(path, path.read_bytes()[: os.path.getsize(path) // 2])


def remove(path):
    path.unlink()


class Later:
    """A source whose file is damaged when a pass of this number begins."""

    def __init__(self, source, fault, path, at=15):
        self.source, self.fault, self.path, self.at = source, fault, path, at
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        if self.passes == self.at:
            self.fault(self.path)
        yield from self.source


def named(path, error):
    """Whether an error names the file and is a sentence, not one of a module below."""
    return str(path) in str(error) and isinstance(error, ValueError | OSError)


@pytest.mark.parametrize("fault", [flip, cut, remove])
@pytest.mark.parametrize("name", FORMATS)
def test_before_a_fit(name, fault, data, tmp_path):
    path = tmp_path / name
    source = FORMATS[name](path, *data)
    fault(path)
    try:
        with quiet():
            MaxMarginClassifier(C=1.0).fit_blocks(source())
    except Exception as error:
        assert named(path, error), error  # noqa: PT017
    else:  # without checksums, these are other data
        assert fault is flip
        assert name not in CHECKED


@pytest.mark.parametrize("fault", [flip, cut, remove])
@pytest.mark.parametrize("name", FORMATS)
def test_during_a_fit(name, fault, data, tmp_path):
    path = tmp_path / name
    source = FORMATS[name](path, *data)()
    clf = MomentumMarginClassifier(C=1.0, tol=0, max_iter=30)
    with pytest.raises((ValueError, OSError)) as caught:
        clf.fit_blocks(Later(source, fault, path))
    assert named(path, caught.value), caught.value
    assert clf.status_ == "interrupted"
    FORMATS[name](path, *data)
    assert check_certificate(clf, source)


@pytest.mark.parametrize("name", CHECKED)
def test_a_single_byte(name, data, tmp_path):
    """Of the numbers; the first pass finds it, wherever it is."""
    path = tmp_path / name
    source = FORMATS[name](path, *data)
    whole = path.read_bytes()
    for share in (0.3, 0.5, 0.7):
        place = int(share * len(whole))
        overwrite(path, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises((ValueError, OSError)) as caught:
            list(source())
        assert named(path, caught.value), caught.value


@pytest.mark.parametrize(
    "text",
    ["1 1:2\n0 99999999999:1\n", "1 1:2\n0 2:1", "1 1:2\n0 2:x\n", "1 1:2\n0 -4:1\n"],
)
def test_lines_of_svmlight(text, tmp_path):
    path = tmp_path / "set.svm"
    path.write_text(text)
    for n_features in (None, 3):
        with pytest.raises(ValueError, match=r"set\.svm"):
            list(SvmlightBlocks(path, n_features))


def test_errors_of_a_block_name_its_file(tmp_path):
    """Also those that are found when a fit looks at it."""
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    X[2, 2] = np.nan
    path = tmp_path / "X.npy"
    source = npy(path, X, y)()
    with pytest.raises(ValueError, match=r"X\.npy: block 0: .*NaN"):
        MaxMarginClassifier().fit_blocks(source)
