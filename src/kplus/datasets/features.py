"""A generator of rows that are sums of features."""

import numpy as np
from numpy.random import Generator
from scipy.special import ndtri

from kplus.datasets.mixtures import Floats, Seed

__all__ = ["make_binary_features"]


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
    probability `share`, independently or, with `correlation`, in company: then column k
    of Z tells where √c f + √(1 − c) g_k is above a threshold, with a factor f that all
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
    _check(n_samples, n_features, n_components, share, noise, correlation)
    rng = np.random.default_rng(random_state)
    A = rng.standard_normal((n_components, n_features))
    Z = _bits(n_samples, n_components, share, correlation, rng)
    if base:
        Z[:, 0] = 1.0
    X = Z @ A
    X += noise * rng.standard_normal(X.shape)
    return X, Z, A


def _bits(
    n_samples: int, n_components: int, share: float, correlation: float, rng: Generator
) -> Floats:
    """Columns of zeros and ones by a threshold on Gaussians that share a factor."""
    behind = rng.standard_normal((n_samples, n_components))
    if correlation > 0:
        behind *= np.sqrt(1 - correlation)
        behind += np.sqrt(correlation) * rng.standard_normal((n_samples, 1))
    return (behind < ndtri(share)).astype(np.float64)


def _check(
    n_samples: int,
    n_features: int,
    n_components: int,
    share: float,
    noise: float,
    correlation: float,
) -> None:
    sizes = {
        "n_samples": n_samples,
        "n_features": n_features,
        "n_components": n_components,
    }
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}.")
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}.")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be finite and not negative, got {noise}.")
    if not 0 <= correlation < 1:
        raise ValueError(
            f"correlation must be at least 0 and less than 1, got {correlation}."
        )
