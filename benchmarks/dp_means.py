"""DP-means against its peers: ``python benchmarks/dp_means.py [--only CASE,...]``.

Peers with pins of their own run in ``.venv-peers`` (``make bench-peers``). Objectives
are Σ d² + λ²(K−1), computed here in float64 from the labels that each library returns.
"""

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from command import main
from compare import Fits, all_versions, measure_fits, no_higher, times_less, value_range
from data import DataMissing, Store
from kplus.datasets import (
    make_gaussian_blobs,
    make_spherical_mixture,
    spherical_battery,
)
from report import CaseResult, Check, Row
from runner import Job, Runs, peers_python, run_job, time_command

ROWS = {"algorithm": "rows"}  # what pdc-dp-means does, too


@dataclass(frozen=True)
class Sizes:
    """How much data and how many runs; one set to measure, one to try the code."""

    repeats: int
    starts: int
    blobs: tuple[int, int, int]
    grid: tuple[int, int]
    mnist_rows: int
    mnist_clusters: tuple[int, ...]
    mnist_penalties: tuple[float, ...]
    battery_seeds: int
    battery_limit: int
    thread_blobs: tuple[int, int, int]
    map_rows: int
    small_fits: int


FULL = Sizes(
    repeats=5,
    starts=10,
    blobs=(200_000, 50, 50),
    grid=(100_000, 100),
    mnist_rows=60_000,
    mnist_clusters=(25, 100, 500),
    mnist_penalties=(100.0, 64.0, 42.0),
    battery_seeds=10,
    battery_limit=1_000,
    thread_blobs=(1_000_000, 50, 50),
    map_rows=20_000_000,
    small_fits=51,
)
QUICK = Sizes(
    repeats=1,
    starts=2,
    blobs=(2_000, 10, 5),
    grid=(900, 9),
    mnist_rows=500,
    mnist_clusters=(5,),
    mnist_penalties=(100.0,),
    battery_seeds=1,
    battery_limit=2,
    thread_blobs=(4_000, 10, 5),
    map_rows=20_000,
    small_fits=3,
)


def fit_kplus(data: Path, parameters: dict[str, Any], repeats: int) -> Job:
    """kplus with seeds 0, 1, ...; warmed up on all rows, so that all is compiled."""
    runs = [{**parameters, "random_state": seed} for seed in range(repeats)]
    rows = len(np.load(data, mmap_mode="r"))
    return Job("kplus_dp_means", runs, data, warm_up_rows=rows)


def fit_pdc(python: Path, data: Path, penalty: float, repeats: int) -> Job:
    """pdc-dp-means with seeds 0, 1, ... in the peers' environment."""
    runs = [{"penalty": penalty, "random_state": seed} for seed in range(repeats)]
    return Job("pdc_dp_means", runs, data, python, warm_up_rows=200)


def compare_penalty(path: Path, penalty: float, sizes: Sizes) -> list[Fits]:
    """kplus with one thread, with two, and pdc-dp-means where it is installed."""
    given = ROWS | {"penalty": penalty}
    jobs = {
        "kplus": fit_kplus(path, given, sizes.repeats),
        "kplus, 2 threads": fit_kplus(path, given | {"n_jobs": 2}, sizes.repeats),
    }
    python = peers_python()
    if python is not None:
        # Its runs take up to a minute and differ little: three are enough.
        jobs["pdc-dp-means"] = fit_pdc(python, path, penalty, min(sizes.repeats, 3))
    return [measure_fits(name, job, penalty) for name, job in jobs.items()]


def missing_peer() -> list[str]:
    """A note where the comparison had to do without the peer."""
    if peers_python() is not None:
        return []
    return ["pdc-dp-means skipped: no .venv-peers; `make bench-peers` makes it"]


def case_blobs(store: Store, sizes: Sizes) -> CaseResult:
    fits = compare_penalty(store.blobs(*sizes.blobs), 200.0, sizes)
    ours, k = fits[0], sizes.blobs[2]
    _, y = make_gaussian_blobs(*sizes.blobs, random_state=0)
    ari = min(adjusted_rand_score(y, run.labels) for run in ours.runs.runs)
    checks = [
        Check(f"K = {k}", value_range(ours.clusters), set(ours.clusters) == {k}),
        Check("ARI above .999", f"{ari:.5f}", ari > 0.999),
    ]
    if len(fits) == 3:
        theirs = fits[2]
        checks += [
            times_less(30, ours, theirs, "blobs"),
            no_higher(ours.objective, theirs.objective, 0.0, "objective"),
        ]
    shape = " × ".join(f"{size:,}" for size in sizes.blobs[:2])
    return CaseResult(
        f"DP-means with penalty 200, blobs ({shape}, {k} components)",
        [fit.row("blobs") for fit in fits],
        checks,
        missing_peer(),
        all_versions(fits),
    )


