"""Maps from scores to values of rows, against rows that are written out."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.plain_examples import PlainExamples, in_fractions

from marginsvm.problem.row_maps import ClassPairs, IntervalEnds, SignedExamples

FORMS = ["signs", "one sign", "tube", "two outputs", "3 classes", "5 classes"]
ONE_OUTPUT = [form for form in FORMS if form != "two outputs"]
CLASSES = {"3 classes": 3, "5 classes": 5}
N = 12


def a_map(form, number=float):
    """A map of N examples, with signs of a type."""
    sign = np.array([number(s) for s in [1, 1, -1] * (N // 3)])
    if form in CLASSES:
        return ClassPairs(np.arange(N) ** 2 % CLASSES[form], CLASSES[form])
    if form in ("signs", "one sign"):
        return SignedExamples(sign if form == "signs" else sign * sign)
    k = 2 if form == "two outputs" else 1
    # examples with one end, some of them with both, and the last without a row
    both = [0, 3, 4]
    example = np.array([*range(N - 1), *both])
    sign = np.append(sign[: N - 1], -sign[both])
    return IntervalEnds(sign, example, example // 2 % k, N, k)


def rows_of(rows):
    """Flat index, example and coefficients of the scores of each row, by the definition."""
    found = []
    if isinstance(rows, ClassPairs):
        for other in range(rows.k - 1):  # the first rows of all examples come first
            for i, c in enumerate(rows.codes.tolist()):
                j = [j for j in range(rows.k) if j != c][other]
                coefficients = [(s == c) - (s == j) for s in range(rows.k)]
                found.append((i * rows.k + j, i, coefficients))
        return found
    for r, s in enumerate(rows.sign):
        i, o = r, 0
        if isinstance(rows, IntervalEnds):
            i, o = rows.example[r], rows.output[r]
        found.append((r, i, [s * (column == o) for column in range(rows.k)]))
    return found


def some(rng, shape, exact):
    """Whole numbers, of which sums are exact, as floats or as Fractions with other parts."""
    numbers = rng.integers(-9, 10, shape).astype(float)
    return in_fractions(numbers) / 7 if exact else numbers


def some_alpha(rows, rng, exact):
    alpha = abs(some(rng, rows.shape, exact))
    return rows.fill(alpha, 0)


@pytest.fixture(params=[False, True], ids=["floats", "fractions"])
def exact(request):
    return request.param


@pytest.mark.parametrize("form", FORMS)
def test_values_are_those_of_the_written_out_rows(form, exact, rng):
    rows = a_map(form, Fraction if exact else float)
    S = some(rng, (rows.n, rows.k), exact)
    values = rows.values(S)
    ids, at, C = zip(*rows_of(rows), strict=True)
    assert values.shape == rows.shape
    assert rows.ids.tolist() == [*ids]
    assert rows.at.tolist() == [*at]
    assert rows.example_of(rows.ids).tolist() == [*at]
    np.testing.assert_array_equal(rows.of_scores(rows.ids), np.array(C, float))
    for r, i, c in zip(ids, at, C, strict=True):
        assert values.flat[r] == sum(a * b for a, b in zip(c, S[i], strict=True))
    np.testing.assert_array_equal(rows.flat(values), values.ravel()[list(ids)])
    others = np.setdiff1d(np.arange(values.size), ids)
    assert not values.flat[others].any()


@pytest.mark.parametrize("form", FORMS)
def test_coefficients_are_the_adjoint(form, exact, rng):
    rows = a_map(form, Fraction if exact else float)
    S, alpha = some(rng, (rows.n, rows.k), exact), some_alpha(rows, rng, exact)
    V = rows.coefficients(alpha)
    assert V.shape == S.shape
    assert (rows.values(S) * alpha).sum() == (S * V).sum()
    if exact:
        assert all(isinstance(x, Fraction) or x == 0 for x in V.ravel().tolist())


@pytest.mark.parametrize("form", FORMS)
def test_bounds_hold_and_are_attained(form, exact, rng):
    rows = a_map(form, Fraction if exact else float)
    S, E = (some(rng, (rows.n, rows.k), exact) for _ in range(2))
    change = rows.flat(abs(rows.values(S + E) - rows.values(S)))
    assert np.all(change <= rows.flat(rows.bounds(abs(E))))
    worst = zip(rows.flat(rows.bounds(abs(E))), rows_of(rows), strict=True)
    for bound, (_, i, c) in worst:
        assert bound == sum(abs(a * b) for a, b in zip(c, E[i], strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_one_order_and_in_the_shape_of_alpha(form, rng):
    rows = a_map(form)
    u = rng.uniform(1.0, 2.0, len(rows.ids))
    alpha = rows.shaped(u)
    assert alpha.shape == rows.shape
    assert np.count_nonzero(alpha) == len(u)
    np.testing.assert_array_equal(rows.flat(alpha), u)
    np.testing.assert_array_equal(rows.flat(np.ones(1)), np.ones(len(u)))
    filled = rows.fill(alpha.copy(), np.inf)
    assert np.count_nonzero(np.isinf(filled)) == alpha.size - len(u)
    least = rows.least(filled)
    own = [[x for x, i in zip(u, rows.at, strict=True) if i == e] for e in range(N)]
    wanted = [min(x) for x in own] if form in CLASSES else u
    np.testing.assert_array_equal(least, wanted)


@pytest.mark.parametrize("form", ONE_OUTPUT)
def test_inner_products_of_rows(form, exact, rng):
    rows = a_map(form, Fraction if exact else float)
    X = some(rng, (rows.n, 3), exact)
    A = np.array([np.multiply.outer(np.array(c), X[i]) for _, i, c in rows_of(rows)])
    A = A.reshape(len(A), -1)
    i, j = rng.permutation(len(A))[:7], rng.permutation(len(A))[:5]
    found = rows.gram(PlainExamples(X), rows.ids[i], rows.ids[j])
    np.testing.assert_array_equal(found, A[i] @ A[j].T)
    longest = max((A * A).sum(axis=1) / [(x @ x) or 1 for x in X[rows.at]])
    assert longest == rows.square


@pytest.mark.parametrize("form", FORMS)
def test_some_of_the_rows(form, exact, rng):
    rows = a_map(form, Fraction if exact else float)
    S = some(rng, (rows.n, rows.k), exact)
    i = np.sort(rng.permutation(len(rows.values(S)))[:5])
    few, part = rows.take(i)
    assert type(part) is type(rows)
    assert part.k == rows.k
    assert part.n == len(few)
    np.testing.assert_array_equal(part.values(S[few]), rows.values(S)[i])


@pytest.mark.parametrize("form", ONE_OUTPUT)
def test_sums_that_the_intercepts_balance(form, exact, rng):
    rows = a_map(form, Fraction if exact else float)
    alpha = some_alpha(rows, rng, exact)
    found = rows.sums(alpha, sum)
    assert found == rows.coefficients(alpha).sum(axis=0).tolist()


@pytest.mark.parametrize("form", ["signs", "tube", "3 classes", "5 classes"])
@pytest.mark.parametrize(("mass", "capped"), [(0.0, False), (1.0, False), (0.0, True)])
def test_balanced_weights(form, mass, capped, rng):
    rows = a_map(form)
    alpha = rows.fill(rng.uniform(0.1, 1.0, rows.shape), 0.0)
    cap = np.full(rows.n, 0.9) if capped and form in CLASSES else None
    found = rows.balanced(alpha.copy(), True, mass, cap)
    assert found.min() >= 0.0
    assert found.sum() > 0.0
    off = rows.coefficients(found).sum(axis=0)
    np.testing.assert_allclose(off, 0.0, atol=1e-13 * found.sum() * rows.k)
    if mass and form in CLASSES:
        assert found.sum() == pytest.approx(mass)
    if cap is not None:
        assert np.all(found.sum(axis=1) <= cap * (1.0 + 1e-15))
    free = rows.balanced(alpha.copy(), False, 0.0, None)
    np.testing.assert_array_equal(free, alpha)


@pytest.mark.parametrize("form", CLASSES)
@pytest.mark.parametrize("nu", [0.3, 0.7, 0.95])
def test_balanced_weights_below_uneven_caps(form, nu, rng):
    """As with nu, where most examples are at their caps."""
    k = a_map(form).k
    for _ in range(20):
        rows = ClassPairs(rng.permutation(np.resize(np.arange(k), 40)), k)
        weight = rng.choice([0.01, 1.0, 100.0], rows.n)
        least = min(weight[rows.codes != c].sum() for c in range(k))
        cap = weight / min(nu * weight.sum(), 2.0 * least)
        alpha = rows.fill(rng.uniform(0.0, 1.0, rows.shape), 0.0) * cap[:, None]
        found = rows.balanced(alpha.copy(), True, 1.0, cap)
        assert found.sum() == pytest.approx(1.0, rel=1e-10)
        assert np.all(found.sum(axis=1) <= cap * (1.0 + 1e-12))
        off = rows.coefficients(found).sum(axis=0)
        np.testing.assert_allclose(off, 0.0, atol=1e-12)


@pytest.mark.parametrize("form", ["signs", "3 classes", "5 classes"])
def test_rows_that_hold_two_examples_apart_cancel_if_these_are_equal(form):
    rows = a_map(form)
    for i in range(rows.n):
        for h in range(rows.n):
            if rows.labels[i] == rows.labels[h]:
                continue
            alpha = np.zeros(rows.shape)
            alpha.flat[rows.opposed(i, h)] = 1.0
            V = rows.coefficients(alpha)
            assert V[i].any()
            np.testing.assert_array_equal(V[i], -V[h])


@pytest.mark.parametrize("form", [*CLASSES, "signs", "tube"])
def test_rows_of_a_group_hold_the_same_classes_apart(form):
    rows = a_map(form)
    groups = {}
    for group, (_, _, c) in zip(rows.groups, rows_of(rows), strict=True):
        assert groups.setdefault(group, c) == c
    assert len(groups) == len({tuple(c) for c in groups.values()})


@pytest.mark.parametrize("form", FORMS)
def test_published_weights_are_read_back(form, exact, rng):
    rows = a_map(form, Fraction if exact else float)
    alpha = some_alpha(rows, rng, exact)
    if isinstance(rows, IntervalEnds):  # of two ends one has weight
        alpha[rows.n - 1 :] = 0
        table = rows.coefficients(alpha)
    else:
        table = alpha.reshape(rows.n, -1).copy()
    np.testing.assert_array_equal(rows.stated(table), alpha)


@pytest.mark.parametrize(
    ("form", "linked"),
    [*((form, False) for form in ONE_OUTPUT), *((form, True) for form in CLASSES)],
)
def test_sums_of_squares_are_those_of_the_written_out_rows(form, linked, rng):
    """``E'WE``, ``F'WF`` and the diagonal of ``A'WA`` for E = [A, F]."""
    rows, X = a_map(form), rng.standard_normal((N, 3))
    own = rows.fill(rng.uniform(0.5, 2.0, rows.shape), 0.0)
    pairs = rows.fill(rng.uniform(0.5, 2.0, rows.shape), 0.0) if linked else None
    W = np.diag(rows.flat(own))
    if linked:  # v'Wv has linked_j linked_l (v_j - v_l)^2 for two rows of an example
        u = rows.flat(pairs)
        together = np.multiply.outer(u, u) * (rows.at[:, None] == rows.at)
        np.fill_diagonal(together, 0.0)
        W = W + np.diag(together.sum(axis=1)) - together
    Z = np.column_stack([X, np.ones(N)])
    E = np.array([np.multiply.outer(c, Z[i]) for _, i, c in rows_of(rows)])
    H = np.einsum("raf,rs,sbg->afbg", E, W, E)
    found = rows.moments(PlainExamples(X), own, pairs)
    np.testing.assert_allclose(found, H.reshape(found.shape), atol=1e-12)
    F = H[:, -1, :, -1]
    np.testing.assert_allclose(rows.curvature(own, pairs), F, atol=1e-12)
    weights = rows.squares(own, pairs)
    diagonal = np.einsum("afaf->af", H)[:, :-1]
    np.testing.assert_allclose((X * X).T @ weights, diagonal.T, atol=1e-12)
