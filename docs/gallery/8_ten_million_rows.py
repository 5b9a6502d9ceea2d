"""
Ten million rows: files larger than memory
==========================================

A fit passes over the rows in blocks, so that they can stay in their file. Here are
200,000 rows, to keep this page quick; the figure at the end has the times that the
benchmarks measured for up to ten million.
"""

# %%
# Two spirals and two discs, which are no clusters for k-means, written to a file block
# by block. A folder of Parquet files or a pattern of names would do as well.

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import kplus
from kplus import DPMeans

file = Path(tempfile.mkdtemp()) / "rows.npy"
rows = np.lib.format.open_memmap(file, "w+", np.float32, (200_000, 2))
rng = np.random.default_rng(0)
for block in np.split(rows, 20):
    turn = np.sqrt(rng.uniform(0.1, 1, len(block))) * 3 * np.pi
    block[:] = turn[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    block[1::4] *= -1
    block[2::4], block[3::4] = (16, 8), (-16, -8)
    block += rng.normal(0, 0.4, block.shape)
rows.flush()

# %%
# The path goes in. ``kplus.resources`` says how much memory a fit may take.

with kplus.resources(memory_limit="500 MB"):
    model = DPMeans(cells="auto", random_state=0).fit(file)
print(model.fit_report_)
print("rows in each cluster:", np.bincount(model.labels_))

# %%
# A few thousand of the rows, and what became of them:

some = np.random.default_rng(0).choice(len(rows), 5000, replace=False)
fig, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
ax.scatter(
    *rows[some].T, c=model.labels_[some], cmap="tab10", vmax=9, s=3, linewidths=0
)
ax.set_aspect("equal")
plt.show()

# %%
# Labels for very many rows need not be in memory either: they are written part by part.

kplus.write_answers(model.predict, file, file.parent / "labels.npy")
np.load(file.parent / "labels.npy", mmap_mode="r").shape

# %%
# What the benchmarks measured on such rows: CPU time and memory of the whole process.

results = Path("../../benchmarks/results/real_data.json")  # of the repository
measured = json.loads(results.read_text())["large"]["rows"]
n = [row["rows"] for row in measured]
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
left.loglog(n, [row["CPU s"] for row in measured], "o-")
left.set(xlabel="rows", ylabel="CPU seconds")
right.semilogx(n, [row["MB, process"] for row in measured], "o-")
right.set(xlabel="rows", ylabel="memory, MB", ylim=(0, None))
plt.show()

# %%
# See :doc:`/guide/scale` for Parquet, workers on other machines, and fits that survive
# a crash.
