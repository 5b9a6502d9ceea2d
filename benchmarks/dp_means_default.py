"""`DPMeans()` with nothing given: ``python benchmarks/dp_means_default.py``.

The rules were tuned on the 1st, 3rd, … set of the battery and on made tables; the
others were looked at when they were done.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from command import main
from data import Store
from kplus import DPMeans
from real_data import battery, score, timed
from report import CaseResult, Check, Row


@dataclass(frozen=True)
class Sizes:
    """How much of each case is run."""

    sets: int | None  # of the battery; None: all
    tables: tuple[tuple[int, int, int], ...]  # rows, columns, groups


FULL = Sizes(None, ((2_000, 5, 8), (20_000, 10, 10), (200_000, 20, 20)))
QUICK = Sizes(2, ((300, 2, 3),))
_RIGHT = 0.9  # adjusted Rand index


def case_battery(store: Store, sizes: Sizes) -> CaseResult:
    """Adjusted Rand index, and whether what is wrong is said to be unclear."""
    rows: list[Row] = []
    for name, X, references in battery(sizes.sets):
        model, seconds = timed(lambda X=X: DPMeans(scale=True, random_state=0).fit(X))
        rows.append(
            {
                "set": name.replace("__", "/"),
                "true K": len(np.unique(references[0][references[0] > 0])),
                "K": model.n_clusters_,
                "of cells": hasattr(model, "cell_centers_"),
                "ARI": score(references, model.labels_),
                "clear": model.path_.is_clear,
                "runners-up": ", ".join(map(str, model.path_.runners_up)),
                "CPU s": seconds,
            }
        )
    parts = {"mean": rows, "mean, 1st, 3rd, …": rows[::2], "mean, others": rows[1::2]}
    means = [_summary(title, part) for title, part in parts.items()]
    ari = means[0]["ARI"]
    wrong = [row for row in rows if row["ARI"] < _RIGHT]
    said = sum(not row["clear"] for row in wrong)
    checks = [
        Check("mean ARI at least .60", f"{ari:.3f}", ari >= 0.60),
        Check(
            f"of the sets with ARI below {_RIGHT} at least 70 % are not clear",
            f"{said}/{len(wrong)}",
            said >= 0.7 * len(wrong),
        ),
    ]
    title = "DPMeans(scale=True) on the battery"
    return CaseResult(title, rows + means, checks)


def _summary(title: str, part: list[Row]) -> Row:
    wrong = [row for row in part if row["ARI"] < _RIGHT]
    said = sum(not row["clear"] for row in wrong)
    return dict.fromkeys(part[0]) | {
        "set": title,
        "ARI": float(np.mean([row["ARI"] for row in part])),
        "clear": f"of {len(wrong)} wrong {said} not",
        "CPU s": float(np.mean([row["CPU s"] for row in part])),
    }


def case_cost(store: Store, sizes: Sizes) -> CaseResult:
    """What the choice costs beside a fit with K given: the quicker of two runs each."""
    rows, checks = [], []
    rng = np.random.default_rng(0)
    for n, D, K in sizes.tables:
        centers = rng.normal(0, 5, (K, D))
        X = centers[rng.integers(0, K, n)] + rng.normal(size=(n, D))
        auto = [timed(lambda X=X: _fit(X)) for _ in range(2)]
        found = auto[0][0].n_clusters_
        given = [timed(lambda X=X, K=found: _fit(X, K)) for _ in range(2)]
        costs = [min(seconds for _, seconds in fits) for fits in (auto, given)]
        ratio = costs[0] / max(costs[1], 1e-9)
        rows.append(
            {"table": f"{n:,} × {D}", "true K": K, "K": found, "CPU s": costs[0],
             "K given, CPU s": costs[1], "ratio": ratio}
        )  # fmt: skip
        target = f"{n:,} × {D}: at most three times the fit with K given"
        checks.append(Check(target, f"{ratio:.1f}", ratio <= 3.0))
    return CaseResult("Cost of the automatic choice", rows, checks)


def _fit(X: np.ndarray, K: int | None = None) -> DPMeans:
    return DPMeans(n_clusters=K, random_state=0, n_jobs=1).fit(X)


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "battery": case_battery,
    "cost": case_cost,
}

if __name__ == "__main__":
    main("dp_means_default", CASES, FULL, QUICK)
