"""Infinite nonnegative matrix factorisation: an Indian buffet with factors above 0.

After Ding, Qi, Xiang, Molloy & Li (AISTATS 2010): X = ZA + noise, where Z has the prior
of the Indian buffet process over shifted classes, and A is Gaussian, cut off at 0. Bits
of Z are independent; their counts among other rows take the place of the process, by
their means and variances. For each column of A all K factors have one Gaussian, whose
factors that stand for the cut are found by expectation propagation: that is what takes
K³ for each column. A missing entry (NaN) is no part of the likelihood, and scales are
given.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr

from baselines.bnmf import same_rows

EDGE = 1e-4  # expected bits stay so far from 0 and 1
SWEEPS = 20  # of expectation propagation for a column
STEP = 0.7  # by which its factors move: full steps may run away


@dataclass
class Posterior:
    """Expected bits, and mean and covariance of each column of A."""

    Z: np.ndarray  # (N, K)
    means: np.ndarray  # (D, K)
    covariances: np.ndarray  # (D, K, K)
    sites: np.ndarray  # (2, D, K), precisions and shifts that stand for the cut
    n_iter: int = 0

    @property
    def A(self) -> np.ndarray:
        return np.maximum(self.means.T, 0.0)


def inmf(
    X: np.ndarray,
    n_components: int,
    *,
    noise_scale: float,
    factor_scale: float,
    alpha: float = 3.0,
    max_iter: int = 100,
    tol: float = 1e-4,
    random_state: int = 0,
) -> Posterior:
    """Iterate until no expected bit and no prediction changes by more than `tol`."""
    rng = np.random.default_rng(random_state)
    N, D, K = *X.shape, n_components
    Z = rng.uniform(0.2, 0.8, (N, K))
    q = Posterior(Z, np.zeros((D, K)), np.zeros((D, K, K)), np.zeros((2, D, K)))
    q.sites[0] = 1.0 / factor_scale**2
    for _ in range(max_iter):
        before = q.Z.copy(), q.Z @ q.means.T
        fit_factors(q, X, noise_scale**2, factor_scale**2)
        fit_bits(q, X, noise_scale**2, alpha)
        q.n_iter += 1
        moved = np.abs(q.Z - before[0]).max()
        if max(moved, np.abs(q.Z @ q.means.T - before[1]).max()) <= tol:
            break
    return q


def fit_factors(q: Posterior, X: np.ndarray, noise: float, prior: float) -> None:
    """q(A), column by column: a Gaussian likelihood times cut-off priors."""
    spread = q.Z * (1.0 - q.Z)
    for columns, rows in same_rows(~np.isnan(X.T)):
        Z, x = q.Z[rows], X[np.ix_(rows, columns)]
        gram = (Z.T @ Z + np.diag(spread[rows].sum(axis=0))) / noise
        for d, shift in zip(columns, x.T @ Z / noise, strict=True):
            found = propagate(gram, shift, prior, q.sites[:, d])
            q.means[d], q.covariances[d] = found


def propagate(
    precision: np.ndarray, shift: np.ndarray, prior: float, sites: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a Gaussian likelihood times N(a_k; 0, prior) [a_k ≥ 0].

    `sites` are changed in place: each stands for one cut-off prior, so that mean and
    variance of its factor are those that the prior itself would give.
    """
    for _ in range(SWEEPS):
        covariance = np.linalg.inv(precision + np.diag(sites[0]))
        mean = covariance @ (shift + sites[1])
        own = np.diag(covariance)
        left = np.maximum(1.0 / own - sites[0], 1e-10)  # all but the own site
        place = mean / own - sites[1]
        variance = 1.0 / (left + 1.0 / prior)
        first, second = moments_above_0(place * variance, variance)
        new = 1.0 / second - left, first / second - place
        change = max(np.abs(new[0] - sites[0]).max(), np.abs(new[1] - sites[1]).max())
        sites[0] += STEP * (np.maximum(new[0], 1e-10) - sites[0])
        sites[1] += STEP * (new[1] - sites[1])
        if change < 1e-8 * (1.0 + np.abs(sites).max()):
            break
    covariance = np.linalg.inv(precision + np.diag(sites[0]))
    return covariance @ (shift + sites[1]), covariance


def moments_above_0(
    mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of Gaussians that are cut off below 0."""
    scale = np.sqrt(variance)
    z = mean / scale
    ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    first = mean + scale * ratio
    second = variance * np.maximum(1.0 - ratio * (z + ratio), 1e-10)
    return first, second


def fit_bits(q: Posterior, X: np.ndarray, noise: float, alpha: float) -> None:
    """q(z), bit by bit, each given all others."""
    squares = q.covariances + q.means[:, :, None] * q.means[:, None, :]
    count, unsure = q.Z.sum(axis=0), np.sum(q.Z * (1.0 - q.Z), axis=0)
    share = alpha / q.Z.shape[1]
    for rows, columns in same_rows(~np.isnan(X)):
        gram = squares[columns].sum(axis=0) / noise
        own = 0.5 * np.diag(gram)
        off = gram - np.diag(np.diag(gram))
        scores = X[np.ix_(rows, columns)] @ q.means[columns] / noise - own
        for n, score in zip(rows, scores, strict=True):
            z = q.Z[n]
            for k in range(len(z)):
                count[k] -= z[k]
                unsure[k] -= z[k] * (1.0 - z[k])
                odds = score[k] - off[k] @ z
                odds += log_odds(count[k], unsure[k], len(q.Z), share)
                z[k] = np.clip(expit(odds), EDGE, 1.0 - EDGE)
                count[k] += z[k]
                unsure[k] += z[k] * (1.0 - z[k])


def log_odds(count: float, unsure: float, n_rows: int, share: float) -> float:
    """E[log (m + α/K) - log(N - m)] of a bit, to second order.

    m is the number of other rows with the feature; `count` and `unsure` are its mean
    and variance.
    """
    ones, zeros = count + share, n_rows - count
    return float(np.log(ones / zeros) - 0.5 * unsure * (ones**-2 - zeros**-2))
