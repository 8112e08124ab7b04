"""Check a saved proof: ``python -m marginsvm.verify PROOF DATA``.

PROOF is a file by :func:`marginsvm.save_proof`; DATA is what the model was fitted to, as .npy or
CSV: a line for each example, with its features (or its line of the kernel matrix), then its class
or its targets, if it has any.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from marginsvm import verify_alone
from marginsvm.proof_files.checking import verify


def main(arguments: list[str]) -> int:
    """Check a proof from the command line; the exit status is 1 if it is refused."""
    parser = argparse.ArgumentParser(
        prog="python -m marginsvm.verify",
        description="Check a saved proof in fractions: TRUE and its bounds, or REFUSED and why.",
    )
    parser.add_argument("proof", metavar="PROOF", help="file by marginsvm.save_proof")
    parser.add_argument(
        "data", metavar="DATA", help=".npy or CSV: lines of features, the class or targets last"
    )
    files = parser.parse_args(arguments)
    try:
        proof = json.loads(Path(files.proof).read_text())
        lines = verify_alone.read(files.data)
        n_last = {"classes": 1, "targets": len(proof["coef"])}.get(proof["of"], 0)
        X = np.array([line[: len(line) - n_last] for line in lines], float)
        wrong = verify(proof, X, np.array([line[len(line) - n_last :] for line in lines]))
        true = verify_alone.in_words(proof)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        wrong = [f"the files cannot be understood: {error!r}"]
    print("REFUSED: " + "; ".join(wrong) if wrong else true)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
