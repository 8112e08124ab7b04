"""Names of :mod:`marginsvm.problem.norms`."""

from marginsvm.problem.norms import LpNorm as LpNorm
from marginsvm.problem.norms import SignedNorm as SignedNorm
