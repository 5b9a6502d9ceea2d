"""The row objective of MEIBP on made data, its searches, and all 2^K by brute force."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ibp_truth import factors_given
from kplus.ibp.kernels_double_greedy import double_greedy, random_double_greedy
from kplus.ibp.kernels_objective import Objective, objective
from kplus.ibp.kernels_submodular import local_search, rows_local_search

Arguments = dict[str, Any]
Facts = dict[str, Any]
AT_ONCE = 2_000  # rows that brute force values at a time
Search = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def nonnegative_rows(
    n_rows: int, n_columns: int, K: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """X = ZA + noise of variance 1, with half-normal A and z ~ Bernoulli(.4)."""
    rng = np.random.default_rng(seed)
    A = np.abs(rng.standard_normal((K, n_columns)))
    Z = (rng.uniform(size=(n_rows, K)) < 0.4).astype(float)
    Z[0] = 1.0  # no feature without rows
    return Z @ A + rng.standard_normal((n_rows, n_columns)), Z


def row_terms(
    X: np.ndarray, Z: np.ndarray, passes: int
) -> tuple[np.ndarray, np.ndarray]:
    """u of each row and Q of Eq. 19, at q(A) fitted to Z with variances of 1.

    f(z) = u·z − ½ zᵀQz. Counts are those of the other rows; a feature of one row alone
    counts as one of another, too.
    """
    mean, spread = factors_given(X, Z, 1.0, 1.0, passes)
    others = np.clip(Z.sum(axis=0) - Z, 1.0, len(Z) - 1.0)
    prior = np.log(others / (len(Z) - others))
    return X @ mean.T - 0.5 * spread.sum(axis=1) + prior, mean @ mean.T


def row_quality(X: None, arguments: Arguments) -> Facts:
    """Which share of rows a search solves, with q(A) of the start and converged.

    There are 500 rows; further ones come from further sets.
    """
    K, seed = arguments["n_components"], arguments["seed"]
    rng = np.random.default_rng(seed)
    shares: dict[str, list[Facts]] = {"at the start": [], "converged": []}
    left = arguments["n_rows"]
    for i in range(-(-left // 500)):
        rows, Z = nonnegative_rows(500, 50, K, 1_000 * seed + i)
        start = (rng.uniform(size=Z.shape) < 1 / 3).astype(float)
        for when, bits, passes in (
            ("at the start", start, 1),
            ("converged", Z, 50),
        ):
            U, Q = row_terms(rows, bits, passes)
            shares[when].append(valued(U[: left - 500 * i], Q, rng))
    return {when: average(parts) for when, parts in shares.items()}


def average(parts: list[Facts]) -> Facts:
    return {
        search: {
            what: float((min if what == "worst" else np.mean)(
                [part[search][what] for part in parts]
            ))
            for what in parts[0][search]
        }
        for search in parts[0]
    }  # fmt: skip


def valued(U: np.ndarray, Q: np.ndarray, rng: np.random.Generator) -> Facts:
    """Of each search, the share of rows at the best value, or within 95 % of it."""
    highest, lowest = extremes(U, Q)
    found = {
        "local search": solve(U, Q, by_local_search),
        "and exchanges": by_exchanges(U, Q).astype(float),
        "double greedy": solve(U, Q, by_double_greedy),
        "random double greedy": solve(U, Q, by_random_double_greedy),
        "random": (rng.uniform(size=U.shape) < 0.5).astype(float),
    }
    facts = {}
    for name, Z in found.items():
        reached = (values(U, Q, Z) - lowest) / (highest - lowest)
        facts[name] = {
            "optimal": float(np.mean(reached > 1 - 1e-9)),
            "near": float(np.mean(reached >= 0.95)),
            "worst": float(reached.min()),
        }
    return facts


def values(U: np.ndarray, Q: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.sum(U * Z, axis=1) - 0.5 * np.sum((Z @ Q) * Z, axis=1)


def extremes(U: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The highest and the lowest value that any z gives each row."""
    K = len(Q)
    bits = (np.arange(2**K)[:, None] >> np.arange(K) & 1).astype(float)
    quadratic = 0.5 * np.sum((bits @ Q) * bits, axis=1)
    high, low = [], []
    for start in range(0, len(U), AT_ONCE):
        block = U[start : start + AT_ONCE] @ bits.T - quadratic
        high.append(block.max(axis=1))
        low.append(block.min(axis=1))
    return np.concatenate(high), np.concatenate(low)


def solve(U: np.ndarray, Q: np.ndarray, search: Search) -> np.ndarray:
    """The z that a compiled search finds for each row."""
    lin = U - 0.5 * np.diag(Q)
    return np.array([search(row, Q, n) for n, row in enumerate(lin)], dtype=float)


def _objective(lin: np.ndarray, Q: np.ndarray) -> Objective:
    """f of a row without fresh features."""
    return objective(lin, Q, np.zeros(len(Q), np.uint8), 0)


def by_local_search(lin: np.ndarray, Q: np.ndarray, row: int) -> np.ndarray:
    f = _objective(lin, Q)
    local_search(f)
    return np.asarray(f.z)


def by_exchanges(U: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """The z of all rows as `MEIBP` finds them: one feature may be had for another."""
    n, K = U.shape
    Z = np.zeros((n, K), np.uint8)
    rows_local_search(U, np.zeros((1, K)), Q[None], np.zeros(n, np.int64), Z)
    return Z


def by_double_greedy(lin: np.ndarray, Q: np.ndarray, row: int) -> np.ndarray:
    f = _objective(lin, Q)
    double_greedy(f)
    return np.asarray(f.z)


def by_random_double_greedy(lin: np.ndarray, Q: np.ndarray, row: int) -> np.ndarray:
    f = _objective(lin, Q)
    random_double_greedy(f, 0, row)
    return np.asarray(f.z)


def row_flips(X: None, arguments: Arguments) -> Facts:
    """Flips of a plain local search from nothing, and what exchanges add to it."""
    n, K = arguments["n_rows"], arguments["n_components"]
    rows, Z = nonnegative_rows(n, n, K, 0)
    U, Q = row_terms(rows, Z, 20)
    ends = [counted_search(u - 0.5 * np.diag(Q), Q) for u in U]
    by_exchanges(U, Q)
    started = time.process_time()
    exchanged = by_exchanges(U, Q)
    seconds = time.process_time() - started
    plain = values(U, Q, np.array([z for z, _ in ends], dtype=float))
    rise = values(U, Q, exchanged.astype(float)) - plain
    flips = np.mean([count for _, count in ends])
    return {
        "flips": float(flips),
        "gains": float(K * (flips + 2)),  # all, after each flip and twice at the end
        "row_s": seconds / n,
        "better": float(np.mean(rise > 1e-9 * np.abs(plain))),
        "worse": float(np.mean(rise < -1e-9 * np.abs(plain))),
    }


def counted_search(lin: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, int]:
    """Section 3.6: add the best while one helps, remove the worst, and again."""
    z, gains, flips = np.zeros(len(lin), dtype=bool), lin.copy(), 0
    least = 1e-9 * np.abs(lin).sum()
    off_diagonal = Q - np.diag(np.diag(Q))
    while True:
        add = np.where(z, -np.inf, gains)
        k = int(add.argmax())
        if add[k] <= least:
            k = int(np.where(z, gains, np.inf).argmin())
            if not z[k] or gains[k] >= -least:
                return z, flips
        z[k] = not z[k]
        gains += off_diagonal[k] if not z[k] else -off_diagonal[k]
        flips += 1
