"""What fits say of themselves is true of this very data, what they advise helps; how they end."""

import _thread
import re
import time
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import each, slow
from helpers.claiming import claim
from helpers.estimators import (
    DETECTORS,
    ESTIMATORS,
    REGRESSORS,
    AtRound,
    certified,
    confirmed,
    fit,
    make,
    needs_more_digits,
    overlapping,
    parameters,
    separable,
)
from helpers.pairwise import pairwise
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from marginsvm import (
    AdaptiveSamplingKernelClassifier,
    CostCurveDisplay,
    DualLpPerceptron,
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MomentumMarginClassifier,
    SmoothedKernelPerceptron,
    check_certificate,
    check_separability,
)
from marginsvm._rounding import at_least, at_most
from marginsvm.solvers.solve import solve


def warning_of(estimator, X, y):
    with pytest.warns(ConvergenceWarning) as caught:
        estimator.fit(X, y)
    (warning,) = caught
    assert warning.filename == __file__  # it points at the caller
    return str(warning.message)


def versicolor_and_virginica():
    X, y = load_iris(return_X_y=True)
    return X[50:], y[50:]


@pytest.mark.parametrize(
    "outer",
    [
        lambda clf: make_pipeline(StandardScaler(), clf),
        lambda clf: GridSearchCV(clf, {"tol": [0.0]}, cv=2),
        lambda clf: OneVsRestClassifier(clf),
    ],
)
def test_warnings_name_the_users_line_through_scikit_learn(outer):
    X, y = versicolor_and_virginica()
    with pytest.warns(ConvergenceWarning) as caught:
        outer(MomentumMarginClassifier(C=1.0, max_iter=3)).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


