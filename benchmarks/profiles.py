"""Where the time of fits goes: ``python benchmarks/profiles.py [--only CASE,...]``.

Each estimator is fitted to data made for it, at three sizes: how long, how much memory,
and which share of the CPU time was spent where. ``startup`` is what the first fit of a
process costs.

The file is not called profile.py, for that would hide Python's own module of the name.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from command import main
from data import Store
from kplus.datasets import (
    make_binary_features,
    make_gaussian_blobs,
    make_nonnegative_features,
    make_subspace_clusters,
)
from profile_shares import PARTS
from report import CaseResult, Check, Row
from runner import Job, Runs, run_job

TASKS = "profile_tasks"
IN_MEMORY = ("IBPGibbs",)  # these keep all rows in memory, in float64
LABELS = {"system": "system, reading"} | {part: part for part in PARTS[1:]}


@dataclass(frozen=True)
class Table:
    """Rows and columns, how many groups they are made with, and the type of entries."""

    rows: int
    columns: int
    groups: int
    mapped: bool = False  # float32, as a memory map


@dataclass(frozen=True)
class Sizes:
    """Tables to fit, seconds to fit small ones for, and after which a fit is ended."""

    small: Table
    middle: Table
    large: Table
    estimators: tuple[str, ...]
    seconds: float
    limit: float


def blobs(table: Table) -> np.ndarray:
    return make_gaussian_blobs(table.rows, table.columns, table.groups, random_state=0)[
        0
    ]


def binary_features(table: Table) -> np.ndarray:
    return make_binary_features(
        table.rows, table.columns, table.groups, random_state=0
    )[0]


def nonnegative_features(table: Table) -> np.ndarray:
    X = make_nonnegative_features(
        table.rows, table.columns, table.groups, noise=0.3, random_state=0
    )[0]
    return np.maximum(X, 0.0)


def subspaces(table: Table) -> np.ndarray:
    """Columns of the paper's table of numbers, spread over its 36."""
    X = make_subspace_clusters("3a", table.rows, random_state=0)[0]
    chosen = np.linspace(0, X.shape[1] - 1, min(table.columns, X.shape[1]))
    return X[:, chosen.astype(int)]


MAKERS: dict[str, Callable[[Table], np.ndarray]] = {
    "DPMeans": blobs,
    "DPMixture": blobs,
    "BPMeans": binary_features,
    "KFeatures": binary_features,
    "CRAFT": subspaces,
    "MEIBP": nonnegative_features,
    "IBPVariational": nonnegative_features,
    "IBPGibbs": nonnegative_features,
}
FULL = Sizes(
    Table(100, 10, 3),
    Table(100_000, 50, 10),
    Table(5_000_000, 20, 10, mapped=True),
    tuple(MAKERS),
    seconds=2.0,
    limit=900.0,
)
QUICK = Sizes(
    Table(60, 6, 3),
    Table(200, 6, 3),
    Table(300, 6, 3, mapped=True),
    ("DPMeans", "IBPGibbs"),
    seconds=0.0,
    limit=120.0,
)


def data_for(store: Store, estimator: str, table: Table) -> Path:
    make = MAKERS[estimator]
    kind = np.float32 if table.mapped else np.float64
    name = f"{make.__name__}-{table.rows}-{table.columns}-{kind.__name__}"
    return store.path(name, lambda: make(table).astype(kind))


