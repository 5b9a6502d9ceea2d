"""Fits of mixed tables: which methods, where they run, how they score."""

import os
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import craft_scores
from craft_data import TableFile
from runner import REPOSITORY, Job, Run, run_job

Parameters = dict[str, Any]
TASKS = "craft_tasks"  # the module of what these jobs run


@dataclass(frozen=True)
class Method:
    """A task of ``craft_tasks.py`` with its settings.

    ``peer`` tells that it needs the environment of other libraries.
    """

    name: str
    task: str
    settings: Parameters = field(default_factory=dict)
    peer: bool = False


def craft(fraction: float | None = None, paper: bool = False) -> Method:
    """CRAFT with m, or with features chosen by itself; ours, or the paper's."""
    settings: Parameters = {"feature_fraction": fraction}
    m = "" if fraction is None else f", m = {fraction:g}"
    if paper:
        return Method(
            f"paper's CRAFT{m}", "kplus_craft", settings | {"variant": "paper"}
        )
    return Method(f"CRAFT{m}", "kplus_craft", settings)


def selected_by(name: str, fraction: float) -> Method:
    """k-means on the features that MCFS or NDFS selects, or DP-means with selection."""
    title = {"mcfs": "MCFS", "ndfs": "NDFS", "dp_means_rf": "DP-RF"}[name]
    settings = {"name": name, "fraction": fraction}
    return Method(f"{title}, m = {fraction:g}", "baseline", settings)


DP_MEANS = Method("DPMeans(n_clusters)", "kplus_dp_means")
DP_MEANS_MEAN = Method("DP-means", "farthest_dp_means", {"start": "mean"})
DP_MEANS_ROW = Method("DP-means(R)", "farthest_dp_means", {"start": "row"})
K_MEANS = Method("KMeans, one-hot", "one_hot_k_means")
K_PROTOTYPES = Method("k-prototypes", "k_prototypes", peer=True)
STEP_MIX = Method("stepmix", "step_mix", peer=True)
PEERS = (K_PROTOTYPES, STEP_MIX)


@dataclass(frozen=True)
class TableFits:
    """Runs of one method on one table, with seeds 0, 1, ..."""

    method: str
    table: TableFile
    runs: list[Run]
    versions: dict[str, str]

    @property
    def labels(self) -> list[np.ndarray]:
        return [run.labels for run in self.runs if run.labels is not None]

    @property
    def clusters(self) -> list[int]:
        return [run.facts["n_clusters"] for run in self.runs]

    @property
    def seconds(self) -> float:
        """CPU seconds of a fit, the median of the runs."""
        return statistics.median(run.facts["fit_s"] for run in self.runs)

    def scores(self, name: str) -> list[float]:
        score = getattr(craft_scores, name)
        return [score(self.table.labels, labels) for labels in self.labels]

    def mean(self, name: str) -> float:
        return statistics.mean(self.scores(name))

    def spread(self, name: str) -> float:
        return statistics.pstdev(self.scores(name))

    def shown(self, name: str) -> str:
        """Mean ± standard deviation of a score, as the paper prints the mean."""
        return f"{self.mean(name):.2f} ± {self.spread(name):.2f}"


def fit_tables(
    method: Method,
    tables: list[TableFile],
    seeds: int,
    further: Parameters | None = None,
    warm: bool = False,
) -> dict[str, TableFits]:
    """Fit all tables with seeds 0, 1, ..., K = classes, in one process.

    If ``warm``, one fit of the first table goes before and is left out.
    """
    asked = [
        method.settings
        | {"data": str(table.path), "n_clusters": table.K, "random_state": seed}
        | (further or {})
        for table in tables
        for seed in range(seeds)
    ]
    python = peers_python() if method.peer else Path(sys.executable)
    assert python is not None
    answer = run_job(
        Job(method.task, asked[:1] * warm + asked, python=python, tasks=TASKS)
    )
    runs = iter(answer.runs[1:] if warm else answer.runs)
    return {
        table.name: TableFits(
            method.name, table, [next(runs) for _ in range(seeds)], answer.versions
        )
        for table in tables
    }


def available(methods: list[Method]) -> tuple[list[Method], list[str]]:
    """Those methods that can run here, and a note on those that cannot."""
    if peers_python() is not None:
        return methods, []
    left = [method.name for method in methods if method.peer]
    notes = [f"{', '.join(left)} skipped: no .venv-craft-peers"] if left else []
    return [method for method in methods if not method.peer], notes


def peers_python() -> Path | None:
    """Interpreter of the environment of craft-requirements.txt, if it was made."""
    default = REPOSITORY / ".venv-craft-peers" / "bin" / "python"
    path = Path(os.environ.get("KPLUS_CRAFT_PEERS_PYTHON", default))
    return path if path.exists() else None


def all_versions(*fits: dict[str, str]) -> dict[str, str]:
    """Versions of ours, and what the peers' environment has that differs."""
    found: dict[str, str] = {}
    for versions in fits:
        for name, version in versions.items():
            if found.setdefault(name, version) != version:
                found[f"{name} (peers)"] = version
    return found
