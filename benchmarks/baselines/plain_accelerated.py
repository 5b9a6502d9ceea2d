"""The accelerated Gibbs sampler of the Indian buffet process in plain numpy.

Doshi-Velez & Ghahramani (ICML 2009), one row at a time: the posterior of the factors
given all other rows is kept, so that a row's features need no other row. Written as one
would write it first, to see what compiled code is worth.
"""

import numpy as np


class PlainAccelerated:
    """State of the sampler, with all scales fixed; `sweep` visits every row once."""

    def __init__(
        self,
        X: np.ndarray,
        Z: np.ndarray,
        *,
        alpha: float,
        noise_scale: float,
        factor_scale: float,
        random_state: int = 0,
    ):
        self.X, self.Z = X, Z.astype(float)
        self.alpha = alpha
        self.noise, self.prior = noise_scale**2, factor_scale**2
        self.rng = np.random.default_rng(random_state)

    def sweep(self) -> None:
        self.gram, self.cross = self.Z.T @ self.Z, self.Z.T @ self.X
        for n in range(len(self.X)):
            self.visit(n)

    def visit(self, n: int) -> None:
        """Draw the features of row n given those of all others."""
        self.count(n, -1.0)
        shared = np.diag(self.gram) > 0.5
        own = int(self.Z[n, ~shared].sum())
        self.keep(shared)
        covariance, mean = self.posterior()
        self.draw_shared(n, own, covariance, mean)
        own = self.draw_own(n, own, covariance, mean)
        self.append(n, own)
        self.count(n, 1.0)

    def count(self, n: int, sign: float) -> None:
        """Let the sums over rows include row n, or not."""
        self.gram += sign * np.outer(self.Z[n], self.Z[n])
        self.cross += sign * np.outer(self.Z[n], self.X[n])

    def keep(self, columns: np.ndarray) -> None:
        self.Z = self.Z[:, columns]
        self.gram = self.gram[np.ix_(columns, columns)]
        self.cross = self.cross[columns]

    def append(self, n: int, own: int) -> None:
        """Give row n features that no other row has."""
        new = np.zeros((len(self.Z), own))
        new[n] = 1.0
        self.Z = np.hstack([self.Z, new])
        self.gram = np.pad(self.gram, (0, own))
        self.cross = np.pad(self.cross, ((0, own), (0, 0)))

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Covariance (that of each column) and mean of the factors given the sums."""
        precision = self.gram / self.noise + np.eye(len(self.gram)) / self.prior
        covariance = np.linalg.inv(precision)
        return covariance, covariance @ self.cross / self.noise

    def log_likelihood(
        self, n: int, z: np.ndarray, own: int, covariance: np.ndarray, mean: np.ndarray
    ) -> float:
        """Of row n given all others, if it has `own` features that they have not."""
        variance = self.noise + z @ covariance @ z + own * self.prior
        error = self.X[n] - z @ mean
        squares = error @ error / variance
        return float(-0.5 * (len(error) * np.log(2 * np.pi * variance) + squares))

    def draw_shared(
        self, n: int, own: int, covariance: np.ndarray, mean: np.ndarray
    ) -> None:
        z, counts = self.Z[n], np.diag(self.gram)
        for k in range(len(z)):
            scores = []
            for bit, count in ((0.0, len(self.X) - counts[k]), (1.0, counts[k])):
                z[k] = bit
                score = self.log_likelihood(n, z, own, covariance, mean)
                scores.append(np.log(count) + score)
            odds = np.exp(np.clip(scores[0] - scores[1], -700.0, 700.0))
            z[k] = float(self.rng.uniform() < 1 / (1 + odds))

    def draw_own(
        self, n: int, own: int, covariance: np.ndarray, mean: np.ndarray
    ) -> int:
        """How many features are this row's alone: Metropolis from the prior."""
        new = int(self.rng.poisson(self.alpha / len(self.X)))
        if new == own:
            return own
        z = self.Z[n]
        gain = self.log_likelihood(n, z, new, covariance, mean)
        gain -= self.log_likelihood(n, z, own, covariance, mean)
        return new if np.log(self.rng.uniform()) < gain else own
