"""Made tables with heavy tails, and with columns that go together in bands.

As in shuttle (Statlog): whole numbers, one class of about 80 % of the rows, a few rare
ones, and values far out. As in satellite: nine pixels in four bands, which hardly
differ inside a class.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["TABLES", "Table"]

Table = tuple[np.ndarray, np.ndarray]
_SHARES = {
    "t": (0.80, 0.15, 0.03, 0.015, 0.005),
    "laplace": (0.78, 0.12, 0.06, 0.03, 0.01),
}


def shuttle_like(n: int, tails: str, seed: int) -> Table:
    """Classes whose rows have a scale of their own, rounded.

    With "t" it is that of a t distribution with 3 degrees of freedom; with "laplace"
    its square is exponential, and a twentieth of the rows is four times as wide.
    """
    rng = np.random.default_rng([seed, len(tails)])
    shares, D = np.array(_SHARES[tails]), 9
    y = rng.choice(len(shares), size=n, p=shares)
    centres = rng.normal(0.0, 60.0, size=(len(shares), D))
    turns = rng.normal(size=(len(shares), D, D)) * rng.uniform(0.5, 4.0, size=D)
    if tails == "t":
        scale = 1.0 / np.sqrt(rng.chisquare(3.0, n) / 3.0)
    else:
        scale = np.sqrt(rng.exponential(size=n)) * np.where(rng.random(n) < 0.05, 4, 1)
    noise = np.einsum("nd,nde->ne", rng.normal(size=(n, D)), turns[y])
    return np.round(centres[y] + scale[:, None] * noise), y


def satellite_like(n: int, seed: int) -> Table:
    """Six classes, 36 columns: levels of bands, which pixels hardly differ from."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, n)
    centres = rng.normal(80.0, 18.0, size=(6, 4))
    turns = rng.normal(size=(6, 4, 4)) * 3.5
    bands = centres[y] + np.einsum("nb,nbc->nc", rng.normal(size=(n, 4)), turns[y])
    X = np.repeat(bands[:, None, :], 9, axis=1)
    place = np.stack(np.divmod(np.arange(9), 3), axis=1)
    apart = np.abs(place[:, None] - place).sum(axis=2)
    near = np.linalg.cholesky(0.6**apart)  # of pixels next to each other
    X += 3.0 * np.einsum("pq,nqb->npb", near, rng.normal(size=(n, 9, 4)))
    return np.round(X.reshape(n, 36)), y


TABLES: dict[str, tuple[int, Callable[[int, int], Table]]] = {
    "t, 10,000 × 9": (10_000, lambda n, seed: shuttle_like(n, "t", seed)),
    "exponential, 10,000 × 9": (
        10_000,
        lambda n, seed: shuttle_like(n, "laplace", seed),
    ),
    "bands, 2,000 × 36": (2_000, satellite_like),
    "bands, 6,000 × 36": (6_000, satellite_like),
}
