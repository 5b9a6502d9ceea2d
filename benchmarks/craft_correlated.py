"""Cases of CRAFT's clusters: correlated, mixed and 784 columns, numbers of clusters.

The made tables are of other seeds than those that the rules were made with (0 to 2).
"""

import statistics
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from craft_data import load_bank, load_monk, load_spam
from craft_scores import ari, nmi, purity
from craft_sizes import Sizes
from craft_tasks import timed
from data import Store, shared_data
from kplus import CRAFT
from real_data_mixed import SAME, mixed_tables
from report import CaseResult, Check, Row

FIRST_SEED = 100
Made = tuple[np.ndarray, np.ndarray]


def covariance(rng: np.random.Generator, D: int) -> np.ndarray:
    """Of any orientation; standard deviations by a factor of two or so."""
    axes, _ = np.linalg.qr(rng.normal(size=(D, D)))
    return (axes * np.exp(rng.normal(size=D))) @ axes.T


def make_gaussians(rng: np.random.Generator) -> Made:
    """Three to seven Gaussians of any covariance in 4 to 12 columns."""
    D, K = int(rng.integers(4, 13)), int(rng.integers(3, 8))
    y = rng.choice(K, 3_000, p=rng.dirichlet(np.full(K, 3.0)))
    means, X = rng.normal(0, 3, (K, D)), np.empty((len(y), D))
    for k in range(K):
        n = np.count_nonzero(y == k)
        X[y == k] = rng.multivariate_normal(means[k], covariance(rng, D), n)
    return X, y


