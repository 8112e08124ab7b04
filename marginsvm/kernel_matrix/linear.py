"""The problem of linear predictors, with examples in a store that is read block by block."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from marginsvm._cached import cached_property
from marginsvm._rounding import PAIRWISE, exact_inner, inner
from marginsvm._typing import Array
from marginsvm.certify.certifiable import WrittenOut
from marginsvm.certify.linear_errors import LinearErrors
from marginsvm.certify.prices import hinge_caps
from marginsvm.certify.tolerances import SAME_FINGERPRINT
from marginsvm.data import passes
from marginsvm.data.block import Centre
from marginsvm.data.centred import CentredExamples
from marginsvm.data.memory import Store, as_store
from marginsvm.data.work import Work
from marginsvm.kernel_matrix.adapter import BestResponse, KernelMatrixAdapter
from marginsvm.kernel_matrix.capabilities import (
    CsrExamples,
    HasColumns,
    HasCurvature,
    HasLayout,
    HasTwoClasses,
)
from marginsvm.kernel_matrix.columns import ColumnCache, ColumnPlan
from marginsvm.kernel_matrix.curvature import LinearCurvature
from marginsvm.kernel_matrix.layout import DENSE, SPARSE, RowLayout, common_layout
from marginsvm.kernel_matrix.responses import Response, softmax
from marginsvm.kernel_matrix.rounds import Rounds
from marginsvm.kernel_matrix.scale import Scale, measured
from marginsvm.rows import LpNorm, Predictor, Rows, Vector, make_rows, output_rows, support_of

T = TypeVar("T")

# Number of examples whose mean is the centre where rounds do not depend on the radius: any point
# among the examples may be the centre, and the mean of all would take a pass.
_CENTRE = 256
# Share of the coefficients: if fewer are not zero, their examples alone are read.
_SHARE_OF_COEFFICIENTS = 0.05
# Imbalance of coefficients, relative to the largest, that is all rounding.
_ROUNDED_IMBALANCE = 1e-12


class LinearAdapter(
    KernelMatrixAdapter,
    WrittenOut,
    HasColumns,
    HasLayout,
    HasTwoClasses,
    HasCurvature,
    CsrExamples,
):
    """A problem of linear predictors on a dense or CSR matrix; images are vectors of features.

    X is never copied, and a round reads it once where that pays, see
    :mod:`marginsvm.kernel_matrix.rounds`.

    Parameters
    ----------
    X : ndarray, CSR matrix or array, Block or Store, of shape (n_examples, n_features)
    rows : Rows
    C : float
        Soft margin (dimensionless): each row has its own slack coordinate ``1 / sqrt(2 C)``.
    norm : LpNorm
        Norm of predictors.
    constant : float
        A constant feature that every example has (units of x): a penalised intercept. The last
        entry of every image belongs to it, unless it is 0.
    plan : ColumnPlan or None
        For algorithms that use columns of the Gram matrix: how they are cached.
    whole : bool
        Whether all rows take part in rounds. The number of rounds then depends on the radius, so
        that the mean of all examples is the centre. False: the mean of some, which saves a pass.
    rounding_rtol : float
        Relative rounding error of a bound that is small enough (dimensionless).
    frame : tuple of (Scale, Centre) or None
        The units and the centre of the problem; None: they are measured, by passes.
    """

    _error_model: ClassVar[type[LinearErrors]] = LinearErrors
    _output_axis = 0

    def __init__(
        self,
        X: Any,
        rows: Rows,
        C: float = np.inf,
        norm: LpNorm = LpNorm(),  # noqa: B008 - frozen
        constant: float = 0.0,
        plan: ColumnPlan | None = None,
        whole: bool = True,
        rounding_rtol: float = 0.0,
        frame: tuple[Scale, Centre] | None = None,
    ) -> None:
        store: Store = as_store(X)
        width = store.shape[1] + (constant != 0.0)
        n_central = rows.n_examples if whole else _CENTRE
        scale, centre = frame or measured(store, rows, C, norm, constant, n_central)
        self._store = store
        self._centred = CentredExamples(store, rows, centre, constant, scale.radius)
        # the longest example, and an allowance for the rounding of the subtraction of the mean
        unit = 0.0 if centre.mean is None else float(np.sqrt(centre.mean @ centre.mean))
        reach = 1.0 + 2.0 * unit / scale.radius
        errors = self._error_model(
            self._centred,
            rows,
            norm,
            width,
            reach,
            row_error=PAIRWISE * reach if store.normalized else 0.0,
            centre_is_far=centre.far,
            dense=self.are_dense(),
            rounding_rtol=rounding_rtol,
        )
        super().__init__(rows, (*rows.score_shape[1:], width), norm, scale, errors, Work())
        self._centre, self._constant, self._plan = centre, constant, plan
        self.precision = np.dtype(store.dtype)
        self._rounds = Rounds(store, rows, width)

    def _accumulate(self, V: Array, precise: bool) -> Array:
        """``V^T X`` in user's units, summed in float64 over the blocks."""
        dtype = np.dtype(np.float64) if precise else self._store.dtype
        work = partial(passes.weighted_sum, dtype=dtype, centre=self._centre)
        return self._store.fold(work, np.add, self.rows, V).astype(np.float64, copy=False)

    def _adjoint(self, V: Array, precise: bool) -> Array:
        nonzero = np.count_nonzero(V)
        if nonzero == 0:  # no example is read, which a cluster could not stack
            return self.zeros().image
        self.work.add_pass()
        if nonzero < _SHARE_OF_COEFFICIENTS * V.size:
            few = support_of(V)
            some = [(slice(None), self._store.few(few))]
            image = passes.weighted_sum(self.rows, some, V[few], np.float64, self._centre)
        else:
            image = self._accumulate(V, precise)
        if self._centre.mean is not None and not self._centred.mean_before_products:
            rest = V.sum(axis=0)
            if precise or np.abs(rest).max() > _ROUNDED_IMBALANCE * np.abs(V).max():
                image -= np.multiply.outer(rest, self._centre.mean)
        return self._centred.with_constant(image, V) / self.radius

    def _weights(self, image: Array, precise: bool) -> tuple[Array, Array | float]:
        """Predictor in units of x, and the part of mean and constant, subtracted from scores."""
        W = self._norm.mirror(image) / self.radius
        shift = 0.0 if self._centre.mean is None else W @ self._centre.mean
        if self._constant != 0.0:
            W, shift = W[..., :-1], -self._constant * W[..., -1]
        return W.astype(np.float64 if precise else self._store.dtype, copy=False), shift

    def _scores(self, image: Array, precise: bool) -> Array:
        self.work.add_pass()
        W, shift = self._weights(image, precise)
        work = partial(
            passes.scores,
            W=W,
            shift=shift,
            centre=self._centre,
            precise=precise,
            on_block=self._store.block_callback(),
        )
        return np.concatenate(list(self._store.map(work, self.rows)))

    def inner(self, w: Predictor, u: Predictor) -> float:
        return inner(w.image, self._norm.mirror(u.image))

    def respond(self, w: Predictor, mu: float = 1.0, response: Response = softmax) -> BestResponse:
        with self.work.as_one_pass():
            way = self._rounds.way_of(self._below_caps(response))
            if way is None:
                return super().respond(w, mu, response)
            slack = None if self._slack is None else self._slack * w.coef
            q, image, weights = way(response, self._weights(w.image, precise=False), slack, mu)
            image = self._centred.with_constant(image, self.rows.adjoint(q))
            return BestResponse(Vector(image / self.radius, q), replace(weights, q=q))

    def _kernel_block(self, i: Array, j: Array) -> Array:
        return self._centred.gram(i, j) / self.radius**2

    def _converted(self, image: Array, t: float) -> Array:
        return image * t

    def with_C(self, C: float) -> LinearAdapter:  # noqa: N802
        frame = self._scale.with_C(C, self.rows), self._centre
        rtol = self.errors.rounding_rtol
        parts = self._store, self.rows, C, self._norm, self._constant, self._plan
        return LinearAdapter(*parts, rounding_rtol=rtol, frame=frame)

    def alone(self, j: int) -> LinearAdapter:
        rows, scale = output_rows(self.rows).output(j), self._scale
        if scale.slack is not None:
            scale = scale.softened(self.C, rows)
        parts = self._store, rows, self.C, self._norm, self._constant, self._plan
        frame, rtol = (scale, self._centre), self.errors.rounding_rtol
        one = LinearAdapter(*parts, rounding_rtol=rtol, frame=frame)
        return one if self.caps is None else one.below(hinge_caps(self.caps).output(j))

    def second_derivatives(self, w: Predictor, row_ids: Array) -> Array:
        examples, signs = self.rows.locate(row_ids)
        curvature, rank_one = self._norm.curvature(w.image)
        H = np.zeros((len(row_ids), len(row_ids)))
        if self.slack is not None:
            np.fill_diagonal(H, self.slack.ravel()[row_ids])
        for sign, scale in zip(signs.T, np.atleast_2d(np.sqrt(curvature)), strict=True):
            of = np.flatnonzero(sign)
            G = self._centred.scaled_gram(examples[of], scale) / self.radius**2
            H[of[:, None], of] += G * np.multiply.outer(sign[of], sign[of])
        if rank_one == 0.0:
            return H
        m = self.rows.margins(self._scores(w.image, precise=False)).ravel()[row_ids]
        return H - rank_one * np.multiply.outer(m, m)

    def predictor(self, w: Predictor, offsets: Array) -> tuple[Array, Array]:
        W, shift = self._weights(w.image, precise=True)
        return W, np.asarray(self.rows.score_offsets(offsets) - shift)

    # What bounds and proofs need.

    @property
    def width(self) -> float:
        return float(np.prod(self._image_shape))

    def published_scores(self, coef: Array, intercept: Array, few: Array | None) -> Array | None:
        """Scores in extended precision; those of all about a far mean, which costs no rounding."""
        if few is not None:
            return self._centred.extended_scores(few, coef) + intercept
        mean = self._centre.mean
        if mean is None or not self._centred.mean_before_products:
            return None
        self.work.add_pass()
        work = partial(passes.scores, W=coef, shift=0.0, centre=self._centre, precise=True)
        about = np.concatenate(list(self._store.map(partial(work, on_block=None), self.rows)))
        return about + [exact_inner(w, mean, b) for w, b in zip(coef, intercept, strict=True)]

    def fingerprints(self) -> Array | None:
        lengths = np.sort(self._scale.lengths)  # known already, and a first fingerprint
        near = np.diff(lengths) <= SAME_FINGERPRINT * lengths[-1]
        if not self._store.at_hand or not (near.any() or lengths[0] == 0.0):
            return None
        self.work.add_pass()
        at_random = np.random.default_rng(0).random(self._store.shape[1]) - 0.5
        work = partial(passes.scores, W=at_random, shift=0.0, centre=Centre(), precise=True)
        return np.concatenate(list(self._store.map(partial(work, on_block=None), self.rows)))

    def given(self, examples: Array) -> tuple[Any, Array, bool] | None:
        """Some of the examples as the user gave them, see ``Certifiable``."""
        X = self._store.take(examples)
        if X.scale is None:
            return X.matrix, np.ones(len(examples)), self.rows.balanced or self._constant != 0.0
        return X.undivided.matrix, np.where(X.scale > 0, X.scale, 1.0), X.constant != 0.0

    # Capabilities.

    def spread(self) -> Array | None:
        extent = self._centred.extent
        return None if extent is None else extent[0]

    def examples(self, index: Array) -> Array:
        return self._centred.examples(index)

    def points(self, row_ids: Array) -> Array:
        examples, signs = self.rows.locate(row_ids)
        x = self.examples(examples)
        if signs.shape[1] == 1:
            x *= signs
            return x
        return (signs[:, :, None] * x[:, None, :]).reshape(len(row_ids), -1)

    def curvature(self, weight: Array, linked: Array | None = None) -> LinearCurvature:
        return LinearCurvature(self._centred, weight, linked, self.work)

    def csr(self) -> Any:
        return None if self._store.whole is None else self._store.whole.csr

    def are_dense(self) -> bool:
        return self._store.whole is not None and self._store.whole.dense is not None

    def two_classes(self, a: int, b: int) -> LinearAdapter | None:
        if not self._store.at_hand:
            return None
        members = np.flatnonzero((self.rows.codes == a) | (self.rows.codes == b))
        codes = (self.rows.codes[members] == b).astype(int)
        rows = make_rows(codes, 2, balanced=self.rows.balanced)
        scale = Scale(np.inf, self.radius, self._scale.lengths[members], None)
        frame, X = (scale, self._centre), self._store.take(members)
        return LinearAdapter(X, rows, norm=self._norm, constant=self._constant, frame=frame)

    @cached_property
    def _layout(self) -> RowLayout:
        assert self._store.whole is not None
        X, sparse, none = self._store.whole.matrix, self._store.sparse, np.empty(0, np.int32)
        return RowLayout(
            form=SPARSE if sparse else DENSE,
            values=X.data if sparse else np.asarray(X, order="C").reshape(-1),
            indices=X.indices if sparse else none,
            indptr=X.indptr if sparse else none,
            n_columns=X.shape[1],
            read=1.0 / self.radius,
            push=1.0 / self.radius,
            constant=self._constant,
            block=self._image_shape[-1],
            stride=1,
            **common_layout(self.rows, self._scale, self._norm),
        )

    def layout(self) -> RowLayout:
        return self._layout  # X in Fortran's order is copied, once

    def columns(self) -> ColumnCache:
        return self._column_cache

    @cached_property
    def _column_cache(self) -> ColumnCache:
        plan, n, k = self._plan or ColumnPlan(), self.rows.n_examples, self.rows.n_classes
        return ColumnCache(self._columns, n, np.dtype(np.float64), *plan, at_least=k)

    def _columns(self, examples: Array) -> Array:
        out = self._centred.columns(examples)
        self.work.add_kernel_evaluations(out.size)
        return out

    def column_scale(self) -> float:
        return 1.0

    def assemble(self, F: Array, q: Array) -> Vector:
        return self.combine(q)
