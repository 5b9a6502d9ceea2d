"""Mixtures that find their size: ``python benchmarks/dp_mixture.py [--only CASE,...]``.

Bounds are those of Eq. 8 on all rows, in nats, as the fits report them; tests compare
them with sums over rows. Claims are those of the paper on memoized inference.
"""

import statistics
from collections.abc import Callable

from sklearn.metrics import adjusted_rand_score

from command import main
from compare import value_range
from data import Store, edge_truth, load_digits
from kplus.datasets import make_gaussian_blobs
from mixture_claims import case_births, case_fixed, case_fixed_mnist, case_greedy
from mixture_cost import case_cost, case_growth, case_precision, case_threads
from mixture_splits import case_splits, case_tiny
from mixtures import (
    EDGE_PRIOR,
    FULL,
    MNIST_PRIOR,
    QUICK,
    MixtureFits,
    Sizes,
    fit_settings,
)
from report import CaseResult, Check, Row, claim
from runner import Job, run_job

EDGE_K = 8
GIVEN = f"K = {EDGE_K} given"


def edge_row(fits: MixtureFits, truth, oracle: float) -> Row:
    at_8 = sum(k == EDGE_K for k in fits.components)
    return fits.row() | {
        f"at K = {EDGE_K}": f"{at_8} of {len(fits.runs)}",
        "ARI, lowest": min(fits.aris(truth)),
        "ARI, oracle": oracle,
    }


