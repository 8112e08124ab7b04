"""
The hazard ratio of my Cox model is astronomical
================================================

Forty-two children with acute leukaemia in remission were given 6-mercaptopurine or a placebo, and
the weeks until relapse were counted (Freireich et al., 1963). Look at the trial after five weeks:
all nine relapses so far are in the placebo group. The likelihood of a Cox model increases as the
coefficient of the treatment tends to minus infinity; software prints the point where it stopped.
``check_separability`` with ``family="cox"`` tells so, with a proof, and what can be estimated.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize, minimize_scalar

from marginsvm import check_separability, check_separability_proof

NAMES = ["6-MP", "log WBC"]

# Weeks, whether there was a relapse, and the logarithm of the white blood cell count.
TREATED = """6 1 2.31  6 1 4.06  6 1 3.28  7 1 4.43  10 1 2.96  13 1 2.88  16 1 3.60  22 1 2.32
23 1 2.57  6 0 3.20  9 0 2.80  10 0 2.70  11 0 2.60  17 0 2.16  19 0 2.05  20 0 2.01  25 0 1.78
32 0 2.20  32 0 2.53  34 0 1.47  35 0 1.45"""
PLACEBO = """1 1 2.80  1 1 5.00  2 1 4.91  2 1 4.48  3 1 4.01  4 1 4.36  4 1 2.42  5 1 3.49
5 1 3.97  8 1 3.52  8 1 3.05  8 1 2.32  8 1 3.26  11 1 3.49  11 1 2.12  12 1 1.50  12 1 3.06
15 1 2.30  17 1 2.95  22 1 2.73  23 1 1.97"""


def children():
    """Treatment and cell count; weeks and relapse."""
    groups = [
        np.array(text.split(), dtype=float).reshape(-1, 3)
        for text in (TREATED, PLACEBO)
    ]
    table = np.concatenate(groups)
    return np.column_stack([np.repeat([1.0, 0.0], 21), table[:, 2]]), table[:, :2]


X, y = children()
print(check_separability(X, y, family="cox", feature_names=NAMES))

# %%
# After 35 weeks the estimate exists. After five weeks it does not:

week = 5
early = np.column_stack([np.minimum(y[:, 0], week), y[:, 1] * (y[:, 0] <= week)])
report = check_separability(X, early, family="cox", feature_names=NAMES)
print(report)
print(check_separability_proof(report, X, early, exact=True))

# %%
# ``PHReg`` of statsmodels 0.15 prints -25.6 for 6-MP, a standard error of 135,853 and a p-value of
# 1.000; ``CoxPHFitter`` of lifelines 0.30 prints -17.9, 2,657 and 0.995. The coefficient is minus
# infinity.
#
# In the limit, each relapse rules out the treated children who were at risk at that time.

print(np.flatnonzero(report.separated).tolist())

# %%
# What can be estimated
# ---------------------
# The effect of the cell count is finite. It is not that of a model without the treatment: children
# are compared only with those who have the same score along the infinite direction. ``remainder``
# gives these strata, for any software that takes strata.


def log_likelihood(w, X, y, strata):
    """Cox's partial likelihood, with Breslow's ties."""
    score, total = X @ np.atleast_1d(w), 0.0
    for i in np.flatnonzero(y[:, 1]):
        at_risk = score[(y[:, 0] >= y[i, 0]) & (strata == strata[i])]
        total += (
            score[i] - at_risk.max() - np.log(np.exp(at_risk - at_risk.max()).sum())
        )
    return total


def estimate(X, y, strata):
    """The coefficients, and the logarithm of the likelihood."""
    found = minimize(lambda w: -log_likelihood(w, X, y, strata), np.zeros(X.shape[1]))
    return found.x, -found.fun


together = np.zeros(len(X), int)
strata, columns = report.remainder(X)
within, largest = estimate(X[:, columns], early, strata)
without, least = estimate(X[:, 1:], early, together)
print(
    f"log WBC, of the remainder: {within[0]:.3f}; of a model without 6-MP: {without[0]:.3f}"
)

# %%
# What to say about the treatment
# -------------------------------
# A Wald interval is meaningless. But the likelihood has a limit, that of the remainder, so there
# are a likelihood ratio test and a profile likelihood interval with one infinite end.


def profile(b):
    """The largest likelihood with this coefficient of the treatment."""

    def lost(w):
        return -log_likelihood(np.array([b, w]), X, early, together)

    return -minimize_scalar(lost, bounds=(-10, 10), method="bounded").fun


b = np.linspace(-8, 1, 37)
curve = np.array([profile(v) for v in b])
bound = largest - 3.841 / 2
upper = np.interp(-bound, -curve, b)
print(f"likelihood ratio test: {2 * (largest - least):.2f} on 1 degree of freedom")
print(f"95 % of the profile likelihood: log hazard ratio from -infinity to {upper:.2f}")

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(b, curve, "o-", color="#D55E00", ms=3, label="profile likelihood")
ax.axhline(
    largest, color="#0072B2", ls="--", label="its limit: the fit of the remainder"
)
ax.axhline(bound, color="#009E73", ls=":", label="95 %")
ax.set(xlabel="coefficient of 6-MP", ylabel="log likelihood", title="After five weeks")
ax.legend()
if __name__ == "__main__":
    fig.savefig(sys.argv[1] if len(sys.argv) > 1 else "survival.png", dpi=110)

# %%
# To publish: "The estimated hazard ratio of 6-MP is 0 (monotone likelihood: none of the children
# on 6-MP had relapsed), with a profile likelihood interval and the p-value of a likelihood
# ratio test. The coefficient of log WBC is the limit of the maximum-likelihood estimate." Or fit
# with Firth's penalty (``coxphf`` in R), and say so.
