"""Skewed and spiked columns: ``python benchmarks/skewed_tables.py``.

`gaussian`, what "auto" takes of few columns, beside `transformed` and `spiked` with
their own choice of columns, on made tables. Those of seeds below 10 were looked at when
the families were built.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import adjusted_rand_score

from command import main
from data import Store
from kplus import DPMixture
from kplus.observations import Gaussian, Spiked, Transformed
from real_data import timed
from report import CaseResult, Check, Row


@dataclass(frozen=True)
class Sizes:
    """How much of each case is run."""

    rows: int
    tables: int


FULL = Sizes(400, 3)
QUICK = Sizes(80, 1)
Made = tuple[np.ndarray, np.ndarray]


def skewed(seed: int, n: int, K: int = 3) -> Made:
    """Correlated groups: tails to the right and to the left, shares, and neither."""
    rng = np.random.default_rng(seed)
    y, centers = rng.integers(0, K, n), 2.2 * rng.normal(size=(K, 5))
    turns = 0.3 * rng.normal(size=(K, 5, 5)) + 0.7 * np.eye(5)
    Z = centers[y] + np.einsum("nij,nj->ni", turns[y], rng.normal(size=(n, 5)))
    columns = [
        np.exp(0.8 * Z[:, 0]),
        20.0 - np.exp(0.6 * Z[:, 1]),
        1.0 / (1.0 + np.exp(-0.8 * Z[:, 2])),
        rng.gamma(2.0, 1.0, n) + 2.0 * centers[y, 3],
        Z[:, 4],
    ]
    return np.column_stack(columns), y


def spiked(seed: int, n: int, K: int = 3) -> Made:
    """Groups of customers who mostly buy nothing of some things."""
    rng = np.random.default_rng(seed)
    y, centers = rng.integers(0, K, n), 1.5 * rng.normal(size=(K, 4))
    spent = np.exp(centers[y, :2] + 0.5 * rng.normal(size=(n, 2)))
    chances = rng.beta(0.7, 0.7, size=(K, 2))
    spent[rng.random((n, 2)) < chances[y]] = 0.0
    return np.hstack([spent, centers[y, 2:] + 0.7 * rng.normal(size=(n, 2))]), y


def _case(
    title: str,
    make: Callable[[int, int], Made],
    own: Callable[[], object],
    sizes: Sizes,
    name: str,
) -> CaseResult:
    rows: list[Row] = []
    for seed in [*range(sizes.tables), *range(10, 10 + sizes.tables)]:
        X, y = make(seed, sizes.rows)
        row: Row = {"table": f"seed {seed}", "looked at": seed < 10, "true K": 3}
        for label, likelihood in (("gaussian", Gaussian()), (name, own())):
            model, seconds = timed(
                lambda X=X, likelihood=likelihood: DPMixture(
                    likelihood, random_state=0, n_jobs=1
                ).fit(X)
            )
            row |= {
                f"{label}: components": model.n_components_,
                f"{label}: clusters": model.n_clusters_,
                f"{label}: ARI": float(adjusted_rand_score(y, model.labels_)),
                f"{label}: CPU s": seconds,
            }
        rows.append(row)
    checks = []
    for seen in (True, False):
        means = [
            float(
                np.mean(
                    [row[f"{label}: ARI"] for row in rows if row["looked at"] == seen]
                )
            )
            for label in (name, "gaussian")
        ]
        which = "looked at" if seen else "not looked at"
        target = f"mean ARI not below gaussian's, tables {which}"
        value = f"{means[0]:.2f}, {means[1]:.2f}"
        checks.append(Check(target, value, means[0] >= means[1]))
    return CaseResult(title, rows, checks)


def case_skewed(store: Store, sizes: Sizes) -> CaseResult:
    return _case("Skewed columns and shares", skewed, Transformed, sizes, "transformed")


def case_spiked(store: Store, sizes: Sizes) -> CaseResult:
    def own() -> Spiked:
        return Spiked(Transformed())

    return _case("Columns with spikes at 0", spiked, own, sizes, "spiked")


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "skewed": case_skewed,
    "spiked": case_spiked,
}

if __name__ == "__main__":
    main("skewed_tables", CASES, FULL, QUICK)
