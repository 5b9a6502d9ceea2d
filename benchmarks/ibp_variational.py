"""Many rows for the variational method: even noise, and noise of its own per column."""

import time

import numpy as np

from data import Store
from ibp_sizes import Sizes
from kplus import IBPVariational
from report import CaseResult, Check, Row

WANTED = 20.0  # CPU seconds


def case_variational(store: Store, sizes: Sizes) -> CaseResult:
    """100,000 × 50 with ten features: how many are found, and what that takes."""
    N, D, K = max(sizes.large_rows), 50, 10
    rows: list[Row] = []
    for noise, low, high in (("even", 0.5, 0.5), ("by columns", 0.2, 1.0)):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X = (rng.random((N, K)) < 0.3) @ rng.normal(size=(K, D))
            X += rng.uniform(low, high, D) * rng.normal(size=(N, D))
            start = time.process_time()
            model = IBPVariational(random_state=0).fit(X)
            rows.append(
                {
                    "noise": noise,
                    "seed": seed,
                    "CPU s": time.process_time() - start,
                    "made": K,
                    "found": model.n_components_,
                    "passes": model.n_iter_,
                }
            )
    slowest = max(row["CPU s"] for row in rows)
    right = sum(row["found"] == K for row in rows)
    checks = [
        Check(f"under {WANTED:.0f} CPU-s", f"{slowest:.1f}", slowest < WANTED),
        Check("as many as were made", f"{right}/{len(rows)}", right == len(rows)),
    ]
    return CaseResult(f"IBPVariational, {N:,} × {D}", rows, checks)
