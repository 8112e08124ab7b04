"""Algorithms and how they are played to a certificate, without any of scikit-learn's API."""

from marginsvm.fit.algorithm import Algorithm, Requirements, measured
from marginsvm.fit.play import Outcome, play
from marginsvm.fit.progress import Candidate, Progress
from marginsvm.fit.stopping import Stopping

__all__ = [
    "Algorithm",
    "Candidate",
    "Outcome",
    "Progress",
    "Requirements",
    "Stopping",
    "measured",
    "play",
]
