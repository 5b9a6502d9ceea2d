"""A tenth of values removed and filled in: ``python benchmarks/imputation.py``.

Columns are standardised before, so that errors are in standard deviations. Nothing of
the models was chosen by these errors; the first four tables were looked at while
`impute` was written, the others only when it was done.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.decomposition import NMF
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from command import main
from craft_data import own_tables
from data import Store, shared_data
from kplus import CRAFT, DPMixture
from kplus.datasets import load_banknote
from report import CaseResult, Check, Row

SHARE = 0.1  # of values that are removed
NMF_RANKS = (1, 2, 3, 5, 8, 12)  # as many features as a table has columns at most
NMF_REFILLS = 30
OWN, SEEN = "DPMixture", ("iris", "wine", "diabetes", "glass")


@dataclass(frozen=True)
class Sizes:
    """How much of each case is run."""

    seeds: int
    tables: int | None  # of numbers; None: all
    mixed_rows: int


FULL = Sizes(3, None, 3_000)
QUICK = Sizes(1, 1, 100)
Fill = Callable[[np.ndarray, int], np.ndarray]


def number_tables() -> dict[str, np.ndarray]:
    """Tables of numbers by name, those of `SEEN` first."""
    with np.load(shared_data("clustering_battery_dev.npz")) as file:
        names = "glass", "sonar", "yeast"
        uci = {name: file[f"uci__{name}__X"].astype(float) for name in names}
    tables = {
        "iris": datasets.load_iris().data,
        "wine": datasets.load_wine().data,
        "diabetes": datasets.load_diabetes().data,
        "glass": uci["glass"],
        "banknote": load_banknote().data,
        "breast cancer": datasets.load_breast_cancer().data,
        "digits": datasets.load_digits().data,
        "sonar": uci["sonar"],
        "yeast": uci["yeast"],
    }
    return {name: standardised(X) for name, X in tables.items()}


def standardised(X: np.ndarray) -> np.ndarray:
    """Without columns that are constant, or all but so in what a removal leaves."""
    X = X[:, np.mean(np.median(X, axis=0) == X, axis=0) < 0.95]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def refilled_nmf(X: np.ndarray, seed: int) -> np.ndarray:
    """NMF of columns scaled to [0, 1], its gaps filled by itself again and again.

    The rank is that of the lowest error in a tenth of what is observed.
    """
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    width = np.where(high > low, high - low, 1.0)
    Y = (X - low) / width
    held = ~np.isnan(Y) & (np.random.default_rng(seed).random(Y.shape) < SHARE)
    ranks = [rank for rank in NMF_RANKS if rank < X.shape[1]]
    part = np.where(held, np.nan, Y)
    errors = [np.mean((_nmf(part, r, seed) - Y)[held] ** 2) for r in ranks]
    return _nmf(Y, ranks[int(np.argmin(errors))], seed) * width + low


def _nmf(Y: np.ndarray, rank: int, seed: int) -> np.ndarray:
    gaps = np.isnan(Y)
    whole = np.where(gaps, np.nanmean(Y, axis=0), Y)
    model = NMF(rank, init="nndsvda", random_state=seed, max_iter=300)
    W = model.fit_transform(whole)
    for _ in range(NMF_REFILLS):
        whole = np.where(gaps, np.clip(W @ model.components_, 0.0, 1.0), Y)
        again = NMF(rank, init="custom", random_state=seed, max_iter=20)
        W = again.fit_transform(whole, W=W, H=model.components_)
        model = again
    return np.where(gaps, np.clip(W @ model.components_, 0.0, 1.0), Y)


METHODS: dict[str, Fill] = {
    OWN: lambda X, seed: DPMixture(random_state=seed).fit(X).impute(X),
    "CRAFT": lambda X, seed: CRAFT(random_state=seed).fit(X).impute(X),
    "IterativeImputer": lambda X, seed: IterativeImputer(
        random_state=seed
    ).fit_transform(X),
    "KNNImputer": lambda X, seed: KNNImputer().fit_transform(X),
    "SimpleImputer": lambda X, seed: SimpleImputer().fit_transform(X),
    "NMF, refilled": refilled_nmf,
}


def removed(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Which values are removed; a row keeps at least one."""
    rng = np.random.default_rng(1000 + seed)
    gone = rng.random(shape) < SHARE
    gone[gone.all(axis=1), 0] = False
    return gone


