"""Proofs as files that strangers can check: written, and checked by the code of the package."""

from marginsvm.proof_files.checking import verify
from marginsvm.proof_files.saving import save_proof

__all__ = ["save_proof", "verify"]
