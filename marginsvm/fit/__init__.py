"""Algorithms and how they are played to a certificate, without any of scikit-learn's API."""

from marginsvm.fit.algorithm import Algorithm, Candidate, Progress, Requirements, measured
from marginsvm.fit.play import Stopping, play

__all__ = ["Algorithm", "Candidate", "Progress", "Requirements", "Stopping", "measured", "play"]
