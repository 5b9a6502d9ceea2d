"""A given Z and what was observed (means, draws, evidence), and E[Z] of rows given A.

Columns with gaps in the same rows have the same ZᵀZ over the rows that were observed;
such a group of columns is a *pattern*. Without gaps there is one.
"""

from dataclasses import dataclass, field

import numpy as np

from kplus.core.reading import read_blocks
from kplus.core.types import Array, Blocks, IntArray
from kplus.ibp.gibbs.kernels_draws import Table, draw_factors
from kplus.ibp.kernels_marginals import ascend_rows, exact_marginals, seed_rows

__all__ = [
    "EXACT_BITS",
    "Observed",
    "Posteriors",
    "draw_nonnegative",
    "expected_bits",
    "grams_of",
    "mean_field",
    "observe",
]

EXACT_BITS = 12  # up to so many features, all 2^K patterns are summed over


@dataclass(frozen=True)
class Observed:
    """A table in memory, zero where values are missing.

    Attributes
    ----------
    X : (N, D)
    starts, gaps
        The missing columns of each row, in the form of a CSR matrix.
    pattern : (D,)
        The pattern that each column belongs to.
    missing_rows : list of arrays
        The rows in which the columns of each pattern have no value.
    columns : list of arrays
        The columns of each pattern.
    rows_of_gaps : the row of each entry of `gaps`
    squares : float
        ‖X‖².
    """

    X: Array
    starts: IntArray
    gaps: IntArray
    pattern: IntArray
    missing_rows: list[IntArray]
    columns: list[IntArray] = field(init=False)
    rows_of_gaps: IntArray = field(init=False)
    squares: float = field(init=False)

    def __post_init__(self) -> None:
        rows = np.repeat(np.arange(len(self.X)), np.diff(self.starts))
        order = np.argsort(self.pattern, kind="stable")
        ends = np.cumsum(np.bincount(self.pattern))[:-1]
        object.__setattr__(self, "columns", np.split(order, ends))
        object.__setattr__(self, "rows_of_gaps", rows)
        object.__setattr__(self, "squares", float(np.vdot(self.X, self.X)))

    @property
    def count(self) -> int:
        """Number of values that are not missing."""
        return self.X.size - len(self.gaps)

    def table(self, X: Array) -> Table:
        """What kernels take, with gaps as they are filled in X."""
        squares = np.einsum("nd,nd->n", X, X)
        return Table(X, squares, self.starts, self.gaps)

    def residuals(self, fitted: Array) -> Array:
        """X less `fitted`, which is overwritten; zero where values are missing."""
        np.subtract(self.X, fitted, out=fitted)
        fitted[self.rows_of_gaps, self.gaps] = 0.0
        return fitted


def observe(X: Array) -> Observed:
    """From a table with NaN where values are missing."""
    missing = np.isnan(X)
    starts = np.concatenate(([0], np.cumsum(missing.sum(axis=1)))).astype(np.int64)
    gaps = np.nonzero(missing)[1].astype(np.int64)
    masks = np.packbits(missing, axis=0)
    _, first, pattern = np.unique(masks, axis=1, return_index=True, return_inverse=True)
    rows: list[IntArray] = [np.flatnonzero(missing[:, d]) for d in first]
    filled = np.ascontiguousarray(np.where(missing, 0.0, X), dtype=np.float64)
    return Observed(filled, starts, gaps, pattern.ravel().astype(np.int64), rows)


def grams_of(Z: Array, data: Observed) -> Array:
    """ZᵀZ over the rows that were observed, one for each pattern."""
    whole = Z.T @ Z
    parts = [Z[rows] for rows in data.missing_rows]
    return np.stack([whole - part.T @ part if len(part) else whole for part in parts])


