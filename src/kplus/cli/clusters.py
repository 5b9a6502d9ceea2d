"""The clusters of a fit: one record each, as JSON, as a table and as a picture."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kplus.cli.console import count
from kplus.cli.results import Results, finite, in_short
from kplus.cli.scaling import traits_in_units

if TYPE_CHECKING:
    from kplus.base.description import Trait

__all__ = ["Clusters", "DescribedClusters"]

_MAX_PRINTED = 8  # columns with gaps
_MAX_TOLD = 6  # columns of a cluster in JSON

_DESCRIPTION = {"cluster": "group", "rows": "size"} | {
    name: name for name in ("share", "feature", "score", "here", "overall")
}
"""The columns of description.csv, and what they are of a trait."""


class Clusters(Results):
    """What `DPMeans` or `DPMixture` found.

    What is said of columns is that of `summary()`, in the units of the file.
    """

    headings = ("sureness", "set apart by")
    most_printed = 3  # columns of a cluster
    listed = "columns"  # what they are called

    def plotted(self) -> tuple[tuple[float, float], Callable[..., Any]]:
        from kplus.plots import ClusterDisplay

        draw = ClusterDisplay.from_predictions
        return (8, 5), partial(draw, self.table.data, self.model.labels_)

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
        described = f"described by {count(self.model.n_components_, 'component')}{cut}"
        if self.model.noise is not False:
            share = self._n_noise / len(self.model.labels_)
            described += f", noise {count(self._n_noise, 'row')} ({share:.1%})"
        return f"{self._observations}, {described}"

    @property
    def _observations(self) -> str:
        """Those that were asked for, or chosen."""
        from kplus.dp_mixture.families import name_of

        return name_of(self.model.observations_)

    @cached_property
    def _traits(self) -> "list[Trait]":
        """What sets each cluster apart, most first."""
        return traits_in_units(self.model, self.table.column_names, _MAX_TOLD)

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Every cluster: its size, share, sureness, name and telling columns."""
        from kplus.base.description import name_of_group

        told: list[list[Trait]] = [[] for _ in range(self.n_found)]
        for trait in self._traits:
            told[trait.group].append(trait)
        sureness = self.model.portrait_.sureness
        return [
            {
                "cluster": k,
                "size": round(traits[0].size),
                "share": traits[0].share,
                "sureness": finite(sureness[k]),
                "name": name_of_group(traits),
                self.listed: [
                    _record(one) for one in traits if one.feature is not None
                ],
            }
            for k, traits in enumerate(told)
        ]

    def cells(self, record: dict[str, Any]) -> tuple[str, ...]:
        """Sureness, and a line for each column, as in "age low (24, overall 41)"."""
        sure, columns = record["sureness"], record[self.listed]
        lines = [column["words"] for column in columns[: self.most_printed]]
        left = len(columns) - len(lines)
        if left > 0 and self.listed == "features":
            lines.append(f"and {count(left, 'feature')} more")
        return in_short(sure), "\n".join(lines) or "-"


def _record(trait: "Trait") -> dict[str, Any]:
    """A trait for JSON; numbers are in the units of the file, "deviation" in SDs."""
    numbers = {
        name: value if isinstance(value, str) else finite(value)
        for name, value in trait.numbers.items()
    }
    return {
        "name": trait.feature,
        **numbers,
        "score": finite(trait.score),
        "here": trait.here,
        "overall": trait.overall,
        "words": trait.words,
    }


def _described(trait: "Trait", name: str) -> Any:
    """An entry of description.csv."""
    return round(trait.size) if name == "size" else getattr(trait, name)


class DescribedClusters(Clusters):
    """What `CRAFT` found: clusters, and the features that distinguish them."""

    most_printed, listed = 8, "features"

    def tables(self) -> dict[str, Any]:
        """The description, a line for each cluster and each of its features."""
        columns = {
            heading: pa.array(
                [_described(trait, name) for trait in self._traits],
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
        scores = Results.quality(self)
        if n_components == self.n_found:
            return scores
        return f"joined from {count(n_components, 'component')}, {scores}"

    def measures(self) -> dict[str, Any]:
        components = {"n_components": int(self.model.n_components_)}
        return Results.measures(self) | components | {"missing": self._missing}

    @property
    def priced(self) -> bool:
        # The price of a cluster is told where it was asked for.
        return self.model.penalty != "auto"

    @cached_property
    def _traits(self) -> "list[Trait]":
        """What the model tells; it knows a file without names by numbers only."""
        from kplus.craft.report import describe

        traits, names = describe(self.model), self.table.column_names
        if hasattr(self.model, "feature_names_in_"):
            return list(traits)
        return [
            replace(one, feature=one.feature and names[int(one.feature)])
            for one in traits
        ]

    @property
    def _missing(self) -> dict[str, int]:
        """Missing values of the columns that have some."""
        counts = np.rint(self.model.n_missing_).astype(int).tolist()
        named = zip(self.table.column_names, counts, strict=True)
        return {name: n for name, n in named if n}
