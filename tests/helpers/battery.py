"""Whom a test of "every estimator" runs over, and what only the complete run takes."""

import inspect
from functools import wraps

import pytest
from toy_algorithm import DualFista

from helpers.estimators import ESTIMATORS

# One of each kind: exact, by passes, by columns, coordinate by coordinate, with rows divided by
# their norms; and the toy. They stand for all where it must be quick.
OF_EACH_KIND = {
    "MaxMarginClassifier",
    "MomentumMarginClassifier",
    "AdaptiveSamplingKernelClassifier",
    "DualLpPerceptron",
    "PerceptronVonNeumann",
    "DualFista",
}


def slow(*values):
    """Parameters of a test that only ``pytest --all`` runs."""
    return pytest.param(*values, marks=pytest.mark.slow)


def over_seeds(number):
    """Run a test, which takes a ``seed``, with each of them in one case; it prints the last one."""

    def decorate(test):
        @wraps(test)
        def run(*args, **kwargs):
            for seed in range(number):
                print("seed", seed)
                test(*args, seed=seed, **kwargs)

        taken = inspect.signature(test).parameters.values()
        run.__signature__ = inspect.Signature([p for p in taken if p.name != "seed"])
        return run

    return decorate


def in_blocks(number, size=50, quick=1):
    """Run a test of many random problems over blocks of their seeds, the first ones quickly."""
    blocks = [
        range(start, min(start + size, number)) for start in range(0, number, size)
    ]
    params = [block if i < quick else slow(block) for i, block in enumerate(blocks)]
    return pytest.mark.parametrize(
        "seeds", params, ids=[f"{b[0]} to {b[-1]}" for b in blocks]
    )


def is_quick(cls):
    return cls.__name__ in OF_EACH_KIND


def some_slow(classes):
    """Values of a parameter: estimators; those that are not one of a kind are marked slow."""
    return [cls if is_quick(cls) else slow(cls) for cls in classes]


def over(classes):
    """Run a test over some estimators; those that are not one of a kind are marked slow."""
    ids = [cls.__name__ for cls in classes]
    return pytest.mark.parametrize("cls", some_slow(classes), ids=ids)


each = over(ESTIMATORS)

# The toy of "Add an algorithm" (docs/extending.rst) must be what that page says it is.
WITH_THE_TOY = [*ESTIMATORS, DualFista]
each_and_toy = over(WITH_THE_TOY)
