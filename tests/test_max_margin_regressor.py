"""Support vector regression by the exact solver: its objectives, proofs and attributes."""

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.battery import slow
from helpers.claiming import refused
from helpers.estimators import certified, confirmed, fit
from helpers.hostile import random_examples
from helpers.tables import Table
from scipy.optimize import linprog
from sklearn.datasets import load_diabetes
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR, LinearSVR, NuSVR

from marginsvm import (
    DualLpRegressor,
    MaxMarginOutlierDetector,
    MaxMarginRegressor,
    check_certificate,
)

LOSSES = {"epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}
each_loss = pytest.mark.parametrize("loss", LOSSES)


def line(rng, n=40, d=5, noise=1.0):
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + noise * rng.standard_normal(n)


def waves(rng, n=150):
    X = rng.uniform(-2.0, 2.0, (n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(n)


def gram(X):
    K = X @ X.T
    return 0.5 * (K + K.T)


def objective(model, X, y, weight=None):
    """P of a model of ours or of scikit-learn, from its predictions; a share prices its width."""
    weight, found = np.ones(len(y)) if weight is None else weight, model.predict(X)
    if hasattr(model, "coef_"):
        square = np.sum(model.coef_**2)
    else:
        square = model.dual_coef_[0] @ (found - model.intercept_[0])[model.support_]
    if getattr(model, "nu", None):
        order = np.argsort(-np.abs(found - y))
        left = model.nu * weight.sum() - np.append(0.0, np.cumsum(weight[order])[:-1])
        cost = np.clip(left, 0.0, weight[order]) @ np.abs(found - y)[order]
    else:
        power = LOSSES.get(getattr(model, "loss", ""), 1)
        cost = weight @ np.maximum(np.abs(found - y) - model.epsilon, 0.0) ** power
    return 0.5 * square + model.C * cost


def diabetes(n, unit=1.0):
    X, y = load_diabetes(return_X_y=True)
    return X[:n] * unit, y[:n] / (80.0 if unit > 1.0 else 1.0)


POLY = {"gamma": 0.2, "degree": 2, "coef0": 1.0}
PROBLEMS = [
    *(
        (SVR, {"kernel": "linear", "C": C, "epsilon": e})
        for C in (0.1, 10.0)
        for e in (0, 0.1, 20)
    ),
    *(
        (SVR, {**POLY, "kernel": k, "C": C, "epsilon": 5})
        for k in ("rbf", "poly")
        for C in (1, 99)
    ),
    *(
        (NuSVR, {**POLY, "kernel": k, "C": 1.5, "nu": nu})
        for k in ("linear", "rbf", "poly")
        for nu in (0.02, 0.5, 1.0)
    ),
    *(
        (LinearSVR, {"C": 2.0, "epsilon": 0.3, "loss": loss, "fit_intercept": False})
        for loss in LOSSES
    ),
]


@pytest.mark.parametrize(("peer", "params"), PROBLEMS)
def test_it_is_the_problem_of_scikit_learn(peer, params, rng):
    if peer is LinearSVR:
        (X, y), weight, options = line(rng), None, {"max_iter": 10**6, "dual": True}
    elif peer is SVR:
        (X, y), weight, options = (
            diabetes(None if params["kernel"] == "linear" else 200),
            None,
            {},
        )
    else:
        (X, y), weight, options = (
            diabetes(150, unit=20.0),
            rng.integers(1, 4, 150) / 2.0,
            {},
        )
    reg = certified(MaxMarginRegressor(**params, tol=1e-7), X, y, weight)
    least = objective(
        peer(**params, tol=1e-10, **options).fit(X, y, weight), X, y, weight
    )
    assert reg.objective_ == pytest.approx(least, rel=1e-6)
    assert reg.objective_bound_ <= least * (1 + 1e-12)
    assert reg.objective_ == pytest.approx(objective(reg, X, y, weight), rel=1e-8)
    assert reg.epsilon_ == 0.0 or params.get("nu") != 1.0
    assert hasattr(reg, "coef_") == (params.get("kernel", "linear") == "linear")


@each_loss
def test_the_weights_make_up_the_predictor(rng, loss):
    X, y = line(rng)
    weight = rng.integers(0, 4, len(y)) / 2.0
    reg = MaxMarginRegressor(C=0.7, epsilon=0.2, loss=loss).fit(X, y, weight)
    alpha, caps = reg.dual_coef_[0], 0.7 * weight[reg.support_]
    assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum()
    assert loss.startswith("squared") or (np.abs(alpha) <= caps * (1 + 1e-12)).all()
    np.testing.assert_allclose(alpha @ X[reg.support_], reg.coef_, atol=1e-2)


def largest_deviation(X, y):
    """The least epsilon of a hard tube, by a linear program."""
    n, d = X.shape
    A = np.block(
        [
            [X, np.ones((n, 1)), -np.ones((n, 1))],
            [-X, -np.ones((n, 1)), -np.ones((n, 1))],
        ]
    )
    cost = np.append(np.zeros(d + 1), 1.0)
    bounds = [(None, None)] * (d + 1) + [(0, None)]
    return linprog(cost, A, np.append(y, -y), bounds=bounds).fun


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_hard_tubes(rng, factor):
    X, y = line(rng)
    reg = MaxMarginRegressor(C=np.inf, epsilon=factor * largest_deviation(X, y))
    certified(
        reg, X, y, ends=("certified" if factor > 1.0 else "infeasible",), exact=True
    )
    assert reg.feasible_ is (factor > 1.0)
    assert np.isinf(reg.objective_bound_) == (factor < 1.0)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_no_tube_holds_two_targets_of_one_point(kernel):
    """Whether its image is 0, as with poly, or not: steps then lead to weights without a bound."""
    reg = MaxMarginRegressor(C=np.inf, kernel=kernel, fit_intercept=False)
    assert fit(reg, np.zeros((10, 3)), np.arange(10) % 2).status_ == "infeasible"


def test_that_no_predictor_fits_is_said_of_the_outputs_of_which_it_is_proved(rng):
    X = rng.standard_normal((30, 3))
    Y = np.column_stack([rng.standard_normal(30), X[:, 0]])  # nothing fits noise
    reg = MaxMarginRegressor(C=np.inf, epsilon=0.1)
    certified(reg, X, Y, ends=("infeasible",), exact=True)
    assert np.isinf(reg.objective_bound_).tolist() == [True, False]
    false = np.full(2, np.inf)
    refused(reg, "objective_bound_ is inf", X, Y, exact=True, objective_bound=false)


@pytest.mark.parametrize(
    ("cls", "n_outputs", "seeds"),
    [
        (MaxMarginRegressor, 1, (9, 15, 29, 32, 44, 49, 53)),
        (MaxMarginRegressor, 3, (7, 11, 12, 15, 20, 22, 40, 44)),
        (partial(DualLpRegressor, max_iter=20), 1, (15, 17, 20, 29, 32, 42, 49, 56)),
    ],
)
def test_infeasible_of_examples_on_a_line_is_proved_near_what_is_published(
    cls, n_outputs, seeds
):
    """But for rounding they are on one: last digits of weights decide what is proved nearby."""
    found = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = np.outer(rng.standard_normal(8), rng.standard_normal(3))
        Y = rng.standard_normal((8, n_outputs))
        reg = fit(cls(C=np.inf, epsilon=0.05), X, Y if n_outputs > 1 else Y[:, 0])
        found += reg.certificate_.feasible is False
        assert check_certificate(reg, X, Y if n_outputs > 1 else Y[:, 0]), seed
    assert found


def test_interpolation_is_the_shortest(rng):
    X, y = line(rng, n=6, d=20)
    reg = MaxMarginRegressor(C=np.inf, epsilon=0.0, fit_intercept=False, tol=1e-9)
    np.testing.assert_allclose(
        certified(reg, X, y).coef_, np.linalg.pinv(X) @ y, atol=1e-6
    )


@each_loss
@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 3), (5, 10), (20, 40)])
@pytest.mark.parametrize("epsilon", [0.0, 1e-16, 1e-12])
def test_tubes_that_no_float_fits(loss, n, d, epsilon):
    """They are certified within rounding, and say what they violate."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
        reg = MaxMarginRegressor(C=np.inf, epsilon=epsilon, loss=loss)
        certified(reg, X, y, exact=True)
        least = np.linalg.pinv(X - X.mean(axis=0)) @ (y - y.mean())
        np.testing.assert_allclose(reg.coef_, least, rtol=1e-8)
        assert np.abs(reg.predict(X) - y).max() - epsilon <= reg.violation_ <= 1e-11


def test_a_fit_that_did_not_arrive_has_a_gap(rng):
    """Also where its predictor is 0, whose norm and bound are equal."""
    X, y = line(rng, n=20, d=40)
    steep = X * 10.0 ** -np.arange(40)  # only its first columns are seen in floats
    for data in (X, steep, np.outer(X[:, 0], X[0])):
        for reg in (
            MaxMarginRegressor(C=np.inf, epsilon=0.0, max_iter=3),
            MaxMarginRegressor(C=np.inf, epsilon=0.0, fit_intercept=False),
            DualLpRegressor(epsilon=0.0, max_iter=2, random_state=0),
        ):
            fit(reg, data, y)
            assert (reg.status_ == "certified") == (reg.gap_ <= reg.tol)
            confirmed(reg, data, y)
            history = reg.history_
            for name in ("norm", "norm_bound", "violation"):
                assert history[name][-1] == getattr(reg, f"{name}_")


TUBES = [*({"epsilon": 0.003, "loss": loss} for loss in LOSSES), {"nu": 0.4}]
each_tube = pytest.mark.parametrize("tube", TUBES, ids=["hinge", "squared", "share"])


@each_tube
@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_outputs_are_problems_of_their_own(rng, tube, kernel, fit_intercept):
    X = rng.standard_normal((25, 3))
    Y = (X @ rng.standard_normal((3, 3)) + rng.standard_normal((25, 3))) * [
        1.0,
        1e3,
        1e-2,
    ]
    weight, Z = rng.integers(0, 3, 25), X if kernel == "linear" else gram(X)
    params = {**tube, "kernel": kernel, "fit_intercept": fit_intercept}
    reg = certified(MaxMarginRegressor(**params), Z, Y, weight, exact=True)
    assert reg.dual_coef_.shape == (3, len(reg.support_))
    for name in ("intercept_", "objective_", "objective_bound_", "epsilon_"):
        assert getattr(reg, name).shape == (3,)
    assert reg.predict(Z).shape == Y.shape
    one = MaxMarginRegressor(**params).fit(Z, Y[:, :1], weight)
    assert one.predict(Z).shape == (25, 1)
    for j in range(3):
        one = MaxMarginRegressor(**params).fit(Z, Y[:, j], weight)
        assert reg.objective_[j] == pytest.approx(one.objective_, rel=1e-5)
        assert reg.objective_bound_[j] == pytest.approx(one.objective_bound_, rel=1e-5)
        assert isinstance(one.epsilon_, float)
    for name, factor in (("objective", 1 - 1e-5), ("objective_bound", 1 + 1e-5)):
        false = {name: getattr(reg.certificate_, name) * [1, factor, 1]}
        refused(reg, f"{name}_", Z, Y, weight, exact=True, **false)
    reg.epsilon_ = reg.epsilon_ * [1.1, 1, 1]
    assert not check_certificate(reg, Z, Y, weight, exact=True)


@pytest.mark.parametrize("y_offset", [0.0, 1e6])
@pytest.mark.parametrize("y_unit", [1e-8, 1.0, 1e12])
@pytest.mark.parametrize("x_unit", [1e-8, 1.0, 1e12])
def test_units(rng, x_unit, y_unit, y_offset):
    X, y = line(rng)
    reg = MaxMarginRegressor(C=0.7 * y_unit / x_unit**2, epsilon=0.1 * y_unit)
    certified(reg, X * x_unit, (y + y_offset) * y_unit, exact=True)


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
def test_what_a_large_offset_rounds_costs_nothing_at_the_ends_of_a_tube(rng, C):
    """Each of the scores there may be outside, by what rounds it, and pays its caps for that."""
    X = rng.standard_normal((300, 6))
    y = X @ rng.standard_normal(6)
    near, far = (fit(MaxMarginRegressor(C=C), X + offset, y) for offset in (0.0, 2e5))
    assert near.status_ == "certified"
    assert far.gap_ <= (1e-6 if C < 1e6 else 2e-6)
    np.testing.assert_allclose(
        far.coef_, near.coef_, rtol=0, atol=1e-3 * np.abs(near.coef_).max()
    )
    confirmed(far, X + 2e5, y)


def test_constant_targets_and_wide_tubes(rng):
    X, y = line(rng)
    for C in (1.0, np.inf):
        for targets, epsilon in ((np.full(40, 3.7), 0.0), (y, 100.0)):
            reg = MaxMarginRegressor(C=C, epsilon=epsilon).fit(X, targets)
            assert (reg.status_, reg.objective_) == ("certified", 0.0)
            assert not reg.coef_.any()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"kernel": "precomputed"}, "positive semidefinite"),
        ({"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": -1.0}, "eigenvalue"),
    ],
)
def test_kernels_that_are_no_inner_products_are_refused(params, words):
    with pytest.raises(ValueError, match=words):  # poly: 1 - 2 x z + (x z)^2
        MaxMarginRegressor(**params).fit(-np.eye(10), np.arange(10.0))


def test_kernels_known_to_be_inner_products_need_no_eigenvalues(rng, monkeypatch):
    monkeypatch.setattr(
        np.linalg, "eigvalsh", lambda K: pytest.fail("eigenvalues are computed")
    )
    for params in ({"kernel": "rbf"}, {"kernel": "poly", "coef0": 1.0}):
        assert (
            fit(MaxMarginRegressor(**params), *waves(rng, n=40)).status_ == "certified"
        )


compiled = pytest.mark.skipif(not find_spec("numba"), reason="slow without numba")


@compiled
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("tube", [*TUBES, {"nu": 0.05}, {"nu": 0.95}], ids=str)
def test_rounds_of_working_sets_end_with_a_proof(rng, tube, intercept, kernel):
    """More examples than begin: they join as their scores leave their tubes."""
    X, y = waves(rng, n=700)
    Z, weight = (
        rbf_kernel(X, gamma=1.0) if kernel == "precomputed" else X,
        rng.integers(0, 3, 700),
    )
    params = {
        "C": 0.5,
        "fit_intercept": intercept,
        "kernel": kernel,
        "gamma": 1.0,
        **tube,
    }
    reg = certified(MaxMarginRegressor(**params), Z, y, weight)
    if "nu" not in tube:
        two = certified(
            MaxMarginRegressor(**params), Z, np.column_stack([y, 1e6 * y]), weight
        )
        assert two.objective_[0] == pytest.approx(reg.objective_, rel=3e-6)


hard = Table(MaxMarginRegressor)


@hard(kernel=["linear", "rbf"], C=[np.inf], epsilon=[0.1])
def long_predictors(kernel="linear"):
    """They grow by decades until they fit: shorter ones prove nothing, nor are steps slow."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 20)) * 10.0 ** np.linspace(-3.0, 3.0, 20)
    return X, X @ rng.standard_normal(20)


