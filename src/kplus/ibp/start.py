"""Where the features of an Indian buffet process may begin.

Starts are columns of Z for rows in memory. How good the end is depends on the start
more than on anything else.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kplus.core.types import Array
from kplus.linear.pursuit import noise_rank, two_valued

__all__ = ["MOSTLY", "Bits", "Spectrum", "parts", "projections", "random_bits"]

Bits = NDArray[np.uint8]
_MOST_DIRECTIONS = 200
_PART_STEPS = 30
_POWER_STEPS = 6
_LEVEL = 10.0  # times what noise and K features make of a level that is not there
MOSTLY = 0.8  # so many clear projections leave no doubt about the others


@dataclass(frozen=True)
class Spectrum:
    """The strongest directions of rows without gaps.

    Attributes
    ----------
    X : (n, D)
        Rows, centred.
    mean : (D,)
    values : (m,)
        Squared singular values, falling.
    right : (D, m)
        Their directions.
    rank : int
        How many of them stand out of noise.
    noise : float
        Variance of the rest.
    """

    X: Array
    mean: Array
    values: Array
    right: Array
    rank: int
    noise: float

    @classmethod
    def of(cls, X: Array, most: int) -> "Spectrum":
        """Of rows, in up to `most` directions."""
        mean = X.mean(axis=0)
        centred = X - mean
        n, D = X.shape
        wide = n < D
        gram = centred @ centred.T if wide else centred.T @ centred
        m = min(len(gram), most + 1, _MOST_DIRECTIONS)
        values, vectors = _strongest(gram, m)
        if wide:
            vectors = centred.T @ (vectors / np.sqrt(np.maximum(values, 1e-300)))
        total = float(np.vdot(centred, centred))
        rest = max(total - float(values.sum()), 0.0)
        rank, noise = noise_rank(values, n, D, rest)
        return cls(centred, mean, values, vectors, min(rank, most), noise)

    def whitened(self, K: int) -> Array:
        """Rows in K directions, of unit variance each."""
        n = len(self.X)
        white: Array = self.X @ (self.right[:, :K] * np.sqrt(n / self.values[:K]))
        return white


def _strongest(gram: Array, m: int) -> tuple[Array, Array]:
    """The m largest eigenvalues, falling, and their vectors.

    Of large matrices by a few steps of subspace iteration: what stands out of noise
    comes out exactly, and what does not need not.
    """
    n = len(gram)
    if n < 6 * m:
        values, vectors = scipy.linalg.eigh(
            gram, subset_by_index=[n - m, n - 1], check_finite=False
        )
        return np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    block = np.random.default_rng(0).normal(size=(n, m))
    for _ in range(_POWER_STEPS):
        block = np.linalg.qr(gram @ block)[0]
    values, turn = np.linalg.eigh(block.T @ (gram @ block))
    return np.maximum(values[::-1], 0.0), block @ turn[:, ::-1]


def projections(
    found: Spectrum, most: int, nonnegative: bool, rng: np.random.Generator
) -> tuple[Bits, float]:
    """Columns of Z that projections of the rows show, and the share that is clear.

    What a projection tells apart may be a feature or its absence. Features that add are
    taken: where the sum over columns is positive. What all rows have in common beside
    them, if it is more than noise, is one feature more.
    """
    n = len(found.X)
    K = max(found.rank, int(found.values[0] > 0.0))
    columns, clear = np.zeros((n, 0), np.bool_), 0
    if K:
        columns, clear = two_valued(found.whitened(K), np.full(n, 1.0 / n), rng, MOSTLY)
    Z = columns.astype(np.uint8)
    ones = columns - columns.mean(axis=0)
    gram = ones.T @ ones
    slopes = np.linalg.pinv(gram, hermitian=True) @ (ones.T @ found.X)
    turned = slopes.sum(axis=1) < 0.0
    if not nonnegative:
        turned = columns.mean(axis=0) > 0.5
    Z[:, turned] ^= 1
    slopes[turned] *= -1.0
    level = found.mean - Z.mean(axis=0) @ slopes
    if nonnegative:
        level = np.maximum(level, 0.0)
    if level @ level * n > _LEVEL * (K + 1) * found.noise * len(level):
        Z = np.column_stack([np.ones(n, np.uint8), Z])
    return Z[:, :most], clear / max(K, 1)


def parts(X: Array, K: int, rng: np.random.Generator) -> Bits:
    """Columns of Z from K nonnegative parts: which rows have much of each.

    A few rounds of coordinate descent for X ≈ WH with nonnegative W and H, from rows
    drawn far apart.
    """
    n = len(X)
    H = np.maximum(X[_apart(X, K, rng)], 0.0) + 1e-9
    W = np.zeros((n, len(H)))
    for _ in range(_PART_STEPS):
        _descend(W, X @ H.T, H @ H.T)
        _descend(H.T, X.T @ W, W.T @ W)
    return _much(W)


def _descend(W: Array, products: Array, gram: Array) -> None:
    """One round over the columns of W; those of no use become zero."""
    for k in range(W.shape[1]):
        own = gram[k, k]
        if own > 0.0:
            W[:, k] += (products[:, k] - W @ gram[:, k]) / own
            np.maximum(W[:, k], 0.0, out=W[:, k])


def _much(W: Array) -> Bits:
    """Cut each column in two where 2-means would."""
    Z = np.empty(W.shape, np.uint8)
    for k, w in enumerate(W.T):
        cut = 0.5 * (w.min() + w.max())
        for _ in range(10):
            above = w > cut
            if above.all() or not above.any():
                break
            cut = 0.5 * (w[above].mean() + w[~above].mean())
        Z[:, k] = w > cut
    return Z


def _apart(X: Array, K: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows drawn by what the rows drawn before leave of them."""
    R = X.copy()
    chosen: list[int] = []
    for _ in range(min(K, len(X))):
        squares = np.einsum("nd,nd->n", R, R)
        total = squares.sum()
        if not total > 0.0:
            break
        n = int(rng.choice(len(X), p=squares / total))
        chosen.append(n)
        direction = R[n] / np.sqrt(squares[n])
        R -= np.outer(R @ direction, direction)
    return np.array(chosen, dtype=np.int64)


def random_bits(n: int, K: int, rng: np.random.Generator) -> Bits:
    """As in the authors' code: each row has each feature with probability 1/3."""
    return (rng.uniform(size=(n, K)) < 1.0 / 3.0).astype(np.uint8)
