"""What the predictors of other programs are worth, beside the bounds on the best ones."""

from marginsvm.auditing.audit import audit
from marginsvm.auditing.audit_report import Audit, Claim, Judged, Worth

__all__ = ["Audit", "Claim", "Judged", "Worth", "audit"]
