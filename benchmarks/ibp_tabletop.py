"""Tabletop pictures: Griffiths and Ghahramani's sampler against BP-means.

Fig. 1 of MAD-Bayes (Broderick, Kulis & Jordan, ICML 2013).
"""

from collections import Counter
from typing import Any

import numpy as np

from compare import value_range
from data import Store
from feature_fits import LOCAL, FeatureFits, fit_features
from ibp_runs import TASKS
from ibp_sizes import Sizes
from report import CaseResult, Claim, Row, claim
from runner import Job, run_job

PENALTY = 20.0  # λ² at which five features are best in this scaling
# Seconds of a run, seconds in all and number of features, of the paper's Fig. 1.
PAPER = {
    "Gibbs": (8500.0, None, 10),
    "collapsed BP-means": (11.0, 11_000.0, 5),
    "BP-means": (0.36, 360.0, 6),
    "stepwise K-features": (0.10, 155.0, 5),
}
LAST = 100  # draws of which the number of features counts


def case_tabletop(store: Store, sizes: Sizes) -> CaseResult:
    own = {"alpha": 1.0, "factor_scale": float(np.sqrt(0.5)), "start": "shared"}
    (gibbs,), _ = run_gibbs(store, sizes, [own])
    means = means_fits(store, sizes)
    rows = [table_row("Gibbs", 1, gibbs["cpu_s"], gibbs["K"])]
    for name, (starts, fit) in means.items():
        seconds = fit.ms[0] / 1000
        rows.append(table_row(name, starts, seconds, fit.components[0]))
    versions = means["BP-means"][1].versions
    return CaseResult(
        "Tabletop pictures: Gibbs sampling and BP-means (Fig. 1 of MAD-Bayes)",
        rows,
        [],
        [
            f"Gibbs: {sizes.sweeps:,} collapsed sweeps, mass 1, variance of the "
            "features .5, noise inferred, from one feature that all pictures share; K "
            f"of the last draw. The others at λ² = {PENALTY:g}: BP-means and collapsed "
            "from the paper's seed, the best of all runs; K-features from K = 1 on "
            "until one more does not pay, a run for each start and K. The paper's "
            "seconds are those of Matlab on another computer: only ratios compare."
        ],
        versions,
        [number_claim(rows), time_claim(rows, gibbs)],
    )


def run_gibbs(
    store: Store, sizes: Sizes, settings: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Facts of a run of each setting, and versions."""
    asked = [one | {"sweeps": sizes.sweeps, "seed": 0} for one in settings]
    warm = asked[0] | {"sweeps": 2}
    job = Job("tabletop_gibbs", [warm, *asked], store.tabletop(), tasks=TASKS)
    answer = run_job(job)
    return [run.facts for run in answer.runs[1:]], answer.versions


def means_fits(store: Store, sizes: Sizes) -> dict[str, tuple[int, FeatureFits]]:
    """Runs and the best of them, for each algorithm of the paper."""
    plain = {"kind": "BPMeans", "penalty": PENALTY, "init": "++", "effort": 0.0}
    settings = {
        "collapsed BP-means": plain
        | {"n_init": sizes.starts, "effort": LOCAL, "collapsed": True},
        "BP-means": plain | {"n_init": sizes.starts},
        "stepwise K-features": plain
        | {"kind": "KFeatures", "n_init": sizes.step_starts},
    }
    fits = fit_features(settings, 1, store.tabletop())
    found = {}
    for name, fit in fits.items():
        starts = settings[name]["n_init"]
        if name == "stepwise K-features":
            starts *= fit.components[0] + 1  # the one beyond did not pay
        found[name] = (starts, fit)
    return found


def table_row(name: str, starts: int, seconds: float, k: int) -> Row:
    per_run, total, number = PAPER[name]
    return {
        "algorithm": name,
        "runs": starts,
        "CPU s a run": seconds / starts,
        "CPU s in all": seconds,
        "K": k,
        "paper: s a run": per_run,
        "paper: s in all": total,
        "paper: K": number,
    }


def number_claim(rows: list[Row]) -> Claim:
    found = ", ".join(f"{row['algorithm']} {row['K']}" for row in rows)
    same = [row["K"] == row["paper: K"] for row in rows]
    says = "features found: Gibbs 10, collapsed 5, BP-means 6, stepwise K-features 5"
    return claim("MB-11", says, found, *same)


def time_claim(rows: list[Row], gibbs: dict[str, Any]) -> Claim:
    gibbs_s = gibbs["cpu_s"]
    collapsed, plain, steps = (row["CPU s a run"] for row in rows[1:])
    found = (
        f"CPU s a run: Gibbs {gibbs_s:.3g}, collapsed {collapsed:.2g}, BP-means "
        f"{plain:.2g}, stepwise {steps:.2g}; all BP-means runs "
        f"{rows[2]['CPU s in all']:.2g}"
    )
    says = (
        "Gibbs 8500 s, collapsed 11, BP-means .36, stepwise .10 a run: 1000 runs of "
        "BP-means cost a tenth of one of Gibbs; stepwise is the fastest"
    )
    return claim(
        "MB-12",
        says,
        found,
        gibbs_s > collapsed > plain,
        10 * rows[2]["CPU s in all"] <= gibbs_s,
        steps < plain,
    )


STARTS = ("shared", "random 5", "random 10", "BP-means")


def case_histogram(store: Store, sizes: Sizes) -> CaseResult:
    """MB-15: how many features the sampler has, whatever it starts from."""
    given = [
        {"start": start, "alpha": mass, "factor_scale": float(np.sqrt(variance))}
        for start in STARTS
        for mass in sizes.masses
        for variance in sizes.factor_variances
    ]
    settings = [*given, *({"start": start} for start in STARTS)]
    found, versions = run_gibbs(store, sizes, settings)
    return CaseResult(
        "Tabletop pictures: how many features Gibbs sampling has",
        [histogram_row(*pair) for pair in zip(settings, found, strict=True)],
        [],
        [
            f"{sizes.sweeps:,} collapsed sweeps each, the last {LAST} draws; noise "
            "inferred. The paper's parameters are starting values with priors that it "
            "does not state; here mass and variance of the features stay as given, or "
            'are inferred. Its "mean-noise parameter" is taken as that variance.'
        ],
        versions,
        [histogram_claim(found[: len(given)], found[len(given) :])],
    )


def histogram_row(settings: dict[str, Any], facts: dict[str, Any]) -> Row:
    scale = settings.get("factor_scale")
    last = facts["numbers"][-LAST:]
    return {
        "start": settings["start"],
        "mass": f"{settings['alpha']:g}" if "alpha" in settings else "inferred",
        "variance of features": "inferred" if scale is None else f"{scale**2:g}",
        "K, last draws": value_range(last),
        "K, median": float(np.median(last)),
        "noise": facts["noise_scale"],
        "CPU s": facts["cpu_s"],
    }


def histogram_claim(found: list[dict[str, Any]], free: list[dict[str, Any]]) -> Claim:
    given, inferred = (
        Counter(k for facts in runs for k in facts["numbers"][-LAST:])
        for runs in (found, free)
    )
    shown = ", ".join(f"{k}: {n}" for k, n in sorted(given.items()))
    return claim(
        "MB-15",
        "the sampler never has fewer than 7 features, for any start, mass and variance",
        f"draws by K, mass and variance given: {shown}; inferred: K = "
        f"{value_range(list(inferred))}",
        min(given) >= 7,
        min(inferred) >= 7,
    )
