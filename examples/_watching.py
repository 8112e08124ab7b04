"""The margin of every iterate, for figures: an estimator itself keeps the best one only."""

from dataclasses import dataclass, field

from marginsvm.fit import Algorithm


@dataclass(frozen=True)
class Watched(Algorithm):
    """Another algorithm; ``path`` gains (passes over the data, margin) of each iterate.

    An iterate is what a round gives as a candidate for the lower bound.
    """

    algorithm: Algorithm
    path: list = field(default_factory=list)

    @property
    def requires(self):
        return self.algorithm.requires

    def n_rounds(self, n_iter):
        return self.algorithm.n_rounds(n_iter)

    def start(self, problem):
        return self.algorithm.start(problem)

    def step(self, problem, state):
        return self.algorithm.step(problem, state)

    def candidates(self, problem, state):
        for candidate in self.algorithm.candidates(problem, state):
            if candidate.min_margin is not None and (norm := problem.norm(candidate.vector)) > 0:
                margin = candidate.min_margin / norm * problem.radius * problem.rows.unit
                self.path.append((problem.work.passes, margin))
            yield candidate


class Watching:
    """Mixin for estimators whose ``path`` is that of their algorithm."""

    def _algorithm(self):
        self.path = []
        return Watched(super()._algorithm(), self.path)
