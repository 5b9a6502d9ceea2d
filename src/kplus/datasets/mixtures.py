"""Generators of Gaussian clusters."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from kplus.datasets._arguments import Floats, Ints, Seed, check_sizes

__all__ = [
    "MixtureCase",
    "make_gaussian_blobs",
    "make_grid_clusters",
    "make_spherical_mixture",
    "spherical_battery",
]


def make_gaussian_blobs(
    n_samples: int = 200_000,
    n_features: int = 50,
    n_clusters: int = 50,
    *,
    cluster_std: float = 1.035,
    center_std: float = 2.1,
    concentration: float = 2.0,
    random_state: Seed = None,
) -> tuple[Floats, Ints]:
    """Gaussian components of unequal size, each with a full covariance of its own.

    The covariance of a component has random axes; its variances along them differ by
    up to a factor of seven and average ``cluster_std**2``. With the default sizes the
    components are well separated, and no row is as far as √200 from its component's
    mean. DP-means at a penalty of 200 may still find a cluster or two more than 50,
    depending on the seed and on the order in which it opens them.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Rows, columns and components.
    cluster_std : float, default=1.035
        Root mean square deviation of a component along one axis.
    center_std : float, default=2.1
        Standard deviation of each coordinate of the centres.
    concentration : float, default=2
        Parameter of the Dirichlet distribution of the component weights; the larger,
        the more equal the sizes.
    random_state : int, Generator or None, default=None
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,)
        The component that made each row.

    Examples
    --------
    >>> from kplus.datasets import make_gaussian_blobs
    >>> X, y = make_gaussian_blobs(1000, 4, 3, random_state=0)
    >>> X.shape, y.shape
    ((1000, 4), (1000,))
    """
    check_sizes(n_samples=n_samples, n_features=n_features, n_clusters=n_clusters)
    rng = np.random.default_rng(random_state)
    centers = center_std * rng.standard_normal((n_clusters, n_features))
    weights = rng.dirichlet(np.full(n_clusters, concentration))
    y = rng.choice(n_clusters, size=n_samples, p=weights)
    X = rng.standard_normal((n_samples, n_features))
    for k in range(n_clusters):
        rows = np.flatnonzero(y == k)
        factor = cluster_std * _random_covariance_factor(n_features, rng)
        X[rows] = X[rows] @ factor + centers[k]
    return X, y


def make_grid_clusters(
    n_samples: int = 100_000,
    n_clusters: int = 100,
    *,
    spacing: float = 9.0,
    cluster_std: float = 2.33,
    random_state: Seed = None,
) -> tuple[Floats, Ints]:
    """Round clusters of equal weight on a square grid in the plane.

    With the defaults neighbours touch, as in the first set of the BIRCH paper: 100
    clusters on a 10 × 10 grid, whose best 100 means leave a sum of squares of about
    9.3 per row.

    Parameters
    ----------
    n_samples : int, default=100_000
        Number of rows.
    n_clusters : int, default=100
        Number of clusters; a square number.
    spacing : float, default=9
        Distance between neighbouring centres.
    cluster_std : float, default=2.33
        Standard deviation of a cluster along each axis.
    random_state : int, Generator or None, default=None
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The rows.
    y : ndarray of shape (n_samples,)
        The cluster that made each row, numbered along the grid's rows.

    Examples
    --------
    >>> from kplus.datasets import make_grid_clusters
    >>> X, y = make_grid_clusters(900, 9, random_state=0)
    >>> X.shape, int(y.max()) + 1
    ((900, 2), 9)
    """
    check_sizes(n_samples=n_samples, n_clusters=n_clusters)
    side = round(n_clusters**0.5)
    if side * side != n_clusters:
        raise ValueError(
            f"n_clusters must be a square number such as 9 or 100, got {n_clusters}."
        )
    rng = np.random.default_rng(random_state)
    y = rng.integers(n_clusters, size=n_samples)
    centers = spacing * np.column_stack(np.divmod(y, side))
    return centers + cluster_std * rng.standard_normal((n_samples, 2)), y


def make_spherical_mixture(
    n_samples: int = 2_000,
    n_features: int = 2,
    n_clusters: int = 5,
    *,
    separation: float = 8.0,
    concentration: float = 5.0,
    random_state: Seed = None,
) -> tuple[Floats, Ints]:
    """Spherical Gaussian components of unit variance and unequal size.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Rows, columns and components.
    separation : float, default=8
        Distance between the two nearest centres, in standard deviations.
    concentration : float, default=5
        Parameter of the Dirichlet distribution of the component weights; the larger,
        the more equal the sizes. No weight is below a fifth of the equal share.
    random_state : int, Generator or None, default=None
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,)
        The component that made each row.

    Examples
    --------
    >>> from kplus.datasets import make_spherical_mixture
    >>> X, y = make_spherical_mixture(500, 2, 3, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((500, 2), [0, 1, 2])
    """
    check_sizes(n_samples=n_samples, n_features=n_features, n_clusters=n_clusters)
    rng = np.random.default_rng(random_state)
    centers = separation * _spread_centers(n_clusters, n_features, rng)
    floor = 0.2 / n_clusters
    weights = floor + 0.8 * rng.dirichlet(np.full(n_clusters, concentration))
    y = rng.choice(n_clusters, size=n_samples, p=weights)
    return centers[y] + rng.standard_normal((n_samples, n_features)), y


def _random_covariance_factor(n_features: int, rng: Generator) -> Floats:
    """Factor F with covariance FᵀF: random axes, variances that average 1."""
    axes, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    variances = rng.uniform(0.25, 1.75, n_features)
    variances /= variances.mean()
    factor: Floats = np.sqrt(variances)[:, None] * axes
    return factor


def _spread_centers(n_clusters: int, n_features: int, rng: Generator) -> Floats:
    """Centres at random, yet none much nearer than others; the nearest pair at 1.

    Each centre is the best of ten draws, the one farthest from those already placed:
    plain draws would leave a few pairs so close that scaling their distance to 1 drives
    all others far apart.
    """
    if n_clusters == 1:
        return np.zeros((1, n_features))
    centers = rng.uniform(size=(1, n_features))
    nearest = np.inf
    while len(centers) < n_clusters:
        draws = rng.uniform(size=(10, n_features))
        gaps = np.linalg.norm(draws[:, None] - centers, axis=2).min(axis=1)
        best = int(gaps.argmax())
        nearest = min(nearest, float(gaps[best]))
        centers = np.vstack([centers, draws[best]])
    return centers / nearest


# ------------------------------------------------------------------------- battery


@dataclass(frozen=True)
class MixtureCase:
    """One spherical mixture of :func:`spherical_battery`, made on demand.

    Parameters
    ----------
    name : str
        Name of the configuration.
    n_samples, n_features, n_clusters : int
        Rows, columns and components.
    separation, concentration : float
        As in :func:`make_spherical_mixture`.
    seed : int
        Seed of the random numbers.
    """

    name: str
    n_samples: int
    n_features: int
    n_clusters: int
    separation: float
    concentration: float
    seed: int

    def make(self) -> tuple[Floats, Ints]:
        """Make the rows and their components."""
        return make_spherical_mixture(
            self.n_samples,
            self.n_features,
            self.n_clusters,
            separation=self.separation,
            concentration=self.concentration,
            random_state=self.seed,
        )


# n_samples, n_features, n_clusters, separation, concentration: from two components to
# forty, from the plane to fifty columns, from clusters that touch (4) to clear gaps
# (6), from sizes within a factor of about three (5) to one of ten and more (1).
_BATTERY = {
    "2 in 2D": (1_000, 2, 2, 5.0, 5.0),
    "3 in 10D": (2_000, 10, 3, 5.0, 2.0),
    "5 in 2D, touching": (3_000, 2, 5, 4.0, 5.0),
    "5 in 50D": (2_000, 50, 5, 6.0, 2.0),
    "8 in 5D": (4_000, 5, 8, 5.0, 5.0),
    "10 in 20D, uneven": (4_000, 20, 10, 6.0, 1.0),
    "12 in 3D": (5_000, 3, 12, 5.0, 2.0),
    "15 in 2D": (5_000, 2, 15, 6.0, 5.0),
    "15 in 2D, touching": (5_000, 2, 15, 4.0, 5.0),
    "20 in 10D, uneven": (6_000, 10, 20, 6.0, 1.0),
    "25 in 5D": (8_000, 5, 25, 5.0, 2.0),
    "30 in 50D": (8_000, 50, 30, 6.0, 2.0),
    "40 in 20D": (10_000, 20, 40, 6.0, 5.0),
}


def spherical_battery(seeds: Iterable[int] = range(10)) -> Iterator[MixtureCase]:
    """Spherical mixtures on which a rule for the number of clusters can be judged.

    Thirteen configurations (2 to 40 components, 2 to 50 columns, unequal sizes), each
    with every seed.

    Parameters
    ----------
    seeds : iterable of int, default=range(10)
        Seeds; each configuration is repeated with each of them.

    Yields
    ------
    MixtureCase
        Description of a mixture; its ``make()`` returns ``X`` and ``y``.

    Examples
    --------
    >>> from kplus.datasets import spherical_battery
    >>> cases = list(spherical_battery())
    >>> len(cases), cases[0].name, cases[0].n_clusters
    (130, '2 in 2D', 2)
    """
    seeds = tuple(seeds)
    for name, settings in _BATTERY.items():
        for seed in seeds:
            yield MixtureCase(name, *settings, seed=seed)
