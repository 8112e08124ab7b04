"""Version of the package; written into pickles of fitted estimators."""

__version__ = "0.2.0"
