"""A process whose fits are killed while they write checkpoints.

Run by ``python -m helpers.killing NUMBER SEED``. Each fit is a fork that goes on from the
last checkpoint, and is killed (SIGKILL) at a random moment. The one that lives to its end must
give the bits of a fit left in peace.
"""

import gc
import itertools
import mmap
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
from sklearn.base import clone

from helpers.estimators import ENDLESS, ESTIMATORS, fit, make, overlapping
from marginsvm import CheckpointCallback, check_certificate

ROUNDS = 12


class Note:
    """The callback after the checkpoint's: notes down, for the parent, which round is safe."""

    def __init__(self, memory, start):
        self.memory, self.start = memory, start

    def setup(self, estimator, context):
        pass

    on_fit_task_begin = teardown = setup

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "round":
            self.memory[0] = self.start + context.task_id + 1


class Case:
    """An estimator's fit with checkpoints, and the last round that is known to be safe."""

    def __init__(self, cls, folder, data):
        self.new = make(cls, max_iter=ROUNDS, C=1.0, **ENDLESS)
        self.path, self.data, self.memory = folder / cls.__name__, data, mmap.mmap(-1, 1)

    def go_on(self):
        """Fit from the last checkpoint, if there is one."""
        saved = self.path.exists()
        estimator = joblib.load(self.path).set_params(warm_start=True) if saved else self.new
        checkpoint = CheckpointCallback(self.path, every=1, unit="rounds")
        note = Note(self.memory, getattr(estimator, "n_iter_", 0))
        return fit(estimator.set_callbacks(checkpoint, note), *self.data)

    def duration(self):
        start = time.perf_counter()
        checkpoint = CheckpointCallback(self.path, every=1, unit="rounds")
        fit(clone(self.new).set_callbacks(checkpoint), *self.data)
        self.path.unlink()
        return time.perf_counter() - start

    def look(self):
        """The file is whole, and no more than a round is lost."""
        if self.path.exists():
            model = joblib.load(self.path)
            assert self.memory[0] <= model.n_iter_ <= self.memory[0] + 1
            assert check_certificate(model, *self.data)
            self.memory[0] = model.n_iter_  # the next fit begins here, whoever noted it
        else:
            assert self.memory[0] == 0

    def end(self):
        model, whole = self.go_on(), fit(clone(self.new), *self.data)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert (model.margin_, model.margin_bound_) == (whole.margin_, whole.margin_bound_)


def lived(work, seconds):
    """Run ``work`` in a fork and kill that after some time; whether it had ended."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), "the fork failed: see its traceback"
    return status == 0


def main(number, seed):
    rng, killed, folder = np.random.default_rng(seed), 0, Path(tempfile.mkdtemp())
    data = overlapping(rng, n=400)
    for cls in itertools.cycle(ESTIMATORS):
        case = Case(cls, folder, data)
        seconds = case.duration()
        gc.freeze()  # a collection would touch, and so copy, all that a fork shares with us
        while not lived(case.go_on, rng.uniform(0, seconds)):
            killed += 1
            case.look()
        case.end()
        assert os.listdir(folder) == [cls.__name__]  # nothing else is left
        case.path.unlink()
        if killed >= number:
            break
    folder.rmdir()
    print("killed", killed)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
