"""What a table holds, from one pass over its blocks; and how its gaps are filled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks

__all__ = ["Survey", "fill_with_noise", "filled_and_rank", "survey"]

_ROUNDS = 30
_SMALL = 256  # rows or columns: all directions are found at once
_FIRST_DIRECTIONS = 64  # so many are sought first in larger tables
_TURNS = 4  # towards the strongest directions, from random ones
_STILL = 1e-2  # converged: filled values move by less than that share of the noise
_KNOWN = 1e-3  # or the variance of the noise falls by less than that share


@dataclass(frozen=True)
class Survey:
    """Counts, extremes and spread of the observed values.

    Attributes
    ----------
    finite : bool
        Whether values and the sum of their squares are finite.
    rows : int
    observed : int
        Number of entries that are not missing.
    means, lowest : (D,)
        Mean and minimum of each column.
    deviation : float
        Standard deviation of entries about the mean of their column.
    empty_rows : list of int
        Numbers of the rows without any value.
    """

    finite: bool
    rows: int
    observed: int
    means: Array
    lowest: Array
    deviation: float
    empty_rows: list[int]

    @property
    def variance(self) -> float:
        """What a variance may be in the units of the data; above zero."""
        level = float(np.mean(self.means**2))
        return self.deviation**2 or level or 1.0


def survey(source: Blocks) -> Survey:
    """Read every block once."""
    D = source.n_features
    lowest, origin = np.full(D, np.inf), np.zeros(D)
    known, sums, squares = np.zeros(D), np.zeros(D), np.zeros(D)
    empty: list[int] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for first, block in read_blocks(source):
            rows = block.astype(np.float64, copy=False)
            lowest = np.fmin(lowest, np.fmin.reduce(rows, axis=0))
            # Sums about a value of the column keep their digits.
            origin = np.where(known > 0.0, origin, np.where(lowest < np.inf, lowest, 0))
            values = rows - origin
            if np.isnan(values.sum()):
                missing = np.isnan(rows)
                values = np.where(missing, 0.0, values)
                known += np.count_nonzero(~missing, axis=0)
                empty += (first + np.flatnonzero(missing.all(axis=1))).tolist()
            else:
                known += len(rows)
            sums += values.sum(axis=0)
            squares += np.einsum("nd,nd->d", values, values)
        finite = bool(np.isfinite(squares.sum()))
        count = np.maximum(known, 1.0)
        spread = squares - sums * sums / count if finite else np.zeros(D)
    variance = max(float(spread.sum()), 0.0) / max(float(known.sum()), 1.0)
    return Survey(
        finite=finite,
        rows=source.n_rows,
        observed=int(known.sum()),
        means=origin + sums / count,
        lowest=lowest,
        deviation=float(np.sqrt(variance)),
        empty_rows=empty,
    )


# ---------------------------------------------------------------------- missing entries


def fill_with_noise(
    X: Array, gaps: NDArray[np.bool_], rng: np.random.Generator
) -> Array:
    """Fill gaps from the strong directions of the rows, plus noise."""
    return filled_and_rank(X, gaps, rng)[0]


def filled_and_rank(
    X: Array, gaps: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Array, int]:
    """The same, with the number of these directions.

    The noise is estimated where entries are known. A direction counts by how far it
    exceeds what noise alone would show, so that none is strong only for what was filled
    in before. Without noise in the gaps a search would take the noise elsewhere for
    features.
    """
    known = ~gaps
    means = np.nanmean(X, axis=0)
    fitted = np.broadcast_to(means, X.shape)
    variance = float(np.mean((X - fitted)[known] ** 2))
    basis = None
    for _ in range(_ROUNDS):
        filled = np.where(gaps, fitted, X)
        new, rank, basis = _strong_part(filled, variance, basis)
        moved = float(np.mean((new - fitted)[gaps] ** 2))
        fitted = new
        free = max(known.sum() - rank * sum(X.shape), 0.1 * known.sum())
        before, variance = variance, float(np.sum((X - fitted)[known] ** 2) / free)
        if moved <= _STILL**2 * variance or 0.0 <= before - variance < _KNOWN * before:
            break
    noise = rng.normal(scale=np.sqrt(variance), size=X.shape)
    return np.where(gaps, fitted + noise, X), rank


def _strong_part(
    filled: Array, variance: float, basis: Array | None
) -> tuple[Array, int, Array]:
    """The part of a table beyond noise of a variance, and its number of directions.

    Noise has no squared singular value beyond σ²(√N + √D)². Also returns a basis that
    holds these directions, for the next table, which will be much like this one.
    """
    N, D = filled.shape
    mean = filled.mean(axis=0)
    centred = filled - mean
    most = variance * (np.sqrt(N) + np.sqrt(D)) ** 2
    values, vectors = _directions(centred, most, basis)
    rank = int(np.count_nonzero(values > most))  # these are the last
    kept = vectors[:, len(values) - rank :]
    shrunk = kept * (1.0 - most / values[len(values) - rank :])
    spare = rank // 4 + 16
    return mean + (centred @ kept) @ shrunk.T, rank, vectors[:, -rank - spare :]


def _directions(
    centred: Array, most: float, basis: Array | None
) -> tuple[Array, Array]:
    """Squared singular values and right vectors, at least those with larger squares.

    All of them for small tables. For larger ones a subspace is turned towards the
    strongest directions, and widened until its weakest is not strong.
    """
    least, D = min(centred.shape), centred.shape[1]
    if least < _SMALL:
        return _all_directions(centred)
    if basis is not None and 2 * basis.shape[1] < least:
        values, vectors = _turned(centred, basis, 1)
        if values[0] <= most:
            return values, vectors
    size = _FIRST_DIRECTIONS if basis is None else 2 * basis.shape[1]
    while 4 * size < least:
        start = np.random.default_rng(size).normal(size=(D, size))
        values, vectors = _turned(centred, start, _TURNS)
        if values[0] <= most:
            return values, vectors
        size *= 2
    return _all_directions(centred)


def _turned(centred: Array, basis: Array, turns: int) -> tuple[Array, Array]:
    """Subspace iteration: values ascend."""
    for _ in range(turns):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0]
    part = centred @ basis
    values, turn = np.linalg.eigh(part.T @ part)
    return values, basis @ turn


def _all_directions(centred: Array) -> tuple[Array, Array]:
    """All that are not 0, from the smaller of the two tables of products."""
    N, D = centred.shape
    if N >= D:
        values, vectors = np.linalg.eigh(centred.T @ centred)
        return values, vectors
    values, left = np.linalg.eigh(centred @ centred.T)
    some = values > values[-1] * N * np.finfo(float).eps
    return values[some], centred.T @ (left[:, some] / np.sqrt(values[some]))
