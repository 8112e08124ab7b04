"""MaxMarginClassifier as a solver of benchopt's linear SVM without an intercept (hinge loss).

For ``benchmark_linear_svm_binary_classif_no_intercept``: copy this file into its folder
``solvers``, as ``marginsvm.py``, and run ``benchopt run . -s marginsvm``. It is for benchopt
1.5 or newer, where a result is a dictionary that ``evaluate_result(beta)`` of the objective takes.

benchopt asks for smaller and smaller tolerances. Here a tolerance is a bound on the relative gap
that is proved, so each point of the curve is a fit that ends with a proof, or with its last
digits.
"""

import warnings
from typing import ClassVar

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning

from marginsvm import MaxMarginClassifier


class Solver(BaseSolver):
    """The exact solver, to a certified gap."""

    name = "marginsvm"
    install_cmd = "conda"
    requirements: ClassVar = ["pip::marginsvm"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, C):
        """Take the problem."""
        self.X, self.y = X, y
        self.clf = MaxMarginClassifier(C=C, loss="hinge", fit_intercept=False)

    def warm_up(self):
        """Compile loops, if this data needs any, before time is taken."""
        self.run(1.0)

    def run(self, tolerance):
        """Fit to a relative gap; benchopt begins with a tolerance of infinity, or of 1e38."""
        self.clf.set_params(tol=min(1.0, tolerance))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.clf.fit(self.X, self.y)

    def get_result(self):
        """Its coefficients."""
        return {"beta": self.clf.coef_.ravel()}
