"""scikit-learn's callbacks, and for versions before 1.9, which have none, a stand-in without any.

Nothing else in the package depends on whether there are callbacks: a fit without any is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import sklearn

__all__ = ["CallbackSupportMixin", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:

    class _NoCallbacks:
        """The context of a fit that has no callbacks to call."""

        def call_on_fit_task_begin(self, **_: Any) -> None:
            """No callback is told."""

        def call_on_fit_task_end(self, **_: Any) -> None:
            """No callback is told."""

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """What :class:`DualStateMixin` uses of scikit-learn's mixin, without callbacks."""

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Refuse callbacks; without any, return the estimator as it is."""
            if callbacks:
                raise ImportError(
                    "set_callbacks needs scikit-learn 1.9 or newer, but this is scikit-learn "
                    f"{sklearn.__version__}: pip install -U 'scikit-learn>=1.9'"
                )
            return self

        def _init_callback_context(self, **_: Any) -> _NoCallbacks:
            return _NoCallbacks()

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Call the method. As deep as scikit-learn's decorator, as warnings name their caller."""

        @wraps(method)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        return wrapped
