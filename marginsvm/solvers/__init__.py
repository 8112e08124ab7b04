"""Solvers of the quadratic program, in floats; :mod:`marginsvm.certificate` proves the bounds."""
