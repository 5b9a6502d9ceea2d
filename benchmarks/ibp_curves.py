"""Held-out likelihood against time on synthetic data: Fig. 3 of the paper."""

import statistics
from typing import Any

from data import Store
from ibp_data import synthetic_table
from ibp_methods import (
    IBP_METHODS,
    SAMPLERS,
    VARIATIONAL,
    Method,
    meibp,
    random_start,
    truncated,
    unbounded,
    variational,
)
from ibp_runs import IBPFits, exactly, fit_curve
from ibp_sizes import Shape, Sizes
from ibp_synthetic import shown
from report import CaseResult, Claim, Row, claim

TIMES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # CPU seconds, columns of the table
NEAR = 0.01  # so near to its end a curve has settled
Points = list[dict[str, Any]]


def end(fit: IBPFits) -> float:
    """The last log-likelihood, the median of the starts."""
    return statistics.median(points[-1]["ll"] for points in fit.all("points"))


def best_at(points: Points, seconds: float) -> float | None:
    """The log-likelihood of the longest fit that took no more than so many seconds."""
    done = [point for point in points if point["cpu_s"] <= seconds]
    return max(done, key=lambda point: point["cpu_s"])["ll"] if done else None


def settled(points: Points) -> float:
    """CPU seconds of the first fit from which on all are near the last one."""
    last = points[-1]["ll"]
    first = points[-1]["cpu_s"]
    for point in reversed(points):
        if abs(point["ll"] - last) > NEAR:
            break
        first = point["cpu_s"]
    return float(first)


def settling(fit: IBPFits) -> float:
    return statistics.median(map(settled, fit.all("points")))


def curve_row(shape: Shape, fit: IBPFits) -> Row:
    curves = fit.all("points")
    row: Row = {"data": shown(shape), "method": fit.method, "starts": len(curves)}
    for seconds in TIMES:
        values = [best_at(points, seconds) for points in curves]
        known = [value for value in values if value is not None]
        whole = len(known) == len(curves)
        row[f"{seconds:g} s"] = exactly(statistics.median(known)) if whole else None
    ends = [points[-1] for points in curves]
    return row | {
        "ll, end": exactly(end(fit)),
        "sd": statistics.pstdev(point["ll"] for point in ends),
        "CPU s, end": statistics.median(point["cpu_s"] for point in ends),
        "CPU s, settled": settling(fit),
        "K": statistics.median(point["K"] for point in ends),
    }


def case_curves(store: Store, sizes: Sizes) -> CaseResult:
    rows, claims = [], []
    each = zip(sizes.curves, sizes.curve_starts, sizes.curve_boxes, strict=True)
    for i, (shape, starts, box) in enumerate(each):
        table = synthetic_table(store, *shape)
        fits = {
            method.name: fit_curve(method, table, starts, box)
            for method in curve_methods(shape[2])
        }
        rows += [curve_row(shape, fit) for fit in fits.values()]
        claims.append(small_claim(fits) if i == 0 else large_claim(fits, shape))
    return CaseResult(
        "Held-out log-likelihood against CPU seconds (Fig. 3)",
        rows,
        [],
        [
            "One data set, several starts; medians. A curve is made of fits of 1, 2, "
            "4, ... iterations from the same start, until they converge or have taken "
            f"{' and '.join(f'{box:g}' for box in sizes.curve_boxes)} CPU-s in all. "
            "MEIBP and the variational methods search for a start, those called random "
            "do not; claims are judged by the latter, as the paper starts at random. "
            "Truncated methods, MEIBP, NMF and BNMF are given the true number of "
            f"features, as in the paper. Settled: from there on within {NEAR:g} of the "
            "end. Scales are inferred, but for NMF, which has none."
        ],
        fits["MEIBP"].versions,
        claims,
    )


def curve_methods(k: int) -> list[Method]:
    searched = [meibp(k, "noise"), variational("finite", k), variational("infinite", k)]
    methods = truncated(k, "noise") + unbounded("noise")
    return methods + [random_start(method) for method in searched]


def as_in_the_paper(fits: dict[str, IBPFits]) -> dict[str, IBPFits]:
    """Fits by the names of methods, from random starts where there are such."""
    plain = {name: fit for name, fit in fits.items() if not name.endswith(", random")}
    return {name: fits.get(f"{name}, random", fit) for name, fit in plain.items()}


def times_of(fits: dict[str, IBPFits]) -> str:
    return ", ".join(
        f"{name} {end(fit):.3f} in {settling(fit):.2g} s" for name, fit in fits.items()
    )


def fastest_ibp(times: dict[str, float]) -> bool:
    """Whether no other method with this prior settles sooner than MEIBP."""
    return all(times["MEIBP"] <= times[name] for name in IBP_METHODS if name in times)


def small_claim(all_fits: dict[str, IBPFits]) -> Claim:
    fits = as_in_the_paper(all_fits)
    times = {name: settling(fit) for name, fit in fits.items()}
    ends = {name: end(fit) for name, fit in fits.items()}
    samplers = [name for name in SAMPLERS if name in fits]
    slow = min(times[name] for name in samplers)
    best = max(ends["MEIBP"], ends["UGibbs"])
    return claim(
        "ME-12",
        "small synthetic set: MEIBP the fastest IBP method, BNMF faster still; MEIBP "
        "and UGibbs end above BNMF; variational faster than sampling, but stuck",
        times_of(all_fits),
        fastest_ibp(times),
        times["BNMF"] < times["MEIBP"],
        min(ends["MEIBP"], ends["UGibbs"]) > ends["BNMF"],
        max(times[name] for name in VARIATIONAL) < slow,
        max(ends[name] for name in VARIATIONAL) < best - NEAR,
    )


def large_claim(all_fits: dict[str, IBPFits], shape: Shape) -> Claim:
    fits = as_in_the_paper(all_fits)
    ends = {name: end(fit) for name, fit in fits.items()}
    others = [name for name in IBP_METHODS if name != "MEIBP"]
    return claim(
        "ME-13",
        f"large synthetic set ({shown(shape)} stands for it): only MEIBP ends above "
        "BNMF; uncollapsed samplers do not mix",
        times_of(all_fits),
        ends["MEIBP"] > ends["BNMF"],
        all(ends[name] <= ends["BNMF"] for name in others),
        max(ends["UGibbs"], ends["t-UGibbs"]) < ends["MEIBP"] - NEAR,
    )
