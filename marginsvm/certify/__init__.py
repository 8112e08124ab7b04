"""What vectors prove: bounds that allow for rounding, and the check of a certificate."""
