"""The finite coefficients of random regressions without an estimate, beside their limits.

Of each regression, the likelihood is fitted with ridges of 1e-5, 1e-7 and 1e-9, by code that shares
nothing with the package, and what ``report.remainder`` says is fitted without one.

    python examples/benchmarks/separation_limits.py [problems of each family] [seed] [family ...]
"""

import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from helpers.limit_cases import CASES

NEAR = 1e-4


def main():
    threadpool_limits(1)
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    for name in sys.argv[3:] or CASES:
        begin, worst, compared, far = time.process_time(), 0.0, 0, []
        for seed in range(first, first + n):
            with np.errstate(all="ignore"):
                case = CASES[name](seed)
            last, least = case.away()[-1], int(case.finite.any() and not case.finite.all())
            compared, worst = compared + least, max(worst, last)
            if not last < NEAR:
                far.append((seed, float(last)))
        seconds = time.process_time() - begin
        print(
            f"{name}: {n} from seed {first}, {compared} with finite and infinite coefficients;",
            end=" ",
        )
        print(f"farthest {worst:.1e}; beyond {NEAR}: {far or 'none'}; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
