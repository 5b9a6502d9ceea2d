"""Projections of the rows that take two values: what columns of Z look like from afar.

Where centred rows are X = ZA, every column of Z is a projection of X with two values.
Whitened, such a projection is a fixed point of: cut it in two, then regress the cut on
the rows. Independence is not needed, unlike in ICA, whose solutions serve as starts.
"""

import numpy as np
from numpy.typing import NDArray

from kplus.core.types import Array

__all__ = ["binary_columns", "fill_gaps", "noise_rank", "strengths", "two_valued"]

_MAX_ROUNDS = 6
_MAX_STEPS = 25
_ICA_STEPS = 15
_PURE = 0.1  # share of variance within the two halves; 0.36 for a Gaussian
_DEPENDENT = 0.2  # new directions have at least so much of their own
_FILLINGS = 10
_STARTS = 3  # random directions per feature and round


def noise_rank(values: Array, N: int, D: int, rest: float = 0.0) -> tuple[int, float]:
    """How many directions stand out of noise, and the variance of that.

    A matrix of N × D noise values of variance σ² has no squared singular value beyond
    σ²(√N + √D)². Directions of centred rows are set aside as long as they exceed what
    the rest, taken as noise, could show. `rest` is the sum of the values not given.
    """
    left = np.append(np.cumsum(values[::-1])[::-1], 0.0) + rest
    variance = 0.0
    for k in range(min(N - 1, D, len(values))):
        n, d = N - 1 - k, D - k
        variance = float(left[k]) / (n * d)
        if values[k] <= variance * (np.sqrt(n) + np.sqrt(d)) ** 2:
            return k, variance
    return min(N - 1, D, len(values)), variance


def strengths(centred: Array, weights: Array) -> Array:
    """Squared singular values of centred, weighted rows, falling."""
    X = centred * np.sqrt(weights)[:, None]
    gram = X @ X.T if X.shape[0] < X.shape[1] else X.T @ X
    values: Array = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0)
    return values


def _directions(centred: Array, weights: Array, K: int) -> tuple[Array, Array]:
    """The K largest squared singular values, falling, and their right vectors."""
    X = centred * np.sqrt(weights)[:, None]
    if X.shape[0] < X.shape[1]:
        values, left = np.linalg.eigh(X @ X.T)
        right = X.T @ left / np.sqrt(np.maximum(values, 1e-300))
    else:
        values, right = np.linalg.eigh(X.T @ X)
    return np.maximum(values[::-1][:K], 0.0), right[:, ::-1][:, :K]


def fill_gaps(X: Array, gaps: NDArray[np.bool_], weights: Array) -> Array:
    """Fill gaps with what the strong directions of the rows say."""
    known = weights @ ~gaps
    sums = weights @ np.where(gaps, 0.0, X)
    means = np.divide(sums, known, out=np.zeros_like(sums), where=known > 0.0)
    filled = np.where(gaps, means, X)
    for _ in range(_FILLINGS):
        mean = weights @ filled / weights.sum()
        centred = filled - mean
        rank, _ = noise_rank(strengths(centred, weights), *X.shape)
        rank = min(rank, min(X.shape) // 2)
        _, right = _directions(centred, weights, rank)
        filled = np.where(gaps, mean + (centred @ right) @ right.T, X)
    return filled


def binary_columns(
    centred: Array, weights: Array, K: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], bool] | None:
    """K columns of two values, as far as projections of the rows show them.

    Also whether all are pure, so that there is no doubt about them; None where the
    rows have fewer than K directions.
    """
    if not 1 <= K <= min(centred.shape):
        return None
    values, right = _directions(centred, weights, K)
    N = weights.sum()
    if values[-1] <= 1e-10 * values[0]:
        return None
    Y = centred @ (right * np.sqrt(N / values))
    columns, clear = two_valued(Y, weights / N, rng)
    return columns, clear == K


