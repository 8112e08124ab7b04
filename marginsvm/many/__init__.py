"""Many small fits by one call."""

from marginsvm.many.cross_validation import ManyScores as ManyScores
from marginsvm.many.cross_validation import cross_val_many as cross_val_many
from marginsvm.many.fit_many import fit_many as fit_many
from marginsvm.many.many_fits import ManyFits as ManyFits