def make_land(rng: np.random.Generator) -> Made:
    """Four bands of three by three pixels, whole numbers, six or seven classes.

    Neighbours are correlated, as AR(1), bands with each other, and all with the light.
    """
    K, at = int(rng.integers(6, 8)), np.arange(9)
    y = rng.choice(K, 5_000, p=rng.dirichlet(np.full(K, 4.0)))
    apart = np.abs(np.subtract.outer(at // 3, at // 3))
    apart += np.abs(np.subtract.outer(at % 3, at % 3))
    means, X = rng.uniform(45, 120, (K, 4)), np.empty((len(y), 36))
    for k in range(K):
        n, bands = np.count_nonzero(y == k), covariance(rng, 4)
        sd = np.sqrt(np.diag(bands))
        bands = 0.5 + 0.5 * bands / np.outer(sd, sd)
        sd = rng.uniform(4, 11, 4)
        both = np.kron(rng.uniform(0.75, 0.95) ** apart, bands * np.outer(sd, sd))
        light = rng.normal(0, 0.6, (n, 1)) * np.tile(sd, 9)
        noise = rng.multivariate_normal(np.zeros(36), both, n)
        X[y == k] = np.tile(means[k], 9) + light + noise
    return np.rint(np.clip(X, 20, 160)), y


def make_sensors(rng: np.random.Generator) -> Made:
    """Nine columns of whole numbers with heavy tails; one huge class and six small."""
    sizes = np.array([0.785, 0.15, 0.03, 0.015, 0.01, 0.006, 0.004])
    y, level = rng.choice(7, 10_000, p=sizes), rng.uniform(30, 90, 9)
    X = np.empty((len(y), 9))
    for k in range(7):
        n = np.count_nonzero(y == k)
        shift = rng.normal(size=9) * rng.choice([0.0, 30.0], 9, p=[0.4, 0.6])
        sd, factors = np.exp(rng.normal(1.0, 0.8, 9)), rng.normal(size=(5, 9))
        factors *= rng.random((5, 9)) < 0.5
        tails = rng.standard_t(rng.uniform(2, 4), (n, 5)) @ factors
        tails += 0.5 * rng.standard_t(3, (n, 9))
        X[y == k] = level + (shift if k else 0.0) + tails * sd / 1.5
    X[:, 6], X[:, 7] = X[:, 2] - X[:, 0], X[:, 2] - X[:, 4]
    X[:, 8] = X[:, 7] - X[:, 6]
    return np.rint(X), y


MADE: dict[str, Callable[[np.random.Generator], Made]] = {
    "Gaussians": make_gaussians,
    "land, 4 bands x 9 pixels": make_land,
    "sensors, heavy tails": make_sensors,
}


def case_correlated(store: Store, sizes: Sizes) -> CaseResult:
    """Components, and the clusters that they are joined into."""
    rows: list[Row] = []
    for name, make in MADE.items():
        for seed in range(FIRST_SEED, FIRST_SEED + sizes.correlated_seeds):
            X, y = make(np.random.default_rng(seed))
            K = len(np.unique(y))
            auto, seconds = timed(CRAFT(random_state=0).fit, X)
            given, _ = timed(CRAFT(n_clusters=K, random_state=0).fit, X)
            rows.append(
                {
                    "data": name, "seed": seed, "K": K,
                    "components": auto.n_components_, "clusters": auto.n_clusters_,
                    "ARI, components": ari(y, auto.component_labels_),
                    "ARI, clusters": ari(y, auto.labels_),
                    "ARI, K given": ari(y, given.labels_), "CPU s": seconds,
                }
            )  # fmt: skip
    near = [row["K"] / 2 <= row["clusters"] <= 2 * row["K"] for row in rows]
    ahead = [row["ARI, clusters"] > row["ARI, components"] for row in rows]
    checks = [
        Check("clusters within twice the true number", tally(near), all(near)),
        Check("ARI of clusters above that of components", tally(ahead), all(ahead)),
    ]
    return CaseResult("Correlated columns, K not given", rows, checks)


def tally(holds: list[bool]) -> str:
    return f"{sum(holds)} of {len(holds)}"


WIDE = {"seen when rules were made": "mnist_test.npz", "not seen": "mnist_train.npz"}


def case_wide(store: Store, sizes: Sizes) -> CaseResult:
    """Pictures as they are, 784 columns, against KMeans told K."""
    rows, checks = list[Row](), list[Check]()
    for title, file_name in WIDE.items():
        with np.load(shared_data(file_name), allow_pickle=False) as file:
            X, y = file["X"][: sizes.wide_rows], file["y"][: sizes.wide_rows]
        X = X.reshape(len(X), -1).astype(np.float64)
        craft, seconds = timed(CRAFT(random_state=0).fit, X)
        for name, labels in (
            ("CRAFT", craft.labels_),
            ("CRAFT, components", craft.component_labels_),
        ):
            row: Row = {"rows": title, "method": name, "K": len(np.unique(labels))}
            rows.append(row | {"CPU s": seconds, "ARI": ari(y, labels)})
        for n_init in (1, 10):
            k_means, alone = timed(KMeans(10, n_init=n_init, random_state=0).fit, X)
            name = f"KMeans, {n_init} start{'s' * (n_init > 1)}"
            row = {"rows": title, "method": name, "K": 10}
            rows.append(row | {"CPU s": alone, "ARI": ari(y, k_means.labels_)})
            target = f"{title}: at most 5 times the CPU of {name}, told K"
            found = f"{seconds / alone:.1f} times"
            checks.append(Check(target, found, seconds <= 5.0 * alone))
        both = [ari(y, craft.labels_), ari(y, craft.component_labels_)]
        target = f"{title}: ARI of clusters at least that of components"
        found = f"{both[0]:.3f} against {both[1]:.3f}"
        checks.append(Check(target, found, both[0] >= both[1] - SAME))
    title = f"MNIST, twice {len(X):,} pictures of 784 pixels"
    return CaseResult(title, rows, checks)


def case_open(store: Store, sizes: Sizes) -> CaseResult:
    """Tables with categories: what joining components does for agreement."""
    names = None if sizes.adult_rows is None else sizes.table_names
    tables = [t for part in mixed_tables(store, names).values() for t in part]
    tables.sort(key=lambda table: table.name.lower())
    rows: list[Row] = []
    for place, table in enumerate(tables):
        craft, seconds = timed(CRAFT(random_state=0).fit, pd.read_parquet(table.path))
        rows.append(
            {
                "data": table.name, "list": ("tuned on", "held out")[place % 2],
                "rows": len(table.labels), "classes": table.K,
                "components": craft.n_components_, "clusters": craft.n_clusters_,
                "ARI, components": ari(table.labels, craft.component_labels_),
                "ARI, clusters": ari(table.labels, craft.labels_), "CPU s": seconds,
            }
        )  # fmt: skip
    checks = []
    for title in ("tuned on", "held out"):
        part = [row for row in rows if row["list"] == title]
        pieces, joined = (
            statistics.mean(row[f"ARI, {what}"] for row in part)
            for what in ("components", "clusters")
        )
        target = f"{title}: mean ARI of clusters at least that of components"
        told = f"{joined:.4f} against {pieces:.4f}, {len(part)} tables"
        checks.append(Check(target, told, joined >= pieces))
    return CaseResult("Tables with categories, K not given", rows, checks)


TWO_CLUSTERS = ("CRAFT, K = 2", "CRAFT, quantiles, K = 2", "CRAFT, its tree cut at 2")


def case_numbers(store: Store, sizes: Sizes) -> CaseResult:
    """Purity and NMI rise with the number of clusters, also that of the paper's."""
    rows: list[Row] = []
    loaders = {"Bank": load_bank, "Spam": load_spam, "Monk-3": load_monk}
    for name, load in loaders.items():
        table = load()
        y = table.classes
        fits = {
            f"paper's CRAFT, m = .5, K = 2, seed {seed}": CRAFT(
                0.5, n_clusters=2, variant="paper", random_state=seed
            )
            for seed in range(sizes.paper_seeds)
        }
        for K in (2, 7, 12, 30):
            fits[f"CRAFT, m = .5, K = {K}"] = CRAFT(0.5, n_clusters=K, random_state=0)
        fits["CRAFT, K = 2"] = CRAFT(n_clusters=2, random_state=0)
        fits["CRAFT, quantiles, K = 2"] = CRAFT(
            n_clusters=2, numeric="quantile", random_state=0
        )
        fits["CRAFT"] = CRAFT(random_state=0)
        found = {
            title: timed(craft.fit, table.frame)[0].labels_
            for title, craft in fits.items()
        }
        auto = fits["CRAFT"]
        if auto.n_components_ > 1:
            pieces = auto.cluster_tree_.cut(2)
            found["CRAFT, its tree cut at 2"] = pieces[auto.component_labels_]
        for title, labels in found.items():
            scores = {f.__name__: f(y, labels) for f in (purity, nmi, ari)}
            K = len(np.unique(labels))
            rows.append({"data": name, "fit": title, "K found": K} | scores)
    by_fit = {(row["data"], row["fit"]): row for row in rows}
    checks = []
    for name in loaders:
        best = max(
            (r for (data, fit), r in by_fit.items() if data == name and "paper" in fit),
            key=lambda row: row["ari"],
        )
        ours = max(
            by_fit[name, fit]["ari"] for fit in TWO_CLUSTERS if (name, fit) in by_fit
        )
        target = f"{name}: two clusters, ARI at least that of the paper's best run"
        told = f"{ours:.2f} against {best['ari']:.2f} with {best['K found']} clusters"
        checks.append(Check(target, told, ours >= best["ari"]))
    return CaseResult(
        "Purity and NMI by the number of clusters found",
        rows,
        checks,
        [
            "Two classes each. The paper's algorithm is asked for two clusters and "
            "finds many more on Bank; purity and NMI, unlike ARI, hardly fall with "
            "their number."
        ],
    )
