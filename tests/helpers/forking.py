"""A process that forks while its threads fit: python -m helpers.forking NUMBER SEED.

Locks that a thread holds at that moment are never released in the child, which must fit
nevertheless, and find the bits that the parent found.
"""

import os
import signal
import sys
import threading
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from helpers.estimators import bits, everything
from marginsvm import _threads as threads

warnings.simplefilter("ignore", ConvergenceWarning)
warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # of just this


def in_a_fork(work):
    """Whether the work succeeds in a fork, within a minute."""
    child = os.fork()
    if not child:
        try:
            signal.alarm(60)
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def main(number, seed):
    known = [(case, bits(*case)) for case in everything(np.random.default_rng(seed))]
    n_threads, stop = threads.n_threads(), threading.Event()

    def keep_fitting():
        while not stop.is_set():
            bits(*known[0][0])

    others = [threading.Thread(target=keep_fitting) for _ in range(2)]
    for thread in others:
        thread.start()
    try:
        for i in range(number):
            case, expected = known[i % len(known)]

            def same(case=case, expected=expected):
                return bits(*case) == expected and threads.n_threads() == n_threads

            assert in_a_fork(same), case[0].__name__
    finally:
        stop.set()
        for thread in others:
            thread.join()
    print("forked", number)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
