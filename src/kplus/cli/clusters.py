"""The clusters of a fit: one record each, as JSON, as a table and as a picture."""

import math
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from kplus.cli.console import count
from kplus.cli.summary import Findings, Rows, column_words, finite, most_distinctive
from kplus.core.types import Array, IntArray
from kplus.craft.report import Trait, describe
from kplus.data.wrapped import WrappedBlocks

__all__ = ["Clusters", "DescribedClusters"]

_MAX_PRINTED = 8  # features of a cluster, and columns with gaps


class Clusters(Findings):
    """What `DPMeans` or `DPMixture` found."""

    headings = ("mean distance", "stands out by (in SDs)")

    def no_picture(self) -> str | None:
        if len(self.rows.numbers):
            return None
        return "There is no picture: it would show numbers, and no column has any."

    def plotted(self) -> tuple[tuple[float, float], Callable[..., Any]]:
        from kplus.plots import ClusterDisplay

        draw, centers = ClusterDisplay.from_predictions, self._centers
        return (8, 5), partial(
            draw, _Numbers(self.rows), self.model.labels_, centers=centers
        )

    def notes(self) -> list[str]:
        path = getattr(self.model, "path_", None)
        if path is None or path.is_clear:
            return []
        return [
            f"The number of clusters is not clear-cut: {self.n_found} holds over the "
            f"widest range of penalties, an information criterion would take "
            f"{path.by_bic}. Compare a few with --clusters."
        ]

    def measures(self) -> dict[str, Any]:
        if not hasattr(self.model, "lower_bound_"):
            return super().measures()
        bound = finite(self.model.lower_bound_)
        return {"observations": self.model.observations, "lower_bound": bound}

    @property
    def priced(self) -> bool:
        # A number of clusters that was asked for comes without a penalty.
        return self.model.n_clusters is None

    def quality(self) -> str:
        if not hasattr(self.model, "lower_bound_"):
            return super().quality()
        bound = self.model.lower_bound_ / len(self.model.labels_)
        return f"{self.model.observations}, lower bound {bound:.6g} nats per row"

    def cells(self, record: dict[str, Any]) -> tuple[str, ...]:
        distance = record["mean_distance"]
        words = "-" if distance is None else f"{distance:.4g}"
        return words, column_words(record["columns"])

    @cached_property
    def _centers(self) -> Array:
        centers: Array | None = getattr(self.model, "cluster_centers_", None)
        if centers is None:
            return _means(self.rows, self.model.labels_, self.n_found)
        return centers

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Describe every cluster.

        `cluster`, `size`, `share`, `mean_distance` (over the columns of numbers, in the
        model's units) and `columns`, the most distinctive ones.
        These have a `name` and a `deviation` from all rows, in standard deviations;
        numbers a `mean` (in the file's units), categories the commonest `category` with
        its `share`.
        """
        rows, labels, K = self.rows, self.model.labels_, self.n_found
        mean, scale = rows.profile.mean[rows.numbers], rows.profile.scale[rows.numbers]
        means = self._centers * scale + mean if rows.scaled else self._centers
        sizes = np.bincount(labels, minlength=K)
        sums = _distance_sums(rows, labels, self._centers)
        columns = _common_categories(rows, labels, K)
        for k, of_cluster in enumerate(columns):
            deviations = (means[k] - mean) / scale
            of_cluster[:0] = [
                {
                    "name": rows.names[j],
                    "mean": finite(means[k, i]),
                    "deviation": finite(deviations[i]),
                }
                for i, j in enumerate(rows.numbers)
            ]
        return [
            {
                "cluster": k,
                "size": int(sizes[k]),
                "share": float(sizes[k] / len(labels)),
                "mean_distance": (
                    finite(sums[k] / max(sizes[k], 1)) if len(rows.numbers) else None
                ),
                "columns": most_distinctive(columns[k]),
            }
            for k in range(K)
        ]


def _means(rows: Rows, labels: IntArray, K: int) -> Array:
    """Means of the columns of numbers; NaN where a cluster has no value."""
    numbers = rows.numbers
    sums, counts = np.zeros((K, len(numbers))), np.zeros((K, len(numbers)))
    for part, part_labels in rows.parts(labels):
        values = part[:, numbers]
        seen = ~np.isnan(values)
        np.add.at(sums, part_labels, np.where(seen, values, 0.0))
        np.add.at(counts, part_labels, seen)
    return np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)


def _distance_sums(rows: Rows, labels: IntArray, centers: Array) -> Array:
    sums = np.zeros(len(centers))
    for part, part_labels in rows.parts(labels):
        shifts = part[:, rows.numbers] - centers[part_labels]
        distances = np.linalg.norm(np.where(np.isnan(shifts), 0.0, shifts), axis=1)
        sums += np.bincount(part_labels, distances, minlength=len(centers))
    return sums


def _common_categories(
    rows: Rows, labels: IntArray, K: int
) -> list[list[dict[str, Any]]]:
    """For each cluster the commonest category of each column that has some."""
    out: list[list[dict[str, Any]]] = [[] for _ in range(K)]
    known = () if rows.coding is None else rows.coding.categories
    coded = {j: values for j, values in enumerate(known) if values is not None}
    if not coded:
        return out
    category_counts = {j: np.zeros((K, len(values))) for j, values in coded.items()}
    for part, part_labels in rows.parts(labels):
        for j, counts in category_counts.items():
            seen = ~np.isnan(part[:, j])
            np.add.at(counts, (part_labels[seen], part[seen, j].astype(np.int64)), 1.0)
    for j, counts in category_counts.items():
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        overall = counts.sum(axis=0) / max(counts.sum(), 1.0)
        for k in np.flatnonzero(counts.sum(axis=1)):
            c = int(shares[k].argmax())
            spread = math.sqrt(overall[c] * (1.0 - overall[c])) or 1.0
            out[k].append(
                {
                    "name": rows.names[j],
                    "category": str(coded[j][c]),
                    "share": float(shares[k, c]),
                    "deviation": float((shares[k, c] - overall[c]) / spread),
                }
            )
    return out


class _Numbers(WrappedBlocks):
    """The columns of numbers, with the column's mean where a value is missing."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows.source)
        self._columns = rows.numbers
        self._fill = rows.profile.mean[self._columns] * (not rows.scaled)
        self.n_features = len(self._columns)
        names = getattr(rows.source, "feature_names", None)
        if names is not None:
            self.feature_names = [names[j] for j in self._columns]

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        values = part[:, self._columns]
        return np.where(np.isnan(values), self._fill, values)


class DescribedClusters(Findings):
    """What `CRAFT` found: clusters, and the features that distinguish them."""

    headings = ("told by: here (overall)",)

    def tables(self) -> dict[str, Any]:
        """The description, a line for each cluster and each of its features."""
        columns = {
            "cluster": [trait.cluster for trait in self._traits],
            "rows": [round(trait.size) for trait in self._traits],
            "share": [trait.share for trait in self._traits],
            "feature": pa.array(map(self._name, self._traits), pa.string()),
            "score": [trait.score for trait in self._traits],
            "here": [trait.here for trait in self._traits],
            "overall": [trait.overall for trait in self._traits],
        }
        return {"description": pa.table(columns)}

    def plotted(self) -> tuple[tuple[float, float], Callable[..., Any]]:
        from kplus.plots import CraftDisplay

        display = CraftDisplay(
            scores=self.model.feature_scores_,
            selected=self.model.selected_features_,
            sizes=self.model.cluster_sizes_,
            feature_names=self.rows.names,
        )
        return display.figsize, display.plot

    def notes(self) -> list[str]:
        notes, missing = [], self._missing
        if missing:
            named = list(missing.items())[:_MAX_PRINTED]
            listed = ", ".join(f"{name!r} {n:,}" for name, n in named)
            left = len(missing) - len(named)
            more = f" and {count(left, 'column')} more" if left else ""
            notes.append(f"Missing values, which were left out: {listed}{more}.")
        if self.n_found == 1 and self.model.n_clusters is None:
            notes.append(
                "One cluster: no cut of this table is worth the price of another. "
                "--clusters makes more all the same."
            )
        return notes

    def measures(self) -> dict[str, Any]:
        return super().measures() | {"missing": self._missing}

    @property
    def priced(self) -> bool:
        # The price of a cluster is told where it was asked for.
        return self.model.penalty != "auto"

    def cells(self, record: dict[str, Any]) -> tuple[str, ...]:
        """A line for each feature, as in "age 24 ± 3.1 (41 ± 18)"."""
        features = record["features"]
        lines = [f"{f['name']} {f['here']} ({f['overall']})" for f in features]
        left = len(lines) - _MAX_PRINTED
        if left > 0:
            lines[_MAX_PRINTED:] = [f"and {count(left, 'feature')} more"]
        return ("\n".join(lines) or "-",)

    @cached_property
    def _traits(self) -> list[Trait]:
        return describe(self.model)

    def _name(self, trait: Trait) -> str | None:
        """Name of a feature; the model knows a file without names by numbers only."""
        if trait.feature is None or hasattr(self.model, "feature_names_in_"):
            return trait.feature
        return self.rows.names[int(trait.feature)]

    @property
    def _missing(self) -> dict[str, int]:
        """Missing values of the columns that have some."""
        counts = np.rint(self.model.n_missing_).astype(int).tolist()
        named = zip(self.rows.names, counts, strict=True)
        return {name: n for name, n in named if n}

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Every cluster: its size, share and features, distinctive ones first."""
        clusters = groupby(self._traits, key=lambda trait: trait.cluster)
        return [self._record(traits) for _, traits in clusters]

    def _record(self, traits: Iterator[Trait]) -> dict[str, Any]:
        first, *rest = traits
        return {
            "cluster": first.cluster,
            "size": round(first.size),
            "share": first.share,
            "features": [
                {
                    "name": self._name(trait),
                    "score": finite(trait.score),
                    "here": trait.here,
                    "overall": trait.overall,
                }
                for trait in (first, *rest)
                if trait.feature is not None
            ],
        }
