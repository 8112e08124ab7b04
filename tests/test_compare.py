"""Algorithms compared on one problem."""

import matplotlib as mpl
import numpy as np
import pytest
from helpers.estimators import overlapping, separable
from numpy.testing import assert_array_equal
from toy_algorithm import DualFista

from marginsvm import (
    DualLpPerceptron,
    DualLpRegressor,
    MaxMarginClassifier,
    MomentumMarginClassifier,
    OptimisticPerceptron,
    SmoothedKernelPerceptron,
    compare,
)

mpl.use("Agg")


def test_the_table_is_what_the_fits_say(rng, capsys):
    X, y = separable(rng)
    given = {
        "exact": MaxMarginClassifier(),
        "Ji": MomentumMarginClassifier(max_iter=20),  # ends early, without a warning
        "ours": DualFista(max_iter=50),
    }
    found = compare(given, X, y)
    printed = capsys.readouterr().out.splitlines()
    assert list(found.estimators) == list(found.table["name"]) == list(given)
    assert [line.split(":")[0] for line in printed] == list(given)
    for i, (name, model) in enumerate(found.estimators.items()):
        assert not hasattr(given[name], "certificate_")
        row = {key: column[i] for key, column in found.table.items()}
        assert row["status"] == model.status_
        assert (row["margin"], row["margin_bound"]) == (
            model.margin_,
            model.margin_bound_,
        )
        assert row["iterations"] == model.n_iter_
        assert row["passes"] == model.history_["n_passes"][-1] > 0
        assert row["seconds"] >= 0.0
        x, gap = found.gaps(name)
        assert_array_equal(x, model.history_["n_iter"])
        assert gap[-1] == pytest.approx(row["gap"], abs=1e-9)
    frame = found.to_frame()
    assert frame.loc["Ji", "status"] == "max_iter"
    assert frame.shape == (3, len(found.table) - 1)


def test_a_fit_in_a_comparison_is_the_fit_alone(rng):
    X, y = overlapping(rng)
    weight = rng.integers(1, 3, len(y)).astype(float)
    one = MomentumMarginClassifier(C=1.0, tol=0.1)
    pair = [one, MomentumMarginClassifier(C=1.0, tol=0.1, momentum=None)]
    found = compare(pair, X, y, sample_weight=weight, verbose=False)
    assert list(found.estimators) == [
        "MomentumMarginClassifier",
        "MomentumMarginClassifier 2",
    ]
    alone = one.fit(X, y, sample_weight=weight)
    assert_array_equal(alone.coef_, found.estimators["MomentumMarginClassifier"].coef_)


OTHERS = [
    (MaxMarginClassifier(), MomentumMarginClassifier(C=1.0), "C: inf and 1.0"),
    (MaxMarginClassifier(), DualLpPerceptron(), "intercept_scaling: None and 1.0"),
    (
        MaxMarginClassifier(C=1.0, loss="hinge"),
        OptimisticPerceptron(C=1.0),
        "loss: 'hinge' and",
    ),
    (MomentumMarginClassifier(nu=0.5), MomentumMarginClassifier(), "nu: 0.5 and None"),
    (
        MaxMarginClassifier(),
        MaxMarginClassifier(kernel="rbf"),
        "kernel: 'linear' and 'rbf'",
    ),
    (
        MaxMarginClassifier(kernel="rbf", gamma=1.0),
        MaxMarginClassifier(kernel="rbf"),
        "gamma: 1.0 and 'scale'",
    ),
    (
        MaxMarginClassifier(),
        MaxMarginClassifier(fit_intercept=False),
        "fit_intercept: True and",
    ),
    (
        MaxMarginClassifier(),
        SmoothedKernelPerceptron(normalize=True),
        "normalize: False and True",
    ),
]


@pytest.mark.parametrize(("one", "other", "why"), OTHERS, ids=lambda x: str(x)[:30])
def test_other_problems_are_refused(one, other, why, rng):
    with pytest.raises(ValueError, match=why):
        compare({"a": one, "b": other}, *separable(rng))


def test_what_has_no_margins_is_refused(rng):
    X, y = separable(rng)
    for stranger in (DualLpRegressor(), "a name"):
        with pytest.raises(TypeError, match="only classifiers of marginsvm"):
            compare({"it": stranger}, X, y)


@pytest.mark.parametrize(
    ("x", "label"),
    [
        ("iterations", "iterations"),
        ("passes", "passes over the data"),
        ("seconds", "seconds"),
    ],
)
def test_both_panels_have_a_line_for_each(x, label, rng):
    X, y = separable(rng)
    pair = {
        "Ji": MomentumMarginClassifier(tol=0.1),
        "slow": OptimisticPerceptron(tol=0.5),
    }
    found = compare(pair, X, y, verbose=False).plot(x)
    bounds, gaps = found.ax_
    assert bounds.get_xlabel() == gaps.get_xlabel() == label
    drawn = {line.get_label(): line.get_ydata() for line in gaps.get_lines()}
    assert set(drawn) == {"Ji", "slow", "slope $1/t$", "slope $1/t^2$"}
    _, gap = found.gaps("Ji")
    assert_array_equal(drawn["Ji"], gap[(gap < 1.0) & (gap > 0.0)])
    lines = gaps.get_lines()[:2]
    assert {a.get_color() for a in bounds.get_lines()} >= {a.get_color() for a in lines}
    assert drawn["slope $1/t^2$"][0] == drawn["slope $1/t$"][0]
    with pytest.raises(ValueError, match="x must be one of"):
        found.plot("rounds")


def test_nothing_is_drawn_where_nothing_separates(rng):
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 2))
    found = compare([MomentumMarginClassifier(max_iter=5)], X, y, verbose=False).plot()
    assert len(found.ax_[1].get_lines()[0].get_xdata()) == 0