def profile(path: Path, estimator: str, table: Table, sizes: Sizes) -> Runs | None:
    """Fit a tenth of the rows, to load all, then all rows; None if over the limit."""
    own = {"estimator": estimator}
    asked = [
        own | {"rows": max(table.rows // 10, 50), "seconds": 0.0},
        own | {"rows": table.rows, "seconds": sizes.seconds},
    ]
    job = Job(
        "default_fits",
        asked,
        path,
        mapped=table.mapped,
        watch=table.mapped,
        timeout=sizes.limit,
        tasks=TASKS,
    )
    try:
        return run_job(job)
    except subprocess.TimeoutExpired:
        return None


def row_of(estimator: str, table: Table, runs: Runs | None, limit: float) -> Row:
    """A line of the table; shares are of the CPU time."""
    row: Row = {"estimator": estimator}
    if runs is None:
        names = ("K", "wall s", "CPU s", "peak MB", *LABELS.values())
        return row | dict.fromkeys(names) | {"wall s": f"over {limit:g}"}
    run = runs.runs[-1]
    peak = run.grown_mb
    if table.mapped and run.anonymous_peak_mb is not None:
        peak = run.anonymous_peak_mb - (run.anonymous_before_mb or 0.0)
    row |= {"K": run.facts["K"], "wall s": run.facts["wall_s"]}
    row |= {"CPU s": run.facts["cpu_s"], "peak MB": peak}
    shares = run.facts["shares"] or {}
    return row | {
        label: f"{shares[part]:.0%}" if shares else None
        for part, label in LABELS.items()
    }


def case_of(store: Store, sizes: Sizes, table: Table, name: str) -> CaseResult:
    """Profile every estimator at one size."""
    rows, versions, overhead = [], {}, {}
    asked = [e for e in sizes.estimators if not (table.mapped and e in IN_MEMORY)]
    for estimator in asked:
        path = data_for(store, estimator, table)
        runs = profile(path, estimator, table, sizes)
        rows.append(row_of(estimator, table, runs, sizes.limit))
        if runs is not None:
            versions = runs.versions
            shares = runs.runs[-1].facts["shares"] or {}
            overhead[estimator] = shares.get("Python")
    notes = [
        "Shares of CPU time, by the library in which `perf` found the process. "
        "System: page faults of mapped files and of fresh memory. numpy: all of it but "
        "BLAS and LAPACK, and what kernels spend in exp or random numbers. Python: the "
        "interpreter and malloc. Peak: above what the process had "
        "before the fit" + (", mapped pages left out." if table.mapped else ".")
    ]
    if table.mapped:
        left_out = ", ".join(set(IN_MEMORY) & set(sizes.estimators))
        notes.append(f"Left out, as they keep all rows in memory: {left_out}.")
    kind = ", float32 memory map" if table.mapped else ""
    title = f"Default fits, {name} ({table.rows:,} × {table.columns}{kind})"
    checks = overhead_checks(overhead) if name == "middle" else []
    return CaseResult(title, rows, checks, notes, versions)


def overhead_checks(overhead: dict[str, float | None]) -> list[Check]:
    return [
        Check(f"{name}: Python at most 10 %", f"{share:.0%}", share <= 0.1)
        for name, share in overhead.items()
        if share is not None
    ]


def case_small(store: Store, sizes: Sizes) -> CaseResult:
    return case_of(store, sizes, sizes.small, "small")


def case_middle(store: Store, sizes: Sizes) -> CaseResult:
    return case_of(store, sizes, sizes.middle, "middle")


def case_large(store: Store, sizes: Sizes) -> CaseResult:
    return case_of(store, sizes, sizes.large, "large")


def case_startup(store: Store, sizes: Sizes) -> CaseResult:
    """First fits of the small table, each in a fresh process."""
    rows, checks, versions = [], [], {}
    for estimator in sizes.estimators:
        path = data_for(store, estimator, sizes.small)
        job = Job("first_fit", [{"estimator": estimator}], path, tasks=TASKS)
        answers = [run_job(job) for _ in range(3)]
        facts = [answer.runs[0].facts for answer in answers]
        first = min(fact["fit_s"] for fact in facts)
        versions = answers[0].versions
        rows.append(
            {
                "estimator": estimator,
                "import s": min(fact["import_s"] for fact in facts),
                "first fit, s": first,
            }
        )
        target = f"{estimator}: first fit below .3 s"
        checks.append(Check(target, f"{first:.2f} s", first < 0.3))
    table = sizes.small
    title = f"The first default fit of a process ({table.rows} × {table.columns})"
    notes = [
        "Import: that of the estimator, numpy loaded before; most of it is "
        "scikit-learn's. Seconds of fits come on top of it. The least of three."
    ]
    return CaseResult(title, rows, checks, notes, versions)


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "startup": case_startup,
    "small": case_small,
    "middle": case_middle,
    "large": case_large,
}


if __name__ == "__main__":
    main("profile", CASES, FULL, QUICK)
