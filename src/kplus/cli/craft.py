"""The clusters of a mixed table, and the features that tell them."""

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kplus.cli.console import count
from kplus.cli.summary import Rows, finite, label_pieces, largest, print_table
from kplus.estimators._craft_report import Trait, describe

__all__ = ["DescribedClusters"]

_MAX_PRINTED = 8  # features of a cluster, and columns with gaps


class DescribedClusters:
    """What `CRAFT` found; see `Findings`."""

    main, picture = "labels", "clusters.png"

    def __init__(self, model: Any, rows: Rows) -> None:
        self._model, self._rows = model, rows
        self._n = int(model.n_clusters_)

    def pieces(self) -> Iterator[dict[str, NDArray[Any]]]:
        return label_pieces(self._model.labels_)

    def tables(self) -> dict[str, Any]:
        """The description, a line for each cluster and each of its features."""
        columns = {
            "cluster": [trait.cluster for trait in self._traits],
            "rows": [round(trait.size) for trait in self._traits],
            "share": [trait.share for trait in self._traits],
            "feature": pa.array([self._name(t) for t in self._traits], pa.string()),
            "score": [trait.score for trait in self._traits],
            "here": [trait.here for trait in self._traits],
            "overall": [trait.overall for trait in self._traits],
        }
        return {"description": pa.table(columns)}

    def no_picture(self) -> str | None:
        return None

    def draw(self, path: Path) -> None:
        # A figure of its own, without pyplot: no screen is needed or touched.
        from matplotlib.figure import Figure

        from kplus.plots import CraftDisplay

        display = CraftDisplay(
            scores=self._model.feature_scores_,
            selected=self._model.selected_features_,
            sizes=self._model.cluster_sizes_,
            feature_names=self._rows.names,
        )
        figure = Figure(figsize=display.figsize, layout="constrained")
        display.plot(ax=figure.subplots())
        figure.savefig(path, dpi=150)

    def notes(self) -> list[str]:
        notes = []
        missing = self._missing
        if missing:
            named = list(missing.items())[:_MAX_PRINTED]
            listed = ", ".join(f"{name!r} {n:,}" for name, n in named)
            left = len(missing) - len(named)
            more = f" and {count(left, 'column')} more" if left else ""
            notes.append(f"Missing values, which were left out: {listed}{more}.")
        if self._n == 1 and self._model.n_clusters is None:
            notes.append(
                "One cluster: no cut of this table is worth the price of another. "
                "--clusters makes more all the same."
            )
        return notes

    def measures(self) -> dict[str, Any]:
        return {
            "n_clusters": self._n,
            "objective": finite(self._model.objective_),
            "penalty": finite(self._model.penalty_),
            "missing": self._missing,
        }

    def records(self) -> dict[str, Any]:
        return {"clusters": self._records}

    def title(self) -> tuple[str, str]:
        model = self._model
        # The price of a cluster is told where it was asked for.
        price = f"penalty {model.penalty_:.6g}, " if model.penalty != "auto" else ""
        return count(self._n, "cluster"), f"{price}objective {model.objective_:.6g}"

    def print(self, title: str) -> None:
        shown, caption = largest(self._records, "size")
        rows = [
            (
                str(record["cluster"]),
                f"{record['size']:,}",
                f"{record['share']:.1%}",
                _feature_words(record["features"]),
            )
            for record in shown
        ]
        headings = ("cluster", "rows", "share", "told by: here (overall)")
        print_table(headings, rows, title, caption)

    @cached_property
    def _traits(self) -> list[Trait]:
        return describe(self._model)

    def _name(self, trait: Trait) -> str | None:
        """Name of a feature; the model knows a file without names by numbers only."""
        if trait.feature is None or hasattr(self._model, "feature_names_in_"):
            return trait.feature
        return self._rows.names[int(trait.feature)]

    @property
    def _missing(self) -> dict[str, int]:
        """Missing values of the columns that have some."""
        counts = np.rint(self._model.n_missing_).astype(int).tolist()
        named = zip(self._rows.names, counts, strict=True)
        return {name: n for name, n in named if n}

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        """Describe every cluster: its size, share and features, telling ones first."""
        return [
            self._record(list(traits))
            for _, traits in groupby(self._traits, key=lambda trait: trait.cluster)
        ]

    def _record(self, traits: list[Trait]) -> dict[str, Any]:
        first = traits[0]
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
                for trait in traits
                if trait.feature is not None
            ],
        }


def _feature_words(features: list[dict[str, Any]]) -> str:
    """A line for each feature, as in "age 24 ± 3.1 (41 ± 18)"."""
    lines = [f"{f['name']} {f['here']} ({f['overall']})" for f in features]
    left = len(lines) - _MAX_PRINTED
    if left > 0:
        lines[_MAX_PRINTED:] = [f"and {count(left, 'feature')} more"]
    return "\n".join(lines) or "-"
