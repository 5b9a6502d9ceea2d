"""Two small real data sets, bundled as CSV files (see README.md)."""

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset", "csv_path", "load_banknote", "load_wine"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A real data set with the names of its columns and classes.

    Parameters
    ----------
    data : ndarray of shape (n_samples, n_features)
        The measurements.
    target : ndarray of shape (n_samples,)
        Class of each row, as an index into ``target_names``.
    feature_names : tuple of str
        Names of the columns.
    target_names : tuple of str
        Names of the classes.
    """

    data: NDArray[np.float64]
    target: NDArray[np.int64]
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]


def load_wine() -> Dataset:
    """Load 13 chemical measurements of 178 wines of three cultivars (UCI, CC BY 4.0).

    The columns have very different scales (proline reaches 1680, hue 1.7): standardise
    them before clustering.

    Returns
    -------
    Dataset
        The measurements, the cultivars and their names.

    Examples
    --------
    >>> from kplus.datasets import load_wine
    >>> wine = load_wine()
    >>> wine.data.shape, wine.feature_names[:2], wine.target_names
    ((178, 13), ('alcohol', 'malic_acid'), ('class_1', 'class_2', 'class_3'))
    """
    return _load("wine")


def load_banknote() -> Dataset:
    """Load four image statistics of 1372 banknotes (UCI, CC BY 4.0).

    Returns
    -------
    Dataset
        The measurements, and whether each note is genuine or forged.

    Examples
    --------
    >>> from kplus.datasets import load_banknote
    >>> notes = load_banknote()
    >>> notes.data.shape, notes.feature_names, notes.target_names
    ((1372, 4), ('variance', 'skewness', 'curtosis', 'entropy'), ('genuine', 'forged'))
    """
    return _load("banknote")


def csv_path(name: str) -> Path:
    """Path of a bundled CSV file of measurements, without the classes.

    Parameters
    ----------
    name : {"wine", "banknote"}
        Which data set.

    Returns
    -------
    Path
        The file: a header line, then one line per row.

    Examples
    --------
    >>> from kplus.datasets import csv_path
    >>> csv_path("wine").name
    'wine.csv'
    """
    if name not in ("wine", "banknote"):
        raise ValueError(f"name must be 'wine' or 'banknote', got {name!r}.")
    return Path(str(files("kplus"))) / "datasets" / f"{name}.csv"


def _load(name: str) -> Dataset:
    path = csv_path(name)
    feature_names, *rows = _read_csv(path)
    _, *classes = _read_csv(path.with_name(f"{name}_classes.csv"))
    # Classes are numbered as they first appear, which is the source's own order.
    codes: dict[str, int] = {}
    target = [codes.setdefault(row[0], len(codes)) for row in classes]
    return Dataset(
        np.array(rows, dtype=np.float64),
        np.array(target, dtype=np.int64),
        tuple(feature_names),
        tuple(codes),
    )


def _read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))
