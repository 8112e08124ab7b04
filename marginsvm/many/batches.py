"""The work on many problems, batch by batch: in threads, or in processes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from marginsvm._typing import Array
from marginsvm.many.problems import Problems
from marginsvm.problem.threads import n_threads, ordered_map

# Batches that each thread fits before the next line of progress, and chance to be interrupted.
_TURN = 8


def in_processes(
    work: Callable[..., Any], estimator: Any, problems: Problems, n_jobs: int | None, **options: Any
) -> list[Any]:
    """Results of ``work(estimator, part, **options)`` of the parts of all problems, in order."""
    n_parts = 1 if n_jobs is None else min(effective_n_jobs(n_jobs), problems.n_problems)
    if n_parts == 1:
        return [work(estimator, problems, **options)]
    ends = np.linspace(0, problems.n_problems, n_parts + 1).astype(int)
    parts = [problems.some(slice(a, b)) for a, b in pairwise(ends)]
    return [*Parallel(n_jobs=n_jobs)(delayed(work)(estimator, p, **options) for p in parts)]


def fitted_in_batches(work: Callable[[Array], None], problems: Problems, verbose: Any) -> None:
    """Do the work of each batch, in threads; an interrupt ends it early.

    What is done then is kept, and the caller warns of what is not.
    """
    batches = [*problems.batches()]
    turn, done = _TURN * n_threads(), 0
    try:
        with warnings.catch_warnings():  # those of single fits are counted at the end
            warnings.simplefilter("ignore", ConvergenceWarning)
            for i in range(0, len(batches), turn):
                ordered_map(work, batches[i : i + turn])
                done += sum(map(len, batches[i : i + turn]))
                if verbose:
                    print(f"{done} of {problems.n_problems} problems")
    except KeyboardInterrupt:
        pass


def warn_of_others(status: Array, stacklevel: int) -> None:
    """Say how many fits are without their certificate.

    Parameters
    ----------
    status : ndarray of str, shape (n_fits,)
    stacklevel : int
        As of ``warnings.warn``, from the caller.
    """
    others = Counter(word for word in status.tolist() if word != "certified")
    if others:
        text = ", ".join(f"{count} {word}" for word, count in others.most_common())
        warnings.warn(
            f"of {len(status)} fits, not all are certified: {text} (see status, margin_bound)",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
