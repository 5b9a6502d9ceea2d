"""Allocations of features to rows in memory: seeds, and a search from there.

Seeds are splits of residuals, projections that look binary, or the paper's ++. The
search is an iterated one: replace some columns, repair the others, keep what is better.
"""

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array, IntArray
from kplus.features.kernels_allocate import Allocated, allocate_rows
from kplus.features.kernels_collapsed import SINGLE, improve
from kplus.features.kernels_split import seed_columns
from kplus.features.model import EXACT_FEATURES, Features
from kplus.features.rows import MAX_SWEEPS, Bits, Rows, Solution
from kplus.linear.pursuit import binary_columns

__all__ = [
    "add_column",
    "add_split",
    "allocate",
    "by_splits",
    "iterate",
    "plus_plus",
    "pursued",
    "pursued_columns",
    "random_columns",
    "replace_columns",
    "rounds",
    "split_columns",
    "visit",
    "without_base",
]

_CANDIDATES = 5  # splits tried for a column
_REFINEMENTS = 2
_PROMISING = 0.7  # of the penalty: a split that gains less is not improved
_NEAR = 1.003  # times the best error: solutions below are improved further
_OFTEN = 8  # with fewer features, an optimum reached twice is likely the best
_LEAST = 30  # rounds, unless these take too long
_MOST_WORK = 4e8  # steps of all rounds, for effort 1


def by_splits(rows: Rows, K: int, base: bool, rng: np.random.Generator) -> Solution:
    """The local optimum next to `split_columns`."""
    solution = split_columns(rows, K, base, rng)
    return rows.polish(solution.Z, base)


def split_columns(rows: Rows, K: int, base: bool, rng: np.random.Generator) -> Solution:
    """Columns one after the other, each a sign split of the residuals."""
    view = rows.view(base)
    Z = np.zeros((len(rows.X), K), np.uint8)
    Z[:, : view.locked] = 1
    draws = rng.random((K, _CANDIDATES, 2))[view.locked :]
    seed_columns(view.X, view.weights, Z, view.locked, draws, _REFINEMENTS)
    return Solution(Z, base, np.nan)


def add_split(
    rows: Rows, solution: Solution, rng: np.random.Generator, penalty: float = 0.0
) -> Solution:
    """Add a feature, a split of the residuals, and go to the local optimum.

    A split that gains far less than the penalty is returned as it is.
    """
    view = rows.view(solution.base)
    draws = rng.random((_CANDIDATES, 2))
    Z, gain = add_column(view.X, view.weights, solution.Z, draws, _REFINEMENTS)
    if gain < _PROMISING * penalty:
        return Solution(Z, solution.base, solution.error - gain)
    return rows.polish(Z, solution.base, solution.error - penalty)


def without_base(rows: Rows, solution: Solution) -> Solution:
    """Drop the base feature, its rows' features complemented so that this costs least.

    Complementing column k adds A_k to the base and turns its sign, without any change
    of the fit: of all such bases the shortest is dropped.
    """
    A = rows.features(solution)
    base, others = A[0], np.ascontiguousarray(A[1:])
    flipped = _best_pattern(-base, others)
    return rows.polish(np.ascontiguousarray(solution.Z[:, 1:] ^ flipped), False)


def _best_pattern(x: Array, A: Array) -> Bits:
    """The z with the least ‖x − zA‖²."""
    Z, _ = allocate(Rows(np.ascontiguousarray(x[None]), np.ones(1)), A)
    pattern: Bits = Z[0]
    return pattern


def pursued(
    rows: Rows, K: int, rng: np.random.Generator
) -> tuple[Solution, bool] | None:
    """A base and K columns by projection pursuit, at their local optimum.

    Also whether all projections clearly take two values. None where the rows have too
    few directions, or columns depend on each other.
    """
    columns = binary_columns(rows.centred.X, rows.weights, K, rng)
    if columns is None:
        return None
    solution = rows.polish(_with_base(columns[0]), True)
    return (solution, columns[1]) if np.isfinite(solution.error) else None


def pursued_columns(rows: Rows, K: int, rng: np.random.Generator) -> Solution | None:
    """A base and K − 1 columns by projection pursuit."""
    columns = binary_columns(rows.centred.X, rows.weights, K - 1, rng)
    return None if columns is None else Solution(_with_base(columns[0]), True, np.nan)


def _with_base(columns: NDArray[np.bool_]) -> Bits:
    Z = np.ones((len(columns), columns.shape[1] + 1), np.uint8)
    Z[:, 1:] = columns
    return Z


def random_columns(rows: Rows, K: int, rng: np.random.Generator) -> Solution:
    """A base, and bits drawn evenly."""
    Z = rng.integers(0, 2, (len(rows.X), K), dtype=np.uint8)
    Z[:, 0] = 1
    return Solution(Z, True, np.nan)


