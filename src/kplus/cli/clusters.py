"""The clusters of a fit: one record each, as JSON, as a table and as a picture."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kplus.cli.console import count
from kplus.cli.results import Results, column_words, finite, most_distinctive
from kplus.cli.tables import Table
from kplus.core.types import Array, IntArray
from kplus.data.wrapped import WrappedBlocks

if TYPE_CHECKING:
    from kplus.base.description import Trait

__all__ = ["Clusters", "DescribedClusters"]

_MAX_PRINTED = 8  # features of a cluster, and columns with gaps

_DESCRIPTION = {"cluster": "group", "rows": "size"} | {
    name: name for name in ("share", "feature", "score", "here", "overall")
}
"""The columns of description.csv, and what they are of a trait."""

_Columns = list[dict[str, Any]]


class Clusters(Results):
    """What `DPMeans` or `DPMixture` found."""

    headings = ("mean distance", "stands out by (in SDs)")

    def no_picture(self) -> str | None:
        if len(self.table.numbers):
            return None
        return "There is no picture: it would show numbers, and no column has any."

    def plotted(self) -> tuple[tuple[float, float], Callable[..., Any]]:
        from kplus.plots import ClusterDisplay

        draw, rows = ClusterDisplay.from_predictions, _Numbers(self)
        return (8, 5), partial(draw, rows, self.model.labels_, centers=self._centers)

    def notes(self) -> list[str]:
        path = getattr(self.model, "path_", None)
        if path is None:
            return self._unclear()
        if path.is_clear:
            return []
        others = [str(K) for K in path.runners_up if self.n_found != K]
        instead = f"{self.n_found} is likeliest, then {', '.join(others)}. "
        return [
            f"The number of clusters is not clear-cut: {instead * bool(others)}"
            f"Compare a few with --clusters."
        ]

    def _unclear(self) -> list[str]:
        """A note where the cut of the tree might as well be another."""
        path = getattr(self.model, "path_", None)
        clear = self._cut_by_rows and self._tree.is_clear
        if not self._cut_by_rows or (clear if path is None else path.is_clear):
            return []
        return [
            f"The number of clusters is not clear-cut: some of the {self.n_found} may "
            f"be one, or fall into more. Compare a few with --clusters."
        ]

    @property
    def _tree(self) -> Any:
        return getattr(self.model, "cluster_tree_", None)

    @property
    def _cut_by_rows(self) -> bool:
        """Whether there is a tree, and nobody said where to cut it."""
        return self._tree is not None and self.model.n_clusters in ("auto", None)

    def measures(self) -> dict[str, Any]:
        tree = self._tree
        clearness = {"clearness": None if tree is None else finite(tree.clearness)}
        if hasattr(self.model, "cell_centers_"):
            cells = {"n_cells": len(self.model.cell_centers_)}
            return super().measures() | cells | clearness
        if not hasattr(self.model, "lower_bound_"):
            return super().measures()
        from kplus.dp_mixture.families.priors import prior_of

        return {
            "observations": self._observations,
            "choice": getattr(self.model, "choice_", None),
            "lower_bound": finite(self.model.lower_bound_),
            "n_components": int(self.model.n_components_),
            **clearness,
            "n_noise": self._n_noise,
            "prior": prior_of(self.model),
        }

    @property
    def _n_noise(self) -> int:
        """Rows that belong nowhere."""
        return int(np.count_nonzero(self.model.labels_ < 0))

    @property
    def priced(self) -> bool:
        # A number of clusters that was asked for comes without a penalty.
        return self.model.n_clusters is None and self._tree is None

    def quality(self) -> str:
        cut = ""
        if self._cut_by_rows:
            cut = ", unclear cut" if self._unclear() else ", clear cut"
        if hasattr(self.model, "cell_centers_"):
            cells = count(len(self.model.cell_centers_), "cell")
            return f"joined from {cells}{cut}, {super().quality()}"
        if not hasattr(self.model, "lower_bound_"):
            return super().quality()
        bound = self.model.lower_bound_ / len(self.model.labels_)
        described = f"described by {count(self.model.n_components_, 'component')}{cut}"
        if self.model.noise is not False:
            share = self._n_noise / len(self.model.labels_)
            described += f", noise {count(self._n_noise, 'row')} ({share:.1%})"
        return (
            f"{self._observations}, {described}, lower bound {bound:.6g} nats per row"
        )

    @property
    def _observations(self) -> str:
        """Those that were asked for, or chosen."""
        from kplus.dp_mixture.families import name_of

        return name_of(self.model.observations_)

    def cells(self, record: dict[str, Any]) -> tuple[str, ...]:
        distance = record["mean_distance"]
        words = "-" if distance is None else f"{distance:.4g}"
        return words, column_words(record["columns"])

    @cached_property
    def _centers(self) -> Array:
        centers: Array | None = getattr(self.model, "cluster_centers_", None)
        if centers is None:
            return _means(self.table, self.model.labels_, self.n_found)
        return centers

    @cached_property
    def records(self) -> _Columns:
        """Every cluster: its size, share and most distinctive columns.

        `mean_distance` is over the columns of numbers, in the model's units.
        """
        labels, K = self.model.labels_, self.n_found
        sizes = np.bincount(labels[labels >= 0], minlength=K)
        distances = _distance_sums(self.table, labels, self._centers)
        distances /= np.maximum(sizes, 1)
        categories = _common_categories(self.table, labels, K)
        return [
            {
                "cluster": k,
                "size": int(sizes[k]),
                "share": float(sizes[k] / len(labels)),
                "mean_distance": (
                    finite(distances[k]) if len(self.table.numbers) else None
                ),
                "columns": most_distinctive(self._means_of(k) + categories[k]),
            }
            for k in range(K)
        ]

    def _means_of(self, k: int) -> _Columns:
        """The columns of numbers of a cluster, each with its mean in the file's units.

        The `deviation` from all rows is in standard deviations.
        """
        numbers, means = self.table.numbers, self._centers[k]
        mean, scale = self.profile.mean[numbers], self.profile.scale[numbers]
        if self.scaled:
            means = means * scale + mean
        deviations = (means - mean) / scale
        return [
            {
                "name": self.table.column_names[j],
                "mean": finite(means[i]),
                "deviation": finite(deviations[i]),
            }
            for i, j in enumerate(numbers)
        ]


def _parts(table: Table, labels: IntArray) -> Iterator[tuple[Array, IntArray]]:
    """Blocks of rows with their clusters, without noise."""
    for part, part_labels in table.parts(labels):
        kept = part_labels >= 0
        yield (part, part_labels) if kept.all() else (part[kept], part_labels[kept])


def _means(table: Table, labels: IntArray, K: int) -> Array:
    """Means of the columns of numbers; NaN where a cluster has no value."""
    sums, counts = np.zeros((2, K, len(table.numbers)))
    for part, part_labels in _parts(table, labels):
        values = part[:, table.numbers]
        seen = ~np.isnan(values)
        np.add.at(sums, part_labels, np.where(seen, values, 0.0))
        np.add.at(counts, part_labels, seen)
    return np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)


def _distance_sums(table: Table, labels: IntArray, centers: Array) -> Array:
    sums = np.zeros(len(centers))
    for part, part_labels in _parts(table, labels):
        shifts = part[:, table.numbers] - centers[part_labels]
        distances = np.linalg.norm(np.where(np.isnan(shifts), 0.0, shifts), axis=1)
        sums += np.bincount(part_labels, distances, minlength=len(centers))
    return sums


def _common_categories(table: Table, labels: IntArray, K: int) -> list[_Columns]:
    """For each cluster the commonest category of each column that has some."""
    out: list[_Columns] = [[] for _ in range(K)]
    known = () if table.coding is None else table.coding.categories
    coded = {j: values for j, values in enumerate(known) if values is not None}
    if not coded:
        return out
    category_counts = {j: np.zeros((K, len(values))) for j, values in coded.items()}
    for part, part_labels in _parts(table, labels):
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
                    "name": table.column_names[j],
                    "category": str(coded[j][c]),
                    "share": float(shares[k, c]),
                    "deviation": float((shares[k, c] - overall[c]) / spread),
                }
            )
    return out


class _Numbers(WrappedBlocks):
    """The columns of numbers, with the column's mean where a value is missing."""

    def __init__(self, results: Results) -> None:
        source = results.table.source
        super().__init__(source)
        self._columns = results.table.numbers
        self._fill = results.profile.mean[self._columns] * (not results.scaled)
        self.n_features = len(self._columns)
        names = getattr(source, "feature_names", None)
        if names is not None:
            self.feature_names = [names[j] for j in self._columns]

    def _change(self, part: Array, rows: int | IntArray) -> Array:
        values = part[:, self._columns]
        return np.where(np.isnan(values), self._fill, values)


