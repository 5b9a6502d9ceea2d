"""
Single cells: many columns, few rows
====================================

A table of gene expression has hundreds or thousands of columns, and not many more rows.
Genes go up and down together, so that a few factors tell most of what a cell does.
``DPMixture`` takes such a table as it is and looks for cell types along these factors.
"""

# %%
# Counts of 500 genes in 700 cells of five types, one of them rare. Each type has forty
# genes of its own, cells are sequenced to different depths, and counts vary more than
# chance alone would have them.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import kplus
from kplus.plots import ClusterDisplay

rng = np.random.default_rng(0)
types = rng.choice(5, 700, p=[0.35, 0.3, 0.2, 0.11, 0.04])
level = rng.gamma(1.0, 2.0, 500)
rise = np.ones((5, 500))
for k in range(5):
    rise[k, 40 * k : 40 * (k + 1)] = rng.gamma(4.0, 1.0, 40)
depth = rng.lognormal(0, 0.3, 700)[:, None]
counts = rng.poisson(depth * level * rise[types] * rng.gamma(3, 1 / 3, (700, 500)))
genes = [f"gene{j}" for j in range(500)]

# %%
# The usual preparation: every cell to the same total, then logarithms.

scaled = counts / counts.sum(axis=1, keepdims=True) * np.median(counts.sum(axis=1))
cells = pd.DataFrame(np.log1p(scaled), columns=genes)
model = kplus.DPMixture(random_state=0).fit(cells)
print(model.choice_)
print(np.bincount(model.labels_))

# %%
# The types are found, the rare one included. Nobody gave their number.

pd.crosstab(types, model.labels_, rownames=["true type"], colnames=["cluster"])

# %%
# Which genes mark which cluster? ``summary`` says it in words.

model.summary()[["cluster", "size", "set_apart"]]

# %%
# The map is made of discriminant axes, along which clusters are apart. There is no need
# for t-SNE or UMAP, whose distances mean little.

ClusterDisplay.from_estimator(model, cells)
plt.show()

# %%
# ``predict_proba`` says how sure the model is of each cell, and :func:`kplus.stability`
# whether the types would come up again in other cells: see :doc:`/guide/how-sure`.
