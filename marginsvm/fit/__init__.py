"""The life of a fit; nothing here knows scikit-learn."""
