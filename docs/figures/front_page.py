"""The front page: a table with gaps, the groups in it, and what sets them apart."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kplus import DPMixture
from kplus.plots.style import COLORS

rng = np.random.default_rng(4)
kind = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
table = pd.DataFrame(
    {
        "age": np.array([48, 23, 66])[kind]
        + rng.normal(0, [9, 2.5, 5], (600, 3))[range(600), kind],
        "spends": np.array([62, 21, 95])[kind]
        + rng.normal(0, [14, 6, 9], (600, 3))[range(600), kind],
        "visits": np.array([4, 15, 9])[kind]
        + rng.normal(0, [1.5, 3, 2], (600, 3))[range(600), kind],
        "device": [
            rng.choice(["laptop", "phone", "till"], p=p)
            for p in np.array([[0.6, 0.3, 0.1], [0.05, 0.95, 0], [0.1, 0.1, 0.8]])[kind]
        ],
    }
)
shown = table.round(0).astype({"device": object}).mask(rng.random(table.shape) < 0.12)
model = DPMixture(random_state=0).fit(shown)
groups = range(model.n_clusters_)


def panel():
    return plt.subplots(figsize=(3.6, 3.1), layout="constrained")[1]


def rows():
    """The table as it comes."""
    ax = panel()
    ax.set_axis_off()
    lines = [
        [
            ("" if pd.isna(v) else f"{v:.0f}" if not isinstance(v, str) else v)
            for v in row
        ]
        for row in shown[:9].to_numpy()
    ]
    drawn = ax.table(
        lines, colLabels=list(shown), loc="center", cellLoc="center", bbox=[0, 0, 1, 1]
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(12)
    for (line, _), cell in drawn.get_celld().items():
        cell.set(edgecolor="0.85", linewidth=0.8)
        if line == 0:
            cell.set(facecolor="0.93")
            cell.get_text().set_weight("bold")


def found():
    """The same rows in the groups that were found."""
    ax = panel()
    for k in groups:
        here = table[model.labels_ == k]
        ax.scatter(here["age"], here["spends"], s=9, color=COLORS[k], linewidths=0)
        ax.annotate(
            f"{len(here)}",
            (here["age"].mean(), here["spends"].mean()),
            size=13,
            ha="center",
            va="center",
            bbox={
                "facecolor": "white",
                "edgecolor": COLORS[k],
                "boxstyle": "circle,pad=0.3",
            },
        )
    ax.set_xlabel("age", size=13)
    ax.set_ylabel("spends", size=13)
    ax.set(xticks=[], yticks=[])


def words():
    """How each group differs from all rows."""
    axes = plt.subplots(
        len(groups), 1, figsize=(3.6, 3.1), sharex=True, layout="constrained"
    )[1]
    bins = np.linspace(0, 26, 27)
    for k, ax in zip(groups, axes, strict=True):
        here = table[model.labels_ == k]
        ax.hist(table["visits"], bins, density=True, color="0.88")
        ax.hist(here["visits"], bins, density=True, color=COLORS[k], alpha=0.8)
        share = here["device"].value_counts(normalize=True)
        ax.set_title(
            f"{here['visits'].mean():.0f} visits, {share.iloc[0]:.0%} {share.index[0]}",
            size=13,
            loc="left",
        )
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    ax.set_xlabel("visits, against all rows", size=13)
