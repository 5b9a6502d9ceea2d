"""Tables of many columns: ``python benchmarks/wide_tables.py``.

`factor_gaussian` with its defaults against k-means that is told the number, and against
UMAP with HDBSCAN where umap-learn is installed. The tables of the first case were
looked at when the family was built, those of the second only when it was done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score

from command import main
from data import Store, shared_data
from kplus import DPMixture
from real_data import timed
from report import CaseResult, Check, Row

Tables = dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]


@dataclass(frozen=True)
class Sizes:
    """How much of each case is run."""

    most: int | None  # rows of each table; None: all
    tables: int | None  # of each case


FULL = Sizes(None, None)
QUICK = Sizes(120, 1)


def cells(
    seed: int, n: int = 700, D: int = 765, K: int = 8, apart: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Made single cells: logarithms of counts that vary more than a Poisson's.

    Each kind has a twentieth of the genes of its own; three programmes that have
    nothing to do with the kinds, and the depth of reading, vary in all of them.
    """
    rng = np.random.default_rng(seed)
    usual = np.exp(rng.normal(0.0, 1.5, D))
    y = rng.choice(K, n, p=rng.dirichlet(np.full(K, 2.0)))
    kinds = np.tile(usual, (K, 1))
    for kind in kinds:
        own = rng.random(D) < 0.05
        kind[own] *= np.exp(rng.normal(apart, apart, own.sum()))
    programmes = rng.normal(0.0, 0.4, (3, D)) * (rng.random((3, D)) < 0.2)
    rates = kinds[y] * np.exp(rng.normal(size=(n, 3)) @ programmes)
    depth = 2000.0 * np.exp(rng.normal(0.0, 0.4, (n, 1)))
    rates *= depth / rates.sum(axis=1, keepdims=True)
    counts = rng.poisson(rates * rng.gamma(2.0, 0.5, rates.shape))
    total = counts.sum(axis=1, keepdims=True)
    return np.log1p(counts / total * np.median(total)), y


