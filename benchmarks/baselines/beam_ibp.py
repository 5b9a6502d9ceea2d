"""Beam search for a good Z in the linear-Gaussian Indian buffet process.

Rai & Daumé (ICML 2011), as the paper of MEIBP describes it: rows join one by one. Each
of the matrices kept so far is continued by every set of its features, with so many new
ones; by the log joint density of rows and features, with the factors integrated out,
the best of all are kept. The rows still to come would add the same to each matrix of
equal length, so they are left out.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import gammaln


@dataclass(frozen=True)
class Kept:
    """Features of the first rows, what their sums say of A, and the log joint."""

    Z: np.ndarray  # (n, K)
    gram: np.ndarray  # ZᵀZ
    cross: np.ndarray  # ZᵀX
    score: float


@dataclass(frozen=True)
class Scales:
    noise: float
    factor: float
    alpha: float


def beam_ibp(
    X: np.ndarray, scales: Scales, *, beam: int = 10, most_new: int = 3
) -> Kept:
    """The best features found with so many matrices kept after each row."""
    kept = [Kept(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, X.shape[1])), 0.0)]
    for x in X:
        ways = [
            (score, old, z, new)
            for old in kept
            for score, z, new in continued(old, x, scales, beam, most_new)
        ]
        ways.sort(key=lambda way: -way[0])
        kept = [added(old, x, z, new, score) for score, old, z, new in ways[:beam]]
    return kept[0]


def continued(
    old: Kept, x: np.ndarray, scales: Scales, beam: int, most_new: int
) -> list[tuple[float, np.ndarray, int]]:
    """The best ways to add a row, of 2^K sets of features times numbers of new ones."""
    n, K = len(old.Z) + 1, len(old.gram)
    sets = np.array(list(product((0.0, 1.0), repeat=K))).reshape(2**K, K)
    counts = np.diag(old.gram)
    prior = sets @ np.log(counts / n) + (1.0 - sets) @ np.log1p(-counts / n)
    new, rate = np.arange(most_new + 1), scales.alpha / n
    scores = old.score + prior[:, None] + new * np.log(rate) - rate - gammaln(new + 1)
    scores += log_predictive(old, x, sets, scales, most_new)
    best = np.argsort(-scores, axis=None, kind="stable")[:beam]
    places = zip(*np.unravel_index(best, scores.shape), strict=True)
    return [(float(scores[i, j]), sets[i], int(j)) for i, j in places]


def log_predictive(
    old: Kept, x: np.ndarray, sets: np.ndarray, scales: Scales, most_new: int
) -> np.ndarray:
    """log p(x | earlier rows, z) for each set z and each number of new features."""
    noise, prior = scales.noise**2, scales.factor**2
    precision = old.gram + noise / prior * np.eye(len(old.gram))
    means = sets @ np.linalg.solve(precision, old.cross)
    own = np.sum(sets * np.linalg.solve(precision, sets.T).T, axis=1)
    new = np.arange(most_new + 1)
    variance = noise * (1.0 + own)[:, None] + prior * new
    squares = np.sum((x - means) ** 2, axis=1)[:, None]
    out: np.ndarray = -0.5 * (
        len(x) * np.log(2 * np.pi * variance) + squares / variance
    )
    return out


def added(old: Kept, x: np.ndarray, z: np.ndarray, new: int, score: float) -> Kept:
    """The matrix with one row more, whose last features are its own."""
    row = np.append(z, np.ones(new))
    Z = np.vstack([np.pad(old.Z, ((0, 0), (0, new))), row])
    gram = np.pad(old.gram, (0, new)) + np.outer(row, row)
    cross = np.pad(old.cross, ((0, new), (0, 0))) + np.outer(row, x)
    return Kept(Z, gram, cross, score)
