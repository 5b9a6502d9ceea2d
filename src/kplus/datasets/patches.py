"""A generator of small image patches that show an edge."""

from typing import Literal, overload

import numpy as np

from kplus.datasets._arguments import Floats, Ints, Seed, check_sizes

__all__ = ["make_edge_patches"]


@overload
def make_edge_patches(
    n_rows: int = ...,
    size: int = ...,
    n_components: int = ...,
    random_state: Seed = ...,
    *,
    signal: float = ...,
    noise: float = ...,
    return_covariances: Literal[False] = ...,
) -> tuple[Floats, Ints]: ...


@overload
def make_edge_patches(
    n_rows: int = ...,
    size: int = ...,
    n_components: int = ...,
    random_state: Seed = ...,
    *,
    signal: float = ...,
    noise: float = ...,
    return_covariances: Literal[True],
) -> tuple[Floats, Ints, Floats]: ...


def make_edge_patches(
    n_rows: int = 100_000,
    size: int = 5,
    n_components: int = 8,
    random_state: Seed = None,
    *,
    signal: float = 0.5,
    noise: float = 0.01,
    return_covariances: bool = False,
) -> tuple[Floats, Ints] | tuple[Floats, Ints, Floats]:
    """Image patches with a strong edge, from Gaussians that differ in covariance only.

    Every component has mean zero and its own direction of the edge, which runs through
    the middle of the patch; the directions are equally spaced and the components
    equally common. In a patch the two sides of the edge have opposite signs, and the
    brightness changes slowly along the edge and away from it. Means say nothing about
    the components, so this is a test of mixtures with full covariances.

    With the defaults the eigenvalues of a covariance lie between 0.01 and 11, and
    assigning each row to the most likely of the true Gaussians recovers `y` up to an
    adjusted Rand index of about 0.99.

    Parameters
    ----------
    n_rows : int, default=100_000
        Number of patches.
    size : int, default=5
        Side of a patch in pixels, at least 2; a row has ``size**2`` columns.
    n_components : int, default=8
        Number of directions.
    random_state : int, Generator or None, default=None
        Seed of the random numbers; the covariances do not depend on it.
    signal : float, default=0.5
        Variance of the edge, averaged over the pixels.
    noise : float, default=0.01
        Variance of the noise, which is independent between pixels.
    return_covariances : bool, default=False
        Whether to return the covariances of the components, too.

    Returns
    -------
    X : ndarray of shape (n_rows, size**2)
        The patches; pixel (i, j) is column ``i * size + j``.
    y : ndarray of shape (n_rows,)
        The component that made each patch.
    covariances : ndarray of shape (n_components, size**2, size**2)
        Covariances of the components; only with `return_covariances`.

    Examples
    --------
    >>> from kplus.datasets import make_edge_patches
    >>> X, y = make_edge_patches(1000, random_state=0)
    >>> X.shape, int(y.max()) + 1
    ((1000, 25), 8)
    """
    check_sizes(n_rows=n_rows, n_components=n_components)
    check_sizes(2, size=size)
    for name, variance in {"signal": signal, "noise": noise}.items():
        if not 0 < variance < np.inf:
            raise ValueError(f"{name} must be positive and finite, got {variance}.")
    rng = np.random.default_rng(random_state)
    covariances = _edge_covariances(size, n_components, signal, noise)
    y = rng.integers(n_components, size=n_rows)
    X = rng.standard_normal((n_rows, size**2))
    for k, factor in enumerate(np.linalg.cholesky(covariances)):
        rows = np.flatnonzero(y == k)
        X[rows] = X[rows] @ factor.T
    return (X, y, covariances) if return_covariances else (X, y)


# Lengths in pixels: half the width of the step itself, and how far the brightness
# stays alike away from the edge and along it.
_STEP, _AWAY, _ALONG = 1.0, 2.0, 4.0


def _edge_covariances(
    size: int, n_components: int, signal: float, noise: float
) -> Floats:
    place = np.arange(size) - (size - 1) / 2
    down, right = (axis.ravel() for axis in np.meshgrid(place, place, indexing="ij"))
    covariances = np.empty((n_components, size**2, size**2))
    for k in range(n_components):
        angle = np.pi * k / n_components
        across = right * np.cos(angle) + down * np.sin(angle)
        along = down * np.cos(angle) - right * np.sin(angle)
        step = np.tanh(across / _STEP)
        # Alike at equal distances from the edge, on either side: the step has the sign.
        away = np.subtract.outer(np.abs(across), np.abs(across)) / _AWAY
        drift = np.subtract.outer(along, along) / _ALONG
        edge = np.outer(step, step) * np.exp(-0.5 * (away**2 + drift**2))
        edge *= signal * size**2 / np.trace(edge)
        covariances[k] = edge + noise * np.eye(size**2)
    return covariances
