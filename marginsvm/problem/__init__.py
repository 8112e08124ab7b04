"""The problem: examples as a matrix, labels as rows, and the one quadratic program."""
