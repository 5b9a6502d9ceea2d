"""Data larger than memory, workers and crashes: ``python benchmarks/scale.py``.

``patches`` fits 8.64 million patches of real pictures from a file. ``overhead`` is what
workers cost against threads, and checkpoints against none. ``kills`` and ``workers``
end processes at random moments. ``simulation`` extrapolates to many workers.
"""

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from command import main
from data import DataMissing, Store
from report import CaseResult, Check, Row
from runner import Job, Run, run_job
from scale_crashes import killed_fits, killed_workers
from scale_simulation import simulate

TASKS = "scale_tasks"
LIMIT_MB = 1500
SIDE = 8  # of a patch
HOWS = ("threads", "workers", "checkpoint")


@dataclass(frozen=True)
class Sizes:
    """Patches and components, rows for the cost of workers, numbers of kills."""

    patches: int
    overhead_patches: int
    components: int
    passes: int
    rows: int
    columns: int
    clusters: int
    kills: int
    worker_kills: int
    rounds: int


FULL = Sizes(8_640_000, 2_000_000, 100, 6, 4_000_000, 50, 100, 50, 20, 3)
QUICK = Sizes(20_000, 20_000, 8, 2, 120_000, 6, 5, 2, 1, 1)


# ------------------------------------------------------------------- patches


def images() -> np.ndarray:
    folder = os.environ.get("KPLUS_SHARED_DATA")
    parts = ("bsds_train_part1of2.npz", "bsds_train_part2of2.npz")
    if folder is None or not all((Path(folder) / part).exists() for part in parts):
        raise DataMissing("the BSDS pictures are not in KPLUS_SHARED_DATA")
    return np.concatenate([np.load(Path(folder) / part)["X"] for part in parts])


def write_patches(path: Path, n_patches: int) -> None:
    """Patches from all over each picture, less their mean, in float32."""
    pictures, rng = images(), np.random.default_rng(0)
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


def case_overhead(store: Store, sizes: Sizes) -> CaseResult:
    """Sweeps of a fifth of a second with small and with large sums, and longer ones."""
    few = patches(store, sizes.overhead_patches)
    blobs = store.blobs(sizes.rows, sizes.columns, sizes.clusters)
    fits = {
        "DPMeans": {"estimator": "DPMeans", "path": str(few)},
        "DPMixture, diagonal": {
            "estimator": "DPMixture",
            "path": str(blobs),
            "observations": "diag_gaussian",
        },
        "DPMixture, full": {
            "estimator": "DPMixture",
            "path": str(few),
            "observations": "zero_mean_gaussian",
        },
    }
    rows, checks, versions = [], [], {}
    for name, fit in fits.items():
        found: dict[str, list[dict[str, Any]]] = {how: [] for how in HOWS}
        for _, how in itertools.product(range(sizes.rounds), HOWS):
            asked = fit | {"clusters": sizes.clusters, "how": how}
            job = Job("fit_how", [asked], tasks=TASKS, threads=2, timeout=3600.0)
            runs = run_job(job)
            found[how].append(runs.runs[0].facts)
            versions = runs.versions
        for how, all_facts in found.items():
            quickest = min(all_facts, key=lambda facts: facts["s in passes"])
            slowest = max(facts["s in passes"] for facts in all_facts)
            rows.append(
                {"fit": name, "with": how}
                | quickest
                | {"slowest, s in passes": slowest}
            )
        plain, workers, kept = rows[-3:]
        more = workers["s in passes"] / plain["s in passes"] - 1
        checks.append(
            Check(
                f"{name}: two workers at most 15 % slower than two threads",
                f"{more:+.0%}",
                more <= 0.15,
            )
        )
        share = kept["checkpoints, s"] / kept["wall s"]
        checks.append(
            Check(f"{name}: checkpoints at most 1 %", f"{share:.2%}", share <= 0.01)
        )
    notes = [
        "Workers: a LocalCluster on the same two cores, one thread each. DPMeans, at "
        "most 30 passes, and full covariances, 3 passes: "
        f"{sizes.overhead_patches:,} patches of pictures. Diagonal ones, 6 passes: "
        f"{sizes.clusters} blobs, {sizes.rows:,} × {sizes.columns}. Mixtures have "
        f"at most {sizes.clusters} components and are updated 20 times a pass. "
        f"The quickest of {sizes.rounds} rounds, and the slowest."
    ]
    title = "Threads, workers, checkpoints"
    return CaseResult(title, rows, checks, notes, versions)


# -------------------------------------------------------------------- crashes


def case_kills(store: Store, sizes: Sizes) -> CaseResult:
    return killed_fits(store, sizes.kills)


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
