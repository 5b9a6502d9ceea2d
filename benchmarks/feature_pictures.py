"""Draw features of pictures: ``python benchmarks/feature_pictures.py [FOLDER]``.

Writes tabletop.png (Figure 2 of the paper) and faces.png (its Figure 3, other faces).
Features are fitted to principal axes, as in the benchmark, and drawn as what they are
in pixels: the least-squares features of the pictures themselves for the same Z.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

from data import load_faces, load_tabletop, shared_data
from kplus import KFeatures

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def draw(pictures: np.ndarray, Z: np.ndarray, path: Path) -> None:
    """Some pictures with their z, the base, and the base with each other feature."""
    base = np.flatnonzero(Z.all(axis=0))[0]
    Z = np.column_stack([Z[:, base], np.delete(Z, base, axis=1)])
    pixels = pictures.reshape(len(pictures), -1) / 255.0
    A = np.linalg.lstsq(Z, pixels, rcond=None)[0]
    shown = [A[0], *(A[0] + feature for feature in A[1:])]
    rows = first_of_each_combination(Z)[: len(shown)]
    _, axes = plt.subplots(
        2, len(shown), figsize=(2.2 * len(shown), 4.4), layout="constrained"
    )
    for ax, n in zip(axes[0], rows, strict=False):
        ax.imshow(pictures[n], cmap="gray")
        ax.set_title("".join(f"{bit:.0f}" for bit in Z[n]))
    for k, (ax, picture) in enumerate(zip(axes[1], shown, strict=True)):
        clipped = np.clip(picture, 0.0, 1.0).reshape(pictures.shape[1:])
        ax.imshow(clipped, cmap="gray", vmin=0.0, vmax=1.0)
        ax.set_title("base" if k == 0 else f"base and {k}: {Z[:, k].sum():.0f} rows")
    for ax in axes.flat:
        ax.set_axis_off()
    plt.savefig(path, dpi=100)
    print(path)


def first_of_each_combination(Z: np.ndarray) -> list[int]:
    """Rows of different z, the most frequent z first."""
    _, first, counts = np.unique(Z, axis=0, return_index=True, return_counts=True)
    return [int(n) for n in first[np.argsort(-counts, kind="stable")]]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, source, K, X in (
        ("tabletop", "tabletop.npz", 5, load_tabletop()),
        ("faces", "olivetti.npz", 3, load_faces(centred=False)),
    ):
        with np.load(shared_data(source), allow_pickle=False) as file:
            pictures = file["X"]
        Z = KFeatures(K, random_state=0).fit_transform(X)
        draw(pictures, Z, folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "feature-pictures"))
