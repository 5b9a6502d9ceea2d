"""Sparse tables of counts: ``python benchmarks/sparse_counts.py``.

Families of counts with their defaults, and what "auto" chooses, against k-means on the
leading axes of log(1 + count) and latent Dirichlet allocation, both told the number.
The tables of the first case were looked at when the priors were chosen, those of the
second only when that was done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.decomposition import LatentDirichletAllocation, TruncatedSVD
from sklearn.preprocessing import normalize

from command import main
from data import Store
from kplus import DPMixture
from real_data import timed
from report import CaseResult, Check, Row
from wide_tables import _ari, _peak

Made = tuple[sp.csr_array, np.ndarray]
Tables = dict[str, Callable[[], Made]]

_ROWS_AT_ONCE = 500
_LARGE = 60_000_000  # entries of a table on which slow methods are left out


@dataclass(frozen=True)
class Sizes:
    """How much of each case is run."""

    most: int | None  # rows of each table; None: all
    tables: int | None  # of each case


FULL = Sizes(None, None)
QUICK = Sizes(120, 1)


def cells(
    seed: int,
    n: int = 3_000,
    D: int = 20_000,
    K: int = 8,
    markers: float = 0.01,
    apart: float = 1.5,
    depth: float = 2_000.0,
    more: float | None = None,
) -> Made:
    """Made single cells: log-normal expression, a few genes that mark each kind.

    The depth of reading varies from cell to cell by about 40 %; `more` is the shape of
    gamma factors by which counts vary more than a Poisson's.
    """
    rng = np.random.default_rng(seed)
    usual = np.exp(rng.normal(0.0, 1.5, D))
    y = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    kinds = np.tile(usual, (K, 1))
    for kind in kinds:
        own = rng.random(D) < markers
        kind[own] *= np.exp(rng.normal(apart, 0.5, own.sum()))
    kinds /= kinds.sum(axis=1, keepdims=True)
    parts = []
    for start in range(0, n, _ROWS_AT_ONCE):
        part = y[start : start + _ROWS_AT_ONCE]
        rates = kinds[part] * depth
        rates *= np.exp(rng.normal(0.0, 0.4, (len(part), 1)))
        if more is not None:
            rates *= rng.gamma(more, 1.0 / more, rates.shape)
        parts.append(sp.csr_array(rng.poisson(rates)))
    return sp.csr_array(sp.vstack(parts)), y


def text(
    seed: int,
    n: int = 3_000,
    D: int = 20_000,
    K: int = 8,
    length: float = 100.0,
    own_words: float = 0.02,
) -> Made:
    """Made texts of one subject each: words by Zipf's law, some of which tell it."""
    rng = np.random.default_rng(seed)
    usual = rng.permutation(np.arange(1, D + 1) ** -1.05)
    y = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    kinds = usual * rng.gamma(1.0, 1.0, (K, D))
    kinds[rng.random((K, D)) < own_words] *= np.exp(3.0)
    kinds /= kinds.sum(axis=1, keepdims=True)
    lengths = rng.poisson(length * np.exp(rng.normal(0.0, 0.5, n)))
    rows = [
        sp.csr_array(rng.multinomial(max(5, total), kinds[k])[None])
        for total, k in zip(lengths, y, strict=True)
    ]
    return sp.csr_array(sp.vstack(rows)), y


SEEN: Tables = {
    "cells, 1,000 × 3,000": lambda: cells(1, 1_000, 3_000, 5, 0.03, depth=1_000.0),
    "cells, alike": lambda: cells(2, 1_000, 5_000, 8, 0.02, 1.0, 1_500.0),
    "cells, varying": lambda: cells(3, 1_000, 5_000, 6, 0.03, 1.5, 1_500.0, 2.0),
    "text, 1,000 × 3,000": lambda: text(1, 1_000, 3_000, 5),
    "text, short": lambda: text(2, 2_000, 5_000, 10, 40.0),
    "cells, 3,000 × 20,000": lambda: cells(0),
    "text, 3,000 × 20,000": lambda: text(0),
}
UNSEEN: Tables = {
    "cells, 12 kinds": lambda: cells(10, 1_500, 4_000, 12, 0.02, 1.5, 1_000.0),
    "cells, shallow": lambda: cells(11, 1_000, 6_000, 5, 0.02, 1.5, 400.0),
    "cells, few markers": lambda: cells(12, 1_000, 5_000, 4, 0.005, 1.5, 1_500.0),
    "cells, varying": lambda: cells(13, 1_000, 4_000, 7, 0.03, 1.5, 1_000.0, 1.0),
    "text, 15 subjects": lambda: text(14, 2_000, 6_000, 15, 80.0),
    "text, few words": lambda: text(15, 1_500, 4_000, 6, 60.0, 0.01),
    "cells, 3,000 × 20,000, seed 16": lambda: cells(16, K=6),
    "text, 3,000 × 20,000, seed 17": lambda: text(17, K=6),
}


