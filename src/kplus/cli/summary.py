"""What a fit found: one record a cluster, as JSON and as a table."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus.cli.scaling import Profile, number_columns
from kplus.core.types import Array, Blocks, IntArray
from kplus.engine.categories import Coding

__all__ = ["Rows", "cluster_means", "cluster_records", "finite", "print_clusters"]

_MAX_COLUMNS = 6
_MAX_SHOWN = 20


@dataclass(frozen=True)
class Rows:
    """The rows of a fit as the model saw them, and what their columns are.

    Attributes
    ----------
    source : Blocks
    labels : array of int
    names : sequence of str
        Of the columns.
    coding : Coding or None
        The categories; None: all columns are numbers.
    found : Profile
        Of the columns in their own units.
    scaled : bool
        Whether the model saw standardised columns.
    """

    source: Blocks
    labels: IntArray
    names: Sequence[str]
    coding: Coding | None
    found: Profile
    scaled: bool

    @property
    def numbers(self) -> IntArray:
        return number_columns(self.coding, self.source.n_features)

    def parts(self) -> Iterator[tuple[Array, IntArray]]:
        """Blocks of rows with their labels."""
        for i in range(-(-self.source.n_rows // self.source.block_rows)):
            rows = self.source.read(i)
            start = i * self.source.block_rows
            yield rows, self.labels[start : start + len(rows)]


def cluster_records(
    rows: Rows, n_clusters: int, centers: Array | None = None
) -> list[dict[str, Any]]:
    """Describe every cluster.

    Parameters
    ----------
    rows : Rows
    n_clusters : int
    centers : array of shape (n_clusters, n_numbers) or None
        By default the means of the rows.

    Returns
    -------
    records : list of dict
        `cluster`, `size`, `share`, `mean_distance` (over the columns of numbers, in
        the model's units) and `columns`, those that tell the cluster best from the
        rest. These have a `name` and a `deviation` from all rows, in standard
        deviations; numbers a `mean` (in the file's units), categories the commonest
        `category` with its `share`.
    """
    K, numbers, found = n_clusters, rows.numbers, rows.found
    if centers is None:
        centers = cluster_means(rows, K)
    mean, scale = found.mean[numbers], found.scale[numbers]
    means = centers * scale + mean if rows.scaled else centers
    deviations = (means - mean) / scale
    sizes = np.bincount(rows.labels, minlength=K)
    distances = _distance_sums(rows, centers) / np.maximum(sizes, 1)
    common = _common_categories(rows, K)
    return [
        {
            "cluster": k,
            "size": int(sizes[k]),
            "share": float(sizes[k] / len(rows.labels)),
            "mean_distance": finite(distances[k]) if len(numbers) else None,
            "columns": _telling(
                _number_columns(rows, means[k], deviations[k]) + common[k]
            ),
        }
        for k in range(K)
    ]


def cluster_means(rows: Rows, K: int) -> Array:
    """Means of the columns of numbers; NaN where a cluster has no value."""
    numbers = rows.numbers
    sums, counts = np.zeros((K, len(numbers))), np.zeros((K, len(numbers)))
    for part, own in rows.parts():
        values = part[:, numbers]
        seen = ~np.isnan(values)
        np.add.at(sums, own, np.where(seen, values, 0.0))
        np.add.at(counts, own, seen)
    return np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)


def _distance_sums(rows: Rows, centers: Array) -> Array:
    sums = np.zeros(len(centers))
    for part, own in rows.parts():
        shifts = part[:, rows.numbers] - centers[own]
        distances = np.linalg.norm(np.where(np.isnan(shifts), 0.0, shifts), axis=1)
        sums += np.bincount(own, distances, minlength=len(centers))
    return sums


def _number_columns(
    rows: Rows, means: Array, deviations: Array
) -> list[dict[str, Any]]:
    return [
        {
            "name": rows.names[j],
            "mean": finite(mean),
            "deviation": finite(deviation),
        }
        for j, mean, deviation in zip(rows.numbers, means, deviations, strict=True)
    ]


def _common_categories(rows: Rows, K: int) -> list[list[dict[str, Any]]]:
    """For each cluster the commonest category of each column that has some."""
    out: list[list[dict[str, Any]]] = [[] for _ in range(K)]
    if rows.coding is None:
        return out
    for j, categories in enumerate(rows.coding.categories):
        if categories is None:
            continue
        counts = np.zeros((K, len(categories)))
        for part, own in rows.parts():
            seen = ~np.isnan(part[:, j])
            np.add.at(counts, (own[seen], part[seen, j].astype(np.int64)), 1.0)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        overall = counts.sum(axis=0) / max(counts.sum(), 1.0)
        for k in np.flatnonzero(counts.sum(axis=1)):
            c = int(shares[k].argmax())
            spread = math.sqrt(overall[c] * (1.0 - overall[c])) or 1.0
            out[k].append(
                {
                    "name": rows.names[j],
                    "category": str(categories[c]),
                    "share": float(shares[k, c]),
                    "deviation": float((shares[k, c] - overall[c]) / spread),
                }
            )
    return out


def _telling(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Less than a twentieth of a standard deviation tells nothing; it would show as 0.
    told = [c for c in columns if abs(c["deviation"] or 0.0) >= 0.05]
    return sorted(told, key=lambda c: -abs(c["deviation"]))[:_MAX_COLUMNS]


def finite(value: Any) -> float | None:
    """Return a number that JSON can hold."""
    value = float(value)
    return value if math.isfinite(value) else None


def print_clusters(records: Sequence[dict[str, Any]], title: str) -> None:
    """Print a table on standard output: all clusters, or the largest of very many."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = sorted(records, key=lambda r: -r["size"])[:_MAX_SHOWN]
    if len(shown) == len(records):
        shown = list(records)
    left = len(records) - len(shown)
    caption = f"the largest {len(shown)}; --json tells all" if left else None
    table = Table(title=title, caption=caption, title_justify="left")
    for heading in ("cluster", "rows", "share", "mean distance"):
        table.add_column(heading, justify="right")
    table.add_column("stands out by (in SDs)", overflow="fold")
    for record in shown:
        table.add_row(
            str(record["cluster"]),
            f"{record['size']:,}",
            f"{record['share']:.1%}",
            _number_words(record["mean_distance"]),
            # Text, because names may look like rich's markup.
            Text(", ".join(map(_column_words, record["columns"])) or "-"),
        )
    Console().print(table)


def _number_words(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _column_words(column: dict[str, Any]) -> str:
    if "category" in column:
        return f"{column['name']} {column['category']} {column['share']:.0%}"
    return f"{column['name']} {column['deviation'] or 0:+.1f}"
