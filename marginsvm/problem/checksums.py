"""A checksum of 64-bit words, compiled; importing it imports numba."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from marginsvm._compiling import compiled
from marginsvm._typing import Array

# Of the words in a piece of a checksum. Numbers that differ by their order get different keys.
KEYS = np.random.default_rng(0).integers(2**64, size=1024, dtype=np.uint64)
LOW = np.uint64(2**32 - 1)
HALF = np.uint64(32)
FACTOR = np.uint64(0x9E3779B97F4A7C15)


@compiled(crc32)  # which stands in where there is no compiler
def of_words(words: Array, found: int) -> np.uint64:
    """Hash of 64-bit words, at the speed of their sum."""
    state = np.uint64(found)
    for i in range(0, len(words), len(KEYS)):
        piece = words[i : i + len(KEYS)]
        total = np.uint64(0)
        for j in range(len(piece)):
            word = piece[j] + KEYS[j]
            total += (word & LOW) * (word >> HALF)
        state = (state ^ total) * FACTOR
        state ^= state >> HALF
    return state & LOW