def two_valued(
    Y: Array, shares: Array, rng: np.random.Generator, enough: float = 1.0
) -> tuple[NDArray[np.bool_], int]:
    """The same for whitened rows, which count by their shares; how many are pure.

    With `enough`, the search ends when such a share of the columns is.
    """
    K = Y.shape[1]
    best = _Columns(Y, shares, enough)
    best.try_directions(_unmixed(Y, best.shares, np.square, 0.0, rng))
    if not best.pure:
        best.try_directions(_unmixed(Y, best.shares, _cube, 3.0, rng))
    for _ in range(_MAX_ROUNDS):
        if best.pure:
            break
        best.try_directions(rng.normal(size=(K, _STARTS * K)))
    return best.columns, int(np.count_nonzero(best.within < _PURE))


def _cube(P: Array) -> Array:
    return P**3


def _unmixed(
    Y: Array, shares: Array, contrast: object, shrink: float, rng: np.random.Generator
) -> Array:
    """Directions by symmetric fixed-point ICA on whitened rows.

    Squares suit columns that few (or most) rows have, cubes those of half the rows.
    """
    K = Y.shape[1]
    W = np.linalg.qr(rng.normal(size=(K, K)))[0]
    Yw = Y * shares[:, None]
    for _ in range(_ICA_STEPS):
        step = Yw.T @ contrast(Y @ W) - shrink * W  # type: ignore[operator]
        values, vectors = np.linalg.eigh(step.T @ step)
        if values[0] <= 1e-12 * values[-1]:
            return W
        new = step @ (vectors / np.sqrt(values)) @ vectors.T
        turned = np.max(1.0 - np.abs(np.einsum("ij,ij->j", new, W)))
        W = new
        if turned < 1e-3:
            break
    return W


class _Columns:
    """The purest independent columns found so far."""

    def __init__(self, Y: Array, shares: Array, enough: float) -> None:
        self.Y, self.shares, self.enough = Y, shares, enough
        self.Yw = Y * shares[:, None]
        K = Y.shape[1]
        self.directions = np.empty((K, 0))
        self.columns = np.empty((len(Y), 0), np.bool_)
        self.within = np.empty(0)

    @property
    def pure(self) -> bool:
        """Whether all K columns are found and enough are clearly of two values."""
        K = self.Y.shape[1]
        clear = np.count_nonzero(self.within < _PURE)
        return len(self.within) == K and bool(clear >= self.enough * K)

    def try_directions(self, W: Array) -> None:
        """Refine directions and keep the purest independent ones, known or new."""
        earlier = self.directions
        if 0 < earlier.shape[1] < len(W):
            basis = np.linalg.qr(earlier)[0]
            W = W - basis @ (basis.T @ W)
        columns, directions, within = self._refined(W)
        self.columns = np.hstack([self.columns, columns])
        self.directions = np.hstack([earlier, directions])
        self.within = np.append(self.within, within)
        keep = self._independent()
        self.columns = self.columns[:, keep]
        self.directions = self.directions[:, keep]
        self.within = self.within[keep]

    def _refined(self, W: Array) -> tuple[NDArray[np.bool_], Array, Array]:
        """Cut projections in two and regress the cuts on the rows, to convergence."""
        Y, shares = self.Y, self.shares
        B = Y @ W > 0.0
        for _ in range(_MAX_STEPS):
            ones = B.astype(np.float64)
            W = self.Yw.T @ ones
            W /= np.linalg.norm(W, axis=0) + 1e-300
            P = Y @ W
            fraction = np.clip(shares @ ones, 1e-12, 1.0 - 1e-12)
            above = shares @ (P * ones)  # projections have mean 0
            new = 0.5 * (above / fraction - above / (1.0 - fraction)) < P
            if np.array_equal(new, B):
                break
            B = new
        within = 1.0 - above**2 * (1.0 / fraction + 1.0 / (1.0 - fraction))
        return B, W, within

    def _independent(self) -> list[int]:
        """Greedily the purest directions that are not in the span of purer ones."""
        K = len(self.directions)
        keep: list[int] = []
        basis = np.empty((K, 0))
        for j in np.argsort(self.within, kind="stable"):
            own = self.directions[:, j]
            own = own - basis @ (basis.T @ own)
            length = np.linalg.norm(own)
            if length > _DEPENDENT:
                keep.append(int(j))
                basis = np.column_stack([basis, own / length])
            if len(keep) == K:
                break
        return keep
