"""Portfolios of the exact solver that reach its methods on small problems."""

from marginsvm.algorithms.exact.thresholds import Portfolio

# Newton's method begins, and solves every system by products.
ONLY_PASSES = Portfolio(few_rows=0, room=0, few_long=0, direct=0, direct_sparse=0)
