"""Missing entries filled in as if they had been observed, noise included."""

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array

__all__ = ["fill_with_noise"]

_ROUNDS = 30
_STILL = 1e-2  # of the noise: how much filled values may move at the end


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
    for _ in range(_ROUNDS):
        filled = np.where(gaps, fitted, X)
        new, rank = _strong_part(filled, variance)
        moved = float(np.mean((new - fitted)[gaps] ** 2))
        fitted = new
        free = max(known.sum() - rank * sum(X.shape), 0.1 * known.sum())
        variance = float(np.sum((X - fitted)[known] ** 2) / free)
        if moved <= _STILL**2 * variance:
            break
    noise = rng.normal(scale=np.sqrt(variance), size=X.shape)
    return np.where(gaps, fitted + noise, X)


def _strong_part(filled: Array, variance: float) -> tuple[Array, int]:
    """The part of a table beyond noise of a variance, and its number of directions.

    Noise has no squared singular value beyond σ²(√N + √D)².
    """
    N, D = filled.shape
    mean = filled.mean(axis=0)
    centred = filled - mean
    wide = N < D
    values, vectors = np.linalg.eigh(
        centred @ centred.T if wide else centred.T @ centred
    )
    most = variance * (np.sqrt(N) + np.sqrt(D)) ** 2
    strong = values > most
    kept = vectors[:, strong]
    shrunk = kept * (1.0 - most / values[strong])
    part = shrunk @ (kept.T @ centred) if wide else (centred @ kept) @ shrunk.T
    return mean + part, int(strong.sum())
