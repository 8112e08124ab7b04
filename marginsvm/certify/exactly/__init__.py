"""Proofs that nothing separates, or fits: the only computations that a fit and its check share.

Both ask whether exact weights exist near given ones: the fit before it claims so, and the check of
the weights that were published. The answers are compared with rational arithmetic by other code in
``tests/test_exact_weights.py``.
"""
