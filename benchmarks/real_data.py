"""Default answers on data that nobody chose for us: ``python benchmarks/real_data.py``.

The battery is half of Gagolewski's clustering-data-v1. Several reference partitions may
be right: the best counts. Rows marked as noise (0) are left out of the score.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from command import main
from data import Store, shared_data
from kplus import DPMeans, DPMixture
from real_data_heavy import case_heavy, case_mclust
from real_data_mixed import case_mixed
from real_data_model import case_model
from report import CaseResult, Check, Row


@dataclass(frozen=True)
class Sizes:
    """How much of each case is run."""

    sets: int | None  # of the battery; None: all
    seeds: int
    rows: int  # of the tables that differ in one column
    wide_rows: int
    draws: int  # of each family, from the model
    table_seeds: int
    most_rows: int  # of the table of any shapes
    share: float  # of the rows of tables with heavy tails
    tables: tuple[str, ...] | None = None  # with categories; None: all


FULL = Sizes(None, 5, 20_000, 3_000, 20, 2, 10_000_000, 1.0)
QUICK = Sizes(2, 1, 300, 200, 2, 1, 3_000, 0.1, ("Monk-3",))


def battery(most: int | None) -> Iterator[tuple[str, np.ndarray, list[np.ndarray]]]:
    """Name, rows and reference partitions of each set."""
    with np.load(shared_data("clustering_battery_dev.npz")) as file:
        names = sorted({key.rsplit("__", 1)[0] for key in file.files})
        for name in names[:most]:
            keys = [key for key in file.files if key.startswith(f"{name}__labels")]
            X = file[f"{name}__X"].astype(np.float64)
            yield name, X, [file[key] for key in sorted(keys)]


def score(references: list[np.ndarray], labels: np.ndarray) -> float:
    """Adjusted Rand index against the partition that agrees best."""
    return max(float(adjusted_rand_score(y[y > 0], labels[y > 0])) for y in references)


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(), time.process_time() - start


def peers(X: np.ndarray, K: int) -> dict[str, Callable[[], np.ndarray]]:
    """What others find: two are told the number, one is not."""
    Z = StandardScaler().fit_transform(X)
    smallest = max(2, len(X) // 100)
    return {
        "KMeans told K": lambda: KMeans(K, n_init=3, random_state=0).fit_predict(Z),
        "GaussianMixture told K": lambda: GaussianMixture(
            K, n_init=3, random_state=0
        ).fit_predict(Z),
        "HDBSCAN": lambda: HDBSCAN(min_cluster_size=smallest).fit_predict(X),
    }


def case_battery(store: Store, sizes: Sizes) -> CaseResult:
    """The default of `DPMixture`, its tree cut at the true number, and others."""
    rows: list[Row] = []
    for name, X, references in battery(sizes.sets):
        numbers = [len(np.unique(y[y > 0])) for y in references]
        model, seconds = timed(lambda X=X: DPMixture(random_state=0).fit(X))
        tree, own = model.cluster_tree_, model.component_labels_
        cuts = [tree.cut(min(K, tree.n_leaves))[own] for K in numbers]
        row: Row = {
            "set": name.replace("__", "/"),
            "true K": numbers[0],
            "chosen": model.choice_.split(":")[0],
            "components": model.n_components_,
            "clusters": model.n_clusters_,
            "DPMixture": score(references, model.labels_),
            "cut at K": max(score(references, cut) for cut in cuts),
            "DPMeans, cells": score(references, _cells(X).labels_),
        }
        for peer in peers(X, numbers[0]):
            found = [
                timed(peers(X, K)[peer])[0] for K in dict.fromkeys(numbers)
            ]  # the best of the numbers that may be right
            row[peer] = max(score(references, labels) for labels in found)
        rows.append(row | {"CPU s": seconds})
    return CaseResult("Clusters of 37 sets: adjusted Rand index", *_means(rows))


def _cells(X: np.ndarray) -> DPMeans:
    Z = StandardScaler().fit_transform(X)
    model: DPMeans = timed(lambda: DPMeans(cells="auto", random_state=0).fit(Z))[0]
    return model


def case_large(store: Store, sizes: Sizes) -> CaseResult:
    """A ring, a disc in it, an arc and another disc: how many rows are too many?"""
    rows, checks = [], []
    for n in (sizes.most_rows // 100, sizes.most_rows // 10, sizes.most_rows):
        X, y = _shapes(n)
        model, seconds = timed(
            lambda X=X: DPMeans(cells="auto", random_state=0, n_jobs=2).fit(X)
        )
        some = slice(None, None, max(1, n // 100_000))
        ari = float(adjusted_rand_score(y[some], model.labels_[some]))
        cells, clusters = len(model.cell_centers_), model.n_clusters_
        rows.append(
            {"rows": n, "cells": cells, "clusters": clusters, "ARI": ari,
             "CPU s": seconds, "MB, process": model.fit_report_.peak_memory / 1e6}
        )  # fmt: skip
        right = clusters == 4 and ari > 0.99
        checks.append(Check(f"{n:,} rows: four clusters", f"{clusters}", right))
    return CaseResult("Clusters of any shape by cells", rows, checks)


def _shapes(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y, angle = rng.integers(0, 4, n), rng.uniform(0, 2 * np.pi, n)
    turn = np.where(y == 2, angle / 2, angle)  # half a circle
    radius = np.array([5.0, 0.0, 4.0, 0.0])[y]
    middle = np.array([[0, 0], [0, 0], [8, -7], [14, 5.0]])[y]
    spread = np.array([0.25, 0.65, 0.25, 0.6])[y, None]
    X = middle + radius[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return (X + spread * rng.normal(size=X.shape)).astype(np.float32), y


def _means(rows: list[Row]) -> tuple[list[Row], list[Check]]:
    """Rows with the means of all, and of every other one, below; and the targets."""
    columns = [name for name in rows[0] if isinstance(rows[0][name], float)]
    below = []
    parts = {"mean": rows, "mean, 1st, 3rd, …": rows[::2], "mean, others": rows[1::2]}
    for title, part in parts.items():
        means = {name: float(np.mean([row[name] for row in part])) for name in columns}
        below.append(dict.fromkeys(rows[0]) | {"set": title} | means)
    exact = {"sipu/a2": 35, "sipu/d31": 31, "sipu/r15": 15}
    found = {row["set"]: row["clusters"] for row in rows if row["set"] in exact}
    auto, cut = below[0]["DPMixture"], below[0]["cut at K"]
    checks = [
        Check("mean of the default at least .70", f"{auto:.3f}", auto >= 0.70),
        Check("mean at the true number at least .75", f"{cut:.3f}", cut >= 0.75),
        Check("a2, d31 and r15 exactly", str(found), found == exact),
    ]
    return rows + below, checks


def case_seeds(store: Store, sizes: Sizes) -> CaseResult:
    """Whether the answer depends on the seed, and how good it is."""
    rows, checks = [], []
    for name, (X, y) in _classic().items():
        models = [
            timed(lambda X=X, seed=seed: DPMixture(random_state=seed).fit(X))
            for seed in range(sizes.seeds)
        ]
        bounds = np.array([model.lower_bound_ for model, _ in models])
        spread = float(np.ptp(bounds)) / len(X)
        scores = [float(adjusted_rand_score(y, model.labels_)) for model, _ in models]
        rows.append(
            {
                "set": name,
                "best bound": float(bounds.max()),
                "spread, nats per row": spread,
                "components": _range(model.n_components_ for model, _ in models),
                "clusters": _range(model.n_clusters_ for model, _ in models),
                "ARI, median": float(np.median(scores)),
                "CPU s": float(np.mean([seconds for _, seconds in models])),
            }
        )
        target = f"{name}: seeds within .1 nats per row"
        checks.append(Check(target, f"{spread:.3f}", spread <= 0.1))
    return CaseResult("Five seeds on classic tables", rows, checks)


def _classic() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    digits = datasets.load_digits()
    reduced = PCA(20, random_state=0).fit_transform(digits.data)
    tables = {
        "wine": datasets.load_wine(return_X_y=True),
        "iris": datasets.load_iris(return_X_y=True),
        "breast cancer": datasets.load_breast_cancer(return_X_y=True),
    }
    for name, X, references in battery(None):
        if name in ("uci__glass", "uci__yeast"):
            tables[name.removeprefix("uci__")] = (X, references[0])
    return tables | {"digits, 20 components": (reduced, digits.target)}


def _range(numbers: Any) -> str:
    low, *_, high = (ordered := sorted(numbers))[0], ordered[-1]
    return str(low) if low == high else f"{low} to {high}"


def case_columns(store: Store, sizes: Sizes) -> CaseResult:
    """Two groups that differ in one of many columns, their number open and given."""
    rows, checks = [], []
    tables = ((sizes.rows, 20, 6.0), (sizes.wide_rows, 100, 10.0))
    for n, D, apart in tables:
        for family in ("gaussian", "diag_gaussian"):
            seeds = range(4 * sizes.seeds)
            fits = [_two(n, D, apart, family, seed) for seed in seeds]
            told = [_two(n, D, apart, family, seed, 2) for seed in seeds]
            right = sum(fit["K"] == 2 and fit["ARI"] > 0.98 for fit in fits)
            behind = max(fit["oracle"] - fit["ARI"] for fit in told)
            rows.append(
                {
                    "table": f"{n:,} × {D}, {apart:g} sd in one column",
                    "family": family,
                    "two clusters, right": right,
                    "of": len(fits),
                    "ARI, mean": _mean(fits, "ARI"),
                    "ARI, K given": _mean(told, "ARI"),
                    "ARI, K given, lowest": min(fit["ARI"] for fit in told),
                    "ARI, oracle": _mean(told, "oracle"),
                    "CPU s": _mean(fits, "CPU s"),
                    "CPU s, K given": _mean(told, "CPU s"),
                }
            )
            target = f"{family}, {D} columns: always both groups"
            checks.append(Check(target, f"{right}/{len(fits)}", right == len(fits)))
            target = f"{family}, {D} columns, K given: ARI within .002 of the oracle's"
            checks.append(Check(target, f"{behind:.4f} below", behind <= 0.002))
    note = (
        "The oracle cuts half-way between the true means: of groups 6 sd apart it "
        "mistakes .13 % of the rows, so that nobody reaches an ARI of 1."
    )
    title = "Groups that differ in one of many columns"
    return CaseResult(title, rows, checks, [note])


def _two(
    n: int, D: int, apart: float, family: str, seed: int, K: int | str = "auto"
) -> dict[str, float]:
    rng = np.random.default_rng(100 + seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, D))
    X[:, D // 2] += apart * y
    model, seconds = timed(
        lambda: DPMixture(family, n_clusters=K, random_state=seed).fit(X)
    )
    return {
        "K": model.n_clusters_,
        "ARI": float(adjusted_rand_score(y, model.labels_)),
        "oracle": float(adjusted_rand_score(y, X[:, D // 2] > 0.5 * apart)),
        "CPU s": seconds,
    }


def _mean(fits: list[dict[str, float]], name: str) -> float:
    return float(np.mean([fit[name] for fit in fits]))


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "battery": case_battery,
    "seeds": case_seeds,
    "columns": case_columns,
    "large": case_large,
    "heavy": lambda store, sizes: case_heavy(store, sizes.table_seeds, sizes.share),
    "mclust": lambda store, sizes: case_mclust(store, sizes.sets),
    "mixed": lambda store, sizes: case_mixed(store, sizes.table_seeds, sizes.tables),
    "model": lambda store, sizes: case_model(sizes.draws),
}

if __name__ == "__main__":
    main("real_data", CASES, FULL, QUICK)
