"""Whether a likelihood has a finite maximum: separation of classes and counts, with proofs."""

from marginsvm.separability.answer import Direction as Direction
from marginsvm.separability.asking import check_separability as check_separability
from marginsvm.separability.coefficients import Coefficient as Coefficient
from marginsvm.separability.report import Separability as Separability

__all__ = ["Coefficient", "Direction", "Separability", "check_separability"]
