"""What scikit-learn's users see of a fit: checked input, predictions, published results, advice."""
