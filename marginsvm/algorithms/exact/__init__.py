"""Numerics of :class:`marginsvm.MaxMarginClassifier`."""
