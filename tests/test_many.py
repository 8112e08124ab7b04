"""fit_many: each of many fits is what a single one is, and comes with its own proof."""

import numpy as np
import pytest
from helpers.battery import slow
from helpers.estimators import confirmed
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_score

from marginsvm import (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    check_certificate,
    cross_val_many,
    fit_many,
    many,
)
from marginsvm.certificate import stacks
from marginsvm.solvers.interior_point import stacked
from marginsvm.solvers.pivoting import pivoted

HARD, SQUARED = MaxMarginClassifier(), MaxMarginClassifier(C=1.0)
# with weights below C: one intercept is best
HINGE = MaxMarginClassifier(C=0.1, loss="hinge")
ESTIMATORS = [HARD, SQUARED, HINGE, MaxMarginClassifier(C=0.1, fit_intercept=False)]


def examples(n=24, d=40, seed=0, gap=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d))
    X[:, 0] += gap * (2 * y - 1)
    return X, np.array(["no", "yes"])[y]


def layouts():
    X, y = examples()
    rng = np.random.default_rng(1)
    cols = [rng.choice(40, size, replace=False) for size in (30, 35, 30)]
    rows = [np.r_[0:20], np.arange(24) > 5, rng.integers(0, 24, 20)]
    labels = np.array([rng.permutation(y) for _ in range(3)])
    stack = np.stack([examples(seed=s)[0] for s in (5, 6, 7)])
    yield "columns", (X, y), {"columns": cols}, [(X[:, c], y) for c in cols]
    yield "rows", (X, y), {"rows": rows}, [(X[r], y[r]) for r in rows]
    yield "labels", (X, labels), {}, [(X, line) for line in labels]
    yield "far", (X + 1e4, labels), {}, [(X + 1e4, line) for line in labels]
    both = [
        (X[r][:, c], line[r]) for r, c, line in zip(rows, cols, labels, strict=True)
    ]
    yield "all", (X, labels), {"rows": rows, "columns": cols}, both
    yield "stack", (stack, y), {}, [(x, y) for x in stack]
    yield (
        "float32",
        (stack.astype(np.float32), y),
        {},
        [(x.astype(np.float32), y) for x in stack],
    )


def hostile_problems():
    """The same of two problems with the same labels, which may have to be fitted singly."""
    rng, y = np.random.default_rng(3), np.arange(30) % 2
    X = rng.standard_normal((2, 30, 40))
    X[:, y == 1, :3] += 2.0
    constant, contradicted = X.copy(), X.copy()
    constant[:, :, 5:], contradicted[:, 1] = 7.0, X[:, 0]
    for name, stack, labels in (
        ("far away", X + 1e6, y),
        ("in small units", 1e-8 * X, y),
        ("in large units", 1e12 * X, y),
        ("each feature in its own unit", X * 10.0 ** rng.integers(-8, 12, 40), y),
        ("one example of a class", X, np.arange(30) == 3),
        ("constant features", constant, y),
        ("duplicates", X[:, np.r_[0:16, 0:14]], y),
        ("a contradiction", contradicted, y),
        ("one feature", X[:, :, :1], y),
        ("two examples", X[:, :2], y[:2]),
        ("zeros", 0.0 * X, y),
    ):
        yield name, (stack, labels), {}, [(x, labels) for x in stack]


LAYOUTS, HOSTILE = (
    {n: rest for n, *rest in cases} for cases in (layouts(), hostile_problems())
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=["hard", "squared", "hinge", "no intercept"]
)
@pytest.mark.parametrize("case", LAYOUTS | HOSTILE)
def test_each_is_what_a_single_fit_is(case, estimator):
    given, options, parts = (LAYOUTS | HOSTILE)[case]
    fits = fit_many(estimator, *given, **options)
    assert len(fits) == len(parts)
    for i, (X, y) in enumerate(parts):
        one, single = fits[i], clone(estimator).fit(X, y)
        confirmed(one, X, y, exact=case in LAYOUTS)
        assert one.status_ == single.status_ == fits.status[i]
        assert one.status_ == "certified" or (fits.single[i] and case in HOSTILE)
        assert one.margin_ <= single.margin_bound_
        assert single.margin_ <= one.margin_bound_
        assert {one.separable_, single.separable_} != {True, False}
        assert (fits.margin[i], fits.margin_bound[i]) == (
            one.margin_,
            one.margin_bound_,
        )
        # the results do not hold X
        assert set(vars(single)) - {"support_vectors_"} == set(vars(one)) - {
            "support_vectors_"
        }
        if case in LAYOUTS:
            assert one.gap_ <= 1e-6
            assert not fits.single[i] or (case == "far" and not estimator.fit_intercept)
            assert one.separable_ is single.separable_
            atol = 1e-3 * abs(single.coef_).max()
            np.testing.assert_allclose(one.coef_, single.coef_, atol=atol)
            np.testing.assert_array_equal(one.predict(X), single.predict(X))