def _shared(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(shared_data(name)) as file:
        return file["X"].reshape(len(file["X"]), -1).astype(np.float64), file["y"]


SEEN: Tables = {
    "made cells": lambda: cells(0),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "Olivetti faces": lambda: _shared("olivetti.npz"),
}
UNSEEN: Tables = {
    "made cells, seed 10": lambda: cells(10),
    "made cells, nearer": lambda: cells(11, apart=0.7),
    "made cells, 189 of 5,000 genes": lambda: cells(12, 189, 5_000, 7),
    "MNIST, test": lambda: _shared("mnist_test.npz"),
    "Yale B faces, 48 × 42": lambda: _shared("yaleb_48x42.npz"),
    "spam": lambda: _shared("spambase.npz"),
}


def _umap(X: np.ndarray) -> np.ndarray:
    from umap import UMAP

    Z = UMAP(random_state=0, n_jobs=1).fit_transform(X)
    labels: np.ndarray = HDBSCAN(min_cluster_size=max(5, len(X) // 100)).fit_predict(Z)
    return labels


def _compared(tables: Tables, sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    for name in list(tables)[: sizes.tables]:
        X, y = (part[: sizes.most] for part in tables[name]())
        K = len(np.unique(y))
        with get_context("spawn").Pool(1) as pool:  # whose memory nothing else has had
            model, seconds, memory = pool.apply(_fitted, (X,))
        tree, own = model.cluster_tree_, model.component_labels_
        row: Row = {
            "table": name,
            "rows": len(X),
            "columns": X.shape[1],
            "factors": len(model.factors_),
            "true K": K,
            "components": model.n_components_,
            "clusters": model.n_clusters_,
            "ARI": _ari(y, model.labels_),
            "cut at K": _ari(y, tree.cut(min(K, tree.n_leaves))[own]),
            "CPU s": seconds,
            "MB, more": memory,
        }
        means, seconds = timed(
            lambda X=X, K=K: KMeans(K, n_init=10, random_state=0).fit_predict(X)
        )
        row |= {"KMeans told K": _ari(y, means), "its CPU s": seconds}
        if find_spec("umap") is not None:
            found, seconds = timed(lambda X=X: _umap(X))
            row |= {"UMAP, HDBSCAN": _ari(y, found), "their CPU s": seconds}
        rows.append(row)
    return rows


def _ari(y: np.ndarray, labels: np.ndarray) -> float:
    return float(adjusted_rand_score(y, labels))


def _fitted(X: np.ndarray) -> tuple[DPMixture, float, float]:
    """A fit, its CPU seconds, and the memory that it took beside the data, in MB."""
    before = _peak()
    model, seconds = timed(lambda: DPMixture("factor_gaussian", random_state=0).fit(X))
    return model, seconds, _peak() - before


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def _checks(rows: list[Row]) -> list[Check]:
    """Cost by size, and quality beside k-means in the mean of the tables."""
    checks = []
    for row in rows:
        n, D, seconds = (row[key] for key in ("rows", "columns", "CPU s"))
        most = 10.0 if n * D <= 1_000_000 else 60.0
        target = f"{row['table']}: at most {most:g} CPU-s"
        checks.append(Check(target, f"{seconds:.1f}", seconds <= most))
        room = 2 * 8e-6 * n * D + 500.0
        target = f"{row['table']}: twice the data and 500 MB more"
        memory = row["MB, more"]
        checks.append(Check(target, f"{memory:.0f} MB", memory <= room))
    ours, theirs = (
        float(np.mean([row[key] for row in rows])) for key in ("ARI", "KMeans told K")
    )
    value = f"{ours:.2f}, {theirs:.2f}"
    return [*checks, Check("mean not below k-means told K", value, ours >= theirs)]


def case_seen(store: Store, sizes: Sizes) -> CaseResult:
    rows = _compared(SEEN, sizes)
    return CaseResult("Wide tables that were looked at", rows, _checks(rows))


def case_unseen(store: Store, sizes: Sizes) -> CaseResult:
    rows = _compared(UNSEEN, sizes)
    return CaseResult("Wide tables that were not", rows, _checks(rows))


def case_gaps(store: Store, sizes: Sizes) -> CaseResult:
    """A tenth of made cells removed: clusters, and what is filled in, in deviations."""
    rows: list[Row] = []
    for name, seed in (("seed 0, looked at", 0), ("seed 20", 20)):
        X, y = (part[: sizes.most] for part in cells(seed))
        if sizes.most is not None:
            X = X[:, : sizes.most]
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
        gaps = np.random.default_rng(seed).random(X.shape) < 0.1
        holes = np.where(gaps, np.nan, X)
        row: Row = {"table": name, "rows": len(X), "columns": X.shape[1]}
        for family in ("factor_gaussian", "diag_gaussian"):
            model, seconds = timed(
                lambda holes=holes, family=family: DPMixture(
                    family, random_state=0, n_jobs=1
                ).fit(holes)
            )
            error = np.sqrt(np.mean((model.impute(holes) - X)[gaps] ** 2))
            row |= {
                f"{family}: clusters": model.n_clusters_,
                f"{family}: ARI": _ari(y, model.labels_),
                f"{family}: RMSE": float(error),
                f"{family}: CPU s": seconds,
            }
        whole = DPMixture("factor_gaussian", random_state=0, n_jobs=1).fit(X)
        row["ARI without gaps"] = _ari(y, whole.labels_)
        row["RMSE of means"] = float(np.sqrt(np.mean(X[gaps] ** 2)))
        rows.append(row)
        if sizes.tables is not None:
            break
    ours, whole_ones = (
        np.mean([row[key] for row in rows])
        for key in ("factor_gaussian: ARI", "ARI without gaps")
    )
    close = Check(
        "mean ARI within .05 of that without gaps",
        f"{ours:.2f}, {whole_ones:.2f}",
        bool(ours >= whole_ones - 0.05),
    )
    slowest = max(row["factor_gaussian: CPU s"] for row in rows)
    quick = Check("at most 30 CPU-s", f"{slowest:.1f}", slowest <= 30.0)
    return CaseResult("Made cells, a tenth removed", rows, [close, quick])


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "seen": case_seen,
    "unseen": case_unseen,
    "gaps": case_gaps,
}

if __name__ == "__main__":
    main("wide_tables", CASES, FULL, QUICK)
