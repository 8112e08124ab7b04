"""Check a saved proof: ``python -m marginsvm.verify PROOF DATA``.

PROOF is a file by :func:`marginsvm.save_proof`; DATA is what the model was fitted to, as .npy or
CSV: a line for each example, with its features (or its line of the kernel matrix), the class last.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from marginsvm.proof_files import verify
from marginsvm.verify_alone import dyadic


def read(path: Any) -> tuple[Any, Any]:
    """Examples and labels from a file: .npy, or CSV without a header."""
    if str(path).endswith(".npy"):
        table = np.load(path)
        return table[:, :-1], table[:, -1]
    lines = [line for line in csv.reader(Path(path).read_text().splitlines()) if line]
    return np.array([line[:-1] for line in lines], float), np.array([line[-1] for line in lines])


def main(arguments: list[str]) -> int:
    """Check a proof from the command line; the exit status is 1 if it is refused."""
    if len(arguments) != 2:
        print("usage: python -m marginsvm.verify PROOF DATA")
        return 2
    try:
        proof = json.loads(Path(arguments[0]).read_text())
        wrong = verify(proof, *read(arguments[1]))
        bounds = [float(dyadic(proof["claims"][x])) for x in ("margin", "margin_bound")]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        wrong = [f"the files cannot be understood: {error!r}"]
    if wrong:
        print("REFUSED: " + "; ".join(wrong))
        return 1
    print(f"TRUE: {bounds[0]!r} <= best margin <= {bounds[1]!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
