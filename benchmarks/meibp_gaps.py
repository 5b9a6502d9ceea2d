"""MEIBP where entries are missing: ``python benchmarks/meibp_gaps.py``.

What gaps cost, whether the number of features stays, and how well gaps are filled: with
weights, against a nonnegative factorisation that is fitted and refilled
in turns. Its rank is chosen by a tenth of the known entries, held out.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.decomposition import NMF

from command import main
from data import DataMissing, Store, shared_data
from kplus import MEIBP
from kplus.datasets import make_nonnegative_features
from report import CaseResult, Check, Row

RANKS = (1, 2, 3, 5, 8, 12, 20, 30, 45)
ROUNDS = 30  # of fits and refills
LOOKED_AT = ("low rank", "expression", "wine", "digits", "faces")  # in development
ALIKE = 1.02  # the ratio of errors that passes for as good


@dataclass(frozen=True)
class Sizes:
    """How much of each case is run."""

    rows: int  # of made tables, and the most of others
    columns: int
    tables: tuple[str, ...] | None  # None: all
    seeds: int


FULL = Sizes(700, 400, None, 3)
QUICK = Sizes(60, 20, ("low rank", "wine", "iris"), 1)


# ------------------------------------------------------------------------------ tables


def low_rank(n: int, D: int, K: int, noise: float, seed: int) -> np.ndarray:
    """Amounts of K parts, most of them small, with noise."""
    rng = np.random.default_rng(seed)
    clean = rng.gamma(0.5, size=(n, K)) @ rng.gamma(0.5, size=(K, D))
    return np.maximum(clean / clean.std() + noise * rng.normal(size=(n, D)), 0.0)


def expression(n: int, D: int, K: int, seed: int) -> np.ndarray:
    """Logarithms of counts: K kinds of cells, eight programmes, depths of their own."""
    rng = np.random.default_rng(seed)
    rates = (
        rng.gamma(1.0, size=D) + rng.gamma(0.3, 1.5, (K, D))[rng.integers(K, size=n)]
    )
    rates += rng.gamma(0.6, 0.7, (n, 8)) @ rng.gamma(0.4, size=(8, D)) / 3.0
    depths = np.exp(rng.normal(0.0, 0.3, (n, 1)))
    return np.log1p(rng.poisson(1.5 * depths * rates))


def scaled(X: np.ndarray) -> np.ndarray:
    """Columns of unit deviation, from zero on."""
    X = X[:, X.std(axis=0) > 0.0]
    return (X - X.min(axis=0)) / X.std(axis=0)


def shared(name: str) -> np.ndarray:
    with np.load(shared_data(f"{name}.npz"), allow_pickle=False) as file:
        return np.asarray(file["X"], np.float64)


def pooled(pictures: np.ndarray, side: int) -> np.ndarray:
    """Square pictures as means of side × side patches, from 0 to 1."""
    size = pictures.shape[1] // side
    cut = pictures[:, : size * side, : size * side]
    means = cut.reshape(len(cut), side, size, side, size).mean(axis=(2, 4))
    return means.reshape(len(cut), -1) / pictures.max()


def faces() -> np.ndarray:
    X = shared("olivetti")
    side = int(np.sqrt(X[0].size))
    return pooled(X.reshape(-1, side, side), 14)


TABLES: dict[str, Callable[[int, int], np.ndarray]] = {
    "low rank": lambda n, D: low_rank(n, D, 15, 0.5, 0),
    "expression": lambda n, D: expression(n, D, 6, 0),
    "wine": lambda n, D: scaled(datasets.load_wine().data),
    "digits": lambda n, D: datasets.load_digits().data[:n] / 16.0,
    "faces": lambda n, D: faces(),
    "low rank, noisy": lambda n, D: low_rank(n, D, 8, 0.8, 5),
    "expression, 9 kinds": lambda n, D: expression(n, D, 9, 7),
    "breast cancer": lambda n, D: scaled(datasets.load_breast_cancer().data),
    "iris": lambda n, D: scaled(datasets.load_iris().data),
    "diabetes": lambda n, D: scaled(datasets.load_diabetes().data),
    "handwriting": lambda n, D: pooled(shared("mnist_test")[:n], 14),
    "pictures": lambda n, D: pooled(
        shared("cifar10_subset2500")[::7][:n].mean(axis=-1), 16
    ),
    "words of mail": lambda n, D: scaled(np.log1p(shared("spambase")[::7][:n])),
    "lit faces": lambda n, D: (
        shared("yaleb_48x42").reshape(-1, 48 * 42)[::4, ::9][:n] / 255.0
    ),
}


def with_gaps(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """X with a share of its entries hidden; every row and column keeps one."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(X.shape) < share
    hidden[np.arange(len(X)), np.arange(len(X)) % X.shape[1]] = False
    return np.where(hidden, np.nan, X)


# ------------------------------------------------------------------------------- peers


def refilled(X: np.ndarray, rank: int) -> np.ndarray:
    """Gaps filled by a factorisation of the filled table, in turns."""
    gaps = np.isnan(X)
    filled = np.where(gaps, np.nanmean(X, axis=0), X)
    still = 1e-3 * np.nanstd(X)
    model = NMF(rank, init="nndsvda", max_iter=20, tol=1e-5, random_state=0)
    W = model.fit_transform(filled)
    for _ in range(ROUNDS):
        new = (W @ model.components_)[gaps]
        moved = np.sqrt(np.mean((new - filled[gaps]) ** 2))
        filled[gaps] = new
        if moved < still:
            break
        H = model.components_
        model = NMF(rank, init="custom", max_iter=20, tol=1e-5)
        W = model.fit_transform(filled, W=W, H=H)
    return filled


