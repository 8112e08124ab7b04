"""Many small fits by one call."""

from marginsvm.many.fit_many import fit_many as fit_many
from marginsvm.many.results import ManyFits as ManyFits