def test_warnings_of_a_fit_that_no_line_calls():
    """The interpreter calls fit: the stack ends within this package and scikit-learn."""
    clf = MomentumMarginClassifier(C=1.0, max_iter=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _thread.start_new_thread(clf.fit, versicolor_and_virginica())
        for _ in range(6000):
            if caught:
                break
            time.sleep(0.01)
    assert "max_iter=3" in str(caught[0].message)


@pytest.mark.parametrize(
    ("margin", "margin_bound", "gap", "begin"),
    [
        (3.0, 4.0, 0.25, "3 <= "),
        (2.0, 2.0, 0.0, "2 <= "),
        (-1.0, 0.5, 1.0, ""),
        (-1.0, 0.0, 0.0, ""),
        (0.0, 0.0, 0.0, ""),
    ],
)
def test_gap_of_two_bounds(margin, margin_bound, gap, begin):
    """A lower bound that is not positive is not printed."""
    any_certificate = MaxMarginClassifier().fit([[0.0], [1.0]], [0, 1]).certificate_
    certificate = replace(any_certificate, lower=margin, upper=margin_bound)
    assert certificate.gap == gap
    shown = f"certified: {begin}best margin <= {margin_bound:g} (relative gap {gap:g}),"
    assert str(certificate).startswith(shown)


@each
def test_verbose_prints_bounds_that_close(cls, rng, capsys):
    """Both bounds get better only, and so does their gap."""
    X, y = overlapping(rng, n=1000, d=20)
    clf = fit(make(cls, max_iter=300, verbose=1), X, y)
    lines = capsys.readouterr().out.splitlines()
    gaps = [float(re.search(r"relative gap (\S+)\)", line)[1]) for line in lines]
    bounds = [float(re.search(r"margin_bound (\S+)", line)[1]) for line in lines]
    assert len(gaps) >= min(2, clf.n_iter_)
    assert np.all(np.diff(gaps) <= 0)
    assert np.all(np.diff(bounds) <= 0)
    assert max(gaps) <= 1.0


with_stopping = [cls for cls in ESTIMATORS if {"C", "stopping"} <= set(parameters(cls))]


@pytest.mark.parametrize("cls", with_stopping, ids=lambda cls: cls.__name__)
def test_slack_separates_nothing_but_a_soft_margin_may(cls, rng):
    X, y = versicolor_and_virginica()
    params = {"stopping": "separation", "max_iter": 30_000}
    clf = fit(make(cls, C=1.0, tol=1e-2, **params), X, y)
    assert clf.score(X, y) < 1.0
    assert clf.status_ == "certified"
    claim(clf, status="separated")
    assert "separated" in check_certificate(clf, X, y).reason
    for k in (2, 3):
        X, y = separable(rng, k=k)
        clf = fit(make(cls, C=1e3, tol=1e-9, **params), X, y)
        assert clf.score(X, y) == 1.0
        assert (clf.status_, clf.separable_) == ("separated", True)
        assert check_certificate(clf, X, y)


@each
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_model_where_nothing_separates_knows_both_classes(cls, kernel, rng):
    """A fifth of the examples are of the second class, which overlaps with the first."""
    if kernel != "linear" and "kernel" not in parameters(cls):
        pytest.skip("has no kernel form")
    y = (np.arange(300) % 5 == 0).astype(int)
    X = rng.standard_normal((300, 2)) + 2.0 * y[:, None]
    clf = fit(make(cls, kernel=kernel, gamma=0.1, max_iter=50, normalize=False), X, y)
    assert clf.status_ in (
        "max_iter",
        "no_margin",
        "stalled",
    )  # as good as nothing separates
    assert balanced_accuracy_score(y, clf.predict(X)) > 0.75


@pytest.mark.parametrize("max_iter", [1, 2])
def test_an_early_end_leaves_a_sensible_model(max_iter, rng):
    """In high dimension, where examples can be separated, before they are."""
    y = (np.arange(800) % 4 == 0).astype(int)
    X = rng.standard_normal((800, 180)) + 0.3 * y[:, None]
    clf = fit(MaxMarginClassifier(max_iter=max_iter), X, y)
    assert clf.status_ == "max_iter"
    assert balanced_accuracy_score(y, clf.predict(X)) > 0.8


def integers_far_from_zero(rng):
    """Labels with some noise, and 100 columns of integers around 480, all of a size."""
    X = rng.standard_normal((1000, 100))
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(1000) > 0).astype(int)
    return np.round(480.0 + 20.0 * X), y


@pytest.mark.parametrize("C", [1e6, 1e10, pytest.param(1e14, marks=needs_more_digits)])
def test_soft_margins_of_integers_far_from_zero_are_certified(C, rng):
    """Slack coordinates are down to 1e-10 of the rows, beside which their squares are not seen."""
    X, y = integers_far_from_zero(rng)
    certified(MaxMarginClassifier(C=C), X, y)


@pytest.mark.slow
def test_soft_margins_stop_where_rounding_hides_the_rest(rng):
    """Kernel values of 1e7, and slack coordinates of 1e-5 beside: these are not seen."""
    X, y = integers_far_from_zero(rng)
    K, clf = X @ X.T, MaxMarginClassifier(C=1e10, kernel="precomputed")
    assert warning_of(clf, K, y).endswith("a smaller C may be solved to the end.")
    assert clf.status_ == "stalled"
    assert clf.n_iter_ < 300
    confirmed(clf, K, y)
    certified(clf.set_params(C=1e-4), K, y)


@pytest.fixture
def halted(monkeypatch):
    """The exact solver, whose methods do nothing more after their first iteration."""

    place = "marginsvm.estimators.exact.solve"
    monkeypatch.setattr(place, lambda *args: islice(solve(*args), 1))


STALLS = {
    "similar units": (1.0, np.asarray, {"C": 1e4, "loss": "hinge"}),
    "sparse": (1.0, sp.csr_array, {"C": 1e4, "loss": "hinge"}),
    "other units": (1e3, np.asarray, {"C": 1e4, "loss": "hinge"}),
    "far apart": (1e4, np.asarray, {"C": 1e5}),
    "float32": (1.0, np.float32, {"kernel": lambda A, B: rbf_kernel(A, B, gamma=0.05)}),
}


