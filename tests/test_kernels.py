"""Tangent kernels against the Jacobians they are made of, and kernels of the user."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.estimators import fit, separable
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from marginsvm import (
    MaxMarginClassifier,
    MaxMarginClassifierCV,
    MomentumMarginClassifier,
    check_certificate,
)
from marginsvm.kernels import two_layer_relu_ntk


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
    np.testing.assert_allclose(kernel(prepared[:3], Y), expected[:3], rtol=1e-12, atol=1e-12)
    assert prepared.extra_bytes == n * 9 * 8
    np.testing.assert_allclose(kernel(sp.csr_array(X), Y), expected, rtol=1e-12, atol=1e-12)


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
    np.testing.assert_allclose(kernel(2 * X), 4 * K, rtol=1e-6)  # gradients are 1-homogeneous
    state = np.random.RandomState(5)
    assert two_layer_relu_ntk(64, state) != two_layer_relu_ntk(64, state)
    with pytest.raises(ValueError, match="width"):
        two_layer_relu_ntk(0)


def test_a_fit_takes_it(rng):
    X, y = separable(rng)
    clf = fit(MomentumMarginClassifier(kernel=two_layer_relu_ntk(32), max_iter=50), X, y)
    assert check_certificate(clf, X, y)
    assert pickle.loads(pickle.dumps(clf)).score(X, y) > 0.9


def test_a_kernel_may_give_a_sparse_matrix(rng):
    X, y = separable(rng)

    def kernel(A, B):
        return sp.csr_array(A) @ sp.csr_array(B).T

    given, linear = MaxMarginClassifier(kernel=kernel).fit(X, y), MaxMarginClassifier().fit(X, y)
    np.testing.assert_allclose(given.margin_, linear.margin_, rtol=1e-6)
    np.testing.assert_array_equal(given.predict(X), linear.predict(X))
    assert check_certificate(given, X, y)


@pytest.mark.parametrize("kernel", [lambda A, B: A, lambda A, B: (A @ B.T).ravel()])
def test_a_kernel_of_another_shape_is_refused(kernel, rng):
    with pytest.raises(ValueError, match=r"a row for each example of X.*\(60, 60\)"):
        MaxMarginClassifier(kernel=kernel).fit(*separable(rng))


WORDS = np.array(["abba", "baba", "abab", "aabb", "cdcd", "ccdd", "dcdc", "abba"])
LETTERS = "abcd"


def counts(X):
    return np.array([[word.count(letter) for letter in LETTERS] for word in X], dtype=float)


def common_letters(X, Y):
    """How many pairs of equal letters strings have; each example must be a string."""
    assert all(isinstance(word, str) for word in [*X, *Y])
    return counts(X) @ counts(Y).T


class Word:
    """An object that has no hash, and so equals nothing but itself."""

    __hash__ = None

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return self is other


def of_words(X, Y):
    return common_letters([word.text for word in X], [word.text for word in Y])


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("form", [list, np.asarray, pd.Series])
def test_examples_may_be_strings(form, loss):
    y = np.array([1, 1, 1, 1, 2, 2, 2, 2])
    params = {"C": 1.0, "loss": loss}
    clf = MaxMarginClassifier(kernel=common_letters, **params).fit(form(WORDS), y)
    alike = MaxMarginClassifier(kernel="linear", **params).fit(counts(WORDS), y)
    np.testing.assert_allclose(
        clf.decision_function(form(WORDS)), alike.decision_function(counts(WORDS)), atol=1e-4
    )
    assert set(clf.support_vectors_) <= set(WORDS)
    assert not hasattr(clf, "n_features_in_")
    assert check_certificate(clf, form(WORDS), y)
    assert clf.score(form(WORDS[:3]), y[:3]) == 1.0


def test_weights_without_bound_end_smo():
    """A kernel matrix of rank 1 far from 0, four overlapping classes: the dual is unbounded."""
    x = 24.7 + 2e-4 * np.array([4, 4, 8, 0, 4, 10, 6, 8, 10, 6, 8, 8])
    y = [0, 1, 2, 3, 0, 2, 0, 0, 0, 3, 0, 0]
    with pytest.warns(ConvergenceWarning):
        clf = MaxMarginClassifier(kernel="precomputed", loss="hinge").fit(np.outer(x, x), y)
    assert (clf.status_, clf.separable_) == ("no_margin", False)  # 4 is of two classes
    assert check_certificate(clf, np.outer(x, x), y)


def test_examples_may_be_any_objects():
    X = np.empty(8, dtype=object)
    X[:] = [Word(text) for text in WORDS]
    y = np.array([1, 1, 1, 1, 2, 2, 2, 2])
    clf = MaxMarginClassifier(kernel=of_words, C=1.0).fit(X, y)
    named = MaxMarginClassifier(kernel=common_letters, C=1.0).fit(WORDS, y)
    np.testing.assert_array_equal(clf.decision_function(X), named.decision_function(WORDS))
    weight = np.array([1, 1, 1, 1, 1, 1, 1, 0])
    weighted = MaxMarginClassifier(kernel=of_words).fit(X, y, sample_weight=weight)
    assert weighted.separable_
    assert check_certificate(weighted, X, y, sample_weight=weight)


def test_equal_strings_of_two_classes_prove_that_nothing_separates():
    X, y = [*WORDS[:6], "abba"], [1, 1, 1, 1, 2, 2, 2]
    clf = fit(MaxMarginClassifier(kernel=common_letters), X, y)
    assert clf.separable_ is False
    assert check_certificate(clf, X, y)


def test_searches_over_strings():
    X, y = np.repeat(WORDS[:7], 4).tolist(), np.repeat([1, 1, 1, 1, 2, 2, 2], 4)
    clf = MaxMarginClassifierCV(kernel=common_letters, Cs=3).fit(X, y)
    assert clf.best_score_ == 1.0
    assert check_certificate(clf, X, y)
    search = GridSearchCV(MaxMarginClassifier(kernel=common_letters), {"C": [1.0]}).fit(X, y)
    assert search.best_score_ == 1.0


def test_strings_without_a_callable_kernel_are_refused():
    with pytest.raises(ValueError, match="could not convert string"):
        MaxMarginClassifier(kernel="rbf").fit(WORDS.tolist(), [1, 1, 1, 1, 2, 2, 2, 2])
    clf = MaxMarginClassifier(kernel=common_letters)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.fit(WORDS.tolist(), [1, 2])


@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("offset", [1e4, 1e6, 1.6e9])
def test_the_gaussian_kernel_keeps_its_digits_far_from_the_origin(C, offset, rng):
    """Its values depend on differences, which dates in seconds have as exactly as days have."""
    X = np.round(rng.standard_normal((80, 3)), 4) * 2.0**10  # differences are exact
    X = np.round(X)
    y = (np.hypot(X[:, 0], X[:, 1]) > 1000.0).astype(int)
    near, far = (fit(MaxMarginClassifier(kernel="rbf", C=C), X + c, y) for c in (0.0, offset))
    assert near.status_ == far.status_ == "certified"
    assert far.margin_ == pytest.approx(near.margin_, rel=1e-5)
    assert check_certificate(far, X + offset, y)
    expected = near.decision_function(X)
    np.testing.assert_allclose(far.decision_function(X + offset), expected, atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sums_of_large_weights_leave_a_certificate_its_digits(loss, rng):
    """Examples with either label have weights of C, whose sums cancel to scores near 1."""
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
    K = rbf_kernel(np.vstack([X, X[:20]]))
    K = (K + K.T) / 2.0
    clf = MaxMarginClassifier(kernel="precomputed", C=1e7, loss=loss, tol=1e-3)
    clf.fit(K, np.append(y, 1 - y[:20]))
    assert clf.status_ == "certified"
    exact = check_certificate(clf, K, np.append(y, 1 - y[:20]), exact=True)
    assert exact.valid
    assert exact.lower <= exact.upper
