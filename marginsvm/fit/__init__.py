"""The life of a fit; nothing here knows scikit-learn."""

from marginsvm.certify.candidate import Candidate
from marginsvm.fit.algorithm import Algorithm, Requirements
from marginsvm.fit.play import Outcome, play
from marginsvm.fit.progress import Progress
from marginsvm.fit.stopping import Stopping

__all__ = ["Algorithm", "Candidate", "Outcome", "Progress", "Requirements", "Stopping", "play"]
