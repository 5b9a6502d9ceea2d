"""Generators of rows that are sums of features."""

import numpy as np
from numpy.random import Generator
from scipy.special import ndtri

from kplus.datasets._arguments import Floats, Seed, check_sizes

__all__ = ["make_binary_features", "make_nonnegative_features"]


def make_binary_features(
    n_samples: int = 2_000,
    n_features: int = 100,
    n_components: int = 10,
    *,
    share: float = 0.3,
    noise: float = 0.5,
    correlation: float = 0.0,
    base: bool = False,
    random_state: Seed = None,
) -> tuple[Floats, Floats, Floats]:
    """Rows that are sums of the latent features they have, plus noise: X = ZA + noise.

    The features, rows of A, are standard normal. Each row has each of them with
    probability `share`, independently or, with `correlation`, together: then column k
    of Z is 1 where √c f + √(1 − c) g_k is above a threshold, with a factor f that all
    columns of a row share and noise g_k of their own, all standard normal.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Rows, columns and latent features.
    share : float, default=0.3
        Share of the rows that have a feature.
    noise : float, default=0.5
        Standard deviation of the noise in each entry.
    correlation : float, default=0
        Correlation c of the Gaussians behind any two columns of Z, at least 0 and less
        than 1. That of the columns themselves is lower: 0.33 for 0.5, if half of the
        rows have each.
    base : bool, default=False
        Whether every row has the first feature.
    random_state : int, Generator or None, default=None
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    Z : ndarray of shape (n_samples, n_components)
        Zeros and ones: which features each row has.
    A : ndarray of shape (n_components, n_features)
        The features.

    Examples
    --------
    >>> from kplus.datasets import make_binary_features
    >>> X, Z, A = make_binary_features(500, 20, 4, random_state=0)
    >>> X.shape, Z.shape, A.shape
    ((500, 20), (500, 4), (4, 20))
    """
    check_sizes(n_samples=n_samples, n_features=n_features, n_components=n_components)
    _check_shares(share, noise)
    if not 0 <= correlation < 1:
        raise ValueError(
            f"correlation must be at least 0 and less than 1, got {correlation}."
        )
    rng = np.random.default_rng(random_state)
    A = rng.standard_normal((n_components, n_features))
    Z = _bits(n_samples, n_components, share, correlation, rng)
    if base:
        Z[:, 0] = 1.0
    return _with_noise(Z @ A, noise, rng), Z, A


def make_nonnegative_features(
    n_samples: int = 500,
    n_features: int = 500,
    n_components: int = 20,
    *,
    share: float = 0.4,
    filled: float = 1 / 3,
    noise: float = 1.0,
    random_state: Seed = None,
) -> tuple[Floats, Floats, Floats]:
    """Rows that are sums of binary factors which overlap, plus noise: X = ZA + noise.

    The high-noise data of the paper of `MEIBP` (Reed & Ghahramani, ICML 2013). Neither
    Z nor A is negative, but X is where noise outweighs them.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Rows, columns and latent features.
    share : float, default=0.4
        Probability that a row has a feature, independently of others.
    filled : float, default=1/3
        Share of the columns in which a factor is 1, rounded to whole columns but at
        least one. Which ones is drawn anew for each factor, so that factors overlap.
    noise : float, default=1
        Standard deviation of the noise in each entry.
    random_state : int, Generator or None, default=None
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    Z : ndarray of shape (n_samples, n_components)
        Zeros and ones: which features each row has.
    A : ndarray of shape (n_components, n_features)
        Zeros and ones: the factors.

    Examples
    --------
    >>> from kplus.datasets import make_nonnegative_features
    >>> X, Z, A = make_nonnegative_features(100, 30, 4, random_state=0)
    >>> X.shape, Z.shape, A.shape
    ((100, 30), (100, 4), (4, 30))
    >>> A.sum(axis=1)
    array([10., 10., 10., 10.])
    """
    check_sizes(n_samples=n_samples, n_features=n_features, n_components=n_components)
    _check_shares(share, noise)
    if not 0 < filled <= 1:
        raise ValueError(f"filled must be above 0 and at most 1, got {filled}.")
    rng = np.random.default_rng(random_state)
    n_ones = max(1, round(filled * n_features))
    ones = np.tile(np.arange(n_features) < n_ones, (n_components, 1))
    A = rng.permuted(ones, axis=1).astype(np.float64)
    Z = (rng.uniform(size=(n_samples, n_components)) < share).astype(np.float64)
    return _with_noise(Z @ A, noise, rng), Z, A


def _bits(
    n_samples: int, n_components: int, share: float, correlation: float, rng: Generator
) -> Floats:
    """Columns of zeros and ones by a threshold on Gaussians that share a factor."""
    behind = rng.standard_normal((n_samples, n_components))
    if correlation > 0:
        behind *= np.sqrt(1 - correlation)
        behind += np.sqrt(correlation) * rng.standard_normal((n_samples, 1))
    return (behind < ndtri(share)).astype(np.float64)


def _with_noise(X: Floats, noise: float, rng: Generator) -> Floats:
    X += noise * rng.standard_normal(X.shape)
    return X


def _check_shares(share: float, noise: float) -> None:
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}.")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be finite and not negative, got {noise}.")
