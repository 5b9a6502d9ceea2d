"""Tables with entries held out: the paper's synthetic data and its kinds of real data.

A table is a .npy file in which NaN stands for what is held out; what it was is kept
beside it, entry by entry in the order of the file.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data import Store, shared_data
from kplus.datasets import make_nonnegative_features

FACES_HELD_OUT = 5  # of each subject


@dataclass(frozen=True)
class Table:
    """Where a table lies, and its shape."""

    name: str
    path: Path
    truth: Path
    n_rows: int
    n_columns: int
    n_held_out: int


def last_half(shape: tuple[int, int], share: float, seed: int) -> np.ndarray:
    """Which entries are held out: a share of the columns in the last half of the rows.

    Which columns is drawn by the seed.
    """
    n_rows, n_columns = shape
    rng = np.random.default_rng(seed)
    columns = rng.permutation(n_columns)[: max(1, round(share * n_columns))]
    held_out = np.zeros(shape, dtype=bool)
    held_out[n_rows // 2 :, columns] = True
    return held_out


def lower_halves(subjects: np.ndarray, n_pixels: int, seed: int) -> np.ndarray:
    """The lower half of five pictures of each subject, drawn by the seed."""
    rng = np.random.default_rng(seed)
    held_out = np.zeros((len(subjects), n_pixels), dtype=bool)
    for subject in np.unique(subjects):
        pictures = rng.permutation(np.flatnonzero(subjects == subject))
        held_out[pictures[:FACES_HELD_OUT], n_pixels // 2 :] = True
    return held_out


def synthetic(
    n_rows: int, n_columns: int, n_components: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Section 5 of the paper: X with a fifth held out as said, all of X, Z and A."""
    full, Z, A = make_nonnegative_features(
        n_rows, n_columns, n_components, random_state=seed
    )
    X = np.where(last_half(full.shape, 0.2, seed), np.nan, full)
    return X, full, Z, A


def keep(store: Store, name: str, X: np.ndarray, held_out: np.ndarray) -> Table:
    """Write a table and what is held out of it; X is overwritten."""
    path = store.folder / f"{name}.npy"
    truth = store.folder / f"{name}-truth.npy"
    np.save(truth, X[held_out])
    X[held_out] = np.nan
    np.save(path, X)
    return Table(name, path, truth, *X.shape, int(held_out.sum()))


def synthetic_table(
    store: Store, n_rows: int, n_columns: int, n_components: int
) -> Table:
    _, full, _, _ = synthetic(n_rows, n_columns, n_components, 0)
    name = f"synthetic-{n_rows}-{n_columns}-{n_components}"
    return keep(store, name, full, last_half(full.shape, 0.2, 0))


def large_table(store: Store, n_rows: int, n_columns: int, n_components: int) -> Table:
    """The same in float32, written in blocks; the factors are those of seed 0."""
    _, _, A = make_nonnegative_features(1, n_columns, n_components, random_state=0)
    rng = np.random.default_rng(0)
    held_out = np.flatnonzero(last_half((2, n_columns), 0.2, 0)[1])
    path = store.folder / f"large-{n_rows}.npy"
    X = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(n_rows, n_columns)
    )
    truth = []
    for start in range(0, n_rows, 5_000):
        rows = np.arange(start, min(start + 5_000, n_rows))
        Z = rng.uniform(size=(len(rows), n_components)) < 0.4
        block = (Z @ A).astype(np.float32)
        block += rng.standard_normal(block.shape, dtype=np.float32)
        late = np.ix_(np.flatnonzero(rows >= n_rows // 2), held_out)
        truth.append(block[late].ravel())
        block[late] = np.nan
        X[rows[0] : rows[-1] + 1] = block
    X.flush()
    np.save(store.folder / f"large-{n_rows}-truth.npy", np.concatenate(truth))
    return Table(
        f"large-{n_rows}",
        path,
        store.folder / f"large-{n_rows}-truth.npy",
        n_rows,
        n_columns,
        sum(map(len, truth)),
    )


def remove(table: Table) -> None:
    table.path.unlink()
    table.truth.unlink()


def piano(store: Store, rows: int | None) -> Table:
    """Magnitudes of short-time Fourier transforms of rendered piano scores."""
    with np.load(shared_data("piano_standin.npz"), allow_pickle=False) as file:
        X = some(file["X"], rows).astype(np.float64)
    return keep(store, "piano_standin", X, last_half(X.shape, 0.25, 0))


def tags(store: Store, rows: int | None) -> Table:
    """Which of 1386 tags a picture of MIRFLICKR-25000 has."""
    with np.load(shared_data("mirflickr_tags.npz"), allow_pickle=False) as file:
        n_columns = int(file["n_columns"])
        X = np.unpackbits(some(file["X_packed"], rows), axis=1)[:, :n_columns]
    X = X.astype(np.float32)
    return keep(store, "mirflickr_tags", X, last_half(X.shape, 0.25, 0))


def faces(store: Store, rows: int | None) -> Table:
    """Extended Yale B, each picture 48 × 42 pixels between 0 and 1."""
    with np.load(shared_data("yaleb_48x42.npz"), allow_pickle=False) as file:
        X, y = some(file["X"], rows), some(file["y"], rows)
    X = X.reshape(len(X), -1) / 255.0
    return keep(store, "yaleb_48x42", X, lower_halves(y, X.shape[1], 0))


def full_faces(store: Store, rows: int | None) -> Table:
    """The same, each picture 192 × 168 pixels; float32, as it is 78 million numbers.

    Of some rows, some pixels: this is to try the code.
    """
    every = 1 if rows is None else 16
    parts, subjects = [], []
    for i in range(1, 5):
        name = f"yaleb_full_part{i}of4.npz"
        with np.load(shared_data(name), allow_pickle=False) as file:
            parts.append(file["X"].reshape(len(file["X"]), -1)[:, ::every])
            subjects.append(file["y"])
        if rows is not None:
            break
    X = some(np.concatenate(parts), rows).astype(np.float32)
    X /= 255.0
    y = some(np.concatenate(subjects), rows)
    return keep(store, "yaleb_full", X, lower_halves(y, X.shape[1], 0))


def some(X: np.ndarray, rows: int | None) -> np.ndarray:
    """So many rows, spread over all; or all of them."""
    if rows is None:
        return X
    return X[np.linspace(0, len(X) - 1, min(rows, len(X))).astype(int)]


REAL = {"piano_standin": piano, "mirflickr_tags": tags, "yaleb_48x42": faces}
