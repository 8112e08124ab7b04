"""CheckpointCallback: save the progress of a fit on disk, in case its process is killed."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import IO, Any

import joblib
from sklearn.base import clone

from marginsvm.estimator.played import Played

__all__ = ["CheckpointCallback"]


class CheckpointCallback:
    """Save a fit at intervals, so that it can be continued.

    The file holds the fitted estimator as if the fit had been stopped there, with its
    certificate; ``joblib.load(path).set_params(warm_start=True).fit(X, y)`` continues as if it
    had not been stopped. The model at the end of the fit is not saved.

    A process that is killed loses the rounds since the last checkpoint, and leaves no incomplete
    one (but perhaps a temporary file beside it, which the next fit removes).

    Parameters
    ----------
    path : str or path-like
        File of the checkpoint, in a directory that exists. One file, one fit.
    every : float, default=60.0
        Smallest distance between two checkpoints (in the given ``unit``).
    unit : {"seconds", "rounds"}, default="seconds"
        Unit of ``every``.

    Raises
    ------
    OSError
        If a checkpoint cannot be written: before the first round if the directory does not
        exist or is not writable; otherwise (the disk is full) later. The previous checkpoint
        then stays, and the estimator keeps the best model so far, with the status
        ``"interrupted"``.

    Notes
    -----
    Callbacks need scikit-learn 1.9 or newer. Set this one on an estimator of this package (by
    ``set_callbacks``), not on a search or pipeline around it. Callbacks are not saved with an
    estimator: set them again before a fit continues.

    Examples
    --------
    >>> import joblib, os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import CheckpointCallback, MomentumMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "fit.joblib")
    >>> checkpoint = CheckpointCallback(path, every=10, unit="rounds")
    >>> whole = MomentumMarginClassifier().set_callbacks(checkpoint).fit(X[:100], y[:100])
    >>> saved = joblib.load(path)
    >>> saved.status_, saved.n_iter_ < whole.n_iter_
    ('stopped', True)
    >>> rest = saved.set_params(warm_start=True).fit(X[:100], y[:100])
    >>> rest.n_iter_ == whole.n_iter_, rest.margin_ == whole.margin_
    (True, True)
    """

    def __init__(
        self, path: str | os.PathLike[str], *, every: float = 60.0, unit: str = "seconds"
    ) -> None:
        if not every > 0:
            raise ValueError(f"every must be positive, but is {every!r}")
        if unit not in ("seconds", "rounds"):
            raise ValueError(f"unit must be 'seconds' or 'rounds', but is {unit!r}")
        self.path = Path(path)
        self.every = every
        self.unit = unit

    def setup(self, estimator: Any, context: Any) -> None:
        """Make sure, before the first round, that checkpoints can be written."""
        if not isinstance(estimator, Played):
            raise TypeError(
                "CheckpointCallback saves the fits of marginsvm's estimators; set it on one of "
                f"them, not on {type(estimator).__name__}"
            )
        with self._explained():
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "Is a directory")
            with tempfile.TemporaryFile(dir=self.path.parent) as file:
                joblib.dump(clone(estimator).set_callbacks(), file)  # a lambda cannot be saved
            for torn in self.path.parent.glob(f".{escape(self.path.name)}.*.tmp"):
                torn.unlink()  # a process was killed while it wrote
        self._due = self._now(0) + self.every

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing is to be saved before a round."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Save after a round, if it is time to."""
        if context.task_name != "round" or self._now(context.task_id + 1) < self._due:
            return
        model = clone(estimator).set_callbacks()
        model._publish(estimator._snapshot())
        with self._explained(), _replacing(self.path) as file:
            joblib.dump(model, file)
        self._due = self._now(context.task_id + 1) + self.every

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is left open."""

    def _now(self, n_rounds: int) -> float:
        return time.monotonic() if self.unit == "seconds" else n_rounds

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(
                error.errno or 0,
                f"the checkpoint cannot be written ({error.strerror or error}); an earlier one is "
                "left as it was. Name a file in a directory that exists, may be written to and "
                "has room",
                str(self.path),
            ) from error


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of ``path`` when it is complete, and on the disk."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
