"""The clusters of a fit: one record each, as JSON, as a table and as a picture."""

import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.cli.console import count
from kplus.cli.summary import (
    Rows,
    column_words,
    finite,
    label_pieces,
    largest,
    print_table,
    telling,
)
from kplus.core.types import Array, IntArray

__all__ = ["Clusters"]

_MAX_DRAWN = 5000


class Clusters:
    """What a clusterer found; see `Findings`."""

    main, picture = "labels", "clusters.png"

    def __init__(self, model: Any, rows: Rows) -> None:
        self._model, self._rows = model, rows
        self._n = int(model.n_clusters_)
        self._labels: IntArray = model.labels_

    def pieces(self) -> Iterator[dict[str, NDArray[Any]]]:
        return label_pieces(self._labels)

    def tables(self) -> dict[str, Any]:
        return {}

    def no_picture(self) -> str | None:
        if len(self._rows.numbers):
            return None
        return "There is no picture: it would show numbers, and no column has any."

    def draw(self, path: Path) -> None:
        # A figure of its own, without pyplot: no screen is needed or touched.
        from matplotlib.figure import Figure

        from kplus.plots import ClusterDisplay

        figure = Figure(figsize=(8, 5), layout="constrained")
        ClusterDisplay.from_predictions(
            _Numbers(self._rows),
            self._labels,
            centers=self._centers,
            ax=figure.subplots(),
            max_points=_MAX_DRAWN,
        )
        figure.savefig(path, dpi=150)

    def notes(self) -> list[str]:
        path = getattr(self._model, "path_", None)
        if path is None or path.is_clear:
            return []
        return [
            f"The number of clusters is not clear-cut: {self._n} holds over the widest "
            f"range of penalties, an information criterion would take {path.by_bic}. "
            f"Compare a few with --clusters."
        ]

    def measures(self) -> dict[str, Any]:
        model, number = self._model, {"n_clusters": self._n}
        if hasattr(model, "lower_bound_"):
            bound = finite(model.lower_bound_)
            return number | {"observations": model.observations, "lower_bound": bound}
        penalty = finite(model.penalty_)
        return number | {"objective": finite(model.objective_), "penalty": penalty}

    def records(self) -> dict[str, Any]:
        return {"clusters": self._records}

    def title(self) -> tuple[str, str]:
        number, model = count(self._n, "cluster"), self._model
        if hasattr(model, "lower_bound_"):
            bound = model.lower_bound_ / len(self._labels)
            return number, f"{model.observations}, lower bound {bound:.6g} nats a row"
        # A number of clusters that was asked for comes without a penalty.
        price = f"penalty {model.penalty_:.6g}, " if model.n_clusters is None else ""
        return number, f"{price}objective {model.objective_:.6g}"

    def print(self, title: str) -> None:
        shown, caption = largest(self._records, "size")
        rows = [
            (
                str(record["cluster"]),
                f"{record['size']:,}",
                f"{record['share']:.1%}",
                _number_words(record["mean_distance"]),
                column_words(record["columns"]),
            )
            for record in shown
        ]
        headings = (
            "cluster",
            "rows",
            "share",
            "mean distance",
            "stands out by (in SDs)",
        )
        print_table(headings, rows, title, caption)

    @cached_property
    def _centers(self) -> Array:
        centers: Array | None = getattr(self._model, "cluster_centers_", None)
        if centers is None:
            return _means(self._rows, self._labels, self._n)
        return centers

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return _cluster_records(self._rows, self._labels, self._centers)


def _cluster_records(
    rows: Rows, labels: IntArray, centers: Array
) -> list[dict[str, Any]]:
    """Describe every cluster.

    Parameters
    ----------
    rows : Rows
    labels : array of int
    centers : array of shape (n_clusters, n_numbers)

    Returns
    -------
    records : list of dict
        `cluster`, `size`, `share`, `mean_distance` (over the columns of numbers, in
        the model's units) and `columns`, those that tell the cluster best from the
        rest. These have a `name` and a `deviation` from all rows, in standard
        deviations; numbers a `mean` (in the file's units), categories the commonest
        `category` with its `share`.
    """
    K, numbers, found = len(centers), rows.numbers, rows.found
    mean, scale = found.mean[numbers], found.scale[numbers]
    means = centers * scale + mean if rows.scaled else centers
    deviations = (means - mean) / scale
    sizes = np.bincount(labels, minlength=K)
    distances = _distance_sums(rows, labels, centers) / np.maximum(sizes, 1)
    common = _common_categories(rows, labels, K)
    return [
        {
            "cluster": k,
            "size": int(sizes[k]),
            "share": float(sizes[k] / len(labels)),
            "mean_distance": finite(distances[k]) if len(numbers) else None,
            "columns": telling(
                _number_columns(rows, means[k], deviations[k]) + common[k]
            ),
        }
        for k in range(K)
    ]


def _means(rows: Rows, labels: IntArray, K: int) -> Array:
    """Means of the columns of numbers; NaN where a cluster has no value."""
    numbers = rows.numbers
    sums, counts = np.zeros((K, len(numbers))), np.zeros((K, len(numbers)))
    for part, own in rows.parts(labels):
        values = part[:, numbers]
        seen = ~np.isnan(values)
        np.add.at(sums, own, np.where(seen, values, 0.0))
        np.add.at(counts, own, seen)
    return np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)


def _distance_sums(rows: Rows, labels: IntArray, centers: Array) -> Array:
    sums = np.zeros(len(centers))
    for part, own in rows.parts(labels):
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


def _common_categories(
    rows: Rows, labels: IntArray, K: int
) -> list[list[dict[str, Any]]]:
    """For each cluster the commonest category of each column that has some."""
    out: list[list[dict[str, Any]]] = [[] for _ in range(K)]
    if rows.coding is None:
        return out
    for j, categories in enumerate(rows.coding.categories):
        if categories is None:
            continue
        counts = np.zeros((K, len(categories)))
        for part, own in rows.parts(labels):
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


def _number_words(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


class _Numbers:
    """The columns of numbers, with the column's mean where a value is missing."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._columns = rows, rows.numbers
        self._fill = rows.found.mean[self._columns]
        if rows.scaled:
            self._fill = np.zeros(len(self._columns))
        self.n_rows, self.n_features = rows.source.n_rows, len(self._columns)
        self.block_rows = rows.source.block_rows
        names = getattr(rows.source, "feature_names", None)
        if names is not None:
            self.feature_names = [names[j] for j in self._columns]

    def read(self, index: int) -> Array:
        return self._filled(self._rows.source.read(index))

    def take(self, rows: IntArray) -> Array:
        return self._filled(self._rows.source.take(rows))

    def _filled(self, rows: Array) -> Array:
        values = rows[:, self._columns]
        out: Array = np.where(np.isnan(values), self._fill, values)
        return out
