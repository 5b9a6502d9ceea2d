"""Small pictures of what people want from a table: one function, one picture."""

import matplotlib.pyplot as plt
import numpy as np

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]
GRAY = "0.6"


def panel():
    ax = plt.subplots(figsize=(3.2, 2.0), layout="constrained")[1]
    ax.set(xticks=[], yticks=[])
    return ax


def clouds(rng):
    """Three groups of different spreads and tilts."""
    shapes = [
        ((0, 0), [[5, 4], [4, 4]]),
        ((4, -3), [[1, 0], [0, 1]]),
        ((-4, 4), [[2, -1], [-1, 1]]),
    ]
    return [rng.multivariate_normal(mean, spread, 150) for mean, spread in shapes]


def groups():
    """One group for each row."""
    ax = panel()
    for colour, rows in zip(COLOURS, clouds(np.random.default_rng(0)), strict=False):
        ax.scatter(*rows.T, s=7, color=colour, linewidths=0)


def shapes():
    """Groups that are no ellipses."""
    ax, rng = panel(), np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    ring = 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    half = np.column_stack([7 - 3 * np.sin(angle / 2), 3 * np.cos(angle / 2)])
    for colour, rows in zip(COLOURS, (ring, np.zeros((150, 2)), half), strict=False):
        ax.scatter(
            *(rows + rng.normal(0, 0.3, rows.shape)).T, s=7, color=colour, linewidths=0
        )
    ax.set_aspect("equal")


def distance():
    """Round groups, and how far a row may be from a centre."""
    ax, rng = panel(), np.random.default_rng(1)
    for colour, centre in zip(COLOURS, [(0, 0), (6, 1), (3, 5), (9, 5)], strict=True):
        rows = centre + rng.normal(0, 0.7, (70, 2))
        ax.scatter(*rows.T, s=7, color=colour, linewidths=0)
        ax.add_patch(plt.Circle(centre, 2.2, fill=False, linestyle=":"))
    ax.set(aspect="equal", xlim=(-3, 12), ylim=(-3, 8))


def mixed():
    """A table of numbers, words and gaps."""
    ax = panel()
    ax.set_axis_off()
    cells = [
        ["23", "phone", ""],
        ["", "till", "€ 140"],
        ["61", "", "€ 88"],
        ["24", "phone", "€ 19"],
    ]
    table = ax.table(
        cells,
        colLabels=["age", "device", "spends"],
        cellLoc="center",
        bbox=[0, 0, 1, 1],
    )
    table.auto_set_font_size(False)
    table.set_fontsize(13)
    for (line, column), cell in table.get_celld().items():
        cell.set(edgecolor="0.8")
        if line == 0:
            cell.set(facecolor="0.92")
        elif not cells[line - 1][column]:
            cell.set(facecolor="#FBE3B5")


def several():
    """A row is a sum of parts."""
    axes = plt.subplots(1, 3, figsize=(3.2, 2.0), layout="constrained")[1]
    ring, cross = np.zeros((2, 7, 7))
    ring[1:4, 0:3], ring[2, 1] = 1, 0
    cross[4, 3:7] = cross[3:6, 5] = 1
    for ax, picture, words in zip(
        axes, (ring + cross, ring, cross), ("a row", "= one", "+ another"), strict=True
    ):
        ax.imshow(picture, cmap="Blues", vmax=1.3)
        ax.set(xticks=[], yticks=[])
        ax.set_title(words, size=13)


def wide():
    """More columns than rows."""
    ax, rng = panel(), np.random.default_rng(0)
    kind = np.sort(rng.integers(0, 3, 40))
    matrix = rng.normal(0, 0.6, (40, 120)) + rng.normal(0, 1, (3, 120))[kind]
    ax.imshow(matrix, cmap="RdBu", aspect="auto", vmin=-3, vmax=3)
    ax.set_xlabel("hundreds of columns", size=13)


def counts():
    """How often each word occurs."""
    ax = panel()
    heights = [9, 6, 4, 3, 1, 0, 0, 1, 0, 0]
    words = ["parcel", "late", "door", "box", "hello"]
    ax.bar(range(10), heights, color=[COLOURS[0]] * 4 + [GRAY] * 6)
    for i, word in enumerate(words):
        ax.text(i, heights[i] + 0.3, word, rotation=35, size=12)
    ax.set_ylim(0, 13)


def stream():
    """Readings that keep coming; a new kind appears."""
    ax, rng = panel(), np.random.default_rng(0)
    t = np.arange(240)
    kind = np.where(t < 150, t // 15 % 2, np.where(t % 3 == 0, 2, t // 15 % 2))
    ax.scatter(
        t,
        np.array([0, 3, 6])[kind] + rng.normal(0, 0.5, 240),
        s=7,
        c=np.array(COLOURS)[kind],
        linewidths=0,
    )
    ax.annotate(
        "", (262, -1.4), (0, -1.4), arrowprops={"arrowstyle": "->", "color": GRAY}
    )
    ax.set_xlim(-5, 265)


def probabilities():
    """How sure the model is of each row."""
    ax, rng = panel(), np.random.default_rng(0)
    rows = np.concatenate(
        [rng.normal(0, 1, (300, 2)), rng.normal([3.2, 0], 1, (300, 2))]
    )
    share = 1 / (1 + np.exp(-(rows[:, 0] - 1.6) * 3.2))
    ax.scatter(*rows.T, s=7, c=share, cmap="coolwarm", linewidths=0)


def number():
    """The number of clusters over the price of a cluster: a long step."""
    ax = panel()
    price = [0.5, 0.8, 1.1, 1.4, 4.2, 4.8, 5.4]
    ax.step(price, [9, 7, 6, 4, 4, 2, 1], where="post", color=COLOURS[0], lw=2)
    ax.axvspan(1.4, 4.8, color="#FBE3B5", zorder=0)
    ax.set_xlabel("price of a cluster", size=13)
    ax.set_ylabel("clusters", size=13)
    ax.text(2.4, 4.6, "4", size=15, weight="bold")


def outliers():
    """Rows that belong nowhere."""
    ax, rng = panel(), np.random.default_rng(2)
    ax.scatter(
        *rng.uniform(-7, 7, (60, 2)).T, s=9, color=GRAY, marker="x", linewidths=1
    )
    for colour, centre in zip(COLOURS, [(-3, 1), (3, -2)], strict=False):
        ax.scatter(
            *(centre + rng.normal(0, 0.9, (120, 2))).T, s=7, color=colour, linewidths=0
        )


def gaps():
    """A picture with missing pixels, and the same filled in."""
    axes = plt.subplots(1, 2, figsize=(3.2, 2.0), layout="constrained")[1]
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:12, 0:12]
    face = (np.abs(np.hypot(y - 5.5, x - 5.5) - 4.8) < 0.6).astype(float)
    face[4, [4, 7]] = face[8, 4:8] = 1
    seen = np.where(rng.random(face.shape) < 0.3, np.nan, face)
    blue = plt.get_cmap("Blues").with_extremes(bad="#FBC15E")
    for ax, picture, words in zip(axes, (seen, face), ("seen", "filled"), strict=True):
        ax.imshow(picture, cmap=blue, vmax=1.3)
        ax.set(xticks=[], yticks=[])
        ax.set_title(words, size=13)
