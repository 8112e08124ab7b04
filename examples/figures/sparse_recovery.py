"""
Sparse recovery (Raj and Bach, eq. 2 with p near 1)
===================================================

A signal of 20 coefficients among 2000 is to be found from 200 random measurements of it. Of all
signals that explain the measurements, least squares takes the one of least Euclidean norm, which
spreads over all coefficients. ``DualLpRegressor`` with ``p="sparse"``, here 1.13,
takes the one of least p-norm: its 20 largest coefficients are those of the signal, but up to a half
too small. With p = 1.05, which takes twice as many epochs, they are the signal's to one in two
hundred.

Below: the certified bound on the norm that a signal which explains the measurements must have,
with the norm of the predictor; by how much predictors miss the measurements; and the
absolute values of their coefficients.

Drawn: ``docs/images/sparse_recovery.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _figure import save

from marginsvm import DualLpRegressor, check_certificate

rng = np.random.default_rng(0)
n, d, k = 200, 2000, 20
X, signal = rng.standard_normal((n, d)), np.zeros(d)
support = rng.choice(d, k, replace=False)
signal[support] = rng.choice([-1.0, 1.0], k) * rng.uniform(1.0, 2.0, k)
y = X @ signal

models = {}
for p in (2.0, "sparse", 1.05):
    model = DualLpRegressor(p=p, fit_intercept=False, random_state=0).fit(X, y)
    models[f"p = {p}"] = model
    found = np.isin(np.argsort(np.abs(model.coef_))[-k:], support).sum()
    off = np.linalg.norm(model.coef_ - signal) / np.linalg.norm(signal)
    print(
        f"p = {p}: {found} of the {k} largest are the signal's, relative error {off:.3f}"
    )
    print(f"    {model.n_iter_} epochs, {model.certificate_}", flush=True)
    assert check_certificate(model, X, y)

# %%
fig, axes = plt.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
bounds, misses, sizes = axes[1]
LOOKS = (
    ("#E69F00", "-"),
    ("#009E73", "--"),
    ("#D55E00", "-."),
)  # colours of Okabe and Ito
for (color, line), ax, (name, model) in zip(
    LOOKS, axes[0], models.items(), strict=True
):
    ax.plot(model.coef_, ".", color=color, markersize=4, label="found")
    ax.plot(
        support, signal[support], "o", color="#0072B2", fillstyle="none", label="signal"
    )
    ax.set(title=name, xlabel="feature", ylabel="coefficient", ylim=(-2.3, 3.2))
    ax.legend(loc="upper right", ncols=2)
    history = model.history_
    misses.loglog(
        history["n_iter"], history["violation"], color=color, ls=line, label=name
    )
    largest_first = np.sort(np.abs(model.coef_))[::-1]
    sizes.loglog(np.arange(1, d + 1), largest_first, color=color, ls=line, label=name)
history = models["p = sparse"].history_
bounds.semilogx(
    history["n_iter"], history["norm"], color="#009E73", label="norm of the predictor"
)
bounds.semilogx(
    history["n_iter"],
    history["norm_bound"],
    "k--",
    label="certified: no shorter one fits",
)
bounds.set(title='p = "sparse"', xlabel="epoch", ylabel="p-norm", ylim=(0, None))
misses.set(xlabel="epoch", ylabel="largest miss of a measurement", title="to tol=1e-3")
sizes.set(xlabel="rank", ylabel="absolute value of a coefficient", ylim=(1e-6, 5))
sizes.axvline(k, color="0.6", linestyle=":")
sizes.text(1.15 * k, 2e-6, "20 coefficients", color="0.4")
for ax in axes[1]:
    ax.legend()
save(fig, __file__)
