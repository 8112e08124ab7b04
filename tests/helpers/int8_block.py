"""A kind of block that the package does not have: examples in int8, and a scale a feature."""

import numpy as np

from marginsvm.data.block import Block


class Int8Block(Block):
    """``numbers * scales``, in an eighth of the memory of float64."""

    def __init__(self, numbers, scales):
        self.numbers, self.scales = numbers, scales
        self.shape, self.dtype = numbers.shape, np.dtype(np.float64)

    @classmethod
    def of(cls, X):
        """Round a matrix to 255 values a feature."""
        scales = np.abs(X).max(axis=0) / 127.0
        return cls(np.round(X / scales).astype(np.int8), scales)

    def __getitem__(self, index):
        return Int8Block(self.numbers[index], self.scales)

    def toarray(self):
        return self.numbers * self.scales


class Int8Blocks:
    """A source of such blocks, one for each of another source: what passes read is rounded."""

    def __init__(self, source, scales):
        self.source, self.scales = source, scales

    def __iter__(self):
        return iter(self.source)

    def copied(self, blocks):
        for X in blocks:
            yield Int8Block(np.round(X / self.scales).astype(np.int8), self.scales)
