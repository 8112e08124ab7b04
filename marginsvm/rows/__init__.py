"""Names of :mod:`marginsvm.problem.rows`, for rooms that are still to be rewritten."""

from marginsvm.problem.matrix import support_of as support_of
from marginsvm.problem.norms import LpNorm as LpNorm
from marginsvm.problem.norms import SignedNorm as SignedNorm
from marginsvm.problem.rows import BinaryRows as BinaryRows
from marginsvm.problem.rows import Intervals as Intervals
from marginsvm.problem.rows import MulticlassRows as MulticlassRows
from marginsvm.problem.rows import OutputRows as OutputRows
from marginsvm.problem.rows import Rows as Rows
from marginsvm.problem.rows import intervals_of as intervals_of
from marginsvm.problem.rows import make_rows as make_rows
from marginsvm.problem.rows import output_rows as output_rows
from marginsvm.problem.vector import AnyPredictor as AnyPredictor
from marginsvm.problem.vector import Predictor as Predictor
from marginsvm.problem.vector import Vector as Vector
