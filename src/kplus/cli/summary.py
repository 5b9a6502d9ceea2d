"""What a fit found: one record a cluster, as JSON and as a table."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kplus.cli.scaling import Profile
from kplus.core.types import Array, Blocks, IntArray

__all__ = ["cluster_records", "finite", "print_clusters"]

_MAX_COLUMNS = 6
_MAX_SHOWN = 20


def cluster_records(
    source: Blocks,
    labels: IntArray,
    centers: Array,
    found: Profile,
    scaled: bool,
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """Describe every cluster.

    Parameters
    ----------
    source : Blocks
        The rows as the model saw them.
    labels, centers
        Of the fitted model.
    found : Profile
        Of the columns in their own units.
    scaled : bool
        Whether the model saw standardised columns.
    names : sequence of str

    Returns
    -------
    records : list of dict
        `cluster`, `size`, `share`, `mean_distance` (in the model's units) and
        `columns`, those that tell the cluster best from the rest: `name`, `mean` (in
        the file's units) and `deviation` from the overall mean in standard deviations.
    """
    K = len(centers)
    means = centers * found.scale + found.mean if scaled else centers
    deviations = (means - found.mean) / found.scale
    sizes = np.bincount(labels, minlength=K)
    distances = _distance_sums(source, labels, centers) / np.maximum(sizes, 1)
    return [
        {
            "cluster": k,
            "size": int(sizes[k]),
            "share": float(sizes[k] / len(labels)),
            "mean_distance": finite(distances[k]),
            "columns": _telling_columns(means[k], deviations[k], names),
        }
        for k in range(K)
    ]


def _distance_sums(source: Blocks, labels: IntArray, centers: Array) -> Array:
    sums = np.zeros(len(centers))
    for i in range(-(-source.n_rows // source.block_rows)):
        rows = source.read(i)
        start = i * source.block_rows
        own = labels[start : start + len(rows)]
        distances = np.linalg.norm(rows - centers[own], axis=1)
        sums += np.bincount(own, distances, minlength=len(centers))
    return sums


def _telling_columns(
    means: Array, deviations: Array, names: Sequence[str]
) -> list[dict[str, Any]]:
    # Less than a twentieth of a standard deviation tells nothing; it would show as 0.
    order = np.argsort(-np.abs(deviations), kind="stable")[:_MAX_COLUMNS]
    return [
        {
            "name": names[j],
            "mean": finite(means[j]),
            "deviation": finite(deviations[j]),
        }
        for j in order
        if abs(deviations[j]) >= 0.05
    ]


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
            f"{record['mean_distance'] or 0:.4g}",
            # Text, because names may look like rich's markup.
            Text(", ".join(map(_column_words, record["columns"])) or "-"),
        )
    Console().print(table)


def _column_words(column: dict[str, Any]) -> str:
    return f"{column['name']} {column['deviation'] or 0:+.1f}"