class DescribedClusters(Results):
    """What `CRAFT` found: clusters, and the features that distinguish them."""

    headings = ("told by: here (overall)",)

    def tables(self) -> dict[str, Any]:
        """The description, a line for each cluster and each of its features."""
        columns = {
            heading: pa.array(
                [getattr(trait, name) for trait in self._traits],
                pa.string() if name == "feature" else None,
            )
            for heading, name in _DESCRIPTION.items()
        }
        return {"description": pa.table(columns)}

    def plotted(self) -> tuple[tuple[float, float], Callable[..., Any]]:
        from kplus.plots import CraftDisplay

        display = CraftDisplay(
            scores=self.model.feature_scores_,
            selected=self.model.selected_features_,
            sizes=self.model.cluster_sizes_,
            feature_names=self.table.column_names,
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
        if self.n_found == 1 and self.model.n_clusters in ("auto", None):
            notes.append(
                "One cluster: no cut of this table is worth the price of another. "
                "--clusters makes more all the same."
            )
        return notes

    def quality(self) -> str:
        n_components = self.model.n_components_
        if n_components == self.n_found:
            return super().quality()
        return f"joined from {count(n_components, 'component')}, {super().quality()}"

    def measures(self) -> dict[str, Any]:
        components = {"n_components": int(self.model.n_components_)}
        return super().measures() | components | {"missing": self._missing}

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
    def _traits(self) -> "list[Trait]":
        """What the model tells; it knows a file without names by numbers only."""
        from kplus.craft.report import describe

        known = hasattr(self.model, "feature_names_in_")
        return [
            replace(
                trait,
                size=round(trait.size),
                feature=trait.feature
                if known or trait.feature is None
                else self.table.column_names[int(trait.feature)],
            )
            for trait in describe(self.model)
        ]

    @property
    def _missing(self) -> dict[str, int]:
        """Missing values of the columns that have some."""
        counts = np.rint(self.model.n_missing_).astype(int).tolist()
        named = zip(self.table.column_names, counts, strict=True)
        return {name: n for name, n in named if n}

    @cached_property
    def records(self) -> _Columns:
        """Every cluster: its size, share and features, distinctive ones first."""
        records: dict[int, dict[str, Any]] = {}
        for trait in self._traits:
            told = asdict(trait)
            del told["words"]
            start = {"cluster": told.pop("group")}
            start |= {name: told.pop(name) for name in ("size", "share")}
            record = records.setdefault(trait.group, start | {"features": []})
            name, told["score"] = told.pop("feature"), finite(trait.score)
            if name is not None:
                record["features"].append({"name": name} | told)
        return list(records.values())