def case_mnist_penalty(store: Store, sizes: Sizes) -> CaseResult:
    path = store.mnist(sizes.mnist_rows)
    rows, checks, versions = [], [], {}
    for penalty in sizes.mnist_penalties:
        name = f"penalty {penalty:g}"
        fits = compare_penalty(path, penalty, sizes)
        rows += [fit.row(name) for fit in fits]
        versions = all_versions(fits)
        if len(fits) == 3:
            ours, theirs = fits[0], fits[2]
            difference = ours.n_clusters / theirs.n_clusters - 1
            checks += [
                times_less(5, ours, theirs, name),
                no_higher(
                    ours.objective, theirs.objective, 0.005, f"{name}: objective"
                ),
                Check(
                    f"{name}: K within 5 %",
                    f"{difference:+.1%}",
                    abs(difference) <= 0.05,
                ),
            ]
    title = f"DP-means with a penalty, MNIST ({sizes.mnist_rows:,} × 50)"
    return CaseResult(title, rows, checks, missing_peer(), versions)


def compare_k_means(
    data: str, path: Path, k: int, slack: float, sizes: Sizes
) -> tuple[list[Fits], list[Check]]:
    """kplus with so many clusters against KMeans with single starts."""
    job = fit_kplus(path, {"n_clusters": k}, sizes.repeats)
    ours = measure_fits("kplus", job, 0.0)
    starts = [{"n_clusters": k, "random_state": seed} for seed in range(sizes.starts)]
    job = Job("sklearn_k_means", starts, path, warm_up_rows=max(1000, k))
    theirs = measure_fits("KMeans, one start", job, 0.0)
    best = min(theirs.objectives)
    checks = [
        Check(
            f"{data}: K = {k}", value_range(ours.clusters), set(ours.clusters) == {k}
        ),
        times_less(3, ours, theirs, data),
        no_higher(
            ours.objective, best, slack, f"{data}: SSE against {sizes.starts} starts"
        ),
    ]
    return [ours, theirs], checks


def case_n_clusters(store: Store, sizes: Sizes) -> CaseResult:
    jobs = [
        ("blobs", store.blobs(*sizes.blobs), sizes.blobs[2]),
        ("grid", store.grid(*sizes.grid), sizes.grid[1]),
    ]
    notes = []
    try:
        mnist = store.mnist(sizes.mnist_rows)
        jobs += [(f"MNIST, K = {k}", mnist, k) for k in sizes.mnist_clusters]
    except DataMissing as missing:
        notes.append(f"MNIST skipped: {missing}")
    rows, checks, versions = [], [], {}
    for name, path, k in jobs:
        slack = 0.002 if k >= 500 else 0.0
        fits, found = compare_k_means(name, path, k, slack, sizes)
        rows += [fit.row(name) for fit in fits]
        checks += found
        versions = all_versions(fits)
    return CaseResult("A given number of clusters", rows, checks, notes, versions)


def case_automatic(store: Store, sizes: Sizes) -> CaseResult:
    cases = list(spherical_battery(range(sizes.battery_seeds)))[: sizes.battery_limit]
    runs = run_job(Job("kplus_automatic_k", [asdict(case) for case in cases]))
    rows, within = [], []
    for name in dict.fromkeys(case.name for case in cases):
        mine = [i for i, case in enumerate(cases) if case.name == name]
        found = [int(runs.runs[i].facts["n_clusters"]) for i in mine]
        true_k = cases[mine[0]].n_clusters
        good = [abs(k - true_k) <= 0.1 * true_k for k in found]
        within += good
        rows.append(
            {
                "mixture": name,
                "rows": cases[mine[0]].n_samples,
                "K": true_k,
                "within 10 %": f"{sum(good)} of {len(good)}",
                "found": " ".join(map(str, found)),
                "CPU s, median": statistics.median(runs.runs[i].cpu_s for i in mine),
            }
        )
    share = sum(within) / len(within)
    check = Check("K within ±10 % in at least 85 %", f"{share:.1%}", share >= 0.85)
    title = "Neither penalty nor K given: spherical mixtures"
    return CaseResult(title, rows, [check], versions=runs.versions)