def case_edge(store: Store, sizes: Sizes) -> CaseResult:
    n, B = sizes.edge_rows, sizes.edge_batches
    prior = EDGE_PRIOR | {"max_iter": sizes.move_passes}
    usual = prior | {"batch_size": n // B}
    settings = {
        f"{B} batches": usual,
        f"{B // 10} batches": prior | {"batch_size": 10 * n // B},
        f"{B * 10} batches": prior | {"batch_size": n // (10 * B)},
        "births from 1000 rows": usual | {"birth_rows": 1000},
        GIVEN: usual | {"moves": [], "n_components": EDGE_K},
        f"{B} batches, dense": usual | {"n_active": None},
    }
    fits = fit_settings(store.edge_patches(n, 0.01), settings, sizes.edge_seeds, n)
    truth, likeliest = edge_truth(n, 0.01)
    oracle = adjusted_rand_score(truth, likeliest)
    rows = [edge_row(fit, truth, oracle) for fit in fits.values()]
    checks = edge_checks(fits, truth, oracle)

    name = f"noise 1e-4, {B} batches"
    sharp = store.edge_patches(n, 1e-4)
    fits |= fit_settings(sharp, {name: usual}, sizes.edge_seeds, n)
    truth, likeliest = edge_truth(n, 1e-4)
    rows.append(edge_row(fits[name], truth, adjusted_rand_score(truth, likeliest)))

    found = fits[f"{B} batches"]
    at_8 = sum(k == EDGE_K for k in found.components)
    share = f"{at_8} of {len(found.runs)}"
    says = "edge patches, 100 batches: 10 of 10 runs from K = 1 find all 8 components"
    passes = statistics.median(found.facts("n_iter"))
    text = f"{share}, {passes:g} passes, {statistics.median(found.cpu):.2f} CPU-s"
    return CaseResult(
        f"Edge patches ({n:,} × 25, 8 components) from K = 1",
        rows,
        checks,
        [
            "Fits with K = 8 given start from rows drawn far apart. With noise 1e-4 "
            "the prior is a thousand times as wide as the noise.",
        ],
        found.versions,
        [claim("MO-11", says, text, at_8 == len(found.runs))],
    )


def edge_checks(fits: dict[str, MixtureFits], truth, oracle: float) -> list[Check]:
    """All at K = 8; the first setting also near the oracle and the best, and fast."""
    checks = []
    for name, fit in fits.items():
        if name != GIVEN:
            reached = value_range(fit.components)
            checks.append(
                Check(f"{name}: all at K = 8", reached, set(fit.components) == {EDGE_K})
            )
    first = next(iter(fits.values()))
    behind = oracle - min(first.aris(truth))
    best = max(
        run.facts["bound"]
        for fit in fits.values()
        for run in fit.runs
        if run.facts["n_components"] == EDGE_K
    )
    short = (best - min(first.bounds)) / abs(best)
    what = "bound within 1e-6 of the best of all fits with K = 8, the dense ones too"
    checks.append(Check(what, f"{short:.1e} below", short <= 1e-6))
    slowest = max(first.cpu)
    return [
        *checks,
        Check(
            "ARI within .002 of the oracle's", f"{behind:.5f} below", behind <= 0.002
        ),
        Check("below 2 CPU-s each", f"{slowest:.2f} s", slowest < 2),
    ]


def case_mnist(store: Store, sizes: Sizes) -> CaseResult:
    """To 1e-3 nats per row: with the default tolerance none converges in 200 passes."""
    k = sizes.mnist_components
    settings = {
        "from K = 1": MNIST_PRIOR,
        f"K = {k} given": MNIST_PRIOR | {"moves": [], "n_components": k},
    }
    plain = settings[f"K = {k} given"] | {"n_active": None}
    settings[f"K = {k} given, every component shares in a row"] = plain
    numbers = (sizes.mnist_moves, sizes.mnist_starts, min(3, sizes.mnist_starts))
    seeds = dict(zip(settings, numbers, strict=True))
    path = store.mnist(sizes.mnist_rows)
    fits = list(fit_settings(path, settings, seeds, sizes.warm_up_rows).values())
    ours, fixed, dense = fits
    digits = load_digits(sizes.mnist_rows)
    aligned = {fit.name: statistics.mean(fit.alignments(digits)) for fit in fits}
    worst, best = min(ours.bounds), max(fixed.bounds)
    cost, cheapest = max(ours.cpu), min(fixed.cpu)
    gap = aligned[fixed.name] - aligned[ours.name]
    above = f"lowest {worst:,.0f}, highest of theirs {best:,.0f}"
    checks = [
        Check(
            f"bound above each of {len(fixed.runs)} with K given", above, worst > best
        ),
        Check("bound above -1,277,000", f"{worst:,.0f}", worst > -1_277_000),
        Check(
            "less CPU than the cheapest of these fits",
            f"{cost:.1f} s against {cheapest:.1f} s",
            cost < cheapest,
        ),
        Check(
            "less CPU than the cheapest where every component shares in a row",
            f"{cost:.1f} s against {min(dense.cpu):.1f} s",
            cost < min(dense.cpu),
        ),
        Check(
            "alignment with digits no more than .01 below theirs",
            f"{gap:+.4f} below",
            gap <= 0.01,
        ),
    ]
    says = (
        "MNIST: from K = 1 to over 80 components, with a higher bound than each of ten "
        "starts at K = 100"
    )
    text = f"K = {value_range(ours.components)}; {above}"
    enough = min(ours.components) > 80
    align = f"{aligned[ours.name]:.3f} against {aligned[fixed.name]:.3f} at K = {k}"
    return CaseResult(
        f"MNIST ({sizes.mnist_rows:,} × 50) from K = 1",
        [fit.row() | {"alignment": aligned[fit.name]} for fit in fits],
        checks,
        ["Alignment: share of rows whose digit is the most common of their component."],
        ours.versions,
        [
            claim("MO-14", says, text, enough, worst > best),
            claim(
                "MO-16",
                "MNIST: births and merges are among the best in alignment with digits",
                align,
                aligned[ours.name] >= aligned[fixed.name] - 0.01,
            ),
        ],
    )


def case_blobs(store: Store, sizes: Sizes) -> CaseResult:
    k = sizes.blobs[2]
    settings = {
        "from K = 1": {},
        f"K = {k} given": {"moves": [], "n_components": k},
    }
    path = store.blobs(*sizes.blobs)
    fits = fit_settings(path, settings, sizes.blob_seeds, 4 * sizes.warm_up_rows)
    ours, fixed = fits.values()
    _, y = make_gaussian_blobs(*sizes.blobs, random_state=0)
    ari, slowest = min(ours.aris(y)), max(ours.cpu)
    lowest, best = min(ours.bounds), max(fixed.bounds)
    far = max(abs(found - k) for found in ours.components)
    checks = [
        Check(f"K = {k} ± 3", value_range(ours.components), far <= 3),
        Check("ARI at least .9995", f"{ari:.5f}", ari >= 0.9995),
        Check("below 20 CPU-s", f"{slowest:.1f} s", slowest < 20),
        Check(
            f"bound not below the best with K = {k} given",
            f"{lowest:,.0f} against {best:,.0f}",
            lowest >= best,
        ),
    ]
    shape = " × ".join(f"{size:,}" for size in sizes.blobs[:2])
    rows = [fit.row() | {"ARI, lowest": min(fit.aris(y))} for fit in (ours, fixed)]
    title = f"Blobs ({shape}, {k} components) from K = 1"
    return CaseResult(title, rows, checks, versions=ours.versions)


def case_small(store: Store, sizes: Sizes) -> CaseResult:
    arguments = [
        {"name": name} for name in sizes.small for _ in range(sizes.repeats + 1)
    ]
    answer = run_job(Job("kplus_small_mixture", arguments))
    rows, checks = [], []
    for i, name in enumerate(sizes.small):
        # The first fit of each loads what is compiled, and the data.
        runs = answer.runs[i * (sizes.repeats + 1) + 1 : (i + 1) * (sizes.repeats + 1)]
        facts = runs[0].facts
        seconds = statistics.median(run.cpu_s for run in runs)
        rows.append(
            {
                "data": name,
                "rows": facts["n_rows"],
                "columns": facts["n_columns"],
                "classes": facts["n_classes"],
                "K": facts["n_components"],
                "ARI": facts["ari"],
                "passes": facts["n_iter"],
                "CPU s": seconds,
            }
        )
        checks.append(
            Check(f"{name}: below .5 CPU-s", f"{seconds:.3f} s", seconds < 0.5)
        )
        said = facts["warnings"]
        checks.append(
            Check(f"{name}: no warnings", "; ".join(said) or "none", not said)
        )
    return CaseResult("Small data, default settings", rows, checks, [], answer.versions)


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "edge": case_edge,
    "mnist": case_mnist,
    "blobs": case_blobs,
    "cost": case_cost,
    "growth": case_growth,
    "threads": case_threads,
    "precision": case_precision,
    "greedy": case_greedy,
    "births": case_births,
    "fixed": case_fixed,
    "fixed-mnist": case_fixed_mnist,
    "splits": case_splits,
    "tiny": case_tiny,
    "small": case_small,
}


if __name__ == "__main__":
    main("dp_mixture", CASES, FULL, QUICK)
