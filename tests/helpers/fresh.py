"""Python in a process of its own."""

import os
import subprocess
import sys


def python(*args, cwd=None, timeout=None, **environment):
    """What it prints. It sets its threads, and where numba keeps its code, unless that is given."""
    # the latter are set by Dask and by joblib
    unset = ("NUMBA_CACHE_DIR", "_NUM_THREADS")
    env = {k: v for k, v in os.environ.items() if not k.endswith(unset)} | environment
    command, how = (
        [sys.executable, *map(str, args)],
        {"capture_output": True, "text": True},
    )
    done = subprocess.run(
        command, cwd=cwd, timeout=timeout, env=env, check=False, **how
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
