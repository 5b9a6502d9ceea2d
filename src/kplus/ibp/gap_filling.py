"""Missing entries filled in as if they had been observed, noise included."""

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array

__all__ = ["fill_with_noise"]

_ROUNDS = 30
_SMALL = 256  # rows or columns: all directions are found at once
_FIRST_DIRECTIONS = 64  # so many are sought first in larger tables
_TURNS = 4  # towards the strongest directions, from random ones
_STILL = 1e-2  # of the noise: how much filled values may move at the end
_KNOWN = 1e-3  # or the share by which the variance of the noise may still fall


def fill_with_noise(
    X: Array, gaps: NDArray[np.bool_], rng: np.random.Generator
) -> Array:
    """Fill gaps from the strong directions of the rows, plus noise.

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
    return np.where(gaps, fitted + noise, X)


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
