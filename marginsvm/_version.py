"""Version of the package; written into pickles of fitted estimators."""

__version__ = "1.0.0"
