"""Settings, one a line, by which this machine computes as others do; for ``.ci/run``.

A setting is a variable of the environment: kernels of BLAS for other processors, NumPy without the
code for newer ones, numba's code for any of this kind, or float64 in place of long double. What
loads the same kernels as this machine, or as a setting before, is left out: BLAS may have one
kernel for several processors.
"""

import os
import platform
import subprocess
import sys

import numpy as np

# The kernels' names in OpenBLAS, and what a processor needs for them, by its name in /proc/cpuinfo.
KERNELS = {
    "Nehalem": "sse4_2",
    "Haswell": "avx2",
    "Zen": "avx2",
    "SkylakeX": "avx512bw",
}
LOADED = (
    "import scipy.linalg, threadpoolctl as t;"
    "print(sorted(str(library.get('architecture')) for library in t.threadpool_info()))"
)


def kernels_of(setting: dict[str, str]) -> str:
    """The kernels that BLAS takes with a setting."""
    environment = {**os.environ, **setting}
    return subprocess.check_output(
        [sys.executable, "-c", LOADED], env=environment, text=True
    )


def settings() -> list[str]:
    """All of them."""
    found = []
    if platform.machine() in ("x86_64", "AMD64") and os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            flags = set(file.read().split())
        known = {kernels_of({})}
        for name, needed in KERNELS.items():
            if needed in flags:
                kernels = kernels_of({"OPENBLAS_CORETYPE": name})
                found += [] if kernels in known else [f"OPENBLAS_CORETYPE={name}"]
                known.add(kernels)
    newer = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    found += [f"NPY_DISABLE_CPU_FEATURES={' '.join(newer)}"] if newer else []
    found.append("NUMBA_CPU_NAME=generic")
    if np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant:
        found.append("MARGINSVM_TEST_LONG_DOUBLE=float64")
    return found


if __name__ == "__main__":
    print("\n".join(settings()))
