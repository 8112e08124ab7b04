"""
A leaderboard: which ratings exist
==================================

Ratings of Bradley and Terry's model (and of Elo's, fitted by maximum likelihood) are the
coefficients of a logistic regression. A player who has lost all games has a rating of minus
infinity; software prints a number all the same, which depends on where it stopped.
:func:`~marginsvm.check_separability` says which ratings exist, in time proportional to the number
of games.

The matches of five tennis players from 2014 to 2018 are those of A. Agresti, An Introduction to
Categorical Data Analysis, third edition, 2019.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from marginsvm import check_separability, check_separability_proof

PLAYERS = ["Djokovic", "Federer", "Murray", "Nadal", "Wawrinka"]
WON = {
    ("Djokovic", "Federer"): (9, 6),
    ("Djokovic", "Murray"): (14, 3),
    ("Djokovic", "Nadal"): (9, 2),
    ("Djokovic", "Wawrinka"): (4, 3),
    ("Federer", "Murray"): (5, 0),
    ("Federer", "Nadal"): (5, 1),
    ("Federer", "Wawrinka"): (7, 2),
    ("Murray", "Nadal"): (2, 4),
    ("Murray", "Wawrinka"): (2, 2),
    ("Nadal", "Wawrinka"): (4, 3),
}
games = [pair for pair, won in WON.items() for _ in range(sum(won))]
first_won = [score for won in WON.values() for score in [1] * won[0] + [0] * won[1]]

# %%
# A chain of wins leads from each player to each other: Murray never beat Federer, but he beat
# Nadal, who did. So all ratings exist.

report = check_separability(games, first_won, family="pairs")
print(report)

# %%
# A newcomer
# ----------
# A new player loses the first match, to Murray. (This match is invented.)

games_now, won_now = [*games, ["Murray", "Newcomer"]], [*first_won, 1]
report = check_separability(games_now, won_now, family="pairs")
print(report)
print(check_separability_proof(report, games_now, won_now, exact=True))

# %%
# An unpenalised logistic regression does not tell. Its rating of the newcomer depends on
# the tolerance at which it stops; the other ratings do not.


def ratings(games, won, C=np.inf, tol=1e-4):
    """Against Djokovic, by scikit-learn."""
    names = sorted({name for game in games for name in game})
    code = {name: j for j, name in enumerate(names)}
    X = np.zeros((len(games), len(names)))
    for row, (a, b) in zip(X, games, strict=True):
        row[code[a]], row[code[b]] = 1.0, -1.0
    fit = LogisticRegression(C=C, tol=tol, fit_intercept=False, max_iter=10_000)
    # In both directions, as scikit-learn wants two classes.
    fit.fit(np.vstack([X[:, 1:], -X[:, 1:]]), np.append(won, 1 - np.array(won)))
    return dict(zip(names[1:], fit.coef_[0].round(2).tolist(), strict=True))


for tol in (1e-2, 1e-4, 1e-8):
    print(f"tol={tol:g}:", ratings(games_now, won_now, tol=tol))

# %%
# What to publish
# ---------------
# The finite ratings are those of a fit to the *remainder*, the games that are not separated.
# The newcomer's rating is minus infinity relative to the others, or "not rated yet".

kept = report.remainder(games_now)
left = [game for game, keep in zip(games_now, kept, strict=True) if keep]
limit = ratings(left, np.array(won_now)[kept], tol=1e-8)
print(len(games_now) - len(left), "game left out:", limit)

# %%
# Or penalise: the newcomer's rating then depends on the penalty.

penalties = np.logspace(0, -6, 13)
path = [ratings(games_now, won_now, C=1 / penalty, tol=1e-8) for penalty in penalties]
_, ax = plt.subplots(layout="constrained")
for name in path[0]:
    ax.semilogx(penalties, [fit[name] for fit in path], label=name)
for rating in limit.values():
    ax.axhline(rating, color="0.8", lw=0.8, zorder=0)
ax.invert_xaxis()
ax.set(xlabel="penalty", ylabel="rating against Djokovic (log odds)")
ax.legend()

# %%
# Draws and rankings
# ------------------
# A draw is 0.5, half a win for each.

print(
    check_separability([["Ann", "Bob"], ["Ann", "Bob"]], [1, 0.5], family="pairs").kind
)

# %%
# A ranking is a list; a set at its end holds the participants that were not ranked. The remainder
# consists of parts of rankings.

races = [
    ["Ann", "Bob", "Cid"],
    ["Bob", "Ann", "Cid"],
    ["Cid", {"Dan", "Eve"}],
    ["Dan", "Cid"],
]
report = check_separability(races, family="pairs")
print(report.coefficients)
print(report.remainder(races))

# %%
# Many games
# ----------
# A million games of ten thousand players:

rng = np.random.default_rng(0)
many = rng.integers(0, 9_999, (1_000_000, 2))
many = np.vstack([many[many[:, 0] != many[:, 1]], [[17, 9_999], [9_999, 4]]])
outcome = np.append(rng.integers(0, 2, len(many) - 2), [1, 0])
begin = time.perf_counter()
report = check_separability(many, outcome, family="pairs")
print(f"{time.perf_counter() - begin:.1f} s: {report.sentence}")
