"""
My logistic regression did not converge
=======================================

A study of endometrial cancer (Heinze and Schemper, 2002) explains a high histology grade (HG) by
neovasculature (NV, yes or no), a pulsatility index (PI) and the height of the endometrium (EH).
All patients with neovasculature have a high grade, so the likelihood increases with the
coefficient of NV and has no maximum. Software prints the point where it stopped.
``check_separability`` tells the reason, with a proof.
"""

import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from marginsvm import SeparationDisplay, check_separability, check_separability_proof

NAMES = ["NV", "PI", "EH"]


def patients():
    """NV, PI, EH and HG of 79 patients."""
    # the gallery runs a script in its folder
    here = Path(globals().get("__file__", "a script of the gallery"))
    table = np.loadtxt(here.with_name("endometrial.csv"), delimiter=",", skiprows=1)
    return table[:, :3], table[:, 3].astype(int)


X, y = patients()

# %%
# What software prints
# --------------------
# Without a penalty, scikit-learn stops somewhere, without a warning: lbfgs prints 30.3 for NV,
# newton-cholesky 24.8.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for solver in ("lbfgs", "newton-cholesky"):
        clf = LogisticRegression(
            C=np.inf, solver=solver, max_iter=10_000, tol=1e-10
        ).fit(X, y)
        print(
            f"{solver}:", dict(zip(NAMES, clf.coef_[0].round(2).tolist(), strict=True))
        )
print("warnings:", [str(w.message) for w in caught])

# %%
# Logit of statsmodels 0.15 says that the optimization failed to converge, and prints 23.6 for NV,
# with a standard error of 41,600 and a p-value of 1.000, although NV predicts a sixth of the
# patients perfectly. Its GLM prints 22.2, with a standard error of 12,700.
#
# What the report says
# --------------------

report = check_separability(X, y, feature_names=NAMES)
print(report)

# %%
# Only the coefficient of NV is infinite. The others are finite and can be published. The proof that
# exactly these patients are separated is checked from X and y, in integers:

print(check_separability_proof(report, X, y, exact=True))

# %%
# The fit to the remainder
# ------------------------
# The finite coefficients are those of a fit to the patients that are not separated, with all
# features that are identified there: ``remainder`` gives both. (NV is left out because it is
# 0 for all of these patients, not because its coefficient is infinite.)

rows, columns = report.remainder(X)
clf = LogisticRegression(C=np.inf, solver="newton-cholesky").fit(
    X[rows][:, columns], y[rows]
)
left = [NAMES[j] for j in columns]
print(dict(zip(left, clf.coef_[0].round(4).tolist(), strict=True)))
print("what remains:", check_separability(X[rows][:, columns], y[rows]).kind)

# %%
# The picture
# -----------
# As the penalty vanishes, the coefficient of NV grows like the logarithm of C, and the
# others converge. No single value of C shows which coefficients converge; the report does.

C = np.geomspace(1e-1, 1e10, 23)
clf = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000)
path = np.array([clf.set_params(C=c).fit(X, y).coef_[0] for c in C])
fig, (first, second) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
looks = ("o-", "#D55E00"), ("s--", "#0072B2"), ("^-.", "#009E73")
for j, ((name, status), (line, color)) in enumerate(
    zip(report.coefficients[1:], looks, strict=True)
):
    first.semilogx(C, path[:, j], line, color=color, ms=3, label=f"{name}: {status}")
first.set(
    xlabel="C (inverse penalty)",
    ylabel="coefficient",
    title="LogisticRegression on endometrial cancer, 79 patients",
)
first.legend()
SeparationDisplay.from_report(report, ax=second)
second.set_title("check_separability: quasi-complete separation")
if __name__ == "__main__":
    fig.savefig(sys.argv[1] if len(sys.argv) > 1 else "separability.png", dpi=110)