@pytest.mark.parametrize(("unit", "form", "params"), STALLS.values(), ids=STALLS)
def test_a_stall_is_not_put_down_to_rounding_unless_it_is(
    unit, form, params, rng, halted
):
    """Bounds that are far apart are not worth accepting; a gap is never more than 1."""
    X, y = separable(rng, n=600, d=30, margin=0.05)
    X[:, 0] *= unit
    clf = MaxMarginClassifier(**params)
    text = warning_of(clf, form(X), y)
    assert "relative gap above tol=1e-06" in text
    assert "No method came nearer; " in text
    assert "rounding" not in text
    assert ("a smaller C may be solved to the end" in text) == ("C" in params)
    assert ("features in similar units (StandardScaler) may help" in text) == (
        unit > 1.0
    )
    assert clf.gap_ < 0.5 or "accepts these bounds" not in text
    assert clf.gap_ > 0.5 or unit < 1e4
    if form is np.float32:
        assert "; kernel values in float32 have seven digits." in text
        assert text.endswith("Pass X as float64.")


@pytest.mark.slow
@pytest.mark.parametrize("C", [np.inf, 1e6])
def test_kernels_of_examples_in_float32_have_all_digits(C, shared_data):
    X, y = (shared_data("svmguide1")[name][::4] for name in ("X_train", "y_train"))
    narrow, wide = X.astype(np.float32), X.astype(np.float32).astype(np.float64)
    clf, same = (
        fit(MaxMarginClassifier(kernel="rbf", C=C), Z, y) for Z in (narrow, wide)
    )
    assert clf.status_ == same.status_
    assert clf.margin_bound_ == pytest.approx(same.margin_bound_, rel=1e-5)


def test_a_fit_that_has_stalled_goes_on_nowhere(rng):
    """Two kinds of iris, and a time for each flower, in nanoseconds since 1970; and tol = 0."""
    X, y = load_iris(return_X_y=True)
    time = 1.7e18 + np.random.default_rng(0).integers(0, 10**16, 100)
    X, y = np.column_stack([X[:100], time]), y[:100]
    clf = fit(MaxMarginClassifier(C=1.0, warm_start=True), X, y)
    margin, bound = clf.margin_, clf.margin_bound_
    fit(clf, X, y)
    assert (clf.status_, clf.margin_) == ("stalled", pytest.approx(margin))
    fit(clf.set_params(tol=2.0 * clf.gap_), X, y)
    assert (clf.status_, clf.margin_bound_) == ("certified", pytest.approx(bound))
    ended = fit(MaxMarginClassifier(C=1.0, tol=0.0), *overlapping(rng))
    assert ended.status_ == "stalled"
    assert ended.gap_ < 1e-9


@pytest.mark.parametrize("tol", [slow(0.3), slow(0.1), 0.03])
def test_a_smaller_tol_is_looked_at_again(tol, rng):
    """Rows that violate only the smaller one are found when a fit goes on with it."""
    X, y = overlapping(rng, n=2000, d=3)
    X += 0.7 * y[:, None]
    clf = MaxMarginClassifier(
        C=1.0, kernel="rbf", gamma=0.5, tol=tol, warm_start=True
    ).fit(X, y)
    assert clf.set_params(tol=1e-6).fit(X, y).status_ == "certified"


@pytest.mark.parametrize("C", [np.inf, 1e4])
@each
def test_more_rounds_are_advised_where_they_help(cls, C, rng):
    X, y = separable(rng, n=600, d=40, margin=0.05)
    few, many = (make(cls, C=C, tol=1e-9, stopping="gap", max_iter=n) for n in (1, 200))
    text = warning_of(few, X, y)
    assert "max_iter=1 iterations" in text
    assert "Increase max_iter" in text
    assert fit(many, X, y).gap_ < few.gap_


