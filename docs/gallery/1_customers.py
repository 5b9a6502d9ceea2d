"""
Customers: a mixed table with gaps
==================================

A shop has a table of its customers: numbers in different units, categories, gaps, and
columns that say nothing. Nobody knows how many kinds of customers there are.
:class:`kplus.CRAFT` finds them, and says for each the columns that set it apart.
"""

# %%
# The table. Three kinds of customers are in it, each alike in columns of its own; all
# else is noise, and one cell of ten is empty.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kplus import CRAFT
from kplus.plots import ClusterDisplay, CraftDisplay

rng = np.random.default_rng(0)
n = 600
table = pd.DataFrame(
    {
        "age": rng.normal(45, 15, n).round(),
        "basket": rng.gamma(9, 7, n).round(2),
        "visits": rng.normal(12, 4, n).round(),
        "hour": rng.normal(14, 3, n).round(1),
        "device": rng.choice(["phone", "laptop", "till"], n),
        "pays": rng.choice(["card", "cash", "invoice"], n),
        "town": rng.choice(["north", "south", "west"], n),
        "newsletter": rng.choice(["yes", "no"], n),
    }
)
students, traders = table.index < 180, table.index >= 460
table.loc[students, "age"] = rng.normal(22, 2, 180).round()
table.loc[students, "device"] = "phone"
table.loc[students, "visits"] = rng.normal(25, 2, 180).round()
table.loc[traders, "hour"] = rng.normal(8, 0.5, 140).round(1)
table.loc[traders, "basket"] = rng.normal(190, 15, 140).round(2)
table.loc[traders, "pays"] = rng.choice(["invoice", "card"], 140, p=[0.95, 0.05])
table = table.mask(rng.random(table.shape) < 0.1)
table.sample(6, random_state=1)

# %%
# No scaling, no encoding, no filling in of gaps, no number of clusters.

model = CRAFT(random_state=0).fit(table)
model.n_clusters_

# %%
# What are they like? The traders buy at eight in the morning and pay by invoice, the
# students come often and by phone. The third kind is everybody else.

model.describe()[["cluster", "size", "feature", "here", "overall"]]

# %%
# The map shows how much each column says about each cluster. Town and newsletter say
# nothing about any of them.

CraftDisplay.from_estimator(model)
plt.show()

# %%
# And the rows, drawn in coordinates that separate the clusters:

ClusterDisplay.from_estimator(model, table)
plt.show()

# %%
# A new customer of whom little is known is placed by what is known.

new = pd.DataFrame({"age": [21.0, np.nan], "hour": [np.nan, 8.1]})
model.predict(new.reindex(columns=table.columns))

# %%
# From a shell it is ``kplus fit customers.csv --model craft``. See :doc:`/guide/craft`.
