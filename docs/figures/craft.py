"""Customers of three kinds, each alike in columns of its own; the map of these."""

import numpy as np
import pandas as pd

from kplus import CRAFT
from kplus.plots import CraftDisplay

rng = np.random.default_rng(0)
n = 400
table = pd.DataFrame(
    {
        "age": rng.normal(45, 15, n).round(),
        "basket": rng.normal(60, 20, n).round(2),
        "visits": rng.normal(12, 4, n).round(),
        "hour": rng.normal(14, 3, n).round(1),
        "device": rng.choice(["phone", "laptop", "till"], n),
        "pays": rng.choice(["card", "cash", "invoice"], n),
        "town": rng.choice(["north", "south", "west"], n),
        "newsletter": rng.random(n) < 0.5,
    }
)
students, traders = table.index < 130, table.index >= 300
table.loc[students, "age"] = rng.normal(22, 2, 130).round()
table.loc[students, "device"] = "phone"
table.loc[students, "visits"] = rng.normal(25, 2, 130).round()
table.loc[traders, "hour"] = rng.normal(8, 0.5, 100).round(1)
table.loc[traders, "basket"] = rng.normal(150, 10, 100).round(2)
table.loc[traders, "pays"] = rng.choice(["invoice", "card"], 100, p=[0.95, 0.05])
table = table.mask(rng.random(table.shape) < 0.1)  # one cell of ten is missing

craft = CRAFT(random_state=0).fit(table)
CraftDisplay.from_estimator(craft)
