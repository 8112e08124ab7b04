"""Vectors of the game as plain arrays, to be compared."""

import numpy as np


def flat(vector):
    """Image and coefficients, one behind the other."""
    return np.concatenate([vector.image.ravel(), vector.coef.ravel()])
