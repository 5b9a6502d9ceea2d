"""Fits of mixtures: how many, what the workers are asked, and what their runs say."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from compare import value_range
from report import Row
from runner import Job, Run, SeededRuns, run_job

Parameters = dict[str, Any]

EDGE_PRIOR: Parameters = {
    "observations": {"kind": "ZeroMeanGaussian", "covariance": 0.1, "learn": False}
}
MNIST_PRIOR: Parameters = {
    "observations": {
        "kind": "Gaussian",
        "covariance": 1.0,
        "mean_strength": 1.0,
        "learn": False,
    },
    "tol": 1e-3,
}
RATES = {"a": (0.5, 10.0), "b": (0.5, 100.0), "c": (0.9, 10.0)}


@dataclass(frozen=True)
class Sizes:
    """How much data and how many runs; one set to measure, one to try the code."""

    repeats: int
    warm_up_rows: int
    edge_rows: int
    edge_batches: int
    edge_seeds: int
    edge_components: int  # of fits that keep to a number, and of greedy merges
    edge_passes: int
    greedy_seeds: int
    birth_seeds: int
    move_passes: int  # most passes of fits with moves; 200 is the default
    mnist_rows: int
    mnist_components: int
    mnist_starts: int
    mnist_moves: int
    mnist_passes: int
    mnist_fixed: int
    splits_rows: int  # of digits
    tiny_rows: int  # of small pictures
    tiny_components: int
    tiny_passes: int
    tiny_seeds: int
    blobs: tuple[int, int, int]
    blob_seeds: int
    growth: tuple[int, ...]
    thread_blobs: tuple[int, int, int]
    small: tuple[str, ...]


FULL = Sizes(
    repeats=3,
    warm_up_rows=5_000,
    edge_rows=100_000,
    edge_batches=100,
    edge_seeds=10,
    edge_components=25,
    edge_passes=50,
    greedy_seeds=5,
    birth_seeds=10,
    move_passes=200,
    mnist_rows=60_000,
    mnist_components=100,
    mnist_starts=10,
    mnist_moves=3,
    mnist_passes=40,
    mnist_fixed=1,
    splits_rows=20_000,
    tiny_rows=2_500,
    tiny_components=100,
    tiny_passes=60,
    tiny_seeds=3,
    blobs=(200_000, 50, 50),
    blob_seeds=3,
    growth=(25, 50, 100, 200, 400),
    thread_blobs=(1_000_000, 50, 50),
    small=("iris", "wine", "banknote", "two groups"),
)
QUICK = Sizes(
    repeats=1,
    warm_up_rows=500,
    edge_rows=1_000,
    edge_batches=10,
    edge_seeds=1,
    edge_components=9,
    edge_passes=5,
    greedy_seeds=1,
    birth_seeds=1,
    move_passes=3,
    mnist_rows=2_000,
    mnist_components=20,
    mnist_starts=2,
    mnist_moves=1,
    mnist_passes=4,
    mnist_fixed=1,
    splits_rows=500,
    tiny_rows=300,
    tiny_components=5,
    tiny_passes=3,
    tiny_seeds=1,
    blobs=(4_000, 10, 5),
    blob_seeds=1,
    growth=(5, 15),
    thread_blobs=(8_000, 10, 5),
    small=("iris", "two groups"),
)


class MixtureFits(SeededRuns):
    """Fits of one setting, and what a table tells of them."""

    @property
    def bounds(self) -> list[float]:
        return self.facts("bound")

    @property
    def cpu(self) -> list[float]:
        return [run.cpu_s for run in self.runs]

    def aris(self, truth: np.ndarray) -> list[float]:
        return [float(adjusted_rand_score(truth, run.labels)) for run in self.runs]

    def alignments(self, truth: np.ndarray) -> list[float]:
        return [alignment(run.labels, truth) for run in self.runs]

    def passes_to_converge(self) -> list[int]:
        return [passes_to_converge(history) for history in self.facts("history")]

    def row(self) -> Row:
        return {
            "fit": self.name,
            "runs": len(self.runs),
            "K": value_range(self.components),
            "bound, best": max(self.bounds),
            "bound, worst": min(self.bounds),
            "passes": value_range(self.facts("n_iter")),
            "CPU s, median": statistics.median(self.cpu),
            "CPU s, most": max(self.cpu),
        }


def fit_settings(
    data: Path,
    settings: dict[str, Parameters],
    seeds: int | dict[str, int],
    warm_up_rows: int,
    task: str = "kplus_dp_mixture",
) -> dict[str, MixtureFits]:
    """Fit each setting with seeds 0, 1, ..., all in one process.

    The first setting is also fitted to some rows beforehand, to load what is compiled;
    so it should be one that uses as much of the code as any.
    """
    asked = [
        (name, parameters | {"random_state": seed})
        for name, parameters in settings.items()
        for seed in range(seeds if isinstance(seeds, int) else seeds[name])
    ]
    return _run_settings(task, data, asked, warm_up_rows)


def alignment(labels: np.ndarray | None, truth: np.ndarray) -> float:
    """Share of rows of the class that is the most common in their component."""
    assert labels is not None
    table = np.zeros((labels.max() + 1, truth.max() + 1), np.int64)
    np.add.at(table, (labels, truth), 1)
    return float(table.max(axis=1).sum() / len(truth))


def passes_to_converge(history: Sequence[float], share: float = 1e-4) -> int:
    """Passes after which the bound stays within a share of where it ends.

    Without the last: it includes a sweep more, which presents the result.
    """
    bounds = np.array(history[:-1] or history)
    far = np.abs(bounds - bounds[-1]) > share * abs(bounds[-1])
    return int(np.flatnonzero(far).max(initial=-1)) + 2


def pass_runs(
    task: str,
    data: Path,
    settings: dict[str, Parameters],
    passes: tuple[int, int],
    repeats: int,
) -> dict[str, MixtureFits]:
    """Fits of few passes and of many of each setting, for `per_pass`."""
    asked = [
        (name, parameters | {"max_iter": n, "random_state": 0})
        for name, parameters in settings.items()
        for _ in range(repeats)
        for n in passes
    ]
    return _run_settings(task, data, asked, warm_up_rows=2_000)


def _run_settings(
    task: str, data: Path, asked: list[tuple[str, Parameters]], warm_up_rows: int
) -> dict[str, MixtureFits]:
    runs = [arguments for _, arguments in asked]
    answer = run_job(Job(task, runs, data, warm_up_rows=warm_up_rows))
    found: dict[str, list[Run]] = {}
    for (name, _), run in zip(asked, answer.runs, strict=True):
        found.setdefault(name, []).append(run)
    return {
        name: MixtureFits(name, mine, answer.versions) for name, mine in found.items()
    }


def per_pass(runs: Sequence[Run], measure: str = "cpu_s") -> float:
    """Seconds of one pass: the slope between the shortest and the longest fits.

    What a fit does besides its passes is the same in both. The least of the repeats
    counts, for whatever else the machine does only adds.
    """
    best: dict[int, float] = {}
    for run in runs:
        n, seconds = run.facts["n_iter"], float(getattr(run, measure))
        best[n] = min(seconds, best.get(n, seconds))
    few, many = min(best), max(best)
    if few == many:
        raise ValueError(f"All fits made {few} passes; there is no slope to take.")
    return (best[many] - best[few]) / (many - few)
