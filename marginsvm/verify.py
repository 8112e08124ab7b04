"""Check a saved proof: ``python -m marginsvm.verify PROOF DATA``.

PROOF is a file by :func:`marginsvm.save_proof`; DATA is what the model was fitted to, as .npy or
CSV without a header: a line for each example, with its features (or its line of the kernel matrix),
then its class or its targets, if it has any. What is printed is TRUE, with the claims and their
problem, or REFUSED, with what was expected and what was found. :mod:`marginsvm.verify_alone`, which
needs nothing else, does it.
"""

from __future__ import annotations

import argparse
import io
import sys

from marginsvm import verify_alone


def main(arguments: list[str]) -> int:
    """Check a proof from the command line; the exit status is 1 if it is refused."""
    parser = argparse.ArgumentParser(
        prog="python -m marginsvm.verify",
        description="Check a saved proof in fractions: TRUE and its bounds, or REFUSED and why.",
    )
    parser.add_argument("proof", metavar="PROOF", help="file by marginsvm.save_proof")
    parser.add_argument(
        "data",
        metavar="DATA",
        help=".npy, or CSV without a header: lines of features, the class or targets last",
    )
    files = parser.parse_args(arguments)
    return int(verify_alone.main(files.proof, files.data))


if __name__ == "__main__":
    # Names of classes may be in any letters.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))
