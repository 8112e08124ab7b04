"""Names of :mod:`marginsvm.problem.threads`."""

from marginsvm.problem.threads import n_threads as n_threads
from marginsvm.problem.threads import ordered_map as ordered_map
from marginsvm.problem.threads import single_threaded_blas as single_threaded_blas
