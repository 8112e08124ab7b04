"""Iterative algorithms and their main loop up to a certificate, independent of scikit-learn."""

from marginsvm.fit.algorithm import Algorithm, Candidate, Progress, Requirements, measured
from marginsvm.fit.play import Stopping, play

__all__ = ["Algorithm", "Candidate", "Progress", "Requirements", "Stopping", "measured", "play"]
