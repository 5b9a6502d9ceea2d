"""Gaussian components with a normal-Wishart prior, for the search of `kd_mixture`.

Written from the textbook, apart from kplus: what is compared with it shares no code.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import digamma, multigammaln

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class NormalWishart:
    """Λ ~ Wishart(dof, scatter⁻¹) and μ | Λ ~ Normal(mean, (strength Λ)⁻¹).

    `concentration` is that of the process. Means are known to be `mean`
    where the strength is infinite.
    """

    mean: np.ndarray
    strength: float
    dof: float
    scatter: np.ndarray
    concentration: float = 1.0

    def posterior(self, sums: "Sums") -> "Gaussians":
        N, D = sums.N, len(self.mean)
        with np.errstate(invalid="ignore"):
            strength = self.strength + N
            means = (self.strength * self.mean + sums.first) / strength[:, None]
        if np.isinf(self.strength):
            means = np.tile(self.mean, (len(N), 1))
        scatter = self.scatter + sums.scatter_about(means)
        if not np.isinf(self.strength):
            shift = means - self.mean
            scatter += self.strength * shift[:, :, None] * shift[:, None, :]
        factors = np.linalg.cholesky(scatter)
        logs = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        dof = self.dof + N
        halves = 0.5 * (dof[:, None] - np.arange(D))
        log_det = digamma(halves).sum(axis=1) + D * np.log(2.0) - logs
        return Gaussians(strength, dof, means, factors, logs, log_det)

    @cached_property
    def unseen(self) -> "Gaussians":
        """What is known of a component without rows."""
        return self.posterior(Sums.none(1, len(self.mean)))

    def evidence(self, sums: "Sums") -> np.ndarray:
        """Log marginal density of the rows of each component."""
        q, none, D = self.posterior(sums), self.unseen, len(self.mean)
        out = multigammaln_of(q.dof / 2, D) - multigammaln_of(none.dof / 2, D)
        out += 0.5 * (none.dof * none.logs - q.dof * q.logs)
        out -= 0.5 * sums.N * D * np.log(np.pi)
        if not np.isinf(self.strength):
            out += 0.5 * D * np.log(self.strength / q.strength)
        return out


def multigammaln_of(values: np.ndarray, D: int) -> np.ndarray:
    return np.array([multigammaln(value, D) for value in values])


@dataclass(frozen=True)
class Sums:
    """Of each component: responsibilities, and with them rows and their squares."""

    N: np.ndarray  # (K,)
    first: np.ndarray  # (K, D)
    second: np.ndarray  # (K, D, D)

    @classmethod
    def none(cls, K: int, D: int) -> "Sums":
        return cls(np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D)))

    def of(self, chosen: np.ndarray) -> "Sums":
        return Sums(self.N[chosen], self.first[chosen], self.second[chosen])

    def together(self) -> "Sums":
        """Those of all components, as of one."""
        return Sums(*(part.sum(axis=0, keepdims=True) for part in vars(self).values()))

    def with_more(self, rest: "Sums") -> "Sums":
        """With sums of one component shared out by the sizes of these."""
        share = self.N / self.N.sum()
        return Sums(
            self.N + share * rest.N,
            self.first + share[:, None] * rest.first,
            self.second + share[:, None, None] * rest.second,
        )

    def followed_by(self, other: "Sums") -> "Sums":
        return Sums(
            np.concatenate([self.N, other.N]),
            np.concatenate([self.first, other.first]),
            np.concatenate([self.second, other.second]),
        )

    def scatter_about(self, points: np.ndarray) -> np.ndarray:
        cross = self.first[:, :, None] * points[:, None, :]
        square = points[:, :, None] * points[:, None, :]
        out = self.second - cross - np.swapaxes(cross, 1, 2)
        return out + self.N[:, None, None] * square


@dataclass(frozen=True)
class Gaussians:
    """q(μ, Λ) of components; `factors` are those of the inverse scale matrices."""

    strength: np.ndarray
    dof: np.ndarray
    means: np.ndarray
    factors: np.ndarray
    logs: np.ndarray  # log determinants of the inverse scale matrices
    log_det: np.ndarray  # E[log |Λ|]

    def scores(self, nodes: "Nodes") -> np.ndarray:
        """E[log p(x)] of a row, on average over the rows of each node."""
        D = self.means.shape[1]
        out = np.empty((len(nodes.n), len(self.dof)))
        for k, factor in enumerate(self.factors):
            white = solve_triangular(factor, np.eye(D), lower=True)
            far = np.sum(((nodes.means - self.means[k]) @ white.T) ** 2, axis=1)
            if nodes.covariances is not None:
                flat = nodes.covariances.reshape(len(nodes.n), -1)
                far += flat @ (white.T @ white).ravel()
            out[:, k] = -0.5 * self.dof[k] * far
        return out + 0.5 * (self.log_det - D * LOG_2PI - D / self.strength)

    def expected(self, sums: Sums) -> np.ndarray:
        """Sums over rows of E[log p(x)], by component."""
        D = self.means.shape[1]
        inverse = np.linalg.inv(self.factors)
        precision = np.swapaxes(inverse, 1, 2) @ inverse
        far = np.einsum("kij,kij->k", precision, sums.scatter_about(self.means))
        const = self.log_det - D * LOG_2PI - D / self.strength
        return 0.5 * (sums.N * const - self.dof * far)


@dataclass(frozen=True)
class Nodes:
    """Numbers, means and covariances of the rows of nodes; no covariances: of rows."""

    n: np.ndarray
    means: np.ndarray
    covariances: np.ndarray | None

    def sums(self, shares: np.ndarray) -> Sums:
        """With so much of a row of each node for each component."""
        weights = shares * self.n[:, None]
        (K, D), means = (shares.shape[1], self.means.shape[1]), self.means
        second = np.stack([(means * weights[:, k, None]).T @ means for k in range(K)])
        if self.covariances is not None:
            flat = self.covariances.reshape(len(self.n), -1)
            second += (weights.T @ flat).reshape(K, D, D)
        return Sums(weights.sum(axis=0), weights.T @ means, second)

    @classmethod
    def rows(cls, X: np.ndarray) -> "Nodes":
        return cls(np.ones(len(X)), X, None)

    def of(self, chosen: np.ndarray) -> "Nodes":
        spread = None if self.covariances is None else self.covariances[chosen]
        return Nodes(self.n[chosen], self.means[chosen], spread)
