"""Mixed tables of the benchmarks, written once a run as Parquet files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from data import Store, shared_data

ADULT_NUMBERS = ("age", "fnlwgt", "education_num", "gain", "loss", "hours")


@dataclass(frozen=True)
class Table:
    """A data frame of numbers and categories, and the class of each row."""

    frame: pd.DataFrame
    classes: np.ndarray


@dataclass(frozen=True)
class TableFile:
    """A table on disk; its classes stay here."""

    name: str
    path: Path
    labels: np.ndarray
    source: str = ""

    @property
    def K(self) -> int:
        """As many clusters as there are classes."""
        return len(np.unique(self.labels))


def write_table(store: Store, name: str, table: Table, source: str = "") -> TableFile:
    path = store.folder / f"{name}.parquet"
    table.frame.to_parquet(path)
    labels = np.unique(table.classes, return_inverse=True)[1]
    return TableFile(name, path, labels, source)


def paper_tables(store: Store) -> list[TableFile]:
    """The five data sets of Tables 1 and 2, Splice as zeros and ones as there."""
    return [write_table(store, name, load()) for name, load in PAPER.items()]


def own_tables(store: Store) -> list[TableFile]:
    """The data sets of the paper, Splice by its four letters, and Adult."""
    loaders = {name: load for name, load in PAPER.items() if name != "Splice"}
    loaders |= {"Splice, letters": lambda: load_splice("X_cat"), "Adult": load_adult}
    return [
        write_table(store, name, load(), "the paper") for name, load in loaders.items()
    ]


def load_bank() -> Table:
    return numbers_of("banknote.npz")


def load_spam() -> Table:
    return numbers_of("spambase.npz")


def load_wine() -> Table:
    return numbers_of("wine.npz")


def numbers_of(name: str) -> Table:
    with np.load(shared_data(name), allow_pickle=False) as file:
        return Table(named(file["X"].astype(float), "x"), file["y"])


def load_splice(array: str) -> Table:
    """``X_bin``: letters A, G are 0 and C, T are 1, as in the paper; or ``X_cat``."""
    with np.load(shared_data("splice_1234.npz"), allow_pickle=False) as file:
        return Table(levels(file[array], "p"), file["y"])


def load_monk() -> Table:
    with np.load(shared_data("monk3.npz"), allow_pickle=False) as file:
        return Table(levels(file["X_cat"], "a"), file["y"])


def load_adult() -> Table:
    """Numbers, and categories as text, of which some are missing."""
    with np.load(shared_data("adult.npz"), allow_pickle=False) as file:
        frame = pd.DataFrame(file["X_num"].astype(float), columns=ADULT_NUMBERS)
        for i, codes in enumerate(file["X_cat"].T):
            text = pd.Series(codes).map(lambda code: f"level {code}")
            frame[f"c{i}"] = text.where(codes >= 0, None)
        return Table(frame, file["y"])


def named(X: np.ndarray, letter: str) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"{letter}{i}" for i in range(X.shape[1])])


def levels(codes: np.ndarray, letter: str) -> pd.DataFrame:
    """Categories that are text: Parquet files bring numbers back as numbers."""
    return named(codes, letter).astype(str).astype("category")


PAPER: dict[str, Callable[[], Table]] = {
    "Bank": load_bank,
    "Spam": load_spam,
    "Splice": lambda: load_splice("X_bin"),
    "Wine": load_wine,
    "Monk-3": load_monk,
}


def write_mixed_rows(
    path: Path, n_rows: int, n_columns: int = 10, n_clusters: int = 8
) -> np.ndarray:
    """Clusters of numbers and of text, as many columns of each, in row groups.

    Each cluster has a mean of its own in three numbers and a frequent level in three
    texts; a twentieth of the cells is missing. Returns the cluster of each row.
    """
    rng = np.random.default_rng(0)
    centres = np.zeros((n_clusters, n_columns))
    usual = np.full((n_clusters, n_columns), -1)
    for k in range(n_clusters):
        centres[k, rng.choice(n_columns, 3, replace=False)] = rng.choice([-4, 4], 3)
        usual[k, rng.choice(n_columns, 3, replace=False)] = rng.integers(5, size=3)
    names = [f"x{i}" for i in range(n_columns)] + [f"c{i}" for i in range(n_columns)]
    labels = []
    writer = None
    for start in range(0, n_rows, 100_000):
        z = rng.integers(n_clusters, size=min(100_000, n_rows - start))
        columns = mixed_columns(centres[z], usual[z], rng)
        block = pa.table(dict(zip(names, columns, strict=True)))
        writer = writer or pq.ParquetWriter(path, block.schema)
        writer.write_table(block)
        labels.append(z)
    assert writer is not None
    writer.close()
    return np.concatenate(labels)


def mixed_columns(
    centres: np.ndarray, usual: np.ndarray, rng: np.random.Generator
) -> list[pa.Array]:
    numbers = centres + rng.standard_normal(centres.shape)
    levels = rng.integers(5, size=usual.shape)
    levels = np.where(
        (usual >= 0) & (rng.uniform(size=usual.shape) < 0.8), usual, levels
    )
    texts = pa.array([f"level {t}" for t in range(5)])
    columns = []
    for column in numbers.T:
        gaps = rng.uniform(size=len(column)) < 0.05
        columns.append(pa.array(column, mask=gaps))
    for column in levels.T:
        gaps = rng.uniform(size=len(column)) < 0.05
        columns.append(texts.take(pa.array(column, mask=gaps)))
    return columns
