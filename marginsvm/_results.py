"""What a fit leaves behind: the predictor, its certificate, the history."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginsvm._typing import Array
from marginsvm._validation import TrainingSet
from marginsvm.certificate import MarginCertificate
from marginsvm.kernel_matrix import KernelMatrixAdapter
from marginsvm.progress import Candidate, Exact, Progress
from marginsvm.responses import softmax


class ResultsMixin:
    """Fitted attributes from where a fit stands, whether it has ended or not."""

    C: float
    kernel: Any
    warm_start: bool

    def _counts(self, state: Any) -> dict[str, Any]:
        """Fitted attributes of the algorithm's own: what its paper counts."""
        return {}

    def _results(
        self, data: KernelMatrixAdapter, training: TrainingSet, progress: Progress, status: str
    ) -> dict[str, Any]:
        """Fitted attributes; bounds are computed again, in float64 and from coefficients."""
        scale = data.radius * data.rows.unit
        exact = progress.exact or self._exact(data, progress)
        model, lower, offsets = exact.model, exact.lower, exact.offsets
        upper = max(exact.upper, lower, 0.0)
        q = data.coefficients(exact.proof) / data.mass(exact.proof)
        certificate = MarginCertificate(
            margin=float(lower * scale),
            margin_bound=float(upper * scale),
            status=status,
            separable=self._separable(data, model, lower, upper, offsets),
            weights=training.embed(q),
            radius=data.radius,
        )
        return {
            **training.features,
            "_gamma": training.gamma,
            **self._model(data, training, model, lower, offsets),
            **self._counts(progress.state),
            "classes_": training.classes,
            "certificate_": certificate,
            "margin_": certificate.margin,
            "margin_bound_": certificate.margin_bound,
            "gap_": certificate.gap,
            "separable_": certificate.separable,
            "status_": status,
            "n_iter_": progress.n_iter,
            "history_": self._history(progress, scale),
            "_progress": self._resumable(progress, status),
        }

    def _exact(self, data: KernelMatrixAdapter, progress: Progress) -> Exact:
        assert progress.proof is not None
        found = progress.proof
        proof = found.vector if found.precise else data.refresh(found.vector)
        return Exact(*self._best_model(data, progress), proof, data.upper_bound(proof))

    def _resumable(self, progress: Progress, status: str) -> Progress | None:
        """From where a later fit goes on; a round cut short is played again, in full."""
        if self.warm_start or status in ("interrupted", "stopped"):
            return progress.before or progress
        return None

    def _best_model(
        self, data: KernelMatrixAdapter, progress: Progress
    ) -> tuple[Array, float, Array]:
        """Vector, exact margin and offsets of the best separator, or of the fallback."""
        best = progress.best
        if best is not None:
            lower, offsets = data.lower_bound(best.vector, low=best.low)
            if lower > data.resolution:
                return best.vector, lower, offsets
        last = self._fallback(data, progress)
        model, own = last.vector, last.offsets
        if data.norm(model) <= 1e-13 * data.mass(model):  # nothing is left of it but rounding
            model = data.zeros()
        own = softmax(data.rows, data.margins(model)).offsets if own is None else own
        return model, *data.lower_bound(model, own)

    def _fallback(self, data: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """Model where nothing separates, as far as is known."""
        assert progress.last is not None
        return progress.last

    def _separable(
        self, data: KernelMatrixAdapter, model: Array, lower: float, upper: float, offsets: Any
    ) -> bool | None:
        if np.isfinite(self.C):  # the bounds are of the soft margin, which is always positive
            return data.separates(model, offsets) or None
        if lower > data.resolution:
            return True
        return False if upper <= data.resolution else None

    def _history(self, progress: Progress, scale: float) -> dict[str, Array]:
        lines = [line for line in progress.history if line[0] <= progress.n_iter]
        table = np.array(lines, dtype=np.float64).reshape(-1, 5)
        return {
            "n_iter": table[:, 0].astype(int),
            "n_passes": table[:, 1],
            "seconds": table[:, 2],
            "margin": table[:, 3] * scale,
            "margin_bound": table[:, 4] * scale,
        }

    def _model(
        self,
        data: KernelMatrixAdapter,
        training: TrainingSet,
        model: Array,
        lower: float,
        offsets: Array,
    ) -> dict[str, Any]:
        """Predictor scaled so that the closest examples get 1 (no separator: unit norm)."""
        norm = data.norm(model)
        separated = lower > data.resolution
        smallest = lower * norm * data.rows.unit if separated else norm / data.radius
        coef, intercept = data.predictor(model, offsets)
        scale = 1.0 / smallest if smallest > 0 else 1.0
        coef, intercept = np.atleast_2d(coef) * scale, np.atleast_1d(intercept) * scale
        if self.kernel == "linear":
            return {"coef_": coef, "intercept_": intercept}
        support = np.flatnonzero(coef.any(axis=0))
        return {
            "support_": training.kept[support],
            "support_vectors_": training.support_vectors(support, self.kernel),
            "dual_coef_": coef[:, support],
            "intercept_": intercept,
        }
