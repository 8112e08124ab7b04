"""Warnings that name the user's line, however many calls lie between it and the warning."""

from __future__ import annotations

import os
import sys
import warnings

import joblib
import sklearn

# Where no line is a user's: searches, pipelines and decorators of scikit-learn call fits as well.
_INSIDE = tuple(
    os.path.join(os.path.dirname(os.path.abspath(file)), "")
    for file in (__file__, sklearn.__file__, joblib.__file__)
)
_shown: set[tuple[str, str, int]] = set()


def warn(message: str | Warning, category: type[Warning]) -> None:
    """Warn once at each line that called, unless the filters say otherwise.

    That is Python's default, but Python forgets shown warnings when filters are set, and
    scikit-learn sets them before each fit of a search.

    Parameters
    ----------
    message : str or Warning
    category : type
        That of the message.
    """
    frame = sys._getframe(1)
    text = str(message)
    while frame.f_code.co_filename.startswith(_INSIDE) and frame.f_back is not None:
        frame = frame.f_back
    file = frame.f_code.co_filename
    line = frame.f_lineno
    module = frame.f_globals.get("__name__", "")
    actions = (
        action
        for action, pattern, kind, of, at in warnings.filters
        if issubclass(category, kind)
        and (pattern is None or pattern.match(text))
        and (of is None or of.match(module))
        and at in (0, line)
    )
    if next(actions, "default") in ("default", "module", "once"):
        if (text, file, line) in _shown:
            return
        _shown.add((text, file, line))
    warnings.warn_explicit(message, category, file, line, module)