def test_what_is_not_separable_is_proved_so_and_told():
    X, y = examples(d=2, gap=0.2)
    with pytest.warns(
        ConvergenceWarning, match="of 2 fits, not all are certified: 2 no_margin"
    ):
        fits = fit_many(HARD, X, y, rows=[np.arange(24), np.arange(1, 24)])
    assert fits.separable.tolist() == [False, False]
    confirmed(fits[1], X[1:], y[1:])
    with pytest.warns(ConvergenceWarning, match="no_margin"):
        scores = cross_val_many(HARD, X, y, columns=[[0], [0, 1]], cv=3)
    assert scores.accuracy.shape == (2, 3)
    with pytest.raises(ValueError, match="what a fold leaves of one has 1: "):
        cross_val_many(SQUARED, X, y, cv=[(np.arange(0, 24, 2), np.arange(1, 24, 2))])


def test_weights_and_order_of_classes_are_those_of_each_problem():
    X, y = examples()
    y[:6] = "no"
    estimator = MaxMarginClassifier(C=0.01, class_weight="balanced")
    rows = [np.arange(9), np.arange(5, 24)]
    for one, r in zip(fit_many(estimator, X, y, rows=rows), rows, strict=True):
        confirmed(one, X[r], y[r], exact=True)
    y = np.arange(24) % 3
    pairs = [np.flatnonzero(y != c) for c in range(3)]
    fits = fit_many(SQUARED, X, y, rows=pairs)
    assert fits.classes.tolist() == [[1, 2], [0, 2], [0, 1]]
    assert [fit.classes_.tolist() for fit in fits] == fits.classes.tolist()
    assert (fits[0].predict(X[pairs[0]]) == y[pairs[0]]).all()


def test_an_interrupt_returns_what_is_done(monkeypatch):
    X, y = examples()
    real, calls = many.solved, []

    def solved(*args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(many, "solved", solved)
    rows = [np.arange(20), np.arange(22), np.arange(23)]
    with pytest.warns(ConvergenceWarning, match="2 interrupted"):
        fits = fit_many(SQUARED, X, y, rows=rows, n_jobs=1)
    assert fits.status.tolist() == ["certified", "interrupted", "interrupted"]
    assert fits.gap[1] == 1.0
    with pytest.raises(NotFittedError):
        fits[1].predict(X)


@pytest.mark.slow
def test_processes_and_threads_give_the_same():
    X, y = examples()
    cols = [np.arange(j, j + 30 + j % 3) for j in range(9)]
    here = fit_many(SQUARED, X, y, columns=cols)
    with parallel_config("loky", n_jobs=2):
        there = fit_many(SQUARED, X, y, columns=cols, n_jobs=2)
    for one, other in zip(here.coef, there.coef, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(here.margin_bound, there.margin_bound)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [np.arange(3), np.arange(4)], "columns": [[0]] * 3}, "numbers of"),
        ({"rows": [[0, 2, 4]]}, "problem 0 has 1"),
        (
            {"y": np.arange(30) % 2, "rows": [[0, 1]]},
            "24 examples, but y has 30 labels",
        ),
        ({"columns": [[0.5]]}, "of integer"),
        ({"columns": [[]]}, "of integer"),
        ({"columns": [[0, 40]]}, r"columns\[0\] .*: index 40 is out of bounds"),
        ({"columns": [[[0, 1]]]}, r"columns\[0\] .* chooses shape \(1, 2\)"),
        (
            {"rows": [np.arange(24), np.arange(-25, 20)]},
            r"rows\[1\] .*: index -25 is out of",
        ),
        (
            {"rows": [np.arange(25) > 3]},
            r"rows\[0\] .*: .*size of axis is 24 but .* is 25",
        ),
        ({"columns": [np.zeros(40, bool)]}, r"but chooses shape \(0,\)"),
        (
            {"estimator": MaxMarginClassifier(kernel="rbf")},
            "kernel='linear', not 'rbf'",
        ),
        ({"estimator": MaxMarginClassifier(stopping="separation")}, "stopping='gap'"),
        ({"estimator": MaxMarginClassifier(C=-1.0)}, "'C' parameter"),
        ({"estimator": MomentumMarginClassifier()}, "MaxMarginClassifier"),
        ({"X": np.full((2, 24, 3), np.nan)}, "NaN"),
        ({"X": np.ones((1, 2, 24, 3))}, "two or three dimensions"),
        (
            {
                "X": np.stack([examples()[0] * unit for unit in (1.0, 1e60)]),
                "estimator": HINGE,
            },
            "problem 1: C and sample weights",
        ),
    ],
)
def test_errors_say_what_to_do(change, message):
    X, y = examples()
    given = {"estimator": HARD, "X": X, "y": y} | change
    with pytest.raises(
        TypeError if message == "MaxMarginClassifier" else ValueError, match=message
    ):
        fit_many(**given)