def nmf(X: np.ndarray) -> tuple[np.ndarray, int]:
    """The same with the rank that fills entries best which were hidden further."""
    fewer = with_gaps(X, 0.1, seed=99)
    held_out = np.isnan(fewer) & ~np.isnan(X)
    errors: dict[int, float] = {}
    for rank in RANKS:
        if rank >= min(X.shape):
            break
        errors[rank] = np.mean((refilled(fewer, rank) - X)[held_out] ** 2)
        if errors[rank] > 1.1 * min(errors.values()):
            break
    best = min(errors, key=lambda rank: errors[rank])
    return refilled(X, best), best


def meibp(weights: str | None, seed: int = 0) -> MEIBP:
    return MEIBP(weights=weights, negative="noise", random_state=seed)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NMF says that it has not converged
        return work(), time.process_time() - start


# ------------------------------------------------------------------------------- cases


def case_tables(store: Store, sizes: Sizes) -> CaseResult:
    """A tenth of the entries hidden: who fills them best?"""
    rows: list[Row] = []
    for name in sizes.tables or TABLES:
        try:
            X = TABLES[name](sizes.rows // 2, sizes.columns // 2)
        except DataMissing:
            continue
        gaps = with_gaps(X, 0.1)
        hidden = np.isnan(gaps)

        def error(filled: np.ndarray, X=X, hidden=hidden) -> float:
            return float(np.sqrt(np.mean((filled - X)[hidden] ** 2)))

        (filled, rank), nmf_seconds = timed(lambda gaps=gaps: nmf(gaps))
        row: Row = {
            "table": name,
            "looked at": "yes" if name in LOOKED_AT else "no",
            "size": f"{X.shape[0]} × {X.shape[1]}",
            "means": error(np.where(hidden, np.nanmean(gaps, axis=0), X)),
            "NMF": error(filled),
            "rank": rank,
            "NMF CPU s": nmf_seconds,
        }
        model, seconds = timed(lambda g=gaps: meibp("nonnegative").fit(g))
        row["weights"] = error(model.impute(gaps))
        row["K"] = model.n_components_
        row["weights CPU s"] = seconds
        print(f"{name}: {row['weights']:.4f}, NMF {row['NMF']:.4f}", flush=True)
        rows.append(row)
    checks = []
    for kind in ("yes", "no"):
        ratios = [r["weights"] / r["NMF"] for r in rows if r["looked at"] == kind]
        if ratios:
            good = sum(ratio <= ALIKE for ratio in ratios)
            reached = f"{good}/{len(ratios)}, mean ratio {np.mean(ratios):.3f}"
            what = "looked at" if kind == "yes" else "not looked at"
            target = f"weights as good as NMF (within 2 %), tables {what}"
            checks.append(Check(target, reached, good == len(ratios)))
    notes = [
        "RMSE of the tenth of the entries that was hidden. NMF is scikit-learn's, "
        "fitted and refilled in turns, its rank by entries held out further.",
    ]
    return CaseResult("Gaps filled", rows, checks, notes)


def case_cost(store: Store, sizes: Sizes) -> CaseResult:
    """CPU seconds with gaps against those of the complete table."""
    n, D = sizes.rows, sizes.columns
    made = {
        "bits": make_nonnegative_features(n, D, 15, noise=1.0, random_state=0)[0],
        "low rank": TABLES["low rank"](n, D),
        "expression": TABLES["expression"](n, D),
    }
    rows: list[Row] = []
    checks = []
    for name, X in made.items():
        for weights in (None, "nonnegative"):
            complete, seconds = timed(lambda w=weights, X=X: meibp(w).fit(X))
            row: Row = {
                "table": name,
                "weights": weights or "none",
                "CPU s": seconds,
                "K": complete.n_components_,
            }
            for share in (0.1, 0.3, 0.5):
                gaps = with_gaps(X, share)
                model, with_them = timed(lambda w=weights, g=gaps: meibp(w).fit(g))
                row[f"CPU s, {share:.0%}"] = with_them
                row[f"K, {share:.0%}"] = model.n_components_
                if share == 0.1:
                    ratio = with_them / seconds
                    target = f"{name}, weights {row['weights']}: at most twice the CPU"
                    checks.append(Check(target, f"{ratio:.2f}", ratio <= 2.0))
            rows.append(row)
    return CaseResult(f"What gaps cost, {n} × {D}", rows, checks)


def case_number(store: Store, sizes: Sizes) -> CaseResult:
    """Does the number of features stay with a tenth of the entries missing?"""
    n, D = max(sizes.rows // 2, 60), max(sizes.columns // 5, 20)
    rows: list[Row] = []
    for K in (4, 8, 12):
        for seed in range(sizes.seeds):
            bits = make_nonnegative_features(n, D, K, noise=0.5, random_state=seed)[0]
            amounts = low_rank(n, D, K, 0.3, seed)
            for weights, X in ((None, bits), ("nonnegative", amounts)):
                complete = timed(lambda w=weights, X=X: meibp(w).fit(X))[0]
                gaps = with_gaps(X, 0.1, seed)
                some = timed(lambda w=weights, g=gaps: meibp(w).fit(g))[0]
                rows.append(
                    {
                        "weights": weights or "none",
                        "planted": K,
                        "seed": seed,
                        "complete": complete.n_components_,
                        "a tenth missing": some.n_components_,
                    }
                )
    apart = [abs(row["complete"] - row["a tenth missing"]) for row in rows]
    near = sum(one <= 1 for one in apart)
    check = Check(
        "the same number, give or take one", f"{near}/{len(rows)}", near == len(rows)
    )
    return CaseResult("Number of features, complete and with gaps", rows, [check])


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "cost": case_cost,
    "number": case_number,
    "tables": case_tables,
}

if __name__ == "__main__":
    main("meibp_gaps", CASES, FULL, QUICK)