def case_threads(store: Store, sizes: Sizes) -> CaseResult:
    jobs = [
        (
            "blobs, penalty 200",
            store.blobs(*sizes.thread_blobs),
            ROWS | {"penalty": 200.0},
        )
    ]
    notes = []
    try:
        penalty = min(sizes.mnist_penalties)
        path = store.mnist(sizes.mnist_rows)
        jobs.append((f"MNIST, penalty {penalty:g}", path, ROWS | {"penalty": penalty}))
    except DataMissing as missing:
        notes.append(f"MNIST skipped: {missing}")
    rows, checks, versions = [], [], {}
    for name, path, parameters in jobs:
        one, two = (
            run_job(fit_kplus(path, parameters | {"n_jobs": n}, sizes.repeats))
            for n in (1, 2)
        )
        speedup = one.best("wall_s") / two.best("wall_s")
        for n, runs in ((1, one), (2, two)):
            wall = (runs.best("wall_s"), runs.median("wall_s"))
            row = {
                "job": name,
                "threads": n,
                "wall s, best": wall[0],
                "median": wall[1],
            }
            rows.append(row | {"CPU s": runs.median("cpu_s")})
        what = f"{name}: two threads at least 1.7 times one"
        checks.append(Check(what, f"{speedup:.2f} times", speedup >= 1.7))
        versions = one.versions
    return CaseResult("Two threads against one", rows, checks, notes, versions)


def case_startup(store: Store, sizes: Sizes) -> CaseResult:
    repeats = max(sizes.repeats, 2)
    imports = {
        name: time_command(["-c", statement], repeats).best("cpu_s")
        for name, statement in [
            ("import of scikit-learn's clusterers", "import sklearn.cluster"),
            ("import kplus", "import kplus"),
            ("from kplus import DPMeans", "from kplus import DPMeans"),
        ]
    }
    rows: list[Row] = [
        {"what": name, "CPU s": cpu, "wall ms": None} for name, cpu in imports.items()
    ]
    cpu = list(imports.values())
    extra = cpu[2] - cpu[0]
    checks = [
        Check(
            "import below .1 CPU-s beyond scikit-learn's", f"{extra:.2f} s", extra < 0.1
        )
    ]
    small = store.path(
        "small", lambda: make_spherical_mixture(150, 4, 3, random_state=0)[0]
    )
    versions: dict[str, str] = {}
    for parameters in ({}, {"penalty": 30.0}, {"n_clusters": 3}):
        more, found, versions = small_fits(small, parameters, sizes)
        rows += more
        checks += found
    return CaseResult("Start-up and small data (150 × 4)", rows, checks, [], versions)


def small_fits(
    path: Path, parameters: dict[str, Any], sizes: Sizes
) -> tuple[list[Row], list[Check], dict[str, str]]:
    """First fit, imports included, and later ones."""
    text = ", ".join(f"{name}={value:g}" for name, value in parameters.items())
    fit = f"DPMeans({text}).fit"
    fits = [parameters | {"random_state": 0}] * sizes.small_fits
    runs = run_job(Job("kplus_dp_means", fits, path))
    first, later = runs.runs[0], Runs(runs.runs[1:], runs.versions)
    milliseconds = 1e3 * later.median("wall_s")
    limit = 3 if parameters else 10
    rows = [
        {
            "what": f"{fit}, first, import included",
            "CPU s": first.cpu_s,
            "wall ms": 1e3 * first.wall_s,
        },
        {
            "what": f"{fit}, later",
            "CPU s": later.median("cpu_s"),
            "wall ms": milliseconds,
        },
    ]
    checks = [
        Check(f"{fit}, first below 2.5 s", f"{first.wall_s:.2f} s", first.wall_s < 2.5),
        Check(
            f"{fit}, later below {limit} ms",
            f"{milliseconds:.2f} ms",
            milliseconds < limit,
        ),
    ]
    return rows, checks, runs.versions


def case_memmap(store: Store, sizes: Sizes) -> CaseResult:
    path = store.large_map(sizes.map_rows)
    rows, checks, versions = [], [], {}
    for n_jobs in (1, 2):
        arguments = ROWS | {"penalty": 100.0, "random_state": 0, "n_jobs": n_jobs}
        job = Job("kplus_dp_means", [arguments], path, mapped=True, watch=True)
        runs = run_job(job)
        run, versions = runs.runs[0], runs.versions
        peak = run.anonymous_peak_mb or 0.0
        rows.append(
            {
                "threads": n_jobs,
                "K": run.facts["n_clusters"],
                "wall s": run.wall_s,
                "CPU s": run.cpu_s,
                "anonymous MB before": run.anonymous_before_mb,
                "at its peak": peak,
                "with the map's pages": run.peak_mb,
            }
        )
        what = f"n_jobs={n_jobs}: peak above the map's pages below 500 MB"
        checks.append(Check(what, f"{peak:.0f} MB", peak < 500))
    title = f"Memory map of {sizes.map_rows:,} × 20 float32, penalty 100"
    return CaseResult(title, rows, checks, versions=versions)


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "blobs": case_blobs,
    "n-clusters": case_n_clusters,
    "mnist-penalty": case_mnist_penalty,
    "automatic": case_automatic,
    "threads": case_threads,
    "startup": case_startup,
    "memmap": case_memmap,
}


if __name__ == "__main__":
    main("dp_means", CASES, FULL, QUICK)
