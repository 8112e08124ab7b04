"""check_separability on random small problems, against rationals.

Families, units, offsets, weights, collinear columns, dense and CSR are drawn at random; the oracle
is the simplex method in integers (``tests/helpers/separation.py``), which shares no code with the
package. Counted are answers that differ (kind, rows, coefficients with their signs), answers that
are undecided, and reports that the check in integers refuses.

    python examples/benchmarks/separation_oracle.py [problems] [seed] [family ...]

The family ``comparisons`` is Cox's regression and choices in groups, in turn; without a family, all
are taken in turn.
"""

import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from helpers import comparison_cases, separation_cases

COMPARISONS = "comparisons"
ALL = [*separation_cases.ALL, COMPARISONS, COMPARISONS]  # of which one half is Cox's


def main():
    warnings.simplefilter("error")
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    kinds = sys.argv[3:] or ALL
    found, answers, times = Counter(), Counter(), []
    for seed in range(first, first + n):
        kind = kinds[seed % len(kinds)]
        try:
            if kind == COMPARISONS:
                wrong, said, seconds = comparison_cases.answer_of(seed)
            else:
                wrong, said, seconds = separation_cases.answer_of(seed, kind)
        except Exception as error:
            wrong, said, seconds = [f"error: {type(error).__name__} {error}"], "error", 0.0
        times.append(seconds)
        answers[said] += 1
        for text in wrong:
            found[text.split()[0]] += 1
            print(kind, seed, text, said, flush=True)
    print(f"{n} problems from seed {first}:", dict(answers))
    print("wrong or open:", dict(found) or "none")
    print(f"median {1e3 * np.median(times):.2f} ms, 99 % {1e3 * np.quantile(times, 0.99):.2f} ms")


if __name__ == "__main__":
    main()
