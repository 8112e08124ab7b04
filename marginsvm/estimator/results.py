"""What a fit leaves behind: the predictor, its certificate, the history."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from marginsvm._typing import Array
from marginsvm.certify.bounds import distribution, lower_bound, upper_bound
from marginsvm.certify.certificate import MarginCertificate, rows_in_words
from marginsvm.certify.overlap import overlap_is_proved
from marginsvm.estimator.training_set import TrainingSet
from marginsvm.fit.progress import Candidate, Exact, Progress
from marginsvm.kernel_matrix import KernelMatrixAdapter, Predictor
from marginsvm.kernel_matrix.responses import Weights, softmax
from marginsvm.rows.rows import Rows
from marginsvm.rows.vector import Vector

_LOG_SCALES = (-5.0, 10.0)  # of the largest margin, between which the loss is least


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
        """Fitted attributes; bounds are computed again, and allow for all rounding."""
        scale = data.radius * data.rows.unit
        exact = progress.exact or self._exact(data, progress)
        lower, upper = exact.lower, max(exact.upper, exact.lower, 0.0)
        certificate = MarginCertificate(
            margin=float(lower * scale),
            margin_bound=float(upper * scale),
            status=status,
            separable=self._separable(data, exact),
            weights=training.embed(distribution(data, exact.proof)),
            radius=data.radius,
            of=rows_in_words(training.division.constant) if training.division else "X",
        )
        return {
            **training.features,
            "_gamma": training.gamma,
            **self._model(data, training, exact),
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
        model, predictor = self._best_model(data, progress)
        upper = upper_bound(data, proof)
        hopeful = np.isinf(self.C) and predictor.margin <= 0 and upper <= data.errors.vanishing
        overlap = hopeful and overlap_is_proved(data, proof)
        return Exact(model, predictor, proof, upper, overlap)

    def _resumable(self, progress: Progress, status: str) -> Progress | None:
        """From where a later fit goes on; a round cut short is played again, in full."""
        if self.warm_start or status in ("interrupted", "stopped"):
            return progress.before or progress
        return None

    def _best_model(
        self, data: KernelMatrixAdapter, progress: Progress
    ) -> tuple[Vector, Predictor]:
        """Vector of the best separator, or of the fallback, and its predictor."""
        best = progress.best
        if best is not None:
            predictor = lower_bound(data, best.vector, margins=best.margins)
            if predictor.margin > data.errors.resolution:
                return best.vector, predictor
        last = self._fallback(data, progress)
        model, own = last.vector, last.offsets
        if data.norm(model) <= 1e-13 * model.mass:  # nothing is left of it but rounding
            model = data.zeros()
        own = least_loss(data.rows, data.margins(model)).offsets if own is None else own
        return model, lower_bound(data, model, own)

    def _fallback(self, data: KernelMatrixAdapter, progress: Progress) -> Candidate:
        """Model where nothing separates, as far as is known."""
        assert progress.last is not None
        return progress.last

    def _separable(self, data: KernelMatrixAdapter, exact: Exact) -> bool | None:
        if np.isfinite(self.C):  # the bounds are of the soft margin, which is always positive
            return exact.predictor.separates or None
        if exact.lower > data.errors.resolution:
            return True
        return False if exact.overlap else None

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
        self, data: KernelMatrixAdapter, training: TrainingSet, exact: Exact
    ) -> dict[str, Any]:
        coef, intercept = exact.predictor.coef, exact.predictor.intercept
        found = {}
        if training.division is not None:
            coef, intercept = training.division.undone(coef, intercept)
            found["constant_"] = training.division.constant
        if self.kernel == "linear":
            return {**found, "coef_": coef, "intercept_": intercept}
        support = np.flatnonzero(coef.any(axis=0))
        return {
            **found,
            "support_": training.kept[support],
            "support_vectors_": training.support_vectors(support, self.kernel),
            "dual_coef_": coef[:, support],
            "intercept_": intercept,
        }


def least_loss(rows: Rows, margins: Array) -> Weights:
    """Softmax of some multiple of these margins, that which has the least exponential loss.

    Its offsets are the best intercept for the margins as they are. (That of the loss without
    scaling would be the larger class's, whatever the predictor, where margins are small.)
    """
    size = float(np.abs(margins[np.isfinite(margins)]).max(initial=0.0)) or 1.0

    def response(log_scale: float) -> Weights:
        return softmax(rows, margins, size * float(np.exp(-log_scale)))

    least = minimize_scalar(lambda s: response(s).log_risk, bounds=_LOG_SCALES, method="bounded")
    return response(float(least.x))
