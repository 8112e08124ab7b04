"""Docstrings, read by the reader that scikit-learn has since 1.8, as its HTML reprs need it."""

import pytest


def sections_of(docstring):
    """Sections of a numpydoc docstring; with an older scikit-learn, the test is skipped."""
    docscrape = pytest.importorskip("sklearn.externals._numpydoc.docscrape")
    return docscrape.NumpyDocString(docstring)
