"""Examples divided by their norms."""

from marginsvm.problem.matrix import as_matrix


def normalized(X, constant=0.0):
    return as_matrix(X).divided(constant)
