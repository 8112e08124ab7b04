"""The margin of every iterate, for figures: an estimator itself keeps the best one only."""


class Watching:
    """Mixin for estimators: ``path`` has (passes over the data, margin) of each iterate.

    An iterate is what a round gives as a candidate for the lower bound.
    """

    def _start(self, data):
        self.path = []
        return super()._start(data)

    def _candidates(self, data, state):
        for candidate in super()._candidates(data, state):
            if candidate.min_margin is not None and (norm := data.norm(candidate.vector)) > 0:
                margin = candidate.min_margin / norm * data.radius * data.rows.unit
                self.path.append((data.n_passes, margin))
            yield candidate