@hard(kernel=["rbf"], C=[1e3], tol=[1e-7])
@hard(kernel=["poly"], degree=[3], coef0=[1.0], nu=[None, 0.4])
def a_wave():
    """Interior points end what float32 cannot show, and begin with few monomials."""
    return waves(np.random.default_rng(0), n=300)


@hard(kernel=["precomputed"], nu=[0.4])
def a_kernel_of_few_dimensions():
    """Free weights may depend on each other."""
    X, y = waves(np.random.default_rng(0))
    return (1.0 + X @ X.T) ** 2, y


@hard(C=[1e-8, 1e8], nu=[1.0])
# what rounding of scores costs at this C
@hard(kernel=["rbf"], C=[1e8], nu=[0.5], tol=[2e-4])
def targets_that_can_be_met():
    """The sum of the weights is far below its cap: the tube is as narrow as nothing."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 5)), rng.standard_normal(40)


@hard.each
def test_hard_data(data, estimator, ends, exact):
    reg = certified(estimator, *data(), ends=ends, exact=exact)
    assert reg.gap_ <= reg.tol


def hostile(seed, share=False):
    rng = np.random.default_rng(seed)
    X, kind = random_examples(rng, [1, 2, 3, 10, 30], [1, 2, 5, 20])
    n, d = X.shape
    Y = X @ rng.standard_normal((d, 2)) + rng.choice(
        [0.0, 0.1, 3.0]
    ) * rng.standard_normal((n, 2))
    x_unit, y_unit = 10.0 ** rng.integers(-8, 13, 2)
    X = (X + rng.choice([0.0, 1.0, 1e6])) * x_unit
    Y = (Y + rng.choice([0.0, 1e3, 1e6])) * y_unit
    C = 10.0 ** rng.integers(-3, 7) * rng.choice([1.0, y_unit / x_unit**2])
    params = {
        "C": np.inf if rng.random() < 0.2 else C,
        "epsilon": float(rng.choice([0.0, 0.1, 1.0])) * y_unit,
        "loss": str(rng.choice([*LOSSES])),
        "fit_intercept": bool(rng.random() < 0.8),
    }
    if share:
        params |= {"C": C, "nu": float(rng.choice([1e-3, 0.1, 0.5, 1.0]))}
        del params["loss"], params["epsilon"]
    return (
        (sp.csr_array(X) if kind == "sparse" else X),
        Y if seed % 3 else Y[:, 0],
        params,
    )


@pytest.mark.parametrize("seed", [135, 171])
def test_ends_are_rounded_beside_the_middle_of_the_targets(seed):
    X, y, params = hostile(seed)
    confirmed(fit(MaxMarginRegressor(**params), X, y), X, y, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "share"),
    [*((i, False) for i in range(0, 200, 50)), (0, True), (50, True)],
)
def test_hostile_problems_end_with_certificates_that_hold(first, share):
    for seed in range(first, first + 50):
        X, y, params = hostile(seed, share)
        reg = fit(MaxMarginRegressor(**params), X, y)
        assert reg.status_ in ("certified", "infeasible", "stalled", "max_iter"), seed
        confirmed(reg, X, y, exact=True)
        confirmed(reg, X, y)


@pytest.mark.parametrize("exact", [False, True])
def test_a_norm_below_zero_is_refused(rng, exact):
    """Also one that is below it by less than any rounding."""
    data = line(rng)[0], np.zeros(40)
    reg = MaxMarginRegressor(epsilon=1.0).fit(*data)
    assert (reg.norm_, reg.objective_) == (0.0, 0.0)
    refused(reg, "norm does not hold", *data, exact=exact, upper=-1e-30)


def test_objectives_are_numbers(rng):
    X, y = line(rng)
    reg = MaxMarginRegressor().fit(X, y)
    refused(reg, "", X, y, objective=np.array([reg.objective_]))


@pytest.mark.parametrize("exact", [False, True])
def test_weights_that_cancel_are_limited_by_their_caps(exact):
    """Equal examples: their weights cancel, and only C limits what these prove."""
    X, y = np.ones((2, 3)), np.array([0.0, 1.0])
    reg = certified(MaxMarginRegressor(C=0.25, epsilon=0.125), X, y, exact=exact)
    assert reg.objective_ == pytest.approx(0.25 * 0.75)
    bound, norm = reg.objective_bound_ * (1 + 1e-5), reg.certificate_.lower * (1 + 1e-5)
    refused(reg, "objective_bound_", X, y, exact=exact, objective_bound=bound)
    refused(reg, "norm_bound", X, y, exact=exact, lower=norm)


def test_its_width_gives_the_same_predictor(rng):
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.standard_normal(60)
    of_share = MaxMarginRegressor(nu=0.3, tol=1e-9).fit(X, y)
    of_width = MaxMarginRegressor(epsilon=of_share.epsilon_, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(of_share.coef_, of_width.coef_, atol=1e-3)
    assert of_width.epsilon_ == of_share.epsilon_
    price = 0.3 * 60 * of_share.epsilon_
    assert of_share.objective_ == pytest.approx(of_width.objective_ + price, rel=1e-6)
    distances = np.abs(of_share.predict(X) - y)
    outside = np.mean(distances > of_share.epsilon_ + 1e-4)
    assert outside <= 0.3 <= np.mean(distances >= of_share.epsilon_ - 1e-4)
    assert np.abs(of_share.dual_coef_).sum() <= 0.3 * 60


@pytest.mark.parametrize(
    "params", [{"C": np.inf}, {"loss": "squared_epsilon_insensitive"}]
)
def test_it_needs_a_price_of_slack(rng, params):
    with pytest.raises(
        ValueError, match=r"nu=0.5 needs C < inf and loss='epsilon_insensitive'"
    ):
        MaxMarginRegressor(nu=0.5, **params).fit(*line(rng))


def test_a_given_width_is_published(rng):
    X, y = line(rng)
    Y = np.column_stack([y, y])
    reg = MaxMarginRegressor(epsilon=0.3)
    assert reg.fit(X, y).epsilon_ == 0.3
    np.testing.assert_array_equal(reg.fit(X, Y).epsilon_, [0.3, 0.3])
    reg.epsilon_ = np.array([0.3, 0.2])
    assert "epsilon_" in check_certificate(reg, X, Y).reason


def test_a_share_needs_memory_for_features_alone(rng, monkeypatch):
    """With a kernel, pairs hold the columns for which there is room; no matrix of all examples."""
    pytest.importorskip("numba")
    X, y = rng.standard_normal((400, 300)), rng.standard_normal(400)
    monkeypatch.setattr("marginsvm.solvers.solve.installed", lambda: 10**6)
    for estimator in (MaxMarginRegressor(nu=0.5), MaxMarginOutlierDetector(nu=0.5)):
        assert fit(estimator.set_params(kernel="rbf"), X, y).status_ == "certified"
    with pytest.raises(MemoryError, match="400 examples, 300 features"):
        MaxMarginRegressor(nu=0.5).fit(X, y)


@pytest.mark.parametrize(
    "tube", [{"nu": 0.1}, slow({"nu": 0.5}), slow({"epsilon": 0.5})]
)
def test_a_large_price_of_slack_on_a_kernel_of_low_rank(tube):
    """Weights are 1e8 times what their combination is: the predictor has few coefficients."""
    X, y = line(np.random.default_rng(1), n=25)
    K = X @ X.T
    model = fit(MaxMarginRegressor(kernel="precomputed", C=1e8, **tube), K, y)
    assert model.gap_ < 1e-3
    assert len(model.support_) <= 6
    confirmed(model, K, y)
    # of a matrix that has been rounded
    found = check_certificate(model, K, y, exact=True)
    assert found or "none of inner products" in found.reason
