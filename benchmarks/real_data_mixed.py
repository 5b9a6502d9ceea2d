"""Tables of numbers and categories: `DPMixture("mixed")` against peers that are told K.

The rule for the number of classes was made looking at the tables of ``craft.py`` that
have categories, all but Adult. Those of ``real_data_sets.py`` were fitted after that.
"""

import statistics
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from craft_data import TableFile, own_tables
from craft_peers import package_tables
from craft_runs import (
    K_MEANS,
    K_PROTOTYPES,
    STEP_MIX,
    TableFits,
    all_versions,
    available,
    fit_tables,
)
from craft_scores import ari
from data import Store
from kplus import DPMixture
from report import CaseResult, Check, Row

LARGE = "Adult"  # one run of everything
AUTO, GIVEN = "DPMixture", "DPMixture told K"
SAME = 0.005  # scores that are closer are no win


@dataclass(frozen=True)
class OwnFits:
    """Fits of one table with seeds 0, 1, ..."""

    models: list[Any]
    scores: list[float]
    seconds: float

    @classmethod
    def of(cls, table: TableFile, seeds: int, n_clusters: Any) -> "OwnFits":
        frame = pd.read_parquet(table.path)
        models = []
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for seed in range(seeds):
                model = DPMixture("mixed", n_clusters=n_clusters, random_state=seed)
                models.append(model.fit(frame))
        seconds = (time.process_time() - started) / seeds
        scores = [ari(table.labels, model.labels_) for model in models]
        return cls(models, scores, seconds)

    def shown(self, name: str) -> str:
        """Least and largest of a number, over seeds."""
        numbers = [getattr(model, name) for model in self.models]
        low, high = min(numbers), max(numbers)
        return str(low) if low == high else f"{low} to {high}"


def mixed_tables(
    store: Store, names: tuple[str, ...] | None
) -> dict[str, list[TableFile]]:
    """Tables with categories by name: those seen before, and the others."""
    seen = own_tables(store) + package_tables(store)
    if names is not None:
        return {"seen before": [table for table in seen if table.name in names]}
    further = package_tables(store, "export_further", "real_data_sets")
    lists = {"seen before": [t for t in seen if has_categories(t)], "others": further}
    return {
        title: sorted(tables, key=lambda table: table.name.lower())
        for title, tables in lists.items()
    }


def has_categories(table: TableFile) -> bool:
    kinds = pd.read_parquet(table.path).dtypes
    return not all(map(pd.api.types.is_numeric_dtype, kinds))


def peer_fits(
    tables: list[TableFile], seeds: int
) -> tuple[dict[str, dict[str, TableFits]], list[str]]:
    """Peers told K, with their default settings but three starts of k-prototypes."""
    methods, notes = available([K_PROTOTYPES, STEP_MIX, K_MEANS])
    small = [table for table in tables if table.name != LARGE]
    large = [table for table in tables if table.name == LARGE]
    fits: dict[str, dict[str, TableFits]] = {}
    for method in methods:
        starts = {"n_init": 3} if method is K_PROTOTYPES else {}
        fits[method.name] = fit_tables(method, small, seeds, starts)
        if large:
            fits[method.name] |= fit_tables(method, large, 1, {"n_init": 1})
    return fits, notes


def case_mixed(
    store: Store, seeds: int, names: tuple[str, ...] | None = None
) -> CaseResult:
    """Agreement with classes, K not given and given."""
    lists = mixed_tables(store, names)
    tables = [table for part in lists.values() for table in part]
    listed = {table.name: title for title, part in lists.items() for table in part}
    fits, notes = peer_fits(tables, seeds)
    rows: list[Row] = []
    for table in tables:
        runs = 1 if table.name == LARGE else seeds
        auto, given = (OwnFits.of(table, runs, K) for K in ("auto", table.K))
        assert given.shown("n_clusters_") == str(table.K)
        row: Row = {
            "table": table.name,
            "list": listed[table.name],
            "rows": len(table.labels),
            "K": table.K,
            "components": auto.shown("n_components_"),
            "clusters": auto.shown("n_clusters_"),
            AUTO: statistics.mean(auto.scores),
            GIVEN: statistics.mean(given.scores),
        }
        row |= {name: mine[table.name].mean("ari") for name, mine in fits.items()}
        row |= {f"CPU s, {AUTO}": auto.seconds, f"CPU s, {GIVEN}": given.seconds}
        row |= {
            f"CPU s, {name}": mine[table.name].seconds for name, mine in fits.items()
        }
        rows.append(row)
    notes += [
        f"Means of {seeds} runs, of {LARGE} one. K not given: the number of classes is "
        "not what a table falls into, so that more or fewer clusters may be right. The "
        "rule for the number was made with the tables seen before (but for Adult)."
    ]
    versions = all_versions(
        *(next(iter(mine.values())).versions for mine in fits.values())
    )
    title = f"{len(tables)} tables with categories: adjusted Rand index"
    return CaseResult(
        title, with_means(rows), checks(rows, list(fits)), notes, versions
    )


def with_means(rows: list[Row]) -> list[Row]:
    """Rows with the means of all, and of each list, below."""
    columns = [name for name, value in rows[0].items() if isinstance(value, float)]
    titles = ["all", *dict.fromkeys(row["list"] for row in rows)]
    below = []
    for title in titles:
        part = [row for row in rows if title in ("all", row["list"])]
        means = {name: float(np.mean([row[name] for row in part])) for name in columns}
        below.append(dict.fromkeys(rows[0]) | {"table": "mean", "list": title} | means)
    return rows + below


def checks(rows: list[Row], peers: list[str]) -> list[Check]:
    """Ahead of every peer that is told K, in the mean; wins and losses by table."""
    out = [Check("K given is met exactly", f"{len(rows)} tables", True)]
    for ours in (AUTO, GIVEN):
        mine = np.array([row[ours] for row in rows])
        for peer in peers:
            theirs = np.array([row[peer] for row in rows])
            wins = np.count_nonzero(mine > theirs + SAME)
            losses = np.count_nonzero(mine < theirs - SAME)
            told = (
                f"{mine.mean():.3f} against {theirs.mean():.3f}; "
                f"{wins} wins, {losses} losses"
            )
            target = f"{ours} ahead of {peer} told K"
            out.append(Check(target, told, bool(mine.mean() > theirs.mean())))
    return out
