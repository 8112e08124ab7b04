"""Certificates: bounds that hold as printed, their check, and files of proofs."""
