"""The results of many fits, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from marginsvm._typing import Array
from marginsvm.certificate.certificate import Certificate, relative_gap
from marginsvm.many.stacked_bounds import Fits, weights_of


@dataclass(frozen=True, eq=False, repr=False)
class ManyFits(Sequence[Any]):
    """Results of :func:`marginsvm.fit_many`: arrays with an entry for each of B fits.

    ``fits[i]`` is an ordinary fitted estimator, made when it is asked for.

    Attributes
    ----------
    estimator : estimator
        The one that was given, not fitted.
    coef : ndarray of shape (B, n_features), or list of ndarray
        Coefficients of the features; a list where their numbers differ.
    intercept : ndarray of shape (B,)
    dual_coef : ndarray of shape (B, n_samples), or list of ndarray
        Coefficients of the examples, with the signs of the classes. Divided by the sum of their
        absolute values, they are the weights that prove the upper bound.
    margin, margin_bound : ndarray of shape (B,)
        Certified lower and upper bounds on the margin (as of a single fit).
    status : ndarray of shape (B,)
        As of a single fit; ``interrupted``: it has not begun.
    separable : ndarray of shape (B,)
        True, False or None.
    classes : ndarray of shape (B, 2)
    radius : ndarray of shape (B,)
        Largest norm of an example (units of X).
    nu : ndarray of shape (B,)
        With the hinge loss: the parameters of NuSVC with the same solutions; else 0.
    single : dict
        Fitted estimators of the problems that were fitted one by one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginsvm import MaxMarginClassifier, fit_many
    >>> X, y = load_iris(return_X_y=True)
    >>> fits = fit_many(MaxMarginClassifier(C=1.0), X, y, rows=[y != 0, y != 1, y != 2])
    >>> fits
    <3 fits of MaxMarginClassifier(C=1.0): 3 certified; margins from 0.193 to 1.62>
    >>> fits.coef.shape, fits.classes.tolist()
    ((3, 4), [[1, 2], [0, 2], [0, 1]])
    >>> print(fits[2].certificate_)
    certified: 0.917749 <= best margin <= 0.91775 (relative gap ...), separable: True
    """

    estimator: Any
    coef: Any
    intercept: Array
    dual_coef: Any
    margin: Array
    margin_bound: Array
    status: Array
    separable: Array
    classes: Array
    radius: Array
    nu: Array
    single: dict[int, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        counts = zip(*np.unique(self.status, return_counts=True), strict=True)
        found = ", ".join(f"{count} {status}" for status, count in counts)
        ends = f"{np.min(self.margin):.3g} to {np.max(self.margin):.3g}" if len(self) else "none"
        return f"<{len(self)} fits of {self.estimator}: {found}; margins from {ends}>"

    @property
    def gap(self) -> Array:
        """Relative gaps between the bounds, of shape (B,)."""
        both = zip(self.margin, self.margin_bound, strict=True)
        return np.array([relative_gap(lower, upper) for lower, upper in both])

    def __len__(self) -> int:
        return len(self.margin)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        """The fitted estimator of one problem."""
        i = range(len(self))[index]
        if isinstance(i, range):
            return [self[j] for j in i]
        if i in self.single:
            return self.single[i]
        if self.status[i] == "interrupted":
            raise IndexError(f"fit {i} was interrupted before it began")
        estimator = clone(self.estimator)
        estimator.__dict__.update(self._attributes(i))
        return estimator

    def _attributes(self, i: int) -> dict[str, Any]:
        dual = np.asarray(self.dual_coef[i])
        support, n = np.flatnonzero(dual), len(dual)
        coef = np.array(self.coef[i])[None]
        found: dict[str, Any] = {"coef_": coef, "n_features_in_": coef.shape[1]}
        if self.nu[i] > 0.0:
            found["nu_"] = float(self.nu[i])
        certificate = self._certificate(i, support, weights_of(dual)[support], n)
        bounds = {"margin": certificate.margin, "margin_bound": certificate.margin_bound}
        lines = {"n_iter": 1, "n_passes": 1.0, "seconds": 0.0, **bounds}
        return {
            **found,
            "intercept_": self.intercept[i : i + 1].copy(),
            "_gamma": 0.0,
            "classes_": self.classes[i].copy(),
            "certificate_": certificate,
            "n_iter_": 1,
            "history_": {name: np.array([value]) for name, value in lines.items()},
            "support_": support,
            "n_support_": np.bincount(dual[support] > 0.0, minlength=2).astype(np.int32),
            "dual_coef_": dual[support][None],
            "_progress": None,
        }

    def _certificate(self, i: int, support: Array, q: Array, n: int) -> Certificate:
        """The certificate of a fit, with its weights as a sparse array."""
        indptr = np.searchsorted(support, np.arange(n + 1))
        return Certificate(
            lower=float(self.margin[i]),
            upper=float(self.margin_bound[i]),
            reading="margin",
            status=str(self.status[i]),
            feasible=self.separable[i],
            weights=sp.csr_array((q, np.zeros_like(support), indptr), shape=(n, 1)),
            radius=float(self.radius[i]),
            route=(("together", 1),),
        )


def room_for(estimator: Any, shapes: Array, kind_of_labels: Any) -> ManyFits:
    """Results of fits of these shapes, none of which has begun."""
    B = len(shapes)
    return ManyFits(
        estimator,
        _room(shapes[:, 1]),
        np.zeros(B),
        _room(shapes[:, 0]),
        np.zeros(B),
        np.full(B, np.inf),
        np.full(B, "interrupted", dtype="<U11"),
        np.full(B, None, dtype=object),
        np.empty((B, 2), dtype=kind_of_labels),
        np.zeros(B),
        np.zeros(B),
    )


def put(fits: ManyFits, ids: Array, found: Fits, certified: Array, classes: Array) -> None:
    """Take over the results of a batch; those that are not certified are replaced later."""
    _put_lines(fits.dual_coef, ids, found.dual)
    fits.intercept[ids], fits.radius[ids] = found.intercept, found.radius
    fits.margin[ids], fits.margin_bound[ids] = found.margin, found.bound
    fits.separable[ids[found.separates]] = True
    fits.status[ids[certified]], fits.classes[ids] = "certified", classes


def put_coef(fits: ManyFits, ids: Array, coef: Array, shift: Array | None) -> None:
    """Take over coefficients, about what was subtracted from the examples."""
    _put_lines(fits.coef, ids, coef)
    if shift is not None:
        fits.intercept[ids] -= np.einsum("bd,bd->b", coef, shift)


def put_single(fits: ManyFits, i: int, fitted: Any) -> None:
    """Take over the results of a single fit."""
    certificate = fitted.certificate_
    dual = np.zeros(certificate.weights.shape[0])
    dual[fitted.support_] = fitted.dual_coef_[0]
    fits.dual_coef[i] = dual
    fits.coef[i] = fitted.coef_[0]
    fits.intercept[i], fits.radius[i] = fitted.intercept_[0], certificate.radius
    fits.margin[i], fits.margin_bound[i] = certificate.margin, certificate.margin_bound
    fits.status[i], fits.separable[i] = certificate.status, certificate.separable
    fits.classes[i], fits.single[i] = fitted.classes_, fitted


def _put_lines(room: Any, ids: Array, lines: Array) -> None:
    """Keep a line for each of some problems."""
    if isinstance(room, np.ndarray):
        room[ids] = lines
        return
    for i, line in zip(ids, lines, strict=True):
        room[i] = line


def _room(lengths: Array) -> Any:
    """An array with lines of these lengths; a list where they differ."""
    if np.all(lengths == lengths[0]):
        return np.zeros((len(lengths), lengths[0]))
    return [np.zeros(0)] * len(lengths)


def joined(parts: Sequence[ManyFits]) -> ManyFits:
    """Results of problems that were fitted in parts."""

    def both(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        same = all(isinstance(v, np.ndarray) for v in values)
        if same and len({v.shape[1:] for v in values}) == 1:
            return np.concatenate(values)
        return [line for v in values for line in v]

    names = [name for name in ManyFits.__dataclass_fields__ if name not in ("estimator", "single")]
    begins = np.cumsum([0, *map(len, parts)])
    single = {
        int(begin) + i: fitted
        for begin, part in zip(begins, parts, strict=False)
        for i, fitted in part.single.items()
    }
    return ManyFits(parts[0].estimator, **{name: both(name) for name in names}, single=single)
