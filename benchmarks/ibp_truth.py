"""What can be reached on synthetic data, and how near a fit came to the truth."""

import numpy as np

from kplus.ibp.factors import truncated_moments

ALIKE = 0.95  # cosine from which on a factor counts as recovered


def log_likelihood(
    predicted: np.ndarray, truth: np.ndarray, noise_scale: float
) -> float:
    """Mean over entries of log N(x; prediction, noise_scale²)."""
    error = float(np.mean((predicted.astype(np.float64) - truth) ** 2))
    variance = noise_scale**2
    return float(-0.5 * (np.log(2 * np.pi * variance) + error / variance))


def factors_given(
    X: np.ndarray,
    Z: np.ndarray,
    noise: float = 1.0,
    prior: float | None = None,
    passes: int = 50,
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of q(A) at Z: Eqs. 14 and 15 of the paper, entries missing.

    `noise` and `prior` are variances; without a prior, that of the factors follows
    them. Means start at 0.
    """
    seen = ~np.isnan(X)
    cross = Z.T @ np.where(seen, X, 0.0)
    grams = np.einsum("nk,nj,nd->dkj", Z, Z, seen, optimize=True)
    mean, spread = np.zeros_like(cross), np.zeros_like(cross)
    variance = 1.0 if prior is None else prior
    for _ in range(passes):
        for k in range(len(mean)):
            n = grams[:, k, k]
            rho = 1.0 / (n + noise / variance)
            rest = cross[k] - np.einsum("dj,jd->d", grams[:, k], mean) + n * mean[k]
            mean[k], spread[k] = truncated_moments(rho * rest, rho * noise)
        if prior is None:
            variance = float(np.mean(mean**2 + spread))
    return mean, spread


def limits(X: np.ndarray, full: np.ndarray, Z: np.ndarray, A: np.ndarray) -> dict:
    """Held-out log-likelihood of the true Z with the true A, and with its q(A)."""
    held_out = np.isnan(X)
    mean, _ = factors_given(X, Z)
    return {
        "oracle": log_likelihood((Z @ A)[held_out], full[held_out], 1.0),
        "ceiling": log_likelihood((Z @ mean)[held_out], full[held_out], 1.0),
    }


def recovered(found: np.ndarray, truth: np.ndarray) -> int:
    """How many true factors some found one resembles, by their cosine."""
    lengths = np.linalg.norm(found, axis=1)
    found = found[lengths > 0] / lengths[lengths > 0, None]
    truth = truth / np.linalg.norm(truth, axis=1)[:, None]
    if len(found) == 0:
        return 0
    return int(np.sum((found @ truth.T).max(axis=0) >= ALIKE))
