"""Maximum-margin classifiers for scikit-learn in which every fit comes with a proof."""

from marginsvm._show_versions import show_versions
from marginsvm._version import __version__ as __version__
from marginsvm.audit import audit
from marginsvm.certificate.certificate import Certificate
from marginsvm.certificate.check import check_certificate
from marginsvm.certificate.proof_files import save_proof
from marginsvm.comparison import compare
from marginsvm.display import CostCurveDisplay, MarginPathDisplay, SeparationDisplay
from marginsvm.estimators.cv import MaxMarginClassifierCV
from marginsvm.estimators.dual_state import DualStateMixin
from marginsvm.estimators.exact import MaxMarginClassifier
from marginsvm.estimators.outliers import MaxMarginOutlierDetector
from marginsvm.estimators.path import margin_path
from marginsvm.estimators.regressor import MaxMarginRegressor
from marginsvm.many import cross_val_many, fit_many
from marginsvm.papers.accelerated import AcceleratedPerceptron
from marginsvm.papers.adaptive_sampling import AdaptiveSamplingKernelClassifier
from marginsvm.papers.dual_lp import DualLpPerceptron
from marginsvm.papers.dual_lp_regressor import DualLpRegressor
from marginsvm.papers.momentum import MomentumMarginClassifier
from marginsvm.papers.optimistic import OptimisticPerceptron
from marginsvm.papers.perceptrons import (
    BatchPerceptron,
    KernelPerceptron,
    LpPerceptron,
    NormalizedKernelPerceptron,
    PrimalMirrorDescent,
    VonNeumannClassifier,
)
from marginsvm.papers.smoothed import PerceptronVonNeumann, SmoothedKernelPerceptron
from marginsvm.problem.adapter import KernelMatrixAdapter
from marginsvm.schedules import (
    GrowthSchedule,
    NesterovSchedule,
    PowerSchedule,
    theory_draws,
)
from marginsvm.separation import Separability, check_separability
from marginsvm.separation.check import check_separability_proof

__all__ = [
    "AcceleratedPerceptron",
    "AdaptiveSamplingKernelClassifier",
    "BatchPerceptron",
    "Certificate",
    "CostCurveDisplay",
    "DualLpPerceptron",
    "DualLpRegressor",
    "DualStateMixin",
    "GrowthSchedule",
    "KernelMatrixAdapter",
    "KernelPerceptron",
    "LpPerceptron",
    "MarginPathDisplay",
    "MaxMarginClassifier",
    "MaxMarginClassifierCV",
    "MaxMarginOutlierDetector",
    "MaxMarginRegressor",
    "MomentumMarginClassifier",
    "NesterovSchedule",
    "NormalizedKernelPerceptron",
    "OptimisticPerceptron",
    "PerceptronVonNeumann",
    "PowerSchedule",
    "PrimalMirrorDescent",
    "Separability",
    "SeparationDisplay",
    "SmoothedKernelPerceptron",
    "VonNeumannClassifier",
    "audit",
    "check_certificate",
    "check_separability",
    "check_separability_proof",
    "compare",
    "cross_val_many",
    "fit_many",
    "margin_path",
    "save_proof",
    "show_versions",
    "theory_draws",
]