@pytest.mark.parametrize(
    ("C", "advised"), [(np.inf, "set C < inf if"), (10.0, "a smaller C")]
)
def test_c_is_advised_where_it_is_not_set(C, advised):
    X, y = versicolor_and_virginica()
    text = warning_of(MomentumMarginClassifier(C=C, max_iter=30), X, y)
    assert advised in text
    assert ("C < inf" in text) == np.isinf(C)
    rounds = [
        fit(MomentumMarginClassifier(C=c, tol=0.1), X, y).n_iter_ for c in (1.0, 10.0)
    ]
    assert rounds[0] < rounds[1]
    assert MomentumMarginClassifier(C=1.0).fit(X, y).status_ == "certified"


@pytest.mark.slow
def test_a_precomputed_kernel_in_float32_is_named():
    X, y = versicolor_and_virginica()
    K = X @ X.T
    clf = MaxMarginClassifier(kernel="precomputed", C=1e6)
    assert "Pass the kernel matrix as float64." in warning_of(
        clf, K.astype(np.float32), y
    )
    assert (
        fit(MaxMarginClassifier(kernel="precomputed", C=1e6), K, y).gap_
        < 0.01 * clf.gap_
    )


@pytest.mark.slow
def test_the_last_round_may_reach_tol():
    """Bounds of float32 rounds are confirmed now and then only; those of the last one, always."""
    X, y = load_iris(return_X_y=True)
    X, y = X[:100].astype(np.float32), y[:100]
    late = SmoothedKernelPerceptron(tol=1e-4).fit(X, y)
    for n in range(late.n_iter_ - 3, late.n_iter_):
        clf = fit(SmoothedKernelPerceptron(tol=1e-4, max_iter=n), X, y)
        assert (clf.status_ == "certified") == (clf.gap_ <= 1e-4)


@pairwise(
    cls=[MaxMarginClassifier, MomentumMarginClassifier],
    C=[1.0, 10.0],
    fit_intercept=[False, True],
)
def test_kernels_that_are_not_positive_semidefinite_are_named(cls, C, fit_intercept):
    X, y = versicolor_and_virginica()
    params = {"C": C, "max_iter": 100, "tol": 1e-6, "fit_intercept": fit_intercept}
    clf = make(cls, kernel="sigmoid", **params)
    if cls is MaxMarginClassifier:
        with pytest.raises(ValueError, match="not positive semidefinite") as error:
            clf.fit(X, y)
        text = str(error.value)
    else:
        text = warning_of(clf, X, y)
    K = sigmoid_kernel(X, gamma=1 / (X.shape[1] * X.var()), coef0=0.0)
    centre = np.eye(100) - 0.01 * fit_intercept
    assert np.linalg.eigvalsh(centre @ K @ centre)[0] < -0.01
    assert "not positive semidefinite (it has negative eigenvalues)" in text
    assert "fit_intercept" not in text
    assert make(cls, kernel="rbf", C=C, tol=1e-3).fit(X, y).status_ == "certified"


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_an_intercept_is_advised_where_it_helps(C):
    """Minus the distance is a kernel on weights that sum to 0."""
    X, y = versicolor_and_virginica()
    K = -np.linalg.norm(X[:, None] - X, axis=2)
    with pytest.raises(ValueError, match="set fit_intercept=True, which helps here"):
        MaxMarginClassifier(kernel="precomputed", C=C, fit_intercept=False).fit(K, y)
    assert (
        MaxMarginClassifier(kernel="precomputed", C=C).fit(K, y).status_ == "certified"
    )
    with pytest.raises(ValueError, match="not positive semidefinite") as caught:
        MomentumMarginClassifier(kernel="sigmoid").fit(X, y)
    assert "fit_intercept" not in str(caught.value)  # which is fitted


KINDS = {"overlapping": overlapping, "separable": partial(separable, d=40, margin=0.05)}