def _axes(X: sp.csr_array, K: int) -> np.ndarray:
    """k-means on 50 leading axes of log(1 + count per 1,000)."""
    Z = normalize(X, norm="l1") * 1_000.0
    Z = TruncatedSVD(50, random_state=0).fit_transform(Z.log1p())
    labels: np.ndarray = KMeans(K, n_init=10, random_state=0).fit_predict(Z)
    return labels


def _topics(X: sp.csr_array, K: int) -> np.ndarray:
    """The foremost topic of each row."""
    topics = LatentDirichletAllocation(K, random_state=0).fit_transform(X)
    labels: np.ndarray = topics.argmax(axis=1)
    return labels


def _compared(tables: Tables, sizes: Sizes, families: tuple[str, ...]) -> list[Row]:
    rows: list[Row] = []
    for name in list(tables)[: sizes.tables]:
        X, y = (part[: sizes.most] for part in tables[name]())
        K, large = len(np.unique(y)), X.shape[0] * X.shape[1] >= _LARGE
        about: Row = {"table": name, "rows": len(y), "columns": X.shape[1], "true K": K}
        megabytes = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
        for family in families:
            with get_context("spawn").Pool(1) as pool:  # whose memory nobody else has
                model, seconds, memory = pool.apply(_fitted, (family, X))
            rows.append(
                about
                | {
                    "method": family,
                    "told K": False,
                    "components": model.n_components_,
                    "clusters": model.n_clusters_,
                    "ARI": _ari(y, model.labels_),
                    "CPU s": seconds,
                    "MB, more": memory,
                    "MB of data": megabytes,
                }
            )
        peers = {"axes, k-means": _axes} | ({} if large else {"LDA": _topics})
        for peer, labels_of in peers.items():
            labels, seconds = timed(lambda f=labels_of, X=X, K=K: f(X, K))
            told: Row = dict.fromkeys(rows[-1], "")  # a table has the same columns
            told |= {"method": peer, "told K": True, "ARI": _ari(y, labels)}
            rows.append(told | about | {"CPU s": seconds})
    return rows


def _fitted(family: str, X: sp.csr_array) -> tuple[DPMixture, float, float]:
    """A fit, its CPU seconds, and the memory that it took beside the data, in MB."""
    before = _peak()
    model, seconds = timed(lambda: DPMixture(family, random_state=0, n_jobs=1).fit(X))
    return model, seconds, _peak() - before


def _checks(rows: list[Row]) -> list[Check]:
    """Cost by size, and quality beside k-means in the mean of the tables."""
    checks = []
    for row in rows:
        if row["told K"]:
            continue
        what = f"{row['table']}, {row['method']}"
        seconds, memory = float(row["CPU s"]), float(row["MB, more"])
        room = 2.0 * float(row["MB of data"]) + 500.0
        short = f"{seconds:.1f}"
        checks.append(Check(f"{what}: at most 60 CPU-s", short, seconds <= 60.0))
        target = f"{what}: twice the data and 500 MB more"
        checks.append(Check(target, f"{memory:.0f} MB", memory <= room))
    ours, theirs = (
        float(np.mean([row["ARI"] for row in rows if row["method"] == method]))
        for method in ("multinomial", "axes, k-means")
    )
    value = f"{ours:.2f}, {theirs:.2f}"
    target = "multinomial in the mean not below k-means told K"
    return [*checks, Check(target, value, ours >= theirs)]


def case_seen(store: Store, sizes: Sizes) -> CaseResult:
    rows = _compared(SEEN, sizes, ("multinomial",))
    return CaseResult("Sparse counts that were looked at", rows, _checks(rows))


def case_unseen(store: Store, sizes: Sizes) -> CaseResult:
    rows = _compared(UNSEEN, sizes, ("multinomial",))
    return CaseResult("Sparse counts that were not", rows, _checks(rows))


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "seen": case_seen,
    "unseen": case_unseen,
}

if __name__ == "__main__":
    main("sparse_counts", CASES, FULL, QUICK)