def plus_plus(rows: Rows, most: int, penalty: float, rng: np.random.Generator) -> Array:
    """Features by the paper's ++: the mean, then residuals of rows drawn by cost.

    Features are added to the mean up to `most`, as long as each lowers the error by
    more than the penalty.
    """
    A = np.empty((0, rows.X.shape[1]))
    error, new = rows.total, rows.mean
    while len(A) < most and error > 0.0:
        more = np.vstack([A, new])
        Z = np.zeros((len(rows.X), len(more)), np.uint8)
        left, *_ = visit(rows, more, Z, exact=False)
        if len(A) and penalty > 0.0 and error - left <= penalty:
            break
        A, error = more, left
        residuals = rows.X - Z @ A
        costs = rows.weights * np.einsum("nd,nd->n", residuals, residuals)
        if not costs.sum() > 0.0:
            break
        new = residuals[rng.choice(len(costs), p=costs / costs.sum())]
    return A


def allocate(rows: Rows, A: Array) -> tuple[Bits, float]:
    """Z of rows under features A, exact where these are not too many; the error."""
    Z = np.zeros((len(rows.X), len(A)), np.uint8)
    error, *_ = visit(rows, A, Z, exact=len(A) <= EXACT_FEATURES)
    return Z, error


def visit(
    rows: Rows, A: Array, Z: Bits, *, exact: bool
) -> tuple[float, int, Array, Array]:
    """Choose Z in place; (error, rows changed, ZᵀWZ, ZᵀW(X − ZA))."""
    params, errors = Features(A, exact), np.empty(len(rows.X))
    S, T = np.zeros((len(A), len(A))), np.zeros_like(A)
    changed = allocate_rows(
        rows.X, rows.weights, A, params.G, exact, params.most_steps,
        Allocated(Z, errors, S, T),
    )  # fmt: skip
    return float(errors @ rows.weights), changed, S, T


# ------------------------------------------------------ iterated local search


def rounds(rows: Rows, K: int, effort: float) -> int:
    """How many rounds without a lower error end the search.

    Good optima get rarer by about a factor of four with each feature, until there are
    so many features that only a few rounds can be afforded.
    """
    N, D = rows.X.shape
    few, many = max(_LEAST, 4.0 ** (min(K, 20) - 3.4)), 588.0 * (8.0 / max(K, 1)) ** 8
    affordable = _MOST_WORK / (6.0 * N * max(K, 1) * (D + 4.0 * K + 30.0))
    return int(effort * min(few, many, affordable) + 0.5)


def iterate(
    rows: Rows, solution: Solution, patience: int, rng: np.random.Generator
) -> Solution:
    """Iterated local search; ends after `patience` rounds without a lower error.

    A round replaces one to three columns by splits of the residuals of the others.
    """
    view = rows.view(solution.base)
    free = solution.K - view.locked
    idle = 0
    while idle < patience and free > 0 and solution.error > 0.0:
        n_new = min(int(rng.integers(1, 4)), free)
        chosen = view.locked + rng.permutation(free)[:n_new]
        draws = rng.random((n_new, 1, 2))
        Z, error = replace_columns(
            view.X, view.weights, view.squares, solution.Z, view.locked,
            chosen, draws, MAX_SWEEPS, _NEAR * solution.error,
        )  # fmt: skip
        trial = Solution(Z, solution.base, float(error))
        gain = 1e-9 * solution.error
        if solution.error + gain < error < _NEAR * solution.error:
            trial = rows.polish(Z, solution.base, pairs=True)
        again = abs(trial.error - solution.error) <= gain
        idle += 1 + (max(0, _OFTEN - solution.K) // 2 if again else 0)
        if trial.error < solution.error - gain:
            solution, idle = trial, 0
    return solution


def add_column(
    X: Array, weights: Array, Z: Bits, draws: Array, n_refine: int
) -> tuple[Bits, float]:
    """Z with one more column, and by how much that lowers the error."""
    more = _wider(Z, Z.shape[1] + 1)
    gain = seed_columns(X, weights, more, Z.shape[1], draws[None], n_refine)
    return more, float(gain)


def replace_columns(
    X: Array,
    weights: Array,
    squares: Array,
    Z: Bits,
    locked: int,
    chosen: IntArray,
    draws: Array,
    max_sweeps: int,
    target: float,
) -> tuple[Bits, float]:
    """Z with the chosen columns replaced, repaired by single flips; its error."""
    new = _wider(np.delete(Z, chosen, axis=1), Z.shape[1])
    seed_columns(X, weights, new, Z.shape[1] - len(chosen), draws, 0)
    error = improve(X, weights, squares, new, locked, SINGLE, max_sweeps, target)
    return new, float(error)


def _wider(Z: Bits, K: int) -> Bits:
    """Z with columns of zeros behind its own."""
    wider = np.zeros((len(Z), K), np.uint8)
    wider[:, : Z.shape[1]] = Z
    return wider
