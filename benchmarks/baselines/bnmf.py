"""Bayesian non-negative matrix factorisation by iterated conditional modes.

Schmidt, Winther & Hansen (ICA 2009): X = BA + noise, where the entries of B and A are
exponential and the variance of the noise has a flat prior on its logarithm. Each column
of B, each row of A and the variance in turn is set to the mode of its conditional
distribution. A missing entry (NaN) is no part of the likelihood.
"""

from dataclasses import dataclass, field

import numpy as np

BLOCK = 5  # iterations between two looks at the likelihood
TINY = 1e-12


@dataclass
class Factors:
    """A point estimate: X ≈ BA."""

    B: np.ndarray
    A: np.ndarray
    variance: float
    n_iter: int = 0
    converged: bool = False
    history: list[float] = field(default_factory=list)


def bnmf(
    X: np.ndarray,
    n_components: int,
    *,
    max_iter: int = 1000,
    tol: float = 1e-4,
    random_state: int = 0,
) -> Factors:
    """Iterate until the log-likelihood of an entry changes by less than a share `tol`.

    It is looked at every five iterations, as in the paper of MEIBP. Both priors have
    the rate √(K / mean of X), at which BA has the mean of X; the start is a draw from
    them.
    """
    rng = np.random.default_rng(random_state)
    mean = max(float(np.nanmean(X)), TINY)
    rate = np.sqrt(n_components / mean)
    found = Factors(
        rng.exponential(1 / rate, (len(X), n_components)),
        rng.exponential(1 / rate, (n_components, X.shape[1])),
        float(np.nanvar(X)),
    )
    rows, columns = Patterns(X), Patterns(X.T)
    for i in range(1, max_iter + 1):
        rows.improve(found.B, found.A, rate * found.variance)
        columns.improve(found.A.T, found.B.T, rate * found.variance)
        found.variance = max(rows.squared_error(found.B, found.A), TINY)
        found.n_iter = i
        if i % BLOCK == 0:
            found.history.append(log_likelihood(found.variance))
            found.converged = at_rest(found.history, tol)
            if found.converged:
                break
    return found


def log_likelihood(variance: float) -> float:
    """Of an entry, on average, where `variance` is the mean squared error."""
    return float(-0.5 * np.log(2 * np.pi * np.e * variance))


def at_rest(history: list[float], tol: float) -> bool:
    if len(history) < 2:
        return False
    before, now = history[-2:]
    return bool(abs(now - before) <= tol * abs(before))


class Patterns:
    """The rows of a table in groups that observe the same columns."""

    def __init__(self, X: np.ndarray):
        seen = ~np.isnan(X)
        self.n_seen = int(seen.sum())
        self.groups = []
        for rows, columns in same_rows(seen):
            self.groups.append((rows, columns, X[np.ix_(rows, columns)]))

    def improve(self, B: np.ndarray, A: np.ndarray, penalty: float) -> None:
        """Set the columns of B, in place, to their modes given A and each other."""
        for rows, columns, X in self.groups:
            factors = A[:, columns]
            gram, scores = factors @ factors.T, X @ factors.T - penalty
            mine = B[rows]
            for k in range(len(A)):
                if gram[k, k] <= TINY:
                    mine[:, k] = 0.0  # the mode of an exponential
                    continue
                step = (scores[:, k] - mine @ gram[:, k]) / gram[k, k]
                mine[:, k] = np.maximum(mine[:, k] + step, 0.0)
            B[rows] = mine

    def squared_error(self, B: np.ndarray, A: np.ndarray) -> float:
        """Mean squared error of the observed entries."""
        total = 0.0
        for rows, columns, X in self.groups:
            total += float(np.sum((X - B[rows] @ A[:, columns]) ** 2))
        return total / self.n_seen


def same_rows(seen: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the rows that share a mask, and of the columns that this observes."""
    groups: dict[bytes, list[int]] = {}
    for n, packed in enumerate(np.packbits(seen, axis=1)):
        groups.setdefault(packed.tobytes(), []).append(n)
    return [(np.array(rows), np.flatnonzero(seen[rows[0]])) for rows in groups.values()]
