"""What a model says or implies of itself, held against what is proved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from marginsvm.auditing.audit_report import Claim, Worth
from marginsvm.certify.host import on_host


def claims_of(
    model: Any, own: Worth | None, penalty: tuple[float, Worth] | None, fit_intercept: bool
) -> Iterator[Claim]:
    """Claims of a model about one of its problems.

    Parameters
    ----------
    model : fitted estimator
    own : Worth or None
        Its objective with a free intercept; None: it has none.
    penalty : tuple or None
        What a penalised intercept adds to it, and its worth in that problem, which is the model's
        own; None: its intercept is free.
    fit_intercept : bool
    """
    if penalty is not None:
        added, own = penalty
        text = f"the intercept is not penalised (it adds {added:.3g} to the objective)"
        yield Claim("free_intercept", False, text)
    elif own is not None and fit_intercept:
        yield Claim("free_intercept", True, "the intercept is not penalised")
    limit, n_iter = getattr(model, "max_iter", None), getattr(model, "n_iter_", None)
    if limit is not None and n_iter is not None:
        n_iter = int(np.max(on_host(n_iter)))
        text = f"it ended before max_iter={limit} (n_iter_={n_iter})"
        yield Claim("iterations", limit < 0 or n_iter < limit, text)
    tol = getattr(model, "tol", None)
    if own is not None and tol is not None:
        least, most = own.short
        holds = True if most <= tol else False if least > tol else None
        share = f"by {100.0 * most:.3g} % at most"
        text = f"its own objective exceeds the least by no more than tol={tol:g} of it ({share})"
        yield Claim("tolerance", holds, text)
