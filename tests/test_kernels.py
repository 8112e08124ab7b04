"""Tangent kernels against the Jacobians they are made of, and kernels of the user."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.estimators import certified, confirmed, fit, separable
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from marginsvm import MaxMarginClassifier, MaxMarginClassifierCV
from marginsvm.kernels import two_layer_relu_ntk
from marginsvm.problem.gram import Gram
from marginsvm.problem.kernel_functions import Kernel


def jacobian(X, V, a):
    """Gradients of sum_j a_j relu(v_j . x) in all v_j and a_j, one row a point."""
    H = X @ V.T
    in_V = (a * (H > 0))[:, :, None] * X[:, None, :]
    return np.hstack([in_V.reshape(len(X), -1), np.maximum(H, 0)])


@pytest.mark.parametrize("n", [1, 5, 1500])  # 1500: more than one block
def test_kernel_is_the_gram_matrix_of_the_jacobian(n, rng):
    X, Y = rng.standard_normal((n, 6)), rng.standard_normal((7, 6))
    kernel = two_layer_relu_ntk(width=9, random_state=3)
    V, a = kernel.weights(6, float)
    expected = jacobian(X, V, a) @ jacobian(Y, V, a).T
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12, atol=1e-12)
    prepared = kernel.prepare(X)
    np.testing.assert_allclose(
        kernel(prepared[:3], Y), expected[:3], rtol=1e-12, atol=1e-12
    )
    assert prepared.extra_bytes == n * 9 * 8
    np.testing.assert_allclose(
        kernel(sp.csr_array(X), Y), expected, rtol=1e-12, atol=1e-12
    )


def test_jacobian_is_the_networks(rng):
    X, h = rng.standard_normal((4, 6)), 1e-6
    V, a = two_layer_relu_ntk(5, 1).weights(6, float)
    J = jacobian(X, V, a)
    for p in range(V.size + a.size):
        e = np.zeros(V.size + a.size)
        e[p] = h
        dV, da = e[: V.size].reshape(V.shape), e[V.size :]
        up, down = (np.maximum(X @ (V + s * dV).T, 0) @ (a + s * da) for s in (1, -1))
        np.testing.assert_allclose((up - down) / (2 * h), J[:, p], atol=1e-7)


def test_types_pickle_and_seeds(rng):
    X = rng.standard_normal((20, 6)).astype(np.float32)
    kernel = two_layer_relu_ntk(64, 0)
    K = kernel(X)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, kernel(X.astype(float)), rtol=1e-3, atol=1e-4)
    assert np.linalg.eigvalsh(kernel(X.astype(float)))[0] > -1e-12
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(X), K)
    assert pickle.loads(pickle.dumps(kernel)) == kernel == two_layer_relu_ntk(64, 0)
    assert kernel != two_layer_relu_ntk(64, 1)
    # gradients are 1-homogeneous
    np.testing.assert_allclose(kernel(2 * X), 4 * K, rtol=1e-6)
    state = np.random.RandomState(5)
    assert two_layer_relu_ntk(64, state) != two_layer_relu_ntk(64, state)
    with pytest.raises(ValueError, match="width"):
        two_layer_relu_ntk(0)


def linear(X, Y):
    return X @ Y.T


@pytest.mark.parametrize(
    ("kernel", "given", "dtype", "kept"),
    [
        (Kernel("rbf"), np.float32, None, np.float32),
        (Kernel("rbf"), np.float32, np.float64, np.float64),
        (Kernel("rbf"), np.float64, None, np.float64),
        (linear, np.float32, None, np.float32),
        (linear, np.float64, np.float32, np.float32),
        (None, np.float32, None, np.float32),
    ],
)
def test_values_take_no_more_memory_than_those_given(kernel, given, dtype, kept, rng):
    X = rng.standard_normal((30, 5)).astype(given)
    gram = Gram(kernel, X @ X.T if kernel is None else X, dtype=dtype)
    some = np.arange(4)
    for values in (gram.diagonal, gram.values(some), gram.values(some, some)):
        assert values.dtype == kept
    assert gram.whole().dtype == kept


@pytest.mark.parametrize(
    "kernel", [Kernel("rbf", 0.1), Kernel("poly", 1.0, 2, 1.0), Kernel("rbf", 1e9)]
)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_whole_matrix_has_the_values_of_its_columns(kernel, scaled, sparse, rng):
    X = rng.standard_normal((300, 5))
    X = sp.csr_array(X * (X > 0.5)) if sparse else X
    scale = rng.random(300) if scaled else None
    gram = Gram(kernel, X, 0.5, scale=scale)
    columns = gram.values(np.arange(300))
    whole = gram.whole()
    np.testing.assert_allclose(whole, columns, rtol=1e-12, atol=1e-13)


def test_columns_that_others_keep_stay_as_they_are(rng):
    """Several solvers may hold columns of a kernel while one of them takes the whole matrix."""
    X = rng.standard_normal((60, 3))
    gram = Gram(Kernel("rbf", 0.5), X)
    gram.keep_columns(1.0)
    one, other = gram.in_units(1.0), gram.in_units(1.0)
    w = rng.standard_normal((1, 60))
    before = one.scores(w)
    other.whole()
    np.testing.assert_array_equal(one.scores(w), before)


@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_of_overlapping_classes_with_a_kernel(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((500, 2))
    clf = MaxMarginClassifier(
        kernel="poly", degree=2, gamma=1.0, coef0=1.0, max_iter=300
    )
    fit(clf, X, rng.integers(0, 2, 500))
    assert clf.margin_bound_ < 1e-3


def test_columns_are_computed_where_alpha_changes(rng):
    """Rows that join the working set and stay at 0 need their values on this set only."""
    n, computed = 3000, []
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 2)) + 4.0 * y[:, None]

    def kernel(A, B):
        computed.append(len(A) * len(B))
        return rbf_kernel(A, B, gamma=0.5)

    clf = MaxMarginClassifier(kernel=kernel, C=1.0, loss="hinge").fit(X, y)
    assert len(clf.support_) < 150
    assert sum(computed) < 0.28 * n * n  # the columns of 400 rows alone are 0.13


def test_a_kernel_may_give_a_sparse_matrix(rng):
    X, y = separable(rng)
    clf = MaxMarginClassifier(kernel=lambda A, B: sp.csr_array(A) @ sp.csr_array(B).T)
    linear = MaxMarginClassifier().fit(X, y)
    np.testing.assert_allclose(certified(clf, X, y).margin_, linear.margin_, rtol=1e-6)
    np.testing.assert_array_equal(clf.predict(X), linear.predict(X))


@pytest.mark.parametrize("kernel", [lambda A, B: A, lambda A, B: (A @ B.T).ravel()])
def test_a_kernel_of_another_shape_is_refused(kernel, rng):
    with pytest.raises(ValueError, match=r"a row for each example of X.*\(60, 60\)"):
        MaxMarginClassifier(kernel=kernel).fit(*separable(rng))


WORDS = np.array(["abba", "baba", "abab", "aabb", "cdcd", "ccdd", "dcdc", "abba"])
OF_WORDS = np.array([1, 1, 1, 1, 2, 2, 2, 2])  # the first and the last are equal


def counts(X):
    return np.array(
        [[word.count(letter) for letter in "abcd"] for word in X], dtype=float
    )


def common_letters(X, Y):
    """How many pairs of equal letters strings have; each example must be a string."""
    assert all(isinstance(word, str) for word in [*X, *Y])
    return counts(X) @ counts(Y).T


class Word:
    """An object that has no hash, and equals nothing but itself."""

    __hash__ = None

    def __init__(self, text):
        self.text = text


def objects(words):
    X = np.empty(len(words), dtype=object)
    X[:] = [Word(text) for text in words]
    return X


def of_words(X, Y):
    return common_letters([word.text for word in X], [word.text for word in Y])


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("form", [list, np.asarray, pd.Series, objects])
def test_examples_may_be_anything(form, loss):
    params = {"kernel": of_words if form is objects else common_letters, "loss": loss}
    X, y, params["C"] = form(WORDS), OF_WORDS, 1.0
    clf = certified(MaxMarginClassifier(**params), X, y)
    alike = MaxMarginClassifier(C=1.0, loss=loss).fit(counts(WORDS), y)
    scores = alike.decision_function(counts(WORDS))
    np.testing.assert_allclose(clf.decision_function(X), scores, atol=1e-4)
    assert form is objects or set(clf.support_vectors_) <= set(WORDS)
    assert not hasattr(clf, "n_features_in_")
    assert clf.score(form(WORDS[:3]), y[:3]) == 1.0
    hard = clf.set_params(C=np.inf)
    certified(hard, X, y, ends=("no_margin",))  # equal ones of two classes prove it
    assert hard.separable_ is (None if form is objects else False)
    assert certified(hard, X, y, np.arange(8) < 7).separable_ is True


def test_weights_without_bound_end_smo():
    """A kernel matrix of rank 1 far from 0, four overlapping classes: the dual is unbounded."""
    x = 24.7 + 2e-4 * np.array([4, 4, 8, 0, 4, 10, 6, 8, 10, 6, 8, 8])
    y = [0, 1, 2, 3, 0, 2, 0, 0, 0, 3, 0, 0]
    clf = MaxMarginClassifier(kernel="precomputed", loss="hinge")
    certified(clf, np.outer(x, x), y, ends=("no_margin",))
    assert clf.separable_ is False  # 4 is of two classes


def test_searches_over_strings():
    X, y = np.repeat(WORDS[:7], 4).tolist(), np.repeat([1, 1, 1, 1, 2, 2, 2], 4)
    clf = MaxMarginClassifierCV(kernel=common_letters, Cs=3).fit(X, y)
    assert clf.best_score_ == 1.0
    confirmed(clf, X, y)
    search = GridSearchCV(MaxMarginClassifier(kernel=common_letters), {"C": [1.0]}).fit(
        X, y
    )
    assert search.best_score_ == 1.0


@pytest.mark.parametrize(
    ("kernel", "y", "message"),
    [
        ("rbf", OF_WORDS, "could not convert string"),
        (common_letters, [1, 2], "inconsistent numbers of samples"),
    ],
)
def test_strings_without_a_kernel_or_labels_are_refused(kernel, y, message):
    with pytest.raises(ValueError, match=message):
        MaxMarginClassifier(kernel=kernel).fit(WORDS.tolist(), y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sums_of_large_weights_leave_a_certificate_its_digits(loss, rng):
    """Examples with either label have weights of C, whose sums cancel to scores near 1."""
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
    K = rbf_kernel(np.vstack([X, X[:20]]))
    y = np.append(y, 1 - y[:20])
    clf = MaxMarginClassifier(kernel="precomputed", C=1e7, loss=loss, tol=1e-3)
    certified(clf, (K + K.T) / 2.0, y, exact=True)
