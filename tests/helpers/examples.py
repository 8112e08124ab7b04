"""The same examples in all the forms that a pass may meet, and cut into blocks in many ways."""

import numpy as np
import scipy.sparse as sp

from helpers.int8_block import Int8Block
from marginsvm.data.block import Block
from marginsvm.data.csr import as_block
from marginsvm.data.normalized import normalized


def single(X):
    return X.astype(np.float32)


FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "float32": single,
    "csr": sp.csr_array,
    "csr float32": lambda X: sp.csr_array(single(X)),
    "int8": Int8Block.of,
    "normalized": normalized,
    "normalized with a constant": lambda X: normalized(X, 2.5),
    "normalized csr": lambda X: normalized(sp.csr_matrix(X), 2.5),
    "normalized int8": lambda X: normalized(Int8Block.of(X)),
    "normalized float32": lambda X: normalized(single(X)),
}


GIVEN = [form for form in FORMS if "int8" not in form]  # what users may have


def examples(rng, form, n=60, d=5):
    """Some examples, a row of zeros among them, in one of the forms."""
    X = rng.standard_normal((n, d))
    X[np.abs(X) < 0.3] = 0.0
    X[n // 2] = 0.0
    return FORMS[form](X)


def plain(X):
    """What a matrix holds, in float64."""
    X = X.toarray() if sp.issparse(X) or isinstance(X, Block) else X
    return np.asarray(X, dtype=np.float64)


def rtol_of(X):
    """What rounding in the matrix's own precision may cost, some sums included."""
    return 1e-12 if X.dtype == np.float64 else 1e-5


CUTS = {
    "one block": [60],
    "a block each": [1] * 60,
    "uneven": [7, 1, 30, 22],
    "halves": [30, 30],
}


def cut(X, sizes):
    """Blocks ``(slice, examples)`` of these sizes."""
    ends = np.cumsum(sizes)
    assert ends[-1] == X.shape[0]
    parts = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]
    return [(part, as_block(X[part])) for part in parts]
