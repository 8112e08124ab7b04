"""
Thousands of fits: a searchlight
================================

Three questions that need many small fits, each answered by one call of
:func:`~marginsvm.cross_val_many` or :func:`~marginsvm.fit_many`, with a certificate for every fit.

1. *Where in a volume do two conditions differ?* A searchlight measures how well each sphere of
   voxels predicts the condition in held-out runs: 3816 spheres in 6 folds are 22,896 fits.
2. *Could that be chance?* One sphere, chosen in advance, is fitted again with labels permuted
   within runs, a thousand times.
3. *Which concepts does a representation hold?* The vector of a concept is the normal of the
   hyperplane that separates its examples from others; its margin is compared with those of random
   labels.

.. image:: /images/searchlight.png
"""

# sphinx_gallery_thumbnail_path = 'images/searchlight.png'

import sys
import time
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import LeaveOneGroupOut

from marginsvm import MaxMarginClassifier, cross_val_many, fit_many

# %%
# A volume of 20 x 20 x 12 voxels in 6 runs of 20 scans, two conditions. Noise is smooth, and the
# conditions differ in two blobs.
rng = np.random.default_rng(0)
shape, runs = (20, 20, 12), np.repeat(np.arange(6), 20)
y = np.tile([0, 1], 60)
grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
volume = rng.standard_normal((120, *shape))
for axis in (1, 2, 3):
    volume = 0.5 * volume + 0.25 * (
        np.roll(volume, 1, axis) + np.roll(volume, -1, axis)
    )
volume /= volume.std()
for blob in ((5, 6, 5), (14, 13, 6)):
    distance = np.linalg.norm(grid - blob, axis=-1)
    pattern = rng.standard_normal(shape) * np.exp(-((distance / 2.0) ** 2))
    volume[y == 1] += 0.4 * pattern

# %%
# The searchlight: spheres of radius 2.5 voxels about all voxels of an ellipsoid, the head.
inside = (
    np.linalg.norm((grid - np.array(shape) / 2 + 0.5) / (np.array(shape) / 2), axis=-1)
    < 1.2
)
number = np.full(shape, -1)
number[inside] = np.arange(inside.sum())
X = volume[:, inside]
steps = [s for s in product(range(-2, 3), repeat=3) if np.linalg.norm(s) <= 2.5]


def sphere(centre):
    """Numbers of the voxels about a voxel."""
    near = np.array(centre) + np.array(steps)
    near = near[((near >= 0) & (near < shape)).all(axis=1)]
    found = number[tuple(near.T)]
    return found[found >= 0]


spheres = [sphere(centre) for centre in np.argwhere(inside)]
folds = [*LeaveOneGroupOut().split(X, y, runs)]
begun = time.perf_counter()
scores = cross_val_many(MaxMarginClassifier(C=0.01), X, y, columns=spheres, cv=folds)
seconds = time.perf_counter() - begun
accuracy = np.full(shape, np.nan)
accuracy[inside] = scores.accuracy.mean(axis=1)
print(f"{scores.status.size} fits in {seconds:.1f} s", np.unique(scores.status))

# %%
# The permutation test of one sphere that was chosen in advance. (Of the best of all spheres, the
# null distribution is that of the largest accuracy in each permutation of the whole searchlight.)
one = spheres[number[5, 6, 5]]
labels = [y]
for _ in range(1000):
    labels.append(np.concatenate([rng.permutation(y[runs == run]) for run in range(6)]))
null = cross_val_many(
    MaxMarginClassifier(C=0.01), X[:, one], np.array(labels), cv=folds
)
null = null.accuracy.mean(axis=1)
p_value = np.mean(null >= null[0])
print(f"accuracy {null[0]:.3f}, p = {p_value:.4f}")

# %%
# Concept vectors: activations of 300 units for 80 examples, half of which show a concept. Eight
# concepts are directions of growing length; the hard margin of each is compared with those of 200
# random labelings.
lengths = np.linspace(0.0, 7.0, 8)
of_chance = np.array([rng.permutation(np.repeat([0, 1], 40)) for _ in range(200)])
margins, chances, bounds = [], [], []
for length in lengths:
    direction = rng.standard_normal(300)
    shows = np.repeat([0, 1], 40)
    activations = rng.standard_normal((80, 300))
    activations += length * shows[:, None] * direction / np.linalg.norm(direction)
    fits = fit_many(MaxMarginClassifier(), activations, np.vstack([shows, of_chance]))
    margins.append(fits.margin[0])
    bounds.append(fits.margin_bound[0])
    chances.append(fits.margin[1:])
    p = np.mean(fits.margin >= fits.margin[0])
    print(f"|concept| = {length:.0f}: {fits[0].certificate_}, p = {p:.3f}")

# %%
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
highest = np.where(inside.any(axis=2), np.nan_to_num(accuracy).max(axis=2), np.nan)
image = left.imshow(highest.T, origin="lower", vmin=0.4, vmax=1.0)
fig.colorbar(image, ax=left, label="accuracy in held-out runs")
left.set(
    xlabel="x (voxels)",
    ylabel="y (voxels)",
    title=f"{scores.status.size} fits: best along z",
)
middle.hist(null[1:], bins=25, color="grey")
middle.axvline(null[0], color="C3", label=f"true labels,\np = {p_value:.3f}")
middle.set(xlabel="accuracy of the sphere at (5, 6, 5)", ylabel="permutations")
middle.set_title("1000 permutations, 6 folds each")
middle.legend(loc="upper center", bbox_to_anchor=(0.72, 0.8))
right.plot(lengths, bounds, "C3.-", label="concept: certified to six digits")
right.boxplot(chances, positions=lengths, widths=0.4, sym="", manage_ticks=False)
right.set(
    xlabel="length of the concept",
    ylabel="hard margin",
    title="concepts, random labels",
)
right.legend()
if len(sys.argv) > 1:
    fig.savefig(sys.argv[1], dpi=110, bbox_inches="tight")
else:
    plt.show()