class Posteriors:
    """Gaussian factors given Z: the law of each column of A.

    Parameters
    ----------
    Z : (N, K) float
    data : Observed
    noise, factor : float
        Variances σx² and σa².
    """

    def __init__(self, Z: Array, data: Observed, noise: float, factor: float) -> None:
        self.data, self.noise = data, noise
        self.ratio = noise / factor
        self.T = Z.T @ data.X
        # With LLᵀ = ZᵀZ + ratio, the mean is L⁻ᵀ(L⁻¹T); K is small, L⁻¹ as good as L.
        roots = np.linalg.cholesky(grams_of(Z, data) + self.ratio * np.eye(Z.shape[1]))
        self._inverses = np.linalg.inv(roots)
        self._half = np.empty_like(self.T)
        for columns, inverse in zip(data.columns, self._inverses, strict=True):
            self._half[:, columns] = inverse @ self.T[:, columns]

    def _finish(self, half: Array) -> Array:
        A = np.empty_like(half)
        for columns, inverse in zip(self.data.columns, self._inverses, strict=True):
            A[:, columns] = inverse.T @ half[:, columns]
        return A

    def mean(self) -> Array:
        """E[A]."""
        return self._finish(self._half)

    def draw(self, rng: np.random.Generator) -> Array:
        """A draw of A."""
        noise = rng.standard_normal(self._half.shape)
        return self._finish(self._half + np.sqrt(self.noise) * noise)

    def log_evidence(self) -> float:
        """log p(observed values | Z), with A integrated out."""
        diagonals = np.diagonal(self._inverses, axis1=1, axis2=2)
        logs = -2.0 * np.log(diagonals).sum(axis=1) - len(self.T) * np.log(self.ratio)
        determinants = float(logs[self.data.pattern].sum())
        left = self.data.squares - float(np.vdot(self._half, self._half))
        count = self.data.count * np.log(2.0 * np.pi * self.noise)
        return float(-0.5 * (count + determinants + left / self.noise))


def draw_nonnegative(
    A: Array,
    Z: Array,
    data: Observed,
    noise: float,
    factor: float,
    rng: np.random.Generator,
    sweeps: int = 1,
) -> tuple[Array, Array]:
    """Draw nonnegative factors a few times over; the last draw and their mean."""
    At, T = np.ascontiguousarray(A.T), np.ascontiguousarray((Z.T @ data.X).T)
    total, grams = np.zeros_like(At), grams_of(Z, data)
    for _ in range(sweeps):
        draw_factors(At, T, grams, data.pattern, noise, noise / factor, rng)
        total += At
    return np.ascontiguousarray(At.T), np.ascontiguousarray(total.T / sweeps)


# ------------------------------------------------------------------------- E[Z] given A


def expected_bits(source: Blocks, A: Array, shares: Array, noise: float) -> Array:
    """E[Z] of all rows: exact for few features, else by mean field.

    Parameters
    ----------
    source : Blocks
        NaN where a value is missing.
    A : (K, D)
    shares : (K,)
        How probable each feature is before a row is seen.
    noise : float
        The variance σx².
    """
    odds = np.log(shares) - np.log1p(-shares)
    parts = [_of_block(X, A / noise, A, odds) for _, X in read_blocks(source)]
    return np.concatenate(parts)


def _of_block(X: Array, scaled: Array, A: Array, odds: Array) -> Array:
    """Rows with gaps in the same columns share their Gram matrix."""
    missing = np.isnan(X)
    c = np.where(missing, 0.0, X) @ scaled.T + odds
    out = np.empty_like(c)
    masks, group = np.unique(missing, axis=0, return_inverse=True)
    for i, mask in enumerate(masks):
        rows = np.flatnonzero(group.ravel() == i)
        G = scaled[:, ~mask] @ A[:, ~mask].T
        out[rows] = _marginals(c[rows], G)
    return out


def _marginals(c: Array, G: Array) -> Array:
    if len(G) > EXACT_BITS:
        return mean_field(c, G)
    out = np.empty_like(c)
    exact_marginals(c, G, out)
    return out


def mean_field(c: Array, G: Array, most_sweeps: int = 200, tol: float = 1e-9) -> Array:
    """Independent bits that fit best, from the best z that flips of one bit find."""
    nu, rest = np.zeros_like(c), c.copy()
    which, no_odds = np.zeros(len(c), np.int64), np.zeros(len(G))
    seed_rows(rest, G[None], which, no_odds, 1.0, nu)
    ascend_rows(rest, G[None], which, no_odds, 1.0, most_sweeps, tol, nu)
    return nu