@each
@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_fits_that_end_alike_say_the_same(cls, C, kind, rng):
    """So Python, which shows a text once at a place, shows it once in a search."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (60, 70):
            make(cls, C=C, tol=1e-9, max_iter=3).fit(*KINDS[kind](rng, n=n))
    texts = {str(warning.message) for warning in caught}
    assert len(caught) in (0, 2)
    assert len(texts) == len(caught) / 2
    assert "certificate_" in "".join(texts) or not texts


def test_a_search_warns_once_of_each_cause(rng):
    X, y = overlapping(rng, n=90)
    grid = {
        "step": ["constant", "inv_sqrt", 0.5],
        "momentum": ["nesterov", None],
        "C": [1.0, 10.0],
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        GridSearchCV(MomentumMarginClassifier(max_iter=6), grid, cv=3).fit(X, y)
    (warning,) = caught
    assert warning.filename == __file__


def test_the_warning_says_what_happened_what_is_left_and_what_to_do(rng):
    X, y = overlapping(rng, n=900, d=5)
    text = warning_of(MaxMarginClassifier(), X + 0.5 * y[:, None], y)
    facts = [
        "classes overlap: no predictor separates",
        "The model is the limit",
        "C < inf gives",
    ]
    assert sorted(facts, key=text.index) == facts


def test_printed_bounds_are_bounds():
    """To few digits, a lower one is rounded down, and an upper one up."""
    rng = np.random.default_rng(0)
    for x in (*(10.0 ** rng.uniform(-300, 300, 200)), 1.0, 0.1, 1 / 3, 9.9999999):
        for digits in (3, 6):
            below, above = at_least(x, digits), at_most(x, digits)
            assert Fraction(below) <= Fraction(x) <= Fraction(above)
            assert float(above) <= float(below) * (1.0 + 10.0 ** (1 - digits))
    assert (at_least(0.99999999), at_most(1.00000001)) == ("0.999999", "1.00001")


# How a fit ends: its status agrees with its gap, and no margin is called none for its size.


ALL = [*ESTIMATORS, *REGRESSORS, *DETECTORS]
EASY = {"overlapping": overlapping, "separable": separable}


def agree(estimator):
    """Whether a fit that ended short is short of tol, and one that is certified is not."""
    gap, tol = estimator.gap_, estimator.tol
    if estimator.status_ in ("max_iter", "stopped", "stalled"):
        # the gap of a hard tube is that of one that is wider by violation_
        return gap > tol or getattr(estimator, "violation_", 0.0) > 0.0
    return estimator.status_ != "certified" or gap <= tol


@pairwise(
    cls={cls.__name__: cls for cls in ALL},
    of={f"{kind}-{C}": (EASY[kind], C) for kind in EASY for C in (np.inf, 1.0, 1e-3)},
    tol=[0.3, 1e-2, 1e-4],
)
def test_statuses_and_gaps_agree(cls, of, tol, rng):
    kind, C = of
    X, y = kind(rng)
    params = {
        "C": C,
        "tol": tol,
        "stopping": "gap",
        "momentum": 0.0,
        "accelerated": False,
    }
    for max_iter in (3, 15, 40, 100):
        estimator = make(cls, max_iter=max_iter, **params)
        assert agree(fit(estimator, X, *() if cls in DETECTORS else (y,)))


@pytest.mark.callbacks
@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_a_fit_is_not_called_stopped_that_has_reached_tol(cls, rng):
    X, y = overlapping(rng)
    for n in (2, 15, 60):
        estimator = make(cls, C=1.0, tol=0.1, accelerated=False).set_callbacks(
            AtRound(n)
        )
        assert agree(fit(estimator, X, *() if cls in DETECTORS else (y,)))


@pytest.mark.parametrize("max_iter", [60, 200])
def test_a_fit_ends_where_its_confirmed_bounds_meet(max_iter):
    """The predictor of a round is better with the slack that it needs than with that of its row."""
    X, y = load_breast_cancer(return_X_y=True)
    params = {"C": 1.0, "tol": 1e-3, "random_state": 0, "accelerated": False}
    clf = DualLpPerceptron(max_iter=max_iter, **params).fit(
        StandardScaler().fit_transform(X), y
    )
    assert clf.status_ == "certified"
    assert clf.n_iter_ <= 60
    assert clf.gap_ > 1e-7


def thin(rng, n=80, d=4):
    """Two classes whose best margin is a ten-thousandth of the radius."""
    X = rng.uniform(-1.0, 1.0, (n, d))
    y = np.arange(n) % 2
    X[:, 0] = 2e-4 * (2 * y - 1) * (1.0 + rng.random(n))
    X[:2, 0], X[:2, 1:] = [-2e-4, 2e-4], 0.0
    return X, y


@each
@pytest.mark.parametrize("kind", [thin, overlapping])
def test_no_margin_is_said_with_a_proof_whatever_tol_is(cls, kind, rng):
    X, y = kind(rng)
    for tol in (0.5, 1e-2):
        clf = fit(make(cls, tol=tol, max_iter=300, stopping="gap"), X, y)
        assert kind is overlapping or clf.status_ != "no_margin"
        assert kind is overlapping or clf.separable_ is not False
        assert clf.status_ != "no_margin" or clf.separable_ is False
        assert check_certificate(clf, X, y)


def test_a_few_draws_are_no_proof(rng):
    """Text with a few long documents: its margin is a thousandth of the radius."""
    length = np.where(np.arange(200) < 4, 50.0, 1.0)
    X = sp.random_array((200, 5000), density=0.01, rng=rng, format="csr")
    X, y = sp.diags_array(length) @ X, np.arange(200) % 2
    clf = fit(AdaptiveSamplingKernelClassifier(max_iter=300, random_state=0), X, y)
    assert clf.status_ == "max_iter"
    assert MaxMarginClassifier().fit(X, y).separable_ is True


# What a fit leaves where nothing separates: cheap proofs, and the limit of the soft margins.


def labelled(rng, k, n=700, d=30):
    """Examples that a predictor without intercept separates."""
    X = rng.standard_normal((n, d))
    return X, np.argmax(X @ rng.standard_normal((d, k)), axis=1)


def with_a_contradiction(rng, kind, k, n=700):
    X, y = labelled(rng, k, n)
    if kind == "equal":
        X[-1], y[-1] = X[0], (y[0] + 1) % k
    elif kind == "opposite":
        X[-1], y[-1] = -X[0], y[0]
    else:
        X[-1] = 0.0
    return X, y


FORMS = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sp.csr_array,
}


@pairwise(
    of={
        "equal": ("equal", True),
        "equal, through 0": ("equal", False),
        "opposite": ("opposite", False),
        "zero": ("zero", False),
    },
    k=[2, 3],
    form=list(FORMS),
)
def test_rows_that_cancel_are_a_proof_at_once(of, k, form, rng):
    kind, fit_intercept = of
    X, y = with_a_contradiction(rng, kind, k)
    X = FORMS[form](X)
    clf = fit(MaxMarginClassifier(fit_intercept=fit_intercept), X, y)
    # by coordinate descent, before
    tried = form == "CSR" and k == 2 and kind != "equal"
    assert (clf.status_, clf.separable_, clf.n_iter_) == ("no_margin", False, 1 + tried)
    assert clf.certificate_.weights.nnz == (1 if kind == "zero" else 2)
    assert check_certificate(clf, X, y)


@pairwise(kind=["equal", "opposite", "zero"], k=[2, 3])
def test_equal_examples_are_equal_for_every_kernel(kind, k, rng):
    """The origin of its features is not that of the examples."""
    X, y = with_a_contradiction(rng, kind, k, n=200)
    clf = MaxMarginClassifier(kernel="rbf", fit_intercept=kind == "equal")
    certified(clf, X, y, ends=("no_margin" if kind == "equal" else "certified",))
    assert clf.separable_ is (kind != "equal")
    assert kind != "equal" or clf.certificate_.weights.nnz == 2


def squared_slack(clf, X, y, weight):
    m = (2.0 * y - 1.0) * clf.decision_function(X)

    def slack(log_scale):
        return weight @ np.maximum(1.0 - np.exp(log_scale) * m, 0.0) ** 2

    return min(slack(s) for s in np.linspace(-12.0, 12.0, 2401))


@pytest.mark.parametrize("units", [1.0, 1.5e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_has_the_least_squared_slack(weighted, units, rng):
    """Also where a feature is ten thousand times longer than the others that count."""
    X, y = overlapping(rng, n=1500, d=6)
    X += 0.4 * y[:, None]
    X[:, 0] *= units
    weight = rng.integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    clf = fit(MaxMarginClassifier(), X, y, sample_weight=weight)
    assert clf.separable_ is False
    Z, peer = StandardScaler().fit_transform(X), LinearSVC(C=1e6, dual=False, tol=1e-8)
    least = squared_slack(peer.fit(Z, y, weight), Z, y, weight)
    assert squared_slack(clf, X, y, weight) <= 1.02 * least


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_more_than_two_classes_have_such_a_model(kernel, rng):
    X, y = overlapping(rng, n=600, d=4, k=4)
    X[np.arange(600), y] += 2.5
    X[0], y[0] = X[1], (y[1] + 1) % 4  # so that no kernel separates them either
    clf = fit(MaxMarginClassifier(kernel=kernel, gamma=0.1), X, y)
    assert clf.separable_ is False
    assert clf.score(X, y) > 0.85


def refuse_missing_labels(X, y):
    MaxMarginClassifier().fit(X, [None, *"ab" * len(X)][: len(X)])


def refuse_no_costs(X, y):
    MaxMarginClassifierCV(Cs=[]).fit(X, y)


def refuse_no_gammas(X, y):
    MaxMarginClassifierCV(kernel="rbf", gammas=[]).fit(X, y)


def refuse_fits_without_scores(X, y):
    CostCurveDisplay.from_estimator(MaxMarginClassifier().fit(X, y))


def refuse_one_word_as_names(X, y):
    check_separability(X, y, feature_names="ab")


REFUSED = {  # what cannot be done, and what is expected or helps
    refuse_missing_labels: "y has NoneType and str; leave out examples without a label",
    refuse_no_costs: "Cs must be an integer or a list of finite positive numbers",
    refuse_no_gammas: "gammas must be a list of finite positive numbers",
    refuse_fits_without_scores: "no scores_: pass a fitted MaxMarginClassifierCV",
    refuse_one_word_as_names: "feature_names must be a list of names, but is 'ab'",
}


@pytest.mark.parametrize("refuse", REFUSED, ids=lambda refuse: refuse.__name__)
def test_what_is_refused_is_named_with_what_is_expected(refuse, rng):
    with pytest.raises((ValueError, TypeError), match=re.escape(REFUSED[refuse])):
        refuse(*separable(rng, d=2))


def test_allowed_values_are_listed_in_one_order():
    with pytest.raises(ValueError, match="'cosine', 'laplacian', 'linear', 'poly'"):
        MaxMarginClassifier(kernel="other").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="'normalized', 'plain', 'theory'"):
        MomentumMarginClassifier(gradient="other").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_a_check_on_other_data_says_that_these_may_be_others(C):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    clf = MaxMarginClassifier(C=C).fit(X, y)
    others = StandardScaler().fit_transform(X)
    assert "may not be those of the fit" in check_certificate(clf, others, y).reason
    clf.certificate_ = replace(clf.certificate_, lower=2.0 * clf.margin_)
    assert "those of the fit" not in check_certificate(clf, X, y).reason
