"""Tables of hard data, each with the parameters of its fits and how these may end."""

import inspect
from itertools import product

import pytest


class Table:
    """Cases for a test of ``(data, estimator, ends, exact)``: see helpers.estimators.certified."""

    def __init__(self, cls):
        self._cls, self._cases = cls, []

    def __call__(self, *, ends="certified", exact=False, quick=True, **grid):
        """Decorate a function that makes the arguments of ``fit``.

        The grid has values of its parameters and of those of the estimator; with ``form``, X is
        made of the function's. ``ends``, with "or" between them, may be a function of the values.
        """

        def add(make_data):
            for values in product(*grid.values()):
                given = dict(zip(grid, values, strict=True))
                taken = {
                    name: given.pop(name)
                    for name in _parameters(make_data) & set(given)
                }
                form, estimator = given.pop("form", lambda X: X), self._cls(**given)

                def data(taken=taken, form=form):
                    X, *rest = make_data(**taken)
                    return form(X), *rest

                found = ends(**taken, **given) if callable(ends) else ends
                names = (str(getattr(value, "__name__", value)) for value in values)
                case = pytest.param(
                    data,
                    estimator,
                    tuple(found.split(" or ")),
                    exact,
                    id="-".join([make_data.__name__, *names]),
                    marks=[] if quick else [pytest.mark.slow],
                )
                self._cases.append(case)
            return make_data

        return add

    @property
    def each(self):
        return pytest.mark.parametrize(
            ("data", "estimator", "ends", "exact"), self._cases
        )


def _parameters(function):
    return set(inspect.signature(function).parameters)
