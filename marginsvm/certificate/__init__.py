"""Certificates: bounds that hold as printed, their check, and proof files."""