@pytest.mark.parametrize("estimator", [SQUARED, HINGE, MaxMarginClassifier(C=1e-3)])
@pytest.mark.parametrize(
    "cv",
    [None, KFold(3), slow(LeaveOneOut()), [(np.arange(16), np.arange(16, 24))]],
)
def test_cross_validation_is_that_of_single_fits(estimator, cv):
    """Of many columns, and of many labels."""
    X, y = examples(d=12)
    cols = [np.arange(j, j + 6) for j in range(6)]
    labels = np.array([np.random.default_rng(s).permutation(y) for s in range(4)])
    for scores, parts in (
        (
            cross_val_many(estimator, X, y, columns=cols, cv=cv),
            [(X[:, c], y) for c in cols],
        ),
        (cross_val_many(estimator, X, labels, cv=cv), [(X, line) for line in labels]),
    ):
        single = [cross_val_score(estimator, *part, cv=cv) for part in parts]
        np.testing.assert_allclose(scores.accuracy, single)
        assert (scores.margin <= scores.margin_bound).all()
        assert set(scores.status.ravel().tolist()) == {"certified"}


def test_an_iterator_of_splits_serves_all_sets_of_labels():
    X, y = examples(d=12)
    labels, splits = np.array([y, y[::-1]]), [*KFold(3).split(X)]
    scores = cross_val_many(SQUARED, X, labels, cv=iter(splits))
    for found, line in zip(scores.accuracy, labels, strict=True):
        np.testing.assert_allclose(found, cross_val_score(SQUARED, X, line, cv=splits))


# The bounds of fit_many hold in rational arithmetic, whatever weights they are computed from.


LOSSES = {"hard": {}, "squared": {"C": 2.0}, "hinge": {"C": 0.5, "loss": "hinge"}}


def problems(seed, n=9, d=4, n_problems=8, offset=0.0, unit=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_problems, n, d))
    y = np.arange(n) % 2
    X[:, :, 0] += np.where(y == 1, 2.0, -2.0)
    X[:, 2] = X[:, 0]  # equal examples
    return unit * (X + offset), y


def off_by(solver, noise, seed):
    rng = np.random.default_rng(seed)

    def solved(*args, **options):
        *found, done = solver(*args, **options)
        return *(x * (1.0 + noise * rng.standard_normal(x.shape)) for x in found), done

    return solved


def fitted(estimator, X, y, noise=0.0, seed=0):
    with pytest.MonkeyPatch.context() as patch:
        for solver in (pivoted, stacked):
            patch.setattr(many, solver.__name__, off_by(solver, noise, seed))
        return fit_many(estimator.set_params(tol=0.999), X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**16),
    noise=st.sampled_from([0.0, 1e-12, 1e-3]),
    offset=st.sampled_from([0.0, 3.0, 1e3]),
    unit=st.sampled_from([1e-20, 1.0, 1e20]),
    intercept=st.booleans(),
)
def test_bounds_hold_in_rationals(loss, seed, noise, offset, unit, intercept):
    X, y = problems(seed, offset=offset, unit=unit)
    C = {} if loss == "hard" else {"C": LOSSES[loss]["C"] / unit**2}
    options = LOSSES[loss] | C | {"fit_intercept": intercept}
    fits = fitted(MaxMarginClassifier(**options), X, y, noise, seed)
    for i in np.flatnonzero(~fits.single.astype(bool)):
        check = confirmed(fits[i], X[i], y, exact=True)
        assert 0.0 < fits.margin[i] <= check.margin
        assert check.margin_bound <= fits.margin_bound[i]
    assert not fits.single.all() or offset > 0.0 or noise > 0.0


def unbalanced(alpha, y, upper):
    return alpha * (1.0 + 0.01 * (y > 0.0))


# Weights that do not balance are charged for by what an intercept could add: that one holds.
MUTANTS = {
    "weights off balance": ({"balanced": unbalanced}, True),
    "weights off balance for nothing": (
        {"ORIGINS": 0.0, "balanced": unbalanced},
        False,
    ),
    "no rounding": ({"GAMMA": lambda n: 0.0, "FEW": 0.0}, False),
    "a margin that is too good": ({"FEW": -1e-13}, False),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_bounds_without_their_allowances_are_caught(loss, mutant, monkeypatch):
    X, y = problems(0, n_problems=60)
    changes, holds = MUTANTS[mutant]
    for name, value in changes.items():
        monkeypatch.setattr(stacks, name, value)
    fits = fitted(MaxMarginClassifier(**LOSSES[loss]), X, y, 1e-4)
    checks = [
        check_certificate(one, x, y, exact=True) for one, x in zip(fits, X, strict=True)
    ]
    assert all(checks) is holds
    assert not (holds and fits.single.any())


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_classes_that_overlap_are_fitted_together(C):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 60, 5)), np.arange(60) % 2
    for loss in ("hinge", "squared_hinge"):
        fits = fit_many(MaxMarginClassifier(C=C, loss=loss), X, y)
        assert not fits.single.any()
        assert fits.gap.max() < 1e-6


def test_rows_that_are_tested_only_are_checked(rng):
    X = rng.standard_normal((30, 4))
    X[25, 1] = np.nan
    y = np.arange(30) % 2
    split = [(np.arange(20), np.arange(20, 30))]
    with pytest.raises(ValueError, match="Input X contains NaN"):
        cross_val_many(MaxMarginClassifier(C=1.0), X, y, cv=split)
