"""Iterated local search: replace some columns, repair, keep what is better."""

import numpy as np

from kplus.features.columns import replace_columns
from kplus.features.rows import MAX_SWEEPS, Found, Rows

__all__ = ["iterate", "rounds"]

_NEAR = 1.003  # an error so near to the best is worth an exact search
_OFTEN = 8  # with fewer features, an optimum found again is likely the best
_LEAST = 30  # rounds, unless these are dear
_MOST_WORK = 4e8  # steps of all rounds, for effort 1


def rounds(rows: Rows, K: int, effort: float) -> int:
    """How many rounds without success end the search.

    Good optima get rarer by about a factor of four with each feature, until there are
    so many features that only a few rounds can be afforded.
    """
    N, D = rows.X.shape
    few, many = max(_LEAST, 4.0 ** (min(K, 20) - 3.4)), 588.0 * (8.0 / max(K, 1)) ** 8
    affordable = _MOST_WORK / (6.0 * N * max(K, 1) * (D + 4.0 * K + 30.0))
    return int(effort * min(few, many, affordable) + 0.5)


def iterate(rows: Rows, found: Found, patience: int, rng: np.random.Generator) -> Found:
    """Go on until `patience` rounds in a row bring nothing.

    A round replaces one to three columns by splits of what the others leave.
    """
    view = rows.view(found.base)
    free = found.K - view.locked
    idle = 0
    while idle < patience and free > 0 and found.error > 0.0:
        n_new = min(int(rng.integers(1, 4)), free)
        chosen = view.locked + rng.permutation(free)[:n_new]
        draws = rng.random((n_new, 1, 2))
        Z, error = replace_columns(
            view.X, view.weights, view.squares, found.Z, view.locked,
            chosen, draws, MAX_SWEEPS, _NEAR * found.error,
        )  # fmt: skip
        trial = Found(Z, found.base, float(error))
        gain = 1e-9 * found.error
        if found.error + gain < error < _NEAR * found.error:
            trial = rows.polish(Z, found.base, pairs=True)
        again = abs(trial.error - found.error) <= gain
        idle += 1 + (max(0, _OFTEN - found.K) // 2 if again else 0)
        if trial.error < found.error - gain:
            found, idle = trial, 0
    return found
