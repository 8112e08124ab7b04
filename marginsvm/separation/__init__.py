"""Existence of finite maximum-likelihood estimates: separation, with primal and dual proofs."""

from marginsvm.separation.families import Direction as Direction
from marginsvm.separation.report import Coefficient as Coefficient
from marginsvm.separation.report import Separability as Separability
from marginsvm.separation.report import check_separability as check_separability

__all__ = ["Coefficient", "Direction", "Separability", "check_separability"]
