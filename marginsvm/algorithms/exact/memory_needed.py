"""What a fit of the exact solver holds at least, and a refusal where the machine has less."""

from __future__ import annotations

import os
from math import prod

from marginsvm.algorithms.exact.shape import Shape
from marginsvm.algorithms.exact.thresholds import Portfolio
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import has_curvature

# Arrays over the rows, and images, that are held at once: by every method, and by a step of
# Newton's method for a soft margin.
_HELD_BY_EVERY_METHOD, _HELD_BY_NEWTON = (4, 3), (8, 10)
# Matrices that interior points hold, of the size of the dense examples or of one side.
_MATRICES_HELD = 3


def needed(problem: KernelMatrixAdapter, portfolio: Portfolio) -> int:
    """Bytes that a fit takes beyond the examples, at least."""
    image = prod(problem.zeros().image.shape) if has_curvature(problem) else 0
    of_rows, images = _HELD_BY_EVERY_METHOD if problem.slack is None else _HELD_BY_NEWTON
    if problem.signs is not None:  # interior points, on the examples as a dense matrix
        return 8 * (_MATRICES_HELD * prod(problem.rows.shape) * (image + 2) + image * image)
    by_points = problem.nu is not None and not Shape.of(problem).is_large_share(portfolio)
    if by_points and image:  # on the smaller side
        side = min(image, problem.n_rows)
        return 8 * (of_rows * problem.n_rows + _MATRICES_HELD * side * side)
    return 8 * (of_rows * prod(problem.rows.shape) + images * image)


def installed() -> int | None:
    """Bytes of memory that the machine has; None where that is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def refuse_what_cannot_fit(problem: KernelMatrixAdapter, portfolio: Portfolio) -> None:
    """Raise an error before a fit that the machine's memory cannot hold.

    Raises
    ------
    MemoryError
        With the sizes, and with what to do.
    """
    there, k = installed(), problem.rows.n_classes
    if there is None or (bytes_needed := needed(problem, portfolio)) <= there:
        return
    sizes = f"{problem.rows.n_examples} examples"
    if has_curvature(problem):
        sizes += f", {problem.zeros().image.shape[-1]} features"
    advice = "use fewer examples or features"
    if k > 2:
        sizes += f" and {k} classes"
        advice = (
            "sklearn.multiclass.OneVsRestClassifier(MaxMarginClassifier(...)) solves for one class "
            f"at a time, in a part of it ({k} times less), with a certificate for each class"
        )
    raise MemoryError(
        f"a joint fit of {sizes} takes {bytes_needed / 1e9:.0f} GB besides X, and this machine "
        f"has {there / 1e9:.0f} GB: {advice}"
    )
