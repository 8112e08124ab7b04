"""Solvers of the quadratic program, which compute in floats; certificates prove what they find."""
