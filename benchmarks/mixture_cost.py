"""What a pass of a mixture's fit costs: posteriors, K, threads, precision."""

import numpy as np

from data import Store
from mixtures import Parameters, Sizes, fit_settings, pass_runs, per_pass
from report import CaseResult, Check, Row

POSTERIORS = {"sparse": "auto", "dense": None}
# Every fifth pass of a sparse posterior looks at every component: whole rounds count.
PASSES = (5, 15)


def keeping(k: int, n_active: str | None) -> Parameters:
    """A fit that keeps to k components, from rows drawn far apart."""
    return {"moves": [], "n_components": k, "n_active": n_active}


def restless(k: int, n_active: str | None) -> Parameters:
    """The same, for as many passes as it may make."""
    return keeping(k, n_active) | {"tol": 0.0}


def shape_of(sizes: tuple[int, int, int]) -> str:
    return " × ".join(f"{size:,}" for size in sizes[:2])


def case_cost(store: Store, sizes: Sizes) -> CaseResult:
    path, k = store.blobs(*sizes.blobs), sizes.blobs[2]
    peer = "BayesianGaussianMixture"
    theirs = pass_runs(
        "sklearn_bayesian_mixture",
        path,
        {peer: {"n_components": k}},
        (1, 4),
        sizes.repeats,
    )[peer]
    settings = {name: restless(k, active) for name, active in POSTERIORS.items()}
    ours = pass_runs("kplus_dp_mixture", path, settings, PASSES, sizes.repeats)
    base = per_pass(theirs.runs)
    rows: list[Row] = [{"pass of": peer, "CPU s": base, "times less": 1.0}]
    checks = []
    for name, least in (("dense", 4), ("sparse", 10)):
        seconds = per_pass(ours[name].runs)
        ratio = base / seconds
        rows.append(
            {"pass of": f"kplus, {name}", "CPU s": seconds, "times less": ratio}
        )
        what = f"{name}: at least {least} times less CPU than {peer}"
        checks.append(Check(what, f"{ratio:.1f} times", ratio >= least))
    checks.append(sparse_loss(store, sizes))
    title = (
        f"One pass over blobs ({shape_of(sizes.blobs)}, float64), K = {k}, full "
        f"covariances, one thread"
    )
    return CaseResult(title, rows, checks, [], ours["dense"].versions)


def sparse_loss(store: Store, sizes: Sizes) -> Check:
    """What bound a sparse posterior ends at, from the same start as a dense one."""
    k = sizes.blobs[2]
    settings = {name: keeping(k, active) for name, active in POSTERIORS.items()}
    ends = fit_settings(store.blobs(*sizes.blobs), settings, 1, sizes.warm_up_rows)
    lost = (ends["dense"].bounds[0] - ends["sparse"].bounds[0]) / sizes.blobs[0]
    what = "sparse: converged bound within .002 nats per row of the dense one"
    return Check(what, f"{-lost:+.5f}", abs(lost) <= 0.002)


def case_growth(store: Store, sizes: Sizes) -> CaseResult:
    path = store.blobs(*sizes.blobs)
    settings = {f"K = {k}": restless(k, "auto") for k in sizes.growth}
    found = pass_runs("kplus_dp_mixture", path, settings, PASSES, 1)
    seconds = [per_pass(fits.runs) for fits in found.values()]
    rows: list[Row] = [
        {"K": k, "CPU s a pass": cpu}
        for k, cpu in zip(sizes.growth, seconds, strict=True)
    ]
    few, many = sizes.growth[0], sizes.growth[-1]
    grown = seconds[-1] / seconds[0]
    what = f"less than linear from K = {few} to {many}"
    reached = f"{grown:.1f} times for {many / few:g} times K"
    checks = [Check(what, reached, grown < many / few)]
    title = "Cost of a pass by the number of components, blobs, sparse posterior"
    versions = next(iter(found.values())).versions
    return CaseResult(title, rows, checks, [], versions)


def case_threads(store: Store, sizes: Sizes) -> CaseResult:
    path, k = store.blobs(*sizes.thread_blobs), sizes.thread_blobs[2]
    settings = {
        f"{name}, {n_jobs}": restless(k, active) | {"n_jobs": n_jobs}
        for name, active in POSTERIORS.items()
        for n_jobs in (1, 2)
    }
    found = pass_runs("kplus_dp_mixture", path, settings, PASSES, sizes.repeats)
    rows, checks = [], []
    for name in POSTERIORS:
        walls = []
        for n_jobs in (1, 2):
            runs = found[f"{name}, {n_jobs}"].runs
            walls.append(per_pass(runs, "wall_s"))
            row = {
                "posterior": name,
                "threads": n_jobs,
                "wall s a pass": walls[-1],
                "CPU s a pass": per_pass(runs),
                "wall s, whole fit": max(run.wall_s for run in runs),
            }
            rows.append(row)
        what = f"{name}: two threads at least 1.7 times one"
        speedup = walls[0] / walls[1]
        checks.append(Check(what, f"{speedup:.2f} times", speedup >= 1.7))
    title = f"Two threads against one: blobs ({shape_of(sizes.thread_blobs)}), K = {k}"
    versions = next(iter(found.values())).versions
    return CaseResult(title, rows, checks, [], versions)


def case_precision(store: Store, sizes: Sizes) -> CaseResult:
    wide, k = store.blobs(*sizes.blobs), sizes.blobs[2]
    narrow = store.path(f"{wide.stem}-32", lambda: np.load(wide).astype(np.float32))
    rows: list[Row] = []
    versions: dict[str, str] = {}
    for name, path in {"float64": wide, "float32": narrow}.items():
        setting = {name: restless(k, "auto")}
        fits = pass_runs("kplus_dp_mixture", path, setting, PASSES, sizes.repeats)[name]
        rows.append(
            {
                "rows in": name,
                "MB of rows": path.stat().st_size / 2**20,
                "CPU s a pass": per_pass(fits.runs),
                "grown MB": max(run.grown_mb or 0.0 for run in fits.runs),
                "bound": max(fits.bounds),
            }
        )
        versions = fits.versions
    apart = abs(rows[0]["bound"] - rows[1]["bound"]) / sizes.blobs[0]
    what = "bounds within .001 nats per row of each other"
    checks = [Check(what, f"{apart:.1e}", apart <= 1e-3)]
    title = f"Rows in float32: blobs ({shape_of(sizes.blobs)}), K = {k}"
    return CaseResult(title, rows, checks, [], versions)
