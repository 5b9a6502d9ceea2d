"""Mixtures on which a rule for the number of clusters is judged."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kplus.datasets._arguments import Floats, Ints
from kplus.datasets.mixtures import make_spherical_mixture

__all__ = ["MixtureCase", "spherical_battery"]


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
