"""Data larger than memory, workers and crashes: ``python benchmarks/scale.py``.

``patches`` fits 8.64 million patches of real pictures from a file. ``overhead`` is what
workers cost against threads, and checkpoints against none. ``kills`` and ``workers``
end processes at random moments. ``simulation`` extrapolates to many workers.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from command import main
from data import Store, load_pictures
from report import CaseResult, Check, Row
from runner import Job, Run, run_job
from scale_crashes import killed_fits, killed_workers
from scale_simulation import simulate

TASKS = "scale_tasks"
LIMIT_MB = 1500
SIDE = 8  # of a patch
HOWS = ("threads", "workers", "checkpoint")
UPDATES = 20  # of a mixture in a pass over so many rows


@dataclass(frozen=True)
class Sizes:
    """Patches and components, rows for the cost of workers, numbers of kills.

    `rounds` is the most that any fit is timed for the cost of workers.
    """

    patches: int
    overhead_patches: int
    components: int
    passes: int
    rows: int
    columns: int
    clusters: int
    kills: int
    kill_rows: int
    worker_kills: int
    rounds: int


FULL = Sizes(8_640_000, 2_000_000, 100, 6, 4_000_000, 50, 100, 50, 10**6, 20, 3)
QUICK = Sizes(20_000, 20_000, 8, 2, 120_000, 6, 5, 2, 10**5, 1, 1)


# ------------------------------------------------------------------- patches


def write_patches(path: Path, n_patches: int) -> None:
    """Patches from all over each picture, less their mean, in float32."""
    pictures, rng = load_pictures(), np.random.default_rng(0)
    each = n_patches // len(pictures)
    out = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(each * len(pictures), SIDE**2)
    )
    for i, picture in enumerate(pictures):
        windows = np.lib.stride_tricks.sliding_window_view(picture, (SIDE, SIDE))
        places = rng.choice(windows.shape[0] * windows.shape[1], each, replace=False)
        rows = windows[places // windows.shape[1], places % windows.shape[1]]
        rows = rows.reshape(each, -1) / np.float32(255)
        out[i * each : (i + 1) * each] = rows - rows.mean(axis=1, keepdims=True)
    out.flush()


def patches(store: Store, n_patches: int) -> Path:
    path = store.folder / f"patches-{n_patches}.npy"
    if not path.exists():
        write_patches(path, n_patches)
    return path


def case_patches(store: Store, sizes: Sizes) -> CaseResult:
    path = patches(store, sizes.patches)
    rows, checks, versions = [], [], {}
    for name in ("DPMixture", "DPMeans", "KFeatures"):
        asked = {
            "estimator": name,
            "path": str(path),
            "components": sizes.components,
            "passes": sizes.passes,
        }
        runs = run_job(
            Job("fit_patches", [asked], tasks=TASKS, threads=2, timeout=3600.0)
        )
        run, versions = runs.runs[0], runs.versions
        rows.append(patches_row(name, run))
        small = run.peak_mb is not None and run.peak_mb < LIMIT_MB
        checks.append(
            Check(f"{name}: peak below 1.5 GB", f"{run.peak_mb:,.0f} MB", small)
        )
        times = run.facts["pass_s"] / run.facts["gemm_s"]
        checks.append(
            Check(
                f"{name}: a pass at most 2.5 times its products",
                f"{times:.1f} times",
                times <= 2.5,
            )
        )
    notes = [
        "From a mapped file under kplus.resources(memory_limit='1 GB'), two threads. "
        "Peak: of the whole process, mapped pages counted. Products: what a pass over "
        "all rows spends in dense float32 products alone, with as many components as "
        "were found; for DPMixture x'L for each component, for the others x'a. "
        f"DPMixture from one component, at most {sizes.passes} passes over all rows."
    ]
    title = f"Patches of pictures ({sizes.patches:,} × {SIDE**2}, float32 file)"
    return CaseResult(title, rows, checks, notes, versions)


def patches_row(name: str, run: Run) -> Row:
    facts = run.facts
    return {
        "estimator": name,
        "K": facts["K"],
        "passes": facts["passes"],
        "wall s": run.wall_s,
        "CPU s": run.cpu_s,
        "peak MB": run.peak_mb,
        "own MB": facts["own_mb"],
        "s a pass": facts["pass_s"],
        "products, s": facts["gemm_s"],
        "rows/s": facts["rows_per_second"],
    }


# ------------------------------------------------------------------ overhead


@dataclass(frozen=True)
class Compared:
    """A fit that is timed in several ways; `updates` of its parameters in a pass."""

    asked: dict[str, Any]
    rounds: int
    updates: int = 1
    hows: tuple[str, ...] = HOWS


def compared_fits(store: Store, sizes: Sizes) -> dict[str, Compared]:
    """Short sweeps with small and with large sums, and long ones of the same kinds."""
    few = patches(store, sizes.overhead_patches)
    every = patches(store, sizes.patches)
    blobs = store.blobs(sizes.rows, sizes.columns, sizes.clusters)
    means = {"estimator": "DPMeans", "clusters": sizes.components, "passes": 30}
    mixture = {"estimator": "DPMixture", "clusters": sizes.components}
    diagonal = {
        "path": str(blobs),
        "observations": "diag_gaussian",
        "clusters": sizes.clusters,
        "passes": 6,
    }
    full = {
        "path": str(every),
        "first": str(few),
        "observations": "zero_mean_gaussian",
        "passes": 3,
    }
    no_checkpoint = ("threads", "workers")
    return {
        "DPMeans": Compared(means | {"path": str(few)}, 3, hows=no_checkpoint),
        "DPMeans, all patches": Compared(
            means | {"path": str(every), "first": str(few)}, 2
        ),
        "DPMixture, diagonal": Compared(mixture | diagonal, 3, UPDATES),
        "DPMixture, full, all patches": Compared(
            mixture | full, 1, UPDATES, no_checkpoint
        ),
    }


def timed(fit: Compared, rounds: int) -> tuple[dict[str, Row], dict[str, str]]:
    """The quickest round of each way, and the versions."""
    found: dict[str, list[dict[str, Any]]] = {how: [] for how in fit.hows}
    versions = {}
    for _, how in itertools.product(range(rounds), fit.hows):
        asked = fit.asked | {"how": how}
        job = Job("fit_how", [asked], tasks=TASKS, threads=2, timeout=3600.0)
        runs = run_job(job)
        found[how].append(runs.runs[0].facts)
        versions = runs.versions
    rows = {}
    for how, all_facts in found.items():
        seconds = [facts["s in passes"] for facts in all_facts]
        quickest = all_facts[seconds.index(min(seconds))]
        rows[how] = quickest | {
            "s a sweep": min(seconds) / (quickest["passes"] * fit.updates),
            "rounds": rounds,
            "slowest, s in passes": max(seconds),
        }
    return rows, versions


def overhead_checks(name: str, found: dict[str, Row]) -> list[Check]:
    more = found["workers"]["s in passes"] / found["threads"]["s in passes"] - 1
    what = f"{name}: two workers at most 15 % slower than two threads"
    checks = [Check(what, f"{more:+.0%}", more <= 0.15)]
    if "checkpoint" in found:
        share = found["checkpoint"]["checkpoints, s"] / found["checkpoint"]["wall s"]
        what = f"{name}: checkpoints at most 1 %"
        checks.append(Check(what, f"{share:.2%}", share <= 0.01))
    return checks


def case_overhead(store: Store, sizes: Sizes) -> CaseResult:
    rows: list[Row] = []
    checks, versions = [], {}
    for name, fit in compared_fits(store, sizes).items():
        found, versions = timed(fit, min(fit.rounds, sizes.rounds))
        rows += [{"fit": name, "with": how} | row for how, row in found.items()]
        checks += overhead_checks(name, found)
    notes = [
        "Workers: a LocalCluster on the same two cores, one thread each. DPMeans, at "
        f"most 30 passes: {sizes.overhead_patches:,} patches of pictures, and all "
        f"{sizes.patches:,}. Mixtures with diagonal covariances, 6 passes: "
        f"{sizes.clusters} blobs, {sizes.rows:,} × {sizes.columns}; with full ones, "
        f"3 passes: all patches. {sizes.components} clusters of patches, at most as "
        f"many components as there are blobs, or {sizes.components}. Mixtures are "
        f"updated {UPDATES} times a pass; a sweep is what is between two updates. The "
        "quickest of some rounds, and the slowest."
    ]
    title = "Threads, workers, checkpoints"
    return CaseResult(title, rows, checks, notes, versions)


# -------------------------------------------------------------------- crashes


def case_kills(store: Store, sizes: Sizes) -> CaseResult:
    return killed_fits(store, sizes.kills, sizes.kill_rows)


def case_workers(store: Store, sizes: Sizes) -> CaseResult:
    return killed_workers(store, sizes.worker_kills)


def case_simulation(store: Store, sizes: Sizes) -> CaseResult:
    path = store.blobs(sizes.rows, sizes.columns, sizes.clusters)
    asked = {"path": str(path), "clusters": sizes.clusters}
    runs = run_job(Job("task_times", [asked], tasks=TASKS, timeout=3600.0))
    return simulate(runs.runs[0].facts, runs.versions)


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "patches": case_patches,
    "overhead": case_overhead,
    "kills": case_kills,
    "workers": case_workers,
    "simulation": case_simulation,
}


if __name__ == "__main__":
    main("scale", CASES, FULL, QUICK)