def quietly(fill: Callable[..., Any], gaps: Any, seed: int) -> tuple[Any, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fill(gaps.copy(), seed), time.process_time() - start


def case_numbers(store: Store, sizes: Sizes) -> CaseResult:
    """Errors of single values, in standard deviations."""
    tables = list(number_tables().items())[: sizes.tables]
    rows: list[Row] = []
    for name, X in tables:
        errors: dict[str, list[float]] = {method: [] for method in METHODS}
        seconds = 0.0
        for seed in range(sizes.seeds):
            gone = removed(X.shape, seed)
            gaps = np.where(gone, np.nan, X)
            for method, fill in METHODS.items():
                filled, spent = quietly(fill, gaps, seed)
                errors[method].append(float(np.sqrt(np.mean((filled - X)[gone] ** 2))))
                seconds += spent / sizes.seeds if method == OWN else 0.0
        row: Row = {
            "table": name,
            "looked at": "before" if name in SEEN else "when done",
            "rows": len(X),
            "columns": X.shape[1],
        }
        row |= {method: float(np.mean(found)) for method, found in errors.items()}
        rows.append(row | {"CPU s of DPMixture": seconds})
    groups = {"all tables": rows}
    if sizes.tables is None:
        groups["looked at when done"] = [r for r in rows if r["looked at"] != "before"]
    return CaseResult(
        f"Root mean squared error of what was removed, {sizes.seeds} seeds",
        rows,
        [_ahead(title, part) for title, part in groups.items()],
        [f"Mean of {title}: {_means(part)}." for title, part in groups.items()],
    )


def _means(rows: list[Row]) -> str:
    means = {m: float(np.mean([row[m] for row in rows])) for m in METHODS}
    return ", ".join(f"{method} {mean:.3f}" for method, mean in means.items())


def _ahead(title: str, rows: list[Row]) -> Check:
    means = {m: float(np.mean([row[m] for row in rows])) for m in METHODS}
    own = means.pop(OWN)
    means.pop("CRAFT")
    best = min(means, key=lambda method: means[method])
    reached = f"{own:.3f}; {best} {means[best]:.3f}"
    return Check(f"{title}: lowest mean error", reached, own < means[best])


# ----------------------------------------------------------------- categories


def case_categories(store: Store, sizes: Sizes) -> CaseResult:
    """How many removed categories are found again, and errors of numbers beside."""
    rows: list[Row] = []
    for table in own_tables(store):
        frame = pd.read_parquet(table.path)
        kinds = frame.dtypes.map(pd.api.types.is_numeric_dtype)
        if kinds.all():
            continue
        frame = frame.sample(min(sizes.mixed_rows, len(frame)), random_state=0)
        frame = frame.reset_index(drop=True)
        rows.append(_mixed_row(table.name, frame, sizes.seeds))
    checks = []
    for method in ("DPMixture, mixed", "CRAFT"):
        own, others = (
            float(np.mean([row[f"{who}: right"] for row in rows]))
            for who in (method, "most frequent")
        )
        target = f"{method}: more right than the most frequent"
        checks.append(Check(target, f"{own:.3f}; {others:.3f}", own > others))
    return CaseResult("Share of removed categories that are found", rows, checks)


MIXED: dict[str, Callable[[pd.DataFrame, int], pd.DataFrame]] = {
    "DPMixture, mixed": lambda frame, seed: (
        DPMixture("mixed", random_state=seed).fit(frame).impute(frame)
    ),
    "CRAFT": lambda frame, seed: CRAFT(random_state=seed).fit(frame).impute(frame),
    "most frequent": lambda frame, seed: frame.apply(
        lambda x: x.fillna(
            x.mean() if pd.api.types.is_numeric_dtype(x) else x.mode()[0]
        )
    ),
}


def _mixed_row(name: str, frame: pd.DataFrame, seeds: int) -> Row:
    numeric = frame.dtypes.map(pd.api.types.is_numeric_dtype).to_numpy()
    row: Row = {"table": name, "rows": len(frame), "columns": frame.shape[1]}
    right: dict[str, list[float]] = {method: [] for method in MIXED}
    errors: dict[str, list[float]] = {method: [] for method in MIXED}
    for seed in range(seeds):
        gone = removed(frame.shape, seed) & frame.notna().to_numpy()
        gaps = frame.mask(gone)
        for method, fill in MIXED.items():
            filled, _ = quietly(fill, gaps, seed)
            same = (filled.astype(object) == frame.astype(object)).to_numpy()
            right[method].append(float(same[gone & ~numeric].mean()))
            if numeric.any():
                off = (filled.loc[:, numeric] - frame.loc[:, numeric]) / frame.loc[
                    :, numeric
                ].std()
                at = off.to_numpy()[gone[:, numeric]]
                errors[method].append(float(np.sqrt(np.mean(at**2))))
    for method in MIXED:
        row[f"{method}: right"] = float(np.mean(right[method]))
    for method in MIXED:
        found = errors[method]
        row[f"{method}: RMSE"] = float(np.mean(found)) if found else None
    return row


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "numbers": case_numbers,
    "categories": case_categories,
}

if __name__ == "__main__":
    main("imputation", CASES, FULL, QUICK)
