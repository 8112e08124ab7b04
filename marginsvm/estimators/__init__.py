"""Estimators: parameters, training data, fitted attributes, predictions; the exact ones."""
